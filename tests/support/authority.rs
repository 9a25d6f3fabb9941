//! A certificate authority for the tests, and the certificates it issues, as files.

use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;

/// An authority that only holders of its certificate know.
pub struct Authority {
    folder: TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

pub struct ServerCertificate {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("authority.pem"), issuer.pem()).unwrap();
        Authority { folder, issuer }
    }

    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join("authority.pem")
    }

    /// Certifies a server of this name or address.
    pub fn certify(&self, host: &str) -> ServerCertificate {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let file = |kind: &str| self.folder.path().join(format!("{host}.{kind}.pem"));
        let certified = ServerCertificate { certificate: file("certificate"), key: file("key") };
        std::fs::write(&certified.certificate, certificate.pem()).unwrap();
        std::fs::write(&certified.key, key.serialize_pem()).unwrap();
        certified
    }
}

impl ServerCertificate {
    pub fn flags(&self) -> [&str; 4] {
        let [certificate, key] = [&self.certificate, &self.key].map(|path| path.to_str().unwrap());
        ["--tls-cert", certificate, "--tls-key", key]
    }
}

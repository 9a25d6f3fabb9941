//! Trust in certificates: TLS by rustls, with the system's roots, a user's authority, or no check.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use model::connection::{Trust, Version};

#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error(
        "`{path}` cannot be used as --ca-cert: {cause}; expected a file with certificates in PEM form"
    )]
    File { path: PathBuf, cause: String },
    #[error(
        "the system has no trusted certificates{0}; give the authority's with --ca-cert, or skip the check with --insecure"
    )]
    NoRoots(String),
    #[error("TLS cannot be set up: {0}")]
    Rustls(#[from] rustls::Error),
}

/// The configuration that all connections share.
pub fn config(trust: &Trust, version: Version) -> Result<Arc<ClientConfig>, TrustError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?;
    let mut config = if trust.insecure {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anyone(provider)))
            .with_no_client_auth()
    } else {
        builder.with_root_certificates(roots(trust.ca_cert.as_deref())?).with_no_client_auth()
    };
    config.alpn_protocols = match version {
        Version::Http1 => vec![b"http/1.1".to_vec()],
        Version::Http2 => vec![b"h2".to_vec()],
    };
    Ok(Arc::new(config))
}

fn roots(ca_cert: Option<&Path>) -> Result<RootCertStore, TrustError> {
    let system = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(system.certs);
    if let Some(path) = ca_cert {
        let unusable = |cause: String| TrustError::File { path: path.to_owned(), cause };
        let certificates: Vec<_> = CertificateDer::pem_file_iter(path)
            .and_then(Iterator::collect)
            .map_err(|cause| unusable(cause.to_string()))?;
        if certificates.is_empty() {
            return Err(unusable("it holds no certificate".to_owned()));
        }
        for certificate in certificates {
            roots.add(certificate).map_err(|cause| unusable(cause.to_string()))?;
        }
    }
    if roots.is_empty() {
        let causes: Vec<String> = system.errors.iter().map(ToString::to_string).collect();
        let causes =
            if causes.is_empty() { String::new() } else { format!(" ({})", causes.join("; ")) };
        return Err(TrustError::NoRoots(causes));
    }
    Ok(roots)
}

/// Takes any certificate, because the user said so; signatures are still checked.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

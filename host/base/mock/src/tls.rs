//! TLS for the mock engine: a certificate and its key, read from files.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The engine's identity and protocols: HTTP/2 or HTTP/1.1, as the client prefers.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error(
        "`{path}` cannot be used as --tls-cert: {cause}; expected certificates in PEM form, the server's own first"
    )]
    Certificate { path: PathBuf, cause: String },
    #[error("`{path}` cannot be used as --tls-key: {cause}; expected a private key in PEM form")]
    Key { path: PathBuf, cause: String },
    /// They do not match, or rustls does not support this key.
    #[error("the certificate and the key of --tls-cert and --tls-key cannot be used: {0}")]
    Rustls(#[from] rustls::Error),
}

impl Tls {
    /// Reads a certificate, followed by its authorities' certificates, and its key. Fails if one of
    /// the files cannot be used, or they do not match.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let wrong = |cause: String| TlsError::Certificate { path: certificate.to_owned(), cause };
        let chain: Vec<_> = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect)
            .map_err(|cause| wrong(cause.to_string()))?;
        if chain.is_empty() {
            return Err(wrong("it holds no certificate".to_owned()));
        }
        let key = PrivateKeyDer::from_pem_file(key)
            .map_err(|cause| TlsError::Key { path: key.to_owned(), cause: cause.to_string() })?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Tls(TlsAcceptor::from(Arc::new(config))))
    }

    /// The acceptor of connections, for another server than the mock engine.
    pub fn into_acceptor(self) -> TlsAcceptor {
        self.0
    }

    pub(super) async fn accept<IO>(&self, io: IO) -> io::Result<TlsStream<IO>>
    where
        IO: AsyncRead + AsyncWrite + Unpin,
    {
        self.0.accept(io).await
    }
}

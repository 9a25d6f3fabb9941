//! Who may speak: TLS 1.3 in which each side proves that it has the run's token.
//!
//! Both sides derive the same Ed25519 key from the token, present its public half as a raw public key (RFC 7250), and
//! sign the handshake with it. Each verifies that the other's key is exactly its own. So there is no certificate and no
//! authority, nothing that names a host, and nothing secret is sent. A peer without the token gets no byte of the
//! protocol, and neither does one that speaks another protocol. This module owns the two configurations and the words
//! for what goes wrong; connections are for `link`.

use std::io;
use std::sync::Arc;

use rustls::client::AlwaysResolvesClientRawPublicKeys;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::CertifiedKey;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName,
    Error, ServerConfig, SignatureScheme,
};

use crate::token::Token;

/// What stands before the 32 bytes of an Ed25519 key in PKCS #8 (RFC 8410, section 7).
const PKCS8: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];
/// The protocol's name in the handshake (ALPN), so that no server of HTTP is taken for a coordinator.
const PROTOCOL: &[u8] = b"runner-fleet";

/// What people read where the other side has another token.
pub const TOKENS_DIFFER: &str =
    "tokens differ: give every process of the run the same RUNNER_FLEET_TOKEN";

/// The configurations of TLS for both sides of a run.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The coordinator's.
    pub server: Arc<ServerConfig>,
    /// The agents'.
    pub client: Arc<ClientConfig>,
}

impl Identity {
    /// That of a run's token.
    ///
    /// # Errors
    /// If the cryptography library refuses the key, which it has no reason to.
    pub fn of(token: &Token) -> Result<Self, Error> {
        let provider = Arc::new(ring::default_provider());
        let mut key = PKCS8.to_vec();
        key.extend(token.seed());
        let key = ring::sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(key))?;
        let public = key
            .public_key()
            .ok_or_else(|| Error::General("the key has no public half".to_owned()))?;
        let public = public.as_ref().to_vec();
        let own = Arc::new(CertifiedKey::new(
            vec![CertificateDer::from(public.clone())],
            key,
        ));
        let same = Arc::new(SameKey {
            public,
            provider: Arc::clone(&provider),
        });
        let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_client_cert_verifier(Arc::clone(&same) as Arc<dyn ClientCertVerifier>)
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(
                Arc::clone(&own),
            )));
        server.alpn_protocols = vec![PROTOCOL.to_vec()];
        // Every connection proves the token anew.
        server.send_tls13_tickets = 0;
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(same)
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(own)));
        client.alpn_protocols = vec![PROTOCOL.to_vec()];
        client.enable_sni = false;
        client.resumption = rustls::client::Resumption::disabled();
        Ok(Identity {
            server: Arc::new(server),
            client: Arc::new(client),
        })
    }
}

/// The name that rustls wants of a server; nothing looks at it.
pub(crate) fn name() -> ServerName<'static> {
    ServerName::try_from("coordinator").expect("a valid name")
}

/// What a handshake's error means; none if it says nothing about who the other side is, as a broken connection.
pub(crate) fn meaning(error: &io::Error) -> Option<&'static str> {
    let tls = error.get_ref()?.downcast_ref::<Error>()?;
    Some(match tls {
        Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)
        | Error::AlertReceived(AlertDescription::AccessDenied | AlertDescription::DecryptError) => {
            TOKENS_DIFFER
        }
        Error::InvalidMessage(_) => "it does not speak TLS, so it is no process of a fleet",
        _ => "it speaks TLS and is no process of a fleet",
    })
}

/// Accepts one public key, and handshakes that its private half has signed.
#[derive(Debug)]
struct SameKey {
    public: Vec<u8>,
    provider: Arc<CryptoProvider>,
}

impl SameKey {
    fn check(&self, presented: &CertificateDer<'_>) -> Result<(), Error> {
        // Public keys are no secret, so the time that a comparison takes says nothing.
        match presented.as_ref() == self.public {
            true => Ok(()),
            // The alert of this error is `access_denied`.
            false => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn signed(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature_with_raw_key(
            message,
            &SubjectPublicKeyInfoDer::from(key.as_ref()),
            signed,
            &self.provider.signature_verification_algorithms,
        )
    }
}

/// TLS 1.2 is not offered, so this is never asked.
fn old_version() -> Result<HandshakeSignatureValid, Error> {
    Err(Error::General("TLS 1.3 only".to_owned()))
}

impl ServerCertVerifier for SameKey {
    fn verify_server_cert(
        &self,
        presented: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(presented)
            .map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        old_version()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed(message, key, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for SameKey {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        presented: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(presented)
            .map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        old_version()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed(message, key, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;

//! Authentication of both sides: TLS 1.3 in which each side proves that it has the run's token.
//!
//! All processes have one Ed25519 key, which follows from the token. Each side presents the public
//! half as a raw public key (RFC 7250), signs the handshake, and verifies that the other side's key
//! is the same. Signatures of clients and servers differ in TLS 1.3, so neither can be sent back to
//! its author. There is no certificate, no name of a host, and nothing secret is sent. A peer
//! without a token gets no byte of the protocol, and neither does a peer with another protocol.
//! This module owns the two configurations and the messages for their errors; `link` owns
//! connections.

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

use crate::token::{Token, public};

/// The bytes before the 32 bytes of an Ed25519 key in PKCS #8 (RFC 8410, section 7).
const PKCS8: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];
/// The bytes before a public Ed25519 key in its SubjectPublicKeyInfo (RFC 8410, section 4).
const SPKI: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// The protocol's name in the handshake (ALPN): no server of HTTP is taken for a coordinator.
const PROTOCOL: &[u8] = b"runner-fleet";

/// The message where the other side has another token.
pub const TOKENS_DIFFER: &str =
    "tokens differ: give every process of the run the same RUNNER_FLEET_TOKEN";

/// The coordinator's configuration of TLS. Fails if the cryptography library refuses the key.
pub fn server(token: &Token) -> Result<Arc<ServerConfig>, Error> {
    let (provider, own) = (Arc::new(ring::default_provider()), own(&token.seed())?);
    let agents = only(&public(&token.seed()), &provider);
    let mut server = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(agents as Arc<dyn ClientCertVerifier>)
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(own)));
    server.alpn_protocols = vec![PROTOCOL.to_vec()];
    // Every connection proves anew that it has the token.
    server.send_tls13_tickets = 0;
    Ok(Arc::new(server))
}

/// The agents' configuration of TLS. Fails if the cryptography library refuses the key.
pub fn client(token: &Token) -> Result<Arc<ClientConfig>, Error> {
    let (provider, own) = (Arc::new(ring::default_provider()), own(&token.seed())?);
    let coordinator = only(&public(&token.seed()), &provider);
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(coordinator)
        .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(own)));
    client.alpn_protocols = vec![PROTOCOL.to_vec()];
    client.enable_sni = false;
    client.resumption = rustls::client::Resumption::disabled();
    Ok(Arc::new(client))
}

/// A key as TLS presents it.
fn own(seed: &[u8; 32]) -> Result<Arc<CertifiedKey>, Error> {
    let key = [&PKCS8[..], seed].concat();
    let key = ring::sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(key))?;
    let presented = CertificateDer::from(key_info(&public(seed)));
    Ok(Arc::new(CertifiedKey::new(vec![presented], key)))
}

/// Returns a verifier that accepts this key and no other.
fn only(public: &[u8; 32], provider: &Arc<CryptoProvider>) -> Arc<OneKey> {
    Arc::new(OneKey { public: key_info(public), provider: Arc::clone(provider) })
}

/// A public key as TLS sends it.
fn key_info(public: &[u8; 32]) -> Vec<u8> {
    [&SPKI[..], public].concat()
}

/// The name that rustls wants of a server; nothing looks at it.
pub(crate) fn name() -> ServerName<'static> {
    ServerName::try_from("coordinator").expect("a valid name")
}

/// Explains a handshake's error; none if it does not concern the identity of the other side.
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
struct OneKey {
    public: Vec<u8>,
    provider: Arc<CryptoProvider>,
}

impl OneKey {
    fn check(&self, presented: &CertificateDer<'_>) -> Result<(), Error> {
        // Public keys are no secret, so the time that a comparison takes says nothing.
        if presented.as_ref() == self.public {
            Ok(())
        } else {
            // The alert of this error is `access_denied`.
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }
}

/// The methods that the verifiers of servers and of clients have in common.
macro_rules! handshakes {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            // TLS 1.2 is not offered, so this is never called.
            Err(Error::General("TLS 1.3 only".to_owned()))
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            key: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            verify_tls13_signature_with_raw_key(
                message,
                &SubjectPublicKeyInfoDer::from(key.as_ref()),
                signature,
                &self.provider.signature_verification_algorithms,
            )
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![SignatureScheme::ED25519]
        }

        fn requires_raw_public_keys(&self) -> bool {
            true
        }
    };
}

impl ServerCertVerifier for OneKey {
    fn verify_server_cert(
        &self,
        presented: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(presented).map(|()| ServerCertVerified::assertion())
    }

    handshakes!();
}

impl ClientCertVerifier for OneKey {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        presented: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(presented).map(|()| ClientCertVerified::assertion())
    }

    handshakes!();
}

#[cfg(test)]
mod tests;

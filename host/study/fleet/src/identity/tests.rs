use std::io;
use std::sync::Arc;

use rustls::RootCertStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::*;

/// Both sides' configurations of a token.
struct Identity {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

fn token(digit: char) -> Token {
    Token::parse(&digit.to_string().repeat(32), "a test").unwrap()
}

fn identity(digit: char) -> Identity {
    let token = token(digit);
    Identity { server: server(&token).unwrap(), client: client(&token).unwrap() }
}

/// Runs the coordinator's side of a handshake, and sends a secret to a peer that it accepts.
async fn serve(stream: DuplexStream, identity: Identity) -> io::Result<()> {
    let mut stream = TlsAcceptor::from(identity.server).accept(stream).await?;
    stream.write_all(b"plan").await?;
    stream.flush().await
}

/// Connects with this configuration and returns the bytes that the client reads.
async fn connect(stream: DuplexStream, config: Arc<ClientConfig>) -> io::Result<Vec<u8>> {
    let mut stream = TlsConnector::from(config).connect(name(), stream).await?;
    let mut read = vec![0; 4];
    stream.read_exact(&mut read).await?;
    Ok(read)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn both(server: Identity, client: Arc<ClientConfig>) -> (io::Result<()>, io::Result<Vec<u8>>) {
    let (near, far) = tokio::io::duplex(1 << 16);
    runtime().block_on(async { tokio::join!(serve(near, server), connect(far, client)) })
}

#[test]
fn the_same_token_connects() {
    let (served, read) = both(identity('a'), identity('a').client);
    served.unwrap();
    assert_eq!(read.unwrap(), b"plan");
}

#[test]
fn both_sides_refuse_another_token_by_name() {
    let (served, read) = both(identity('a'), identity('b').client);
    for error in [served.unwrap_err(), read.unwrap_err()] {
        assert_eq!(meaning(&error), Some(TOKENS_DIFFER));
    }
}

/// A client that accepts the server's key is still refused for its own.
#[test]
fn the_coordinator_verifies_even_a_careless_client() {
    let other = own(&token('b').seed()).unwrap();
    let mut config = (*identity('a').client).clone();
    config.client_auth_cert_resolver = Arc::new(AlwaysResolvesClientRawPublicKeys::new(other));
    let (served, read) = both(identity('a'), Arc::new(config));
    for error in [served.unwrap_err(), read.unwrap_err()] {
        assert_eq!(meaning(&error), Some(TOKENS_DIFFER));
    }
}

/// A peer with the right public key, which is no secret, and without its private half.
#[test]
fn a_public_key_is_no_proof() {
    let right = identity('a');
    let wrong_key = {
        let key = [&PKCS8[..], &token('b').seed()].concat();
        ring::sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(key)).unwrap()
    };
    let right_public = key_info(&public(&token('a').seed()));
    let forged = Arc::new(CertifiedKey::new(vec![CertificateDer::from(right_public)], wrong_key));
    let mut config = (*right.client).clone();
    config.client_auth_cert_resolver = Arc::new(AlwaysResolvesClientRawPublicKeys::new(forged));
    let (served, read) = both(right, Arc::new(config));
    assert!(served.is_err());
    assert!(read.is_err());
}

#[test]
fn clients_of_other_protocols_get_nothing() {
    // Plain TLS, with certificates and without a key of its own.
    let plain = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let (served, read) = both(identity('a'), Arc::new(plain));
    assert!(read.is_err());
    assert_eq!(meaning(&served.unwrap_err()), Some("it speaks TLS and is no process of a fleet"));

    // Plain TCP.
    let (near, mut far) = tokio::io::duplex(1 << 16);
    let (served, got) = runtime().block_on(async {
        let asks = async {
            far.write_all(b"GET / HTTP/1.1\r\nhost: coordinator\r\n\r\n").await.unwrap();
            let mut got = Vec::new();
            far.read_to_end(&mut got).await.unwrap();
            got
        };
        tokio::join!(serve(near, identity('a')), asks)
    });
    let expected = Some("it does not speak TLS, so it is no process of a fleet");
    assert_eq!(meaning(&served.unwrap_err()), expected);
    assert!(got.len() <= 7, "more than an alert: {got:?}");
}

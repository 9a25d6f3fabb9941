//! Opening connections over the network: the host's name, TCP, TLS, each with its instant.

use std::borrow::Cow;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

use super::poller::Poller;
use super::socket::socket;
use super::stamp::{StampedStream, Wire};
pub use super::tls::TrustError;
use super::{Connect, NewConnection, Polled, tls};
use model::clock::Clock;
pub use model::connection::Trust;
use model::connection::{Timestamps, Version};
use model::exchange;
use model::target::Target;
use model::units::Nanos;

/// Opens connections to the targets of a run, and to other hosts. Names are looked up before the
/// run, to detect errors, and again by the first connection to each target, for the instant.
#[derive(Clone)]
pub struct Dial {
    hosts: Arc<[Host]>,
    /// For each target, true once a connection has looked its name up.
    looked_up: Arc<[AtomicBool]>,
    version: Version,
    timestamps: Timestamps,
}

struct Host {
    addresses: Vec<SocketAddr>,
    /// Name and port; absent where an address was given.
    name: Option<(String, u16)>,
    tls: Option<Tls>,
}

/// TLS for one host, or the error of its setup, as it may not be needed.
type Tls = Result<(TlsConnector, ServerName<'static>), String>;

/// The reason why no connection to a target can be opened.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    #[error(
        "cannot find the host of {target}: {cause}; is the name right (--base-url, or --host)?"
    )]
    Unknown { target: String, cause: String },
    /// The name of a host where an exchange may continue is unknown.
    #[error(
        "cannot find the host `{host}` of `[target] hosts`: {cause}; is the name right (--allow-host)?"
    )]
    UnknownHost { host: String, cause: String },
    /// TLS cannot be set up for it.
    #[error(transparent)]
    Trust(#[from] TrustError),
}

impl Dial {
    /// Looks up the names of the targets and then of other hosts. Prepares TLS if one needs it.
    pub fn new(
        targets: &[Target],
        hosts: &[Target],
        version: Version,
        trust: &Trust,
        timestamps: Timestamps,
    ) -> Result<Self, DialError> {
        let needs_tls = targets.iter().any(Target::is_tls);
        let may_need_tls = needs_tls || hosts.iter().any(Target::is_tls);
        let config = may_need_tls.then(|| tls::config(trust, version));
        let config = match config {
            Some(Err(error)) if needs_tls => return Err(error.into()),
            config => config.map(|config| config.map_err(|error| error.to_string())),
        };
        let own = (targets.iter()).map(|target| {
            let unknown = |cause| DialError::Unknown { target: target.to_string(), cause };
            Host::look_up(target, config.as_ref()).map_err(unknown)
        });
        let others = (hosts.iter()).map(|host| {
            let unknown = |cause| DialError::UnknownHost { host: host.host().to_owned(), cause };
            Host::look_up(host, config.as_ref()).map_err(unknown)
        });
        let all: Result<Arc<[Host]>, DialError> = own.chain(others).collect();
        Ok(Dial {
            hosts: all?,
            looked_up: unasked(targets.len() + hosts.len()),
            version,
            timestamps,
        })
    }

    /// The same, for connections with another purpose; the first connection looks names up again.
    pub fn afresh(&self) -> Self {
        Dial { looked_up: unasked(self.hosts.len()), ..self.clone() }
    }
}

fn unasked(targets: usize) -> Arc<[AtomicBool]> {
    (0..targets).map(|_| AtomicBool::new(false)).collect()
}

impl Host {
    fn look_up(
        target: &Target,
        config: Option<&Result<Arc<ClientConfig>, String>>,
    ) -> Result<Self, String> {
        let addresses = target.resolve().map_err(|cause| cause.to_string())?;
        if addresses.is_empty() {
            return Err("it has no address".to_owned());
        }
        let tls = match config.filter(|_| target.is_tls()).cloned() {
            None => None,
            Some(Ok(config)) => {
                let name = ServerName::try_from(target.host().to_owned());
                Some(Ok((TlsConnector::from(config), name.map_err(|cause| cause.to_string())?)))
            }
            Some(Err(cause)) => Some(Err(cause)),
        };
        let is_address = target.host().parse::<IpAddr>().is_ok();
        let name = (!is_address).then(|| (target.host().to_owned(), addresses[0].port()));
        Ok(Host { addresses, name, tls })
    }

    /// The addresses, and the time of their look-up by the first connection.
    async fn addresses(
        &self,
        clock: Clock,
        looked_up: &AtomicBool,
    ) -> Result<(Cow<'_, [SocketAddr]>, Option<Nanos>), String> {
        let Some((name, port)) = &self.name else {
            return Ok((Cow::Borrowed(&self.addresses), None));
        };
        if looked_up.swap(true, Ordering::AcqRel) {
            return Ok((Cow::Borrowed(&self.addresses), None));
        }
        let found = tokio::net::lookup_host((&**name, *port))
            .await
            .map_err(|cause| format!("cannot find the host `{name}`: {cause}"))?;
        Ok((Cow::Owned(found.collect()), Some(clock.now())))
    }
}

impl Connect for Dial {
    type Io = Stream;

    fn version(&self) -> Version {
        self.version
    }

    /// HTTP/1.1 in the clear is registered with the poller. TLS and HTTP/2 wait as tasks do.
    async fn connect(
        &self,
        target: u32,
        clock: Clock,
        poller: Option<&Poller>,
    ) -> Result<NewConnection<Stream>, String> {
        let host = &self.hosts[target as usize];
        let begun = clock.now();
        let (addresses, looked_up) =
            host.addresses(clock, &self.looked_up[target as usize]).await?;
        let poller = poller.filter(|_| host.tls.is_none() && self.version == Version::Http1);
        let failed = |cause: io::Error| cause.to_string();
        // Without `nodelay`, small requests wait for acknowledgements.
        let tcp = match poller {
            Some(poller) => {
                Either::Left(Polled::connect(&addresses, poller).await.map_err(failed)?)
            }
            None => {
                let stream = TcpStream::connect(&*addresses).await.map_err(failed)?;
                stream.set_nodelay(true).map_err(failed)?;
                Either::Right(stream)
            }
        };
        let connected = clock.now();
        let wire = Wire::new(clock);
        let mut readiness = None;
        let (io, secured) = match (tcp, &host.tls) {
            (Either::Left(stream), _) => {
                readiness = Some(Rc::clone(stream.readiness()));
                (Either::Left(socket(stream, &wire, self.timestamps)), None)
            }
            (Either::Right(stream), None) => {
                (Either::Right(Either::Left(socket(stream, &wire, self.timestamps))), None)
            }
            (Either::Right(_), Some(Err(cause))) => return Err(cause.clone()),
            (Either::Right(stream), Some(Ok((connector, name)))) => {
                let socket = socket(stream, &wire, self.timestamps);
                let secured = connector.connect(name.clone(), socket).await;
                let stream = secured.map_err(|cause| refused(&cause))?;
                let agreed = stream.get_ref().1.alpn_protocol();
                if self.version == Version::Http2 && agreed != Some(b"h2") {
                    return Err("the server does not speak HTTP/2 (TLS did not choose `h2`)".into());
                }
                (Either::Right(Either::Right(Box::new(stream))), Some(clock.now()))
            }
        };
        let facts =
            exchange::Connection { begun, looked_up, connected, secured, ..Default::default() };
        Ok(NewConnection { io, wire, readiness, facts })
    }
}

/// Describes a failure of TLS, with advice if there is any.
fn refused(cause: &io::Error) -> String {
    let text = cause.to_string();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let advice = if says(&["UnknownIssuer", "BadSignature", "CaUsedAsEndEntity"]) {
        "; give the authority's certificate with --ca-cert, or skip the check with --insecure"
    } else if says(&["not valid for name"]) {
        "; the certificate is for another host; use the host name in the certificate, or skip the check with --insecure"
    } else if says(&["invalid peer certificate"]) {
        "; make the server present a valid certificate, or skip the check with --insecure"
    } else if says(&["corrupt message", "InvalidContentType"]) {
        "; does the server speak TLS on this port?"
    } else {
        ""
    };
    format!("TLS failed: {text}{advice}")
}

/// A connection's bytes: of TCP that a poller has, of TCP that the runtime has, or of TLS.
pub type Stream = Either<StampedStream<Polled>, Either<Tcp, Box<TlsStream<Tcp>>>>;

type Tcp = StampedStream<TcpStream>;

//! Serves the state of the latest run to Prometheus: `/metrics`, on a thread of low priority.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs};
use std::str::FromStr;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use std::{fmt, io};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinError, JoinSet};

use super::Live;
use super::exposition::{self, Identity};
use crate::lock;
use load::pace::Signal;
use load::thread_group::{GroupThread, ThreadGroup, trip};
use load::vitals::{WatchedThread, yield_to_others};

/// The default host: only this machine may read it, unless set otherwise.
const LOOPBACK: &str = "127.0.0.1";
/// Connections at the same time. One more takes the place of the oldest.
const CONNECTIONS: usize = 16;
/// The most bytes of a request's head, and the most fields.
const HEAD_BYTES: usize = 16 << 10;
const HEAD_FIELDS: usize = 64;
/// The lifetime of a connection. Scrapers open another one.
const LIFETIME: Duration = Duration::from_secs(300);
const HEAD: Duration = Duration::from_secs(10);
/// The pause after a failed accept.
const AGAIN: Duration = Duration::from_millis(100);

/// The address to listen at: `127.0.0.1:9464`, `localhost:9464`; `:9464` or `9464` on loopback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not an address to listen on: expected HOST:PORT, such as 127.0.0.1:9464 or [::1]:9464, or :PORT for loopback"
)]
pub struct NoAddress {
    text: String,
}

impl FromStr for Address {
    type Err = NoAddress;

    fn from_str(text: &str) -> Result<Self, NoAddress> {
        let no_address = || NoAddress { text: text.to_owned() };
        let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
        let host = match host.strip_prefix('[') {
            Some(rest) => rest.strip_suffix(']').ok_or_else(no_address)?,
            None if host.contains([':', '/', '@']) => return Err(no_address()),
            None => host,
        };
        let host = if host.is_empty() { LOOPBACK } else { host }.to_owned();
        Ok(Address { host, port: port.parse().map_err(|_| no_address())? })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// A listener under way. It ends when dropped.
pub struct Listener {
    address: SocketAddr,
    shown: Arc<Mutex<Option<RunView>>>,
    watched: Option<WatchedThread>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<GroupThread<()>>,
}

#[derive(Clone)]
struct RunView {
    identity: Arc<Identity>,
    live: Arc<Live>,
    group: ThreadGroup,
}

impl Listener {
    pub fn bind(bound: &Address) -> io::Result<Self> {
        let addresses = (bound.host.as_str(), bound.port).to_socket_addrs()?;
        let socket = TcpListener::bind(addresses.collect::<Vec<_>>().as_slice())?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let socket = {
            let _entered = runtime.enter();
            tokio::net::TcpListener::from_std(socket)?
        };
        let shown = Arc::<Mutex<Option<RunView>>>::default();
        let (stop, stopped) = oneshot::channel();
        let (sender, receiver) = mpsc::channel();
        let serving = Arc::clone(&shown);
        let host = Arc::<str>::from(bound.host.as_str());
        // It begins before any run; where a page panics, the run that is shown is told.
        let own = ThreadGroup::new(&Signal::for_thread());
        let thread = own.start("metrics", None, move || {
            yield_to_others();
            let _ = sender.send(WatchedThread::this_thread("metrics"));
            runtime.block_on(serve(socket, host, serving, stopped));
        })?;
        Ok(Listener {
            address,
            shown,
            watched: receiver.recv().ok().flatten(),
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Shows this run from now on.
    pub fn show(&self, identity: Identity, live: &Arc<Live>, group: &ThreadGroup) {
        if let Some(watched) = &self.watched {
            live.enlist(watched.clone());
        }
        *lock(&self.shown) = Some(RunView {
            identity: Arc::new(identity),
            live: Arc::clone(live),
            group: group.clone(),
        });
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join();
        }
    }
}

async fn serve(
    socket: tokio::net::TcpListener,
    host: Arc<str>,
    shown: Arc<Mutex<Option<RunView>>>,
    mut stopped: oneshot::Receiver<()>,
) {
    let mut connections = JoinSet::new();
    let mut oldest_first = VecDeque::<AbortHandle>::new();
    loop {
        tokio::select! {
            _ = &mut stopped => return,
            Some(ended) = connections.join_next() => {
                if let Err(error) = ended
                    && let Ok(panic) = JoinError::try_into_panic(error)
                    && let Some(shown) = &*lock(&shown)
                {
                    shown.group.fell("metrics", &*panic);
                }
            }
            accepted = socket.accept() => match accepted {
                Ok((stream, _)) => {
                    oldest_first.retain(|connection| !connection.is_finished());
                    while oldest_first.len() >= CONNECTIONS {
                        if let Some(oldest) = oldest_first.pop_front() {
                            oldest.abort();
                        }
                    }
                    let (host, shown) = (Arc::clone(&host), Arc::clone(&shown));
                    let service = service_fn(move |request| {
                        let answered = answer(&request, &host, &shown);
                        async move { Ok::<_, Infallible>(answered) }
                    });
                    oldest_first.push_back(connections.spawn(async move {
                        let mut http = http1::Builder::new();
                        http.timer(TokioTimer::new())
                            .header_read_timeout(HEAD)
                            .max_buf_size(HEAD_BYTES)
                            .max_headers(HEAD_FIELDS);
                        // Ignore a client that does not speak HTTP, or goes away.
                        let served = http.serve_connection(TokioIo::new(stream), service);
                        let _ = tokio::time::timeout(LIFETIME, served).await;
                    }));
                }
                Err(_) => tokio::time::sleep(AGAIN).await,
            },
        }
    }
}

/// True if a request names this machine: an address, `localhost` or the bound name. A web page can
/// give its own name this machine's address.
fn is_meant(host: &str, bound: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or(rest, |(address, _)| address),
        None => host.split_once(':').map_or(host, |(name, _)| name),
    };
    name.parse::<IpAddr>().is_ok()
        || [bound, "localhost"].iter().any(|own| name.eq_ignore_ascii_case(own))
}

fn answer(
    request: &Request<Incoming>,
    bound: &str,
    shown: &Mutex<Option<RunView>>,
) -> Response<Full<Bytes>> {
    const TEXT: &str = "text/plain; charset=utf-8";
    let mut hosts = request.headers().get_all(HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    let is_meant = hosts.next().is_none() && host.is_some_and(|host| is_meant(host, bound));
    trip("metrics");
    // Taken out, so that showing the next run does not wait for this page.
    let shown = lock(shown).clone();
    let (status, media_type, body) = match request.uri().path() {
        _ if !is_meant => {
            let message = "ask by an address of this machine, by `localhost`, or by the name given with --metrics-listen\n";
            (StatusCode::MISDIRECTED_REQUEST, TEXT, message.to_owned())
        }
        _ if ![Method::GET, Method::HEAD].contains(request.method()) => {
            (StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET is supported here\n".to_owned())
        }
        "/metrics" => {
            // A page without families, if no run has begun.
            let page = shown.map_or("# EOF\n".to_owned(), |shown| {
                exposition::page(&shown.identity, shown.live.snapshot())
            });
            (StatusCode::OK, exposition::MEDIA_TYPE, page)
        }
        "/" => {
            let run = shown.map_or("no run has begun".to_owned(), |shown| {
                format!("run {}: {}", shown.identity.run, shown.live.snapshot().counts.phase)
            });
            let version = env!("CARGO_PKG_VERSION");
            (StatusCode::OK, TEXT, format!("runner {version}\n{run}\n/metrics for Prometheus\n"))
        }
        _ => {
            let message = "there is nothing here; /metrics is for Prometheus\n";
            (StatusCode::NOT_FOUND, TEXT, message.to_owned())
        }
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed() {
        for (text, expected) in [
            ("127.0.0.1:9464", "127.0.0.1:9464"),
            (":9464", "127.0.0.1:9464"),
            ("9464", "127.0.0.1:9464"),
            ("0.0.0.0:0", "0.0.0.0:0"),
            ("localhost:80", "localhost:80"),
            ("[::1]:9464", "[::1]:9464"),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.to_string(), expected, "{text}");
        }
        for text in " : localhost ::1:9464 [::1:9464 http://localhost:9464 a@b:1 :70000".split(' ')
        {
            let error = text.parse::<Address>().unwrap_err();
            assert!(error.to_string().contains(&format!("`{text}`")), "{error}");
        }
    }

    #[test]
    fn foreign_host_names_are_refused() {
        let own = "127.0.0.1 127.0.0.1:9464 10.1.2.3:1 [::1] [::1]:9464 localhost:1 LOCALHOST \
                   bench.example:9464";
        for host in own.split(' ') {
            assert!(is_meant(host, "bench.example"), "{host}");
        }
        let foreign =
            " evil.example evil.example:9464 localhost.evil.example [evil]:1 1.2.3.4.evil";
        for host in foreign.split(' ') {
            assert!(!is_meant(host, "127.0.0.1"), "{host}");
        }
    }
}

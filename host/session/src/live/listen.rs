//! Serves the state of a run to Prometheus: `/metrics`, on a thread of its own with a low
//! priority. It outlives a run, and shows the latest run that was given to it.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::Live;
use super::exposition::{self, Identity};
use load::vitals::{Watched, yield_to_others};

/// The default host: only this machine may read it, unless set otherwise.
const LOOPBACK: &str = "127.0.0.1";
/// Connections at the same time. More are left waiting.
const CONNECTIONS: usize = 16;
/// How long a request's head may take.
const HEAD: Duration = Duration::from_secs(10);
/// How long to wait after a failed accept.
const AGAIN: Duration = Duration::from_millis(100);

/// Where to listen: `127.0.0.1:9464`, `localhost:9464`, `[::1]:9464`; `:9464` or `9464` on loopback. Port 0 lets
/// the system choose one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
}

/// A text that is not an address.
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
        let no_address = || NoAddress {
            text: text.to_owned(),
        };
        let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
        let host = match host.strip_prefix('[') {
            Some(rest) => rest.strip_suffix(']').ok_or_else(no_address)?,
            None if host.contains([':', '/', '@']) => return Err(no_address()),
            None => host,
        };
        Ok(Address {
            host: match host {
                "" => LOOPBACK,
                host => host,
            }
            .to_owned(),
            port: port.parse().map_err(|_| no_address())?,
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// A listener under way. It ends when dropped.
pub struct Listener {
    address: SocketAddr,
    shown: Arc<Mutex<Option<Shown>>>,
    watched: Option<Watched>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The run that is shown.
#[derive(Clone)]
struct Shown {
    identity: Arc<Identity>,
    live: Arc<Live>,
}

impl Listener {
    /// Starts to listen.
    ///
    /// # Errors
    /// If the address cannot be listened on, or no thread can be started.
    pub fn bind(address: &Address) -> io::Result<Self> {
        let addresses = (address.host.as_str(), address.port).to_socket_addrs()?;
        let socket = TcpListener::bind(addresses.collect::<Vec<_>>().as_slice())?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let socket = {
            let _entered = runtime.enter();
            tokio::net::TcpListener::from_std(socket)?
        };
        let shown = Arc::<Mutex<Option<Shown>>>::default();
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = mpsc::channel();
        let serving = Arc::clone(&shown);
        let thread = std::thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(move || {
                yield_to_others();
                let _ = tell.send(Watched::this_thread("metrics"));
                runtime.block_on(serve(socket, serving, stopped));
            })?;
        Ok(Listener {
            address,
            shown,
            watched: told.recv().ok().flatten(),
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Shows this run from now on.
    pub fn show(&self, identity: Identity, live: &Arc<Live>) {
        if let Some(watched) = &self.watched {
            live.enlist(watched.clone());
        }
        *lock(&self.shown) = Some(Shown {
            identity: Arc::new(identity),
            live: Arc::clone(live),
        });
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn lock(shown: &Mutex<Option<Shown>>) -> MutexGuard<'_, Option<Shown>> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(
    socket: tokio::net::TcpListener,
    shown: Arc<Mutex<Option<Shown>>>,
    mut stopped: oneshot::Receiver<()>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = &mut stopped => return,
            Some(_) = connections.join_next() => {}
            accepted = socket.accept(), if connections.len() < CONNECTIONS => match accepted {
                Ok((stream, _)) => {
                    let shown = Arc::clone(&shown);
                    let service = service_fn(move |request| {
                        let answered = answer(&request, &shown);
                        async move { Ok::<_, Infallible>(answered) }
                    });
                    connections.spawn(async move {
                        let mut http = http1::Builder::new();
                        http.timer(TokioTimer::new()).header_read_timeout(HEAD);
                        // Ignore a client that does not speak HTTP, or goes away.
                        let _ = http.serve_connection(TokioIo::new(stream), service).await;
                    });
                }
                Err(_) => tokio::time::sleep(AGAIN).await,
            },
        }
    }
}

fn answer(request: &Request<Incoming>, shown: &Mutex<Option<Shown>>) -> Response<Full<Bytes>> {
    const TEXT: &str = "text/plain; charset=utf-8";
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        let words = "only GET is supported here\n";
        return response(StatusCode::METHOD_NOT_ALLOWED, TEXT, words.to_owned());
    }
    // Taken out, so that showing the next run does not wait for this page.
    let shown = lock(shown).clone();
    match request.uri().path() {
        "/metrics" => {
            let page = match shown {
                Some(shown) => exposition::page(&shown.identity, shown.live.snapshot()),
                None => exposition::empty_page(),
            };
            response(StatusCode::OK, exposition::MEDIA_TYPE, page)
        }
        "/" => {
            let run = match shown {
                Some(shown) => {
                    let phase = shown.live.phase().name();
                    format!("run {}: {phase}\n", shown.identity.run)
                }
                None => "no run has begun\n".to_owned(),
            };
            let index = format!(
                "runner {}\n{run}/metrics for Prometheus\n",
                env!("CARGO_PKG_VERSION")
            );
            response(StatusCode::OK, TEXT, index)
        }
        _ => {
            let words = "there is nothing here; /metrics is for Prometheus\n";
            response(StatusCode::NOT_FOUND, TEXT, words.to_owned())
        }
    }
}

fn response(status: StatusCode, media_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let media_type = hyper::header::HeaderValue::from_static(media_type);
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (text, told) in [
            ("127.0.0.1:9464", "127.0.0.1:9464"),
            (":9464", "127.0.0.1:9464"),
            ("9464", "127.0.0.1:9464"),
            ("0.0.0.0:0", "0.0.0.0:0"),
            ("localhost:80", "localhost:80"),
            ("[::1]:9464", "[::1]:9464"),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.to_string(), told, "{text}");
        }
        for text in [
            "",
            ":",
            "localhost",
            "::1:9464",
            "[::1:9464",
            "http://localhost:9464",
            "a@b:1",
            ":70000",
        ] {
            let error = text.parse::<Address>().unwrap_err();
            assert!(error.to_string().contains(&format!("`{text}`")), "{error}");
        }
    }

    #[test]
    fn a_taken_port_is_told() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address {
            host: LOOPBACK.to_owned(),
            port: taken.local_addr().unwrap().port(),
        };
        let error = Listener::bind(&address).map(drop).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}

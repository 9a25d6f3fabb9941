//! The reverse proxy: one connection to the server for each connection of a client, of the same
//! version of HTTP. Bodies pass frame by frame, so a slow side slows the other one down. Header
//! fields pass with their case and order, except `host`, which names the server.

use std::io;
use std::net::TcpListener as StdListener;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderName, HeaderValue, UPGRADE};
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response, StatusCode, Uri, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use model::target::Target;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::counts::Count;
use crate::tap::{Passing, RequestHead, Tap, Tapped};

/// The most connections of clients at a time; further ones wait to be accepted.
const CONNECTIONS: usize = 32_768;
/// Descriptors that a process has where the system does not tell.
const LEAST_DESCRIPTORS: usize = 1024;
/// Requests at a time on one connection of HTTP/2.
const STREAMS: u32 = 4_096;
const CONNECT: Duration = Duration::from_secs(10);

type Reply = Response<Either<Tapped, Full<Bytes>>>;

pub(crate) struct Proxy {
    pub(crate) target: Target,
    pub(crate) tls: Option<[TlsConnector; 2]>,
    pub(crate) acceptor: Option<TlsAcceptor>,
    /// Header fields that name a session, in the order of preference.
    pub(crate) session_headers: Vec<HeaderName>,
    /// Header fields that name the session that began this one.
    pub(crate) parent_headers: Vec<HeaderName>,
    pub(crate) tap: Tap,
}

/// The bounds of a thread on its clients' connections, within the process's descriptors: one for an
/// idle client, two for a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Connections; further ones wait to be accepted.
    most: usize,
    /// Connections that get a connection to the server before their first request.
    ahead: usize,
}

impl Bounds {
    pub(crate) fn new(threads: usize) -> Self {
        let limit = load::thread_group::allow(2 * CONNECTIONS as u64);
        let descriptors = limit.map_or(LEAST_DESCRIPTORS, |limit| limit as usize);
        let most = CONNECTIONS.min(descriptors / 8 * 5) / threads;
        Bounds { most: most.max(1), ahead: descriptors / 4 / threads }
    }
}

enum Link {
    Http1(http1::SendRequest<Tapped>),
    Http2(http2::SendRequest<Tapped>),
}

impl Proxy {
    /// Serves clients until `stop` changes, on the runtime of this thread.
    pub(crate) async fn serve(
        self: Arc<Self>,
        listener: StdListener,
        bounds: Bounds,
        mut stop: watch::Receiver<bool>,
    ) -> io::Result<()> {
        let listener = TcpListener::from_std(listener)?;
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                _ = stop.changed() => return Ok(()),
                Some(_) = connections.join_next() => {}
                accepted = listener.accept(), if connections.len() < bounds.most => match accepted {
                    Ok((stream, _)) => {
                        let _ = stream.set_nodelay(true);
                        let is_ahead = connections.len() < bounds.ahead;
                        connections.spawn(Arc::clone(&self).converse(stream, is_ahead));
                    }
                    // Out of descriptors, or a client that was gone before it was accepted.
                    Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
                },
            }
        }
    }

    /// `is_ahead` if the connection to the server begins before a request.
    async fn converse(self: Arc<Self>, stream: TcpStream, is_ahead: bool) {
        match &self.acceptor {
            None => Arc::clone(&self).speak(stream, false, is_ahead).await,
            // A client that does not agree on TLS gets nothing.
            Some(acceptor) => {
                if let Ok(stream) = acceptor.accept(stream).await {
                    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                    Arc::clone(&self).speak(stream, is_http2, is_ahead).await;
                }
            }
        }
    }

    /// `is_http2` is the version that the client will most likely speak.
    async fn speak<IO>(self: Arc<Self>, io: IO, is_http2: bool, is_ahead: bool)
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let link = Arc::new(Mutex::new(None));
        let ahead = (Arc::clone(&self), Arc::clone(&link));
        let ahead = is_ahead.then(|| {
            tokio::spawn(async move {
                let mut link = ahead.1.lock().await;
                // A failure is the first request's to report.
                *link = ahead.0.connect(is_http2).await.ok();
            })
        });
        let service = service_fn(move |request| {
            let (proxy, link) = (Arc::clone(&self), Arc::clone(&link));
            async move { Ok::<_, hyper::Error>(proxy.forward(&link, request).await) }
        });
        let mut http = auto::Builder::new(TokioExecutor::new());
        http.http1().preserve_header_case(true).auto_date_header(false).header_read_timeout(None);
        http.http2().auto_date_header(false).max_concurrent_streams(STREAMS);
        // A client that left, or a server that broke off: the counts have both.
        let _ = http.serve_connection_with_upgrades(TokioIo::new(io), service).await;
        if let Some(ahead) = ahead {
            ahead.abort();
        }
    }

    async fn forward(&self, link: &Mutex<Option<Link>>, mut request: Request<Incoming>) -> Reply {
        let (passing, head) = (Passing::new(&self.tap), self.head(&request));
        let upgrades = request.headers().contains_key(UPGRADE);
        let of_client = upgrades.then(|| hyper::upgrade::on(&mut request));
        let is_http2 = request.version() == Version::HTTP_2;
        let request = match self.addressed(request, is_http2) {
            Ok(request) => request.map(|body| passing.request(head, body)),
            Err(cause) => return self.unreachable(passing, &cause),
        };
        let mut reply = match self.send(link, request, is_http2).await {
            Ok(reply) => reply,
            Err(cause) => return self.unreachable(passing, &cause),
        };
        if reply.status() == StatusCode::SWITCHING_PROTOCOLS {
            self.tap.counts.add(Count::Upgraded);
            if let Some(of_client) = of_client {
                let of_server = hyper::upgrade::on(&mut reply);
                tokio::spawn(async move {
                    let (Ok(client), Ok(server)) = tokio::join!(of_client, of_server) else {
                        return;
                    };
                    let (mut client, mut server) = (TokioIo::new(client), TokioIo::new(server));
                    let _ = copy_bidirectional(&mut client, &mut server).await;
                });
            }
            return reply.map(|_| Either::Right(Full::default()));
        }
        let (parts, body) = reply.into_parts();
        let body = passing.reply(parts.status.as_u16(), parts.headers.clone(), body);
        Response::from_parts(parts, Either::Left(body))
    }

    fn head(&self, request: &Request<Incoming>) -> RequestHead {
        let value = |names: &[HeaderName]| named(request.headers(), names);
        let encoding = request.headers().get(CONTENT_ENCODING);
        RequestHead {
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            encoding: encoding.and_then(|value| value.to_str().ok()).map(str::to_owned),
            session: value(&self.session_headers),
            parent: value(&self.parent_headers),
            arrived: self.tap.clock.now(),
        }
    }

    fn addressed(
        &self,
        mut request: Request<Incoming>,
        is_http2: bool,
    ) -> Result<Request<Incoming>, String> {
        let authority = self.target.authority();
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let path = self.target.path(path);
        let uri =
            if is_http2 { format!("{}://{authority}{path}", self.target.scheme()) } else { path };
        *request.uri_mut() = uri.parse::<Uri>().map_err(|cause| cause.to_string())?;
        let value = HeaderValue::from_str(&authority).map_err(|cause| cause.to_string())?;
        if !is_http2 {
            request.headers_mut().insert(HOST, value);
        } else if request.headers().contains_key(HOST) {
            request.headers_mut().remove(HOST);
        }
        Ok(request)
    }

    /// Sends a request. A kept connection that the server closed is replaced once.
    async fn send(
        &self,
        link: &Mutex<Option<Link>>,
        mut request: Request<Tapped>,
        is_http2: bool,
    ) -> Result<Response<Incoming>, String> {
        for is_last in [false, true] {
            let mut held = link.lock().await;
            let is_open = match &*held {
                Some(Link::Http1(sender)) => !is_http2 && !sender.is_closed(),
                Some(Link::Http2(sender)) => is_http2 && !sender.is_closed(),
                None => false,
            };
            if !is_open {
                *held = Some(self.connect(is_http2).await?);
            }
            let sent = match &mut *held {
                Some(Link::Http1(sender)) => {
                    sender.ready().await.map_err(|cause| cause.to_string())?;
                    sender.try_send_request(request).await
                }
                Some(Link::Http2(sender)) => {
                    let mut sender = sender.clone();
                    drop(held);
                    sender.ready().await.map_err(|cause| cause.to_string())?;
                    sender.try_send_request(request).await
                }
                None => return Err("the connection was not kept".to_owned()),
            };
            let mut error: TrySendError<_> = match sent {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            match error.take_message() {
                Some(unsent) if !is_last => request = unsent,
                _ => return Err(error.into_error().to_string()),
            }
        }
        Err("the server closes each connection".to_owned())
    }

    async fn connect(&self, is_http2: bool) -> Result<Link, String> {
        let address = (self.target.host(), self.target.port());
        let connected = async {
            loop {
                match TcpStream::connect(address).await {
                    // Another client's end gives a descriptor back.
                    Err(cause) if is_out_of_descriptors(&cause) => {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                    connected => return connected,
                }
            }
        };
        let stream = tokio::time::timeout(CONNECT, connected).await;
        let stream = stream.map_err(|_| format!("no connection within {} s", CONNECT.as_secs()))?;
        let stream = stream.map_err(|cause| cause.to_string())?;
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.tls else { return spoken(stream, is_http2).await };
        let name = ServerName::try_from(self.target.host().to_owned());
        let name = name.map_err(|cause| cause.to_string())?;
        let stream = tls[usize::from(is_http2)].connect(name, stream).await;
        let stream = stream.map_err(|cause| cause.to_string())?;
        if is_http2 && stream.get_ref().1.alpn_protocol() != Some(b"h2") {
            return Err("the server does not speak HTTP/2 over TLS".to_owned());
        }
        spoken(stream, is_http2).await
    }

    /// The reply where the server gave none.
    fn unreachable(&self, passing: Passing, cause: &str) -> Reply {
        self.tap.counts.add(Count::Unreachable);
        // The request arrived, so it is part of the load.
        drop(passing);
        let text = format!("runner record: {} gives no reply: {cause}\n", self.target);
        let mut reply = Response::new(Either::Right(Full::from(text)));
        *reply.status_mut() = StatusCode::BAD_GATEWAY;
        reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        reply
    }
}

fn is_out_of_descriptors(cause: &io::Error) -> bool {
    let errors = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE];
    errors.iter().any(|error| cause.raw_os_error() == Some(error.raw_os_error()))
}

/// The value of the first of these header fields that is there.
fn named(headers: &HeaderMap, names: &[HeaderName]) -> Option<Vec<u8>> {
    let value = names.iter().find_map(|name| headers.get(name))?;
    Some(value.as_bytes().to_vec())
}

/// Begins to speak HTTP on a connection to the server.
async fn spoken<IO>(io: IO, is_http2: bool) -> Result<Link, String>
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let io = TokioIo::new(io);
    if is_http2 {
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .handshake(io)
            .await
            .map_err(|cause| cause.to_string())?;
        tokio::spawn(connection);
        return Ok(Link::Http2(sender));
    }
    let (sender, connection) = http1::Builder::new()
        .preserve_header_case(true)
        .handshake(io)
        .await
        .map_err(|cause| cause.to_string())?;
    tokio::spawn(connection.with_upgrades());
    Ok(Link::Http1(sender))
}

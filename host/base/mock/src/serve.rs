//! The HTTP side of the mock engine: connections, routes, status codes and headers.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::answer::Answer;
use super::ask::types::{Ask, Job, PredictionRequest, Refusal, Route, TritonForm};
use super::control::{Mounts, inform, inform_call};
use super::dialect::Content;
use super::engine::Engine;
use super::fault::{Breakdown, Mishaps, web_page_everywhere};
use super::pace::{Pace, Turn};
use super::record::Record;
use super::reply::{Reply, Whole};
use super::response::{JSON, authorized, failed_call, page, response, unauthorized};
use super::script::Headers;
use super::stream::{Fate, ReplyBody, Steps, Timed};
use super::transcript::{ReplyFacts, Transcript};
use super::truth::lock;
use super::wire::prediction::Prediction;
use super::{grpc, prediction, realtime, triton, wire};
use model::duration::{self, Span};

/// Connections that may wait to be accepted. Linux allows at most `net.core.somaxconn`,
/// 4096 by default; further connections are a second late.
const BACKLOG: u32 = 16_384;

/// The most connections at a time; further ones wait to be accepted.
const CONNECTIONS: usize = 65_536;

const BODY_LIMIT: usize = 256 << 20;

/// Memory that a body of unstated length takes at first from the memory for bodies, in bytes.
const UNSTATED: usize = 1 << 20;

#[derive(Debug, thiserror::Error)]
#[error("no reply is given")]
struct HangUp;

/// Listens on an address with room for thousands of clients at once; port 0 is any free one.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves all clients of a listener until `shutdown` completes; connections are dropped then.
pub async fn serve(listener: TcpListener, engine: Arc<Engine>, shutdown: impl Future<Output = ()>) {
    accept(listener, None, Engines::One(engine), shutdown).await;
}

/// As [`serve`], with an engine below each base path.
pub async fn serve_mounts(
    listener: TcpListener,
    mounts: Arc<Mounts>,
    shutdown: impl Future<Output = ()>,
) {
    accept(listener, None, Engines::Many(mounts), shutdown).await;
}

/// As [`serve`], over TLS.
pub async fn serve_tls(
    listener: TcpListener,
    tls: Tls,
    engine: Arc<Engine>,
    shutdown: impl Future<Output = ()>,
) {
    accept(listener, Some(tls), Engines::One(engine), shutdown).await;
}

#[derive(Clone)]
enum Engines {
    One(Arc<Engine>),
    Many(Arc<Mounts>),
}

async fn accept(
    listener: TcpListener,
    tls: Option<Tls>,
    engines: Engines,
    shutdown: impl Future<Output = ()>,
) {
    let mut connections = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    let full = |open: usize| open >= CONNECTIONS;
    loop {
        tokio::select! {
            () = &mut shutdown => return,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if !full(connections.len()) => match accepted {
                Ok((stream, _)) => {
                    // Else small events wait for acknowledgements; a refusing socket fails anyway.
                    let _ = stream.set_nodelay(true);
                    let fate = Arc::new(Fate::default());
                    fate.secure.store(tls.is_some(), Relaxed);
                    let socket = Socket { stream, fate: Arc::clone(&fate) };
                    let (tls, engines) = (tls.clone(), engines.clone());
                    connections.spawn(async move {
                        match tls {
                            None => converse(socket, engines, fate).await,
                            // Ignore a client that does not agree on TLS.
                            Some(tls) => if let Ok(stream) = tls.accept(socket).await {
                                converse(stream, engines, fate).await;
                            },
                        }
                    });
                }
                // Out of descriptors, or a client that left before it was accepted: try again.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
        }
    }
}

/// Serves one client over any stream of bytes until either side closes it.
/// A cut with `reset` is an orderly close here: only TCP has resets.
pub async fn serve_connection<IO>(io: IO, engine: Arc<Engine>)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    converse(io, Engines::One(engine), Arc::default()).await;
}

/// Speaks HTTP/2 with a client that begins with its preface, and HTTP/1.1 with all others.
async fn converse<IO>(io: IO, engines: Engines, fate: Arc<Fate>)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let of_requests = Arc::clone(&fate);
    let service =
        service_fn(move |request| respond(engines.clone(), request, Arc::clone(&of_requests)));
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http1().header_read_timeout(None);
    let mut connection =
        std::pin::pin!(http.serve_connection_with_upgrades(TokioIo::new(io), service));
    // Ends in an error when a client leaves or the script cuts a reply: both are in the truth.
    tokio::select! {
        biased;
        _ = connection.as_mut() => return,
        () = fate.goodbye.notified() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

async fn respond(
    engines: Engines,
    mut request: Request<Incoming>,
    fate: Arc<Fate>,
) -> Result<Response<ReplyBody>, HangUp> {
    let engine = match &engines {
        Engines::One(engine) => Arc::clone(engine),
        Engines::Many(mounts) => match mounts.find(&mut request) {
            Ok(engine) => engine,
            Err(page) => return Ok(*page),
        },
    };
    if realtime::is_handshake(&request) {
        return realtime::open(engine, request, fate).await.ok_or(HangUp);
    }
    match route(&engine, &request, &fate) {
        Some(route) => answer(engine, route, request, fate).await,
        None if grpc::is_call(&request) && web_page_everywhere(&engine.script.faults).is_none() => {
            Ok(inform_call(request.uri().path()))
        }
        None => Ok(inform(&engine, &request)),
    }
}

/// The route for a text request, and true if it needs the script's key. The route is one of the
/// script's, or else a built-in one.
fn route<B>(engine: &Engine, request: &Request<B>, fate: &Fate) -> Option<(Route, bool)> {
    let (method, path) = (request.method(), request.uri().path());
    let scripted =
        (engine.script.routes.iter()).find(|route| route.method == *method && route.path == path);
    if let Some(scripted) = scripted {
        let Content::Answers(dialect) = &scripted.content else { return None };
        return Some((Route::Scripted(Arc::clone(dialect)), scripted.asks_for_key));
    }
    let scheme = if fate.secure.load(Relaxed) { "https" } else { "http" };
    if let Some(prediction) = prediction::request(&engine.predictions, request, scheme) {
        // As at Replicate, the URL of a stream needs no key.
        let asks_for_key = !matches!(prediction, PredictionRequest::Stream(_));
        return Some((Route::Prediction(prediction), asks_for_key));
    }
    if path == triton::STREAM && grpc::is_call(request) {
        return Some((Route::Triton(TritonForm::default()), true));
    }
    let route = Route::built_in(path, engine.script.generate);
    Some((route.filter(|_| *method == Method::POST)?, true))
}

/// Reads a body, and holds its share of the memory of all bodies. A body of unstated length takes a
/// little, and more as it grows, so that no other waits for it; without memory, it is given up.
/// Bytes after the end of the request are not read, because a call of gRPC may last until its
/// answer.
async fn read_body(
    bodies: &Arc<Semaphore>,
    body: Incoming,
    is_enough: fn(&[u8]) -> bool,
) -> Option<(Bytes, OwnedSemaphorePermit)> {
    let kibibytes = |bytes: usize| u32::try_from(bytes.div_ceil(1 << 10)).unwrap_or(u32::MAX);
    let stated = body.size_hint().upper();
    let stated = stated.map(|stated| usize::try_from(stated).unwrap_or(usize::MAX).min(BODY_LIMIT));
    let mut held = stated.unwrap_or(UNSTATED);
    let mut room = Arc::clone(bodies).acquire_many_owned(kibibytes(held)).await.ok()?;
    let mut body = Limited::new(body, BODY_LIMIT);
    let mut read = BytesMut::with_capacity(stated.unwrap_or(0));
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.ok()?.into_data() else { continue };
        let whole = read.len() + data.len();
        if whole > held {
            let more = kibibytes(whole.max(2 * held).min(BODY_LIMIT) - held);
            room.merge(Arc::clone(bodies).try_acquire_many_owned(more).ok()?);
            held += (more as usize) << 10;
        }
        read.extend_from_slice(&data);
        if is_enough(&read) {
            break;
        }
    }
    Some((read.freeze(), room))
}

/// Reads a request for text, and holds the reply back if the script delays it.
async fn answer(
    engine: Arc<Engine>,
    (route, asks_for_key): (Route, bool),
    request: Request<Incoming>,
    fate: Arc<Fate>,
) -> Result<Response<ReplyBody>, HangUp> {
    let (parts, body) = request.into_parts();
    let is_enough = match route {
        Route::Triton(_) => grpc::has_message,
        _ => |_: &[u8]| false,
    };
    let read = read_body(&engine.bodies, body, is_enough).await;
    let (body, room) = read.ok_or(HangUp)?;
    let received = Instant::now();
    engine.has_begun(received);
    let mut record = Record::new(Arc::clone(&engine), route.path(), received);
    record.carried(&parts.headers);
    record.keep_body(&body);
    let mishaps = Mishaps::new(&engine.script.faults, record.number());
    if mishaps.goodbye {
        fate.goodbye.notify_one();
        // The reply's head tells the client, so the connection must know it first.
        tokio::task::yield_now().await;
    }
    let not_before = received + mishaps.slow_headers;
    let reply = if !asks_for_key || authorized(&engine, &parts.headers) {
        let media_type = parts.headers.get(CONTENT_TYPE);
        let media_type =
            media_type.and_then(|media_type| media_type.to_str().ok()).unwrap_or_default();
        let request = Complete {
            route,
            content_type: media_type.to_owned(),
            body: (body, room),
            received,
            record,
            mishaps,
            fate,
        };
        reply_to(&engine, request).await
    } else if let Route::Triton(_) = route {
        Ok(refuse(record, &route, &Refusal::unauthorized()))
    } else {
        record.refused(Some(401));
        Ok(unauthorized())
    };
    tokio::time::sleep_until(not_before).await;
    reply
}

struct Complete {
    route: Route,
    content_type: String,
    body: (Bytes, OwnedSemaphorePermit),
    received: Instant,
    record: Record,
    mishaps: Mishaps,
    fate: Arc<Fate>,
}

async fn reply_to(engine: &Engine, request: Complete) -> Result<Response<ReplyBody>, HangUp> {
    let Complete { route, content_type: of_body, body, received, mut record, mishaps, fate } =
        request;
    let script = &engine.script;
    if let Some(reset) = mishaps.hang_up {
        fate.reset.store(reset, Relaxed);
        record.refused(None);
        return Err(HangUp);
    }
    if let Some(status) = mishaps.html {
        record.refused(Some(status));
        return Ok(page(status));
    }
    if let Some((status, retry_after)) = mishaps.http_error {
        let mut reply = refuse(record, &route, &Refusal::internal(status));
        if let Some(wait) = retry_after {
            let seconds = HeaderValue::from(wait.as_secs());
            reply.headers_mut().insert(RETRY_AFTER, seconds);
        }
        return Ok(reply);
    }
    let ask = Ask::read_as(route.clone(), &of_body, &body.0);
    let ask = ask.and_then(|ask| ask.check(script).map(|()| ask));
    let ask = match ask {
        Ok(ask) => ask,
        Err(refusal) => return Ok(refuse(record, &route, &refusal)),
    };
    drop(body);
    // The request decides the form of the reply.
    let route = ask.route.clone();

    let answer = Answer::new(script, &ask, mishaps.stop_early);
    let request = match &route {
        Route::Prediction(prediction) => {
            let request = (prediction, &ask, &answer);
            match predicted(engine, request, received, record, &mishaps, &fate) {
                Ok(reply) => return Ok(reply),
                Err(left) => {
                    record = *left;
                    prediction.job()
                }
            }
        }
        _ => None,
    };
    // The request that created a prediction decides its pace, and its time counts from then.
    let of_job = request.filter(|_| engine.batch.is_none());
    let number = of_job.map_or(record.number(), |job| job.number);
    let received = request.map_or(received, |job| job.received);
    let Some(turn) = Turn::new(engine, number, received, &ask, &answer) else {
        return Ok(refuse(record, &route, &Refusal::overloaded()));
    };
    let spoken = matches!(route, Route::Completions | Route::Chat) && ask.stream;
    let transcript = script.transcript.as_ref().filter(|_| spoken);
    let tokens = transcript.map_or(answer.tokens, Transcript::tokens);
    record.admitted(ask.prompt_tokens, tokens, answer.finish);
    if script.prefix_cache {
        record.looked_up(ask.prompt_tokens, turn.cached_tokens);
    }
    let head = engine.head(record.number(), turn.cached_tokens);
    let wire = wire::wire(script, &ask, &head);
    let split = mishaps.split.map(|bytes| bytes.get());
    // The end marker of a call is its status.
    let marks_end =
        !matches!(mishaps.breakdown, Some((_, Breakdown::NoDone | Breakdown::Close { .. })));
    let is_call = matches!(route, Route::Triton(_));
    let trailers = (is_call && marks_end).then(|| grpc::status(grpc::OK, ""));
    let content_type = match &ask.sound {
        Some(sound) if sound.is_text(script) && !ask.stream => {
            HeaderValue::from_static("text/plain; charset=utf-8")
        }
        _ => content_type(&route, ask.stream),
    };
    let steps = if ask.stream {
        let chat = route == Route::Chat;
        let reply = Reply::new(script, route, answer, wire, mishaps);
        let reply = match transcript {
            None => reply,
            Some(transcript) => reply.with_transcript(
                transcript,
                &ReplyFacts {
                    id: head.id(),
                    created: head.created,
                    model: ask.model.as_deref().unwrap_or(head.model),
                    prompt_tokens: ask.prompt_tokens,
                    chat,
                },
            ),
        };
        Steps::Streamed(Box::new(reply))
    } else {
        Steps::whole(Whole { route, answer, wire, mishaps })
    };
    let mut timed = Timed::new(steps, received, turn, split, record, fate);
    timed.trailers = trailers;
    if !ask.stream || script.headers == Headers::FirstToken {
        timed.until_first_step().await;
    }
    timed.record().status(200);
    let body = ReplyBody::Timed(Box::new(timed));
    Ok(response(200, Some(content_type), body))
}

/// Creates a prediction, or replies with the state of an unfinished one. Returns the record if the
/// answer is requested and complete.
fn predicted(
    engine: &Engine,
    (prediction, ask, answer): (&PredictionRequest, &Ask, &Answer),
    received: Instant,
    mut record: Record,
    mishaps: &Mishaps,
    fate: &Arc<Fate>,
) -> Result<Response<ReplyBody>, Box<Record>> {
    let number = record.number();
    let head = engine.head(number, 0);
    let (job, status, state) = match prediction {
        PredictionRequest::Create(_) if engine.batch.is_some() && !ask.stream => {
            let message = "the steps of a batch are known to streams alone: ask for `stream`";
            let refusal = Refusal::bad(message, Some("stream"));
            return Ok(refuse(record, &ask.route, &refusal));
        }
        PredictionRequest::Create(origin) => {
            let job = Arc::new(Job {
                id: head.id(),
                origin: origin.clone(),
                number,
                received,
                ask: ask.clone(),
            });
            lock(&engine.predictions).keep(Arc::clone(&job));
            (job, 201, "starting")
        }
        PredictionRequest::Look(job) => {
            match status_of(engine, job, answer.tokens.saturating_sub(1)) {
                Some(status) => (Arc::clone(job), 200, status),
                None => return Err(Box::new(record)),
            }
        }
        PredictionRequest::Stream(_) | PredictionRequest::Unknown => return Err(Box::new(record)),
    };
    let wire = Prediction::new(&job, &head);
    let breaks = mishaps.breakdown.map(|(_, how)| how);
    let state = match breaks {
        Some(Breakdown::InBandError) => {
            wire.state("failed", None, Some(&Refusal::internal(500).message))
        }
        _ => wire.state(state, None, None),
    };
    let steps = Steps::at_once(state.to_string().into_bytes(), breaks);
    let split = mishaps.split.map(|bytes| bytes.get());
    record.status(status);
    let turn = Turn::at_once(engine, number);
    let timed = Timed::new(steps, received, turn, split, record, Arc::clone(fate));
    let body = ReplyBody::Timed(Box::new(timed));
    Ok(response(status, Some(HeaderValue::from_static(JSON)), body))
}

/// A prediction's status: `starting` before its first token, `processing` before its token number
/// `last`; absent after.
fn status_of(engine: &Engine, job: &Job, last: u32) -> Option<&'static str> {
    let pace = Pace::new(&engine.script, job.number);
    let now = Instant::now();
    let first = job.received + pace.ttft;
    if now < engine.unpaused(first) {
        return Some("starting");
    }
    (now < engine.unpaused(first + pace.itl * last)).then_some("processing")
}

fn content_type(route: &Route, stream: bool) -> HeaderValue {
    match (route, stream) {
        (Route::Triton(_), _) => HeaderValue::from_static(grpc::CONTENT_TYPE),
        (Route::Scripted(dialect), true) => dialect.content_type.clone(),
        (Route::Scripted(dialect), false) => dialect.whole_content_type.clone(),
        (Route::Speech(form), stream) if form.is_raw || !stream => {
            HeaderValue::from_static(if form.is_wav { "audio/wav" } else { "audio/pcm" })
        }
        (_, true) => HeaderValue::from_static("text/event-stream; charset=utf-8"),
        (_, false) => HeaderValue::from_static(JSON),
    }
}

fn refuse(mut record: Record, route: &Route, refusal: &Refusal) -> Response<ReplyBody> {
    if let Route::Triton(_) = route {
        // The status of HTTP does not show the error.
        record.refused(Some(200));
        return failed_call(grpc::code(refusal.status), &refusal.message);
    }
    record.refused(Some(refusal.status));
    let content_type = match route {
        Route::Speech(_) => HeaderValue::from_static(JSON),
        route => content_type(route, false),
    };
    let body = ReplyBody::Ready(Some(wire::error_body(route, refusal).into()));
    response(refusal.status, Some(content_type), body)
}

struct Socket {
    stream: TcpStream,
    fate: Arc<Fate>,
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.fate.reset.load(Relaxed) {
            // Closing without lingering sends a reset; if it cannot be set, the close is orderly.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The longest time that a script may set: a deadline must fit every clock.
pub(super) const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

pub(super) fn possible_number(number: f64, most: f64) -> Result<(), String> {
    if !(0.0..=most).contains(&number) {
        return Err(format!("expected a number from 0 to {most}, found {number}"));
    }
    Ok(())
}

pub(super) fn possible_span(span: Span) -> Result<(), String> {
    if span.0 > LONGEST {
        return Err(format!("at most {} is possible", duration::format(LONGEST)));
    }
    Ok(())
}

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

//! `/v1/realtime`, over a WebSocket: vLLM's transcription of a sound, and OpenAI's answers to a
//! conversation. A client's `session.update` shows its dialect.
//!
//! The answer begins when the client's input is complete: after the last
//! `input_audio_buffer.commit` of vLLM's, and after `response.create` of OpenAI's. From there it
//! has the same instants and the same faults as other answers. A cut ends the connection, `close`
//! closes the WebSocket with a code, and a stall is silence; `split` cuts messages into frames of
//! the given size, and `ping` sends a ping before every message. `events` has the events, and
//! `frames` the protocol.

mod events;
mod frames;

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::header::{CONNECTION, HeaderMap, HeaderValue, RETRY_AFTER, UPGRADE};
use hyper::header::{SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use sha1::{Digest as _, Sha1};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use super::answer::Answer;
use super::engine::Engine;
use super::fault::{Breakdown, Mishaps};
use super::pace::Turn;
use super::record::Record;
use super::response::{authorized, page, ready, response, unauthorized};
use super::stream::{Fate, ReplyBody};
use events::{ClientInput, Events};
use frames::{Message, Reader, Writer};

pub(super) const PATH: &str = "/v1/realtime";

/// Time for which a client may close after its answer.
const LEAVE: Duration = Duration::from_secs(5);

/// Appended to a client's key before it is hashed (RFC 6455, 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The way a conversation ended, if not with a whole answer.
enum Ending {
    Cut {
        reset: bool,
    },
    /// The WebSocket is closed with this code and reason.
    Close(u16, &'static str),
    Left,
}

pub(super) fn is_handshake<B>(request: &Request<B>) -> bool {
    let upgrade = request.headers().get(UPGRADE);
    request.method() == Method::GET
        && request.uri().path() == PATH
        && upgrade.is_some_and(|to| to.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// Answers a handshake, and converses once the connection has become a WebSocket; nothing if the
/// connection is to be closed without a reply.
pub(super) async fn open<B>(
    engine: Arc<Engine>,
    mut request: Request<B>,
    fate: Arc<Fate>,
) -> Option<Response<ReplyBody>>
where
    B: Send + 'static,
{
    let received = Instant::now();
    engine.has_begun(received);
    let mut record = Record::new(Arc::clone(&engine), PATH.into(), received);
    record.carried(request.headers());
    let mishaps = Mishaps::new(&engine.script.faults, record.number());
    tokio::time::sleep_until(received + mishaps.slow_headers).await;
    if let Some(reset) = mishaps.hang_up {
        fate.reset.store(reset, Relaxed);
        record.refused(None);
        return None;
    }
    if let Some(refused) = refusal(&engine, request.headers(), &mishaps, &mut record) {
        return Some(refused);
    }
    let Some(key) = request.headers().get(SEC_WEBSOCKET_KEY) else {
        record.refused(Some(400));
        let what = "a handshake without Sec-WebSocket-Key\n";
        return Some(ready(400, "text/plain; charset=utf-8", what));
    };
    let hash = Sha1::new().chain_update(key.as_bytes()).chain_update(GUID);
    let accept = BASE64_STANDARD.encode(hash.finalize());
    let mut reply = response(101, None, ReplyBody::Ready(None));
    let headers = reply.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(accept) = HeaderValue::try_from(accept) {
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    }
    record.status(101);
    let upgraded = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        // A client that leaves during the handshake is in the truth as one that went away.
        if let Ok(io) = upgraded.await {
            converse(&engine, TokioIo::new(io), record, mishaps, &fate).await;
        }
    });
    Some(reply)
}

/// The reply that the script has instead of a WebSocket.
fn refusal(
    engine: &Engine,
    headers: &HeaderMap,
    mishaps: &Mishaps,
    record: &mut Record,
) -> Option<Response<ReplyBody>> {
    if let Some(status) = mishaps.html {
        record.refused(Some(status));
        return Some(page(status));
    }
    if let Some((status, retry_after)) = mishaps.http_error {
        record.refused(Some(status));
        let what = "the script refuses this handshake\n";
        let mut reply = ready(status, "text/plain; charset=utf-8", what);
        if let Some(wait) = retry_after {
            let seconds = HeaderValue::from(wait.as_secs());
            reply.headers_mut().insert(RETRY_AFTER, seconds);
        }
        return Some(reply);
    }
    if !authorized(engine, headers) {
        record.refused(Some(401));
        return Some(unauthorized());
    }
    None
}

async fn converse<Io>(engine: &Engine, io: Io, mut record: Record, mishaps: Mishaps, fate: &Fate)
where
    Io: AsyncRead + AsyncWrite,
{
    let (reader, writer) = tokio::io::split(io);
    let mut reader = Reader::new(reader);
    let split = mishaps.split.map_or(usize::MAX, |bytes| bytes.get());
    let mut writer = Writer::new(writer, split, mishaps.ping);
    let ended = dialogue(engine, &mut reader, &mut writer, &mut record, &mishaps).await;
    if !matches!(ended, Err(Ending::Left)) {
        record.over(ended.is_ok());
    }
    drop(record);
    match ended {
        Err(Ending::Cut { reset }) => return fate.reset.store(reset, Relaxed),
        Err(Ending::Close(code, reason)) => {
            let _ = writer.close(code, reason).await;
        }
        Ok(()) | Err(Ending::Left) => {}
    }
    // Further messages of the client, until it closes.
    let _ = tokio::time::timeout(LEAVE, async {
        while let Ok(Some(_)) = reader.message(&mut writer).await {}
        writer.close(1000, "").await
    })
    .await;
}

async fn dialogue(
    engine: &Engine,
    reader: &mut Reader<impl AsyncRead + Unpin>,
    writer: &mut Writer<impl AsyncWrite + Unpin>,
    record: &mut Record,
    mishaps: &Mishaps,
) -> Result<(), Ending> {
    let left = |_| Ending::Left;
    writer.text(&events::created(record.number()).to_string()).await.map_err(left)?;
    let mut input = ClientInput::default();
    while !input.is_complete() {
        let message = reader.message(writer).await.map_err(left)?;
        let Some(message) = message else { return Err(Ending::Left) };
        let Message::Text(text) = message else {
            return Err(Ending::Close(1003, "only text is understood"));
        };
        match input.take(&text) {
            Ok(replies) => {
                for reply in replies {
                    writer.text(&reply.to_string()).await.map_err(left)?;
                }
            }
            Err(wrong) => {
                record.refused(None);
                let error = events::error(input.dialect(), &wrong);
                return writer.text(&error.to_string()).await.map_err(left);
            }
        }
    }
    let received = Instant::now();
    record.complete(received, input.events());
    let ask = input.ask();
    if let Err(refusal) = ask.check(&engine.script) {
        record.refused(None);
        let error = events::error(input.dialect(), &refusal.message);
        return writer.text(&error.to_string()).await.map_err(left);
    }
    let answer = Answer::new(&engine.script, &ask, mishaps.stop_early);
    let Some(turn) = Turn::new(engine, record.number(), received, &ask, &answer) else {
        record.refused(None);
        let error = events::error(input.dialect(), "The request queue is full.");
        return writer.text(&error.to_string()).await.map_err(left);
    };
    record.admitted(ask.prompt_tokens, answer.tokens, answer.finish);
    let events = Events::new(&input, record.number(), ask.prompt_tokens);
    let each = engine.script.tokens_per_chunk.get();
    let answered = answers(writer, record, (&events, &answer), (turn, received), mishaps, each);
    tokio::select! {
        biased;
        ended = answered => ended,
        () = reader.until_closed() => Err(Ending::Left),
    }
}

/// Sends an answer, each piece when it is due, up to a fault of the script.
async fn answers(
    writer: &mut Writer<impl AsyncWrite + Unpin>,
    record: &mut Record,
    (events, answer): (&Events, &Answer),
    (mut turn, received): (Turn, Instant),
    mishaps: &Mishaps,
    each: u32,
) -> Result<(), Ending> {
    let start = poll_fn(|cx| turn.slot.poll_start(received, cx)).await;
    let start = record.unpaused(start);
    tokio::time::sleep_until(start).await;
    record.started(start);
    turn.clock.begun(start - received);
    if let Some(opening) = events.opening() {
        send(writer, record, &opening, 0).await?;
    }
    let (mut stall, mut late, mut sent) = (mishaps.stall, Duration::ZERO, 0);
    while sent < answer.tokens {
        if let Some((_, lasting)) = stall.take_if(|(after, _)| sent >= *after) {
            match lasting {
                Some(span) => late += span,
                None => std::future::pending().await,
            }
        }
        let breaks = mishaps.breakdown.filter(|(after, _)| sent >= *after);
        let step = if sent == 0 { 1 } else { each };
        let end = sent.saturating_add(step).min(answer.tokens);
        let inside = |at: Option<u32>| at.filter(|at| sent < *at && *at < end);
        let marks = [mishaps.breakdown.map(|(after, _)| after), stall.map(|(after, _)| after)];
        let end = marks.into_iter().filter_map(inside).min().unwrap_or(end);
        let span = poll_fn(|cx| turn.clock.poll_span(end - 1, cx)).await;
        tokio::time::sleep_until(record.unpaused(start + span + late)).await;
        match breaks.map(|(_, how)| how) {
            None => {}
            Some(Breakdown::InBandError) => {
                let error = events::error(events.dialect, "EngineCore encountered an issue.");
                send(writer, record, &error, 0).await?;
                return Err(Ending::Close(1000, ""));
            }
            Some(Breakdown::Cut { reset }) => return Err(Ending::Cut { reset }),
            Some(Breakdown::NoDone) => return Err(Ending::Close(1000, "")),
            Some(Breakdown::Close { code }) => {
                return Err(Ending::Close(code, "the script closes here"));
            }
        }
        let pieces = events.piece(answer.piece(sent, end), end - sent);
        let mut tokens = end - sent;
        for piece in pieces {
            send(writer, record, &piece, std::mem::take(&mut tokens)).await?;
        }
        sent = end;
    }
    record.answered();
    for last in events.done(answer) {
        send(writer, record, &last, 0).await?;
    }
    Ok(())
}

/// Sends an event of an answer, with this number of tokens.
async fn send(
    writer: &mut Writer<impl AsyncWrite + Unpin>,
    record: &mut Record,
    event: &Value,
    tokens: u32,
) -> Result<(), Ending> {
    let text = event.to_string();
    writer.text(&text).await.map_err(|_| Ending::Left)?;
    record.sent(Instant::now(), tokens, text.as_bytes());
    Ok(())
}

//! The contract's types in the format of a case's files, all in one place, so that a change of the
//! contract changes only this module. Inputs are in `input`, expectations here.

mod input;

pub use input::{ASIDES, ExchangeFile, HeadFile, SampleFile, SettingsFile};

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::reply::ending_of;
use crate::backend::{
    Call, Dependency, Meaning, Media, Message, Output, Part, Point, Prepared, Prompt, Reading,
    Reason, Refusal, Request, Sample, ServedModel, ServerMetric, SocketMessage, Turn,
};
use crate::dataset::{Remark, Treatment};
use crate::{PluginError, chat};
use model::hex;

/// A carriage return in a case's file. Editors and git change the ends of lines there, and a form's
/// lines end in both characters.
const RETURN: &str = "␍";

/// `request.http`: method and path, header fields, an empty line, the body. A message of gRPC
/// stands there as [hexadecimal digits](dump).
pub fn request(request: &Request) -> String {
    let mut text = format!("{} {}\n", request.method, request.path);
    for (name, value) in &request.headers {
        text += &format!("{name}: {value}\n");
    }
    let is_grpc = (request.headers.iter()).any(|(_, value)| value.starts_with("application/grpc"));
    if is_grpc {
        text += &format!("\n{}", dump(&request.body));
    } else if !request.body.is_empty() {
        let body = String::from_utf8_lossy(&request.body);
        text += &format!("\n{}\n", body.replace('\r', RETURN));
    }
    text
}

/// `request.http` of a sample's call: the request, or the first of several; of a WebSocket the
/// handshake, and below it the messages, one per line.
pub fn call(call: &Call) -> String {
    let Call::Socket(socket) = call else { return request(&call.as_request()) };
    let mut text = format!("WEBSOCKET {}\n", socket.path);
    for (name, value) in &socket.headers {
        text += &format!("{name}: {value}\n");
    }
    for outgoing in &socket.messages {
        let message = match &outgoing.message {
            SocketMessage::Text(text) => text.replace('\r', RETURN),
            SocketMessage::Binary(bytes) => dump(bytes),
        };
        let hold = if outgoing.hold { ", held" } else { "" };
        text += &format!("\n+{} ns{hold}\n{message}\n", outgoing.delay);
    }
    text
}

/// Bytes as lines of sixteen: hexadecimal digits, and ASCII with a full stop for other bytes.
fn dump(bytes: &[u8]) -> String {
    let mut text = String::new();
    for line in bytes.chunks(16) {
        let digits: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        let shown = |byte: &u8| match byte {
            b' '..=b'~' => char::from(*byte),
            _ => '.',
        };
        let letters: String = line.iter().map(shown).collect();
        text += &format!("{:<47}  {letters}\n", digits.join(" "));
    }
    text
}

/// `events.json`: a list, one event per line. Without frames, consecutive pieces of one kind are
/// merged: for framings whose frame boundaries are arbitrary.
pub fn events(events: &[(usize, Meaning)], frames: bool) -> String {
    list(entries(events, frames, None).into_iter())
}

/// The entries of `events.json`; of an exchange of several requests, with the number of the reply.
pub fn entries(events: &[(usize, Meaning)], frames: bool, step: Option<usize>) -> Vec<Value> {
    let shown = events.iter().map(|(frame, meaning)| {
        let mut shown = Map::new();
        if let Some(step) = step {
            shown.insert("reply".to_owned(), step.into());
        }
        if frames {
            shown.insert("frame".to_owned(), (*frame).into());
        }
        let (kind, fields) = event(meaning);
        shown.insert("kind".to_owned(), kind.into());
        let fields = fields.into_iter();
        shown.extend(fields.filter_map(|(key, value)| Some((key.to_owned(), value?))));
        shown
    });
    let mut joined: Vec<Map<String, Value>> = Vec::new();
    for event in shown {
        match joined.last_mut() {
            Some(last)
                if !frames
                    && is_piece(last)
                    && last["kind"] == event["kind"]
                    && last.get("choice") == event.get("choice") =>
            {
                join(last, &event);
            }
            _ => joined.push(event),
        }
    }
    for event in &mut joined {
        if let Some(duration) = event.get_mut("duration") {
            *duration = nanoseconds(duration.as_f64().unwrap_or_default()).into();
        }
    }
    joined.into_iter().map(Value::Object).collect()
}

fn is_piece(event: &Map<String, Value>) -> bool {
    ["text", "reasoning", "tool-call", "audio"].iter().any(|kind| event["kind"] == *kind)
}

fn join(last: &mut Map<String, Value>, next: &Map<String, Value>) {
    if last["kind"] == "audio" {
        let duration = |event: &Map<String, Value>| event.get("duration")?.as_f64();
        match duration(last).zip(duration(next)) {
            Some((first, second)) => last["duration"] = (first + second).into(),
            None => _ = last.remove("duration"),
        }
        return;
    }
    let text = |event: &Map<String, Value>| event["text"].as_str().unwrap_or_default().to_owned();
    let tokens = |event: &Map<String, Value>| event.get("tokens").and_then(Value::as_u64);
    let sum = match (tokens(last), tokens(next)) {
        (None, None) => None,
        (first, second) => Some(first.unwrap_or_default() + second.unwrap_or_default()),
    };
    last["text"] = (text(last) + &text(next)).into();
    if let Some(sum) = sum {
        last.insert("tokens".to_owned(), sum.into());
    }
}

/// The kind of an event and its fields, some of them absent.
fn event(meaning: &Meaning) -> (&'static str, Vec<(&'static str, Option<Value>)>) {
    /// A number that is there unless it is 0.
    fn above_zero<N: Copy + Default + PartialEq + Into<Value>>(number: N) -> Option<Value> {
        (number != N::default()).then(|| number.into())
    }
    match meaning {
        Meaning::Opened => ("opened", Vec::new()),
        Meaning::Text(piece) | Meaning::Reasoning(piece) | Meaning::ToolCall(piece) => {
            let Output { text, tokens, choice } = piece;
            let kind = match meaning {
                Meaning::Text(_) => "text",
                Meaning::Reasoning(_) => "reasoning",
                _ => "tool-call",
            };
            let tokens = tokens.map(Value::from);
            let text = Some(text.as_str().into());
            (kind, vec![("text", text), ("tokens", tokens), ("choice", above_zero(*choice))])
        }
        Meaning::Audio(sound) => {
            let duration = sound.duration.map(Value::from);
            ("audio", vec![("duration", duration), ("choice", above_zero(sound.choice))])
        }
        Meaning::Usage(usage) => {
            let counts = [
                ("input-tokens", usage.input_tokens),
                ("cached-input-tokens", usage.cached_input_tokens),
                ("output-tokens", usage.output_tokens),
                ("reasoning-tokens", usage.reasoning_tokens),
                ("draft-tokens", usage.draft_tokens),
                ("accepted-draft-tokens", usage.accepted_draft_tokens),
                ("input-image-tokens", usage.input_image_tokens),
                ("input-video-tokens", usage.input_video_tokens),
                ("input-audio-tokens", usage.input_audio_tokens),
                ("output-audio-tokens", usage.output_audio_tokens),
            ];
            ("usage", counts.map(|(key, count)| (key, count.map(Value::from))).into())
        }
        Meaning::Count((name, count)) => {
            let name = Some(name.as_str().into());
            ("count", vec![("name", name), ("count", Some((*count).into()))])
        }
        Meaning::CleanUp(cleaning) => {
            ("clean-up", vec![("request", Some(request(cleaning).into()))])
        }
        Meaning::Timings(timings) => {
            let parts = [
                ("queue", timings.queue),
                ("prefill", timings.prefill),
                ("first-token", timings.first_token),
                ("decode", timings.decode),
            ];
            let rounded = |part: Option<f64>| part.map(|part| json!(nanoseconds(part)));
            ("timings", parts.map(|(key, part)| (key, rounded(part))).into())
        }
        Meaning::Speculation(speculation) => {
            let list = &speculation.steps_by_accepted;
            let list = (!list.is_empty()).then(|| json!(list));
            let steps = Some(speculation.steps.into());
            ("speculation", vec![("steps", steps), ("steps-by-accepted", list)])
        }
        Meaning::Finish(reason) => ("finish", vec![("text", Some(reason.as_str().into()))]),
        Meaning::Failure(refusal) => {
            let message = Some(refusal.message.as_str().into());
            let reason = Some(reason(refusal.reason).into());
            ("failure", vec![("reason", reason), ("message", message)])
        }
        Meaning::Vector(vector) => {
            let values = Some(json!(vector.values));
            ("vector", vec![("index", Some(vector.index.into())), ("values", values)])
        }
        Meaning::Order(order) => {
            let ranked = order.iter();
            let ranked = ranked.map(|text| json!({ "index": text.index, "score": text.score }));
            ("order", vec![("ranked", Some(ranked.collect()))])
        }
        Meaning::Carry(carried) => {
            let key = if str::from_utf8(carried).is_ok() { "text" } else { "bytes" };
            ("carry", vec![(key, Some(bytes(carried)))])
        }
        Meaning::Next(step) => (
            "next",
            vec![
                ("request", Some(request(&step.request).into())),
                ("framing", Some(ending_of(step.framing.into()).0.into())),
                ("delay", above_zero(step.delay)),
                ("accepted", (!step.accepted.is_empty()).then(|| json!(step.accepted))),
                ("context", (!step.context.is_empty()).then(|| bytes(&step.context))),
            ],
        ),
        Meaning::Send(outgoing) => {
            let hold = outgoing.hold.then_some(true.into());
            let message = Some(sent(&outgoing.message));
            let delay = above_zero(outgoing.delay);
            ("send", vec![("message", message), ("delay", delay), ("hold", hold)])
        }
        Meaning::Proceed => ("proceed", Vec::new()),
        Meaning::Further((name, value)) => {
            let name = Some(name.as_str().into());
            ("further", vec![("name", name), ("value", Some(any(value)))])
        }
        Meaning::EndsWithBody => ("ends-with-body", Vec::new()),
        Meaning::End => ("end", Vec::new()),
    }
}

/// Bytes as text if they are some, else as numbers.
fn bytes(bytes: &[u8]) -> Value {
    match str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => json!(bytes),
    }
}

/// A message of a WebSocket: a text, or an object with the bytes of a binary message.
fn sent(message: &SocketMessage) -> Value {
    match message {
        SocketMessage::Text(text) => text.as_str().into(),
        SocketMessage::Binary(bytes) => json!({ "bytes": bytes }),
    }
}

/// Milliseconds to the nanosecond, a record's precision: further digits mean nothing.
fn nanoseconds(milliseconds: f64) -> f64 {
    (milliseconds * 1e6).round() / 1e6
}

pub fn list(entries: impl Iterator<Item = Value>) -> String {
    let lines: Vec<String> = entries.map(|entry| format!("  {entry}")).collect();
    match lines.as_slice() {
        [] => "[]\n".to_owned(),
        lines => format!("[\n{}\n]\n", lines.join(",\n")),
    }
}

/// `error.txt`: an error that a plugin returned; `None` for an error that it caused.
pub fn error(error: &PluginError) -> Option<String> {
    let (kind, message) = match error {
        PluginError::Config { message, .. } => ("invalid-config", message),
        PluginError::Input { message, .. } => ("invalid-input", message),
        PluginError::Protocol { message, .. } => ("protocol", message),
        PluginError::Other { message, .. } => ("other", message),
        _ => return None,
    };
    Some(format!("{kind}: {message}\n"))
}

/// A sample as JSON, without absent fields.
pub fn sample(sample: &Sample) -> Value {
    let after = (!sample.after.is_empty()).then(|| sample.after.iter().map(dependency).collect());
    let turn = |turn: &Turn| json!({ "session": turn.session, "index": turn.index });
    with_fields(
        json!({ "id": sample.id, "prompt": prompt(&sample.prompt) }),
        [
            ("after", after),
            ("recorded-answer", sample.recorded_answer.as_ref().map(message)),
            ("input-tokens", sample.input_tokens.map(Value::from)),
            ("audio-duration", sample.audio_duration.map(Value::from)),
            ("recorded-duration", sample.recorded_duration.map(Value::from)),
            ("output-tokens", sample.output_tokens.map(Value::from)),
            ("reference", sample.reference.as_deref().map(any)),
            ("turn", sample.turn.as_ref().map(turn)),
            ("class", sample.class.as_deref().map(Value::from)),
            ("arrival", sample.arrival.map(Value::from)),
            ("adapter", sample.adapter.as_deref().map(Value::from)),
            ("parameters", sample.parameters.as_deref().map(any)),
        ],
    )
}

/// An object with further fields, without absent ones.
fn with_fields<const N: usize>(mut json: Value, fields: [(&str, Option<Value>); N]) -> Value {
    for (key, value) in fields {
        if let Some(value) = value {
            json[key] = value;
        }
    }
    json
}

pub fn prompt(prompt: &Prompt) -> Value {
    match prompt {
        Prompt::Text(text) => json!({ "text": text }),
        Prompt::Tokens(tokens) => json!({ "tokens": tokens }),
        Prompt::Messages(messages) => {
            let messages: Vec<Value> = messages.iter().map(message).collect();
            json!({ "messages": messages })
        }
        Prompt::Continuation(next) => {
            let messages: Vec<Value> = next.messages.iter().map(message).collect();
            json!({ "continues": next.parent, "messages": messages })
        }
        Prompt::Embedding(texts) => json!({ "embedding": texts }),
        Prompt::Ranking(texts) => {
            json!({ "ranking": { "query": texts.query, "documents": texts.documents } })
        }
    }
}

fn dependency(on: &Dependency) -> Value {
    let point = match on.point {
        Point::End => "end",
        Point::FirstOutput => "first-output",
    };
    json!({ "sample": on.sample, "point": point, "delay": on.delay })
}

fn message(message: &Message) -> Value {
    let content = match message.parts.as_slice() {
        [Part::Text(text)] => json!(text),
        parts => parts.iter().map(part).collect(),
    };
    let json = json!({ "role": chat::role(message.role), "content": content });
    with_fields(json, [("extra", message.extra.as_deref().map(any))])
}

/// Content that is not text is represented by its size and digest.
fn part(part: &Part) -> Value {
    let media = |media: &Media| {
        json!({
            "media-type": media.media_type,
            "bytes": media.bytes.len(),
            "sha256": hex(&Sha256::digest(&media.bytes)),
        })
    };
    match part {
        Part::Text(text) => json!({ "text": text }),
        Part::Image(image) => json!({ "image": media(image) }),
        Part::Audio(audio) => json!({ "audio": media(audio) }),
        Part::Video(video) => json!({ "video": media(video) }),
        Part::Answer(of) => json!({ "answer": of }),
    }
}

pub fn refusal(refusal: &Refusal) -> String {
    let json = json!({ "reason": reason(refusal.reason), "message": refusal.message });
    format!("{json:#}\n")
}

pub(super) fn reason(reason: Reason) -> &'static str {
    reason.known().map_or("other", |known| known.name())
}

/// `metrics.json`: a list, one figure per line.
pub fn readings(readings: &[Reading]) -> String {
    list(readings.iter().map(|reading| {
        let metric = match reading.metric {
            ServerMetric::FinishedRequests => "finished-requests",
            ServerMetric::RunningRequests => "running-requests",
            ServerMetric::WaitingRequests => "waiting-requests",
            ServerMetric::InputTokens => "input-tokens",
            ServerMetric::OutputTokens => "output-tokens",
            ServerMetric::PrefixCacheQueries => "prefix-cache-queries",
            ServerMetric::PrefixCacheHits => "prefix-cache-hits",
            ServerMetric::KvCacheUsage => "kv-cache-usage",
            ServerMetric::Preemptions => "preemptions",
        };
        json!({ "metric": metric, "value": reading.value })
    }))
}

/// `prepared.json`: the value, and its lifetime in nanoseconds if it has one.
pub fn prepared(prepared: &Prepared) -> String {
    let value = bytes(&prepared.value);
    match prepared.lifetime {
        Some(lifetime) => format!("{{\"value\":{value},\"lifetime\":{lifetime}}}\n"),
        None => format!("{{\"value\":{value}}}\n"),
    }
}

/// `models.json`: a list, one model per line; a model without further facts is its name.
pub fn models(models: &[ServedModel]) -> String {
    list(models.iter().map(|model| {
        if model.root.is_none() && model.context_tokens.is_none() {
            return json!(model.name);
        }
        let root = model.root.as_deref().map(Value::from);
        let tokens = model.context_tokens.map(Value::from);
        with_fields(json!({ "name": model.name }), [("root", root), ("context-tokens", tokens)])
    }))
}

/// `remarks.json`: a list, one remark per line.
pub fn remarks(remarks: &[Remark]) -> String {
    list(remarks.iter().map(|remark| {
        let what = match remark.what {
            Treatment::Dropped => "dropped",
            Treatment::Truncated => "truncated",
            Treatment::Repaired => "repaired",
            Treatment::Repeated => "repeated",
        };
        let json = json!({ "what": what, "reason": remark.reason, "count": remark.count });
        with_fields(json, [("first", remark.first.as_deref().map(Value::from))])
    }))
}

/// JSON text as a value; invalid JSON, which the host refuses elsewhere, as a string.
fn any(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

/// Scores by name, in the plugin's order.
pub fn scores(scores: &[(String, f64)]) -> Value {
    let scores = scores.iter().map(|(name, value)| (name.clone(), json!(value)));
    Value::Object(scores.collect())
}

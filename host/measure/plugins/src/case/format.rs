//! The contract's types in the format of a case's files, all in one place, so that a change of the
//! contract changes only this module. Inputs are in `input`, expectations here.

mod input;

pub use input::{ASIDES, ExchangeFile, HeadFile, SampleFile, SettingsFile};

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::backend::ServerMetric;
use crate::backend::{
    Call, Dependency, Framing, Meaning, Media, Message, Output, Part, Point, Prepared, Prompt,
    Reading, Reason, Refusal, Request, Sample, ServedModel, SocketMessage,
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
    let Call::Socket(socket) = call else {
        return request(&call.as_request());
    };
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

/// Bytes as lines of sixteen, each in hexadecimal digits and as ASCII, with a full stop for other
/// bytes.
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
        event(meaning, &mut shown);
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

fn event(meaning: &Meaning, event: &mut Map<String, Value>) {
    let mut set = |key: &str, value: Value| {
        event.insert(key.to_owned(), value);
    };
    match meaning {
        Meaning::Opened => set("kind", "opened".into()),
        Meaning::Text(piece) | Meaning::Reasoning(piece) | Meaning::ToolCall(piece) => {
            let Output { text, tokens, choice } = piece;
            let kind = match meaning {
                Meaning::Text(_) => "text",
                Meaning::Reasoning(_) => "reasoning",
                _ => "tool-call",
            };
            set("kind", kind.into());
            set("text", text.as_str().into());
            if let Some(tokens) = tokens {
                set("tokens", (*tokens).into());
            }
            if *choice > 0 {
                set("choice", (*choice).into());
            }
        }
        Meaning::Audio(sound) => {
            set("kind", "audio".into());
            if let Some(duration) = sound.duration {
                set("duration", json!(duration));
            }
            if sound.choice > 0 {
                set("choice", sound.choice.into());
            }
        }
        Meaning::Usage(usage) => {
            set("kind", "usage".into());
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
            for (key, count) in counts {
                if let Some(count) = count {
                    set(key, json!(count));
                }
            }
        }
        Meaning::Count((name, count)) => {
            set("kind", "count".into());
            set("name", name.as_str().into());
            set("count", (*count).into());
        }
        Meaning::CleanUp(cleaning) => {
            set("kind", "clean-up".into());
            set("request", request(cleaning).into());
        }
        Meaning::Timings(timings) => {
            set("kind", "timings".into());
            let parts = [
                ("queue", timings.queue),
                ("prefill", timings.prefill),
                ("first-token", timings.first_token),
                ("decode", timings.decode),
            ];
            for (key, part) in parts {
                if let Some(part) = part {
                    set(key, json!(nanoseconds(part)));
                }
            }
        }
        Meaning::Speculation(speculation) => {
            set("kind", "speculation".into());
            set("steps", speculation.steps.into());
            if !speculation.steps_by_accepted.is_empty() {
                set("steps-by-accepted", json!(speculation.steps_by_accepted));
            }
        }
        Meaning::Finish(reason) => {
            set("kind", "finish".into());
            set("text", reason.as_str().into());
        }
        Meaning::Failure(refusal) => {
            set("kind", "failure".into());
            set("reason", reason(refusal.reason).into());
            set("message", refusal.message.as_str().into());
        }
        Meaning::Vector(vector) => {
            set("kind", "vector".into());
            set("index", vector.index.into());
            set("values", json!(vector.values));
        }
        Meaning::Order(order) => {
            set("kind", "order".into());
            let ranked = order.iter();
            let ranked = ranked.map(|text| json!({ "index": text.index, "score": text.score }));
            set("ranked", ranked.collect());
        }
        Meaning::Carry(bytes) => {
            set("kind", "carry".into());
            match str::from_utf8(bytes) {
                Ok(text) => set("text", text.into()),
                Err(_) => set("bytes", json!(bytes)),
            }
        }
        Meaning::Next(step) => {
            set("kind", "next".into());
            set("request", request(&step.request).into());
            set("framing", framing(step.framing).into());
            if step.delay > 0 {
                set("delay", step.delay.into());
            }
            if !step.accepted.is_empty() {
                set("accepted", json!(step.accepted));
            }
            if !step.context.is_empty() {
                set("context", bytes(&step.context));
            }
        }
        Meaning::Send(outgoing) => {
            set("kind", "send".into());
            set("message", sent(&outgoing.message));
            if outgoing.delay > 0 {
                set("delay", outgoing.delay.into());
            }
            if outgoing.hold {
                set("hold", true.into());
            }
        }
        Meaning::Proceed => set("kind", "proceed".into()),
        Meaning::Further((name, value)) => {
            set("kind", "further".into());
            set("name", name.as_str().into());
            set("value", any(value));
        }
        Meaning::EndsWithBody => set("kind", "ends-with-body".into()),
        Meaning::End => set("kind", "end".into()),
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

/// The contract's name of a framing.
pub(super) fn framing(framing: Framing) -> &'static str {
    match framing {
        Framing::EventStream => "event-stream",
        Framing::Lines => "lines",
        Framing::LengthPrefixed(_) => "length-prefixed",
        Framing::Grpc => "grpc",
        Framing::Whole => "whole",
        Framing::Raw => "raw",
    }
}

/// Milliseconds to the nanosecond, the precision of a record: a difference of instants has
/// meaningless digits.
fn nanoseconds(milliseconds: f64) -> f64 {
    (milliseconds * 1e6).round() / 1e6
}

/// A list with one entry per line.
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
        PluginError::Located { message, .. } => ("other", message),
        _ => return None,
    };
    Some(format!("{kind}: {message}\n"))
}

/// A sample as JSON, without absent fields.
pub fn sample(sample: &Sample) -> Value {
    let mut json = json!({ "id": sample.id, "prompt": prompt(&sample.prompt) });
    if !sample.after.is_empty() {
        json["after"] = sample.after.iter().map(dependency).collect();
    }
    if let Some(answer) = &sample.recorded_answer {
        json["recorded-answer"] = message(answer);
    }
    if let Some(tokens) = sample.input_tokens {
        json["input-tokens"] = tokens.into();
    }
    if let Some(duration) = sample.audio_duration {
        json["audio-duration"] = duration.into();
    }
    if let Some(duration) = sample.recorded_duration {
        json["recorded-duration"] = duration.into();
    }
    if let Some(tokens) = sample.output_tokens {
        json["output-tokens"] = tokens.into();
    }
    if let Some(reference) = &sample.reference {
        json["reference"] = any(reference);
    }
    if let Some(turn) = &sample.turn {
        json["turn"] = json!({ "session": turn.session, "index": turn.index });
    }
    if let Some(class) = &sample.class {
        json["class"] = class.as_str().into();
    }
    if let Some(arrival) = sample.arrival {
        json["arrival"] = arrival.into();
    }
    if let Some(adapter) = &sample.adapter {
        json["adapter"] = adapter.as_str().into();
    }
    if let Some(parameters) = &sample.parameters {
        json["parameters"] = any(parameters);
    }
    json
}

/// A prompt as JSON.
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
    let mut json = json!({ "role": chat::role(message.role), "content": content });
    if let Some(extra) = &message.extra {
        json["extra"] = any(extra);
    }
    json
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

/// `explained.json`.
pub fn refusal(refusal: &Refusal) -> String {
    let json = json!({ "reason": reason(refusal.reason), "message": refusal.message });
    format!("{json:#}\n")
}

pub(super) fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Overloaded => "overloaded",
        Reason::Unavailable => "unavailable",
        Reason::TooLong => "too-long",
        Reason::UnknownModel => "unknown-model",
        Reason::Unauthorised => "unauthorised",
        Reason::Invalid => "invalid",
        Reason::Internal => "internal",
        Reason::Other => "other",
    }
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
        let mut json = json!({ "name": model.name });
        if let Some(root) = &model.root {
            json["root"] = root.as_str().into();
        }
        if let Some(tokens) = model.context_tokens {
            json["context-tokens"] = tokens.into();
        }
        json
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
        let mut json = json!({ "what": what, "reason": remark.reason, "count": remark.count });
        if let Some(first) = &remark.first {
            json["first"] = first.as_str().into();
        }
        json
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

//! The span of a request: from when it was due until it ended, with an event for each step that the
//! client saw. Events cost less than spans within the span, and show the same instants.

use serde::Serialize;
use serde_json::{Value, json};

use super::{About, int, list, text};
use crate::requests::outputs;
use model::exchange::{Class, Exchange, Outcome};
use model::identity::{SpanId, TraceId};
use model::units::Nanos;
use report::row::phase;

/// The flag of a trace context that is sampled.
pub(super) const SAMPLED: u32 = 1;
/// `SPAN_KIND_CLIENT`.
const CLIENT: u8 = 3;
/// `STATUS_CODE_ERROR`.
const ERROR: u8 = 2;
/// The longest message of a failure that a span has, in bytes.
const MESSAGE: usize = 512;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Span {
    pub(super) trace_id: TraceId,
    pub(super) span_id: SpanId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent_span_id: Option<SpanId>,
    pub(super) name: String,
    pub(super) kind: u8,
    pub(super) start_time_unix_nano: String,
    pub(super) end_time_unix_nano: String,
    pub(super) attributes: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) events: Vec<Value>,
    /// Absent in a span that went well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<Value>,
    pub(super) flags: u32,
}

pub(super) fn span(about: &About, exchange: &Exchange, trace: TraceId, span: SpanId) -> Span {
    let operation = about.operation_of(exchange);
    Span {
        trace_id: trace,
        span_id: span,
        parent_span_id: is_of_session(exchange).then(|| trace.session()),
        name: if about.model.is_empty() {
            operation.to_owned()
        } else {
            format!("{operation} {}", about.model)
        },
        kind: CLIENT,
        start_time_unix_nano: about.unix(exchange.due),
        end_time_unix_nano: about.unix(end(exchange)),
        attributes: attributes(about, exchange, operation),
        events: events(about, exchange),
        status: failure(exchange)
            .map(|(_, message)| failed(&message[..message.floor_char_boundary(MESSAGE)])),
        flags: SAMPLED,
    }
}

/// True of a request with dependences. Any other request is a trace by itself.
pub(super) fn is_of_session(exchange: &Exchange) -> bool {
    !exchange.sample.parents.is_empty() || exchange.sample.descendants > 0
}

pub(super) fn failed(message: &str) -> Value {
    json!({ "message": message, "code": ERROR })
}

/// The instant of its end, or of its last event if it was given up.
pub(super) fn end(exchange: &Exchange) -> Nanos {
    let seen = [exchange.sent, exchange.written, exchange.first_byte];
    let last = exchange.ended.or_else(|| seen.into_iter().flatten().max());
    last.map_or(exchange.due, |last| last.max(exchange.due))
}

/// The failure's class and message; absent for an exchange that was cancelled on purpose.
pub(super) fn failure(exchange: &Exchange) -> Option<(&'static str, &str)> {
    match &exchange.outcome {
        Outcome::Incomplete { class, message, .. } if *class != Class::Cancelled => {
            Some((class.name(), message))
        }
        _ => None,
    }
}

/// The attributes that spans and points of metrics share.
pub(super) fn common(about: &About, operation: &str) -> Vec<Value> {
    vec![
        text("gen_ai.operation.name", operation),
        text("gen_ai.provider.name", &about.provider),
        text("gen_ai.request.model", &about.model),
    ]
}

fn attributes(about: &About, exchange: &Exchange, operation: &str) -> Vec<Value> {
    let mut all = common(about, operation);
    let target = usize::try_from(exchange.target).unwrap_or(usize::MAX);
    if let Some((host, port)) = about.servers.get(target) {
        all.push(text("server.address", host));
        all.push(int("server.port", u64::from(*port)));
    }
    let sample = &exchange.sample;
    let ids = exchange.ids.as_deref();
    let texts = [
        ("gen_ai.conversation.id", conversation(exchange)),
        ("runner.request.id", ids.and_then(|ids| ids.request.as_deref())),
        ("runner.session.parent", ids.and_then(|ids| ids.parent.as_deref())),
        ("runner.sample.id", Some(&*sample.id)),
        ("runner.sample.class", sample.class.as_deref()),
        ("error.type", failure(exchange).map(|(class, _)| class)),
    ];
    let texts = texts.into_iter();
    all.extend(texts.filter_map(|(key, words)| Some(text(key, words?))));
    let usage = exchange.usage.unwrap_or_default();
    let wide = |number: Option<u32>| number.map(u64::from);
    let requests = exchange.steps.len() as u64;
    let numbers = [
        ("runner.index", Some(exchange.index)),
        ("runner.turn", sample.turn.as_ref().map(|turn| u64::from(turn.index))),
        ("runner.requests", (requests > 0).then_some(requests)),
        ("gen_ai.request.max_tokens", wide(sample.output_tokens)),
        ("gen_ai.usage.input_tokens", wide(usage.input_tokens)),
        ("gen_ai.usage.cache_read.input_tokens", wide(usage.cached_input_tokens)),
        ("gen_ai.usage.output_tokens", wide(usage.output_tokens)),
        ("http.response.status_code", exchange.status.map(u64::from)),
    ];
    let numbers = numbers.into_iter();
    all.extend(numbers.filter_map(|(key, number)| Some(int(key, number?))));
    if let Some(finish) = &exchange.finish {
        all.push(list("gen_ai.response.finish_reasons", finish));
    }
    all.push(text("runner.phase", phase(exchange.phase)));
    if exchange.outcome.class() == Class::Cancelled {
        all.push(text("runner.outcome", "cancelled"));
    }
    all
}

/// The id of its session as it was sent, or else the name of its conversation.
pub(super) fn conversation(exchange: &Exchange) -> Option<&str> {
    let sent = exchange.ids.as_deref().and_then(|ids| ids.session.as_deref());
    sent.or_else(|| exchange.sample.turn.as_ref().map(|turn| &*turn.session))
}

/// The steps of a request in the order in which they happened.
fn events(about: &About, exchange: &Exchange) -> Vec<Value> {
    // A connection that was there before the request is no part of it.
    let opened = exchange.connection.filter(|opened| opened.begun >= exchange.due);
    let instants = [
        ("due", Some(exchange.due)),
        ("granted", exchange.granted),
        ("connection.begun", opened.map(|opened| opened.begun)),
        ("connection.looked_up", opened.and_then(|opened| opened.looked_up)),
        ("connection.connected", opened.map(|opened| opened.connected)),
        ("connection.secured", opened.and_then(|opened| opened.secured)),
        ("sent", exchange.sent),
        ("written", exchange.written),
        ("first_byte", exchange.first_byte),
        ("headers", exchange.headers),
        ("first_token", outputs(exchange).next().map(|event| event.at)),
        ("last_token", outputs(exchange).last().map(|event| event.at)),
    ];
    let mut instants: Vec<(&str, Nanos)> =
        instants.into_iter().filter_map(|(name, at)| Some((name, at?))).collect();
    instants.sort_by_key(|(_, at)| *at);
    let event = |(name, at): (&str, Nanos)| json!({ "timeUnixNano": about.unix(at), "name": name });
    instants.into_iter().map(event).collect()
}

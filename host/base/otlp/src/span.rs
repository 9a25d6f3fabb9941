//! The span of a request: from when it was due until it ended, with an event for each step that the
//! client saw. Events cost less than spans within the span, and show the same instants.

use model::exchange::Phase;
use model::units::Nanos;

use crate::message::{Event, KeyValue, Span, SpanKind, Status, StatusCode};
use crate::{About, Seen};

/// The flag of a trace context that is sampled.
pub(crate) const SAMPLED: u32 = 1;

/// The span of an exchange; nothing if it has no ids.
pub(crate) fn of(about: &About, seen: &Seen) -> Option<Span> {
    let ids = seen.ids.as_deref()?;
    let (trace, span) = (ids.trace?, ids.span?);
    // A request by itself is a trace by itself.
    let parent = if seen.is_follower || seen.descendants > 0 {
        trace.session().bytes().to_vec()
    } else {
        Vec::new()
    };
    let operation = about.operation_of(seen);
    Some(Span {
        trace_id: trace.bytes().to_vec(),
        span_id: span.bytes().to_vec(),
        parent_span_id: parent,
        name: if about.model.is_empty() {
            operation.to_owned()
        } else {
            format!("{operation} {}", about.model)
        },
        kind: SpanKind::Client.into(),
        start_time_unix_nano: about.unix(seen.due),
        end_time_unix_nano: about.unix(seen.end()),
        attributes: attributes(about, seen, operation),
        events: events(about, seen),
        status: seen.failure.as_ref().map(|(_, message)| Status {
            message: message.clone(),
            code: StatusCode::Error.into(),
        }),
        flags: SAMPLED,
    })
}

/// The attributes that spans and points of metrics share.
pub(crate) fn common(about: &About, operation: &str) -> Vec<KeyValue> {
    vec![
        KeyValue::text("gen_ai.operation.name", operation),
        KeyValue::text("gen_ai.provider.name", &*about.provider),
        KeyValue::text("gen_ai.request.model", &*about.model),
    ]
}

fn attributes(about: &About, seen: &Seen, operation: &str) -> Vec<KeyValue> {
    let mut all = common(about, operation);
    let target = usize::try_from(seen.target).unwrap_or(usize::MAX);
    if let Some((host, port)) = about.servers.get(target) {
        all.push(KeyValue::text("server.address", &**host));
        all.push(KeyValue::int("server.port", u64::from(*port)));
    }
    let ids = seen.ids.as_deref();
    let id = |of: Option<&Option<String>>| of.cloned().flatten();
    let session = id(ids.map(|ids| &ids.session)).or_else(|| seen.conversation.clone());
    let texts = [
        ("gen_ai.conversation.id", session),
        ("runner.request.id", id(ids.map(|ids| &ids.request))),
        ("runner.session.parent", id(ids.map(|ids| &ids.parent))),
        ("runner.sample.id", Some(seen.sample.clone())),
        ("runner.sample.class", seen.class.clone()),
        ("error.type", error(seen)),
    ];
    let texts = texts.into_iter();
    all.extend(texts.filter_map(|(key, text)| Some(KeyValue::text(key, text?))));
    let wide = |number: Option<u32>| number.map(u64::from);
    let numbers = [
        ("runner.index", Some(seen.index)),
        ("runner.turn", wide(seen.turn)),
        ("runner.requests", (seen.requests > 0).then_some(seen.requests)),
        ("gen_ai.request.max_tokens", wide(seen.requested_tokens)),
        ("gen_ai.usage.input_tokens", wide(seen.input_tokens)),
        ("gen_ai.usage.cache_read.input_tokens", wide(seen.cached_tokens)),
        ("gen_ai.usage.output_tokens", wide(seen.output_tokens)),
        ("http.response.status_code", seen.status.map(u64::from)),
    ];
    let numbers = numbers.into_iter();
    all.extend(numbers.filter_map(|(key, number)| Some(KeyValue::int(key, number?))));
    if let Some(finish) = &seen.finish {
        all.push(KeyValue::list("gen_ai.response.finish_reasons", finish));
    }
    all.push(KeyValue::text("runner.phase", phase(seen.phase)));
    if seen.is_cancelled {
        all.push(KeyValue::text("runner.outcome", "cancelled"));
    }
    all
}

/// The class of a failure, which is what `error.type` is for.
pub(crate) fn error(seen: &Seen) -> Option<String> {
    let (class, _) = seen.failure.as_ref()?;
    Some(class.name().to_owned())
}

pub(crate) fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Warmup => "warmup",
        Phase::Measure => "measure",
    }
}

/// The steps of a request in the order in which they happened.
fn events(about: &About, seen: &Seen) -> Vec<Event> {
    // A connection that was there before the request is no part of it.
    let opened = seen.connection.filter(|opened| opened.begun >= seen.due);
    let instants = [
        ("due", Some(seen.due)),
        ("granted", seen.granted),
        ("connection.begun", opened.map(|opened| opened.begun)),
        ("connection.looked_up", opened.and_then(|opened| opened.looked_up)),
        ("connection.connected", opened.map(|opened| opened.connected)),
        ("connection.secured", opened.and_then(|opened| opened.secured)),
        ("sent", seen.sent),
        ("written", seen.written),
        ("first_byte", seen.first_byte),
        ("headers", seen.headers),
        ("first_token", seen.first_output),
        ("last_token", seen.last_output),
    ];
    let mut instants: Vec<(&str, Nanos)> =
        instants.into_iter().filter_map(|(name, at)| Some((name, at?))).collect();
    instants.sort_by_key(|(_, at)| *at);
    let event =
        |(name, at): (&str, Nanos)| Event { time_unix_nano: about.unix(at), name: name.to_owned() };
    instants.into_iter().map(event).collect()
}

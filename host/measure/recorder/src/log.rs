//! Logs in place of traffic: access logs with bodies, and traces of OpenTelemetry with GenAI spans
//! (<https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/>), one JSON object a line.
//!
//! A line of an access log is read as the proxy's traffic is. A span has its counts itself; its
//! prompt is known if it has `gen_ai.input.messages`. The first pass keeps the lines' times, and
//! the second reads them in the order of their instants, because sessions need it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Method};
use model::units::Nanos;
use serde_json::Value;

use crate::answer::Answer;
use crate::counts::Count;
use crate::form::{ClientRequest, Content};
use crate::reading::Reading;
use crate::tap::{BodyCopy, RequestHead};

/// The longest line: a request and a reply of the largest size that the proxy reads.
const LONGEST: u64 = 192 << 20;

/// Names of fields in access logs, in the order of preference.
const START: [&str; 6] = ["start_time", "time", "timestamp", "@timestamp", "ts", "startTime"];
const END: [&str; 2] = ["end_time", "endTime"];
/// The duration, with its unit in nanoseconds.
const DURATION: [(&str, f64); 6] = [
    ("duration_ms", 1e6),
    ("latency_ms", 1e6),
    ("duration", 1e9),
    ("request_time", 1e9),
    ("latency", 1e9),
    ("api_time", 1e9),
];
const METHOD: [&str; 2] = ["method", "request_method"];
const PATH: [&str; 5] = ["path", "uri", "request_uri", "url", "route"];
const STATUS: [&str; 3] = ["status", "status_code", "response_status"];
const REQUEST: [&str; 3] = ["request_body", "request", "requestBody"];
const REPLY: [&str; 3] = ["response_body", "response", "responseBody"];
const SESSION: [&str; 3] = ["session_id", "conversation_id", "session"];
const HEADERS: [&str; 2] = ["request_headers", "headers"];

/// An instant of a request: its beginning or its end, in nanoseconds since 1970.
struct Instant {
    at: u64,
    is_end: bool,
    number: u64,
    /// The line's place, and the span in it.
    offset: u64,
    length: u64,
    span: usize,
}

struct Logged {
    start: u64,
    end: u64,
    session: Option<Vec<u8>>,
    content: LoggedContent,
}

enum LoggedContent {
    Http { method: Method, path: String, request: Vec<u8>, status: u16, reply: Vec<u8> },
    Span { request: Box<ClientRequest>, answer: Answer },
}

impl Reading {
    pub(crate) fn log(
        &mut self,
        log: File,
        session_headers: &[HeaderName],
        mut tell: impl FnMut(&str),
    ) -> io::Result<()> {
        let mut instants = Vec::new();
        let mut file = BufReader::new(log);
        let (mut line, mut offset, mut number) = (Vec::new(), 0, 0);
        loop {
            line.clear();
            let length = (&mut file).take(LONGEST).read_until(b'\n', &mut line)? as u64;
            if length == 0 {
                break;
            }
            let requests = read(&line, session_headers);
            if requests.is_empty() && !line.trim_ascii().is_empty() {
                self.counts.add(Count::UnknownLine);
            }
            for (span, request) in requests.iter().enumerate() {
                for (is_end, at) in [(false, request.start), (true, request.end)] {
                    instants.push(Instant { at, is_end, number, offset, length, span });
                }
                number += 1;
            }
            offset += length;
        }
        instants.sort_by_key(|instant| (instant.at, instant.is_end, instant.number));
        let origin = instants.first().map_or(0, |first| first.at);
        let mut file = file.into_inner();
        for instant in instants {
            line.resize(instant.length as usize, 0);
            file.seek(SeekFrom::Start(instant.offset))?;
            file.read_exact(&mut line)?;
            let Some(logged) = read(&line, session_headers).into_iter().nth(instant.span) else {
                continue;
            };
            let at = Nanos(instant.at - origin);
            if instant.is_end {
                self.logged_end(instant.number, logged, at, &mut tell);
            } else {
                self.logged_start(instant.number, logged, at);
            }
        }
        Ok(())
    }

    fn logged_start(&mut self, number: u64, logged: Logged, arrived: Nanos) {
        let session = logged.session;
        let head = |method, path| RequestHead {
            method,
            path,
            encoding: None,
            session,
            parent: None,
            arrived,
        };
        match logged.content {
            LoggedContent::Http { method, path, request, .. } => {
                self.began(number, &head(method, path), &BodyCopy::whole(request, arrived));
            }
            LoggedContent::Span { request, .. } => {
                self.begin(number, None, &head(Method::POST, String::new()), *request);
            }
        }
    }

    fn logged_end(
        &mut self,
        number: u64,
        logged: Logged,
        ended: Nanos,
        tell: &mut impl FnMut(&str),
    ) {
        match logged.content {
            LoggedContent::Http { status, reply, .. } => {
                let is_stream =
                    [&b"data:"[..], b"event:", b":"].iter().any(|start| reply.starts_with(start));
                let kind = if is_stream { "text/event-stream" } else { "application/json" };
                let mut headers = HeaderMap::new();
                headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
                // A log has no instant of the first output.
                let mut body = BodyCopy::whole(reply, ended);
                body.reads.clear();
                self.ended(number, Some((status, headers)), &body, ended, tell);
            }
            LoggedContent::Span { answer, .. } => {
                self.answered(number, (Some(200), Some(answer)), ended, tell);
            }
        }
    }
}

fn read(line: &[u8], session_headers: &[HeaderName]) -> Vec<Logged> {
    let Ok(line) = serde_json::from_slice::<Value>(line) else { return Vec::new() };
    match line.get("resourceSpans").and_then(Value::as_array) {
        Some(resources) => {
            let below = |value: &Value, key: &str| {
                value.get(key).and_then(Value::as_array).cloned().unwrap_or_default()
            };
            let scopes = resources.iter().flat_map(|resource| below(resource, "scopeSpans"));
            let spans = scopes.flat_map(|scope| below(&scope, "spans"));
            spans.filter_map(|span| of_span(&span)).collect()
        }
        None => access(&line, session_headers).into_iter().collect(),
    }
}

fn first<'v>(line: &'v Value, names: &[&str]) -> Option<&'v Value> {
    names.iter().find_map(|name| line.get(*name))
}

/// Nanoseconds since 1970 of a date, or of a number whose size shows its unit.
fn instant(value: &Value) -> Option<u64> {
    if let Some(text) = value.as_str()
        && let Ok(date) = text.parse::<jiff::Timestamp>()
    {
        return u64::try_from(date.as_nanosecond()).ok();
    }
    let number = value.as_f64().or_else(|| value.as_str()?.parse().ok())?;
    let units = [(1e17, 1.0), (1e14, 1e3), (1e11, 1e6), (0.0, 1e9)];
    let unit = units.iter().find(|(least, _)| number >= *least)?.1;
    Some((number * unit) as u64)
}

/// A body that stands in the log as a text, or as the JSON itself.
fn body(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => text.clone().into_bytes(),
        other => other.to_string().into_bytes(),
    }
}

fn access(line: &Value, session_headers: &[HeaderName]) -> Option<Logged> {
    let start = instant(first(line, &START)?)?;
    let lasted = DURATION.iter().find_map(|(name, unit)| Some(line.get(*name)?.as_f64()? * unit));
    let end = match first(line, &END) {
        Some(end) => instant(end)?,
        None => start + lasted.filter(|lasted| *lasted >= 0.0)? as u64,
    };
    let path = first(line, &PATH)?.as_str()?;
    let path =
        path.split_once("://").map_or(path, |(_, rest)| &rest[rest.find('/').unwrap_or(0)..]);
    let path = path.split('?').next().unwrap_or_default().to_owned();
    let method = first(line, &METHOD).and_then(Value::as_str).unwrap_or("POST");
    let headers = first(line, &HEADERS).and_then(Value::as_object);
    let named = headers.and_then(|headers| {
        session_headers.iter().find_map(|name| {
            let mut found =
                headers.iter().filter(|(own, _)| own.eq_ignore_ascii_case(name.as_str()));
            found.next()?.1.as_str()
        })
    });
    let session = named.or(first(line, &SESSION).and_then(Value::as_str));
    Some(Logged {
        start,
        end: end.max(start),
        session: session.map(|session| session.as_bytes().to_vec()),
        content: LoggedContent::Http {
            method: method.parse().ok()?,
            path,
            request: body(first(line, &REQUEST)?),
            status: first(line, &STATUS).and_then(Value::as_u64).unwrap_or(200) as u16,
            reply: body(first(line, &REPLY)?),
        },
    })
}

/// A span of a request to a model, by its token counts.
fn of_span(span: &Value) -> Option<Logged> {
    let attributes = span.get("attributes")?.as_array()?;
    let value = |name: &str| {
        let found = attributes.iter().find(|attribute| attribute["key"] == name)?;
        found["value"].as_object()?.values().next()
    };
    let text = |name: &str| value(name).and_then(Value::as_str);
    // OTLP writes 64-bit integers as texts.
    let number = |name: &str| {
        let value = value(name)?;
        let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
        u32::try_from(number).ok()
    };
    let input_tokens = number("gen_ai.usage.input_tokens")?;
    let time = |key: &str| span.get(key).and_then(instant);
    let (start, end) = (time("startTimeUnixNano")?, time("endTimeUnixNano")?);
    let messages = text("gen_ai.input.messages");
    let messages = messages.and_then(|text| serde_json::from_str::<Vec<Value>>(text).ok());
    let session = text("gen_ai.conversation.id").or_else(|| span.get("traceId")?.as_str());
    let request = ClientRequest {
        is_streaming: Some(false),
        model: text("gen_ai.request.model").map(str::to_owned),
        limit: number("gen_ai.request.max_tokens"),
        prompt: messages.map_or(Content::Text(String::new()), |messages| Content::Messages {
            messages,
            tools: None,
        }),
        ..ClientRequest::default()
    };
    let has_failed = span["status"]["code"] == 2 || span["status"]["code"] == "STATUS_CODE_ERROR";
    let answer = Answer {
        input_tokens: Some(input_tokens),
        cached_tokens: number("gen_ai.usage.cache_read.input_tokens"),
        output_tokens: number("gen_ai.usage.output_tokens"),
        is_failure: has_failed,
        is_complete: true,
        ..Answer::default()
    };
    Some(Logged {
        start,
        end: end.max(start),
        session: session.map(|session| session.as_bytes().to_vec()),
        content: LoggedContent::Span { request: Box::new(request), answer },
    })
}

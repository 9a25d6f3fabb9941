//! Runs as OpenTelemetry has them: a span for each request and each session, and histograms of the
//! measured requests, as OTLP/JSON.
//!
//! Names are from OpenTelemetry's semantic conventions for generative AI where these have one, and
//! begin with `runner.` where not. Each line is a whole document and can be sent to a collector.
//! Collectors also read the whole file (OpenTelemetry Protocol File Exporter). The documents are
//! few and small, so they are built here and need none of OpenTelemetry's crates.

mod span;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::io::Write;

use serde::Serialize;
use serde_json::{Value, json};

use super::{ExportError, labels};
use crate::requests::outputs;
use model::exchange::{Class, Exchange, Phase};
use model::identity::{RunId, SpanId, TraceId, beginning};
use model::target::Target;
use model::units::Nanos;
use report::row::phase;
use runs::folder::RunFolder;
use span::{SAMPLED, Span, common, conversation, end, failed, failure, is_of_session};

/// The most spans of a line: about a megabyte, well below the limits of collectors.
const MOST: usize = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Spans,
    Metrics,
}

/// Writes spans or metrics of these runs. Fails if a run has no date.
pub fn write(
    mut out: impl Write,
    signal: Signal,
    folders: &[RunFolder],
) -> Result<(), ExportError> {
    for (folder, label) in folders.iter().zip(labels(folders)) {
        let about = About::new(folder, label)?;
        match signal {
            Signal::Spans => spans(&mut out, about, folder),
            Signal::Metrics => metrics(&mut out, &about, folder),
        }?;
    }
    Ok(out.flush()?)
}

fn spans(out: &mut impl Write, about: About, folder: &RunFolder) -> Result<(), ExportError> {
    let mut tracer = Tracer::new(about);
    for exchange in folder.read()? {
        tracer.add(&exchange?);
        while tracer.spans.len() >= MOST {
            line(out, &tracer.line())?;
        }
    }
    tracer.finish();
    while !tracer.spans.is_empty() {
        line(out, &tracer.line())?;
    }
    Ok(())
}

fn metrics(out: &mut impl Write, about: &About, folder: &RunFolder) -> Result<(), ExportError> {
    let mut metrics = Metrics::default();
    for exchange in folder.read()? {
        metrics.add(about, &exchange?);
    }
    let all = metrics.all(about);
    if all.is_empty() {
        return Ok(());
    }
    let scope = json!({ "scope": about.scope(), "metrics": all });
    let resource = json!({ "resource": about.resource(), "scopeMetrics": [scope] });
    line(out, &json!({ "resourceMetrics": [resource] }))
}

fn line(out: &mut impl Write, document: &Value) -> Result<(), ExportError> {
    let mut line = document.to_string();
    line.push('\n');
    Ok(out.write_all(line.as_bytes())?)
}

/// The facts that the spans of a run share.
#[derive(Clone, Debug, Default)]
struct About {
    /// The version of the program that made the run.
    version: String,
    scenario: String,
    run: String,
    /// The operation of the model, by the conventions' names: `chat`, `text_completion`.
    operation: &'static str,
    /// The server's provider in the words of the conventions, or the backend's name.
    provider: String,
    model: String,
    /// The host and the port of each target.
    servers: Vec<(String, u16)>,
    /// The run's origin in nanoseconds since 1970.
    origin: u64,
}

impl About {
    fn new(folder: &RunFolder, run: String) -> Result<Self, ExportError> {
        /// Backends whose servers have a name in the semantic conventions.
        const PROVIDERS: [(&str, &str); 2] = [("bedrock", "aws.bedrock"), ("gemini", "gcp.gemini")];
        /// Backends that speak of chats alone.
        const CHATS: [&str; 5] = ["anthropic", "bedrock", "cohere", "gemini", "realtime"];
        let plan = folder.plan()?;
        let Some(origin) = folder.origin()? else { return Err(ExportError::Undated { run }) };
        let backend = &*plan.backend.name;
        let provider = PROVIDERS.iter().find(|(name, _)| *name == backend);
        let route = plan.backend.config.get("route").and_then(Value::as_str);
        let is_chat = match route {
            Some(route) => route.contains("chat"),
            None => CHATS.contains(&backend),
        };
        let environment = folder.environment()?;
        let version = environment.map(|environment| environment.runner);
        let targets = plan.target.base_urls.iter().map(|url| Target::parse(url));
        // A plan that somebody changed may have any text for a URL.
        let server = |target: &Target| (target.host().to_owned(), target.port());
        Ok(About {
            version: version.unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned()),
            scenario: plan.name,
            run,
            operation: if is_chat { "chat" } else { "text_completion" },
            provider: provider.map_or(backend, |(_, name)| name).to_owned(),
            model: plan.target.model,
            servers: targets
                .map(|target| target.as_ref().map(server).unwrap_or_default())
                .collect(),
            origin,
        })
    }

    /// An instant of the run in nanoseconds since 1970, as OTLP/JSON has 64-bit numbers.
    fn unix(&self, at: Nanos) -> String {
        self.origin.saturating_add(at.0).to_string()
    }

    /// The operation of an exchange, in the words of the conventions.
    fn operation_of(&self, exchange: &Exchange) -> &'static str {
        match (exchange.vectors.is_some(), exchange.order.is_empty()) {
            (true, _) => "embeddings",
            (_, false) => "rerank",
            _ => self.operation,
        }
    }

    fn resource(&self) -> Value {
        json!({ "attributes": [
            text("service.name", "runner"),
            text("service.version", &self.version),
            text("service.instance.id", &self.run),
            text("runner.scenario", &self.scenario),
        ] })
    }

    fn scope(&self) -> Value {
        json!({ "name": "runner", "version": self.version })
    }
}

/// Makes spans of a run's exchanges, in the order of their records.
struct Tracer {
    about: About,
    ids: Ids,
    sessions: Sessions,
    /// The spans that are in no line yet.
    spans: Vec<Span>,
}

impl Tracer {
    fn new(about: About) -> Self {
        let ids = Ids::new(&about);
        Tracer { about, ids, sessions: Sessions::default(), spans: Vec::new() }
    }

    fn add(&mut self, exchange: &Exchange) {
        let (trace, span) = self.ids.ids(exchange);
        self.spans.push(span::span(&self.about, exchange, trace, span));
        self.spans.extend(self.sessions.add(&self.about, exchange, trace));
    }

    /// Ends the sessions that are not over: no more of their requests are on record.
    fn finish(&mut self) {
        let left = std::mem::take(&mut self.sessions).finish(&self.about);
        self.spans.extend(left);
    }

    fn line(&mut self) -> Value {
        let spans: Vec<Span> = self.spans.drain(..MOST.min(self.spans.len())).collect();
        let scope = json!({ "scope": self.about.scope(), "spans": spans });
        let resource = json!({ "resource": self.about.resource(), "scopeSpans": [scope] });
        json!({ "resourceSpans": [resource] })
    }
}

/// The trace and the span of each request. Requests that carried a trace context have both on
/// record. The ids of others follow from the run and their place in it, so every export has the
/// same.
struct Ids {
    run: RunId,
    /// The roots of followers that have no ids on record.
    roots: HashMap<(Phase, u64), u64>,
}

impl Ids {
    fn new(about: &About) -> Self {
        let name = beginning(about.scenario.bytes());
        let run = u128::from(name) << 64 | u128::from(about.origin);
        Ids { run: RunId::new(run.to_be_bytes()), roots: HashMap::new() }
    }

    fn ids(&mut self, exchange: &Exchange) -> (TraceId, SpanId) {
        let known = exchange.ids.as_deref();
        if let Some(known) = known.and_then(|ids| ids.trace.zip(ids.span)) {
            return known;
        }
        let (phase, index) = (exchange.phase, exchange.index);
        let root = match exchange.sample.parents.first() {
            None => index,
            // A parent ended before, so its record came before. A root is in no map.
            Some(parent) => {
                let root = self.roots.get(&(phase, *parent)).copied().unwrap_or(*parent);
                self.roots.insert((phase, index), root);
                root
            }
        };
        self.run.ids_of(phase, index, root)
    }
}

fn text(key: &str, text: impl Serialize) -> Value {
    json!({ "key": key, "value": { "stringValue": text } })
}

fn int(key: &str, number: u64) -> Value {
    json!({ "key": key, "value": { "intValue": number.min(i64::MAX as u64).to_string() } })
}

/// An attribute that is a list of one text.
fn list(key: &str, text: &str) -> Value {
    let values = [json!({ "stringValue": text })];
    json!({ "key": key, "value": { "arrayValue": { "values": values } } })
}

/// `SPAN_KIND_INTERNAL`.
const INTERNAL: u8 = 1;

#[derive(Default)]
struct Sessions(HashMap<TraceId, Session>);

struct Session {
    /// Its number of requests, once its first one is known.
    requests: Option<u64>,
    seen: u64,
    failed: u64,
    from: Nanos,
    to: Nanos,
    id: Option<String>,
    phase: &'static str,
}

impl Sessions {
    /// Adds a request. Returns the span of its session, if the session is over now.
    fn add(&mut self, about: &About, exchange: &Exchange, trace: TraceId) -> Option<Span> {
        if !is_of_session(exchange) {
            return None;
        }
        let session = self.0.entry(trace).or_insert(Session {
            requests: None,
            seen: 0,
            failed: 0,
            from: exchange.due,
            to: end(exchange),
            id: None,
            phase: phase(exchange.phase),
        });
        session.seen += 1;
        session.failed += u64::from(failure(exchange).is_some());
        session.from = session.from.min(exchange.due);
        session.to = session.to.max(end(exchange));
        if exchange.sample.parents.is_empty() {
            session.requests = Some(u64::from(exchange.sample.descendants) + 1);
            session.id = conversation(exchange).map(str::to_owned);
        }
        let is_over = session.requests == Some(session.seen);
        is_over.then(|| self.0.remove(&trace)).flatten().map(|session| session.span(about, trace))
    }

    /// The spans of sessions that are not over, up to their last request on record.
    fn finish(self, about: &About) -> Vec<Span> {
        let mut open: Vec<(TraceId, Session)> = self.0.into_iter().collect();
        open.sort_by_key(|(trace, session)| (session.from, trace.to_string()));
        open.into_iter().map(|(trace, session)| session.span(about, trace)).collect()
    }
}

impl Session {
    fn span(self, about: &About, trace: TraceId) -> Span {
        let mut attributes =
            vec![int("runner.session.requests", self.seen), text("runner.phase", self.phase)];
        if let Some(id) = self.id {
            attributes.push(text("gen_ai.conversation.id", id));
        }
        if let Some(left) = self.requests.and_then(|all| all.checked_sub(self.seen))
            && left > 0
        {
            attributes.push(int("runner.session.requests_left", left));
        }
        let message = || failed(&format!("{} of {} requests failed", self.failed, self.seen));
        Span {
            trace_id: trace,
            span_id: trace.session(),
            parent_span_id: None,
            name: "session".to_owned(),
            kind: INTERNAL,
            start_time_unix_nano: about.unix(self.from),
            end_time_unix_nano: about.unix(self.to),
            attributes,
            events: Vec::new(),
            status: (self.failed > 0).then(message),
            flags: SAMPLED,
        }
    }
}

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u8 = 2;

/// Upper bounds of durations, in seconds (`gen_ai.client.operation.duration`).
const DURATIONS: &[f64] =
    &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

/// Upper bounds of numbers of tokens (`gen_ai.client.token.usage`).
const TOKENS: &[f64] = &{
    let mut bounds = [1.0; 14];
    let mut at = 1;
    while at < bounds.len() {
        bounds[at] = bounds[at - 1] * 4.0;
        at += 1;
    }
    bounds
};

/// Upper bounds of times to the first chunk, in seconds (`gen_ai.server.time_to_first_token`).
const FIRST: &[f64] =
    &[0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];

/// Upper bounds of times per chunk, in seconds (`gen_ai.server.time_per_output_token`).
const EACH: &[f64] = &[0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5];

/// A metric: its name, its meaning, its unit and the bounds of its buckets.
type Kind = (&'static str, &'static str, &'static str, &'static [f64]);

const DURATION: usize = 0;
const USAGE: usize = 1;
const FIRST_CHUNK: usize = 2;
const EACH_CHUNK: usize = 3;

const KINDS: [Kind; 4] = [
    (
        "gen_ai.client.operation.duration",
        "From when a request was sent until it ended",
        "s",
        DURATIONS,
    ),
    (
        "gen_ai.client.token.usage",
        "Tokens of prompts and answers, as the server counts them",
        "{token}",
        TOKENS,
    ),
    (
        "gen_ai.client.operation.time_to_first_chunk",
        "From when a request was sent until the first chunk of its answer",
        "s",
        FIRST,
    ),
    (
        "gen_ai.client.operation.time_per_output_chunk",
        "Time per chunk of an answer after the first",
        "s",
        EACH,
    ),
];

/// The labels of a metric's point: the operation, and the type of tokens or of the error.
type Label = (&'static str, Option<(&'static str, &'static str)>);

#[derive(Default)]
struct Metrics {
    points: [BTreeMap<Label, Counts>; KINDS.len()],
    /// The first due time, and the last end.
    measured: Option<(Nanos, Nanos)>,
}

#[derive(Default)]
struct Counts {
    buckets: Vec<u64>,
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
}

impl Counts {
    fn add(&mut self, value: f64, bounds: &[f64]) {
        self.buckets.resize(bounds.len() + 1, 0);
        // A bound belongs to the bucket that it ends.
        let bucket = bounds.partition_point(|bound| *bound < value);
        if let Some(bucket) = self.buckets.get_mut(bucket) {
            *bucket += 1;
        }
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = if self.count == 0 { value } else { self.max.max(value) };
        self.count += 1;
        self.sum += value;
    }
}

impl Metrics {
    fn count(&mut self, kind: usize, label: Label, value: f64) {
        self.points[kind].entry(label).or_default().add(value, KINDS[kind].3);
    }

    /// Adds an exchange, unless it belongs to the warm-up or was never sent.
    fn add(&mut self, about: &About, exchange: &Exchange) {
        let Some(sent) = exchange.sent.filter(|_| exchange.phase == Phase::Measure) else { return };
        let (due, end) = (exchange.due, span::end(exchange));
        let (from, to) = self.measured.unwrap_or((due, end));
        self.measured = Some((from.min(due), to.max(end)));
        let operation = about.operation_of(exchange);
        let failed = failure(exchange).map(|(class, _)| ("error.type", class));
        if let Some(ended) = exchange.ended {
            self.count(DURATION, (operation, failed), ended.since(sent).as_secs_f64());
        }
        let usage = exchange.usage.unwrap_or_default();
        for (kind, tokens) in [("input", usage.input_tokens), ("output", usage.output_tokens)] {
            if let Some(tokens) = tokens {
                let label = (operation, Some(("gen_ai.token.type", kind)));
                self.count(USAGE, label, f64::from(tokens));
            }
        }
        let is_answered = failed.is_none() && exchange.outcome.class() != Class::Cancelled;
        let mut outputs = outputs(exchange).filter(|_| is_answered).map(|event| event.at);
        if let Some(first) = outputs.next() {
            self.count(FIRST_CHUNK, (operation, None), first.since(sent).as_secs_f64());
            let (gaps, last) = outputs.fold((0_u32, first), |(gaps, _), at| (gaps + 1, at));
            if gaps > 0 {
                let each = last.since(first).as_secs_f64() / f64::from(gaps);
                self.count(EACH_CHUNK, (operation, None), each);
            }
        }
    }

    fn all(&self, about: &About) -> Vec<Value> {
        let measured = self.measured.unwrap_or_default();
        let all = KINDS.iter().zip(&self.points).filter(|(_, points)| !points.is_empty());
        let metric =
            |((name, meaning, unit, bounds), points): (&Kind, &BTreeMap<Label, Counts>)| {
                let points = points.iter();
                let points =
                    points.map(|(label, counts)| point(about, label, counts, bounds, measured));
                json!({
                    "name": name,
                    "description": meaning,
                    "unit": unit,
                    "histogram": {
                        "dataPoints": points.collect::<Vec<_>>(),
                        "aggregationTemporality": CUMULATIVE,
                    },
                })
            };
        all.map(metric).collect()
    }
}

fn point(
    about: &About,
    (operation, further): &Label,
    counts: &Counts,
    bounds: &[f64],
    (from, to): (Nanos, Nanos),
) -> Value {
    let mut attributes = common(about, operation);
    if let Some((key, value)) = further {
        attributes.push(text(key, value));
    }
    // One server is the point's own; of several, none is.
    if let [(host, port)] = &*about.servers {
        attributes.push(text("server.address", host));
        attributes.push(int("server.port", u64::from(*port)));
    }
    json!({
        "startTimeUnixNano": about.unix(from),
        "timeUnixNano": about.unix(to),
        "count": counts.count.to_string(),
        "sum": counts.sum,
        "bucketCounts": counts.buckets.iter().map(u64::to_string).collect::<Vec<_>>(),
        "explicitBounds": bounds,
        "attributes": attributes,
        "min": counts.min,
        "max": counts.max,
    })
}

//! Runs as OpenTelemetry has them: a span for each request and each session, and histograms of the
//! measured requests, as OTLP/JSON.
//!
//! Names are from OpenTelemetry's semantic conventions for generative AI where these have one, and
//! begin with `runner.` where not. Each line is a whole document and can be sent to a collector.
//! Collectors also read the whole file (OpenTelemetry Protocol File Exporter). The documents are
//! few and small, so they are built here and need none of OpenTelemetry's crates.

mod metrics;
mod sessions;
mod span;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io::Write;

use serde::Serialize;
use serde_json::{Value, json};

use super::{ExportError, labels};
use metrics::Metrics;
use model::exchange::{Exchange, Phase};
use model::identity::{RunId, SpanId, TraceId, beginning};
use model::target::Target;
use model::units::Nanos;
use runs::folder::RunFolder;
use sessions::Sessions;
use span::Span;

/// The most spans of a line: about a megabyte, well below the limits of collectors.
const MOST: usize = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Spans,
    Metrics,
}

/// Writes spans or metrics of these runs, run by run. Fails if a run cannot be read or has no date,
/// or the documents cannot be written.
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

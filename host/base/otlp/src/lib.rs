//! Finished exchanges as OpenTelemetry has them: a span for each request and each session, and
//! histograms of all measured requests, as messages of OTLP.
//!
//! This crate is pure: exchanges go in, bytes come out. It owns which spans, attributes and metrics
//! there are, under the names of OpenTelemetry's semantic conventions for generative AI where these
//! have one, and below `runner.` where not. It leaves to `session` when something is sent, and where
//! to. The messages are declared here, and not taken from the crate `opentelemetry-proto`: they are
//! a dozen, their numbers never change, and that crate brings an SDK with it. Binary messages are
//! what every collector takes; the JSON form is optional for many, and three times as large.

#![forbid(unsafe_code)]

mod message;
mod metrics;
mod seen;
mod sessions;
mod span;

#[cfg(test)]
mod tests;

use prost::Message as _;

use message::{
    InstrumentationScope, KeyValue, MetricsRequest, Resource, ResourceMetrics, ResourceSpans,
    ScopeMetrics, ScopeSpans, Span, TracesRequest,
};
use metrics::Metrics;
use model::units::Nanos;
use sessions::Sessions;

pub use message::rejected;
pub use seen::Seen;

/// The path of spans below a collector's URL.
pub const TRACES: &str = "/v1/traces";
/// The path of metrics below a collector's URL.
pub const METRICS: &str = "/v1/metrics";
/// The media type of the messages.
pub const MEDIA_TYPE: &str = "application/x-protobuf";

/// The attributes that all spans of a run share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The version of this program.
    pub version: String,
    /// The name of the run's scenario.
    pub scenario: String,
    /// The name of the run's folder.
    pub run: String,
    /// The operation of the model, by the conventions' names: `chat`, `text_completion`.
    pub operation: String,
    /// Who serves the model, in the words of the conventions, or the backend's name.
    pub provider: String,
    /// The model's name on the server.
    pub model: String,
    /// The host and the port of each target.
    pub servers: Vec<(String, u16)>,
    /// The run's origin in nanoseconds since 1970.
    pub origin: u64,
}

/// Makes spans and metrics of a run's exchanges.
pub struct Tracer {
    about: About,
    sessions: Sessions,
    metrics: Metrics,
    spans: Vec<Span>,
}

impl Tracer {
    /// For one run.
    pub fn new(about: About) -> Self {
        Tracer {
            about,
            sessions: Sessions::default(),
            metrics: Metrics::default(),
            spans: Vec::new(),
        }
    }

    /// Adds an exchange. Says if it has no ids, so that no span can be made of it.
    #[must_use]
    pub fn add(&mut self, seen: &Seen) -> bool {
        self.metrics.add(&self.about, seen);
        let Some(span) = span::of(&self.about, seen) else {
            return false;
        };
        self.spans.push(span);
        let over = self.sessions.add(&self.about, seen);
        self.spans.extend(over);
        true
    }

    /// Ends the sessions that are not over: nothing more of them will come.
    pub fn finish(&mut self) {
        let left = self.sessions.finish(&self.about);
        self.spans.extend(left);
    }

    /// The number of spans that wait.
    pub fn waiting(&self) -> usize {
        self.spans.len()
    }

    /// The number of sessions that have no span because too many were under way.
    pub fn untracked(&self) -> u64 {
        self.sessions.untracked()
    }

    /// At most this many of the spans that wait, as a request to a collector, and their number.
    /// They wait no longer.
    pub fn traces(&mut self, most: usize) -> (Vec<u8>, u64) {
        let spans: Vec<Span> = self.spans.drain(..most.min(self.spans.len())).collect();
        let count = spans.len() as u64;
        let request = TracesRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(self.resource()),
                scope_spans: vec![ScopeSpans { scope: Some(self.scope()), spans }],
            }],
        };
        (request.encode_to_vec(), count)
    }

    /// The metrics of everything so far, as a request to a collector; nothing if no request was
    /// measured.
    pub fn metrics(&self, now: Nanos) -> Option<Vec<u8>> {
        let metrics = self.metrics.all(&self.about, now)?;
        let request = MetricsRequest {
            resource_metrics: vec![ResourceMetrics {
                resource: Some(self.resource()),
                scope_metrics: vec![ScopeMetrics { scope: Some(self.scope()), metrics }],
            }],
        };
        Some(request.encode_to_vec())
    }

    fn resource(&self) -> Resource {
        Resource {
            attributes: vec![
                KeyValue::text("service.name", "runner"),
                KeyValue::text("service.version", &*self.about.version),
                KeyValue::text("service.instance.id", &*self.about.run),
                KeyValue::text("runner.scenario", &*self.about.scenario),
            ],
        }
    }

    fn scope(&self) -> InstrumentationScope {
        InstrumentationScope { name: "runner".to_owned(), version: self.about.version.clone() }
    }
}

impl About {
    /// An instant of the run in nanoseconds since 1970.
    fn unix(&self, at: Nanos) -> u64 {
        self.origin.saturating_add(at.0)
    }

    /// The operation of an exchange, in the words of the conventions.
    fn operation_of<'a>(&'a self, seen: &Seen) -> &'a str {
        match (seen.is_of_vectors, seen.is_of_order) {
            (true, _) => "embeddings",
            (_, true) => "rerank",
            _ => &self.operation,
        }
    }
}

//! A run's figures as another tool reports them for the same replies, by its definitions of a
//! chunk, a request's end and a peak. They fill that tool's text block (`text`) and its result file
//! ([`vllm`], [`sglang`], [`aiperf`]), and the row of InferenceX ([`inferencex`]).
//!
//! Three things stay ours. A request that failed counts as failed, even if the tool would have
//! counted it as a success. Output tokens are counted by the server's usage, as the tools do if it
//! is sent. If it is not, LMDeploy and SGLang report the requested lengths, and we report the
//! counted ones. And a figure without a measurement is left out, while the tools write 0.

pub mod aiperf;
mod figures;
pub mod inferencex;
pub mod sglang;
pub mod vllm;

#[cfg(test)]
mod tests;

pub use figures::{Figures, Good};

use figures::Sums;

use minijinja::value::{Serde, Value};
use model::exchange::{Event, Exchange, Kind, Phase};
use model::units::Nanos;
use result::metric::{Objective, count};
use result::summary::{Column, RunFacts};
use runs::Reported;
use scenario::plan::Plan;
use serde::Serialize;
use statistics::Ranked;
use tokenizer::python::{self, Style};

/// Names of objectives that the tools know, there and here.
const OBJECTIVES: [(&str, &str); 3] = [("ttft", "ttft"), ("tpot", "tpot"), ("e2el", "e2e")];

pub struct Compatible<'a> {
    pub reported: &'a Reported,
    pub figures: Figures,
    /// Every request, if requested, in the order of their numbers.
    pub requests: Vec<Request>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Nothing: the figures are enough.
    Nothing,
    /// The times that even a short result file contains.
    Times,
    /// All that a detailed result file has, texts included.
    All,
}

/// A request as a tool keeps it. Times are in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    index: u64,
    answered: bool,
    /// The time of sending, since the run's origin.
    start: f64,
    queued: f64,
    latency: f64,
    /// Absent if it is not kept.
    detail: Option<Box<Detail>>,
}

/// The part of a request that a tool keeps only if details are requested.
#[derive(Clone, Debug, Default, PartialEq)]
struct Detail {
    input: Option<u32>,
    output: u32,
    ttft: f64,
    itls: Vec<f64>,
    text: String,
    error: String,
}

impl<'a> Compatible<'a> {
    /// Reads a run's exchanges, twice. Errors: the first error of reading.
    pub fn read<I, X>(
        tool: Tool,
        reported: &'a Reported,
        facts: &RunFacts,
        keep: Keep,
        open: impl Fn() -> Result<I, X>,
    ) -> Result<Self, X>
    where
        I: Iterator<Item = Result<Exchange, X>>,
    {
        let rules = Rules::new(tool, &reported.plan, facts);
        let mut first_sent = None;
        for exchange in open()? {
            let exchange = exchange?;
            if let Some(seen) = rules.see(&exchange)
                && seen.answered
            {
                first_sent = Some(first_sent.map_or(seen.sent, |first| seen.sent.min(first)));
            }
        }
        let mut sums = Sums::new(first_sent.unwrap_or_default(), objectives(facts));
        let mut requests = Vec::new();
        for exchange in open()? {
            let exchange = exchange?;
            let Some(seen) = rules.see(&exchange) else { continue };
            sums.add(&seen);
            if keep != Keep::Nothing {
                requests.push(Request::new(tool, &seen, keep));
            }
        }
        requests.sort_by_key(|request| request.index);
        let duration = reported.summary.throughput.duration_s;
        Ok(Compatible { reported, figures: sums.finish(duration), requests })
    }

    /// The tool's name for the way the server is called: `sglang-oai-chat`.
    fn backend(&self, names: &[(&str, &str, &'static str)]) -> String {
        let plugin = &self.reported.plan.backend;
        let (name, route) = (plugin.name.as_str(), route(&self.reported.plan));
        let known = names.iter().find(|(of, by, _)| (*of, *by) == (name, route));
        known.map_or_else(|| name.to_owned(), |(_, _, theirs)| (*theirs).to_owned())
    }

    /// The requested rate per second; infinite if requests did not follow a rate.
    fn request_rate(&self) -> f64 {
        self.reported.summary.run.request_rate.unwrap_or(f64::INFINITY)
    }
}

/// The run's objectives by the tools' names, if the tools know them all.
fn objectives(facts: &RunFacts) -> Option<Vec<(&'static str, f64)>> {
    let objectives = &facts.run.goodput;
    let named = |objective: &Objective| {
        let known = OBJECTIVES.iter().find(|(_, ours)| objective.metric == *ours);
        known.map(|(theirs, _)| (*theirs, objective.at_most_ms))
    };
    let known: Option<Vec<_>> = objectives.iter().map(named).collect();
    known.filter(|known| !known.is_empty())
}

fn statistics(object: &mut Object, name: &str, of: &statistics::Figures, percentiles: &[f64]) {
    object.field(&format!("mean_{name}_ms"), of.mean());
    object.field(&format!("median_{name}_ms"), of.percentile(50.0));
    object.field(&format!("std_{name}_ms"), of.std());
    for percent in percentiles {
        object.field(&format!("p{percent}_{name}_ms"), of.percentile(*percent));
    }
}

fn lengths_and_gaps(object: &mut Object, details: &[&Detail]) {
    object.field("input_lens", column(details, |detail| detail.input));
    object.field("output_lens", column(details, |detail| detail.output));
    object.field("ttfts", column(details, |detail| detail.ttft));
    object.field("itls", column(details, |detail| &detail.itls));
}

fn texts_and_errors(object: &mut Object, details: &[&Detail]) {
    object.field("generated_texts", column(details, |detail| &detail.text));
    object.field("errors", column(details, |detail| &detail.error));
}

fn column<'a, T>(details: &[&'a Detail], of: impl Fn(&'a Detail) -> T) -> Vec<T> {
    details.iter().map(|detail| of(detail)).collect()
}

/// An object as Python's `json.dumps` writes it; a repeated name replaces its value.
#[derive(Default)]
struct Object(Vec<(String, Value)>);

impl Object {
    fn field(&mut self, name: &str, value: impl Serialize) {
        self.0.push((name.to_owned(), Serde(value).into()));
    }

    fn measured(&mut self, name: &str, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.field(name, value);
        }
    }

    fn finish(self) -> String {
        let written = python::text(&Value::from_pairs(self.0), &Style::default(), usize::MAX);
        debug_assert!(written.is_ok(), "{written:?}");
        written.unwrap_or_default()
    }
}

// A request as another tool sees it: its counted chunks, its begin and end, and its tokens.
//
// The tools look at chunks, we record events. A chunk may yield several events at one instant: a
// piece of the answer and its stop reason count as one chunk if they came together.

/// A tool whose figures can be reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// `vllm bench serve`.
    Vllm,
    /// SGLang's `bench_serving`.
    Sglang,
    /// LMDeploy's `profile_restful_api.py`.
    Lmdeploy,
    /// AIPerf.
    Aiperf,
}

/// The rules by which a tool reads a run.
struct Rules<'a> {
    tool: Tool,
    /// True if each chunk counts for the tokens that it states.
    by_tokens: bool,
    streamed: bool,
    retokenized: &'a Column<u32>,
    /// True if the tokenizer of this side is the model's own.
    exact: bool,
}

struct ToolRequest<'a> {
    exchange: &'a Exchange,
    answered: bool,
    sent: Nanos,
    /// The time of the first chunk that counts; absent if replies are not streamed.
    first: Option<Nanos>,
    end: Option<Nanos>,
    input: Option<u32>,
    output: Option<u32>,
    retokenized: Option<u32>,
    rules: &'a Rules<'a>,
}

/// The route of a run's requests: as configured, else the shipped backend's own.
fn route(plan: &Plan) -> &str {
    let configured = plan.backend.config.get("route").and_then(|route| route.as_str());
    configured.unwrap_or(match plan.backend.name.as_str() {
        "sglang" => "generate",
        "vllm" | "lmdeploy" => "completions",
        _ => "chat",
    })
}

impl<'a> Rules<'a> {
    fn new(tool: Tool, plan: &Plan, facts: &'a RunFacts) -> Self {
        let tokenizer = facts.run.tokenizer.as_ref();
        Rules {
            tool,
            by_tokens: tool == Tool::Sglang && route(plan) == "generate",
            streamed: facts.run.streamed,
            retokenized: &facts.retokenized,
            exact: tokenizer.is_some_and(|tokenizer| !tokenizer.approximate),
        }
    }

    /// A request of the measurement, if it is one.
    fn see(&'a self, exchange: &'a Exchange) -> Option<ToolRequest<'a>> {
        (exchange.phase == Phase::Measure).then(|| self.read(exchange))
    }

    /// A request of any phase.
    fn read(&'a self, exchange: &'a Exchange) -> ToolRequest<'a> {
        let retokenized = self.retokenized.get(exchange.index).filter(|_| self.exact);
        let counted = count::output(exchange, retokenized).map(|count| count.tokens);
        let usage = exchange.usage.and_then(|usage| usage.output_tokens);
        let dataset = exchange.sample.input_tokens;
        let counted_input = count::input(exchange).map(|count| count.tokens);
        let mut seen = ToolRequest {
            exchange,
            answered: exchange.is_ok() && exchange.sent.is_some(),
            sent: exchange.sent.unwrap_or(exchange.due),
            first: None,
            end: None,
            // The others count the prompts that they made, whatever the server says.
            input: match self.tool {
                Tool::Vllm | Tool::Aiperf => counted_input,
                Tool::Sglang | Tool::Lmdeploy => dataset.or(counted_input),
            },
            output: match self.tool {
                Tool::Vllm => usage.filter(|n| *n > 0).or(retokenized).or(counted),
                Tool::Sglang | Tool::Lmdeploy | Tool::Aiperf => counted,
            },
            retokenized,
            rules: self,
        };
        let mut seen_at: Option<(Nanos, Nanos)> = None;
        seen.chunks(&mut |at, _| {
            seen_at = Some((seen_at.map_or(at, |(first, _)| first), at));
        });
        if let Some((first, end)) = seen_at {
            seen.first = Some(first).filter(|_| self.streamed);
            seen.end = Some(end);
        }
        // The clock of these goes on to the end marker.
        if matches!(self.tool, Tool::Sglang | Tool::Lmdeploy) {
            seen.end = exchange.events.at.last().copied();
        }
        seen
    }
}

impl ToolRequest<'_> {
    /// The time from sending to the end, if it ended.
    fn latency(&self) -> Option<Nanos> {
        self.end.map(|end| end.since(self.sent))
    }

    fn ttft(&self) -> Option<Nanos> {
        self.first.map(|first| first.since(self.sent))
    }

    /// Milliseconds for each token after the first.
    fn tpot(&self) -> Option<f64> {
        let further = self.output?.checked_sub(1).filter(|further| *further > 0)?;
        let span = self.end?.since(self.first?);
        Some(span.as_millis_f64() / f64::from(further))
    }

    /// Shows each gap between chunks, in nanoseconds, its count, and the instant at which it began.
    fn gaps(&self, mut show: impl FnMut(Nanos, f64, u64)) {
        if !self.rules.streamed {
            return;
        }
        let mut before: Option<Nanos> = None;
        self.chunks(&mut |at, times| {
            if let Some(before) = before.replace(at) {
                show(before, at.since(before).0 as f64 / times as f64, times);
            }
        });
    }

    /// Passes on the arrival time of each chunk that counts, and its number of tokens.
    fn chunks(&self, show: &mut dyn FnMut(Nanos, u64)) {
        let events = self.exchange.events.iter();
        if self.rules.by_tokens {
            return by_tokens(events, show);
        }
        let mut shown = None;
        for event in events {
            let counts = match (self.rules.tool, event.kind) {
                (Tool::Vllm, Kind::Finish) => shown != Some(event.at),
                (Tool::Vllm, kind) => kind == Kind::Role || kind.is_output(),
                (Tool::Aiperf, kind) => kind.is_output() && event.bytes > 0,
                (Tool::Sglang, Kind::Text | Kind::Reasoning) => event.bytes > 0,
                (Tool::Lmdeploy, Kind::Text) => event.bytes > 0,
                (Tool::Sglang | Tool::Lmdeploy, _) => false,
            };
            if counts {
                shown = Some(event.at);
                show(event.at, 1);
            }
        }
    }
}

/// SGLang's native route: nothing counts before there is text; then a chunk counts for its tokens,
/// and one without does not move the clock.
fn by_tokens(events: impl Iterator<Item = Event>, show: &mut dyn FnMut(Nanos, u64)) {
    let mut begun = false;
    for event in events.filter(|event| event.kind.is_output()) {
        let tokens = event.tokens.unwrap_or(1);
        if begun && tokens > 0 {
            show(event.at, u64::from(tokens));
        } else if !begun && event.bytes > 0 {
            begun = true;
            show(event.at, 1);
        }
    }
}

//! A request as another tool sees it: its counted chunks, its begin and end, and its tokens.
//!
//! The tools look at chunks, we record events. A chunk may yield several events at one instant: a
//! piece of the answer and its stop reason count as one chunk if they came together.

use model::exchange::{Event, Exchange, Kind, Phase};
use model::units::Nanos;
use result::metric::count;
use result::summary::{Column, RunFacts};
use scenario::plan::Plan;

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
pub(super) struct Rules<'a> {
    tool: Tool,
    /// True if each chunk counts for the tokens that it states.
    by_tokens: bool,
    streamed: bool,
    retokenized: &'a Column<u32>,
    /// True if the tokenizer of this side is the model's own.
    exact: bool,
}

pub(super) struct ToolRequest<'a> {
    pub(super) exchange: &'a Exchange,
    pub(super) answered: bool,
    pub(super) sent: Nanos,
    /// The time of the first chunk that counts; absent if replies are not streamed.
    pub(super) first: Option<Nanos>,
    pub(super) end: Option<Nanos>,
    pub(super) input: Option<u32>,
    pub(super) output: Option<u32>,
    pub(super) retokenized: Option<u32>,
    rules: &'a Rules<'a>,
}

/// The route of a run's requests: as configured, else the shipped backend's own.
pub(super) fn route(plan: &Plan) -> &str {
    let configured = plan.backend.config.get("route").and_then(|route| route.as_str());
    configured.unwrap_or(match plan.backend.name.as_str() {
        "sglang" => "generate",
        "vllm" | "lmdeploy" => "completions",
        _ => "chat",
    })
}

impl<'a> Rules<'a> {
    pub(super) fn new(tool: Tool, plan: &Plan, facts: &'a RunFacts) -> Self {
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
    pub(super) fn see(&'a self, exchange: &'a Exchange) -> Option<ToolRequest<'a>> {
        (exchange.phase == Phase::Measure).then(|| self.read(exchange))
    }

    /// A request of any phase.
    pub(super) fn read(&'a self, exchange: &'a Exchange) -> ToolRequest<'a> {
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
        let mut last = None;
        seen.chunks(&mut |at, _| {
            seen_first(&mut last, at);
        });
        if let Some((first, end)) = last {
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

/// Keeps the first and the last of the instants that come.
fn seen_first(kept: &mut Option<(Nanos, Nanos)>, at: Nanos) {
    *kept = Some((kept.map_or(at, |(first, _)| first), at));
}

impl ToolRequest<'_> {
    /// The time from sending to the end, if it ended.
    pub(super) fn latency(&self) -> Option<Nanos> {
        self.end.map(|end| end.since(self.sent))
    }

    pub(super) fn ttft(&self) -> Option<Nanos> {
        self.first.map(|first| first.since(self.sent))
    }

    /// Milliseconds for each token after the first.
    pub(super) fn tpot(&self) -> Option<f64> {
        let further = self.output?.checked_sub(1).filter(|further| *further > 0)?;
        let span = self.end?.since(self.first?);
        Some(span.as_millis_f64() / f64::from(further))
    }

    /// Shows each gap between chunks, in nanoseconds, its count, and the instant at which it began.
    pub(super) fn gaps(&self, mut show: impl FnMut(Nanos, f64, u64)) {
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

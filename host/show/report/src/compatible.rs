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
mod seen;
pub mod sglang;
pub mod vllm;

#[cfg(test)]
mod tests;

pub use figures::{Figures, Good};
pub use seen::Tool;

use figures::Sums;
use seen::Rules;

use minijinja::value::{Serde, Value};
use model::exchange::Exchange;
use result::metric::Objective;
use result::summary::RunFacts;
use runs::Reported;
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
        let (name, route) = (plugin.name.as_str(), seen::route(&self.reported.plan));
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

/// An object of a result file in the notation of Python's `json.dumps`. A name that comes again has
/// its value replaced, as in Python.
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

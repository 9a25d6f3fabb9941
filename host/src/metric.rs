//! What is measured of an exchange: the catalogue of metrics, each with its unit, its definition
//! and the peer whose figure it equals. To add a metric is to add an entry here.
//!
//! A metric takes its samples from one exchange and gives none where there is nothing to measure:
//! absent is not zero. Statistics over many exchanges are `stats`', figures of a run as a whole
//! (throughput, concurrency) are `summary`'s.

pub mod count;
pub mod reading;

#[cfg(test)]
mod tests;

pub use count::{Count, Source};
pub use reading::Reading;

/// The unit of a metric's samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds.
    Milliseconds,
    /// Tokens.
    Tokens,
}

impl Unit {
    /// The unit's symbol, as results name it.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Milliseconds => "ms",
            Unit::Tokens => "tokens",
        }
    }
}

/// Which exchanges of the measurement a metric is taken of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Those that were answered. What the server did.
    Answered,
    /// All that were sent, whatever came of them. What this client did.
    Sent,
}

/// How a metric's samples are taken from an exchange.
#[derive(Clone, Copy)]
pub enum Measure {
    /// At most one sample an exchange.
    One(fn(&Reading<'_>) -> Option<f64>),
    /// Any number of samples an exchange, pooled over the run.
    Many(fn(&Reading<'_>, &mut Vec<f64>)),
}

/// One metric of the catalogue.
pub struct Metric {
    /// Its stable name, in results and thresholds.
    pub name: &'static str,
    /// The unit of its samples.
    pub unit: Unit,
    /// What it is, as a formula. `n` is the number of output tokens.
    pub definition: &'static str,
    /// Whose figure it equals, under which name there.
    pub equals: &'static str,
    /// Which exchanges it is taken of.
    pub of: Of,
    /// How it is taken.
    pub measure: Measure,
}

/// Time to first token: the headline's definition.
pub const TTFT: &str = "ttft";
/// End-to-end latency: the headline's definition.
pub const E2E: &str = "e2e";
/// Time per output token after the first: the headline's definition.
pub const TPOT: &str = "tpot";
/// Inter-token latency: the headline's definition.
pub const ITL: &str = "itl";
/// First token, counted from when the request was due.
pub const TTFT_FROM_DUE: &str = "ttft-from-due";
/// End, counted from when the request was due.
pub const E2E_FROM_DUE: &str = "e2e-from-due";
/// How late this client sent.
pub const SEND_LAG: &str = "send-lag";
/// How long the cap on requests in flight held a request back.
pub const QUEUE: &str = "queue";

use Measure::{Many, One};
use Of::{Answered, Sent};
use Unit::{Milliseconds, Tokens};

/// Every metric, in the order in which results list them.
pub static CATALOGUE: [Metric; 17] = [
    Metric {
        name: TTFT,
        unit: Milliseconds,
        definition: "first output event (text, reasoning or tool call) that carries bytes, else first output event, - sent; streamed replies only",
        equals: "TTFT of LMDeploy, SGLang, AIPerf and guidellm",
        of: Answered,
        measure: One(|reading| reading.ttft()),
    },
    Metric {
        name: "ttft-any",
        unit: Milliseconds,
        definition: "first event of any kind, a role-only one included, - sent; streamed replies only",
        equals: "TTFT of vLLM (bench serve, vllm-bench) and evalscope",
        of: Answered,
        measure: One(|reading| reading.ttft_any()),
    },
    Metric {
        name: "ttft-answer",
        unit: Milliseconds,
        definition: "first text event that carries bytes, reasoning not counted, - sent; streamed replies only",
        equals: "TTFO of AIPerf, TTFOT of guidellm",
        of: Answered,
        measure: One(|reading| reading.ttft_answer()),
    },
    Metric {
        name: TTFT_FROM_DUE,
        unit: Milliseconds,
        definition: "as ttft, but - due",
        equals: "TTFT of MLPerf's Server scenario, which counts from the scheduled arrival",
        of: Answered,
        measure: One(|reading| reading.ttft_from_due()),
    },
    Metric {
        name: E2E,
        unit: Milliseconds,
        definition: "last event (the end marker) - sent",
        equals: "E2E latency of LMDeploy and SGLang",
        of: Answered,
        measure: One(|reading| reading.e2e()),
    },
    Metric {
        name: "e2e-last-token",
        unit: Milliseconds,
        definition: "last output event that carries bytes, else last output event, - sent",
        equals: "request latency of AIPerf; E2EL of vLLM where the last piece carries text",
        of: Answered,
        measure: One(|reading| reading.e2e_last_token()),
    },
    Metric {
        name: E2E_FROM_DUE,
        unit: Milliseconds,
        definition: "as e2e, but - due",
        equals: "latency of MLPerf's Server scenario; E2EL including client queue of vLLM",
        of: Answered,
        measure: One(|reading| reading.e2e_from_due()),
    },
    Metric {
        name: TPOT,
        unit: Milliseconds,
        definition: "(e2e - ttft) / (n - 1), n > 1",
        equals: "TPOT of LMDeploy and SGLang",
        of: Answered,
        measure: One(|reading| reading.tpot()),
    },
    Metric {
        name: "tpot-last-token",
        unit: Milliseconds,
        definition: "(e2e-last-token - ttft) / (n - 1), n > 1",
        equals: "TPOT of inference-perf, ITL of AIPerf, ITL of guidellm a request",
        of: Answered,
        measure: One(|reading| reading.tpot_last_token()),
    },
    Metric {
        name: "tpot-with-first",
        unit: Milliseconds,
        definition: "e2e-last-token / n, n > 0",
        equals: "TPOT of guidellm, and so of GPUStack's benchmark-runner",
        of: Answered,
        measure: One(|reading| reading.tpot_with_first()),
    },
    Metric {
        name: ITL,
        unit: Milliseconds,
        definition: "gaps between successive output events that carry bytes, pooled over requests; streamed replies only",
        equals: "ITL of LMDeploy and evalscope, of SGLang's OpenAI routes; of vLLM but for events without text",
        of: Answered,
        measure: Many(|reading, samples| reading.itl(samples)),
    },
    Metric {
        name: "itl-token",
        unit: Milliseconds,
        definition: "gap between successive output events divided by the later one's tokens, once for each of them, where the server states tokens; pooled over requests; streamed replies only",
        equals: "ITL of SGLang's native route",
        of: Answered,
        measure: Many(|reading, samples| reading.itl_token(samples)),
    },
    Metric {
        name: SEND_LAG,
        unit: Milliseconds,
        definition: "sent - the later of due and granted",
        equals: "schedule delay of inference-perf",
        of: Sent,
        measure: One(|reading| reading.send_lag()),
    },
    Metric {
        name: QUEUE,
        unit: Milliseconds,
        definition: "granted - due, where requests in flight are capped",
        equals: "client queue time of vLLM",
        of: Sent,
        measure: One(|reading| reading.queue()),
    },
    Metric {
        name: "input-tokens",
        unit: Tokens,
        definition: "tokens of the prompt: the server's usage, else the dataset's count",
        equals: "input length of vLLM and AIPerf",
        of: Answered,
        measure: One(|reading| reading.input_length()),
    },
    Metric {
        name: "output-tokens",
        unit: Tokens,
        definition: "n: the server's usage, else the tokens it states of each piece, else the length asked for where it stopped for length, else the text tokenized again",
        equals: "output length of vLLM and AIPerf (with usage)",
        of: Answered,
        measure: One(|reading| reading.output_length()),
    },
    Metric {
        name: "cached-input-tokens",
        unit: Tokens,
        definition: "tokens of the prompt that the server says it found in its prefix cache",
        equals: "cached tokens of SGLang's cache report",
        of: Answered,
        measure: One(|reading| reading.cached_input_length()),
    },
];

/// The metric of that name.
pub fn by_name(name: &str) -> Option<&'static Metric> {
    CATALOGUE.iter().find(|metric| metric.name == name)
}

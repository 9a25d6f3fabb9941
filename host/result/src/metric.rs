//! The catalogue of metrics, each with its unit, its definition and the tools whose figure it equals.
//! To add a metric, add an entry here.
//!
//! A metric takes its samples from one exchange or from one session, and takes none if there is nothing to
//! measure: absent is not zero. `stats` computes statistics over many exchanges, `summary` the figures of a
//! whole run (throughput, concurrency).

pub mod count;
mod definition;
mod names;
pub mod objective;
pub mod reading;
#[cfg(test)]
mod reference;
mod unit;

#[cfg(test)]
mod tests;

pub use count::{Count, Source};
pub use names::*;
pub use objective::Objective;
pub use reading::Reading;
pub use unit::Unit;

use crate::summary::Session;
use model::units::Nanos;

/// Which exchanges of the measurement a metric is taken of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Those that were answered. What the server did.
    Answered,
    /// All that were sent, whatever their outcome. What this client did.
    Sent,
    /// Those of sessions whose every request was answered, a session at a time.
    Session,
}

/// How a metric's samples are taken from an exchange.
#[derive(Clone, Copy)]
pub enum Measure {
    /// At most one sample per exchange.
    One(Single),
    /// Any number of samples per exchange, pooled over the run. Each is passed on in whole steps of the
    /// metric's [`Unit::scale`], with how often it occurs.
    Pooled(Shown),
    /// At most one sample per session.
    Session(Whole),
}

/// Takes the one sample of a session.
pub type Whole = fn(&Session) -> Option<f64>;

/// Takes the one sample of an exchange.
pub type Single = fn(&Reading<'_>) -> Option<f64>;

/// Passes on the pooled samples of an exchange: the time of each, its value, and how often it occurs.
pub type Shown = fn(&Reading<'_>, &mut dyn FnMut(Nanos, u64, u64));

/// One metric of the catalogue.
pub struct Metric {
    /// Its stable name, in results and thresholds.
    pub name: &'static str,
    /// The unit of its samples.
    pub unit: Unit,
    /// Its definition, as a formula. `n` is the number of output tokens.
    pub definition: &'static str,
    /// The figures of other tools that it equals, under their names.
    pub equals: &'static str,
    /// Which exchanges it covers.
    pub of: Of,
    /// How it is taken.
    pub measure: Measure,
}

use Measure::{One, Pooled};
use Of::{Answered, Sent};
use Unit::{Milliseconds, Requests, Share, Tokens, TokensPerEvent, TokensPerSecond};

/// Every metric, in the order in which results list them.
pub static CATALOGUE: &[Metric] = &[
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
        definition: "first event of any kind, including a role-only event, - sent; streamed replies only",
        equals: "TTFT of vLLM (bench serve, vllm-bench) and evalscope",
        of: Answered,
        measure: One(|reading| reading.ttft_any()),
    },
    Metric {
        name: "ttft-reasoning",
        unit: Milliseconds,
        definition: "first reasoning event that carries bytes - sent; streamed replies only",
        equals: "no other tool's; the earlier of this, ttft-answer and the first tool call is ttft",
        of: Answered,
        measure: One(|reading| reading.ttft_reasoning()),
    },
    Metric {
        name: "ttft-answer",
        unit: Milliseconds,
        definition: "first text event that carries bytes, excluding reasoning, - sent; streamed replies only",
        equals: "TTFO of AIPerf, TTFOT of guidellm",
        of: Answered,
        measure: One(|reading| reading.ttft_answer()),
    },
    Metric {
        name: TTFT_FROM_DUE,
        unit: Milliseconds,
        definition: "as ttft, but - due instead of - sent",
        equals: "TTFT of MLPerf's Server scenario, which counts from the scheduled arrival",
        of: Answered,
        measure: One(|reading| reading.ttft_from_due()),
    },
    Metric {
        name: "ttft-with-connect",
        unit: Milliseconds,
        definition: "as ttft, but - start of opening the connection if the request waited for that, else - sent",
        equals: "TTFT of clients that open a connection as part of the request: SGLang's and LMDeploy's",
        of: Answered,
        measure: One(|reading| reading.ttft_with_connect()),
    },
    Metric {
        name: "ttft-second",
        unit: Milliseconds,
        definition: "second output event that carries bytes - the first; streamed replies only",
        equals: "TTST of AIPerf",
        of: Answered,
        measure: One(|reading| reading.ttft_second()),
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
        equals: "request latency of AIPerf; E2EL of vLLM if the last chunk carries text",
        of: Answered,
        measure: One(|reading| reading.e2e_last_token()),
    },
    Metric {
        name: "e2e-usage",
        unit: Milliseconds,
        definition: "usage event - sent; streamed replies only",
        equals: "latency of evalscope; E2EL of TensorRT-LLM and vllm-bench (chat), where usage comes after the last chunk",
        of: Answered,
        measure: One(|reading| reading.e2e_usage()),
    },
    Metric {
        name: "e2e-end",
        unit: Milliseconds,
        definition: "end of the reply's bytes - sent",
        equals: "request latency of guidellm and inference-perf",
        of: Answered,
        measure: One(|reading| reading.e2e_end()),
    },
    Metric {
        name: E2E_FROM_DUE,
        unit: Milliseconds,
        definition: "as e2e, but - due instead of - sent",
        equals: "latency of MLPerf's Server scenario; E2EL including client queue of vLLM",
        of: Answered,
        measure: One(|reading| reading.e2e_from_due()),
    },
    Metric {
        name: TPOT,
        unit: Milliseconds,
        definition: "(e2e - ttft) / (n - 1), n > 1",
        equals: "TPOT of LMDeploy, SGLang and MLPerf",
        of: Answered,
        measure: One(|reading| reading.tpot()),
    },
    Metric {
        name: "tpot-last-token",
        unit: Milliseconds,
        definition: "(e2e-last-token - ttft) / (n - 1), n > 1",
        equals: "TPOT of inference-perf and vLLM, ITL of AIPerf and GenAI-Perf, ITL per request of guidellm",
        of: Answered,
        measure: One(|reading| reading.tpot_last_token()),
    },
    Metric {
        name: "tpot-after-first-event",
        unit: Milliseconds,
        definition: "(e2e-last-token - ttft) / (n - tokens of the first event), if the server states the tokens of each event",
        equals: "ITL of AIPerf where it subtracts the first chunk's tokens",
        of: Answered,
        measure: One(|reading| reading.tpot_after_first_event()),
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
        name: "normalized-latency",
        unit: Milliseconds,
        definition: "e2e-end / n, n > 0",
        equals: "NTPOT of inference-perf, normalized latency of the vLLM paper",
        of: Answered,
        measure: One(|reading| reading.normalized_latency()),
    },
    Metric {
        name: ITL,
        unit: Milliseconds,
        definition: "gaps between successive output events that carry bytes, pooled over requests; streamed replies only",
        equals: "ITL of LMDeploy and evalscope, of SGLang's OpenAI routes; ICL of AIPerf; of vLLM except for events without text",
        of: Answered,
        measure: Pooled(|reading, show| reading.gaps(show)),
    },
    Metric {
        name: "itl-token",
        unit: Milliseconds,
        definition: "gap between successive output events divided equally among the tokens of the later event, one sample per token, if the server states the tokens of each event; pooled over requests; streamed replies only",
        equals: "ITL of SGLang's native route",
        of: Answered,
        measure: Pooled(|reading, show| reading.token_gaps(show)),
    },
    Metric {
        name: "itl-dealt",
        unit: Milliseconds,
        definition: "as itl-token, but if the server does not state the tokens of each event, n are distributed over the output events by their bytes, at least one to each event that carries any",
        equals: "approximately the ITL of SGLang's other routes with speculative decoding, which retokenize each event",
        of: Answered,
        measure: Pooled(|reading, show| reading.dealt_gaps(show)),
    },
    Metric {
        name: "itl-max",
        unit: Milliseconds,
        definition: "longest gap between successive output events that carry bytes; streamed replies only",
        equals: "the largest gap between chunks of a request, as used by SLOs on stutter",
        of: Answered,
        measure: One(|reading| reading.itl_max()),
    },
    Metric {
        name: STALL_SHARE,
        unit: Share,
        definition: "tokens after the first that came later than the first token + k * limit, k = 1 for the second token, / (n - 1), n > 1; limit is the run's objective on tpot; tokens of an event as in itl-dealt; streamed replies only; absent without such an objective",
        equals: "no other tool's; as 1 - the fluidity index of Etalon, but its deadlines move after each miss",
        of: Answered,
        measure: One(|reading| reading.stall_share()),
    },
    Metric {
        name: OUTPUT_SPEED,
        unit: TokensPerSecond,
        definition: "n / e2e",
        equals: "tokens per second per user of TensorRT-LLM; E2E output throughput per user of AIPerf",
        of: Answered,
        measure: One(|reading| reading.output_speed()),
    },
    Metric {
        name: "decode-speed",
        unit: TokensPerSecond,
        definition: "1 / tpot-last-token",
        equals: "output token throughput per user of AIPerf and GenAI-Perf; interactivity of InferenceX",
        of: Answered,
        measure: One(|reading| reading.decode_speed()),
    },
    Metric {
        name: "prefill-speed",
        unit: TokensPerSecond,
        definition: "input-tokens / ttft",
        equals: "prefill throughput per user of AIPerf",
        of: Answered,
        measure: One(|reading| reading.prefill_speed()),
    },
    Metric {
        name: "tokens-per-event",
        unit: TokensPerEvent,
        definition: "n / output events that carry bytes; streamed replies only",
        equals: "tokens per chunk; with speculative decoding, the accepted tokens per step as a client sees them",
        of: Answered,
        measure: One(|reading| reading.tokens_per_event()),
    },
    Metric {
        name: "decoded-tokens-per-event",
        unit: TokensPerEvent,
        definition: "(n - 1) / (output events that carry bytes - 1); streamed replies only",
        equals: "decoded tokens per iteration of evalscope; avg_decoded_tokens_per_iter of TensorRT-LLM if each iteration is an event",
        of: Answered,
        measure: One(|reading| reading.decoded_per_event()),
    },
    Metric {
        name: "event-tokens",
        unit: Tokens,
        definition: "tokens of each output event except the first, if the server states them; pooled over requests; streamed replies only",
        equals: "accepted length per step of SGLang if each step is an event",
        of: Answered,
        measure: Pooled(|reading, show| reading.event_tokens(show)),
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
        definition: "granted - due, if requests in flight are capped",
        equals: "client queue time of vLLM",
        of: Sent,
        measure: One(|reading| reading.queue()),
    },
    Metric {
        name: CONNECTION_WAIT,
        unit: Milliseconds,
        definition: "connection ready (including TLS) - start of opening it, if the request waited for that",
        equals: "blocked and connecting time of AIPerf's HTTP trace",
        of: Sent,
        measure: One(|reading| reading.connection_wait()),
    },
    Metric {
        name: "lookup",
        unit: Milliseconds,
        definition: "host name resolved - start of opening the connection, once per connection",
        equals: "DNS time of AIPerf's HTTP trace; time_namelookup of curl",
        of: Sent,
        measure: One(|reading| reading.lookup()),
    },
    Metric {
        name: "connect",
        unit: Milliseconds,
        definition: "connection established - host name resolved, else start of opening the connection, once per connection",
        equals: "connecting time of AIPerf's HTTP trace; time_connect - time_namelookup of curl",
        of: Sent,
        measure: One(|reading| reading.connect()),
    },
    Metric {
        name: "tls",
        unit: Milliseconds,
        definition: "TLS handshake complete - connection established, once per connection",
        equals: "time_appconnect - time_connect of curl",
        of: Sent,
        measure: One(|reading| reading.tls()),
    },
    Metric {
        name: "upload",
        unit: Milliseconds,
        definition: "last byte of the request written to the socket - sent",
        equals: "sending time of AIPerf's HTTP trace",
        of: Sent,
        measure: One(|reading| reading.upload()),
    },
    Metric {
        name: "time-to-first-byte",
        unit: Milliseconds,
        definition: "first byte of the reply - sent",
        equals: "waiting time of AIPerf's HTTP trace plus upload; time_starttransfer of curl on an open connection",
        of: Sent,
        measure: One(|reading| reading.first_byte()),
    },
    Metric {
        name: "time-to-headers",
        unit: Milliseconds,
        definition: "headers of the reply complete - sent",
        equals: "time to response headers of browsers and proxies",
        of: Sent,
        measure: One(|reading| reading.headers()),
    },
    Metric {
        name: READ_LAG,
        unit: Milliseconds,
        definition: "longest time that bytes of the reply waited in the socket before they were read",
        equals: "no other tool's; clients that read late add it to TTFT and gaps unnoticed",
        of: Sent,
        measure: One(|reading| reading.read_lag()),
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
        definition: "n: the server's usage, else the sum of the tokens it states for each chunk, else the requested length if it stopped for length, else the retokenized text",
        equals: "output length of vLLM and AIPerf (with usage)",
        of: Answered,
        measure: One(|reading| reading.output_length()),
    },
    Metric {
        name: "cached-input-tokens",
        unit: Tokens,
        definition: "tokens of the prompt that the server reports as found in its prefix cache",
        equals: "cached tokens of SGLang's cache report",
        of: Answered,
        measure: One(|reading| reading.cached_input_length()),
    },
    Metric {
        name: "reasoning-tokens",
        unit: Tokens,
        definition: "tokens of the answer that the server reports as reasoning",
        equals: "reasoning tokens of AIPerf",
        of: Answered,
        measure: One(|reading| reading.reasoning_length()),
    },
    Metric {
        name: PARENT_WAIT,
        unit: Milliseconds,
        definition: "due - released, of requests that depend on several: from when the first of its dependencies let it go until the last one did",
        equals: "no other tool's; what a join of parallel branches waits for",
        of: Sent,
        measure: One(|reading| reading.parent_wait()),
    },
    Metric {
        name: SESSION_TIME,
        unit: Milliseconds,
        definition: "last end of the session's requests - due of its first",
        equals: "task completion time of an agent; duration of a conversation",
        of: Of::Session,
        measure: Measure::Session(|session| Some(session.time.as_millis_f64())),
    },
    Metric {
        name: SESSION_IN_FLIGHT,
        unit: Milliseconds,
        definition: "time in which at least one request of the session was in flight, each from sent to its end",
        equals: "no other tool's; the server's part of session-time",
        of: Of::Session,
        measure: Measure::Session(|session| Some(session.in_flight.as_millis_f64())),
    },
    Metric {
        name: SESSION_IDLE,
        unit: Milliseconds,
        definition: "session-time - session-in-flight: think times, tool times, and waits in this client",
        equals: "no other tool's; the dataset's part of session-time",
        of: Of::Session,
        measure: Measure::Session(|session| Some(session.idle().as_millis_f64())),
    },
    Metric {
        name: SESSION_TURNS,
        unit: Requests,
        definition: "requests of the session",
        equals: "turns per conversation of AIPerf",
        of: Of::Session,
        measure: Measure::Session(|session| Some(session.requests as f64)),
    },
];

/// The metric of that name.
pub fn by_name(name: &str) -> Option<&'static Metric> {
    CATALOGUE.iter().find(|metric| metric.name == name)
}

/// The catalogue's metrics with at most one sample per exchange, in its order.
pub fn single() -> impl Iterator<Item = (&'static Metric, Single)> {
    CATALOGUE.iter().filter_map(|metric| match metric.measure {
        Measure::One(measure) => Some((metric, measure)),
        Measure::Pooled(_) | Measure::Session(_) => None,
    })
}

//! AIPerf's export, version 0.13: `profile_export.jsonl`, a line for each request, and the
//! statistics of `profile_export_aiperf.json`.
//!
//! This module owns AIPerf's names and units, and the measured requests' metrics under them. It
//! leaves its chunks, begins and ends to `seen`, and the row that InferenceX makes of these metrics
//! to [`inferencex`](super::inferencex). Tokens are the server's, as with AIPerf's
//! `--use-server-token-count`. Metrics without data in our records (`http_req_sending`) are left
//! out.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::exchange::{Class, Exchange, Outcome, Phase};
use model::units::Nanos;
use result::finding::Id;
use result::summary::RunFacts;
use runs::Reported;
use serde_json::{Map, Value, json};
use statistics::{Figures, Ranked, Spread};

use super::{Rules, Tool, ToolRequest};

/// The percentiles of AIPerf's statistics, in percent.
const PERCENTILES: [f64; 9] = [1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0];

/// Parts of a unit that are kept once samples are only counted.
const SCALE: f64 = 1e6;

/// A metric of a request.
pub(super) struct Metric {
    pub(super) name: &'static str,
    unit: &'static str,
    value: fn(&ToolRequest<'_>) -> Option<f64>,
}

macro_rules! metrics {
    ($($name:literal, $unit:literal, $value:expr;)*) => {
        /// The metrics of a request (`aiperf/metrics/types`), in their display units.
        static METRICS: &[Metric] = &[$(Metric { name: $name, unit: $unit, value: $value }),*];
    };
}

metrics! {
    "time_to_first_token", "ms", |seen| seen.ttft().map(Nanos::as_millis_f64);
    "time_to_second_token", "ms", |seen| gaps_ms(seen).first().copied();
    "request_latency", "ms", |seen| seen.latency().map(Nanos::as_millis_f64);
    "inter_token_latency", "ms", |seen| seen.tpot();
    "decode_duration", "ms", |seen| Some(seen.end?.since(seen.first?).as_millis_f64());
    "output_token_throughput_per_user", "tokens/sec/user",
        |seen| seen.tpot().filter(|ms| *ms > 0.0).map(|ms| 1e3 / ms);
    "e2e_output_token_throughput", "tokens/sec/user",
        |seen| Some(per_s(seen.output?, seen.latency()?)).filter(|rate| rate.is_finite());
    "prefill_throughput_per_user", "tokens/sec/user",
        |seen| Some(per_s(seen.input?, seen.ttft()?)).filter(|rate| rate.is_finite());
    "input_sequence_length", "tokens", |seen| seen.input.map(f64::from);
    "output_sequence_length", "tokens", |seen| seen.output.map(f64::from);
    "reasoning_token_count", "tokens",
        |seen| seen.exchange.usage?.reasoning_tokens.map(f64::from);
    "usage_prompt_tokens", "tokens", |seen| seen.exchange.usage?.input_tokens.map(f64::from);
    "usage_completion_tokens", "tokens", |seen| seen.exchange.usage?.output_tokens.map(f64::from);
}

fn per_s(tokens: u32, time: Nanos) -> f64 {
    f64::from(tokens) / time.as_secs_f64()
}

fn gaps_ms(seen: &ToolRequest<'_>) -> Vec<f64> {
    let mut gaps = Vec::new();
    seen.gaps(|_, gap, _| gaps.push(gap / 1e6));
    gaps
}

/// A number as AIPerf writes it: counts without a point.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 { json!(value as i64) } else { json!(value) }
}

/// The lines of `profile_export.jsonl`, in the order of the records.
pub struct Lines<'a> {
    rules: Rules<'a>,
    /// The run's origin in nanoseconds since 1970; zero if the run has no date.
    origin: u64,
}

impl<'a> Lines<'a> {
    pub fn new(reported: &Reported, facts: &'a RunFacts, origin: Option<u64>) -> Self {
        let rules = Rules::new(Tool::Aiperf, &reported.plan, facts);
        Lines { rules, origin: origin.unwrap_or(0) }
    }

    /// The line of a request; `None` if the request was never sent.
    pub fn line(&self, exchange: &Exchange) -> Option<String> {
        exchange.sent?;
        let seen = self.rules.read(exchange);
        let mut metrics = Map::new();
        let mut put = |name: &str, unit: &str, value: Value| {
            metrics.insert(name.to_owned(), json!({ "value": value, "unit": unit }));
        };
        if seen.answered {
            for metric in METRICS {
                if let Some(value) = (metric.value)(&seen) {
                    put(metric.name, metric.unit, number(value));
                }
            }
            let gaps = gaps_ms(&seen);
            if !gaps.is_empty() {
                put("inter_chunk_latency", "ms", json!(gaps));
            }
        }
        let mut line = json!({ "metadata": self.metadata(exchange), "metrics": metrics });
        if let Outcome::Incomplete { class, message, .. } = &exchange.outcome {
            line["error"] = error(exchange.status, *class, message);
        }
        Some(line.to_string())
    }

    fn metadata(&self, exchange: &Exchange) -> Value {
        let at = |instant: Nanos| self.origin.saturating_add(instant.0);
        let ids = exchange.ids.as_deref();
        let (turn, sent) = (exchange.sample.turn.as_ref(), exchange.sent.unwrap_or(exchange.due));
        let (phase, class) = (phase(exchange.phase), exchange.outcome.class());
        let metadata = json!({
            "session_num": exchange.index,
            "x_request_id": ids.and_then(|ids| ids.request.as_ref()),
            "x_correlation_id": ids.and_then(|ids| ids.session.as_ref()),
            "parent_correlation_id": ids.and_then(|ids| ids.parent.as_ref()),
            "conversation_id": turn.map(|turn| &turn.session),
            "turn_index": turn.map(|turn| turn.index),
            "credit_issued_ns": at(exchange.due),
            "request_start_ns": at(sent),
            "request_ack_ns": exchange.headers.map(at),
            "request_end_ns": at(exchange.ended.unwrap_or(sent)),
            "worker_id": "runner",
            "record_processor_id": "runner",
            "benchmark_phase": phase,
            "phase_kind": phase,
            "was_cancelled": matches!(class, Class::Cancelled | Class::Interrupted),
            "context_overflow_skip": exchange.overflows_context(),
        });
        let Value::Object(mut metadata) = metadata else { return metadata };
        metadata.retain(|_, value| !value.is_null());
        Value::Object(metadata)
    }
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Warmup => "warmup",
        Phase::Measure => "profiling",
        Phase::Tail => "tail",
    }
}

fn error(status: Option<u16>, class: Class, message: &str) -> Value {
    json!({ "code": status, "type": class.name(), "message": message })
}

/// The measured requests by AIPerf's metrics.
pub struct Export<'a> {
    pub(super) reported: &'a Reported,
    figures: BTreeMap<&'static str, Figures>,
    gaps: Option<Figures>,
    /// The times of the answered requests' ends, in order.
    pub(super) ends: Vec<Nanos>,
    /// The span from the first answered request's start to the last one's end.
    pub(super) span: Option<(Nanos, Nanos)>,
    /// Seconds of each output token of the answered requests, as end-to-end latency over tokens.
    pub(super) per_token_s: Option<Figures>,
    /// The requested output lengths of the answered requests.
    pub(super) requested: Option<Figures>,
    /// Failed requests by status and class, with the last message.
    pub(super) failures: BTreeMap<(Option<u16>, &'static str), (u64, Value)>,
    /// Requests of the warm-up and the tail.
    pub(super) unmeasured: u64,
    origin: Option<u64>,
}

impl<'a> Export<'a> {
    /// Reads a run's exchanges. `origin` is the run's origin in nanoseconds since 1970.
    pub fn read<X>(
        reported: &'a Reported,
        facts: &RunFacts,
        origin: Option<u64>,
        exchanges: impl Iterator<Item = Result<Exchange, X>>,
    ) -> Result<Self, X> {
        let rules = Rules::new(Tool::Aiperf, &reported.plan, facts);
        let mut spreads: Vec<Spread> = METRICS.iter().map(|_| Spread::new(SCALE)).collect();
        let [mut gaps, mut per_token_s, mut requested] = [(); 3].map(|()| Spread::new(SCALE));
        let mut export = Export {
            reported,
            figures: BTreeMap::new(),
            gaps: None,
            ends: Vec::new(),
            span: None,
            per_token_s: None,
            requested: None,
            failures: BTreeMap::new(),
            unmeasured: 0,
            origin,
        };
        for exchange in exchanges {
            let exchange = exchange?;
            if exchange.sent.is_none() {
                continue;
            }
            if exchange.phase != Phase::Measure {
                export.unmeasured += 1;
                continue;
            }
            let seen = rules.read(&exchange);
            if let Outcome::Incomplete { class, message, .. } = &exchange.outcome {
                let key = (exchange.status, class.name());
                let error = error(exchange.status, *class, message);
                export.failures.entry(key).or_insert((0, error)).0 += 1;
            }
            if !seen.answered {
                continue;
            }
            for (metric, spread) in METRICS.iter().zip(&mut spreads) {
                if let Some(value) = (metric.value)(&seen) {
                    spread.add(value);
                }
            }
            gaps_ms(&seen).into_iter().for_each(|gap| gaps.add(gap));
            if let (Some(latency), Some(tokens)) = (seen.latency(), seen.output.filter(|n| *n > 0))
            {
                per_token_s.add(latency.as_secs_f64() / f64::from(tokens));
            }
            if let Some(tokens) = exchange.sample.output_tokens {
                requested.add(f64::from(tokens));
            }
            let end = exchange.ended.unwrap_or(seen.sent);
            export.ends.push(end);
            let (from, to) = export.span.unwrap_or((seen.sent, end));
            export.span = Some((from.min(seen.sent), to.max(end)));
        }
        export.ends.sort_unstable();
        let figures = METRICS.iter().zip(spreads);
        export.figures =
            figures.filter_map(|(metric, spread)| Some((metric.name, spread.figures()?))).collect();
        export.gaps = gaps.figures();
        export.per_token_s = per_token_s.figures();
        export.requested = requested.figures();
        Ok(export)
    }

    pub(super) fn of(&self, metric: &str) -> Option<&Figures> {
        self.figures.get(metric)
    }

    /// The sum of a metric over the answered requests; absent if one of them lacks it.
    pub(super) fn sum(&self, metric: &str) -> Option<f64> {
        let figures = self.of(metric).filter(|of| of.count() == self.ends.len() as u64)?;
        Some((figures.mean() * figures.count() as f64).round())
    }

    pub(super) fn failed(&self) -> u64 {
        self.failures.values().map(|(count, _)| count).sum()
    }

    /// Seconds from the first answered request's start to the last one's end.
    pub(super) fn seconds(&self) -> Option<f64> {
        self.span.map(|(from, to)| to.since(from).as_secs_f64()).filter(|seconds| *seconds > 0.0)
    }

    /// Returns the text of `profile_export_aiperf.json`.
    pub fn json(&self) -> String {
        let mut file = Map::new();
        let mut put = |name: &str, unit: &str, statistics: Value| {
            let Value::Object(mut metric) = statistics else { return };
            metric.insert("unit".to_owned(), unit.into());
            file.insert(name.to_owned(), metric.into());
        };
        for metric in METRICS {
            let figures = self.of(metric.name);
            put(metric.name, metric.unit, figures.map_or(Value::Null, statistics));
        }
        put("inter_chunk_latency", "ms", self.gaps.as_ref().map_or(Value::Null, statistics));
        let (answered, failed) = (self.ends.len() as f64, self.failed() as f64);
        let (isl, osl) = (self.sum("input_sequence_length"), self.sum("output_sequence_length"));
        let all = answered + failed;
        let seconds = self.seconds();
        let rate = |amount: Option<f64>| Some(amount? / seconds?);
        for (name, unit, value) in [
            ("request_count", "requests", Some(answered)),
            ("error_request_count", "requests", Some(failed)),
            ("completed_request_count", "requests", Some(all)),
            ("request_error_rate", "%", (all > 0.0).then(|| 100.0 * failed / all)),
            ("benchmark_duration", "sec", seconds),
            ("request_throughput", "requests/sec", rate(Some(answered))),
            ("total_isl", "tokens", isl),
            ("total_osl", "tokens", osl),
            ("total_output_tokens", "tokens", osl),
            ("input_token_throughput", "tokens/sec", rate(isl)),
            ("output_token_throughput", "tokens/sec", rate(osl)),
            ("total_token_throughput", "tokens/sec", rate(isl.zip(osl).map(|(i, o)| i + o))),
        ] {
            let value = value.map(|value| json!({ "avg": number(value) }));
            put(name, unit, value.unwrap_or_default());
        }
        let status = self.reported.status.as_ref();
        let was_cancelled = status.is_some_and(|status| status.interrupted);
        let [start, end] = [|of: (Nanos, Nanos)| of.0, |of: (Nanos, Nanos)| of.1]
            .map(|side| self.span.and_then(|span| self.date(side(span))));
        let errors = self.failures.values();
        let errors = errors.map(|(count, error)| json!({ "error_details": error, "count": count }));
        let further = [
            ("schema_version", json!("1.4")),
            ("metadata", self.metadata()),
            ("was_cancelled", was_cancelled.into()),
            ("is_complete", status.is_some_and(|it| it.error.is_none()).into()),
            ("error_summary", errors.collect()),
            ("run_info", json!({ "random_seed": self.reported.plan.load.seed })),
            ("start_time", json!(start)),
            ("end_time", json!(end)),
        ];
        file.extend(further.map(|(name, value)| (name.to_owned(), value)));
        let indented = serde_json::to_string_pretty(&file);
        indented.expect("a map with names as keys is JSON") + "\n"
    }

    fn date(&self, at: Nanos) -> Option<String> {
        let since_1970 = i128::from(self.origin?) + i128::from(at.0);
        Timestamp::from_nanosecond(since_1970).ok().map(|date| date.to_string())
    }

    /// The program, and for the rules of AgentX whether the run kept them.
    fn metadata(&self) -> Value {
        let mut metadata = json!({ "program": concat!("runner ", env!("CARGO_PKG_VERSION")) });
        let rules = self.reported.summary.run.rules.as_ref();
        if rules.is_some_and(|rules| rules.name == "agentx") {
            let findings = &self.reported.summary.findings;
            let broken = findings.iter().find(|finding| finding.id == Id::RulesBroken);
            metadata["scenario"] = "inferencex-agentx-mvp".into();
            metadata["submission_valid"] = broken.is_none().into();
            metadata["submission_invalid_reasons"] =
                broken.map(|finding| finding.seen.clone()).into_iter().collect();
        }
        metadata
    }
}

fn statistics(figures: &Figures) -> Value {
    let percentiles = PERCENTILES.map(|p| (format!("p{p}"), number(figures.percentile(p))));
    let mut all: Map<String, Value> = percentiles.into_iter().collect();
    let (count, mean) = (figures.count(), figures.mean());
    for (name, value) in [
        ("avg", mean),
        ("min", figures.min()),
        ("max", figures.max()),
        ("std", figures.std()),
        ("sum", mean * count as f64),
    ] {
        all.insert(name.to_owned(), number(value));
    }
    all.insert("count".to_owned(), count.into());
    all.into()
}

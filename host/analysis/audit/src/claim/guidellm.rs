//! guidellm's JSON: a report with a benchmark for each rate or number of streams.

use serde_json::Value;

use super::json::{Lookup, Object};
use super::{Claim, ReadError, Sample, Source, Stated, Tool, in_order, number};

/// guidellm's distributions by ours, with the factor from their unit to ours.
const LATENCIES: [(&str, &str, f64); 4] = [
    ("request_latency", "e2e", 1e3),
    ("time_to_first_token_ms", "ttft", 1.0),
    ("time_per_output_token_ms", "tpot", 1.0),
    ("inter_token_latency_ms", "itl", 1.0),
];

/// Distributions whose mean is a figure of the run as a whole.
const RATES: [(&str, &str); 5] = [
    ("requests_per_second", "throughput.requests-per-s"),
    ("prompt_tokens_per_second", "throughput.input-tokens-per-s"),
    ("output_tokens_per_second", "throughput.output-tokens-per-s"),
    ("tokens_per_second", "throughput.total-tokens-per-s"),
    ("request_concurrency", "concurrency.mean"),
];

pub(super) fn is(object: &Object) -> bool {
    let benchmarks = object.get("benchmarks").and_then(Value::as_array);
    let has_latency = |first: &Value| first.pointer("/metrics/time_per_output_token_ms").is_some();
    benchmarks.is_some_and(|benchmarks| benchmarks.first().is_none_or(has_latency))
}

/// Every benchmark of a report.
pub(super) fn read(object: &Object, file: &str) -> Result<Vec<Claim>, Vec<ReadError>> {
    let version = object.get("metadata").and_then(|metadata| metadata.get("guidellm_version"));
    let benchmarks = object.get("benchmarks").and_then(Value::as_array);
    let read_one = |(index, benchmark): (usize, &Value)| {
        let part = format!("benchmarks[{index}]");
        let source =
            Source { file: file.to_owned(), part: Some(part.clone()), ..Source::default() };
        let mut lookup = Lookup::at(file, part);
        let mut claim = Claim::new(Tool::Guidellm, source);
        if version.is_none() {
            claim.definitions = super::definition::guidellm_before_metadata();
        }
        if let Some(version) = version.and_then(Value::as_str) {
            claim.about.notes.insert("guidellm".into(), version.into());
        }
        if let Some(benchmark) = benchmark.as_object() {
            one(&mut claim, benchmark, &mut lookup);
        }
        lookup.finish(claim).map(|claim| vec![claim])
    };
    in_order(file, benchmarks.into_iter().flatten().enumerate().map(read_one))
}

fn one(claim: &mut Claim, benchmark: &Object, lookup: &mut Lookup) {
    lookup.state(claim, (benchmark, "duration"), "throughput.duration-s", 1.0);
    let Some(metrics) = lookup.object(benchmark, "metrics") else {
        lookup.missing("metrics", "guidellm writes its figures there");
        return;
    };
    let totals = match lookup.object(metrics, "request_totals") {
        Some(totals) => Some(totals),
        None => lookup.object(benchmark, "request_totals"),
    };
    if let Some(totals) = totals {
        for (key, name) in [
            ("successful", "requests.successful"),
            ("errored", "requests.failed"),
            ("total", "requests.total"),
        ] {
            lookup.state_count(claim, (totals, key), name);
        }
    }
    let successful = |key: &str| metrics.get(key)?.get("successful")?.as_object();
    for (key, name, factor) in LATENCIES {
        if let Some(distribution) = successful(key) {
            latency(claim, distribution, name, factor, lookup);
        }
    }
    for (key, name) in RATES {
        if let Some(distribution) = successful(key) {
            lookup.state(claim, (distribution, "mean"), name, 1.0);
        }
    }
    for (key, name) in
        [("prompt_token_count", "tokens.input"), ("output_token_count", "tokens.output")]
    {
        if let Some(distribution) = successful(key)
            && let Some(total) = lookup.number(distribution, "total_sum")
        {
            // A sum of whole numbers that floating point has moved.
            claim.state(name, total.value.round(), 0.0);
        }
    }
    let config = benchmark.get("config").or_else(|| benchmark.get("args"));
    let strategy = config.and_then(|config| config.get("strategy"));
    if let Some(strategy) = strategy {
        let find = |key: &str| strategy.get(key).and_then(Value::as_f64);
        claim.scenario = strategy.get("type_").and_then(Value::as_str).map(str::to_owned);
        claim.asked.max_concurrency =
            find("max_concurrency").or(find("streams")).map(|cap| cap as u64);
        claim.asked.request_rate = find("rate");
    }
    let model = config.and_then(|config| config.pointer("/backend/model"));
    claim.model = model.and_then(Value::as_str).map(str::to_owned);
    samples(claim, benchmark);
}

fn latency(claim: &mut Claim, distribution: &Object, name: &str, factor: f64, lookup: &mut Lookup) {
    if distribution.get("count").and_then(Value::as_f64) == Some(0.0) {
        // It writes zeros for figures that it never measured.
        return;
    }
    for (key, statistic) in
        [("mean", "mean"), ("median", "median"), ("std_dev", "std"), ("min", "min"), ("max", "max")]
    {
        lookup.state(claim, (distribution, key), format!("{name}.{statistic}"), factor);
    }
    let percentiles = distribution.get("percentiles").and_then(Value::as_object);
    for (key, value) in percentiles.into_iter().flatten() {
        // `p01` is the first, `p999` the 99.9th.
        let digits = key.strip_prefix('p').unwrap_or(key);
        let percent = match (digits.len(), digits.parse::<f64>()) {
            (3, Ok(number)) => number / 10.0,
            (_, Ok(number)) => number,
            _ => continue,
        };
        let statistic = super::statistic(&format!("p{percent}"));
        if let (Some(statistic), Some(value)) = (statistic, value.as_f64()) {
            let Stated { value, rounding } = number::in_full(value);
            claim.state(format!("{name}.{statistic}"), value * factor, rounding * factor);
        }
    }
}

/// The requests in the file, if it has all answered ones: it may contain only a sample of them.
fn samples(claim: &mut Claim, benchmark: &Object) {
    let requests = benchmark.get("requests").and_then(|requests| requests.get("successful"));
    let Some(requests) = requests.and_then(Value::as_array) else { return };
    if claim.value("requests.successful") != Some(requests.len() as f64) {
        return;
    }
    claim.samples = (requests.iter())
        .map(|request| {
            let find = |key: &str| request.get(key).and_then(Value::as_f64);
            Sample {
                start_s: find("request_start_time"),
                input_tokens: find("prompt_tokens").map(|tokens| tokens as u64),
                output_tokens: find("output_tokens").map(|tokens| tokens as u64),
                ttft_ms: find("time_to_first_token_ms"),
                tpot_ms: find("time_per_output_token_ms"),
                e2e_ms: find("request_latency").map(|seconds| seconds * 1e3),
                gaps_ms: Vec::new(),
                error: None,
            }
        })
        .collect();
}

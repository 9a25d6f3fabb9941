//! llm-d's Benchmark Report, versions 0.2 and 0.2.1, as YAML or JSON: another tool's measurements,
//! in one form. Its figures keep that tool's definitions.

use serde_json::Value;

use super::json::{Lookup, Object};
use super::{Claim, ReadError, Source, Tool};

const LATENCIES: [(&str, &str); 4] = [
    ("request_latency", "e2e"),
    ("time_to_first_token", "ttft"),
    ("time_per_output_token", "tpot"),
    ("inter_token_latency", "itl"),
];

const RATES: [(&str, &str); 4] = [
    ("request_rate", "throughput.requests-per-s"),
    ("input_token_rate", "throughput.input-tokens-per-s"),
    ("output_token_rate", "throughput.output-tokens-per-s"),
    ("total_token_rate", "throughput.total-tokens-per-s"),
];

/// The tools that it converts, by its words for them.
const TOOLS: [(&str, Tool); 4] = [
    ("inference-perf", Tool::InferencePerf),
    ("guidellm", Tool::Guidellm),
    ("vllm-benchmark", Tool::Vllm),
    ("vllm-bench", Tool::Vllm),
];

pub(super) fn is(object: &Object) -> bool {
    // Without quotes, YAML's 0.2 is a number.
    let version = match object.get("version") {
        Some(Value::String(version)) => version.clone(),
        Some(Value::Number(version)) => version.to_string(),
        _ => return false,
    };
    version.starts_with("0.2")
        && object.get("results").is_some_and(Value::is_object)
        && object.get("run").is_some_and(Value::is_object)
}

pub(super) fn read(object: &Object, source: Source) -> Result<Claim, Vec<ReadError>> {
    let mut lookup = Lookup::new(&source);
    let whole = Value::Object(object.clone());
    let load = whole.pointer("/scenario/load/standardized");
    let find = |key: &str| load.and_then(|load| load.get(key));
    let harness = find("tool").and_then(Value::as_str);
    let known = harness.and_then(|name| TOOLS.iter().find(|(words, _)| name.contains(words)));
    let tool = known.map_or(Tool::Unknown, |(_, tool)| *tool);
    let mut claim = Claim::new(tool, source);
    claim.about.notes.insert("report".into(), "llm-d".into());
    if let (Tool::Unknown, Some(harness)) = (tool, harness) {
        claim.about.notes.insert("tool".into(), harness.into());
    }
    let stack = whole.pointer("/scenario/stack").and_then(Value::as_array);
    let engine = stack.into_iter().flatten().find(|part| {
        part.pointer("/standardized/kind").and_then(Value::as_str) == Some("inference_engine")
    });
    let engine_text = |path: &str| engine?.pointer(path)?.as_str().map(str::to_owned);
    claim.model = engine_text("/standardized/model/name");
    claim.about.engine = engine_text("/standardized/tool");
    claim.about.engine_version = engine_text("/standardized/tool_version");
    claim.about.hardware = engine_text("/standardized/accelerator/model");
    claim.asked.request_rate = find("rate_qps").and_then(Value::as_f64);
    claim.asked.max_concurrency = find("concurrency").and_then(Value::as_u64);
    match whole.pointer("/results/request_performance/aggregate") {
        Some(Value::Object(aggregate)) => {
            lookup.within("results.request_performance.aggregate", |lookup| {
                requests(&mut claim, aggregate, lookup);
            });
        }
        _ => lookup.missing(
            "results.request_performance.aggregate",
            "a report has the figures of requests there",
        ),
    }
    lookup.finish(claim)
}

fn requests(claim: &mut Claim, aggregate: &Object, lookup: &mut Lookup) {
    lookup.inner(aggregate, "requests", |lookup, requests| {
        let total = lookup.state_count(claim, (requests, "total"), "requests.total");
        let failed = lookup.state_count(claim, (requests, "failures"), "requests.failed");
        // A total includes failures.
        let Some(answered) = total.and_then(|total| total.checked_sub(failed?)) else { return };
        claim.state("requests.successful", answered as f64, 0.0);
        for (key, name) in [("input_length", "tokens.input"), ("output_length", "tokens.output")] {
            lookup.inner(requests, key, |lookup, length| {
                if let Some(mean) = lookup.number(length, "mean") {
                    claim.state(name, (mean.value * answered as f64).round(), 0.0);
                }
            });
        }
    });
    lookup.inner(aggregate, "latency", |lookup, latency| {
        for (key, name) in LATENCIES {
            lookup.inner(latency, key, |lookup, statistics| {
                latency_statistics(claim, statistics, name, lookup);
            });
        }
    });
    lookup.inner(aggregate, "throughput", |lookup, throughput| {
        for (key, name) in RATES {
            lookup.inner(throughput, key, |lookup, rate| {
                lookup.state(claim, (rate, "mean"), name, 1.0);
            });
        }
    });
}

fn latency_statistics(claim: &mut Claim, statistics: &Object, name: &str, lookup: &mut Lookup) {
    let factor = match lookup.text(statistics, "units") {
        Some("s" | "s/token") | None => 1e3,
        Some("ms" | "ms/token") => 1.0,
        Some("us" | "us/token") => 1e-3,
        Some("ns" | "ns/token") => 1e-6,
        Some(_) => {
            lookup.unlike("units", &statistics["units"], "`s`, `ms`, `us` or `ns`");
            return;
        }
    };
    for key in statistics.keys() {
        // `p0p1` is the 0.1th percentile, `p99p9` the 99.9th.
        let named = match key.strip_prefix('p') {
            Some(digits) => format!("p{}", digits.replace('p', ".")),
            None if key == "stddev" => "std".to_owned(),
            None => key.clone(),
        };
        if let Some(statistic) = super::statistic(&named) {
            lookup.state(claim, (statistics, key), format!("{name}.{statistic}"), factor);
        }
    }
}

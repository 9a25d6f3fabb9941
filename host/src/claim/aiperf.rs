//! The JSON of AIPerf and of GenAI-Perf, which it came from: a metric a key, each with its unit and statistics.

use serde_json::Value;

use super::json::{Lookup, Object};
use super::{Claim, ReadError, Source, Tool, number};

/// Their latencies by ours.
const LATENCIES: [(&str, &str); 4] = [
    ("request_latency", "e2e"),
    ("time_to_first_token", "ttft"),
    ("inter_token_latency", "tpot"),
    ("inter_chunk_latency", "itl"),
];

/// Whose average is a figure of the run as a whole. Counts are exact.
const WHOLE: [(&str, &str, bool); 9] = [
    ("request_count", "requests.successful", true),
    ("error_request_count", "requests.failed", true),
    ("request_throughput", "throughput.requests-per-s", false),
    (
        "output_token_throughput",
        "throughput.output-tokens-per-s",
        false,
    ),
    (
        "total_token_throughput",
        "throughput.total-tokens-per-s",
        false,
    ),
    ("goodput", "goodput.requests-per-s", false),
    ("request_goodput", "goodput.requests-per-s", false),
    ("total_isl", "tokens.input", true),
    ("total_osl", "tokens.output", true),
];

/// Whether an object is such a result, and whose.
pub(super) fn tool(object: &Object) -> Option<Tool> {
    let metrics = metrics(object);
    let unit = |key: &str| metrics.get(key)?.get("unit")?.as_str();
    unit("request_latency").or_else(|| unit("request_throughput"))?;
    let genai = object.get("input_config").is_some_and(|config| {
        config.get("model_names").is_none() && config.get("model").is_some()
            || config.get("perf_analyzer").is_some()
    });
    Some(match genai {
        true => Tool::GenaiPerf,
        false => Tool::Aiperf,
    })
}

/// The metrics, which some versions keep under a key of their own.
fn metrics(object: &Object) -> &Object {
    let records = object.get("records").and_then(Value::as_object);
    records
        .filter(|records| records.contains_key("request_latency"))
        .unwrap_or(object)
}

/// Reads one such object.
pub(super) fn read(object: &Object, tool: Tool, source: Source) -> Result<Claim, Vec<ReadError>> {
    let file = source.file.clone();
    let mut lookup = Lookup::new(&file, source.part.clone().unwrap_or_default());
    let mut claim = Claim::of(tool, source);
    let metrics = metrics(object);
    for (key, name, count) in WHOLE {
        let Some(metric) = lookup.object(metrics, key) else {
            continue;
        };
        if let Some(stated) = lookup.number(metric, "avg") {
            claim.state(
                name,
                stated.value,
                if count { 0.0 } else { stated.rounding },
            );
        }
    }
    if let Some(duration) = lookup.object(metrics, "benchmark_duration")
        && let Some(stated) = lookup.number(duration, "avg")
    {
        let factor = seconds(duration.get("unit"));
        claim.state(
            "throughput.duration-s",
            stated.value * factor,
            stated.rounding * factor,
        );
    }
    for (key, name) in LATENCIES {
        if let Some(metric) = lookup.object(metrics, key) {
            latency(&mut claim, metric, name);
        }
    }
    asked(&mut claim, object);
    match lookup.errors.is_empty() {
        true => Ok(claim),
        false => Err(lookup.errors),
    }
}

/// What makes seconds of a unit's numbers.
fn seconds(unit: Option<&Value>) -> f64 {
    match unit.and_then(Value::as_str) {
        Some("ns") => 1e-9,
        Some("us") => 1e-6,
        Some("ms") => 1e-3,
        _ => 1.0,
    }
}

fn latency(claim: &mut Claim, metric: &Object, name: &str) {
    // Milliseconds where no unit is said: both write so.
    let factor = match metric.get("unit") {
        None => 1.0,
        unit => seconds(unit) * 1e3,
    };
    for (key, value) in metric {
        let (Some(statistic), Some(value)) = (super::statistic(key), value.as_f64()) else {
            continue;
        };
        let stated = number::in_full(value);
        claim.state(
            format!("{name}.{statistic}"),
            stated.value * factor,
            stated.rounding * factor,
        );
    }
}

fn asked(claim: &mut Claim, object: &Object) {
    let Some(config) = object.get("input_config") else {
        return;
    };
    let find = |paths: &[&str]| paths.iter().find_map(|path| config.pointer(path));
    let model = find(&[
        "/endpoint/model_names/0",
        "/model_names/0",
        "/model/0",
        "/models/0",
    ]);
    claim.model = model.and_then(Value::as_str).map(str::to_owned);
    let count = |paths: &[&str]| find(paths).and_then(Value::as_u64);
    claim.asked.max_concurrency = count(&[
        "/loadgen/concurrency",
        "/perf_analyzer/stimulus/concurrency",
    ]);
    claim.asked.requests = count(&["/loadgen/request_count", "/input/num_requests"]);
    claim.asked.request_rate = find(&["/loadgen/request_rate"]).and_then(Value::as_f64);
    let streaming = find(&["/endpoint/streaming"]);
    claim.asked.stream = streaming.and_then(Value::as_bool);
}

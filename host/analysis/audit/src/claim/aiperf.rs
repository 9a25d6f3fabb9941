//! The JSON of AIPerf and of its predecessor GenAI-Perf: one metric per key, each with its unit and
//! statistics.

use serde_json::Value;

use super::json::{Lookup, Object};
use super::{Claim, ReadError, Source, Stated, Tool, number};

const LATENCIES: [(&str, &str); 4] = [
    ("request_latency", "e2e"),
    ("time_to_first_token", "ttft"),
    ("inter_token_latency", "tpot"),
    ("inter_chunk_latency", "itl"),
];

/// Metrics whose average is a figure of the run as a whole. Counts are exact.
const WHOLE: [(&str, &str, bool); 10] = [
    ("request_count", "requests.successful", true),
    ("error_request_count", "requests.failed", true),
    ("request_throughput", "throughput.requests-per-s", false),
    ("output_token_throughput", "throughput.output-tokens-per-s", false),
    ("total_token_throughput", "throughput.total-tokens-per-s", false),
    ("input_token_throughput", "throughput.input-tokens-per-s", false),
    ("goodput", "goodput.requests-per-s", false),
    ("request_goodput", "goodput.requests-per-s", false),
    ("total_isl", "tokens.input", true),
    ("total_osl", "tokens.output", true),
];

/// Parts of the names of AIPerf's settings that make requests wait.
const PACES: [&str; 4] = ["schedule", "delay", "user_centric", "ramp"];

/// The values that do, of a phase's type and of a dataset's.
const KINDS: [&str; 3] = ["fixed_schedule", "user_centric", "mooncake_trace"];

/// Finds the tool that wrote an object; nothing if it is no such result.
pub(super) fn tool(object: &Object) -> Option<Tool> {
    let metrics = metrics(object);
    let unit = |key: &str| metrics.get(key)?.get("unit")?.as_str();
    unit("request_latency")
        .or_else(|| unit("request_count"))
        .or_else(|| unit("request_throughput"))?;
    let aiperf = object.contains_key("aiperf_version") || object.contains_key("schema_version");
    Some(if aiperf || object.contains_key("records") { Tool::Aiperf } else { Tool::GenaiPerf })
}

/// The metrics, which some versions put under a separate key.
fn metrics(object: &Object) -> &Object {
    let records = object.get("records").and_then(Value::as_object);
    records.filter(|records| records.contains_key("request_latency")).unwrap_or(object)
}

pub(super) fn read(object: &Object, tool: Tool, source: Source) -> Result<Claim, Vec<ReadError>> {
    let mut lookup = Lookup::new(&source);
    let mut claim = Claim::new(tool, source);
    let metrics = metrics(object);
    for (key, name, count) in WHOLE {
        if let Some(metric) = lookup.object(metrics, key)
            && let Some(stated) = lookup.number(metric, "avg")
        {
            claim.state(name, stated.value, if count { 0.0 } else { stated.rounding });
        }
    }
    if let Some(duration) = lookup.object(metrics, "benchmark_duration") {
        let factor = seconds(duration.get("unit"));
        lookup.state(&mut claim, (duration, "avg"), "throughput.duration-s", factor);
    }
    for (key, name) in LATENCIES {
        if let Some(metric) = lookup.object(metrics, key) {
            latency(&mut claim, metric, name);
        }
    }
    lengths(&mut claim, metrics, &mut lookup);
    settings(&mut claim, object);
    lookup.finish(claim)
}

/// Finds the factor that converts numbers of a unit to seconds.
fn seconds(unit: Option<&Value>) -> f64 {
    match unit.and_then(Value::as_str) {
        Some("ns") => 1e-9,
        Some("us") => 1e-6,
        Some("ms") => 1e-3,
        _ => 1.0,
    }
}

fn latency(claim: &mut Claim, metric: &Object, name: &str) {
    // Milliseconds where no unit is stated: both write so.
    let factor = match metric.get("unit") {
        None => 1.0,
        unit => seconds(unit) * 1e3,
    };
    for (key, value) in metric {
        if let (Some(statistic), Some(value)) = (super::statistic(key), value.as_f64()) {
            let Stated { value, rounding } = number::in_full(value);
            claim.state(format!("{name}.{statistic}"), value * factor, rounding * factor);
        }
    }
}

/// GenAI-Perf gives the lengths of answers and prompts, and not their total tokens.
fn lengths(claim: &mut Claim, metrics: &Object, lookup: &mut Lookup) {
    let Some(answered) = claim.value("requests.successful") else { return };
    // Sums over fewer requests say nothing of the others, whose tokens it could not count.
    if let Some(length) = lookup.object(metrics, "output_sequence_length")
        && lookup.count(length, "count") == Some(answered as u64)
    {
        claim.output_lengths = lookup.lengths(length);
    }
    for (key, name) in
        [("input_sequence_length", "tokens.input"), ("output_sequence_length", "tokens.output")]
    {
        if claim.value(name).is_none()
            && let Some(length) = lookup.object(metrics, key)
            && let Some(mean) = lookup.number(length, "avg")
        {
            claim.state(name, (mean.value * answered).round(), 0.0);
        }
    }
}

/// True if settings name anything that makes requests wait: a schedule or trace to replay, delays
/// between turns, users with a pace of their own, or a ramp. The warmup's count too: without them,
/// less is known than with them.
fn paces(config: &Value) -> bool {
    let names = |text: &str| PACES.iter().any(|pace| text.contains(pace));
    match config {
        Value::Object(settings) => {
            settings.iter().any(|(key, value)| (names(key) && is_set(value)) || paces(value))
        }
        Value::Array(items) => items.iter().any(paces),
        Value::String(kind) => KINDS.contains(&kind.as_str()),
        _ => false,
    }
}

/// True if a setting differs from nothing, no and zero; of several, one.
fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(yes) => *yes,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => items.iter().any(is_set),
        // A factor on delays is 1 where there are none.
        Value::Object(settings) => {
            settings.iter().any(|(key, value)| key != "ratio" && is_set(value))
        }
    }
}

fn settings(claim: &mut Claim, object: &Object) {
    let Some(config) = object.get("input_config") else { return };
    let find = |paths: &[&str]| paths.iter().find_map(|path| config.pointer(path));
    let model = find(&["/models/items/0/name", "/endpoint/model_names/0", "/model_names/0"]);
    claim.model = model.and_then(Value::as_str).map(str::to_owned);
    let streaming = find(&["/endpoint/streaming"]);
    claim.asked.stream = streaming.and_then(Value::as_bool);
    claim.paced = paces(config);
    // AIPerf's load has phases, one of them measured; GenAI-Perf's has one stimulus.
    let phases = config.get("phases").and_then(Value::as_array);
    let measured = (phases.into_iter().flatten())
        .find(|phase| phase.get("kind").and_then(Value::as_str) == Some("profiling"));
    let number = |key: &str, paths: &[&str]| {
        let phase = measured.and_then(|phase| phase.get(key));
        phase.or_else(|| find(paths)).and_then(Value::as_f64)
    };
    let count = |key: &str, paths: &[&str]| number(key, paths).map(|count| count as u64);
    let settings = &mut claim.asked;
    settings.max_concurrency =
        count("concurrency", &["/loadgen/concurrency", "/perf_analyzer/stimulus/concurrency"]);
    settings.request_rate =
        number("rate", &["/loadgen/request_rate", "/perf_analyzer/stimulus/request_rate"]);
    settings.requests = count("requests", &["/loadgen/request_count"]);
    let mode = config.pointer("/perf_analyzer/measurement/mode").and_then(Value::as_str);
    if mode == Some("request_count") {
        settings.requests = count("", &["/perf_analyzer/measurement/num"]);
    }
}

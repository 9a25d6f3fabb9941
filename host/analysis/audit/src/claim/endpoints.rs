//! MLPerf Endpoints' `result_summary.json`: rollups of a run, with times in nanoseconds.

use serde_json::Value;

use super::json::{Lookup, Object};
use super::{Claim, ReadError, Source, Tool};

const LATENCIES: [(&str, &str); 3] = [("latency", "e2e"), ("ttft", "ttft"), ("tpot", "tpot")];

/// Nanoseconds, its unit of time, in milliseconds.
const MS: f64 = 1e-6;

pub(super) fn is(object: &Object) -> bool {
    ["n_samples_issued", "n_samples_completed", "duration_ns"]
        .iter()
        .all(|key| object.contains_key(*key))
}

pub(super) fn read(object: &Object, source: Source) -> Result<Claim, Vec<ReadError>> {
    let mut lookup = Lookup::new(&source);
    let mut claim = Claim::new(Tool::Endpoints, source);
    for (key, name) in [
        ("n_samples_completed", "requests.successful"),
        ("n_samples_failed", "requests.failed"),
        ("n_samples_issued", "requests.total"),
    ] {
        lookup.state_count(&mut claim, (object, key), name);
    }
    if let Some(duration) = lookup.number(object, "duration_ns") {
        claim.state("throughput.duration-s", duration.value * 1e-9, 0.0);
    }
    let window = lookup.number(object, "legacy_loadgen_window_duration_ns");
    if let Some(window) = window {
        // Its rates are then of another time than its duration, and of one request less.
        let words = format!("{} s until the last one sent was answered", window.value * 1e-9);
        claim.about.notes.insert("rates over".into(), words);
    } else {
        for (key, name) in
            [("qps", "throughput.requests-per-s"), ("tps", "throughput.output-tokens-per-s")]
        {
            lookup.state(&mut claim, (object, key), name, 1.0);
        }
    }
    for (key, name) in LATENCIES {
        lookup.inner(object, key, |lookup, series| latency(&mut claim, series, name, lookup));
    }
    for (key, name) in
        [("input_sequence_lengths", "tokens.input"), ("output_sequence_lengths", "tokens.output")]
    {
        lookup.inner(object, key, |lookup, series| {
            if let Some(total) = lookup.number(series, "total") {
                claim.state(name, total.value, 0.0);
            }
            if name == "tokens.output" {
                claim.output_lengths = lookup.lengths(series);
            }
        });
    }
    if let Some(config) = lookup.object(object, "run_config") {
        settings(&mut claim, config);
    }
    lookup.finish(claim)
}

fn latency(claim: &mut Claim, series: &Object, name: &str, lookup: &mut Lookup) {
    lookup.statistics(claim, series, name, MS);
    lookup.state(claim, (series, "std_dev"), format!("{name}.std"), MS);
    lookup.inner(series, "percentiles", |lookup, percentiles| {
        for key in percentiles.keys() {
            if let Some(statistic) = super::statistic(&format!("p{key}")) {
                lookup.state(claim, (percentiles, key), format!("{name}.{statistic}"), MS);
            }
        }
    });
}

fn settings(claim: &mut Claim, config: &Object) {
    let pattern = config.get("load_pattern");
    let find = |key: &str| pattern.and_then(|pattern| pattern.get(key));
    let kind = find("type").and_then(Value::as_str);
    claim.scenario = kind.map(str::to_owned);
    let settings = &mut claim.asked;
    match kind {
        Some("concurrency") => {
            settings.max_concurrency = find("target_concurrency").and_then(Value::as_u64)
        }
        Some("max_throughput") => settings.request_rate = Some(f64::INFINITY),
        _ => settings.request_rate = find("target_qps").and_then(Value::as_f64),
    }
    settings.seed = config.get("scheduler_random_seed").and_then(Value::as_u64);
}

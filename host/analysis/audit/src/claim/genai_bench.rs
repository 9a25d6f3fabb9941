//! genai-bench's JSON: a file for each scenario and number of users, with the figures of the run
//! and of each of its requests.

use super::json::{Lookup, Object};
use super::{Claim, ReadError, Sample, Source, Tool};

const LATENCIES: [(&str, &str); 3] = [("e2e_latency", "e2e"), ("ttft", "ttft"), ("tpot", "tpot")];

/// Figures of the run as a whole, by their keys. Counts are exact.
const WHOLE: [(&str, &str, bool); 8] = [
    ("num_completed_requests", "requests.successful", true),
    ("num_error_requests", "requests.failed", true),
    ("num_requests", "requests.total", true),
    ("run_duration", "throughput.duration-s", false),
    ("requests_per_second", "throughput.requests-per-s", false),
    ("mean_input_throughput_tokens_per_s", "throughput.input-tokens-per-s", false),
    ("mean_output_throughput_tokens_per_s", "throughput.output-tokens-per-s", false),
    ("mean_total_tokens_throughput_tokens_per_s", "throughput.total-tokens-per-s", false),
];

pub(super) fn is(object: &Object) -> bool {
    object.contains_key("aggregated_metrics") && object.contains_key("individual_request_metrics")
}

/// True if an object describes an experiment, beside whose file the results are.
pub(super) fn is_experiment(object: &Object) -> bool {
    ["benchmark_version", "api_backend", "max_requests_per_run"]
        .iter()
        .all(|key| object.contains_key(*key))
}

pub(super) fn read(object: &Object, source: Source) -> Result<Claim, Vec<ReadError>> {
    let mut lookup = Lookup::new(&source);
    let mut claim = Claim::new(Tool::GenaiBench, source);
    let factor = match lookup.text(object, "_time_unit") {
        None | Some("s") => 1e3,
        Some("ms") => 1.0,
        Some(_) => {
            lookup.unlike("_time_unit", &object["_time_unit"], "`s` or `ms`");
            1.0
        }
    };
    lookup.inner(object, "aggregated_metrics", |lookup, metrics| {
        run_figures(&mut claim, metrics, factor, lookup);
    });
    let key = "individual_request_metrics";
    if let Some(requests) = lookup.list(object, key) {
        lookup.within(key, |lookup| {
            lookup.each(requests, "an object for each request", |lookup, request| {
                claim.samples.push(sample(request, factor, lookup));
            });
        });
    }
    lookup.finish(claim)
}

fn run_figures(claim: &mut Claim, metrics: &Object, factor: f64, lookup: &mut Lookup) {
    for (key, name, count) in WHOLE {
        if let Some(stated) = lookup.number(metrics, key) {
            let rounding = if count { 0.0 } else { stated.rounding };
            claim.state(name, stated.value, rounding);
        }
    }
    let scenario = lookup.text(metrics, "scenario");
    if let Some((input, output)) = scenario.and_then(fixed) {
        claim.asked.input_tokens = Some(input);
        claim.asked.output_tokens = Some(output);
    }
    claim.scenario = scenario.map(str::to_owned);
    claim.asked.max_concurrency = lookup.count(metrics, "num_concurrency");
    let Some(stats) = lookup.object(metrics, "stats") else {
        lookup.missing("stats", "genai-bench writes its latencies there");
        return;
    };
    let tokens = [("num_input_tokens", "tokens.input"), ("num_output_tokens", "tokens.output")];
    for (key, name) in tokens {
        let Some(length) = lookup.object(stats, key) else { continue };
        let sum = lookup.number(length, "sum").map(|sum| sum.value);
        let mean = lookup.number(length, "mean").map(|mean| mean.value);
        if let Some(sum) = sum {
            claim.state(name, sum, 0.0);
        }
        // Its figures leave out the first and the last requests if told to; its counts do not.
        if let Some((sum, mean)) = sum.zip(mean).filter(|(_, mean)| *mean > 0.0) {
            let kept = (sum / mean).round();
            claim.trimmed |= claim.value("requests.successful") != Some(kept);
            if claim.trimmed {
                let words = format!("{kept:.0} answered requests");
                claim.about.notes.insert("figures of".into(), words);
            }
        }
        if name == "tokens.output" {
            claim.output_lengths = lookup.lengths(length).filter(|_| !claim.trimmed);
        }
    }
    let generated = claim.value("tokens.output").is_none_or(|sum| sum > 0.0);
    for (key, name) in LATENCIES {
        // Embeddings and images have a TPOT of zero that was not measured.
        if name == "tpot" && !generated {
            continue;
        }
        if let Some(metric) = lookup.object(stats, key) {
            lookup.statistics(claim, metric, name, factor);
            lookup.state(claim, (metric, "stddev"), format!("{name}.std"), factor);
        }
    }
}

/// The lengths of a scenario in which all requests have the same: `D(100,200)`.
fn fixed(scenario: &str) -> Option<(u64, u64)> {
    let (input, output) = scenario.strip_prefix("D(")?.strip_suffix(')')?.split_once(',')?;
    Some((input.trim().parse().ok()?, output.trim().parse().ok()?))
}

fn sample(request: &Object, factor: f64, lookup: &mut Lookup) -> Sample {
    let error = lookup.number(request, "error_code").map(|code| code.value);
    let mut ms = |key: &str| lookup.number(request, key).map(|stated| stated.value * factor);
    let (ttft_ms, e2e_ms, tpot_ms) = (ms("ttft"), ms("e2e_latency"), ms("tpot"));
    let output_tokens = lookup.count(request, "num_output_tokens");
    Sample {
        input_tokens: lookup.count(request, "num_input_tokens"),
        output_tokens,
        ttft_ms,
        e2e_ms,
        tpot_ms: tpot_ms.filter(|_| output_tokens.is_some_and(|tokens| tokens > 1)),
        error: error.filter(|code| *code != 0.0).map(|code| format!("code {code}")),
        ..Sample::default()
    }
}

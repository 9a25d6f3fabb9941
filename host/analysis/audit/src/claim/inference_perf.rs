//! inference-perf's JSON: the summary of a run, of one of its stages or of one of its adapters, and
//! the list of its requests.
//!
//! By default its throughput and its times per token count the tokens of the text again, although
//! the server states their number. Both counts are claims of their own.

use serde_json::Value;

use super::json::{Lookup, Object};
use super::{Claim, ReadError, Sample, Source, Tool};

/// Its latencies by ours, all in seconds.
const LATENCIES: [(&str, &str); 5] = [
    ("request_latency", "e2e"),
    ("time_to_first_token", "ttft"),
    ("time_per_output_token", "tpot"),
    ("inter_token_latency", "itl"),
    ("normalized_time_per_output_token", "ntpot"),
];

const RATES: [(&str, &str); 4] = [
    ("requests_per_sec", "throughput.requests-per-s"),
    ("input_tokens_per_sec", "throughput.input-tokens-per-s"),
    ("output_tokens_per_sec", "throughput.output-tokens-per-s"),
    ("total_tokens_per_sec", "throughput.total-tokens-per-s"),
];

/// The keys of the server's usage that state the tokens of an answer.
const SERVED: [&str; 2] = ["completion_tokens", "output_tokens"];

/// The relative difference that a count may have from the count behind a rate: both are of 64 bits.
const SAME: f64 = 1e-6;

pub(super) fn is_summary(object: &Object) -> bool {
    ["load_summary", "successes", "failures"]
        .iter()
        .all(|key| object.get(*key).is_some_and(Value::is_object))
}

/// True if a list is of requests as it writes them.
pub(super) fn is_requests(list: &[Value]) -> bool {
    let has = |first: &Value, key: &str| first.get(key).is_some();
    list.first().is_some_and(|first| {
        has(first, "start_time")
            && has(first, "end_time")
            && (has(first, "info") || has(first, "computed_metrics"))
    })
}

pub(super) fn read(object: &Object, source: Source) -> Result<Claim, Vec<ReadError>> {
    let mut lookup = Lookup::new(&source);
    let mut claim = Claim::new(Tool::InferencePerf, source);
    let duration = (object, "benchmark_time_seconds");
    lookup.state(&mut claim, duration, "throughput.duration-s", 1.0);
    lookup.inner(object, "load_summary", |lookup, load| load_figures(&mut claim, load, lookup));
    lookup.inner(object, "failures", |lookup, failures| {
        lookup.state_count(&mut claim, (failures, "count"), "requests.failed")
    });
    lookup.inner(object, "successes", |lookup, successes| {
        answered_figures(&mut claim, successes, lookup);
    });
    lookup.finish(claim)
}

fn load_figures(claim: &mut Claim, load: &Object, lookup: &mut Lookup) {
    lookup.state_count(claim, (load, "count"), "requests.total");
    claim.asked.max_concurrency = lookup.count(load, "concurrency");
    if claim.asked.max_concurrency.is_none() {
        // For a stage with a cap, the rate sends all requests at once.
        claim.asked.request_rate = lookup.rate(load, "requested_rate");
        lookup.state(claim, (load, "achieved_rate"), "throughput.sent-per-s", 1.0);
    }
    lookup.inner(load, "schedule_delay", |lookup, delay| {
        lookup.statistics(claim, delay, "send-lag", 1e3);
    });
}

fn answered_figures(claim: &mut Claim, successes: &Object, lookup: &mut Lookup) {
    let answered = lookup.state_count(claim, (successes, "count"), "requests.successful");
    lookup.inner(successes, "latency", |lookup, latency| {
        for (key, name) in LATENCIES {
            lookup.inner(latency, key, |lookup, metric| {
                lookup.statistics(claim, metric, name, 1e3);
            });
        }
    });
    lookup.inner(successes, "throughput", |lookup, throughput| {
        for (key, name) in RATES {
            lookup.state(claim, (throughput, key), name, 1.0);
        }
    });
    // Before 0.7 it had only the means of the prompts' lengths.
    let mut total = |key: &str, of: &str| -> Option<f64> {
        let length = lookup.object(successes, key)?;
        if of == "total" {
            return Some(lookup.number(length, of)?.value);
        }
        Some((lookup.number(length, of)?.value * answered? as f64).round())
    };
    let input = total("prompt_tokens", "total").or_else(|| total("prompt_len", "mean"));
    let text = total("output_len", "mean");
    let served = total("output_tokens", "total");
    if let Some(input) = input {
        claim.state("tokens.input", input, 0.0);
    }
    match (text, served) {
        (Some(text), Some(served)) if counts_text(claim, text, served) => {
            claim.state("tokens.output", text, 0.0);
            claim.state("tokens.output-served", served, 0.0);
        }
        (Some(text), Some(served)) => {
            claim.state("tokens.output", served, 0.0);
            claim.state("tokens.output-retokenized", text, 0.0);
        }
        (Some(tokens), None) | (None, Some(tokens)) => claim.state("tokens.output", tokens, 0.0),
        (None, None) => {}
    }
    // Its lengths count the text's tokens, so the other figures must count them too.
    if claim.stated("tokens.output-retokenized").is_none()
        && let Some(lengths) = lookup.object(successes, "output_len")
    {
        claim.output_lengths = lookup.lengths(lengths);
    }
}

/// True if the rate counts the text's tokens, as it does without `use_server_output_tokens`.
fn counts_text(claim: &Claim, text: f64, served: f64) -> bool {
    let rate = claim.value("throughput.output-tokens-per-s");
    let Some(tokens) =
        rate.zip(claim.value("throughput.duration-s")).map(|(rate, duration)| rate * duration)
    else {
        return true;
    };
    let off = |count: f64| (tokens - count).abs();
    off(served) > served * SAME || off(text) <= off(served)
}

pub(super) fn read_requests(list: &[Value], source: Source) -> Result<Claim, Vec<ReadError>> {
    let mut lookup = Lookup::new(&source);
    let mut claim = Claim::new(Tool::InferencePerf, source);
    let mut served = Some(0.0);
    lookup.each(list, "an object for each request", |lookup, request| {
        let (sample, of_server) = sample(request, lookup);
        if sample.error.is_none() {
            served = served.zip(of_server).map(|(sum, own)| sum + own);
        }
        claim.samples.push(sample);
    });
    if !lookup.errors.is_empty() {
        return Err(lookup.errors);
    }
    let answered: Vec<&Sample> =
        (claim.samples.iter()).filter(|sample| sample.error.is_none()).collect();
    let count = answered.len();
    let sum = |tokens: fn(&Sample) -> Option<u64>| -> Option<u64> {
        answered.iter().try_fold(0_u64, |sum, sample| sum.checked_add(tokens(sample)?))
    };
    let (input, output) = (sum(|sample| sample.input_tokens), sum(|sample| sample.output_tokens));
    claim.state("requests.successful", count as f64, 0.0);
    claim.state("requests.failed", (list.len() - count) as f64, 0.0);
    for (name, tokens) in [("tokens.input", input), ("tokens.output", output)] {
        if let Some(tokens) = tokens.filter(|_| count > 0) {
            claim.state(name, tokens as f64, 0.0);
        }
    }
    if let Some(served) = served.filter(|_| count > 0) {
        claim.state("tokens.output-served", served, 0.0);
    }
    Ok(claim)
}

/// One request, and the server's count of the tokens of its answer.
fn sample(request: &Object, lookup: &mut Lookup) -> (Sample, Option<f64>) {
    let start = lookup.number(request, "start_time").map(|at| at.value);
    let end = lookup.number(request, "end_time").map(|at| at.value);
    let mut sample = Sample {
        start_s: start,
        e2e_ms: start.zip(end).map(|(start, end)| (end - start) * 1e3),
        ..Sample::default()
    };
    if let Some(error) = request.get("error").filter(|error| !error.is_null()) {
        let kind = error.get("error_type").and_then(Value::as_str);
        sample.error = Some(kind.unwrap_or("failed").to_owned());
    }
    let info = lookup.object(request, "info");
    let response = info.and_then(|info| lookup.object(info, "response_metrics"));
    let mut served = None;
    if let Some(response) = response {
        sample.output_tokens = lookup.count(response, "output_tokens");
        if let Some(usage) = lookup.object(response, "server_usage") {
            served =
                SERVED.iter().find_map(|key| lookup.count(usage, key)).map(|tokens| tokens as f64);
        }
        let times = lookup.numbers(response, "output_token_times");
        let times: Vec<f64> = times.into_iter().flatten().flatten().collect();
        // Like inference-perf, only for replies in more than one piece.
        if let [first, .., last] = times.as_slice() {
            sample.ttft_ms = start.map(|start| (first - start) * 1e3);
            sample.gaps_ms = times.windows(2).map(|pair| (pair[1] - pair[0]) * 1e3).collect();
            let tokens = sample.output_tokens.filter(|tokens| *tokens > 1);
            sample.tpot_ms = tokens.map(|tokens| (last - first) * 1e3 / (tokens - 1) as f64);
        }
    }
    if let Some(info) = info {
        sample.input_tokens = lookup.count(info, "input_tokens");
    }
    if let Some(own) = lookup.object(request, "computed_metrics") {
        let mut ms = |key: &str| lookup.number(own, key).map(|stated| stated.value * 1e3);
        sample.ttft_ms = ms("time_to_first_token").or(sample.ttft_ms);
        sample.tpot_ms = ms("time_per_output_token").or(sample.tpot_ms);
        sample.e2e_ms = ms("request_latency").or(sample.e2e_ms);
        sample.input_tokens = lookup.count(own, "input_tokens").or(sample.input_tokens);
        sample.output_tokens = lookup.count(own, "output_tokens").or(sample.output_tokens);
        if let Some(gaps) = lookup.numbers(own, "inter_token_latencies") {
            sample.gaps_ms = gaps.into_iter().flatten().map(|gap| gap * 1e3).collect();
        }
    }
    (sample, served)
}

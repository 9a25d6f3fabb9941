//! Results with all figures in one flat object: `vllm bench serve`'s JSON, SGLang's and
//! LMDeploy's JSON lines, and LMDeploy's table.

use serde_json::Value;

use super::definition::vllm_chat;
use super::json::{Lookup, Object};
use super::{Claim, ReadError, Sample, Source, Tool};

/// Figures of the run as a whole, by their keys. Counts are exact.
const WHOLE: [(&str, &str, bool); 17] = [
    ("completed", "requests.successful", true),
    ("failed", "requests.failed", true),
    ("duration", "throughput.duration-s", false),
    ("total_input_tokens", "tokens.input", true),
    ("total_output_tokens", "tokens.output", true),
    ("total_output_tokens_retokenized", "tokens.output-retokenized", true),
    ("request_throughput", "throughput.requests-per-s", false),
    ("input_throughput", "throughput.input-tokens-per-s", false),
    ("output_throughput", "throughput.output-tokens-per-s", false),
    ("total_throughput", "throughput.total-tokens-per-s", false),
    ("total_token_throughput", "throughput.total-tokens-per-s", false),
    ("max_output_tokens_per_s", "throughput.peak-output-tokens-per-s", false),
    ("max_concurrent_requests", "concurrency.peak", true),
    ("concurrency", "concurrency.mean", false),
    ("request_goodput", "goodput.requests-per-s", false),
    ("slo_attainment", "goodput.slo-attainment", false),
    ("goodput_output_throughput", "goodput.output-tokens-per-s", false),
];

/// Latencies, as their keys end: `p99_ttft_ms`.
const LATENCIES: [(&str, &str); 5] = [
    ("_ttft_ms", "ttft"),
    ("_tpot_ms", "tpot"),
    ("_itl_ms", "itl"),
    ("_e2el_ms", "e2e"),
    ("_e2e_latency_ms", "e2e"),
];

/// Finds the tool that wrote an object; nothing if it is no result of this kind.
pub(super) fn tool(object: &Object) -> Option<Tool> {
    let has = |key: &str| object.contains_key(key);
    if !(has("completed") && has("duration")) {
        return None;
    }
    Some(if has("model_id") || has("tokenizer_id") || has("endpoint_type") {
        Tool::Vllm
    } else if has("server_info") || has("concurrency") || has("accept_length") || has("tag") {
        Tool::Sglang
    } else if has("mean_e2e_latency_ms") {
        Tool::Lmdeploy
    } else {
        Tool::Unknown
    })
}

pub(super) fn read(object: &Object, tool: Tool, source: Source) -> Result<Claim, Vec<ReadError>> {
    let mut lookup = Lookup::new(&source);
    let mut claim = Claim::new(tool, source);
    for (key, name, count) in WHOLE {
        if let Some(stated) = lookup.number(object, key) {
            claim.state(name, stated.value, if count { 0.0 } else { stated.rounding });
        }
    }
    latencies(&mut claim, object, &mut lookup);
    settings(&mut claim, object, &mut lookup);
    samples(&mut claim, object, &mut lookup);
    if tool == Tool::Sglang && claim.value("requests.failed").is_none() && !claim.samples.is_empty()
    {
        let failed = claim.samples.iter().filter(|sample| sample.error.is_some()).count();
        claim.state("requests.failed", failed as f64, 0.0);
    }
    let backend = claim.about.notes.get("backend");
    if tool == Tool::Vllm && backend.is_some_and(|backend| backend == "openai-chat") {
        claim.definitions.extend(vllm_chat(object));
    }
    lookup.finish(claim)
}

fn latencies(claim: &mut Claim, object: &Object, lookup: &mut Lookup) {
    for key in object.keys() {
        let parts =
            LATENCIES.iter().find_map(|(end, metric)| Some((key.strip_suffix(end)?, metric)));
        if let Some((statistic, metric)) = parts
            && let Some(statistic) = super::statistic(statistic)
        {
            lookup.state(claim, (object, key), format!("{metric}.{statistic}"), 1.0);
        }
    }
}

fn settings(claim: &mut Claim, object: &Object, lookup: &mut Lookup) {
    claim.model = lookup.text(object, "model_id").map(str::to_owned);
    let backend = lookup.text(object, "backend").map(str::to_owned);
    claim.about.notes.extend(backend.map(|backend| ("backend".to_owned(), backend)));
    let settings = &mut claim.asked;
    settings.requests = lookup.count(object, "num_prompts");
    settings.request_rate = lookup.rate(object, "request_rate");
    if lookup.text(object, "ramp_up_strategy").is_some() {
        // vLLM then writes an infinite rate, and ramps it up.
        settings.request_rate = None;
    }
    settings.max_concurrency = lookup.count(object, "max_concurrency");
    settings.burstiness = lookup.rate(object, "burstiness").filter(|shape| shape.is_finite());
    settings.dataset = lookup.text(object, "dataset_name").map(str::to_owned);
    if settings.dataset.as_deref() == Some("random") {
        let input = lookup.count(object, "random_input_len");
        let output = lookup.count(object, "random_output_len");
        if let (Some(input), Some(output)) = (input, output) {
            claim.scenario = Some(format!("random {input}/{output}"));
        }
        // SGLang's and LMDeploy's ratio is the least length as a share of the greatest.
        let ratio = lookup.number(object, "random_range_ratio").map(|ratio| ratio.value);
        if ratio == Some(1.0) {
            claim.asked.input_tokens = input;
            claim.asked.output_tokens = output;
        } else if matches!(claim.tool, Tool::Sglang | Tool::Lmdeploy) {
            claim.asked.most_output_tokens = output;
        }
    } else {
        claim.scenario.clone_from(&settings.dataset);
        settings.output_tokens = lookup.count(object, "sharegpt_output_len");
    }
    if let Some(Value::Object(server)) = object.get("server_info") {
        claim.about.engine = Some("sglang".into());
        claim.about.engine_version = lookup.text(server, "version").map(str::to_owned);
        claim.model = lookup.text(server, "model_path").map(str::to_owned);
    }
}

/// Reads the lists that `--save-detailed` and `--output-details` add, with an entry a request.
fn samples(claim: &mut Claim, object: &Object, lookup: &mut Lookup) {
    let ttfts = lookup.numbers(object, "ttfts").unwrap_or_default();
    let outputs = lookup.numbers(object, "output_lens").unwrap_or_default();
    let requests = ttfts.len().max(outputs.len());
    let inputs = lookup.numbers(object, "input_lens").unwrap_or_default();
    let starts = lookup.numbers(object, "start_times").unwrap_or_default();
    let latencies = lookup.numbers(object, "latencies").unwrap_or_default();
    let gaps = object.get("itls").and_then(Value::as_array);
    let errors = object.get("errors").and_then(Value::as_array);
    let at = |list: &[Option<f64>], index: usize| list.get(index).copied().flatten();
    // vLLM's lists of latencies leave out the requests that failed; then they tell of none.
    let latencies = if latencies.len() == requests { latencies } else { Vec::new() };
    claim.samples = (0..requests)
        .map(|index| {
            let gaps_ms: Vec<f64> = gaps
                .and_then(|gaps| gaps.get(index)?.as_array())
                .map(|gaps| gaps.iter().filter_map(Value::as_f64).map(|s| s * 1e3).collect())
                .unwrap_or_default();
            let ttft_ms = at(&ttfts, index).map(|seconds| seconds * 1e3);
            let until_last = ttft_ms.map(|ttft| ttft + gaps_ms.iter().sum::<f64>());
            let error = errors.and_then(|errors| errors.get(index)?.as_str());
            Sample {
                start_s: at(&starts, index),
                input_tokens: at(&inputs, index).map(|tokens| tokens as u64),
                output_tokens: at(&outputs, index).map(|tokens| tokens as u64),
                ttft_ms,
                e2e_ms: at(&latencies, index).map(|seconds| seconds * 1e3).or(until_last),
                tpot_ms: None,
                gaps_ms,
                error: error.filter(|error| !error.is_empty()).map(str::to_owned),
            }
        })
        .collect();
    // A whole result lists all of its requests, so the lists give an unstated number.
    if claim.asked.requests.is_none() && requests > 0 {
        claim.asked.requests = Some(requests as u64);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn vllm_ttft_depends_on_route_and_version() {
        for (backend, further, metric) in [
            ("vllm", r#", "queue_times": [0.0]"#, "ttft-any"),
            ("openai", r#", "server_ttfts": [0.1]"#, "ttft-any"),
            ("openai-chat", "", "ttft-any"),
            ("openai-chat", r#", "queue_times": [0.0]"#, "ttft-any"),
            ("openai-chat", r#", "queue_times": [0.0], "server_ttfts": [0.1]"#, "ttft"),
        ] {
            let result = format!(
                r#"{{"backend": "{backend}", "model_id": "m", "completed": 1, "duration": 1.0{further}}}"#
            );
            let document = super::super::read("v.json", result.as_bytes()).unwrap();
            let ttft = &document.claims[0].definitions["ttft"];
            assert_eq!(ttft.metric.as_deref(), Some(metric), "{result}");
            let is_open = further == r#", "queue_times": [0.0]"# && backend == "openai-chat";
            assert_eq!(ttft.formula.contains("from vLLM 0.33 on"), is_open, "{result}");
        }
    }
}

//! The line `Namespace(model='…', num_prompts=10000, …)` that Python's tools print of their flags.

use std::collections::BTreeMap;

use crate::claim::{Claim, Tool};

/// The flags of the last such line in a text.
pub(super) fn flags(text: &str) -> Option<BTreeMap<&str, &str>> {
    let at = text.rfind("Namespace(")? + "Namespace(".len();
    let mut flags = BTreeMap::new();
    let mut depth = 0;
    let mut quote = None;
    let mut begun = at;
    for (offset, c) in text[at..].char_indices() {
        let here = at + offset;
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') if depth > 0 => depth -= 1,
            (None, ',' | ')') if depth == 0 => {
                if let Some((name, value)) = text[begun..here].split_once('=') {
                    flags.insert(name.trim(), value.trim().trim_matches(['\'', '"']));
                }
                begun = here + 1;
                if c == ')' {
                    break;
                }
            }
            _ => {}
        }
    }
    Some(flags)
}

/// The settings in the flags.
pub(super) fn fill(claim: &mut Claim, flags: &BTreeMap<&str, &str>) {
    let text = |name: &str| flags.get(name).copied().filter(|value| *value != "None");
    let count = |name: &str| text(name).and_then(|value| value.parse::<u64>().ok());
    claim.model = text("model").map(str::to_owned).or(claim.model.take());
    let settings = &mut claim.asked;
    settings.requests = count("num_prompts").or(settings.requests);
    settings.seed = count("seed").or(settings.seed);
    settings.max_concurrency = count("max_concurrency").or(settings.max_concurrency);
    settings.request_rate =
        text("request_rate").and_then(|rate| rate.parse().ok()).or(settings.request_rate);
    if text("ramp_up_strategy").is_some() {
        // vLLM then has an infinite rate in its flags, and ramps it up.
        settings.request_rate = None;
    }
    settings.burstiness = text("burstiness")
        .and_then(|shape| shape.parse().ok())
        .filter(|shape: &f64| shape.is_finite());
    settings.dataset = text("dataset_name").map(str::to_owned).or(settings.dataset.take());
    if text("disable_stream") == Some("True") || text("no_stream") == Some("True") {
        settings.stream = Some(false);
    }
    if settings.dataset.as_deref() != Some("random") {
        claim.scenario.clone_from(&settings.dataset);
        settings.output_tokens = count("sharegpt_output_len").or(settings.output_tokens);
        return;
    }
    let (input, output) = (count("random_input_len"), count("random_output_len"));
    if let (Some(input), Some(output)) = (input, output) {
        claim.scenario = Some(format!("random {input}/{output}"));
    }
    // The least length as a share of the greatest; vLLM's is the share that lengths may differ by.
    let ratio = text("random_range_ratio").and_then(|ratio| ratio.parse::<f64>().ok());
    let fixed = match claim.tool {
        Tool::Vllm => ratio == Some(0.0),
        _ => ratio == Some(1.0),
    };
    if fixed {
        settings.input_tokens = input;
        settings.output_tokens = output;
    } else if matches!(claim.tool, Tool::Sglang | Tool::Lmdeploy) {
        settings.most_output_tokens = output;
    }
}

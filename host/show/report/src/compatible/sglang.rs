//! A line of the file that SGLang's `bench_serving` appends to (`--output-file`, with
//! `--output-details` where detailed), version 0.5.23: its keys, in its order, with its units:
//! times of requests in seconds, statistics in milliseconds.
//!
//! It leaves out `cache_report`, which SGLang writes on request only. `tag`, `server_info` and
//! `accept_length` are null, as in SGLang's file when they are not set or not known; so are lengths
//! of random prompts for any other dataset.

use super::{Compatible, Object};

pub(crate) const BACKENDS: [(&str, &str, &str); 7] = [
    ("sglang", "generate", "sglang"),
    ("sglang", "completions", "sglang-oai"),
    ("sglang", "chat", "sglang-oai-chat"),
    ("vllm", "completions", "vllm"),
    ("vllm", "chat", "vllm-chat"),
    ("lmdeploy", "completions", "lmdeploy"),
    ("lmdeploy", "chat", "lmdeploy-chat"),
];

/// Datasets whose prompts are text alone.
const TEXT: [&str; 3] = ["random", "sharegpt", "sharegpt-file"];

pub(crate) const PERCENTILES: [f64; 3] = [90.0, 95.0, 99.0];

impl Compatible<'_> {
    /// SGLang's name for the way the server is called.
    pub(crate) fn sglang_backend(&self) -> String {
        self.backend(&BACKENDS)
    }

    /// Input tokens that are text; absent if that is unknown.
    pub(crate) fn text_tokens(&self) -> Option<u64> {
        let dataset = self.reported.plan.dataset.plugin.name.as_str();
        self.figures.input.filter(|_| TEXT.contains(&dataset))
    }
}

pub fn json(run: &Compatible<'_>) -> String {
    let Compatible { reported, figures, .. } = run;
    let dataset = &reported.plan.dataset.plugin;
    let setting = |of: &str, key: &str| {
        let config = Some(&dataset.config).filter(|_| dataset.name == of);
        config.and_then(|config| config.get(key)).cloned()
    };
    let mut object = Object::default();
    object.field("tag", None::<&str>);
    object.field("backend", run.sglang_backend());
    object.field("dataset_name", &dataset.name);
    object.field("request_rate", run.request_rate());
    object.field("max_concurrency", reported.summary.run.max_in_flight);
    object.field("sharegpt_output_len", setting("sharegpt", "output-len"));
    object.field("random_input_len", setting("random", "input-len"));
    object.field("random_output_len", setting("random", "output-len"));
    object.field("random_range_ratio", setting("random", "range-ratio"));
    object.field("server_info", None::<&str>);

    object.measured("duration", figures.duration_s);
    object.field("completed", figures.completed);
    object.measured("total_input_tokens", figures.input);
    let text = run.text_tokens();
    object.measured("total_input_text_tokens", text);
    object.measured("total_input_vision_tokens", text.map(|_| 0));
    object.measured("total_output_tokens", figures.output);
    object.measured("total_output_tokens_retokenized", figures.retokenized);
    object.measured("request_throughput", figures.per_s(Some(figures.completed)));
    object.measured("input_throughput", figures.per_s(figures.input));
    object.measured("output_throughput", figures.per_s(figures.output));
    object.measured("total_throughput", figures.per_s(figures.tokens()));
    for (name, distribution) in [
        ("e2e_latency", &figures.e2e),
        ("ttft", &figures.ttft),
        ("tpot", &figures.tpot),
        ("itl", &figures.itl),
    ] {
        if let Some(distribution) = distribution {
            super::statistics(&mut object, name, distribution, &PERCENTILES);
        }
    }
    object.measured("concurrency", figures.concurrency());
    object.field("accept_length", None::<f64>);
    object.measured("max_output_tokens_per_s", figures.peak_tokens.map(|tokens| tokens as f64));
    object.measured("max_concurrent_requests", figures.peak_requests);
    if let Some(good) = &figures.good {
        let share = |part: u64| (figures.total > 0).then(|| part as f64 / figures.total as f64);
        let each = good.each.iter();
        object.field("goodput_slos_ms", pairs(each.clone().map(|(n, limit, _)| (*n, *limit))));
        object.measured("request_goodput", figures.per_s(Some(good.all)));
        object.field("slo_attainment", share(good.all));
        object.field(
            "slo_attainment_by_metric",
            pairs(each.map(|(name, _, kept)| (*name, share(*kept)))),
        );
    }
    let requests = run.requests.iter();
    let details: Vec<_> = requests.filter_map(|r| r.detail.as_deref()).collect();
    if !details.is_empty() {
        super::lengths_and_gaps(&mut object, &details);
        super::texts_and_errors(&mut object, &details);
    }
    object.finish()
}

fn pairs<'a>(
    pairs: impl Iterator<Item = (&'a str, impl Into<serde_json::Value>)>,
) -> serde_json::Map<String, serde_json::Value> {
    pairs.map(|(name, value)| (name.to_owned(), value.into())).collect()
}

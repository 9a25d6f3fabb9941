//! Flags of other clients that this program understands, with the scenario keys that they set.

use super::Takes::{Nothing, Number, Text, Whole};
use super::{Means, Pairs, Row, Takes};
use super::{
    content, custom_output, distribution, groups, label, mode, model_path, resolution, served, tag,
};

const RANDOM: &[&str] = &["random"];
const CUSTOM: &[&str] = &["custom"];
const SHARED: &[&str] = &["shared-prefix"];
const IMAGES: &[&str] = &["images"];
const TRACE: &[&str] = &["trace"];
const ANY: &[&str] = &[];

const VLLM_PREFIXES: Pairs = &[("dataset.config.algorithm", "\"vllm\"")];
const VLLM_TRACE: Pairs = &[("dataset.config.format", "\"vllm-timed\"")];
const ROUTED_BY_PREFIX: Pairs = &[
    ("request.ids.routing-key", "\"x-smg-routing-key\""),
    ("request.ids.routing-by", "\"prefix\""),
];
const IN_ORDER: Pairs = &[("dataset.config.shuffle", "false")];

const fn row(
    long: &'static str,
    takes: Takes,
    datasets: &'static [&'static str],
    means: Means,
) -> Row {
    Row { long, takes, datasets, means }
}

const fn key(
    long: &'static str,
    takes: Takes,
    datasets: &'static [&'static str],
    key: &'static str,
) -> Row {
    row(long, takes, datasets, Means::Key(key, &[]))
}

const fn key_and(
    long: &'static str,
    takes: Takes,
    datasets: &'static [&'static str],
    key: &'static str,
    fixed: Pairs,
) -> Row {
    row(long, takes, datasets, Means::Key(key, fixed))
}

const fn anyway(long: &'static str, takes: Takes, why: &'static str) -> Row {
    row(long, takes, ANY, Means::Anyway(why))
}

/// Every row. A flag that needs another stands after it.
#[rustfmt::skip]
pub(super) const ROWS: [Row; 58] = [
    row("disable-warmup", Nothing, ANY, Means::Fixed(&[("load.warmup", "0")])),
    row("model-path", Text, ANY, Means::Change(model_path, "`--tokenizer`, unless that is given")),
    // The target and the run.
    row("served-model-name", Text, ANY, Means::Change(served, "`--model`, and the name in `--model` is `--tokenizer` unless that is given")),
    row("label", Text, ANY, Means::Change(label, "`name` of the scenario, which names the run's folder")),
    row("tag", Text, ANY, Means::Change(tag, "`--metadata tag=VALUE`")),
    row("ignore-eos", Nothing, ANY, Means::Fixed(&[("request.ignore-eos", "true")])),
    row("lora-request-distribution", Text, ANY, Means::Change(distribution, "`--lora-assignment`: `uniform` is `random`, `distinct` is `round-robin`, `skewed` is refused")),
    row("tokenizer-mode", Text, ANY, Means::Change(mode, "`auto` and `hf` are what `--tokenizer` reads anyway; others are refused")),
    // Lengths of any dataset.
    key("input-len", Whole, &["random", "images", "audio", "embeddings"], "dataset.config.input-len"),
    key("output-len", Whole, ANY, "dataset.config.output-len"),
    row("disable-shuffle", Nothing, &["sharegpt", "custom", "conversation"], Means::Fixed(IN_ORDER)),
    row("tokenize-prompt", Nothing, &["random", "shared-prefix", "trace"], Means::Fixed(&[("dataset.config.as", "\"tokens\"")])),
    // Random prompts, texts to embed.
    key_and("random-prefix-len", Whole, RANDOM, "dataset.config.prefix-len", &[("dataset.config.like", "\"vllm\"")]),
    key("random-batch-size", Whole, &["embeddings"], "dataset.config.batch-size"),
    // Files of prompts.
    key_and("sharegpt-context-len", Whole, &["sharegpt"], "dataset.config.context-len", &[("dataset.config.like", "\"sglang\"")]),
    row("custom-output-len", Text, CUSTOM, Means::Change(custom_output, "`dataset.config.output-len`; -1 leaves it to the file")),
    key("spec-bench-output-len", Whole, CUSTOM, "dataset.config.output-len"),
    row("spec-bench-category", Text, CUSTOM, Means::Only("dataset.config.classes")),
    key("speed-bench-output-len", Whole, CUSTOM, "dataset.config.output-len"),
    row("speed-bench-category", Text, CUSTOM, Means::Only("dataset.config.classes")),
    // SGLang's groups of prompts with a common prefix.
    key("gsp-num-groups", Whole, SHARED, "dataset.config.groups"),
    key("gsp-prompts-per-group", Whole, SHARED, "dataset.config.prompts-per-group"),
    key("gsp-system-prompt-len", Whole, SHARED, "dataset.config.prefix-len"),
    key("gsp-question-len", Whole, SHARED, "dataset.config.question-len"),
    key("gsp-output-len", Whole, SHARED, "dataset.config.output-len"),
    key("gsp-range-ratio", Number, SHARED, "dataset.config.range-ratio"),
    key("gsp-num-turns", Whole, SHARED, "dataset.config.turns"),
    row("gsp-ordered", Nothing, SHARED, Means::Fixed(IN_ORDER)),
    key("gsp-zipf-alpha", Number, SHARED, "dataset.config.zipf"),
    row("gsp-group-distribution", Text, SHARED, Means::Change(groups, "`uniform` holds without `dataset.config.zipf`, `zipf` needs `--gsp-zipf-alpha`")),
    row("gsp-send-routing-key", Nothing, SHARED, Means::Fixed(ROUTED_BY_PREFIX)),
    anyway("gsp-fast-prepare", Nothing, "prompts are counted while they are made, before the load"),
    // vLLM's.
    key_and("prefix-repetition-num-prefixes", Whole, SHARED, "dataset.config.groups", VLLM_PREFIXES),
    key_and("prefix-repetition-prefix-len", Whole, SHARED, "dataset.config.prefix-len", VLLM_PREFIXES),
    key_and("prefix-repetition-suffix-len", Whole, SHARED, "dataset.config.question-len", VLLM_PREFIXES),
    key_and("prefix-repetition-output-len", Whole, SHARED, "dataset.config.output-len", VLLM_PREFIXES),
    // Images.
    key("image-count", Whole, IMAGES, "dataset.config.images"),
    key("image-format", Text, IMAGES, "dataset.config.format"),
    row("image-resolution", Text, IMAGES, Means::Change(resolution, "`dataset.config.sizes`, width before height: `1080x1920` is `[\"1920x1080\"]`")),
    row("image-content", Text, IMAGES, Means::Change(content, "`dataset.config.noise`: `random` is 1.0, `blank` is 0.0")),
    key("random-mm-base-items-per-request", Whole, IMAGES, "dataset.config.images"),
    // Traces.
    row("self-timed", Nothing, ANY, Means::Fixed(&[("load.arrival", "\"dataset\"")])),
    row("no-self-timed", Nothing, ANY, Means::Change(|_, _, _| Ok(()), "`--arrival`, `--request-rate` and `--concurrency` decide when requests are due")),
    key_and("timed-trace-chunk-hash-size", Whole, TRACE, "dataset.config.block-size", VLLM_TRACE),
    key_and("timed-trace-sec-multiplier", Number, TRACE, "dataset.config.time-unit", VLLM_TRACE),
    key_and("timed-trace-label-timestamp", Text, TRACE, "dataset.config.labels.timestamp", VLLM_TRACE),
    key_and("timed-trace-label-input-length", Text, TRACE, "dataset.config.labels.input-length", VLLM_TRACE),
    key_and("timed-trace-label-output-length", Text, TRACE, "dataset.config.labels.output-length", VLLM_TRACE),
    key_and("timed-trace-label-hash-ids", Text, TRACE, "dataset.config.labels.hash-ids", VLLM_TRACE),
    key("mooncake-slowdown-factor", Number, TRACE, "dataset.config.time-scale"),
    // Flags whose effect holds anyway.
    anyway("save-result", Nothing, "every run is saved in a folder of its own (`--output-dir`)"),
    anyway("output-details", Nothing, "the run's folder holds a record of every request"),
    anyway("percentile-metrics", Text, "percentiles of all latencies are reported"),
    anyway("trust-remote-code", Nothing, "tokenizers are read as data, and no code of a model is run"),
    anyway("skip-chat-template", Nothing, "prompts are sent as the dataset has them; on a chat route the server applies its template"),
    anyway("no-stream", Nothing, "datasets are read from files, not streamed from a hub; for whole replies use `--disable-stream`"),
    anyway("rust-client", Nothing, "this client is a compiled one"),
    anyway("rust-worker-threads", Whole, "this client chooses the number of its threads"),
];

//! The formats by their case files, the tokens that prompts share, and the messages about wrong
//! input.

mod formats;
mod selection;
mod shared;
mod wrong;

use runner_plugin::{Dataset, Error, Sample, Tokenizer};
use runner_plugin_testing::datasets::{self, ids, prompt_text as text, rest};
use runner_plugin_testing::files::Named;
use runner_plugin_testing::tokenizer::StandIn;

use super::Trace;

/// The traces of the cases, with their formats and the usual configuration of the tests.
const TRACES: [(&str, &str, &str); 8] = [
    ("mooncake", include_str!("../../trace/cases/mooncake/trace.jsonl"), r#"{"block-size": 4}"#),
    (
        "mooncake-sessions",
        include_str!("../../trace/cases/mooncake-sessions/trace.jsonl"),
        r#"{"block-size": 4}"#,
    ),
    (
        "bailian",
        include_str!("../../trace/cases/bailian/trace.jsonl"),
        r#"{"block-size": 4, "replay": "sessions"}"#,
    ),
    ("weka", include_str!("../../trace/cases/weka/trace.jsonl"), "{}"),
    ("tracelab", include_str!("../../trace/cases/tracelab/trace.jsonl"), "{}"),
    ("burstgpt", include_str!("../../trace/cases/burstgpt/trace.csv"), r#"{"replay": "sessions"}"#),
    ("azure", include_str!("../../trace/cases/azure/trace.csv"), "{}"),
    (
        "vllm-timed",
        include_str!("../../trace/cases/vllm-timed/trace.jsonl"),
        r#"{"format": "vllm-timed", "block-size": 4, "labels": {"timestamp": "at", "input-length": "in"}}"#,
    ),
];

fn trace(name: &str) -> &'static str {
    TRACES
        .iter()
        .find(|(known, ..)| *known == name)
        .map(|found| found.1)
        .expect("a trace of the cases")
}

fn open_with(
    config: &str,
    trace: impl AsRef<[u8]>,
    seed: u64,
    tokenizer: impl Tokenizer + 'static,
) -> Result<Trace, Error> {
    let files = Named::default().with_bytes("data", trace.as_ref());
    datasets::open(config, seed, None, files, tokenizer)
}

fn open(config: &str, trace: &str) -> Trace {
    open_with(config, trace, 7, StandIn).unwrap_or_else(|error| panic!("{config}: {error:?}"))
}

fn all(config: &str, trace: &str) -> Vec<Sample> {
    rest(&mut open(config, trace), 3)
}

/// Returns the samples that a sample waits for, with the pauses in milliseconds.
fn after(sample: &Sample) -> Vec<(&str, u64)> {
    sample.after.iter().map(|on| (on.sample.as_str(), on.delay / 1_000_000)).collect()
}

fn arrival(sample: &Sample) -> Option<u64> {
    sample.arrival.map(|arrival| arrival / 1_000_000)
}

fn complaint(config: &str, trace: &str) -> String {
    datasets::mistake(open_with(config, trace, 7, StandIn))
}

fn remarks(dataset: &Trace) -> Vec<(String, u64, String)> {
    dataset
        .remarks()
        .into_iter()
        .map(|remark| {
            (
                format!("{:?}: {}", remark.what, remark.reason),
                remark.count,
                remark.first.unwrap_or_default(),
            )
        })
        .collect()
}

//! The golden cases, the effects that spare samples must not have, and the messages for a user.
//!
//! The file of the cases is made up: sixty conversations of random words. Some have no second turn
//! or no prompt, are too short or too long, and three have the same prompt. The digests of the
//! cases come from the tools' own Python code on it, with the same tokenizer.

use std::collections::BTreeSet;
use std::path::Path;

use runner_plugin::{Dataset, Error, Treatment};
use runner_plugin_testing::datasets::{self, invalid_config, invalid_input, rest as all, text};
use runner_plugin_testing::files::Named;
use runner_plugin_testing::tokenizer::Pairs;

use super::ShareGpt;

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/cases"))
}

fn open(config: &str, seed: u64, count: Option<u64>, files: Named) -> Result<ShareGpt, Error> {
    datasets::open(config, seed, count, files, Pairs)
}

fn sample_file() -> Named {
    Named::default().with_path("data", folder().join("conversations.json"))
}

#[test]
fn spare_samples_do_not_change_measured_samples() {
    for like in ["lmdeploy", "vllm", "sglang"] {
        let config = format!(r#"{{"like": "{like}"}}"#);
        for seed in 0..20 {
            for count in [1, 20, 40, 47, 48, 49, 50, 60] {
                let mut plain = open(&config, seed, Some(count), sample_file()).expect("a dataset");
                let mut spared =
                    open(&config, seed, Some(count), sample_file()).expect("a dataset");
                let mut spare = spared.spare(4).expect("spare samples");
                spare.extend(spared.spare(3).expect("spare samples"));
                let (plain, spared) = (all(&mut plain, 9), all(&mut spared, 9));
                let measured = plain.len().min(count as usize);
                assert_eq!(
                    plain[..measured],
                    spared[..measured],
                    "{like}, seed {seed}, count {count}"
                );
                let given: BTreeSet<&str> = spared.iter().map(text).collect();
                for sample in &spare {
                    assert!(
                        !given.contains(text(sample)),
                        "{like}, seed {seed}, count {count}: {}",
                        text(sample)
                    );
                }
                if count <= 20 {
                    assert_eq!(spare.len(), 7);
                }
            }
        }
    }
}

#[test]
fn a_run_of_unknown_length_spares_too() {
    for seed in 0..20 {
        let mut dataset = open("{}", seed, None, sample_file()).expect("a dataset");
        let spare = dataset.spare(5).expect("spare samples");
        assert_eq!(spare.len(), 5);
        let samples = all(&mut dataset, 10);
        let given: BTreeSet<&str> = samples.iter().map(text).collect();
        assert!(spare.iter().all(|sample| !given.contains(text(sample))));
        let mut greedy = open("{}", seed, None, sample_file()).expect("a dataset");
        let spare = greedy.spare(1000).expect("spare samples");
        assert!(spare.len() < 30 && greedy.next(1).expect("a sample").len() == 1);
    }
}

#[test]
fn no_file_is_the_users_to_name() {
    let message = invalid_config(open("{}", 1, None, Named::default()));
    let remedy = "pass --dataset-path FILE, or set `data = \"FILE\"` under [dataset.files]";
    assert!(message.contains(remedy), "{message}");
}

#[test]
fn configurations_that_no_tool_takes_are_refused() {
    for (config, expected) in [
        (r#"{"output-len": 3}"#, "`output-len` is 3; expected at least 4"),
        (r#"{"output-len": 0, "like": "vllm"}"#, "`output-len` is 0; expected at least 1"),
        (r#"{"context-len": 4096}"#, "`context-len` belongs to `like = \"sglang\"`"),
        (
            r#"{"like": "trt"}"#,
            "key `like`: unknown variant `trt`, expected one of `lmdeploy`, `vllm`, `sglang`",
        ),
    ] {
        let message = invalid_config(open(config, 1, None, sample_file()));
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_file_without_a_usable_conversation_is_refused() {
    let files = Named::default()
        .with_bytes("data", *br#"[{"conversations": [{"value": "a"}, {"value": "b"}]}]"#);
    assert_eq!(
        invalid_input(open("{}", 1, Some(1), files).expect("a dataset").next(1)),
        "none of the 1 conversations of two turns or more in the file `data` has 4 or more tokens in the prompt (at \
         most 1024) and 4 or more in the answer (at most 2048 together)"
    );
}

/// The file has sixty conversations.
#[test]
fn dropped_and_repeated_conversations_are_reported() {
    let reported = |like: &str, count: u64, given: usize| -> Vec<(Treatment, String, u64)> {
        let config = format!(r#"{{"like": "{like}"}}"#);
        let mut dataset = open(&config, 1, Some(count), sample_file()).expect("a dataset");
        let samples: usize = (0..count).map(|_| dataset.next(1).expect("samples").len()).sum();
        assert_eq!(samples, given, "{like}");
        let remarks = dataset.remarks();
        assert!(remarks.iter().all(|remark| remark.first.is_some()));
        remarks.into_iter().map(|remark| (remark.what, remark.reason, remark.count)).collect()
    };
    let dropped = |reason: &str, count| (Treatment::Dropped, reason.to_owned(), count);
    let short = dropped("conversation of fewer than two turns", 2);
    let mut expected = vec![
        short.clone(),
        dropped("prompt and answer of more than 2048 tokens", 2),
        dropped("prompt of fewer than 4 tokens", 3),
        dropped("answer of fewer than 4 tokens", 2),
        dropped("prompt of more than 1024 tokens", 1),
    ];
    assert_eq!(reported("lmdeploy", 60, 50), expected);
    expected.push((
        Treatment::Repeated,
        "conversation, because the run has more requests than the file has usable ones".to_owned(),
        10,
    ));
    assert_eq!(reported("vllm", 60, 60), expected);
    assert_eq!(reported("sglang", 1, 1), [short]);
}

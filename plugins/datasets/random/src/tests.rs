//! The golden cases, what spare samples must not disturb, and what a user is told.
//!
//! The digests of the cases with the tokenizer `pairs` are those of the tools' own Python code with the same
//! tokenizer.

use std::collections::BTreeSet;
use std::path::Path;

use runner_plugin::{Dataset, Error, Inputs, Prompt, Sample, Tokenizer};
use runner_plugin_testing::files::Named;
use runner_plugin_testing::tokenizer::{Pairs, StandIn};

use super::Random;

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/cases"))
}

fn corpus() -> Named {
    Named::default().with_path(
        "data",
        folder().join("../../sharegpt/cases/conversations.json"),
    )
}

fn open(
    config: &str,
    seed: u64,
    count: Option<u64>,
    files: Named,
    tokenizer: impl Tokenizer + 'static,
) -> Result<Random, Error> {
    let inputs = Inputs {
        files: Box::new(files),
        tokenizer: Box::new(tokenizer),
    };
    Random::open(runner_plugin::parse(config)?, seed, count, inputs)
}

fn first(dataset: &mut Random, wanted: usize, limit: u32) -> Vec<Sample> {
    let mut samples = Vec::new();
    while samples.len() < wanted {
        let more = dataset.next(limit).expect("samples");
        if more.is_empty() {
            break;
        }
        samples.extend(more);
    }
    samples.truncate(wanted);
    samples
}

fn prompt(sample: &Sample) -> String {
    format!("{:?}", sample.prompt)
}

/// A configuration, and whether it takes the corpus and the stand-in.
const WAYS: [(&str, bool, bool); 8] = [
    (r#"{"input-len": 20, "output-len": 8}"#, false, false),
    (
        r#"{"input-len": 4, "output-len": 8, "range-ratio": 0}"#,
        false,
        false,
    ),
    (
        r#"{"input-len": 20, "output-len": 8, "as": "tokens"}"#,
        false,
        false,
    ),
    (
        r#"{"input-len": 20, "output-len": 8, "like": "vllm", "range-ratio": {"input": 0.5, "output": 0.25}}"#,
        false,
        false,
    ),
    (
        r#"{"input-len": 4, "output-len": 8, "like": "vllm", "prefix-len": 3, "as": "tokens"}"#,
        false,
        false,
    ),
    (r#"{"input-len": 20, "output-len": 8}"#, true, false),
    (
        r#"{"input-len": 20, "output-len": 8, "like": "lmdeploy", "range-ratio": 0.5}"#,
        true,
        false,
    ),
    (r#"{"input-len": 3, "output-len": 8}"#, false, true),
];

fn way(
    (config, corpus_given, stand_in): (&str, bool, bool),
    seed: u64,
    count: Option<u64>,
) -> Random {
    let files = if corpus_given {
        corpus()
    } else {
        Named::default()
    };
    let opened = if stand_in {
        open(config, seed, count, files, StandIn)
    } else {
        open(config, seed, count, files, Pairs)
    };
    opened.unwrap_or_else(|error| panic!("{config}: {error:?}"))
}

#[test]
fn the_size_of_a_call_changes_nothing() {
    for each in WAYS {
        for count in [None, Some(30)] {
            let whole = first(&mut way(each, 1, count), 45, 45);
            assert_eq!(first(&mut way(each, 1, count), 45, 1), whole, "{}", each.0);
            assert_eq!(first(&mut way(each, 1, count), 45, 7), whole, "{}", each.0);
        }
    }
}

#[test]
fn spare_samples_leave_those_that_are_measured_as_they_are() {
    for each in WAYS {
        for seed in 0..8 {
            let plain = first(&mut way(each, seed, Some(40)), 40, 16);
            let mut spared = way(each, seed, Some(40));
            let mut spare = spared.spare(4).expect("spare samples");
            spare.extend(spared.spare(3).expect("spare samples"));
            assert!(!spare.is_empty(), "{}", each.0);
            let samples = first(&mut spared, 2000, 64);
            assert_eq!(samples[..plain.len()], plain, "{}, seed {seed}", each.0);
            let given: BTreeSet<String> = samples.iter().map(prompt).collect();
            for sample in &spare {
                assert!(
                    !given.contains(&prompt(sample)),
                    "{}, seed {seed}: {}",
                    each.0,
                    sample.id
                );
            }
        }
    }
}

#[test]
fn a_run_of_unknown_length_goes_on() {
    for each in WAYS.into_iter().filter(|(_, corpus, _)| !corpus) {
        let mut dataset = way(each, 7, None);
        assert_eq!(
            dataset.spare(3).expect("spare samples").len(),
            3,
            "{}",
            each.0
        );
        assert_eq!(first(&mut dataset, 2500, 100).len(), 2500, "{}", each.0);
    }
}

#[test]
fn the_stand_in_gives_as_many_characters_as_tokens_and_none_that_controls() {
    let mut dataset = open(
        r#"{"input-len": 300, "range-ratio": 0.1}"#,
        3,
        Some(200),
        Named::default(),
        StandIn,
    )
    .expect("a dataset");
    let mut lengths = BTreeSet::new();
    for sample in dataset
        .spare(5)
        .expect("spare samples")
        .into_iter()
        .chain(first(&mut dataset, 200, 32))
    {
        let Prompt::Text(text) = &sample.prompt else {
            panic!("expected text")
        };
        assert!(
            text.bytes().all(|byte| (b' '..=b'~').contains(&byte)),
            "{text:?}"
        );
        assert_eq!(sample.input_tokens, Some(text.len() as u32));
        lengths.insert(text.len());
    }
    assert!(
        lengths.len() > 50 && lengths.iter().all(|length| (30..=300).contains(length)),
        "{lengths:?}"
    );
}

#[test]
fn input_tokens_are_those_of_the_text_that_is_sent() {
    for each in WAYS.into_iter().filter(|(_, _, stand_in)| !stand_in) {
        for sample in first(&mut way(each, 5, Some(30)), 30, 30) {
            let counted = match &sample.prompt {
                Prompt::Text(text) => Pairs.count(std::slice::from_ref(text), true)[0],
                Prompt::Tokens(ids) => ids.len() as u32,
                Prompt::Messages(_) => panic!("expected no conversation"),
            };
            assert_eq!(
                sample.input_tokens,
                Some(counted),
                "{}: {}",
                each.0,
                sample.id
            );
        }
    }
}

#[test]
fn configurations_that_do_not_go_together_are_refused() {
    let cases: [(&str, bool, bool, &str); 9] = [
        (
            r#"{"input-len": 0}"#,
            false,
            false,
            "`input-len` is 0; expected at least 1 token",
        ),
        (
            r#"{"range-ratio": 1.5}"#,
            false,
            false,
            "`range-ratio` is 1.5; expected a number from 0 to 1",
        ),
        (
            r#"{"range-ratio": 1, "like": "vllm"}"#,
            false,
            false,
            "`range-ratio` is 1; expected a number from 0 (all lengths exact) to below 1",
        ),
        (
            r#"{"range-ratio": "x"}"#,
            false,
            false,
            "expected a number, or a table with the numbers `input` and `output`",
        ),
        (
            r#"{"prefix-len": 3}"#,
            false,
            false,
            "`prefix-len` belongs to `like = \"vllm\"`",
        ),
        (
            r#"{"like": "lmdeploy"}"#,
            false,
            false,
            "cuts its prompts from a ShareGPT file: pass --dataset-path FILE",
        ),
        (
            r#"{"like": "vllm"}"#,
            true,
            false,
            "draws token ids and reads no file: leave `data` out",
        ),
        (
            r#"{"as": "tokens"}"#,
            false,
            true,
            "needs the ids of the model's own tokenizer: pass --tokenizer",
        ),
        (
            r#"{"input-len": 1, "like": "vllm"}"#,
            false,
            false,
            "a prompt could have no tokens",
        ),
    ];
    for (config, corpus_given, stand_in, expected) in cases {
        let files = if corpus_given {
            corpus()
        } else {
            Named::default()
        };
        let opened = if stand_in {
            open(config, 1, None, files, StandIn)
        } else {
            open(config, 1, None, files, Pairs)
        };
        match opened.map(drop) {
            Err(Error::InvalidConfig(message)) => {
                assert!(message.contains(expected), "{config}: {message}")
            }
            other => panic!("{config}: expected invalid configuration, got {other:?}"),
        }
    }
}

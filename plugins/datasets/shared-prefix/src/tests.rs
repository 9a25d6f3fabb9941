//! The tools' own prompts, the effects that spare samples must not have, and the messages for a
//! user.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use runner_plugin::{Dataset, Dependency, Error, Message, Part, Prompt, Role, Sample, Tokenizer};
use runner_plugin_testing::datasets::{self, cases, first, invalid_config, prompt_text};
use runner_plugin_testing::files::Named;
use runner_plugin_testing::tokenizer::{Pairs, StandIn};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::SharedPrefix;

fn open(
    config: &str,
    seed: u64,
    count: Option<u64>,
    tokenizer: impl Tokenizer + 'static,
) -> Result<SharedPrefix, Error> {
    datasets::open(config, seed, count, Named::default(), tokenizer)
}

fn opened(config: &str, seed: u64, count: Option<u64>) -> SharedPrefix {
    open(config, seed, count, Pairs).unwrap_or_else(|error| panic!("{config}: {error:?}"))
}

fn prompt_json(sample: &Sample) -> serde_json::Value {
    match &sample.prompt {
        Prompt::Text(text) => text.as_str().into(),
        Prompt::Tokens(ids) => ids.clone().into(),
        conversation => only_text(conversation.messages()),
    }
}

fn only_text(messages: &[Message]) -> serde_json::Value {
    match messages {
        [message] if message.role == Role::User => match &message.parts[..] {
            [Part::Text(text)] => text.as_str().into(),
            other => panic!("expected one text, got {other:?}"),
        },
        other => panic!("expected one message of the user, got {other:?}"),
    }
}

fn ids(text: &str) -> Vec<u32> {
    Pairs.encode(&[text.to_owned()], false).concat()
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Goldens {
    num_prompts: u64,
    goldens: Vec<Golden>,
}

#[derive(Deserialize)]
struct Golden {
    config: serde_json::Value,
    seed: u64,
    conversations: usize,
    sha256: String,
}

/// `goldens.json` has the prompts of SGLang's and vLLM's own modules:
/// `host/benches/digests/prompts.py` prints it.
#[test]
fn prompts_equal_the_tools_own() {
    let goldens: Goldens =
        serde_json::from_str(include_str!("goldens.json")).expect("the goldens are well formed");
    assert!(goldens.goldens.len() > 50);
    for golden in goldens.goldens {
        let config = golden.config.to_string();
        let mut dataset = opened(&config, golden.seed, Some(goldens.num_prompts));
        let samples = first(&mut dataset, usize::MAX, 7);
        let turns = golden.config["turns"].as_u64().unwrap_or(1) as usize;
        let mut lines = String::new();
        for conversation in samples.chunks(turns) {
            let prompts: Vec<_> = conversation.iter().map(prompt_json).collect();
            for sample in conversation {
                assert_eq!(sample.output_tokens, conversation[0].output_tokens);
            }
            let line = serde_json::json!([
                prompts,
                conversation[0].input_tokens,
                conversation[0].output_tokens
            ]);
            writeln!(lines, "{line}").expect("written");
        }
        assert_eq!(samples.len(), golden.conversations * turns, "{config}");
        let digest = format!("{:x}", Sha256::digest(&lines));
        assert_eq!(digest, golden.sha256, "{config}, seed {}", golden.seed);
    }
}

/// Configurations of every algorithm, small enough for a prompt to come up twice.
const WAYS: [&str; 9] = [
    r#"{"groups": 4, "prompts-per-group": 12, "prefix-len": 20, "question-len": 8}"#,
    r#"{"groups": 4, "prompts-per-group": 12, "prefix-len": 3, "question-len": 2, "range-ratio": 0, "zipf": 2}"#,
    r#"{"groups": 2, "prompts-per-group": 20, "prefix-len": 3000, "question-len": 700, "turns": 2}"#,
    r#"{"groups": 9, "prompts-per-group": 5, "prefix-len": 2, "question-len": 2, "as": "tokens", "shuffle": false}"#,
    r#"{"algorithm": "vllm", "groups": 4, "prefix-len": 20, "question-len": 8}"#,
    r#"{"algorithm": "vllm", "groups": 3, "prefix-len": 20, "question-len": 650, "prompts-per-group": 15}"#,
    r#"{"algorithm": "vllm", "groups": 4, "prefix-len": 2, "question-len": 8, "shuffle": false}"#,
    r#"{"algorithm": "runner", "groups": 4, "zipf": 1, "question-len": {"distribution": "normal", "mean": 9,
        "deviation": 9}, "turns": {"distribution": "uniform", "min": 1, "max": 4}}"#,
    r#"{"algorithm": "runner", "groups": 3, "prefix-len": 1, "question-len": 1, "as": "tokens"}"#,
];

#[test]
fn the_size_of_a_call_changes_nothing() {
    for config in WAYS {
        let whole = first(&mut opened(config, 1, Some(45)), 45, 45);
        assert!(whole.len() >= 44, "{config}: {}", whole.len());
        for limit in [1, 7] {
            let samples = first(&mut opened(config, 1, Some(45)), 45, limit);
            assert_eq!(samples, whole, "{config}, {limit} at a time");
        }
        let other = first(&mut opened(config, 2, Some(45)), 45, 45);
        assert_ne!(other, whole, "{config}: another seed");
    }
}

#[test]
fn spare_samples_do_not_change_measured_samples() {
    for config in WAYS {
        for seed in 0..4 {
            let plain = first(&mut opened(config, seed, Some(44)), 44, 16);
            let mut spared = opened(config, seed, Some(44));
            let mut spare = spared.spare(4).expect("spare samples");
            spare.extend(spared.spare(3).expect("spare samples"));
            assert_eq!(spare.len(), 7, "{config}");
            assert_eq!(first(&mut spared, 44, 64), plain, "{config}, seed {seed}");
            let given: BTreeSet<_> =
                plain.iter().map(|sample| prompt_json(sample).to_string()).collect();
            let ids: BTreeSet<_> = plain.iter().chain(&spare).map(|each| &each.id).collect();
            assert_eq!(ids.len(), plain.len() + spare.len(), "{config}");
            for sample in &spare {
                assert!(!given.contains(&prompt_json(sample).to_string()), "{config}");
            }
        }
    }
}

/// With so few ids, spare prompts do come up again among the measured ones.
#[test]
fn a_spare_prompt_is_never_measured() {
    struct Few;

    impl Tokenizer for Few {
        fn describe(&self) -> runner_plugin::Facts {
            runner_plugin::Facts {
                vocabulary_size: 3,
                base_size: 3,
                added_tokens: 0,
                special: vec![],
                ..Pairs.describe()
            }
        }

        fn encode(&self, texts: &[String], special: bool) -> Vec<Vec<u32>> {
            Pairs.encode(texts, special)
        }

        fn count(&self, texts: &[String], special: bool) -> Vec<u32> {
            Pairs.count(texts, special)
        }

        fn decode(&self, tokens: &[Vec<u32>]) -> Vec<String> {
            Pairs.decode(tokens)
        }
    }

    for config in [
        r#"{"groups": 4, "prompts-per-group": 50, "prefix-len": 1, "question-len": 1}"#,
        r#"{"algorithm": "vllm", "groups": 4, "prefix-len": 1, "question-len": 1}"#,
        r#"{"algorithm": "runner", "groups": 4, "prefix-len": 1, "question-len": 1, "as": "tokens"}"#,
    ] {
        let mut dataset = open(config, 1, Some(200), Few).expect("a dataset");
        let spare = dataset.spare(2).expect("spare samples");
        let samples = first(&mut dataset, 100, 32);
        assert!(samples.len() > 20, "{config}: {}", samples.len());
        for sample in &spare {
            let prompt = prompt_json(sample);
            assert!(samples.iter().all(|each| prompt_json(each) != prompt), "{config}");
        }
        let dropped: Vec<_> = dataset
            .remarks()
            .into_iter()
            .filter(|remark| remark.reason == "prompt that was used for warmup")
            .collect();
        assert!(dropped.len() == 1 && dropped[0].count > 10, "{config}: {dropped:?}");
    }
}

#[test]
fn turns_of_a_conversation_follow_each_other() {
    let config =
        r#"{"groups": 3, "prompts-per-group": 4, "prefix-len": 20, "question-len": 8, "turns": 3}"#;
    let samples = first(&mut opened(config, 5, None), usize::MAX, 5);
    assert_eq!(samples.len(), 36);
    for (number, conversation) in samples.chunks(3).enumerate() {
        for (index, sample) in (0..).zip(conversation) {
            let turn = sample.turn.as_ref().expect("a turn");
            assert_eq!(turn.session, format!("shared-prefix-{:06}", number + 1));
            assert_eq!(turn.index, index);
            assert_eq!(sample.id, format!("{}-{index}", turn.session));
            let tokens = ids(prompt_text(sample)).len() as u32;
            // The tokenizer puts a token before a whole text.
            assert_eq!(sample.input_tokens, Some(tokens + u32::from(index == 0)));
            match &sample.prompt {
                Prompt::Messages(_) => assert_eq!((index, sample.after.len()), (0, 0)),
                Prompt::Continuation(next) => {
                    assert_eq!(next.parent, conversation[index as usize - 1].id);
                    assert_eq!(sample.after, [Dependency::end(&next.parent, 0)]);
                }
                other => panic!("expected a conversation, got {}", other.kind()),
            }
            assert!(sample.output_tokens.is_some());
        }
    }
    let single = first(&mut opened(WAYS[0], 5, None), 3, 5);
    assert!(single.iter().all(|sample| sample.turn.is_none()));
}

#[test]
fn prompts_of_the_runner_have_the_requested_tokens() {
    let config = r#"{"algorithm": "runner", "groups": 5, "prefix-len": 41,
                     "question-len": {"distribution": "uniform", "min": 3, "max": 30}}"#;
    let mut dataset = opened(config, 3, None);
    let samples = first(&mut dataset, 200, 50);
    let mut heads = BTreeMap::<Vec<u32>, u32>::new();
    let mut lengths = BTreeSet::new();
    for sample in &samples {
        let ids = ids(prompt_text(sample));
        assert_eq!(sample.input_tokens, Some(ids.len() as u32 + 1));
        lengths.insert(ids.len());
        *heads.entry(ids[..41].to_vec()).or_default() += 1;
    }
    assert_eq!(dataset.remarks(), []);
    assert_eq!(heads.len(), 5);
    assert!(heads.values().all(|count| (20..70).contains(count)), "{heads:?}");
    assert_eq!(lengths, (44..=71).collect());
    // No sequence depends on the number of sequences. Without a shuffle the prefixes take turns.
    let config = r#"{"algorithm": "runner", "groups": 3, "prefix-len": 5, "question-len": 5, "shuffle": false}"#;
    let samples = first(&mut opened(config, 3, None), 9, 4);
    let heads: Vec<_> = samples.iter().map(|each| ids(prompt_text(each))[..5].to_vec()).collect();
    assert_eq!(heads[..3], heads[3..6]);
    assert_eq!(heads[..3], heads[6..]);
    assert_ne!(heads[0], heads[1]);
}

#[test]
fn zipf_makes_the_first_prefix_the_most_frequent() {
    let config =
        r#"{"algorithm": "runner", "groups": 8, "zipf": 1.5, "prefix-len": 9, "question-len": 4}"#;
    let mut counts = BTreeMap::<Vec<u32>, u32>::new();
    for sample in first(&mut opened(config, 3, None), 1000, 100) {
        *counts.entry(ids(prompt_text(&sample))[..9].to_vec()).or_default() += 1;
    }
    let mut counts: Vec<u32> = counts.into_values().collect();
    counts.sort_unstable_by(|one, other| other.cmp(one));
    // 1 / n^1.5 over their sum is 0.52 of the first, 0.18 of the second.
    assert_eq!(counts.len(), 8);
    assert!((450..590).contains(&counts[0]) && (130..240).contains(&counts[1]), "{counts:?}");
}

#[test]
fn the_stand_in_gives_one_character_per_token() {
    for config in [
        r#"{"groups": 2, "prompts-per-group": 4, "prefix-len": 50, "question-len": 8}"#,
        r#"{"algorithm": "vllm", "groups": 2, "prefix-len": 52, "question-len": 8}"#,
        r#"{"algorithm": "runner", "groups": 2, "prefix-len": 52, "question-len": 8}"#,
    ] {
        let mut dataset = open(config, 3, Some(8), StandIn).expect("a dataset");
        let samples = first(&mut dataset, 8, 3);
        assert_eq!(samples.len(), 8);
        for sample in samples.iter().chain(&dataset.spare(2).expect("spare samples")) {
            let text = prompt_text(sample);
            assert!(text.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)));
            assert_eq!((sample.input_tokens, text.len()), (Some(60), 60), "{config}");
        }
    }
}

#[test]
fn requests_that_vllm_leaves_over_are_reported() {
    let config = r#"{"algorithm": "vllm", "groups": 10, "prefix-len": 2, "question-len": 2}"#;
    let mut dataset = opened(config, 1, Some(37));
    assert_eq!(first(&mut dataset, 37, 37).len(), 30);
    let [remark] = &dataset.remarks()[..] else {
        panic!("expected one remark, got {:?}", dataset.remarks());
    };
    assert_eq!(remark.count, 7);
}

#[test]
fn configurations_that_do_not_go_together_are_refused() {
    for (config, expected) in cases(
        r#"
        {"groups": 0} => `groups` is 0; expected at least 1
        {"prompts-per-group": 0} => `prompts-per-group` is 0
        {"prefix-len": 0} => `prefix-len` is 0; expected at least 1
        {"output-len": -1} => `output-len` is -1; expected at least 1
        {"question-len": {"distribution": "uniform", "min": 1, "max": 2}} => `question-len` is a distribution, which belongs to `algorithm = "runner"`
        {"range-ratio": 1.5} => `range-ratio` is 1.5; expected a number from 0 to 1
        {"algorithm": "vllm", "range-ratio": 1} => `range-ratio` belongs to `algorithm = "sglang"`: leave it out
        {"zipf": 0} => `zipf` is 0; expected more than 0
        {"algorithm": "vllm", "zipf": 1} => `zipf` belongs to `algorithm = "sglang"` and `algorithm = "runner"`
        {"algorithm": "vllm", "turns": 2} => `turns` belongs to
        {"algorithm": "runner", "prompts-per-group": 2} => `prompts-per-group` belongs to
        {"algorithm": "runner", "zipf": 1, "shuffle": false} => with `shuffle = false` they take turns
        {"turns": 2, "as": "tokens"} => cannot carry a conversation of several turns
        {"algorithm": "vllm"} => this run is not limited by a number of requests: limit it, or set `prompts-per-group`
        {"groups": 100000, "prompts-per-group": 100000} => `groups` × `prompts-per-group` × `turns` is 10000000000; expected at most 4194304
        {"groups": 4000000, "prompts-per-group": 1} => have up to 8704000000 tokens; expected at most 2147483648
        "#,
    ) {
        let message = invalid_config(open(config, 1, None, Pairs));
        assert!(message.contains(expected), "{config}: {message}");
    }
    let message = invalid_config(open(r#"{"algorithm": "vllm"}"#, 1, Some(9), Pairs));
    let expected =
        "the run has 9 requests and `groups` is 10; expected at least one request for each prefix";
    assert!(message.contains(expected), "{message}");
    let message = invalid_config(open(r#"{"as": "tokens"}"#, 1, None, StandIn));
    assert!(message.contains("pass --tokenizer"), "{message}");
}

#[test]
fn conversations_that_do_not_fit_into_memory_are_refused() {
    for (config, expected) in cases(
        r#"
        {"prefix-len": 4000000000} => `prefix-len` is 4000000000; expected at most 4194304
        {"prefix-len": 4194304, "question-len": 10} => give conversations of up to 4194314 tokens; expected at most 4194304
        {"algorithm": "runner", "question-len": 1000, "turns": 10000} => give conversations of up to 10002048 tokens
        {"algorithm": "vllm", "groups": 40, "prompts-per-group": 1, "prefix-len": 4000000} => expected at most 134217728
        "#,
    ) {
        let message = invalid_config(open(config, 1, Some(10), Pairs));
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn large_prompts_come_few_at_a_time_and_are_the_same() {
    let config =
        r#"{"algorithm": "runner", "prefix-len": 1000000, "question-len": 10, "groups": 1}"#;
    let mut dataset = open(config, 1, None, StandIn).unwrap();
    let some = dataset.next(40).unwrap();
    assert!((2..20).contains(&some.len()), "{}", some.len());
    assert!((1..20).contains(&dataset.spare(40).unwrap().len()));
    let next = dataset.next(1).unwrap();
    assert_eq!(next[0].id, format!("shared-prefix-{:06}", some.len() + 1));
}

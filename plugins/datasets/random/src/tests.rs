//! The golden cases, the effects that spare samples must not have, and the messages for a user.
//!
//! The digests of the cases with the tokenizer `pairs` come from the tools' own Python code with
//! that tokenizer.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use runner_plugin::{Dataset, Error, Prompt, Sample, Tokenizer, Treatment};
use runner_plugin_testing::datasets::{self, cases, first, invalid_config, invalid_input};
use runner_plugin_testing::files::Named;
use runner_plugin_testing::tokenizer::{Pairs, StandIn};

use super::Random;

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/cases"))
}

fn corpus() -> Named {
    Named::default().with_path("data", folder().join("../../sharegpt/cases/conversations.json"))
}

fn open(
    config: &str,
    seed: u64,
    count: Option<u64>,
    files: Named,
    tokenizer: impl Tokenizer + 'static,
) -> Result<Random, Error> {
    datasets::open(config, seed, count, files, tokenizer)
}

fn prompt(sample: &Sample) -> String {
    format!("{:?}", sample.prompt)
}

const CLASSES: &str = r#"{"classes": [
    {"name": "chat", "weight": 3, "input-len": {"distribution": "lognormal", "median": 20, "sigma": 0.7}},
    {"name": "code", "output-len": 7}
], "input-len": {"distribution": "uniform", "min": 2, "max": 9}, "output-len": 30}"#;

/// A configuration, and whether it takes the corpus and the stand-in.
const WAYS: [(&str, bool, bool); 12] = [
    (r#"{"input-len": 20, "output-len": 8}"#, false, false),
    (r#"{"input-len": 4, "output-len": 8, "range-ratio": 0}"#, false, false),
    (r#"{"input-len": 20, "output-len": 8, "as": "tokens"}"#, false, false),
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
    (r#"{"input-len": 20, "output-len": 8, "like": "lmdeploy", "range-ratio": 0.5}"#, true, false),
    (r#"{"input-len": 3, "output-len": 8}"#, false, true),
    (CLASSES, false, false),
    (CLASSES, true, false),
    (CLASSES, false, true),
    (
        r#"{"input-len": {"distribution": "normal", "mean": 20, "deviation": 9}, "like": "vllm"}"#,
        false,
        false,
    ),
];

fn way(
    (config, corpus_given, stand_in): (&str, bool, bool),
    seed: u64,
    count: Option<u64>,
) -> Random {
    let files = if corpus_given { corpus() } else { Named::default() };
    let opened = if stand_in {
        open(config, seed, count, files, StandIn)
    } else {
        open(config, seed, count, files, Pairs)
    };
    opened.unwrap_or_else(|error| panic!("{config}: {error:?}"))
}

#[test]
fn spare_samples_do_not_change_measured_samples() {
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
                assert!(!given.contains(&prompt(sample)), "{}, seed {seed}: {}", each.0, sample.id);
            }
        }
    }
}

#[test]
fn a_run_of_unknown_length_continues() {
    for each in WAYS.into_iter().filter(|(_, corpus, _)| !corpus) {
        let mut dataset = way(each, 7, None);
        assert_eq!(dataset.spare(3).expect("spare samples").len(), 3, "{}", each.0);
        assert_eq!(first(&mut dataset, 2500, 100).len(), 2500, "{}", each.0);
    }
}

#[test]
fn the_stand_in_gives_one_plain_character_per_token() {
    let mut dataset =
        open(r#"{"input-len": 300, "range-ratio": 0.1}"#, 3, Some(200), Named::default(), StandIn)
            .expect("a dataset");
    let mut lengths = BTreeSet::new();
    for sample in
        dataset.spare(5).expect("spare samples").into_iter().chain(first(&mut dataset, 200, 32))
    {
        let Prompt::Text(text) = &sample.prompt else { panic!("expected text") };
        assert!(text.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{text:?}");
        assert_eq!(sample.input_tokens, Some(text.len() as u32));
        lengths.insert(text.len());
    }
    assert!(
        lengths.len() > 50 && lengths.iter().all(|length| (30..=300).contains(length)),
        "{lengths:?}"
    );
}

#[test]
fn input_tokens_count_the_sent_text() {
    for each in WAYS.into_iter().filter(|(_, _, stand_in)| !stand_in) {
        for sample in first(&mut way(each, 5, Some(30)), 30, 30) {
            let counted = match &sample.prompt {
                Prompt::Text(text) => Pairs.count(std::slice::from_ref(text), true)[0],
                Prompt::Tokens(ids) => ids.len() as u32,
                other => panic!("expected text or tokens, got {}", other.kind()),
            };
            assert_eq!(sample.input_tokens, Some(counted), "{}: {}", each.0, sample.id);
        }
    }
}

#[test]
fn configurations_that_do_not_go_together_are_refused() {
    let refused = |opened: Result<Random, Error>, expected: &str| {
        let message = invalid_config(opened);
        assert!(message.contains(expected), "{message}\nnot: {expected}");
    };
    for (config, expected) in cases(
        r#"
        {"input-len": 0} => `input-len` is 0; expected at least 1
        {"range-ratio": 1.5} => `range-ratio` is 1.5; expected a number from 0 to 1
        {"range-ratio": 1, "like": "vllm"} => `range-ratio` is 1; expected a number from 0 (all lengths exact) to below 1
        {"range-ratio": "x"} => expected a number, or a table with the numbers `input` and `output`
        {"prefix-len": 3} => `prefix-len` belongs to `like = "vllm"`
        {"like": "lmdeploy"} => cuts its prompts from a ShareGPT file: pass --dataset-path FILE
        {"input-len": 1, "like": "vllm"} => a prompt could have no tokens
        {"input-len": {"distribution": "uniform", "min": 1, "max": 2}, "range-ratio": 1} => `range-ratio` does not go with a distribution of lengths or with `classes`
        {"output-len": {"distribution": "uniform", "min": 0, "max": 2}} => `min` of `output-len` is 0; expected at least 1
        {"classes": [{"name": "a", "input-len": 0}]} => `classes.a.input-len` is 0; expected at least 1
        {"classes": [{"name": "a"}, {"name": "a"}]} => `classes` has two entries named `a`
        {"classes": [{"name": ""}]} => `name` of entry 1 of `classes` is empty
        {"classes": [{"name": "a", "weight": 0}]} => the weights of `classes` sum up to 0; expected at least one above 0
        "#,
    ) {
        refused(open(config, 1, None, Named::default(), Pairs), expected);
    }
    let expected = "draws token ids and reads no file: leave `data` out";
    refused(open(r#"{"like": "vllm"}"#, 1, None, corpus(), Pairs), expected);
    let expected = "needs the ids of the model's own tokenizer: pass --tokenizer";
    refused(open(r#"{"as": "tokens"}"#, 1, None, Named::default(), StandIn), expected);
    let text = Named::default().with_bytes("text", "a text");
    let expected = "no tool cuts prompts from a text: leave `like` out, or the file `text`";
    refused(open(r#"{"like": "vllm"}"#, 1, None, text, Pairs), expected);
    let both = corpus().with_bytes("text", "a text");
    let expected = "from the file `data` or from the file `text`, not from both";
    refused(open("{}", 1, None, both, Pairs), expected);
}

/// A tokenizer that adds nothing has no tokens for an empty text.
#[test]
fn texts_left_out_are_reported() {
    let mut dataset =
        open(r#"{"input-len": 20}"#, 1, Some(60), corpus(), StandIn).expect("a dataset");
    let samples = first(&mut dataset, 60, 9);
    let remarks: BTreeMap<String, u64> =
        dataset.remarks().into_iter().map(|remark| (remark.reason, remark.count)).collect();
    assert_eq!(remarks["conversation of fewer than two turns"], 2);
    assert_eq!(remarks["text without tokens"], 2);
    assert_eq!(samples.len(), 60 - 4);
}

#[test]
fn classes_have_their_shares_and_their_lengths() {
    for form in ["text", "tokens"] {
        let config = CLASSES.replacen('{', &format!(r#"{{"as": "{form}", "#), 1);
        let mut dataset = open(&config, 1, None, Named::default(), Pairs).expect("a dataset");
        let mut seen = BTreeMap::<String, Vec<(u32, u32)>>::new();
        for sample in first(&mut dataset, 4000, 100) {
            let tokens = sample.input_tokens.zip(sample.output_tokens);
            let class = sample.class.expect("a class");
            seen.entry(class).or_default().push(tokens.expect("counts"));
        }
        let [chat, code] = [&seen["chat"], &seen["code"]];
        assert!((2900..3100).contains(&chat.len()), "{}", chat.len());
        assert_eq!(chat.len() + code.len(), 4000);
        assert!(chat.iter().all(|(_, output)| *output == 30));
        assert!(code.iter().all(|(_, output)| *output == 7));
        // The drawn number of tokens with the model's own; a text of ids may read as a few more.
        let mut inputs: Vec<u32> = chat.iter().map(|(input, _)| *input).collect();
        inputs.sort_unstable();
        let median = inputs[inputs.len() / 2];
        assert!((19..=23).contains(&median), "{form}: {median}");
        assert!(inputs[inputs.len() * 95 / 100] > 50, "{form}");
        let most = if form == "tokens" { 9 } else { 18 };
        let inputs: BTreeSet<u32> = code.iter().map(|(input, _)| *input).collect();
        assert!(inputs.iter().all(|input| (2..=most).contains(input)), "{form}: {inputs:?}");
        assert!(inputs.len() >= 8, "{form}: {inputs:?}");
    }
}

#[test]
fn lengths_do_not_depend_on_the_number_of_requests() {
    let config =
        r#"{"input-len": {"distribution": "uniform", "min": 2, "max": 90}, "as": "tokens"}"#;
    let lengths = |count| -> Vec<Option<u32>> {
        let mut dataset = open(config, 1, count, Named::default(), Pairs).expect("a dataset");
        let samples = first(&mut dataset, 40, 40);
        samples.iter().map(|sample| sample.input_tokens).collect()
    };
    assert_eq!(lengths(Some(40)), lengths(None));
    assert_eq!(lengths(Some(40)), lengths(Some(41)));
}

/// Numbered words, and at the end one with letters that are not in the tokenizer.
fn words() -> String {
    let mut text = String::new();
    for number in 0..400 {
        text += &format!("word{number} and\n");
    }
    text + "the last."
}

fn of_text(config: &str, text: &str) -> Random {
    let files = Named::default().with_bytes("text", text);
    open(config, 3, Some(60), files, Pairs).expect("a dataset")
}

#[test]
fn pieces_of_a_text_begin_at_words_and_have_their_length() {
    let whole = words();
    // The tokenizer reads a line break as a question mark.
    let twice = format!("{whole}{whole}").replace('\n', "?");
    let config = r#"{"input-len": {"distribution": "uniform", "min": 5, "max": 700}}"#;
    let mut dataset = of_text(config, &whole);
    let spare = dataset.spare(5).expect("spare samples");
    let samples = first(&mut dataset, 60, 7);
    assert_eq!((samples.len(), spare.len()), (60, 5));
    let mut starts = BTreeSet::new();
    for sample in samples.iter().chain(&spare) {
        let Prompt::Text(text) = &sample.prompt else { panic!("expected text") };
        assert!(twice.contains(text.as_str()), "{text:?}");
        assert!(text.starts_with("word") || text.starts_with("and") || text.starts_with("the"));
        let counted = Pairs.count(std::slice::from_ref(text), true)[0];
        assert_eq!(sample.input_tokens, Some(counted));
        assert!((5..=701).contains(&counted), "{counted}");
        starts.insert(text.chars().take(12).collect::<String>());
    }
    assert!(starts.len() > 50, "{starts:?}");
    let mut again = of_text(config, &whole);
    assert_eq!(first(&mut again, 60, 60), samples);
    assert_eq!(again.remarks().len(), dataset.remarks().len());
}

#[test]
fn a_short_text_repeats_and_says_so() {
    let mut dataset = of_text(r#"{"input-len": 300}"#, "one two three");
    let samples = first(&mut dataset, 60, 60);
    for sample in &samples {
        let Prompt::Text(text) = &sample.prompt else { panic!("expected text") };
        assert!(text.contains("two threeone two"), "{text}");
        assert_eq!(sample.input_tokens, Some(300));
    }
    let [remark] = &dataset.remarks()[..] else {
        panic!("expected one remark, got {:?}", dataset.remarks());
    };
    assert_eq!(remark.what, Treatment::Repeated);
    assert_eq!(remark.count, 60 - 13);
}

#[test]
fn bytes_that_are_no_text_are_refused_or_repaired() {
    let refused = |text: &[u8]| {
        let files = Named::default().with_bytes("text", text);
        let opened = open("{}", 1, Some(3), files, Pairs);
        invalid_input(opened.and_then(|mut dataset| dataset.next(3)))
    };
    assert_eq!(refused(b""), "the file `text` is empty; expected a text to cut prompts from");
    assert!(refused(b" \n ").contains("tokens: it does not seem to be a text"));
    let files = Named::default().with_bytes("text", *b"one \xff\xfe two \xc3\xa9t\xc3\xa9 three");
    let mut dataset = open(r#"{"input-len": 30}"#, 1, Some(3), files, Pairs).expect("a dataset");
    assert_eq!(dataset.next(3).expect("samples").len(), 3);
    let remarks = dataset.remarks();
    let repaired = |remark: &&runner_plugin::Remark| remark.what == Treatment::Repaired;
    assert_eq!(remarks.iter().find(repaired).map(|remark| remark.count), Some(3));
}

/// A tokenizer like byte pairs: ids are texts of one to four letters; encoding takes the longest.
#[derive(Clone, Copy, Debug)]
struct Greedy;

impl Greedy {
    const LETTERS: u32 = 12;

    /// The text of an id: the numbers to the base of the letters, by their lengths.
    fn text(mut id: u32) -> String {
        let mut of_length = Self::LETTERS;
        let mut length = 1;
        while id >= of_length {
            id -= of_length;
            of_length *= Self::LETTERS;
            length += 1;
        }
        let digits = (0..length).map(|_| {
            let letter = char::from(b'a' + (id % Self::LETTERS) as u8);
            id /= Self::LETTERS;
            letter
        });
        digits.collect()
    }

    /// The letters that the first token of a text takes, which depend on its first letter.
    fn step(rest: &[u8]) -> usize {
        (1 + usize::from(rest[0] % 4)).min(rest.len())
    }
}

impl Tokenizer for Greedy {
    fn describe(&self) -> runner_plugin::Facts {
        runner_plugin::Facts {
            vocabulary_size: 20_000,
            base_size: 20_000,
            added_tokens: 1,
            special: Vec::new(),
            approximate: false,
            chat: false,
        }
    }

    fn encode(&self, texts: &[String], special: bool) -> Vec<Vec<u32>> {
        let ids = |text: &String| {
            let mut ids = vec![0; usize::from(special)];
            let mut rest = text.as_bytes();
            while !rest.is_empty() {
                let (token, after) = rest.split_at(Self::step(rest));
                let below: u32 = (1..token.len() as u32).map(|it| Self::LETTERS.pow(it)).sum();
                let digits = token.iter().rev();
                let digit = |letter: &u8| u32::from(letter - b'a');
                ids.push(below + digits.fold(0, |sum, it| sum * Self::LETTERS + digit(it)));
                rest = after;
            }
            ids
        };
        texts.iter().map(ids).collect()
    }

    fn count(&self, texts: &[String], special: bool) -> Vec<u32> {
        let counted = self.encode(texts, special).into_iter();
        counted.map(|ids| ids.len() as u32).collect()
    }

    fn decode(&self, tokens: &[Vec<u32>]) -> Vec<String> {
        let text = |ids: &Vec<u32>| ids.iter().map(|id| Self::text(*id)).collect();
        tokens.iter().map(text).collect()
    }
}

#[test]
fn without_a_tool_every_prompt_has_the_requested_length() {
    let lengths = |config: &str, pairs: bool| -> BTreeSet<u32> {
        let opened = if pairs {
            open(config, 3, Some(60), Named::default(), Pairs)
        } else {
            open(config, 3, Some(60), Named::default(), Greedy)
        };
        let mut dataset = opened.expect("a dataset");
        let mut samples = dataset.spare(3).expect("spare samples");
        samples.extend(first(&mut dataset, 60, 16));
        (samples.iter()).filter_map(|sample| sample.input_tokens).collect()
    };
    for length in [2, 3, 7, 128, 1024] {
        for pairs in [true, false] {
            let config = format!("{{\"input-len\": {length}}}");
            assert_eq!(lengths(&config, pairs), [length].into(), "{pairs}");
        }
    }
    let theirs = lengths(r#"{"input-len": 128, "like": "sglang"}"#, false);
    assert!(theirs.len() > 10, "the tokenizer is no test: {theirs:?}");
}

#[test]
fn pieces_of_texts_have_the_requested_length() {
    let tide = Named::default().with_path("text", folder().join("tide.txt"));
    for files in [corpus(), tide] {
        let config = r#"{"input-len": 33}"#;
        let mut dataset = open(config, 3, Some(9), files, Pairs).expect("a dataset");
        for sample in first(&mut dataset, 3, 16) {
            assert_eq!(sample.input_tokens, Some(33), "{}", sample.id);
        }
    }
}

//! Texts have their lengths, with every tokenizer, and depend on the seed alone.

use runner_plugin::{Dataset, Error, Prompt, Sample, Tokenizer};
use runner_plugin_testing::datasets::{self, check_samples, invalid_config, invalid_input};
use runner_plugin_testing::files::Named;
use runner_plugin_testing::tokenizer::{Pairs, StandIn};

use super::Embeddings;

fn open_stand_in(config: &str, files: Named) -> Result<Embeddings, Error> {
    datasets::open(config, 1, None, files, StandIn)
}

fn open(config: &str, seed: u64) -> Embeddings {
    datasets::open(config, seed, None, Named::default(), Pairs).expect("a dataset")
}

fn texts(sample: &Sample) -> &[String] {
    match &sample.prompt {
        Prompt::Embedding(texts) => texts,
        other => panic!("expected texts to embed, got {other:?}"),
    }
}

#[test]
fn texts_have_their_number_of_tokens() {
    for length in [2, 3, 17, 100] {
        let config = format!(r#"{{"input-len": {length}, "batch-size": 3}}"#);
        let stand_in = open_stand_in(&config, Named::default()).expect("a dataset");
        for mut dataset in [stand_in, open(&config, 9)] {
            for sample in dataset.next(20).unwrap() {
                assert_eq!(texts(&sample).len(), 3);
                assert_eq!(sample.input_tokens, Some(3 * length));
            }
        }
    }
}

#[test]
fn batches_and_lengths_have_distributions() {
    let config = r#"{"input-len": {"distribution": "uniform", "min": 4, "max": 40},
        "batch-size": {"distribution": "uniform", "min": 1, "max": 4}}"#;
    let samples = open(config, 1).next(50).unwrap();
    let mut batches: Vec<_> = samples.iter().map(|sample| texts(sample).len()).collect();
    batches.sort_unstable();
    batches.dedup();
    assert_eq!(batches, [1, 2, 3, 4]);
    let all: Vec<String> = samples.iter().flat_map(|sample| texts(sample).to_vec()).collect();
    let lengths = Pairs.count(&all, true);
    assert!(lengths.iter().all(|length| (4..=40).contains(length)));
}

#[test]
fn passages_of_a_file_are_in_its_order() {
    let words: Vec<_> = (0..500).map(|word| format!("w{word}")).collect();
    let files = Named::default().with_bytes("data", words.join("\n "));
    let config = r#"{"input-len": 60}"#;
    let mut dataset = open_stand_in(config, files).unwrap();
    let mut starts = Vec::new();
    for sample in dataset.next(10).unwrap() {
        let own: Vec<_> = texts(&sample)[0].split(' ').collect();
        let first: usize = own[0][1..].parse().unwrap();
        // The last word may be cut.
        for (at, word) in own[..own.len() - 1].iter().enumerate() {
            assert_eq!(*word, words[(first + at) % 500]);
        }
        starts.push(first);
    }
    starts.sort_unstable();
    starts.dedup();
    assert!(starts.len() > 5);
    let empty = Named::default().with_bytes("data", " \n");
    let message = invalid_input(open_stand_in("{}", empty));
    assert_eq!(message, "file `data`: it has no words");
}

#[test]
fn samples_depend_on_the_seed_and_not_on_the_size_of_a_call() {
    // So short that words come again.
    let config = r#"{"input-len": 2}"#;
    check_samples(|seed| open(config, seed), &[1, 70, 129]);
    let mut spared = open(config, 1);
    let spares = spared.spare(20).unwrap();
    let mut measured = spared.next(70).unwrap();
    measured.extend(spared.next(130).unwrap());
    let mut again = open(config, 1);
    assert_eq!(again.spare(20).unwrap(), spares);
    assert_eq!(again.next(200).unwrap(), measured);
}

#[test]
fn mistakes_name_the_key() {
    let message = invalid_config(open_stand_in(r#"{"batch-size": 0}"#, Named::default()));
    assert!(message.contains("`batch-size` is 0"), "{message}");
}

#[test]
fn requests_that_do_not_fit_into_memory_are_refused() {
    let config = r#"{"input-len": 1048576, "batch-size": 4096}"#;
    let message = invalid_config(open_stand_in(config, Named::default()));
    assert!(
        message.starts_with("`batch-size` and `input-len` give up to 4096 × 1048576 tokens"),
        "{message}"
    );
}

//! Queries and texts have their lengths, and depend on the seed alone.

use std::collections::HashSet;

use runner_plugin::{Candidates, Dataset, Error, Prompt, Sample, Tokenizer};
use runner_plugin_testing::datasets::{self, check_samples, invalid_config};
use runner_plugin_testing::files::Named;
use runner_plugin_testing::tokenizer::Pairs;

use super::Rerank;

fn open(config: &str, seed: u64) -> Result<Rerank, Error> {
    datasets::open(config, seed, None, Named::default(), Pairs)
}

fn candidates(sample: &Sample) -> &Candidates {
    match &sample.prompt {
        Prompt::Ranking(candidates) => candidates,
        other => panic!("expected texts to rank, got {other:?}"),
    }
}

#[test]
fn queries_and_texts_have_their_lengths() {
    let config = r#"{"query-len": 6, "document-len": {"distribution": "uniform", "min": 10, "max": 20},
        "documents": {"distribution": "uniform", "min": 2, "max": 5}}"#;
    let mut queries = HashSet::new();
    let mut counts = HashSet::new();
    for sample in open(config, 1).unwrap().next(30).unwrap() {
        let Candidates { query, documents } = candidates(&sample);
        assert_eq!(Pairs.count(std::slice::from_ref(query), true), [6]);
        let lengths = Pairs.count(documents, true);
        assert!(lengths.iter().all(|length| (10..=20).contains(length)));
        let tokens = lengths.iter().sum::<u32>() + 6 * documents.len() as u32;
        assert_eq!(sample.input_tokens, Some(tokens));
        queries.insert(query.clone());
        counts.insert(documents.len());
    }
    assert_eq!((queries.len(), counts.len()), (30, 4));
}

#[test]
fn all_requests_may_have_the_same_query() {
    let config = r#"{"same-query": true, "document-len": 8, "documents": 2}"#;
    let mut dataset = open(config, 1).unwrap();
    let spare = dataset.spare(1).unwrap();
    let samples = dataset.next(10).unwrap();
    for sample in &samples {
        assert_eq!(candidates(sample).query, candidates(&spare[0]).query);
        assert_ne!(candidates(sample).documents, candidates(&spare[0]).documents);
    }
}

#[test]
fn samples_depend_on_the_seed_and_not_on_the_size_of_a_call() {
    // So short that words come again.
    let config = r#"{"query-len": 2, "document-len": 2, "documents": 1, "same-query": true}"#;
    check_samples(|seed| open(config, seed).unwrap(), &[1, 70, 129]);
}

#[test]
fn mistakes_name_the_key() {
    let message = invalid_config(open(r#"{"documents": 0}"#, 1));
    assert!(message.contains("`documents` is 0"), "{message}");
}

#[test]
fn requests_that_do_not_fit_into_memory_are_refused() {
    let refusal =
        |config: &str| invalid_config(open(config, 1).and_then(|mut dataset| dataset.next(40)));
    let product = refusal(r#"{"documents": 4096, "document-len": 1048576}"#);
    assert!(
        product.starts_with("`documents` and `document-len` give up to 4096 × 1048576 tokens"),
        "{product}"
    );
    let query = refusal(r#"{"query-len": 1048576, "documents": 4, "document-len": 1048576}"#);
    assert!(
        query.starts_with("the texts of request 1 have 5242880 tokens; expected at most 4194304"),
        "{query}"
    );
}

#[test]
fn large_requests_come_few_at_a_time_and_are_the_same() {
    let config = r#"{"documents": 4, "document-len": 150000}"#;
    let mut dataset = open(config, 1).unwrap();
    let first = dataset.next(100).unwrap();
    assert!((1..40).contains(&first.len()), "{}", first.len());
    assert_eq!(open(config, 1).unwrap().next(1).unwrap(), first[..1]);
    assert!((1..40).contains(&dataset.spare(100).unwrap().len()));
    let next = dataset.next(1).unwrap();
    assert_eq!(next[0].id, format!("rerank-{:06}", first.len() + 1));
}

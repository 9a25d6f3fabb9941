//! Calls of the hostile dataset. A trap ends its sequence; another can be opened.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plugins::PluginError;
use plugins::backend::Prompt;
use plugins::dataset::Amount;
use plugins::sandbox::Grants;
use serde_json::{Value, json};

use super::fixture::{self, DATASET, DEEDS, contract, dataset, fails, grants, roomy, trapped};

#[test]
fn a_failure_ends_the_sequence() {
    for (deed, cause) in DEEDS {
        for call in ["open", "next", "spare"] {
            let config = json!({"call": call, "misbehave": deed});
            let source = dataset(&config, grants(&config));
            let opened = source.open(1, Amount::Unknown);
            if call == "open" {
                trapped(&fails(opened), DATASET, call, cause);
                continue;
            }
            let mut samples = opened.unwrap();
            let error =
                if call == "next" { fails(samples.next(3)) } else { fails(samples.spare(3)) };
            trapped(&error, DATASET, call, cause);
            // The dead sequence stays dead, and says so of the plugin.
            let again = fails(samples.next(3));
            assert!(
                matches!(&again, PluginError::Trapped { plugin, .. } if plugin == DATASET),
                "{again:?}"
            );
            assert!(source.open(1, Amount::Unknown).is_ok());
        }
    }
}

#[test]
fn earlier_samples_are_not_lost() {
    let mut samples =
        fixture::samples(&json!({"call": "next", "misbehave": "panic", "only-at": 3}));
    let ids: Vec<String> = (samples.next(3).unwrap().into_iter()).map(|sample| sample.id).collect();
    assert_eq!(ids, ["sample-0", "sample-1", "sample-2"]);
    let says = "a panic on purpose (after sample `sample-2`)";
    trapped(&fails(samples.next(3)), DATASET, "next", says);
}

#[test]
fn more_samples_than_requested_are_refused() {
    let mut samples = fixture::samples(&json!({"call": "next", "answer": "too-many"}));
    let says = "it returned 4 samples, but at most 3 were requested";
    contract(&fails(samples.next(3)), DATASET, "next", says);
    let mut samples = fixture::samples(&json!({"call": "spare", "answer": "too-many"}));
    let says = "it returned 2 samples, but at most 1 were requested";
    contract(&fails(samples.spare(1)), DATASET, "spare", says);
}

#[test]
fn an_answer_above_the_limit_is_not_taken() {
    for answer in ["million", "huge"] {
        let config = json!({"call": "next", "answer": answer});
        let mut samples = dataset(&config, roomy(&config)).open(1, Amount::Unknown).unwrap();
        let says = "it returned more data than the 4 MiB allowed in one call";
        trapped(&fails(samples.next(1)), DATASET, "next", says);
    }
}

#[test]
fn a_reference_that_is_no_json_is_refused() {
    let mut samples =
        fixture::samples(&json!({"call": "next", "answer": "bad-reference", "only-at": 1}));
    let says =
        "the reference of sample `sample-1` is not JSON: key must be a string at line 1 column 2";
    contract(&fails(samples.next(3)), DATASET, "next", says);
}

#[test]
fn an_id_that_comes_twice_is_refused() {
    let config = json!({"call": "next", "answer": "same-id", "only-at": 2});
    let twice = "it returned two samples with the id `sample-0`; records and scores are keyed by id, so ids must be unique within a run";
    let mut samples = fixture::samples(&config);
    contract(&fails(samples.next(3)), DATASET, "next", twice);
    // In whatever call each of them came.
    let mut samples = fixture::samples(&config);
    assert_eq!(samples.spare(2).unwrap().len(), 2);
    contract(&fails(samples.next(1)), DATASET, "next", twice);
}

#[test]
fn remarks_are_bounded_and_cannot_steer_a_terminal() {
    let config = json!({"call": "remarks", "answer": "remarks"});
    let mut roomy = roomy(&config);
    roomy.limits.returned_bytes = 64 << 20;
    let source = dataset(&config, roomy);
    let mut samples = source.open(1, Amount::Unknown).unwrap();
    let remarks = samples.remarks().unwrap();
    assert_eq!(remarks.len(), plugins::dataset::REMARKS);
    for remark in remarks {
        let first = remark.first.unwrap();
        assert!(first.len() <= 2_100, "{} bytes", first.len());
        assert!(!remark.reason.contains(char::is_control));
        assert!(!first.contains(char::is_control));
    }
    for (deed, cause) in DEEDS {
        let config = json!({"call": "remarks", "misbehave": deed});
        let source = dataset(&config, grants(&config));
        let mut samples = source.open(1, Amount::Unknown).unwrap();
        trapped(&fails(samples.remarks()), DATASET, "remarks", cause);
    }
}

#[test]
fn refusing_a_configuration_or_an_input_is_no_misbehaviour() {
    let config = json!({"call": "open", "answer": "refuse"});
    let error = fails(dataset(&config, grants(&config)).open(1, Amount::Unknown));
    assert!(matches!(error, PluginError::Config { .. }), "{error:?}");
    assert!(!error.is_misbehaviour());
    assert_eq!(
        error.to_string(),
        "plugin `guests/hostile-dataset.wasm` refuses its configuration: key `call`: refused on purpose"
    );
    let mut samples = fixture::samples(&json!({"call": "next", "answer": "fault", "only-at": 2}));
    assert_eq!(samples.next(2).unwrap().len(), 2);
    let error = fails(samples.next(2));
    assert!(matches!(error, PluginError::Input { .. }), "{error:?}");
    assert!(!error.is_misbehaviour());
    assert_eq!(
        error.to_string(),
        "plugin `guests/hostile-dataset.wasm` cannot use its input: file `questions`, line 3: expected a question"
    );
    // It refused, but did not trap: the sequence is still there.
    assert!(matches!(samples.next(2), Err(PluginError::Input { .. })));
}

fn with_file(config: &Value, path: &Path) -> Grants {
    let mut grants = grants(config);
    grants.files = Arc::new(BTreeMap::from([("questions".to_owned(), path.to_owned())]));
    grants
}

/// A file of questions, in a folder of its own.
fn questions(content: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap().join("questions.txt");
    std::fs::write(&path, content).unwrap();
    (folder, path)
}

#[test]
fn a_file_that_the_scenario_does_not_name_is_not_there() {
    let (_folder, path) = questions(b"why?");
    let full = path.to_str().unwrap();
    for name in [
        full,
        "questions.txt",
        "./questions",
        "../questions",
        "Questions",
        "questions\0",
        "",
        "/etc/passwd",
        "/proc/self/environ",
    ] {
        let config = json!({"file": name});
        let error = fails(dataset(&config, with_file(&config, &path)).open(1, Amount::Unknown));
        assert!(
            matches!(&error, PluginError::Input { message, .. } if message.starts_with("there is no file")),
            "{name}: {error:?}"
        );
    }
}

#[test]
fn reading_past_the_end_gives_nothing() {
    let (_folder, path) = questions(b"why?");
    let read = |offset: u64| {
        let config = json!({"file": "questions", "offset": offset});
        let mut samples =
            dataset(&config, with_file(&config, &path)).open(1, Amount::Unknown).unwrap();
        match samples.next(1).unwrap().remove(0).prompt {
            Prompt::Text(text) => text,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(read(0), "why?");
    assert_eq!(read(2), "y?");
    for offset in [4, 5, u64::from(u32::MAX), i64::MAX as u64, u64::MAX] {
        assert_eq!(read(offset), "", "from {offset}");
    }
}

/// The number of descriptors of this process lead to the file.
fn descriptors(path: &Path) -> usize {
    let entries = std::fs::read_dir("/proc/self/fd").unwrap();
    let targets = entries.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    targets.filter(|target| target == path).count()
}

#[test]
fn files_opened_without_end_end_with_it() {
    let (_folder, path) = questions(b"why?");
    let config = json!({"file": "questions", "open-more": 10});
    let samples = dataset(&config, with_file(&config, &path)).open(1, Amount::Unknown).unwrap();
    assert_eq!(descriptors(&path), 10);
    drop(samples);
    assert_eq!(descriptors(&path), 0);
    let config = json!({"file": "questions", "open-more": 1_000_000});
    for _ in 0..3 {
        let error = fails(dataset(&config, with_file(&config, &path)).open(1, Amount::Unknown));
        trapped(&error, DATASET, "open", "it has more than 64 files open");
        assert_eq!(descriptors(&path), 0);
    }
}

#[test]
fn one_read_gives_at_most_4_mib() {
    let (_folder, path) = questions(&vec![b'x'; (4 << 20) + 10]);
    let config = json!({"file": "questions"});
    let mut grants = with_file(&config, &path);
    grants.limits.memory_bytes = 128 << 20;
    grants.limits.returned_bytes = 64 << 20;
    let mut samples = dataset(&config, grants).open(1, Amount::Unknown).unwrap();
    assert_eq!(samples.next(1).unwrap()[0].output_tokens, Some(4 << 20));
}

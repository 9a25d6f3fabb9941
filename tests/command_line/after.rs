//! Events of a backend beside the answer: numbers that the server counts, and the request after the
//! end of an exchange.

use std::fs::File;
use std::path::Path;

use serde_json::Value;

use super::authentication::{keyed, parrot};
use crate::support::process::run;
use crate::support::results::{report, run_file, run_folder};
use crate::support::server::field;

const KEY: &str = "sk-0123456789abcdef";

fn summary(folder: &Path) -> Value {
    run_file(folder, "summary.json")
}

fn beginning<'a>(requests: &'a [String], with: &str) -> Vec<&'a String> {
    requests.iter().filter(|request| request.starts_with(with)).collect()
}

#[test]
fn a_request_follows_each_exchange_with_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let (url, requests) = parrot();
    let config = "scheme=bearer variable=ENGINE_API_KEY clean-up=/jobs/7?x=y";
    let mut command = keyed(&format!("{url}/tenant"), folder.path(), config);
    run(command.env("ENGINE_API_KEY", KEY)).with_code(0);
    let requests = requests.lock().unwrap();
    let deleted = beginning(&requests, "DELETE ");
    assert_eq!(deleted.len(), beginning(&requests, "POST ").len(), "{requests:?}");
    for request in deleted {
        assert!(request.starts_with("DELETE /tenant/jobs/7?x=y HTTP/1.1\r\n"), "{request}");
        let expected = format!("Bearer {KEY}");
        assert_eq!(field(request, "authorization"), Some(&*expected));
    }
    let summary = summary(folder.path());
    assert_eq!(summary["requests"]["total"], 3);
    assert_eq!(summary["client"]["cleaning"]["failed"], 0, "{:#}", summary["client"]);
    let findings = summary["findings"].to_string();
    assert!(!findings.contains("clean-ups-failed"), "{findings}");
}

#[test]
fn a_request_follows_an_exchange_that_timed_out() {
    let folder = tempfile::tempdir().unwrap();
    let (url, requests) = parrot();
    let config = "scheme=none clean-up=/jobs/7";
    let mut command = keyed(&format!("{url}/endless"), folder.path(), config);
    command.args(["--set", "timeouts.request='300ms'"]);
    run(&mut command).with_code(5);
    let requests = requests.lock().unwrap();
    let deleted = beginning(&requests, "DELETE /endless/jobs/7 ").len();
    assert_eq!(deleted, beginning(&requests, "POST ").len(), "{requests:?}");
    assert!(deleted >= 3, "{deleted}");
}

#[test]
fn a_request_follows_an_exchange_that_was_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let (url, requests) = parrot();
    let config = "scheme=none clean-up=/jobs/7";
    let mut command = keyed(&format!("{url}/endless"), folder.path(), config);
    command.args(["--warmup-requests", "0", "--cancel-share", "1", "--cancel-after", "300ms"]);
    run(&mut command);
    let summary = summary(folder.path());
    assert_eq!(summary["requests"]["cancelled"], 3, "{:#}", summary["requests"]);
    let requests = requests.lock().unwrap();
    let deleted = beginning(&requests, "DELETE /endless/jobs/7 ").len();
    assert_eq!(deleted, beginning(&requests, "POST ").len(), "{requests:?}");
    assert_eq!(summary["client"]["cleaning"]["done"], deleted);
}

#[test]
fn a_failed_request_afterwards_is_a_note_only() {
    let folder = tempfile::tempdir().unwrap();
    let (url, _) = parrot();
    run(&mut keyed(&url, folder.path(), "scheme=none clean-up=/gone"))
        .with_stdout(0, "clean-ups-failed");
    let summary = summary(folder.path());
    assert_eq!(summary["requests"]["successful"], 3);
    let findings = summary["findings"].as_array().unwrap();
    let mut found = findings.iter().filter(|found| found["id"] == "clean-ups-failed");
    let note = found.next().unwrap();
    assert_eq!((&note["severity"], found.next()), (&"note".into(), None));
    assert!(note["seen"].as_str().unwrap().ends_with("failed: HTTP 404: no such job"), "{note}");
}

#[test]
fn counts_are_summed_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (url, _) = parrot();
    let config = "scheme=none counts.image-tokens=3 counts.searches=0";
    run(&mut keyed(&url, folder.path(), config)).with_code(0);
    let report = report(&run_folder(folder.path()), "--details");
    let line = report.stdout.lines().find(|line| line.contains("image-tokens:")).unwrap();
    assert!(line.ends_with("9 (mean 3.00, of 3 answers)"), "{line}");
    let counts = summary(folder.path())["counts"].clone();
    let expected =
        |total: u64, mean: f64| serde_json::json!({ "answers": 3, "total": total, "mean": mean });
    assert_eq!(
        counts,
        serde_json::json!({ "image-tokens": expected(9, 3.0), "searches": expected(0, 0.0) })
    );
    let records = File::open(run_folder(folder.path()).join("records.jsonl.zst")).unwrap();
    let records = String::from_utf8(zstd::decode_all(records).unwrap()).unwrap();
    let stated = r#""counts":{"image-tokens":3,"searches":0}"#;
    let is_one = |line: &str| line.contains(stated) && line.contains(r#""phase":"measure""#);
    assert_eq!(records.lines().filter(|line| is_one(line)).count(), 3, "{records}");
}

#[test]
fn more_counts_than_allowed_are_the_plugins_fault() {
    let folder = tempfile::tempdir().unwrap();
    let (url, _) = parrot();
    let counts: String = (0..33).map(|number| format!(" counts.n{number}=1")).collect();
    let ended = run(&mut keyed(&url, folder.path(), &format!("scheme=none{counts}"))).with_code(5);
    let expected = "it reports more than 32 named counts in one exchange";
    assert!((ended.stdout + &ended.stderr).replace("\n", " ").contains(expected));
}

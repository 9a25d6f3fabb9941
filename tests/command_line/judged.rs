//! Thresholds and the verdict: their effect on the result and the exit code.

use std::path::Path;

use crate::support::process::{Exit, Mock, run};
use crate::support::results::random;

/// A run against a mock with these flags and these thresholds.
fn held_to(folder: &Path, mock: &[&str], flags: &str, thresholds: &[&str]) -> Exit {
    let mock = Mock::start(&[&["--ttft", "1ms", "--itl", "1ms"], mock].concat());
    let flags = format!("--num-prompts 6 --random-output-len 4 {flags}");
    let thresholds = thresholds.iter().flat_map(|threshold| ["--threshold", threshold]);
    run(random(&mock.url, folder, &flags).args(thresholds))
}

/// Four of the six measured requests fail; the very first request is the warmup.
const BROKEN: [&str; 2] =
    ["--fault", "kind = \"http-error\", status = 500, requests = [2, 3, 4, 5]"];

fn lines_with<'t>(text: &'t str, part: &str) -> Vec<&'t str> {
    text.lines().filter(|line| line.contains(part)).collect()
}

#[test]
fn thresholds_that_hold_and_one_that_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let good = ["requests.success-share >= 100%", "ttft.p99 <= 10s"];
    let ended = held_to(folder.path(), &[], "", &good).with_code(0);
    assert_eq!(
        lines_with(&ended.stdout, " held, "),
        lines_with(&ended.stdout, ">= ")
            .into_iter()
            .chain(lines_with(&ended.stdout, "<= 10000 ms"))
            .collect::<Vec<_>>(),
        "{ended:#?}"
    );
    let ended = held_to(folder.path(), &[], "", &["ttft.median < 1us", good[0]]).with_code(6);
    assert_eq!(lines_with(&ended.stdout, "NOT held").len(), 1, "{ended:#?}");
    assert!(
        ended.stderr.contains("error: threshold `ttft.median < 0.001 ms` does not hold: "),
        "{ended:#?}"
    );
}

#[test]
fn an_invalid_run_keeps_to_no_threshold() {
    let folder = tempfile::tempdir().unwrap();
    held_to(folder.path(), &BROKEN, "", &["ttft.p99 <= 10s"])
        .with_stderr(7, "error: the measurement is invalid: 4 of 6 requests failed")
        .with_stdout(7, "the run is invalid");
}

/// One of six failed: the run is only suspect, and the threshold's percentile is none of the five
/// answers'.
#[test]
fn failed_requests_are_slower_than_any_threshold() {
    let folder = tempfile::tempdir().unwrap();
    let one = ["--fault", "kind = \"http-error\", status = 500, requests = [3]"];
    held_to(folder.path(), &one, "", &["ttft.p99 <= 10s"])
        .with_stderr(6, "infinite, because 1 of 6 requests failed");
    held_to(folder.path(), &one, "", &["ttft.median <= 10s"]).with_code(0);
}

#[test]
fn an_invalid_run_fails_unless_that_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    // The fault hits the requests of these numbers alone, so one engine serves one run.
    for (mock, flags, code) in [
        (&BROKEN[..], "", 7),
        (&BROKEN, "--allow-invalid", 0),
        (&BROKEN, "--allow-invalid --strict", 7),
    ] {
        let mock = Mock::start(&[&["--ttft", "1ms", "--itl", "1ms"], mock].concat());
        let flags = format!("--num-prompts 6 --random-output-len 4 {flags}");
        let mut command = random(&mock.url, folder.path(), &flags);
        // As a user's shell has it: without the variables that other tests set.
        let ended = run(command.env_remove("RUNNER_ALLOW_INVALID")).with_code(code);
        let expected = "error: the measurement is invalid: 4 of 6 requests failed";
        assert_eq!(ended.stderr.contains(expected), code == 7, "{ended:#?}");
    }
    // The variable says it for every run, and a flag overrides it.
    held_to(folder.path(), &BROKEN, "", &[]).with_code(0);
    held_to(folder.path(), &BROKEN, "--strict", &[]).with_code(7);
    held_to(folder.path(), &[], "--strict", &[]).with_code(0);
}

//! A panic of any thread of a run: the run ends with its measurements, and reports a bug and its
//! place. Builds without debug assertions have no trip wire, so these tests are not part of them.

use std::io::{Read, Write};
use std::net::TcpStream;

use tempfile::TempDir;

use super::{RUNS, exchanges, line};
use crate::support::process::{Exit, Mock, Process, only_run, run, runner};

/// Ten seconds, if nothing ends them.
const LONG: &str = "--num-prompts 1000";

/// Some seconds of load, and a thread that panics at this place.
fn tripped(place: &str, folder: &TempDir, mock: &Mock, flags: &str) -> Process {
    let flags = format!("--request-rate 100 --random-output-len 5 {flags}");
    Process::start(line(runner(), mock, folder.path(), &flags).env("PANIC_AT", place))
}

fn is_reported(ended: &Exit, thread: &str, place: &str) {
    assert_eq!(ended.code, Some(1), "{place}: {ended:#?}");
    for part in [
        "error: a bug in the runner ended the run: its thread `",
        &format!("its thread `{thread}"),
        &format!("the test tripped `{place}`"),
        "report it",
    ] {
        assert!(ended.stderr.contains(part), "{place}: {part}: {ended:#?}");
    }
}

/// Checks that the records can be reported, and say why the run ended.
fn is_kept(folder: &TempDir, ended: &Exit, place: &str) {
    let own = only_run(&folder.path().join(RUNS)).unwrap();
    let name = own.file_name().unwrap().to_string_lossy().into_owned();
    let at = format!("the measurements so far are in {RUNS}/{name}");
    assert!(ended.stderr.contains(&at), "{place}: {ended:#?}");
    let status = std::fs::read_to_string(own.join("status.json")).unwrap();
    assert!(status.contains("a bug in the runner"), "{place}: {status}");
    let report = run(runner().arg("report").arg(&own));
    assert_eq!(report.code, Some(0), "{place}: {report:#?}");
    assert!(report.stderr.contains("a bug in the runner"), "{place}: {report:#?}");
    assert_eq!(report.stdout, ended.stdout, "{place}");
}

#[test]
fn a_panic_of_any_thread_ends_the_run_and_keeps_its_records() {
    let mock = Mock::start(&["--ttft", "5ms", "--itl", "1ms"]);
    for (place, times, thread) in [
        ("read", 20, "read-"),
        ("decode", 20, "decode-"),
        // Records that were not flushed when the recorder panics are lost: it flushes every second.
        ("record", 300, "record"),
        ("pace", 20, "pace"),
        ("vitals", 30, "vitals"),
    ] {
        let folder = TempDir::new().unwrap();
        let ended = tripped(&format!("{place}:{times}"), &folder, &mock, LONG).end();
        is_reported(&ended, thread, place);
        is_kept(&folder, &ended, place);
        assert!(!exchanges(folder.path()).is_empty(), "{place}");
    }
}

#[test]
fn a_panic_before_the_first_request_ends_the_run() {
    let mock = Mock::start(&["--ttft", "5ms", "--itl", "1ms"]);
    for (place, times, thread) in
        [("sample", 2, "sample"), ("prepare", 20, "prepare"), ("progress", 1, "progress")]
    {
        let folder = TempDir::new().unwrap();
        let ended = tripped(&format!("{place}:{times}"), &folder, &mock, LONG).end();
        is_reported(&ended, thread, place);
        is_kept(&folder, &ended, place);
    }
    let folder = TempDir::new().unwrap();
    let ended = tripped("open:1", &folder, &mock, LONG).end();
    is_reported(&ended, "open", "open");
    assert!(only_run(&folder.path().join(RUNS)).is_none(), "{ended:#?}");
}

#[test]
fn a_panic_after_the_load_leaves_its_records() {
    let mock = Mock::start(&["--ttft", "1ms", "--itl", "1ms"]);
    let folder = TempDir::new().unwrap();
    let ended = tripped("assess:1", &folder, &mock, "--num-prompts 20").end();
    is_reported(&ended, "assess", "assess");
    assert_eq!(exchanges(folder.path()).len(), 20);
    assert!(ended.stdout.contains(&format!("{:<40} 20\n", "Successful requests:")), "{ended:#?}");
}

/// Wherever the program panics, and even where no run is left to end.
#[test]
fn a_panic_at_the_very_end_is_a_bug_too() {
    let mock = Mock::start(&["--ttft", "1ms", "--itl", "1ms"]);
    let folder = TempDir::new().unwrap();
    let ended = tripped("summarise:1", &folder, &mock, "--num-prompts 20").end();
    assert_eq!(ended.code, Some(1), "{ended:#?}");
    let own = only_run(&folder.path().join(RUNS)).unwrap();
    let name = own.file_name().unwrap().to_string_lossy().into_owned();
    let expected = format!(
        "error: a bug in the runner ended it; report it with the lines above; the measurements so far are in {RUNS}/{name}"
    );
    assert!(ended.stderr.contains(&expected), "{ended:#?}");
    assert_eq!(exchanges(folder.path()).len(), 20);
}

#[test]
fn a_panic_of_the_metrics_page_ends_the_run() {
    let mock = Mock::start(&["--ttft", "5ms", "--itl", "1ms"]);
    let folder = TempDir::new().unwrap();
    let mut process =
        tripped("metrics:1", &folder, &mock, &format!("{LONG} --metrics-listen 127.0.0.1:0"));
    process
        .until("it measures", |_| crate::support::process::has_records(&folder.path().join(RUNS)));
    let stderr = process.stderr();
    let (_, rest) = stderr.split_once("metrics: http://").unwrap();
    let (address, _) = rest.split_once("/metrics").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nhost: {address}\r\n\r\n").unwrap();
    let _ = stream.read_to_end(&mut Vec::new());
    let ended = process.end();
    is_reported(&ended, "metrics", "metrics");
    is_kept(&folder, &ended, "metrics");
}

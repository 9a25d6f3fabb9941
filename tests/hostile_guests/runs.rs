//! Whole runs of the built binary against the mock engine, which repeats each prompt.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use model::exchange::{Class, Exchange, Outcome};
use runs::assessment::Assessment;
use runs::folder::{RunFolder, Status};
use tempfile::TempDir;

use super::fixture::{BACKEND, DATASET, SCORER, components};
use crate::support::process::Mock;
use crate::support::results::contents;
use crate::support::server::{field, read_request, reply, serve};

/// The variable that holds the key, and a key.
const KEY_VARIABLE: &str = "OPENAI_API_KEY";
const KEY: &str = "sk-kept-from-every-plugin-4711";

/// A mock engine that repeats each prompt.
pub fn mock(flags: &[&str]) -> Mock {
    Mock::start(&[&["--echo", "--ttft", "1ms", "--itl", "1ms"][..], flags].concat())
}

pub struct RunResult {
    pub code: i32,
    stdout: String,
    pub stderr: String,
    folder: RunFolder,
    _home: TempDir,
}

impl RunResult {
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.folder.exchanges().unwrap()
    }

    pub fn file<T: serde::de::DeserializeOwned>(&self, name: &str) -> T {
        serde_json::from_slice(&fs::read(self.folder.path().join(name)).unwrap()).unwrap()
    }

    /// Everything that the run has left behind, as one text, records unpacked.
    pub fn everything(&self) -> String {
        let mut all = format!("{}\n{}\n", self.stdout, self.stderr);
        for (_, bytes) in contents(self.folder.path()) {
            all.push_str(&String::from_utf8(bytes).unwrap());
        }
        all
    }
}

/// A short run in which nothing is wrong, with compiled plugins kept in a folder.
pub fn run_with(url: &str, kept: &Path) -> RunResult {
    run_with_flags(url, "", "", 2, "", &["--cache-dir".as_ref(), kept.as_os_str()])
}

/// Runs a scenario of the hostile backend and dataset; `more` follows its `[load]` table.
pub fn run(url: &str, backend: &str, dataset: &str, requests: u32, more: &str) -> RunResult {
    run_with_flags(url, backend, dataset, requests, more, &[])
}

fn run_with_flags(
    url: &str,
    backend: &str,
    dataset: &str,
    requests: u32,
    more: &str,
    flags: &[&OsStr],
) -> RunResult {
    let home = tempfile::tempdir().unwrap();
    let scenario = home.path().join("hostile.toml");
    let warmup = if more.starts_with("warmup") { "" } else { "warmup = 0\n" };
    fs::write(
        &scenario,
        format!(
            "name = 'hostile'\n\
             target = {{ base-url = '{url}', model = 'mock' }}\n\
             [backend]\nplugin = '{BACKEND}'\nconfig = {{ {backend} }}\n\
             [dataset]\nplugin = '{DATASET}'\nconfig = {{ {dataset} }}\n\
             [load]\nrequests = {requests}\nconcurrency = 2\n{warmup}{more}"
        ),
    )
    .unwrap();
    let runs = home.path().join("runs");
    let output = Command::new(env!("CARGO_BIN_EXE_runner"))
        .arg("run")
        .arg(&scenario)
        .arg("--output-dir")
        .arg(&runs)
        .args(flags)
        .env("RUNNER_PLUGIN_PATH", components())
        // A run's validity also depends on the machine's load.
        .env("RUNNER_ALLOW_INVALID", "1")
        .env(KEY_VARIABLE, KEY)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let stderr = text(output.stderr);
    let folders: Vec<PathBuf> = fs::read_dir(&runs)
        .unwrap_or_else(|error| panic!("{error}: {stderr}"))
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(folders.len(), 1, "{folders:?}");
    RunResult {
        code: output.status.code().unwrap(),
        stdout: text(output.stdout),
        stderr,
        folder: RunFolder::at(&folders[0]),
        _home: home,
    }
}

/// Returns the class of a failed exchange, and its message.
#[track_caller]
pub fn failure(exchange: &Exchange) -> (Class, &str) {
    match &exchange.outcome {
        Outcome::Incomplete { class, message, .. } => (*class, message),
        Outcome::Ok => panic!("exchange {} succeeded", exchange.index),
    }
}

/// Asserts that all of twelve but number 3 were answered, and gives number 3.
#[track_caller]
fn all_but_one(ran: &RunResult) -> Exchange {
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let mut exchanges = ran.exchanges();
    assert_eq!(exchanges.len(), 12);
    let spoilt = exchanges.remove(3);
    for exchange in exchanges {
        assert_eq!(exchange.outcome, Outcome::Ok, "{}", exchange.index);
        assert_eq!(exchange.output, format!("sample {}", exchange.index));
    }
    spoilt
}

#[test]
fn a_backend_that_fails_on_one_reply_costs_that_exchange() {
    let mock = mock(&[]);
    for (misdeed, words) in [
        ("misbehave = 'panic'", "a panic on purpose"),
        ("misbehave = 'memory'", "it asked for more memory than"),
        ("answer = 'frame-outside'", "an event names frame"),
        ("answer = 'large-state'", "65537 bytes of state"),
        ("answer = 'send-outside'", "not over a WebSocket"),
        ("answer = 'proceed-outside'", "not over a WebSocket"),
    ] {
        let backend = format!("call = 'decode', only-on = '!', {misdeed}");
        // Memory takes its time to be had where the machine is busy.
        let sandbox = "[sandbox]\nmemory = '32MiB'\nbackend-call = '60s'\n";
        let ran = run(&mock.url, &backend, "mark = 3", 12, sandbox);
        let spoilt = all_but_one(&ran);
        let (class, message) = failure(&spoilt);
        assert_eq!(class, Class::Plugin);
        assert!(
            message.starts_with(&format!("plugin `{BACKEND}` ")) && message.contains(words),
            "{message}"
        );
        assert_eq!(spoilt.status, Some(200));
    }
}

#[test]
fn a_request_that_cannot_be_written_is_recorded_and_never_sent() {
    let mock = mock(&[]);
    let backend = "call = 'encode', only-on = '!', misbehave = 'abort'";
    let spoilt = all_but_one(&run(&mock.url, backend, "mark = 3", 12, ""));
    assert_eq!(
        failure(&spoilt),
        (
            Class::Plugin,
            "plugin `guests/hostile-backend.wasm` failed in `encode`: it aborted without a message"
        )
    );
    assert_eq!((spoilt.sent, spoilt.status), (None, None));
}

#[test]
fn ten_spoilt_in_a_row_end_the_run_with_the_records_on_disk() {
    let mock = mock(&[]);
    // The last one reads most of every reply well, and requests are written well all the time.
    for (call, only_on) in [("encode", ""), ("decode", ""), ("decode", "[DONE]")] {
        let backend = format!("call = '{call}', only-on = '{only_on}', misbehave = 'panic'");
        let ran = run(&mock.url, &backend, "", 2_000, "");
        assert_eq!(ran.code, 4, "{}", ran.stderr);
        let status: Status = ran.file("status.json");
        let error = status.error.unwrap();
        assert!(
            error.starts_with(&format!(
                "a plugin failed too often: plugin `{BACKEND}` failed in `{call}`: it panicked: "
            )) && error.ends_with("a panic on purpose (10 times in a row)"),
            "{error}"
        );
        assert!(ran.stderr.contains("failed in"), "{}", ran.stderr);
        let exchanges = ran.exchanges();
        assert!(exchanges.len() < 2_000, "{}", exchanges.len());
        assert!(exchanges.iter().all(|exchange| !exchange.is_ok()));
        let spoilt =
            (exchanges.iter()).filter(|exchange| failure(exchange).0 == Class::Plugin).count();
        assert!(call == "encode" || spoilt >= 10, "{spoilt}");
    }
}

#[test]
fn a_reply_blown_up_beyond_measure_is_given_up() {
    let mock = mock(&[]);
    let sandbox = "[sandbox]\nmemory = '1GiB'\nreturned = '512MiB'\nbackend-call = '60s'\n";
    let backend = "call = 'decode', answer = 'swell'";
    let ran = run(&mock.url, backend, "mark = 0", 1, sandbox);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert_eq!(
        failure(&ran.exchanges()[0]),
        (
            Class::Plugin,
            "plugin `guests/hostile-backend.wasm` broke its contract in `decode`: \
             it produces more than 32 MiB from one reply"
        )
    );
}

/// A frame that only the plugin finds may be large: it crosses to the plugin only a few times.
#[test]
fn a_large_frame_of_raw_bytes_is_read() {
    const PIECES: usize = 512;
    const PIECE: usize = 4 << 10;
    let url = serve(|mut stream| {
        read_request(stream)?;
        let length = PIECES * PIECE + 2;
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n").ok()?;
        (0..PIECES).try_for_each(|_| stream.write_all(&[b'x'; PIECE])).ok()?;
        stream.write_all(b"\n\n").ok()
    });
    let ran = run(&url, "raw = true, spill = true", "", 1, "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.exchanges()[0].output, (PIECES * PIECE + 2).to_string());
    let log = fs::read_to_string(ran.folder.path().join("plugins.log")).unwrap();
    let calls = log.lines().filter(|line| line.ends_with("bytes to read")).count();
    assert!((2..64).contains(&calls), "{calls}");
}

#[test]
fn a_dataset_that_fails_ends_the_run() {
    let mock = mock(&[]);
    for (dataset, code, words) in [
        (
            "call = 'next', misbehave = 'abort', only-at = 70",
            4,
            "plugin `guests/hostile-dataset.wasm` failed in `next`: it aborted without a message (after sample `sample-",
        ),
        (
            "call = 'next', answer = 'bad-reference', only-at = 70",
            4,
            "plugin `guests/hostile-dataset.wasm` broke its contract in `next`: the reference of sample `sample-70` is not JSON",
        ),
        (
            "call = 'next', answer = 'fault', only-at = 70",
            3,
            "plugin `guests/hostile-dataset.wasm` cannot use its input: file `questions`, line 3: expected a question",
        ),
    ] {
        let ran = run(&mock.url, "", dataset, 2_000, "");
        assert_eq!(ran.code, code, "{}", ran.stderr);
        let status: Status = ran.file("status.json");
        let error = status.error.unwrap();
        assert!(error.starts_with(words), "{error}");
        assert!(ran.exchanges().len() <= 64);
    }
}

#[test]
fn samples_that_make_no_session_end_the_run() {
    let mock = mock(&[]);
    for (call, answer, at, more, words) in [
        (
            "next",
            "orphan",
            0,
            "",
            "`next`: sample `sample-0` depends on others, but no independent sample came before it",
        ),
        (
            "next",
            "orphan",
            70,
            "",
            "`next`: sample `sample-70` depends on `nobody`, which did not come before it in its session",
        ),
        (
            "next",
            "beside",
            70,
            "",
            "`next`: sample `sample-70` continues `sample-69` without depending on its end",
        ),
        ("spare", "orphan", 0, "warmup = 1\n", "`spare`: "),
    ] {
        let dataset = format!("call = '{call}', answer = '{answer}', only-at = {at}");
        let ran = run(&mock.url, "", &dataset, 2_000, more);
        assert_eq!(ran.code, 4, "{call} {answer} {at}: {}", ran.stderr);
        let status: Status = ran.file("status.json");
        let error = status.error.unwrap();
        let says = format!("plugin `{DATASET}` broke its contract in {words}");
        assert!(error.starts_with(&says), "{error}");
        assert!(ran.exchanges().len() <= at);
    }
}

#[test]
fn a_scorer_that_fails_on_one_answer_leaves_the_other_scores() {
    let mock = mock(&[]);
    let scorers = format!(
        "[[scorers]]\nplugin = '{SCORER}'\n\
         config = {{ call = 'score', misbehave = 'panic', only-on = '!' }}\n\
         [[scorers]]\nplugin = 'scorers/exact-match.wasm'\n"
    );
    let ran = run(&mock.url, "", "mark = 3", 12, &scorers);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    let assessment: Assessment = ran.file("assessment.json");
    let [error] = &assessment.errors[..] else { panic!("{:?}", assessment.errors) };
    assert!(
        error.starts_with(&format!("plugin `{SCORER}` failed in `score`: it panicked: "))
            && error.ends_with("a panic on purpose (scoring `sample-3`)"),
        "{error}"
    );
    let judged: BTreeSet<u64> =
        (assessment.scores["length"].iter()).map(|(index, _)| index).collect();
    assert_eq!(judged, (0..12).filter(|index| *index != 3).collect());
    assert_eq!(assessment.means["length"].count, 11);
    assert_eq!(assessment.means["exact-match"].count, 12);
    assert!(ran.exchanges().iter().all(Exchange::is_ok));
}

#[test]
fn a_failing_scorer_is_dropped_after_ten_failures() {
    let mock = mock(&[]);
    let scorers = format!(
        "[[scorers]]\nplugin = '{SCORER}'\nconfig = {{ call = 'score', answer = 'nan' }}\n"
    );
    let ran = run(&mock.url, "", "", 30, &scorers);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    let assessment: Assessment = ran.file("assessment.json");
    assert_eq!(assessment.errors.len(), 10);
    assert!(assessment.scores.is_empty() && assessment.means.is_empty());
    assert!(ran.exchanges().iter().all(Exchange::is_ok));
}

#[test]
fn the_key_reaches_the_server_and_nothing_else() {
    let mock = mock(&["--api-key", KEY]);
    let scorers = format!("[[scorers]]\nplugin = '{SCORER}'\nconfig = {{ spill = true }}\n");
    let ran = run(&mock.url, "spill = true", "spill = true", 12, &scorers);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.exchanges().iter().all(Exchange::is_ok));
    let everything = ran.everything();
    for spilt in [
        "info guests/hostile-backend.wasm: Open: ",
        "info guests/hostile-backend.wasm: Encode: ",
        "info guests/hostile-backend.wasm: Decode: ",
        "info guests/hostile-dataset.wasm: ",
        "info guests/hostile-scorer.wasm: ",
    ] {
        assert!(everything.contains(spilt), "nothing of {spilt}");
    }
    assert!(!everything.contains(KEY));
}

#[test]
fn a_key_in_the_servers_answer_is_hidden_from_the_backend() {
    let url = serve(|stream| {
        let request = read_request(stream)?;
        let body = format!("no such key: {}", field(&request, "authorization").unwrap_or_default());
        reply(stream, "401 Unauthorized", "", "text/plain", &body)
    });
    let ran = run(&url, "spill = true", "", 3, "");
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    let log = fs::read_to_string(Path::new(ran.folder.path()).join("plugins.log")).unwrap();
    let explained = (log.lines())
        .filter(|line| line.ends_with("Explain: no such key: Bearer [redacted]"))
        .count();
    assert_eq!(explained, 3, "{log}");
    assert!(!ran.everything().contains(KEY));
}

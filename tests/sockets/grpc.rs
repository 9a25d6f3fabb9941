//! gRPC, against a server that is not ours: grpcio, with the stubs of Triton's client package.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use serde::Deserialize;
use tempfile::TempDir;

use model::exchange::{Class, Exchange, Kind, Outcome, Reason};

use crate::endings::{class, exchanges};
use crate::support::lacking::leave_out;
use crate::support::process::{Process, run, runner, words};
use crate::support::pypi::{self, PYPI};

/// The server.
const TRITON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/sockets/triton.py");
/// Its packages.
const PACKAGES: &str = "tritonclient[grpc]==2.73.0\n";

static PYTHON: LazyLock<Result<PathBuf, String>> = LazyLock::new(|| {
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/triton");
    pypi::python(Path::new(folder), PACKAGES)
});

/// A line of the server's log.
#[derive(Deserialize)]
struct Served {
    id: String,
    model: String,
    text: String,
    parameters: serde_json::Value,
    metadata: std::collections::BTreeMap<String, String>,
    fault: Option<String>,
    pieces: Vec<(String, u32)>,
}

/// A run of this many requests against the server, and the server's log.
fn run_against_triton(flags: &str) -> Option<(TempDir, Vec<Exchange>, Vec<Served>)> {
    let python = match &*PYTHON {
        Ok(python) => python,
        Err(why) => {
            eprintln!("{why}");
            leave_out(&PYPI);
            return None;
        }
    };
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("log.jsonl");
    let mut command = Command::new(python);
    command.arg(TRITON).arg("0").arg(&log).stdin(Stdio::piped());
    let mut server = Process::start(&mut command);
    server.until("its port", |server| server.stdout().ends_with('\n'));
    let url = format!("http://127.0.0.1:{}", server.stdout().trim());
    let line = "--backend triton-grpc --model m --dataset-name random --random-input-len 8 \
                --random-output-len 8 --warmup-requests 0 --concurrency 8";
    let mut command = runner();
    command
        .args(words(line))
        .args(words(flags))
        .args(["--base-url", &url]);
    run(command.current_dir(folder.path())).with_code(0);
    let exchanges = exchanges(folder.path());
    let text = std::fs::read_to_string(&log).unwrap();
    let served = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let served = served.collect();
    Some((folder, exchanges, served))
}

#[test]
fn each_exchange_is_what_the_server_logged() {
    let Some((_folder, exchanges, served)) = run_against_triton("--num-prompts 200") else {
        return;
    };
    assert_eq!((exchanges.len(), served.len()), (200, 200));
    for exchange in &exchanges {
        let id = &exchange.sample.id;
        let served = served.iter().find(|served| served.id == *id).unwrap();
        assert_eq!(served.model, "m");
        assert!(!served.text.is_empty());
        assert_eq!(served.parameters["max_tokens"], 8);
        assert_eq!(served.parameters["ignore_eos"], true);
        assert!(!served.metadata.contains_key("authorization"));
        let ids = exchange.ids.as_ref().unwrap();
        assert_eq!(served.metadata.get("x-request-id"), ids.request.as_ref());
        let (wanted, reason) = match served.fault.as_deref() {
            None => (None, None),
            Some("refused") => (Some(Class::InBandError), Some(Reason::Overloaded)),
            Some("too-long") => (Some(Class::InBandError), Some(Reason::TooLong)),
            Some("aborted") => (Some(Class::InBandError), Some(Reason::Unavailable)),
            Some(_) => (Some(Class::InBandError), None),
        };
        assert_eq!(class(exchange), wanted, "{id}: {:?}", exchange.outcome);
        let seen = match &exchange.outcome {
            Outcome::Incomplete { reason, .. } => *reason,
            Outcome::Ok => None,
        };
        assert_eq!(seen, reason, "{id}: {:?}", exchange.outcome);
        let text: String = served.pieces.iter().map(|(text, _)| &**text).collect();
        assert_eq!(exchange.output, text, "{id}");
        let pieces = exchange
            .events
            .kind
            .iter()
            .filter(|kind| **kind == Kind::Text);
        assert_eq!(pieces.count(), served.pieces.len(), "{id}");
        if wanted.is_none() {
            let usage = exchange.usage.unwrap();
            assert_eq!(usage.output_tokens, Some(8), "{id}");
            let words = served.text.split_whitespace().count();
            assert_eq!(usage.input_tokens, Some(words as u32), "{id}");
            assert_eq!(exchange.finish.as_deref(), Some("length"), "{id}");
        }
    }
    let faulty = served.iter().filter(|served| served.fault.is_some());
    assert_eq!(faulty.count(), 40, "every fifth");
}

#[test]
fn an_answer_in_one_message_is_read_too() {
    let flags = "--num-prompts 6 --disable-stream";
    let Some((_folder, exchanges, served)) = run_against_triton(flags) else {
        return;
    };
    for exchange in &exchanges {
        let served = served.iter().find(|served| served.id == exchange.sample.id);
        let served = served.unwrap();
        assert_eq!(class(exchange).is_some(), served.fault.is_some());
        let Some((text, _)) = served.pieces.first() else {
            continue;
        };
        assert_eq!(exchange.output, *text);
        assert_eq!(exchange.usage.unwrap().output_tokens, Some(8));
    }
}

/// A version of HTTP that has no gRPC is told in words.
#[test]
fn another_version_of_http_is_refused() {
    let folder = TempDir::new().unwrap();
    let line = "--backend triton-grpc --model m --dataset-name random --num-prompts 1 --http 1.1";
    let mut command = runner();
    let ended = run(command.args(words(line)).current_dir(folder.path())).with_code(3);
    let told = "speaks gRPC, which needs HTTP/2";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
    assert!(ended.stderr.contains("given by --http"), "{}", ended.stderr);
}

//! gRPC against foreign programs: a server of grpcio, with the stubs of Triton's client package;
//! and that client, which reads the mock engine.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use serde::Deserialize;
use tempfile::TempDir;

use model::exchange::{Class, Exchange, Kind, Outcome, Reason};

use crate::endings::{class, exchanges};
use crate::support::process::{Mock, run, run_patiently, runner, words};
use crate::support::pypi;
use crate::support::results::json_lines;

const TRITON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/sockets/triton.py");
const CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/sockets/triton_client.py");
const PACKAGES: &str = "tritonclient[grpc]==2.73.0\n";

static PYTHON: LazyLock<Result<PathBuf, String>> = LazyLock::new(|| {
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/triton");
    pypi::python(Path::new(folder), PACKAGES)
});

/// A line of the server's log.
#[derive(Deserialize)]
struct Entry {
    id: String,
    model: String,
    text: String,
    parameters: serde_json::Value,
    metadata: std::collections::BTreeMap<String, String>,
    fault: Option<String>,
    pieces: Vec<(String, u32)>,
}

/// A run of this many requests against the server, and the server's log.
fn run_against_triton(flags: &str) -> Option<(TempDir, Vec<Exchange>, Vec<Entry>)> {
    let python = pypi::present(&PYTHON)?;
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("log.jsonl");
    let (_server, url) = pypi::serve(python, TRITON, &log);
    let line = "--backend triton-grpc --model m --dataset-name random --random-input-len 8 \
                --random-output-len 8 --warmup-requests 0 --concurrency 8";
    let mut command = runner();
    command.args(words(line)).args(words(flags)).args(["--base-url", &url]);
    run(command.current_dir(folder.path())).with_code(0);
    let exchanges = exchanges(folder.path());
    Some((folder, exchanges, json_lines(log)))
}

#[test]
fn each_exchange_agrees_with_the_servers_log() {
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
        let pieces = exchange.events.kind.iter().filter(|kind| **kind == Kind::Text);
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
    let Some((_folder, exchanges, served)) = run_against_triton(flags) else { return };
    for exchange in &exchanges {
        let served = served.iter().find(|served| served.id == exchange.sample.id);
        let served = served.unwrap();
        assert_eq!(class(exchange).is_some(), served.fault.is_some());
        let Some((text, _)) = served.pieces.first() else { continue };
        assert_eq!(exchange.output, *text);
        assert_eq!(exchange.usage.unwrap().output_tokens, Some(8));
    }
}

/// A version of HTTP that has no gRPC is reported.
#[test]
fn another_version_of_http_is_refused() {
    let folder = TempDir::new().unwrap();
    let line = "--backend triton-grpc --model m --dataset-name random --num-prompts 1 --http 1.1";
    run(runner().args(words(line)).current_dir(folder.path()))
        .with_stderr(3, "speaks gRPC, which needs HTTP/2")
        .with_stderr(3, "given by --http");
}

/// A line of the client: the parts that it read of one request.
#[derive(Debug, Deserialize)]
struct Reading {
    /// The text, the reason for which the answer ended, and tokens of prompt and piece.
    pieces: Vec<(String, String, u32, u32)>,
    errors: Vec<String>,
    status: String,
    details: String,
    #[serde(default)]
    up: Vec<bool>,
}

/// The faults of the mock engine, by the number of the request.
const FAULTS: [&str; 6] = [
    r#"kind = "split", bytes = 3, requests = [3]"#,
    r#"kind = "http-error", status = 503, requests = [4]"#,
    r#"kind = "in-band-error", after-tokens = 5, requests = [5]"#,
    r#"kind = "cut", after-tokens = 5, requests = [6]"#,
    r#"kind = "no-done", after-tokens = 5, requests = [7]"#,
    r#"kind = "merge", events = 4, requests = [8]"#,
];

/// A mock engine with these flags and the faults.
fn faulty(flags: &str) -> Mock {
    let faults = FAULTS.join(";");
    let mut flags: Vec<&str> = words(flags).collect();
    flags.extend(["--ttft", "20ms", "--itl", "2ms", "--fault", &faults]);
    Mock::logging(&flags)
}

/// Triton's client reads the mock engine; its figures equal the engine's log.
#[test]
fn tritons_own_client_reads_the_mock_engine() {
    let Some(python) = pypi::present(&PYTHON) else { return };
    let mock = faulty("--model m --answer größer!");
    let address = mock.url.trim_start_matches("http://");
    let mut client = Command::new(python);
    let client = run_patiently(client.args([CLIENT, address, "m"])).with_code(0);
    let lines = client.stdout.lines();
    let read: Vec<Reading> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    let truths = mock.end();
    // One of the calls generates nothing, whoever makes it.
    assert_eq!((read.len(), truths.len()), (11, 10), "{read:?}");
    assert_eq!(read[0].up, [true; 3]);
    for (number, read) in read[..10].iter().enumerate() {
        let of_number = |truth: &&mock::Truth| truth.number == number as u64;
        let truth = truths.iter().find(of_number).unwrap();
        let about = format!("{number}: {read:?}");
        let (status, tokens, errors) = match number {
            4 => (&["UNAVAILABLE"][..], 0, 0),
            5 => (&["OK"][..], 5, 1),
            // grpcio's own words for a stream that was reset, and one without a status.
            6 => (&["INTERNAL", "UNKNOWN", "UNAVAILABLE", "CANCELLED"][..], 5, 0),
            7 => (&["INTERNAL", "UNKNOWN"][..], 5, 0),
            9 => (&["NOT_FOUND"][..], 0, 0),
            _ => (&["OK"][..], 12, 0),
        };
        assert!(status.contains(&&*read.status), "{about}");
        assert_eq!(read.errors.len(), errors, "{about}");
        let sent: u32 = truth.chunks.iter().map(|chunk| chunk.tokens).sum();
        let counted: u32 = read.pieces.iter().map(|(.., tokens)| tokens).sum();
        // The client loses unread pieces when a stream is reset, or ends without a status.
        let loses = matches!(number, 6 | 7) && (1..=tokens).contains(&counted);
        let is_read = counted == tokens || loses;
        assert!(sent == tokens && is_read, "{sent} sent: {about}");
        let text: String = read.pieces.iter().map(|(text, ..)| &**text).collect();
        let whole = "größer! ";
        assert!(tokens == 0 || text.starts_with('g'), "{about}");
        if tokens == 12 {
            assert!(text.starts_with(whole) && text.len() == 12, "{about}");
            let (last, before) = read.pieces.split_last().unwrap();
            assert_eq!(last.1, "length", "{about}");
            assert!(before.iter().all(|piece| piece.1 == "None"), "{about}");
            assert_eq!(last.2, 9, "bytes of the prompt: {about}");
            let pieces = if number == 1 { 1 } else { 12 };
            assert_eq!(read.pieces.len(), pieces, "{about}");
        }
    }
    assert_eq!(read[4].details, mock_says());
    assert_eq!(read[5].errors, [mock_says()]);
    assert!(read[9].details.contains("`another` does not exist"));
    assert_eq!(read[10].status, "UNIMPLEMENTED");
    assert!(read[10].details.contains("decoupled"), "{:?}", read[10]);
}

/// The words of the mock engine for an error of its own, which are vLLM's.
fn mock_says() -> &'static str {
    "EngineCore encountered an issue. See stack trace (above) for the root cause."
}

/// The runner reads the mock engine; its figures equal the engine's log.
#[test]
fn each_exchange_agrees_with_the_mock_engines_log() {
    let mock = faulty("");
    let folder = TempDir::new().unwrap();
    let line = "--backend triton-grpc --model m --dataset-name random --random-input-len 8 \
                --random-output-len 12 --warmup-requests 0 --concurrency 1 --num-prompts 12";
    run(runner().args(words(line)).args(["--base-url", &mock.url]).current_dir(folder.path()))
        .with_code(0);
    let exchanges = exchanges(folder.path());
    let truths = mock.end();
    assert_eq!((exchanges.len(), truths.len()), (12, 12));
    for (number, (exchange, truth)) in exchanges.iter().zip(&truths).enumerate() {
        let about = format!("{number}: {:?}", exchange.outcome);
        assert_eq!(truth.number, number as u64);
        let (wanted, tokens) = match number {
            4 => (Some(Class::InBandError), 0),
            5 => (Some(Class::InBandError), 5),
            6 | 7 => (Some(Class::Truncated), 5),
            _ => (None, 12),
        };
        assert_eq!(class(exchange), wanted, "{about}");
        let pieces = exchange.events.kind.iter().filter(|kind| **kind == Kind::Text).count();
        assert_eq!(pieces, tokens, "{about}");
        assert_eq!(exchange.output.len(), tokens, "{about}");
        let sent: u32 = truth.chunks.iter().map(|chunk| chunk.tokens).sum();
        assert_eq!(sent as usize, tokens, "{about}");
        if wanted.is_none() {
            let usage = exchange.usage.unwrap();
            assert_eq!(usage.input_tokens, truth.prompt_tokens, "{about}");
            assert_eq!(usage.output_tokens, Some(12), "{about}");
            assert_eq!(exchange.finish.as_deref(), Some("length"), "{about}");
        }
    }
    match &exchanges[4].outcome {
        Outcome::Incomplete { reason, .. } => assert_eq!(*reason, Some(Reason::Unavailable)),
        Outcome::Ok => panic!("it was refused"),
    }
}

/// A probe sees that a call has an end, and its token counts.
#[test]
fn a_probe_reads_a_call_to_its_end() {
    let mock = Mock::start(&["--ttft", "20ms", "--itl", "2ms"]);
    let flags = ["--backend", "triton-grpc", "--model", "m", "--format", "json"];
    let probe = run(runner().args(["probe", &mock.url]).args(flags)).with_code(0).json();
    let routes = probe["routes"].as_array().unwrap();
    let path = "/inference.GRPCInferenceService/ModelStreamInfer";
    let route = routes.iter().find(|route| route["path"] == path);
    let shape = &route.unwrap_or_else(|| panic!("{probe}"))["shape"];
    assert_eq!(shape["end-marker"], true, "{probe}");
    assert_eq!(shape["usage"]["output-tokens"], 8, "{probe}");
}

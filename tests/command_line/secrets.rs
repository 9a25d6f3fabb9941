//! Keys and header values go into requests and nowhere else, even if servers repeat them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::support::process::{Mock, Process, only_run, run, runner, words};

const KEY: &str = "sk-0123456789abcdef";
const TENANT: &str = "tenant-of-great-secrecy";
const FIELD: &str = "key-of-a-proxy-0123";

/// A server that knows its model, and refuses every request with the headers it received.
fn telltale(lists_models: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            std::thread::spawn(move || while refuse(&stream, lists_models).is_some() {});
        }
    });
    url
}

fn refuse(mut stream: &TcpStream, lists_models: bool) -> Option<()> {
    let request = read_request(stream)?;
    let head = request.split_inclusive("\r\n\r\n").next()?;
    let (status, body) = if lists_models && head.starts_with("GET /v1/models") {
        let models = r#"{"object":"list","data":[{"id":"m","object":"model"}]}"#;
        ("200 OK", models.to_owned())
    } else {
        let message = serde_json::json!({ "error": { "message": format!("not you: {head}") } });
        ("401 Unauthorized", message.to_string())
    };
    let length = body.len();
    write!(stream, "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}").ok()
}

fn against(url: &str, folder: &Path) -> std::process::Command {
    let mut command = runner();
    let line = "--backend vllm --dataset-name random --num-prompts 3 --random-output-len 4 --api-key-env ENGINE_KEY";
    command.args(words(line)).args(["--base-url", url]);
    command.env("ENGINE_KEY", KEY).env("RUNNER_HEADER", format!("x-tenant: {TENANT}"));
    command.current_dir(folder);
    command
}

#[track_caller]
fn assert_nothing_leaked(what: &str, text: &[u8]) {
    for secret in [KEY, TENANT, FIELD] {
        let leaked = text.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!leaked, "{what} holds {secret}: {}", String::from_utf8_lossy(text));
    }
}

#[test]
fn a_server_that_repeats_them_spreads_none() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::start(&mut against(&telltale(true), folder.path()));
    assert_nothing_leaked("the command line", process.command_line().as_bytes());
    let ended = process.end().with_code(5);
    assert!(ended.stderr.contains("not you: "), "the server's message is shown: {ended:#?}");
    assert!(ended.stderr.contains("[redacted]"), "{ended:#?}");
    assert_nothing_leaked("stdout", ended.stdout.as_bytes());
    assert_nothing_leaked("stderr", ended.stderr.as_bytes());
    assert_no_file_holds_any(&only_run(&folder.path().join("runs")).unwrap());
}

#[track_caller]
fn assert_no_file_holds_any(run_folder: &Path) {
    let mut files = 0;
    for file in std::fs::read_dir(run_folder).unwrap() {
        let path = file.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        if path.extension().is_some_and(|extension| extension == "zst") {
            bytes = zstd::decode_all(&bytes[..]).unwrap();
        }
        assert_nothing_leaked(&path.display().to_string(), &bytes);
        files += 1;
    }
    assert!(files >= 5, "{files} files");
}

/// A server that answers with the request itself, headers and all. The request is kept.
fn parrot() -> (String, Arc<Mutex<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(String::new()));
    let kept = Arc::clone(&requests);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, kept) = (stream.unwrap(), Arc::clone(&kept));
            std::thread::spawn(move || while answer(&stream, &kept).is_some() {});
        }
    });
    (url, requests)
}

fn answer(mut stream: &TcpStream, kept: &Mutex<String>) -> Option<()> {
    let request = read_request(stream)?;
    kept.lock().unwrap().push_str(&request);
    let (kind, body) = if request.starts_with("GET /v1/models") {
        let models = r#"{"object":"list","data":[{"id":"m","object":"model"}]}"#;
        ("application/json", models.to_owned())
    } else {
        let piece = |text: &str, finish: Option<&str>| {
            let choice = serde_json::json!({
                "index": 0, "text": text, "delta": { "content": text }, "finish_reason": finish,
            });
            format!("data: {}\n\n", serde_json::json!({ "id": "1", "choices": [choice] }))
        };
        let body = piece(&request, None) + &piece("", Some(KEY)) + "data: [DONE]\n\n";
        ("text/event-stream", body)
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .ok()
}

/// The head and the body of a request.
pub fn read_request(stream: &TcpStream) -> Option<String> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| {
        line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok()
    });
    reader.take(length.unwrap_or(0)).read_to_string(&mut head).ok()?;
    Some(head)
}

#[test]
fn answers_that_repeat_them_are_kept_without_them() {
    let folder = tempfile::tempdir().unwrap();
    let (url, requests) = parrot();
    let mut command = against(&url, folder.path());
    let body = serde_json::json!({ "api_key": FIELD, "user": "somebody" });
    command.args(["--extra-body", &body.to_string()]);
    let ended = run(&mut command).with_code(0);
    let requests = requests.lock().unwrap();
    for secret in [KEY, TENANT, FIELD] {
        assert!(requests.contains(secret), "the server gets {secret}: {requests}");
    }
    assert_nothing_leaked("stdout", ended.stdout.as_bytes());
    assert_nothing_leaked("stderr", ended.stderr.as_bytes());
    let run_folder = only_run(&folder.path().join("runs")).unwrap();
    assert_no_file_holds_any(&run_folder);
    let plan = std::fs::read_to_string(run_folder.join("plan.json")).unwrap();
    let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
    let kept = &plan["request"]["extra-body"];
    assert_eq!(kept["user"], "somebody");
    let digest = kept["api_key"].as_str().unwrap();
    assert!(digest.starts_with("[redacted, sha256 "), "{digest}");
    for format in ["text", "markdown", "html", "json", "jsonl", "csv"] {
        let mut report = runner();
        report.arg("report").arg(&run_folder).args(["--format", format]);
        let ended = run(&mut report).with_code(0);
        assert_nothing_leaked(format, ended.stdout.as_bytes());
    }
}

#[test]
fn neither_does_one_that_lets_nobody_in() {
    let folder = tempfile::tempdir().unwrap();
    let ended = run(&mut against(&telltale(false), folder.path())).with_code(5);
    assert!(ended.stderr.contains("HTTP 401: not you: "), "{ended:#?}");
    assert_nothing_leaked("stderr", ended.stderr.as_bytes());
    assert_eq!(ended.stdout, "");
}

#[test]
fn a_header_on_the_command_line_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mock = Mock::start(&["--api-key", KEY, "--ttft", "1ms", "--itl", "1ms"]);
    let mut command = against(&mock.url, folder.path());
    command.env_remove("RUNNER_HEADER").args(["--header", &format!("X-Tenant={TENANT}")]);
    run(&mut command).with_code(0);
    let run_folder = only_run(&folder.path().join("runs")).unwrap();
    let environment = std::fs::read_to_string(run_folder.join("environment.json")).unwrap();
    assert!(environment.contains("[redacted]"), "{environment}");
    assert_nothing_leaked("environment.json", environment.as_bytes());
    let plan = std::fs::read_to_string(run_folder.join("plan.json")).unwrap();
    assert!(plan.contains("x-tenant"), "{plan}");
    assert_nothing_leaked("plan.json", plan.as_bytes());
}

#[test]
fn the_right_key_opens() {
    for variable in ["OPENAI_API_KEY", "ENGINE_KEY"] {
        let folder = tempfile::tempdir().unwrap();
        let mock = Mock::start(&["--api-key", KEY, "--ttft", "1ms", "--itl", "1ms"]);
        let mut command = runner();
        let line =
            "--backend vllm --dataset-name random --num-prompts 3 --random-output-len 4 --base-url";
        command.args(words(line)).arg(&mock.url).env(variable, KEY).current_dir(folder.path());
        if variable != "OPENAI_API_KEY" {
            command.args(["--api-key-env", variable]);
        }
        run(&mut command).with_code(0);
    }
}

//! Keys and header values go into requests and nowhere else, even if servers repeat them.

use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::support::process::{Mock, Process, run};
use crate::support::results::{contents, json_file, random, report, run_folder};
use crate::support::server::{EVENTS, JSON, completion, models, read_request, reply, serve};

const KEY: &str = "sk-0123456789abcdef";
const TENANT: &str = "tenant-of-great-secrecy";
const FIELD: &str = "key-of-a-proxy-0123";

/// A server that knows its model, and refuses every request with the headers it received.
fn telltale(lists_models: bool) -> String {
    serve(move |stream| {
        let request = read_request(stream)?;
        let head = request.split_inclusive("\r\n\r\n").next()?;
        if lists_models && head.starts_with("GET /v1/models") {
            return reply(stream, "200 OK", "", JSON, &models());
        }
        let message = serde_json::json!({ "error": { "message": format!("not you: {head}") } });
        reply(stream, "401 Unauthorized", "", JSON, &message.to_string())
    })
}

fn against(url: &str, folder: &Path) -> std::process::Command {
    let flags = "--num-prompts 3 --random-output-len 4 --api-key-env ENGINE_KEY";
    let mut command = random(url, folder, flags);
    command.env("ENGINE_KEY", KEY).env("RUNNER_HEADER", format!("x-tenant: {TENANT}"));
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
    assert_no_file_holds_any(&run_folder(folder.path()));
}

#[track_caller]
fn assert_no_file_holds_any(run_folder: &Path) {
    let files = contents(run_folder);
    assert!(files.len() >= 5, "{} files", files.len());
    for (path, bytes) in files {
        assert_nothing_leaked(&path.display().to_string(), &bytes);
    }
}

/// A server that answers with the request itself, headers and all. The request is kept.
fn parrot() -> (String, Arc<Mutex<String>>) {
    let requests = Arc::<Mutex<String>>::default();
    let kept = Arc::clone(&requests);
    let url = serve(move |stream| {
        let request = read_request(stream)?;
        kept.lock().unwrap().push_str(&request);
        if request.starts_with("GET /v1/models") {
            return reply(stream, "200 OK", "", JSON, &models());
        }
        reply(stream, "200 OK", "", EVENTS, &completion(&request, KEY))
    });
    (url, requests)
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
    let run_folder = run_folder(folder.path());
    assert_no_file_holds_any(&run_folder);
    let plan = json_file(run_folder.join("plan.json"));
    let kept = &plan["request"]["extra-body"];
    assert_eq!(kept["user"], "somebody");
    let digest = kept["api_key"].as_str().unwrap();
    assert!(digest.starts_with("[redacted, sha256 "), "{digest}");
    for format in ["text", "markdown", "html", "json", "jsonl", "csv"] {
        let report = report(&run_folder, &format!("--format {format}"));
        assert_nothing_leaked(format, report.stdout.as_bytes());
    }
}

#[test]
fn neither_does_one_that_lets_nobody_in() {
    let folder = tempfile::tempdir().unwrap();
    let ended =
        run(&mut against(&telltale(false), folder.path())).with_stderr(5, "HTTP 401: not you: ");
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
    let run_folder = run_folder(folder.path());
    let environment = std::fs::read_to_string(run_folder.join("environment.json")).unwrap();
    assert!(environment.contains("[redacted]"), "{environment}");
    assert_nothing_leaked("environment.json", environment.as_bytes());
    let plan = std::fs::read_to_string(run_folder.join("plan.json")).unwrap();
    assert!(plan.contains("x-tenant"), "{plan}");
    assert_nothing_leaked("plan.json", plan.as_bytes());
}

//! A server with all duties of the host: a log-in, a workspace, cookies, and an end for each job.

use std::path::Path;
use std::sync::{Arc, Mutex};

use super::author;
use crate::support::process::{run_patiently, words};
use crate::support::server::{field, read_request, reply, serve};

const KEY: &str = "client-0123456789:s3cret-0123456789";

/// The answer to a request, and further header fields.
fn answer(request: &str) -> (u16, &'static str, &'static str) {
    let line = request.lines().next().unwrap_or_default();
    let has_token = field(request, "authorization") == Some("Token t-0123456789");
    let has_cookie = field(request, "cookie") == Some("job=7");
    match line.rsplit_once(' ').map_or("", |(request, _)| request) {
        "POST /v1/login" => {
            let body = request.split("\r\n\r\n").nth(1).unwrap_or_default().replace(' ', "");
            if body == r#"{"id":"client-0123456789","secret":"s3cret-0123456789"}"# {
                (200, r#"{"access_token": "t-0123456789", "expires_in": 3600}"#, "")
            } else {
                (401, "who is that?", "")
            }
        }
        _ if !has_token => (401, "no token", ""),
        "GET /v1/models" => (200, r#"{"data": [{"id": "m"}]}"#, ""),
        "POST /v1/workspaces" => (200, "w-1\n", ""),
        "POST /v1/w-1/jobs" => (200, "wait", "set-cookie: job=7\r\n"),
        "GET /v1/jobs/1" if has_cookie => (200, "done", ""),
        "DELETE /v1/jobs/1" if has_cookie => (204, "", ""),
        _ => (404, "no such thing", ""),
    }
}

/// A run with the backend in the project's folder gets every part right.
pub(super) fn demands_each_part(folder: &Path, language: &str) {
    let log = Arc::<Mutex<Vec<String>>>::default();
    let kept = Arc::clone(&log);
    let url = serve(move |stream| {
        let request = read_request(stream)?;
        let (status, body, fields) = answer(&request);
        let line = request.lines().next().unwrap_or_default();
        kept.lock().unwrap().push(format!("{status} {line}"));
        reply(stream, &format!("{status} X"), fields, "text/plain", body)
    });
    let mut command = author(folder);
    command.args(words(
        "--dataset-name random --random-output-len 4 --num-prompts 7 --warmup-requests 0",
    ));
    command.args(["--base-url", &url, "--plugin", "mine/target/plugin/mine.wasm"]);
    command.args(words("--model m --set backend.config.scheme=token --api-key-env WORKSHOP_KEY"));
    let ended = run_patiently(command.env("WORKSHOP_KEY", KEY));
    let log = log.lock().unwrap();
    assert_eq!(ended.code, Some(0), "{language}: {ended:#?} {log:#?}");
    let count = |line: &str| log.iter().filter(|own| own.starts_with(line)).count();
    assert_eq!(count("200 POST /v1/w-1/jobs"), 7, "{log:#?}");
    assert_eq!(count("4"), 0, "{language}: {log:#?}");
    assert_eq!(count("204 DELETE"), count("200 GET /v1/jobs/1"), "{language}: {log:#?}");
}

//! `runner plugin record`: cases of live replies, of our mock engine and of a foreign server.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::lacking;
use crate::support::process::{Exit, Mock, run, runner};
use crate::support::server::nobody;

const KEY: &str = "sk-of-the-author-0123456789";
const BACKEND: &str = "backends/openai.wasm";

/// A server in Python; dropping it ends it. Absent where there is no Python.
struct Foreign {
    process: Child,
    url: String,
    seen: PathBuf,
}

impl Foreign {
    fn start(folder: &Path) -> Option<Self> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/authoring/server.py");
        let seen = folder.join("seen.jsonl");
        let mut command = Command::new("python3");
        command.arg(script).arg(&seen).stdout(Stdio::piped());
        let Ok(mut process) = command.spawn() else {
            lacking::leave_out(&lacking::PYTHON_ITSELF);
            return None;
        };
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let url = format!("http://127.0.0.1:{}", port.trim());
        Some(Foreign { process, url, seen })
    }

    /// The last request for an answer.
    fn last(&self) -> Value {
        let seen = std::fs::read_to_string(&self.seen).unwrap();
        serde_json::from_str(seen.lines().last().unwrap()).unwrap()
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn record(folder: &Path, url: &str, words: &[&str]) -> Exit {
    let mut command = runner();
    command.current_dir(folder).env("MY_KEY", KEY);
    command.args(["plugin", "record", url, "--plugin", BACKEND]);
    command.args(["--api-key-env", "MY_KEY"]).args(words);
    run(&mut command)
}

/// Runs `runner plugin test`, which must pass the cases.
fn tested(folder: &Path) {
    let test = ["plugin", "test", ".", "--plugin", BACKEND];
    run(runner().current_dir(folder).args(test)).with_code(0);
}

fn read(folder: &Path, file: &str) -> String {
    std::fs::read_to_string(folder.join("cases").join(file))
        .unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn files(folder: &Path, case: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder.join("cases").join(case)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn a_reply_of_a_server_that_is_not_ours_becomes_a_case() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let Some(server) = Foreign::start(folder) else { return };
    let ended = record(folder, &server.url, &["--prompt", "Count.", "--output-tokens", "2"]);
    ended.with_stdout(0, "reply.sse");
    assert_eq!(
        files(folder, "recorded"),
        ["events.json", "head.json", "reply.sse", "request.http", "sample.json", "settings.json"]
    );
    // The server got the request of the case, except for the model's path, and the key.
    let seen = server.last();
    assert_eq!(seen["key"], format!("Bearer {KEY}"));
    let request = read(folder, "recorded/request.http");
    let sent = seen["body"].as_str().unwrap();
    let body = request.rsplit("\n\n").next().unwrap().trim_end();
    assert_eq!(body, sent.replace("/srv/someone/models/", ""));
    // Nothing in the case names the key, the path or the fields that identify somebody.
    for file in files(folder, "recorded") {
        let text = read(folder, &format!("recorded/{file}"));
        for name in [KEY, "someone", "/srv/"] {
            assert!(!text.contains(name), "{file}: {text}");
        }
    }
    let head: Value = serde_json::from_str(&read(folder, "recorded/head.json")).unwrap();
    let fields = serde_json::json!({"content-type": "text/event-stream"});
    assert_eq!((&head["status"], &head["headers"]), (&200.into(), &fields));
    let events = read(folder, "recorded/events.json");
    for event in [
        r#"{"frame":0,"kind":"text","text":"one""#,
        r#"{"frame":1,"kind":"finish","text":"length"}"#,
        r#"{"frame":2,"kind":"end"}"#,
    ] {
        assert!(events.contains(event), "{events}");
    }

    // A whole reply, and one with an error status.
    record(folder, &server.url, &["--case", "whole", "--no-stream"]).with_code(0);
    assert!(files(folder, "whole").contains(&"reply.json".to_owned()));
    record(folder, &server.url, &["--case", "full", "--prompt", "refuse"]).with_code(0);
    let reply = read(folder, "full/reply.429.json");
    assert!(reply.contains("the queue is full") && !reply.contains(KEY), "{reply}");
    assert!(read(folder, "full/explained.json").contains("overloaded"));
    tested(folder);

    // Existing files are not overwritten.
    record(folder, &server.url, &[]).with_stderr(3, "has a reply.sse already");
}

#[test]
fn a_sample_of_the_authors_own_is_sent_to_the_mock_engine() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mock = Mock::start(&["--ttft", "1ms", "--itl", "1ms"]);
    let case = folder.join("cases/chat");
    std::fs::create_dir_all(&case).unwrap();
    let sample = r#"{"id": "a", "prompt": {"messages": [{"role": "user", "content": "Hello"}]}, "output-tokens": 3}"#;
    std::fs::write(case.join("sample.json"), sample).unwrap();
    std::fs::write(case.join("config.toml"), "route = \"chat\"\n").unwrap();
    record(folder, &mock.url, &["--case", "chat"]).with_code(0);
    assert_eq!(read(folder, "chat/sample.json"), sample);
    assert!(read(folder, "chat/request.http").starts_with("POST /v1/chat/completions\n"));
    assert!(read(folder, "chat/reply.sse").ends_with("data: [DONE]\n\n"));
    tested(folder);
}

#[test]
fn where_there_is_no_reply_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let url = nobody();
    record(folder.path(), &url, &["--model", "m"]).with_stderr(5, "cannot reach");
    assert!(!folder.path().join("cases/recorded").exists());
    record(folder.path(), &url, &["--case", "../x"]).with_stderr(2, "--case");
}

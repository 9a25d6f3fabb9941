//! Two hundred secrets pass in every place of a request and a reply. The recorder writes none of
//! them, and no hash of one.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use serde_json::json;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use super::Recorder;
use super::traffic::post;
use crate::support::process::{inherit, runner, signal};
use crate::support::server::{JSON, read_request, reply, serve};

fn secret(number: usize) -> String {
    format!("s3cret-{number:03}-{:08x}", number.wrapping_mul(2_654_435_761))
}

/// The ways in which a hash is usually written.
fn written(bytes: &[u8]) -> Vec<String> {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let first = u64::from_be_bytes(bytes[..8].try_into().unwrap());
    let last = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    let numbers =
        [first, first >> 11, first >> 1, last, last >> 11].map(|number| number.to_string());
    let mut ways = vec![hex[..16].to_owned(), hex[..16].to_uppercase()];
    ways.extend(numbers);
    ways
}

#[test]
fn no_secret_is_written() {
    let replies = |from: usize| {
        let s = |place: usize| secret(from + place);
        json!({"id": s(0), "model": s(1), "system_fingerprint": s(2), "choices": [{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": s(3), "reasoning_content": s(4), "tool_calls": [
                {"id": s(5), "type": "function", "function": {"name": s(6), "arguments": s(7)}}]}}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 3}})
    };
    let url = serve(move |stream| {
        let request = read_request(stream)?;
        let field = format!("x-answer: {}\r\nset-cookie: a={}\r\n", secret(150), secret(151));
        match () {
            () if request.contains("/failing") || request.contains("fail-now") => {
                reply(stream, "500 Internal Server Error", &field, JSON, &secret(160))
            }
            () if request.contains("odd-reply") => {
                reply(stream, "200 OK", &field, JSON, &secret(161))
            }
            () => reply(stream, "200 OK", &field, JSON, &replies(140).to_string()),
        }
    });
    let flags = format!("--session-header x-session-id,{}", "x-own-session");
    let mut recorder = Recorder::start(&url, &flags);
    let fields = |from: usize| {
        format!(
            "Authorization: Bearer {}\r\nCookie: c={}\r\nUser-Agent: {}\r\nX-Session-ID: {}\r\nx-{}: 1\r\n",
            secret(from),
            secret(from + 1),
            secret(from + 2),
            secret(from + 3),
            secret(from + 4)
        )
    };
    for round in 0..6 {
        let from = round * 20;
        let s = |place: usize| secret(from + place);
        let word = ["", "fail-now", "odd-reply"][round % 3];
        let body = json!({"model": s(5), "user": s(6), "stop": [s(7)], "metadata": {s(8): s(9)}, "temperature": 0.5,
            "tools": [{"type": "function", "function": {"name": s(10), "description": s(11)}}], s(12): 1,
            "messages": [{"role": "system", "content": s(13)}, {"role": s(14), "content": [{"type": "text", "text": s(15)},
                {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{}", s(16))}}]},
                {"role": "user", "content": format!("{word} {}", s(17))}]});
        let path = format!("/v1/chat/completions?key={}", s(18));
        post(recorder.address(), &path, &fields(from), body.to_string().as_bytes());
    }
    // Another route, a body that is no JSON, and one of another form.
    post(
        recorder.address(),
        &format!("/{}/failing", secret(170)),
        &fields(171),
        secret(176).as_bytes(),
    );
    post(recorder.address(), "/v1/chat/completions", &fields(177), secret(182).as_bytes());
    post(
        recorder.address(),
        "/v1/completions",
        &fields(183),
        json!({"prompt": secret(188), "n": secret(189)}).to_string().as_bytes(),
    );
    post(recorder.address(), "/v1/messages", &fields(190), json!({"model": secret(195), "system": [{"type": "text", "text": secret(196)}], "messages": [{"role": "user", "content": secret(197)}], "max_tokens": 4}).to_string().as_bytes());
    recorder.until_rows(8);
    let recorded = recorder.end();
    assert_eq!(recorded.rows.len(), 8, "{}", recorded.exit.stderr);
    let mut all = format!("{}{}", recorded.exit.stdout, recorded.exit.stderr);
    for entry in std::fs::read_dir(recorded.folder.path()).unwrap() {
        let path = entry.unwrap().path();
        all += &path.display().to_string();
        all += &std::fs::read_to_string(path).unwrap();
    }
    for number in 0..200 {
        let secret = secret(number);
        assert!(!all.contains(&secret[7..]), "{secret}: {all}");
        let hashes = [
            written(&Sha1::digest(&secret)),
            written(&Sha256::digest(&secret)),
            written(&Sha512::digest(&secret)),
        ];
        for hash in hashes.concat() {
            assert!(!all.contains(&hash), "{secret} as {hash}: {all}");
        }
    }
}

/// A crash leaves no core dump, whatever the shell allows.
#[test]
fn a_crash_dumps_no_traffic() {
    let folder = tempfile::TempDir::new().unwrap();
    let mut command = Command::new("sh");
    inherit(&mut command, &runner());
    command.args(["-c", "ulimit -c unlimited; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_runner")]);
    command.args(["record", "rows.jsonl", "--listen", "127.0.0.1:0", "--to", "http://127.0.0.1:9"]);
    let mut child = command.current_dir(folder.path()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let out = child.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
    signal(child.id(), "ABRT");
    let ended = child.wait().unwrap();
    assert!(ended.signal().is_some() && !ended.core_dumped(), "{ended:?}");
}

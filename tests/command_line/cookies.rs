//! Cookies of conversations, as a server gets them back: the server refuses a further turn without
//! the cookie of its own conversation.

use std::collections::HashMap;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::authentication::{assert_kept, field};
use super::secrets::read_request;
use crate::hostile_guests::fixture::components;
use crate::support::process::{only_run, run, runner, words};

const COOKIE: &str = "cookie-0123456789abcdef";

/// The cookies, by the beginning of the conversation.
type Cookies = Arc<Mutex<HashMap<String, String>>>;

fn server() -> (String, Cookies) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let cookies = Cookies::default();
    let own = Arc::clone(&cookies);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, cookies) = (stream.unwrap(), Arc::clone(&own));
            std::thread::spawn(move || while serve(&stream, &cookies).is_some() {});
        }
    });
    (url, cookies)
}

fn serve(mut stream: &TcpStream, cookies: &Cookies) -> Option<()> {
    let request = read_request(stream)?;
    let (status, set, kind, body) = answer(&request, &mut cookies.lock().unwrap());
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} X\r\n{set}content-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .ok()
}

fn answer(
    request: &str,
    cookies: &mut HashMap<String, String>,
) -> (u16, String, &'static str, String) {
    let json =
        |status: u16, body: Value| (status, String::new(), "application/json", body.to_string());
    let given = field(request, "cookie").map(str::to_owned);
    if request.starts_with("GET ") {
        return json(200, json!({ "data": [{ "id": "m" }] }));
    }
    let refused = |given: Option<String>| {
        json(409, json!({ "error": { "message": format!("another's session: {given:?}") } }))
    };
    if request.starts_with("DELETE ") {
        let is_known = given.as_ref().is_some_and(|given| given.contains(COOKIE));
        return if is_known { json(200, json!({})) } else { refused(given) };
    }
    let body: Value = serde_json::from_str(request.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let messages = body["messages"].as_array().unwrap();
    let first = messages.iter().find(|message| message["role"] == "user").unwrap().to_string();
    if given.as_ref() != cookies.get(&first) {
        return refused(given);
    }
    // Another value with each turn: the last one counts.
    let cookie = format!("sid={COOKIE}-{}-{}", cookies.len(), messages.len());
    cookies.insert(first, cookie.clone());
    let piece = |text: &str, finish: Option<&str>| {
        let choice = json!({ "index": 0, "delta": { "content": text }, "finish_reason": finish });
        format!("data: {}\n\n", json!({ "id": "1", "choices": [choice] }))
    };
    let body = piece(&format!("you are {cookie}"), None) + &piece("", Some("stop"));
    let set = format!(
        "set-cookie: {cookie}; Path=/; HttpOnly\r\nset-cookie: gone=1\r\nset-cookie: gone=; Max-Age=0\r\n"
    );
    (200, set, "text/event-stream", body + "data: [DONE]\n\n")
}

#[test]
fn each_conversation_has_its_own_cookies_if_configured() {
    for keeps in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let (url, cookies) = server();
        let mut command = runner();
        command
            .arg("--plugin")
            .arg(components().join("datasets/conversation.wasm"))
            .args(words("--sessions 6 --set dataset.config.turns=3"))
            .args(words("--set dataset.config.input-len=8 --set dataset.config.output-len=4"))
            .args(words("--concurrency 4 --warmup-requests 0"))
            .args(words("--set backend.config.scheme=none --set backend.config.clean-up=/session"))
            .args(["--set", &format!("backend.config.cookies={keeps}"), "--base-url", &url])
            .arg("--plugin")
            .arg(components().join("guests/keyed-backend.wasm"))
            .current_dir(folder.path());
        let ended = run(&mut command);
        let summary = only_run(&folder.path().join("runs")).unwrap().join("summary.json");
        let summary: Value =
            serde_json::from_str(&std::fs::read_to_string(summary).unwrap()).unwrap();
        let requests = &summary["requests"];
        assert_eq!(cookies.lock().unwrap().len(), 6);
        let cleaning = &summary["client"]["cleaning"];
        if keeps {
            assert_eq!(requests["successful"], 18, "{requests}: {}", ended.stderr);
            assert_eq!((&cleaning["done"], &cleaning["failed"]), (&18.into(), &0.into()));
            // Neither the value nor the name is shown.
            assert_kept(folder.path(), &ended, &[COOKIE]);
        } else {
            assert_eq!(requests["successful"], 6, "{requests}");
            assert_eq!(cleaning["done"], 0, "{cleaning}");
        }
    }
}

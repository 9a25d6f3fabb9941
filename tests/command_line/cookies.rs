//! Cookies of conversations, as a server gets them back: the server refuses a further turn without
//! the cookie of its own conversation.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::authentication::assert_kept;
use crate::hostile_guests::fixture::components;
use crate::support::process::{run, runner, words};
use crate::support::results::run_file;
use crate::support::server::{EVENTS, JSON, completion, field, models, read_request, reply, serve};

const COOKIE: &str = "cookie-0123456789abcdef";

/// The cookies, by the beginning of the conversation.
type Cookies = Arc<Mutex<HashMap<String, String>>>;

fn server() -> (String, Cookies) {
    let cookies = Cookies::default();
    let own = Arc::clone(&cookies);
    let url = serve(move |stream| {
        let request = read_request(stream)?;
        let (status, set, kind, body) = answer(&request, &mut own.lock().unwrap());
        reply(stream, status, &set, kind, &body)
    });
    (url, cookies)
}

fn answer(
    request: &str,
    cookies: &mut HashMap<String, String>,
) -> (&'static str, String, &'static str, String) {
    let json = |status: &'static str, body: Value| (status, String::new(), JSON, body.to_string());
    let given = field(request, "cookie").map(str::to_owned);
    if request.starts_with("GET ") {
        return ("200 OK", String::new(), JSON, models());
    }
    let refused = |given: Option<String>| {
        json(
            "409 Conflict",
            json!({ "error": { "message": format!("another's session: {given:?}") } }),
        )
    };
    if request.starts_with("DELETE ") {
        let is_known = given.as_ref().is_some_and(|given| given.contains(COOKIE));
        return if is_known { json("200 OK", json!({})) } else { refused(given) };
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
    let body = completion(&format!("you are {cookie}"), "stop");
    let set = format!(
        "set-cookie: {cookie}; Path=/; HttpOnly\r\nset-cookie: gone=1\r\nset-cookie: gone=; Max-Age=0\r\n"
    );
    ("200 OK", set, EVENTS, body)
}

#[test]
fn each_conversation_has_its_own_cookies_if_configured() {
    for keeps in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let (url, cookies) = server();
        let ended = run(runner()
            .arg("--plugin")
            .arg(components().join("datasets/conversation.wasm"))
            .args(words("--sessions 6 --set dataset.config.turns=3"))
            .args(words("--set dataset.config.input-len=8 --set dataset.config.output-len=4"))
            .args(words("--concurrency 4 --warmup-requests 0"))
            .args(words("--set backend.config.scheme=none --set backend.config.clean-up=/session"))
            .args(["--set", &format!("backend.config.cookies={keeps}"), "--base-url", &url])
            .arg("--plugin")
            .arg(components().join("guests/keyed-backend.wasm"))
            .current_dir(folder.path()));
        let summary = run_file(folder.path(), "summary.json");
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

//! A server of HTTP/1.1 that the test answers for, with a thread for each connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use serde_json::json;

/// The media type of JSON.
pub const JSON: &str = "application/json";
/// The media type of a stream of events.
pub const EVENTS: &str = "text/event-stream";

/// Answers each connection until `answer` returns `None`, and returns the server's URL.
pub fn serve(answer: impl Fn(&TcpStream) -> Option<()> + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, answer) = (stream.unwrap(), Arc::clone(&answer));
            std::thread::spawn(move || while answer(&stream).is_some() {});
        }
    });
    url
}

/// The URL of a port where nobody listens.
pub fn nobody() -> String {
    format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap())
}

/// Reads the head and the body of a request.
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

/// Writes a reply; `fields` are further lines of its head.
pub fn reply(
    mut stream: &TcpStream,
    status: &str,
    fields: &str,
    kind: &str,
    body: &str,
) -> Option<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\n{fields}content-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .ok()
}

/// The value of a header field of a request; absent where it is not sent.
#[track_caller]
pub fn field<'a>(request: &'a str, name: &str) -> Option<&'a str> {
    let head = request.split("\r\n\r\n").next()?;
    let mut values = head.split("\r\n").skip(1).filter_map(|line| {
        let (field, value) = line.split_once(':')?;
        field.eq_ignore_ascii_case(name).then(|| value.trim())
    });
    let value = values.next();
    assert_eq!(values.next(), None, "`{name}` comes twice: {head}");
    value
}

/// A list with the model `m`.
pub fn models() -> String {
    json!({ "object": "list", "data": [{ "id": "m", "object": "model" }] }).to_string()
}

/// A stream that answers with a text, as a completion and as a chat, and the reason of its end.
pub fn completion(text: &str, finish: &str) -> String {
    let piece = |text: &str, finish: Option<&str>| {
        let delta = json!({ "content": text });
        let choice = json!({ "index": 0, "text": text, "delta": delta, "finish_reason": finish });
        format!("data: {}\n\n", json!({ "id": "1", "choices": [choice] }))
    };
    piece(text, None) + &piece("", Some(finish)) + "data: [DONE]\n\n"
}

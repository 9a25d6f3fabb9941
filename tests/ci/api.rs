//! A server that stands for the API of a system: comments that are listed, written and changed, and
//! files that are fetched. It keeps its requests, and answers unknown ones with 404.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::server::{read_request, serve};

#[derive(Clone, Debug)]
pub struct ApiRequest {
    pub method: String,
    pub path: String,
    /// The head, in lower case.
    pub head: String,
}

#[derive(Default)]
struct State {
    requests: Vec<ApiRequest>,
    comments: Vec<Value>,
    files: BTreeMap<String, Vec<u8>>,
    next: u64,
}

pub struct Api {
    pub url: String,
    state: Arc<Mutex<State>>,
}

impl Api {
    /// Starts it. It ends with the tests.
    pub fn start() -> Self {
        let state = Arc::new(Mutex::new(State { next: 100, ..State::default() }));
        let shared = Arc::clone(&state);
        Api { url: serve(move |stream| answer(stream, &shared)), state }
    }

    pub fn file(&self, path: &str, content: Vec<u8>) {
        let mut state = self.state.lock().unwrap();
        state.files.insert(path.to_owned(), content);
    }

    pub fn comment(&self, author: Value, body: &str) {
        let mut state = self.state.lock().unwrap();
        let id = state.next;
        state.next += 1;
        let comment = json!({"id": id, "user": author, "author": author, "body": body});
        state.comments.push(comment);
    }

    pub fn comments(&self) -> Vec<String> {
        let state = self.state.lock().unwrap();
        state.comments.iter().map(|comment| comment["body"].as_str().unwrap().to_owned()).collect()
    }

    pub fn requests(&self) -> Vec<ApiRequest> {
        self.state.lock().unwrap().requests.clone()
    }
}

fn answer(mut stream: &TcpStream, state: &Mutex<State>) -> Option<()> {
    let request = read_request(stream)?;
    let (head, body) = request.split_once("\r\n\r\n")?;
    let mut words = head.split_whitespace().map(str::to_owned);
    let (method, path, head) = (words.next()?, words.next()?, head.to_lowercase());
    let request = ApiRequest { method, path, head };
    let (status, reply) = react(&request, body.as_bytes(), &mut state.lock().unwrap());
    write!(stream, "HTTP/1.1 {status} -\r\ncontent-length: {}\r\n\r\n", reply.len()).ok()?;
    stream.write_all(&reply).ok()
}

fn react(request: &ApiRequest, body: &[u8], state: &mut State) -> (u16, Vec<u8>) {
    state.requests.push(request.clone());
    let path = request.path.split('?').next().unwrap_or_default();
    if let Some(file) = state.files.get(path) {
        return (200, file.clone());
    }
    let is_list = path.ends_with("/comments") || path.ends_with("/notes");
    let body = || -> Value { serde_json::from_slice(body).unwrap() };
    let reply = match request.method.as_str() {
        "GET" if path == "/api/v4/user" => json!({"id": 5}),
        "GET" if is_list => Value::Array(state.comments.clone()),
        "POST" if is_list => {
            // The two systems tell their authors in their own ways.
            let author = json!({"login": "github-actions[bot]", "id": 5});
            let comment = json!({
                "id": state.next, "user": author, "author": author, "body": body()["body"],
            });
            state.next += 1;
            state.comments.push(comment.clone());
            comment
        }
        "PATCH" | "PUT" => {
            let id = path.rsplit('/').next().and_then(|id| id.parse().ok());
            let known = |comment: &&mut Value| comment["id"].as_u64() == id;
            match state.comments.iter_mut().find(known) {
                Some(comment) => {
                    comment["body"] = body()["body"].clone();
                    comment.clone()
                }
                None => return (404, b"{}".to_vec()),
            }
        }
        _ => return (404, b"{}".to_vec()),
    };
    (200, reply.to_string().into_bytes())
}

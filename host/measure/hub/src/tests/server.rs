//! A hub on this machine, and a second server for contents, as the real one has. Files in git come
//! from the hub itself behind a redirect, large files from the second server.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sha1::Digest as _;

pub const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// A request, as one of the servers saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// True if it came to the server for contents.
    pub is_of_contents: bool,
    pub method: String,
    pub path: String,
    pub from: Option<usize>,
    pub token: Option<String>,
}

/// A file of the repository.
#[derive(Clone, Debug)]
pub struct Contents {
    pub bytes: Vec<u8>,
    /// True if it is in the store of large files, and so on the server for contents.
    pub is_large: bool,
    /// The bytes sent in its place, if they differ.
    pub sent: Option<Vec<u8>>,
}

/// The content and behaviour of the servers.
#[derive(Debug, Default)]
pub struct State {
    /// The files of the repositories, by kind and name, as in `models/org/name`.
    pub repositories: BTreeMap<String, BTreeMap<String, Contents>>,
    /// The token without which there are only refusals, and the hub's word for the reason.
    pub gate: Option<(String, &'static str)>,
    /// The bytes after which replies of the server for contents end; one entry per reply.
    pub cuts: Vec<usize>,
    /// True if the server for contents knows no ranges.
    pub knows_no_ranges: bool,
    /// True if bodies come one byte after another.
    pub drips: bool,
    /// True if neither server states the length of a file.
    pub states_no_sizes: bool,
    /// The number of requests of each that are answered with HTTP 503 first.
    pub busy: usize,
    pub seen: Vec<Request>,
}

/// The two servers, until the test ends.
pub struct Hub {
    pub url: String,
    pub state: Arc<Mutex<State>>,
}

pub fn sha256(bytes: &[u8]) -> String {
    model::hex(&sha2::Sha256::digest(bytes))
}

/// The digest of git for contents.
pub fn git(bytes: &[u8]) -> String {
    let mut hash = sha1::Sha1::new();
    hash.update(format!("blob {}\0", bytes.len()));
    hash.update(bytes);
    model::hex(&hash.finalize())
}

impl Contents {
    fn tag(&self) -> String {
        if self.is_large { sha256(&self.bytes) } else { git(&self.bytes) }
    }
}

impl Hub {
    pub fn start() -> Self {
        let state = Arc::<Mutex<State>>::default();
        let contents = serve(&state, of_contents);
        let url = serve(&state, move |request, state| of_hub(request, state, &contents));
        Hub { url, state }
    }

    pub fn put(&self, repository: &str, path: &str, bytes: &[u8], is_large: bool) {
        let mut state = self.state.lock().unwrap();
        let files = state.repositories.entry(repository.to_owned()).or_default();
        let contents = Contents { bytes: bytes.to_vec(), is_large, sent: None };
        files.insert(path.to_owned(), contents);
    }

    pub fn seen(&self) -> Vec<Request> {
        self.state.lock().unwrap().seen.clone()
    }
}

struct Reply {
    status: u16,
    fields: Vec<(&'static str, String)>,
    body: Vec<u8>,
    /// The number of bytes of the body go out.
    cut: Option<usize>,
}

impl Reply {
    fn new(status: u16) -> Self {
        Reply { status, fields: Vec::new(), body: Vec::new(), cut: None }
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.fields.push((name, value.into()));
        self
    }

    fn body(self, body: impl Into<Vec<u8>>) -> Self {
        Reply { body: body.into(), ..self }
    }
}

/// Answers on a port of its own, on threads that end with the process. Returns its address.
fn serve(
    state: &Arc<Mutex<State>>,
    answer: impl Fn(Request, &mut State) -> Reply + Clone + Send + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let state = Arc::clone(state);
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let (state, answer) = (Arc::clone(&state), answer.clone());
            std::thread::spawn(move || converse(stream, &state, &answer));
        }
    });
    address
}

/// Answers one request, and closes the connection. Nothing is said to a client that has gone away.
fn converse(
    stream: TcpStream,
    state: &Mutex<State>,
    answer: &impl Fn(Request, &mut State) -> Reply,
) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let mut seen = Request {
        is_of_contents: false,
        method: words.next()?.to_owned(),
        path: words.next()?.to_owned(),
        from: None,
        token: None,
    };
    loop {
        let mut field = String::new();
        reader.read_line(&mut field).ok()?;
        let Some((name, value)) = field.trim().split_once(':') else { break };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "range" => {
                let from = value.strip_prefix("bytes=")?.trim_end_matches('-');
                seen.from = Some(from.parse().ok()?);
            }
            "authorization" => seen.token = Some(value.strip_prefix("Bearer ")?.to_owned()),
            _ => {}
        }
    }
    let is_head = seen.method == "HEAD";
    let (mut reply, states_no_sizes, drips) = {
        let mut state = state.lock().unwrap();
        let reply = answer(seen, &mut state);
        (reply, state.states_no_sizes, state.drips)
    };
    if states_no_sizes {
        reply.fields.retain(|(name, _)| *name != "X-Linked-Size");
    }
    let mut out = format!("HTTP/1.1 {} It\r\nconnection: close\r\n", reply.status);
    for (name, value) in &reply.fields {
        out.push_str(&format!("{name}: {value}\r\n"));
    }
    if !states_no_sizes {
        out.push_str(&format!("content-length: {}\r\n", reply.body.len()));
    }
    out.push_str("\r\n");
    let mut stream = stream;
    stream.write_all(out.as_bytes()).ok()?;
    if !is_head && drips {
        for byte in &reply.body {
            stream.write_all(&[*byte]).ok()?;
            std::thread::sleep(Duration::from_millis(20));
        }
    } else if !is_head {
        let most = reply.cut.unwrap_or(usize::MAX).min(reply.body.len());
        stream.write_all(&reply.body[..most]).ok()?;
    }
    Some(())
}

/// The hub: its API, and where files are.
fn of_hub(request: Request, state: &mut State, contents: &str) -> Reply {
    state.seen.push(request.clone());
    if state.busy > 0 {
        state.busy -= 1;
        return Reply::new(503);
    }
    if let Some((token, reason)) = &state.gate
        && request.token.as_ref() != Some(token)
    {
        let status = if request.token.is_some() { 403 } else { 401 };
        return Reply::new(status).with("X-Error-Code", *reason);
    }
    let unknown = || Reply::new(404).with("X-Error-Code", "RepoNotFound");
    if let Some(rest) = request.path.strip_prefix("/api/resolve-cache/") {
        let Some((files, path)) = found(state, rest) else { return unknown() };
        let file = &files[path];
        return Reply::new(200)
            .with("ETag", format!("\"{}\"", file.tag()))
            .with("X-Repo-Commit", COMMIT)
            .body(file.sent.as_ref().unwrap_or(&file.bytes).clone());
    }
    if let Some(rest) = request.path.strip_prefix("/api/") {
        let Some((repository, revision)) = rest.split_once("/revision/") else { return unknown() };
        let Some(files) = state.repositories.get(repository) else { return unknown() };
        if revision != "main" && revision != COMMIT && revision != "refs%2Fpr%2F1" {
            return Reply::new(404).with("X-Error-Code", "RevisionNotFound");
        }
        let siblings: Vec<_> =
            (files.keys()).map(|path| serde_json::json!({ "rfilename": path })).collect();
        let info = serde_json::json!({ "sha": COMMIT, "siblings": siblings });
        return Reply::new(200).body(info.to_string());
    }
    let whole = match request.path.strip_prefix("/datasets/") {
        Some(rest) => format!("datasets/{rest}"),
        None => format!("models{}", request.path),
    };
    let whole = whole.replacen("/resolve/", "/", 1);
    let whole = whole.replacen(&format!("/{COMMIT}/"), "/", 1);
    let Some((files, path)) = found(state, &whole) else {
        return Reply::new(404).with("X-Error-Code", "EntryNotFound");
    };
    let file = &files[path];
    if file.is_large {
        return Reply::new(302)
            .with("Location", format!("{contents}/{whole}?signature=of-this"))
            .with("X-Repo-Commit", COMMIT)
            .with("X-Linked-Etag", format!("\"{}\"", file.tag()))
            .with("X-Linked-Size", file.bytes.len().to_string());
    }
    Reply::new(307)
        .with("Location", format!("/api/resolve-cache/{whole}"))
        .with("X-Repo-Commit", COMMIT)
}

fn of_contents(mut request: Request, state: &mut State) -> Reply {
    request.is_of_contents = true;
    state.seen.push(request.clone());
    let path = request.path.split('?').next().unwrap_or_default();
    let Some((files, name)) = found(state, path.trim_start_matches('/')) else {
        return Reply::new(404);
    };
    let file = &files[name];
    let bytes = file.sent.clone().unwrap_or(file.bytes.clone());
    let cut = (!state.cuts.is_empty()).then(|| state.cuts.remove(0));
    let reply = match request.from.filter(|_| !state.knows_no_ranges) {
        Some(from) if from >= bytes.len() => Reply::new(416),
        Some(from) => Reply::new(206)
            .with("Content-Range", format!("bytes {from}-{}/{}", bytes.len() - 1, bytes.len()))
            .body(&bytes[from..]),
        None => Reply::new(200).body(bytes),
    };
    Reply { cut, ..reply }
}

/// A repository, and the path of a file in it, of both together.
fn found<'a>(
    state: &'a State,
    whole: &'a str,
) -> Option<(&'a BTreeMap<String, Contents>, &'a str)> {
    state.repositories.iter().find_map(|(name, files)| {
        let path = whole.strip_prefix(name.as_str())?.strip_prefix('/')?;
        files.contains_key(path).then_some((files, path))
    })
}

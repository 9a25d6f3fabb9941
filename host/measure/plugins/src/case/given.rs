//! The files of a case's folder, read and checked. All mistakes are collected, and unknown files
//! are mistakes: an expectation that nothing reads passes unchecked.
//!
//! - `config.toml`: the plugin's configuration; without it there is none
//! - `sample.json` (backend): the sample to send
//! - `settings.json` (backend): the run's settings for every request; the file and each key are
//!   optional
//! - `control.txt` (backend): a control request instead of a sample: `health`, `list-models`,
//!   `flush-cache`, `metrics` or `prepare`
//! - `reply.sse`, `.lines`, `.grpc`, `.json` or `.txt`, `.bin` (backend): a reply body as received;
//!   the framing decides the extension
//! - `reply.ws` (backend): the messages of a WebSocket, see [`messages`](super::messages)
//! - `head.json` (backend): the status and the header fields of such a reply; optional
//! - `reply.STATUS.EXT` (backend): the body of an error reply, instead of the reply
//! - `reply.N.EXT`, `reply.N.STATUS.EXT` (backend): the replies of an exchange of several requests,
//!   from 1
//! - `case.toml` (dataset): the dataset's inputs: see [`Draw`]
//! - `exchanges.json`, `exchanges.jsonl` (scorer): exchanges in the order in which they are scored
//! - `README.md`: documentation
//! - expectations: see [`expectations`]
//!
//! The page of the guide about these files is made from `case/reference.md`; see
//! `case/reference.rs`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::format::{ASIDES, ExchangeFile, HeadFile, SampleFile, SettingsFile};
use super::reply::MESSAGES;
use super::store::Store;
use super::{Files, Mistake};
use crate::backend::{Aside, Control, Earlier, Head, Sample, Settings};
use crate::dataset::Amount;
use crate::scorer::Exchange;
use model::plugin::Kind;
use tokenizer::Tokenizer;

/// A case, read.
pub struct Case {
    /// The name of its folder or file.
    pub name: String,
    /// Its folder or file.
    pub path: PathBuf,
    pub(super) store: Store,
    pub config: Value,
    pub given: Input,
}

impl Case {
    /// The request that a backend is to write, if this is such a case.
    pub fn ask(&self) -> Option<&Ask> {
        match &self.given {
            Input::Ask(ask) => Some(ask),
            _ => None,
        }
    }
}

/// A plugin's input, in addition to its configuration.
pub enum Input {
    /// A backend: a sample to send, and optionally a reply.
    Ask(Box<Ask>),
    /// A backend: a control request, and optionally the reply.
    Control(Aside, Option<Vec<u8>>),
    /// A dataset: how it is opened.
    Draw(Draw),
    /// A scorer: exchanges.
    Judge(Vec<Exchange>),
}

pub struct Ask {
    pub sample: Sample,
    /// The run's settings for every request.
    pub settings: Settings,
    /// The state that the last reply of the sample's conversation left.
    pub earlier: Option<Earlier>,
    /// The head of a reply with a success status.
    pub head: Head,
    pub reply: Option<Reply>,
    /// Instead: the replies of an exchange of several requests, in order.
    pub steps: Vec<Reply>,
}

/// The reply to a request.
pub struct Reply {
    /// 200 for a success whose status the case's head has.
    pub status: u16,
    /// The extension of its file.
    pub ending: &'static str,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// The input with which a dataset is opened.
pub struct Draw {
    pub seed: u64,
    /// The number of samples, or sessions, that the run measures.
    pub amount: Amount,
    /// The number of spare samples, which are not measured.
    pub spare: u32,
    /// Input files by the names that a scenario would give them.
    pub files: BTreeMap<String, PathBuf>,
    pub tokenizer: Arc<Tokenizer>,
}

/// `case.toml`. `case/reference.rs` makes a table of the guide of the comments.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct DrawFile {
    /// The run's random seed.
    #[serde(default)]
    seed: u64,
    /// The number of samples that the run measures; without this and `sessions`, the dataset does
    /// not learn it.
    count: Option<u64>,
    /// Instead of `count`: how many sessions the run measures.
    sessions: Option<u64>,
    /// The number of samples to draw that are not measured (the warmup).
    #[serde(default)]
    spare: u32,
    /// Input files, by the name that a scenario gives them; paths start at the case's folder.
    #[serde(default)]
    files: BTreeMap<String, PathBuf>,
    /// `bytes` (the token's id is its byte), `pairs` (a small tokenizer made for cases), or the
    /// path of a `tokenizer.json`.
    #[serde(default = "bytes")]
    tokenizer: String,
}

fn bytes() -> String {
    "bytes".to_owned()
}

/// The files with a plugin's expected output.
pub(crate) fn expectations(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Backend => &[
            "request.http",
            "events.json",
            "explained.json",
            "models.json",
            "metrics.json",
            "prepared.json",
            "error.txt",
        ],
        Kind::Dataset => &["samples.json", "digest.txt", "remarks.json", "error.txt"],
        Kind::Scorer => &["scores.json", "error.txt"],
    }
}

/// The files of a case of this kind, other than its expectations and replies.
pub(super) fn inputs(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Backend => {
            &["config.toml", "sample.json", "settings.json", "control.txt", "head.json"]
        }
        Kind::Dataset => &["config.toml", "case.toml"],
        Kind::Scorer => &["config.toml", "exchanges.json", "exchanges.jsonl"],
    }
}

/// Extensions of a reply file; the framing decides which.
pub(super) const REPLIES: [&str; 7] = ["sse", "lines", "grpc", "json", "txt", "bin", MESSAGES];

/// The number of a reply of several, from the second part of its name.
fn step_number(text: &str) -> Option<u16> {
    text.parse().ok().filter(|number| (1..100).contains(number))
}

/// Reads a case of a plugin of this kind; adds its mistakes to `mistakes`.
pub fn read(kind: Kind, path: &Path, mistakes: &mut Vec<Mistake>) -> Option<Case> {
    let before = mistakes.len();
    let store = match Store::open(path) {
        Ok(store) => store,
        Err(cause) => {
            mistakes
                .push(Mistake { path: path.to_owned(), what: format!("cannot be read: {cause}") });
            return None;
        }
    };
    let name = store.name();
    let mut reading = Files::new(store.clone(), mistakes);
    let config = reading.config();
    let input = match kind {
        Kind::Backend => reading.backend(),
        Kind::Dataset => reading.draw().map(Input::Draw),
        Kind::Scorer => reading.exchanges().map(Input::Judge),
    };
    reading.others(kind);
    let case = Case { name, path: path.to_owned(), store, config, given: input? };
    (mistakes.len() == before).then_some(case)
}

impl Files<'_> {
    fn backend(&mut self) -> Option<Input> {
        let sample: Option<SampleFile> = self.json("sample.json");
        let control = self.text("control.txt");
        let settings: SettingsFile = self.json("settings.json").unwrap_or_default();
        let steps = self.steps();
        let reply = self.reply();
        if reply.is_some() && !steps.is_empty() {
            let what = "a case has one reply, or several that are numbered from 1, such as reply.1.json, but this one has both";
            self.mistake("", what);
        }
        let success = reply.as_ref().filter(|reply| reply.is_success());
        let is_socket = success.is_some_and(|reply| reply.ending == MESSAGES);
        let has_answer = success.is_some() || !steps.is_empty();
        let head = self.head(settings.streaming, has_answer, is_socket);
        let (sample, earlier) = match sample {
            Some(mut file) => {
                let earlier = file.earlier();
                (Some(file.sample(&mut |name| self.beside(name))?), earlier)
            }
            None => (None, None),
        };
        match (sample, control) {
            (Some(_), Some(_)) => self.refuse(
                "control.txt",
                "a case has a sample.json or a control.txt, but this one has both",
            ),
            (Some(sample), None) => Some(Input::Ask(Box::new(Ask {
                sample,
                settings: settings.settings(),
                earlier,
                head,
                reply,
                steps,
            }))),
            (None, Some(word)) => {
                if !steps.is_empty() {
                    self.mistake("reply.1", "a control request has one reply");
                }
                let known = ASIDES.iter().find(|(name, _)| *name == word.trim());
                let Some((word, control)) = known else {
                    let words: Vec<&str> = ASIDES.iter().map(|(name, _)| *name).collect();
                    return self
                        .refuse("control.txt", format!("expected one of {}", words.join(", ")));
                };
                let is_read = matches!(
                    control,
                    Aside::Control(Control::ListModels | Control::Metrics) | Aside::Prepare
                );
                match reply {
                    None => Some(Input::Control(*control, None)),
                    Some(reply) if !reply.is_success() => self.refuse("", format!(
                        "contains a reply with status {} next to a control.txt; error replies belong in cases with a sample.json",
                        reply.status
                    )),
                    Some(Reply { body, .. }) if is_read => Some(Input::Control(*control, Some(body))),
                    Some(_) => self.refuse("", format!(
                        "contains a reply, but a backend does not read the reply to `{word}`"
                    )),
                }
            }
            (None, None) => {
                // A file that cannot be read has already been reported.
                let missing = |file| !self.store.has(file);
                if missing("sample.json") && missing("control.txt") {
                    let what = "a backend's case needs a sample.json with the sample to send, or a control.txt";
                    self.mistake("", what);
                }
                None
            }
        }
    }

    /// Returns the head of a reply with a success status.
    fn head(&mut self, streaming: bool, has_answer: bool, is_socket: bool) -> Head {
        const FILE: &str = "head.json";
        let is_there = self.store.has(FILE);
        if is_there && !has_answer {
            let what = "is the beginning of a reply with a success status, but there is none beside it; add one, such as reply.sse";
            self.mistake(FILE, what);
        }
        if is_there && self.store.has("control.txt") {
            let what = "a backend does not see the beginning of the reply to a control request";
            self.mistake(FILE, what);
        }
        let mut file: HeadFile = self.json(FILE).unwrap_or_default();
        if is_socket {
            // That of every WebSocket.
            file.status = 101;
        } else if !(200..300).contains(&file.status) {
            let what = format!(
                "status: expected a success status, from 200 to 299, found {}",
                file.status
            );
            self.mistake(FILE, what);
        }
        for name in file.headers.keys() {
            if *name != name.to_ascii_lowercase() {
                let lower = name.to_ascii_lowercase();
                let what = format!("headers.{name}: write `{lower}`; names are in lower case");
                self.mistake(FILE, what);
            }
        }
        Head {
            status: file.status,
            headers: file.headers.into_iter().collect(),
            streaming,
            context: Vec::new(),
        }
    }

    /// The replies of an exchange of several requests.
    fn steps(&mut self) -> Vec<Reply> {
        let mut numbered: BTreeMap<u16, Reply> = BTreeMap::new();
        for name in self.names() {
            let parts: Vec<&str> = name.split('.').collect();
            let (number, status, ending) = match parts.as_slice() {
                ["reply", number, ending] => (step_number(number), "200", *ending),
                ["reply", number, status, ending] => (step_number(number), *status, *ending),
                _ => continue,
            };
            let Some(number) = number else { continue };
            let status = status.parse().ok().filter(|status| (200..=599).contains(status));
            let ending = REPLIES.iter().find(|known| **known == ending);
            let (Some(status), Some(ending)) = (status, ending) else {
                let what = format!(
                    "expected a name such as reply.{number}.json or reply.{number}.404.json, which ends in .{}",
                    REPLIES.join(", .")
                );
                self.mistake(&name, what);
                continue;
            };
            let Some(body) = self.bytes(&name) else { continue };
            let reply = Reply { status, ending, body };
            if numbered.insert(number, reply).is_some() {
                self.mistake(&name, format!("there is another reply with the number {number}"));
            }
        }
        if let Some((missing, _)) = (1..).zip(numbered.keys()).find(|(at, number)| at != *number) {
            let what = format!(
                "replies are numbered from 1 without gaps, but there is no reply.{missing}"
            );
            self.mistake("", what);
        }
        numbered.into_values().collect()
    }

    /// The one reply of a case, if it has one.
    fn reply(&mut self) -> Option<Reply> {
        let mut replies = Vec::new();
        for name in self.names() {
            let parts: Vec<&str> = name.split('.').collect();
            match parts.as_slice() {
                ["reply", ending] => match REPLIES.iter().find(|known| *known == ending) {
                    Some(ending) => {
                        let body = self.bytes(&name);
                        replies.extend(body.map(|body| Reply { status: 200, ending, body }));
                    }
                    None => self.mistake(
                        &name,
                        format!("a reply file must end in .{}", REPLIES.join(", .")),
                    ),
                },
                ["reply", number, ..] if step_number(number).is_some() => {}
                ["reply", status, _] => match status.parse::<u16>() {
                    Ok(status @ 300..=599) => {
                        let body = self.bytes(&name);
                        replies.extend(body.map(|body| Reply { status, ending: "json", body }));
                    }
                    _ => self.mistake(&name, format!(
                        "`{status}` is not an error status; expected a name such as reply.404.json"
                    )),
                },
                _ => {}
            }
        }
        if replies.len() > 1 {
            self.mistake("", "a case has one reply, but this one has several");
        }
        replies.pop()
    }

    fn draw(&mut self) -> Option<Draw> {
        if !self.store.has("case.toml") {
            let what = "a dataset's case needs a case.toml with the seed, count or sessions, spare, files and tokenizer to open the dataset with";
            return self.refuse("", what);
        }
        let file: DrawFile = self.toml("case.toml")?;
        let amount = match (file.count, file.sessions) {
            (None, None) => Amount::Unknown,
            (Some(count), None) => Amount::Samples(count),
            (None, Some(sessions)) => Amount::Sessions(sessions),
            (Some(_), Some(_)) => {
                let what = "a run measures a number of samples (`count`) or of sessions (`sessions`), but this case gives both";
                return self.refuse("case.toml", what);
            }
        };
        let mut files = BTreeMap::new();
        for (name, path) in file.files {
            let path = self.store.folder().join(path);
            if !path.is_file() {
                let what = format!("files.{name}: no such file: {}", path.display());
                self.mistake("case.toml", what);
            }
            self.named.push(path.clone());
            files.insert(name, path);
        }
        let tokenizer = match file.tokenizer.as_str() {
            "bytes" => Tokenizer::bytes(),
            "pairs" => Tokenizer::pairs(),
            path => {
                let path = self.store.folder().join(path);
                self.named.push(path.clone());
                match Tokenizer::open(&path) {
                    Ok(tokenizer) => tokenizer,
                    Err(cause) => {
                        return self.refuse("case.toml", format!(
                            "tokenizer: expected `bytes`, `pairs` or the path of a tokenizer.json, but {cause}"
                        ));
                    }
                }
            }
        };
        Some(Draw {
            seed: file.seed,
            amount,
            spare: file.spare,
            files,
            tokenizer: Arc::new(tokenizer),
        })
    }

    fn exchanges(&mut self) -> Option<Vec<Exchange>> {
        const NAMES: [&str; 2] = ["exchanges.json", "exchanges.jsonl"];
        let there = NAMES.map(|name| self.store.has(name));
        let files: Vec<ExchangeFile> = match there {
            [true, false] => self.json(NAMES[0])?,
            [false, true] => {
                let text = self.text(NAMES[1])?;
                let mut read = Vec::new();
                for (number, line) in text.lines().enumerate() {
                    match serde_json::from_str(line) {
                        _ if line.trim().is_empty() => {}
                        Ok(exchange) => read.push(exchange),
                        Err(cause) => {
                            self.mistake(NAMES[1], format!("line {}: {cause}", number + 1));
                        }
                    }
                }
                read
            }
            [true, true] => self.refuse(
                NAMES[1],
                "a case has an exchanges.json or an exchanges.jsonl, but this one has both",
            )?,
            [false, false] => {
                self.refuse("", "a scorer's case needs an exchanges.json or an exchanges.jsonl")?
            }
        };
        Some(files.into_iter().map(ExchangeFile::exchange).collect())
    }

    /// Reports files that no case of this kind has.
    fn others(&mut self, kind: Kind) {
        for name in self.names() {
            let is_reply = kind == Kind::Backend && name.starts_with("reply.");
            let is_named = self.named.contains(&self.store.place(&name));
            let is_known = expectations(kind).contains(&name.as_str())
                || inputs(kind).contains(&name.as_str())
                || name == "README.md";
            if is_reply || is_named || is_known {
                continue;
            }
            let known = inputs(kind).iter().chain(expectations(kind));
            let nearest = known
                .map(|known| (strsim::jaro_winkler(known, &name), known))
                .filter(|(closeness, _)| *closeness > 0.85)
                .max_by(|a, b| a.0.total_cmp(&b.0));
            let hint = match nearest {
                Some((_, known)) => format!("; did you mean {known}?"),
                None => String::new(),
            };
            let what = format!("a {} case has no such file{hint}", kind.name());
            self.mistake(&name, what);
        }
    }
}

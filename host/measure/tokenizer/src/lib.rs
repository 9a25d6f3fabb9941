//! The tokenizer of the model under test: a Hugging Face `tokenizer.json`, a SentencePiece model or
//! a rank file of tiktoken. A substitute treats every byte as a token; it serves the mock engine
//! and makes every count approximate.
//!
//! This crate owns the path from text to tokens, and from a chat to its text by the tokenizer's
//! template, with the JSON that templates write. Callers choose the texts and chats.
//!
//! This crate reads most byte-level tokenizers itself. The `tokenizers` crate keeps data that
//! nobody here needs, and takes ten times as long to prepare random prompts. Known patterns are
//! written out and words are remembered. A word is encoded part by part, which is exact because
//! merging is local. A file that is not understood completely goes to the `tokenizers` crate.
//! Limits keep a stranger's file from making it panic, grow without end or run for hours.
//! Truncation, padding and dropout, which are for training, never affect a count. Property tests
//! compare every token with the `tokenizers` crate, and with a real model's file if
//! `RUNNER_TEST_TOKENIZER` names it.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and read clocks"))]

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use unicode_normalization_alignments::UnicodeNormalization;

mod binary;
mod byte_level;
mod chat;
mod class;
mod hugging_face;
mod merge;
mod pairs;
mod proto;
pub mod python;
mod read;
mod sentencepiece;
mod shape;
mod siblings;
mod split;
mod table;
#[cfg(test)]
mod tests;
mod tiktoken;

pub use binary::BUILD;
pub use chat::apart::{self, Chat};
pub use chat::{ChatError, ChatTemplate};
pub use hugging_face::is_guarded;

use byte_level::ByteLevel;
use class::{Classes, UNSETTLED};
use hugging_face::HuggingFace;
use siblings::{SiblingFiles, bytes_of};

pub struct Tokenizer {
    name: String,
    facts: Facts,
    model: Model,
    chat: Chat,
}

enum Model {
    HuggingFace(Box<HuggingFace>),
    ByteLevel(Box<ByteLevel>),
    Bytes,
    Pairs,
}

#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    #[error(
        "tokenizer `{path}`: {cause}; give the model's tokenizer file or a folder that holds one"
    )]
    Unreadable { path: PathBuf, cause: std::io::Error },
    #[error(
        "tokenizer `{folder}`: the folder holds none of {looked_for}; give one of these files, or its folder"
    )]
    Absent { folder: PathBuf, looked_for: String },
    /// A folder with several rank files.
    #[error("tokenizer `{folder}`: the folder holds {files}; give the path of one of them")]
    Several { folder: PathBuf, files: String },
    #[error(
        "tokenizer `{path}` cannot be read: {cause}; give the model's `tokenizer.json`, SentencePiece `tokenizer.model` or tiktoken rank file, or a folder that holds one"
    )]
    NotTokenizer { path: PathBuf, cause: String },
}

impl Tokenizer {
    /// Its tables, which open faster than its file. Absent unless byte-level and of one file.
    pub fn binary(&self) -> Option<Vec<u8>> {
        match &self.model {
            Model::ByteLevel(model) => binary::write(&self.facts, model),
            Model::HuggingFace(_) | Model::Bytes | Model::Pairs => None,
        }
    }

    /// Reads the contents of a file of that name, with nothing beside it. The name's end tells a
    /// SentencePiece model (`.model`) and a rank file (`.tiktoken`) from a `tokenizer.json`, and
    /// the name of a rank file its family. Fails if it is something else.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self, String> {
        let siblings = SiblingFiles::default();
        let parsed = model(name, bytes, &siblings)?;
        Ok(Tokenizer::new(name.to_owned(), parsed, &siblings))
    }

    fn new(name: String, parsed: ParsedModel<Model>, siblings: &SiblingFiles) -> Self {
        let ParsedModel { facts, model } = parsed;
        let mut roles = siblings.roles();
        if let Model::HuggingFace(model) = &model {
            // The model's own file states the roles that no file beside it states.
            for (role, token) in &model.roles {
                roles.entry(role).or_insert_with(|| token.clone());
            }
        }
        let roles = (roles.into_iter()).map(|(role, token)| (role.to_owned(), token)).collect();
        let chat = match &siblings.templates {
            Some(found) => Chat::found(found, roles),
            None => Chat::absent(&name),
        };
        Tokenizer { name, facts, model, chat }
    }

    fn built_in(name: &str, facts: Facts, model: Model) -> Self {
        Self::new(name.to_owned(), ParsedModel { facts, model }, &SiblingFiles::default())
    }

    /// The substitute: the id of a token is its byte. Bytes that are no printable ASCII count as
    /// special, so that prompts made of the others have as many characters as tokens.
    pub fn bytes() -> Self {
        let facts = Facts {
            vocabulary_size: 256,
            base_size: 256,
            added_tokens: 0,
            special: (0..=255u32).filter(|id| !(32..127).contains(id)).collect(),
            approximate: true,
        };
        Self::built_in("bytes", facts, Model::Bytes)
    }

    /// The tokenizer of datasets' cases: see `tokenizer/pairs.rs`.
    pub fn pairs() -> Self {
        Self::built_in("pairs", pairs::facts(), Model::Pairs)
    }

    /// Its path as given, or `bytes`, or `pairs`.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Token ids of each text; with `special`, also the tokens that the model puts around a text.
    pub fn encode(&self, texts: &[String], special: bool) -> Result<Vec<Vec<u32>>, String> {
        match &self.model {
            Model::Bytes => {
                Ok(texts.iter().map(|text| text.bytes().map(u32::from).collect()).collect())
            }
            Model::Pairs => Ok(texts.iter().map(|text| pairs::encode(text, special)).collect()),
            Model::ByteLevel(model) => Ok(spread(texts, String::len, |text| {
                let mut ids = Vec::with_capacity(text.len() / 4);
                model.encode(text, special, |some| ids.extend_from_slice(some));
                ids
            })),
            Model::HuggingFace(model) => {
                model.encode(texts, special).map_err(|cause| self.named(&cause))
            }
        }
    }

    pub fn count(&self, texts: &[String], special: bool) -> Result<Vec<u32>, String> {
        match &self.model {
            Model::Bytes => Ok(texts.iter().map(|text| text.len() as u32).collect()),
            Model::ByteLevel(model) => Ok(spread(texts, String::len, |text| {
                let mut count = 0;
                model.encode(text, special, |some| count += some.len() as u32);
                count
            })),
            Model::HuggingFace(_) | Model::Pairs => {
                Ok(self.encode(texts, special)?.iter().map(|ids| ids.len() as u32).collect())
            }
        }
    }

    /// Text of each list of ids, special tokens kept.
    pub fn decode(&self, tokens: &[Vec<u32>]) -> Result<Vec<String>, String> {
        match &self.model {
            Model::Bytes => Ok(tokens
                .iter()
                .map(|ids| {
                    let bytes: Vec<u8> =
                        ids.iter().filter_map(|id| u8::try_from(*id).ok()).collect();
                    String::from_utf8_lossy(&bytes).into_owned()
                })
                .collect()),
            Model::Pairs => Ok(tokens.iter().map(|ids| pairs::decode(ids)).collect()),
            Model::ByteLevel(model) => Ok(tokens.iter().map(|ids| model.decode(ids)).collect()),
            Model::HuggingFace(model) => tokens
                .iter()
                .map(|ids| model.decode(ids).map_err(|cause| self.named(&cause)))
                .collect(),
        }
    }

    /// Returns the number of bytes that the text of ids has, at most.
    pub fn decoded_bytes(&self, ids: &[u32]) -> u64 {
        match &self.model {
            Model::Bytes | Model::Pairs => 4 * ids.len() as u64,
            Model::ByteLevel(model) => model.decoded_bytes(ids),
            Model::HuggingFace(model) => model.decoded_bytes(ids),
        }
    }

    pub fn chat_template(&self) -> Result<&Chat, ChatError> {
        self.chat.check().map(|()| &self.chat)
    }

    /// The tokenizer with another date for chat templates: see [`ChatTemplate::dated`].
    pub fn dated(mut self, now: jiff::civil::DateTime) -> Self {
        self.chat = self.chat.dated(now);
        self
    }

    /// The text of a chat as an engine makes it of a request to `/v1/chat/completions`: by the
    /// template, of messages whose tool calls hold their arguments as objects. See
    /// [`ChatTemplate::render`] for the parameters. A message's content is handed on as it is, a
    /// list of parts too.
    pub fn render_chat(
        &self,
        messages: &[serde_json::Value],
        tools: Option<&serde_json::Value>,
        extra: &serde_json::Map<String, serde_json::Value>,
    ) -> Result<String, ChatError> {
        let messages: Vec<_> = messages.iter().map(chat::as_engines_do).collect();
        self.chat.render(&messages, tools, extra)
    }

    /// Counts the tokens of a chat: the tokens of its text, which holds all special tokens already,
    /// so none are added. Errors: as [`Tokenizer::render_chat`], or if the text cannot be encoded.
    pub fn count_chat(
        &self,
        messages: &[serde_json::Value],
        tools: Option<&serde_json::Value>,
        extra: &serde_json::Map<String, serde_json::Value>,
    ) -> Result<u32, ChatError> {
        let text = self.render_chat(messages, tools, extra)?;
        let counts = self.count(&[text], false).map_err(ChatError::Encoding)?;
        Ok(counts.into_iter().sum())
    }

    fn named(&self, cause: &str) -> String {
        format!("tokenizer `{}`: {cause}", self.name)
    }
}

/// Facts that hold for every text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Token ids are below this.
    pub vocabulary_size: u32,
    /// Ids from here on were added to the vocabulary the model's tokenizer was made with.
    pub base_size: u32,
    /// Number of special tokens that are put around a single text.
    pub added_tokens: u32,
    /// Ids without a text of their own, ascending.
    pub special: Vec<u32>,
    /// True if it is a substitute for the model's own tokenizer.
    pub approximate: bool,
}

struct ParsedModel<M> {
    facts: Facts,
    model: M,
}

impl<M> ParsedModel<M> {
    fn map<N>(self, change: impl FnOnce(M) -> N) -> ParsedModel<N> {
        ParsedModel { facts: self.facts, model: change(self.model) }
    }
}

/// Bytes of text, about, that are worth a thread.
const WORTH_A_THREAD: usize = 64 << 10;

/// The result of `each` for every item, in order. `size` is about the item's bytes of text.
fn spread<I: Sync, T: Send>(
    items: &[I],
    size: impl Fn(&I) -> usize,
    each: impl Fn(&I) -> T + Sync,
) -> Vec<T> {
    let total: usize = items.iter().map(size).sum();
    let threads = (total / WORTH_A_THREAD).min(most_threads()).max(1);
    let share = items.len().div_ceil(threads).max(1);
    let mut shares = items.chunks(share);
    let first = shares.next().unwrap_or_default();
    let each = &each;
    std::thread::scope(|scope| {
        let others: Vec<_> = shares
            .map(|items| scope.spawn(move || items.iter().map(each).collect::<Vec<T>>()))
            .collect();
        let mut made: Vec<T> = Vec::with_capacity(items.len());
        made.extend(first.iter().map(each));
        for other in others {
            let more = other.join();
            made.extend(more.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        made
    })
}

/// Half of the cores, since a run may need the others; but two, if there are two.
fn most_threads() -> usize {
    static MOST: OnceLock<usize> = OnceLock::new();
    *MOST.get_or_init(|| {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        (cores / 2).clamp(2, 8).min(cores)
    })
}

/// The text in normalization form C.
///
/// A settled character joins with none before it. So a settled character and the text up to the
/// next normalize by themselves.
fn composed(classes: Classes, text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut composed = String::new();
    let mut copied = 0;
    let mut settled = 0;
    let mut segment = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        if !classes.is(c, UNSETTLED) {
            settled = at;
            continue;
        }
        let next = chars.find(|(_, c)| !classes.is(*c, UNSETTLED));
        let end = next.map_or(text.len(), |(at, _)| at);
        segment.clear();
        segment.extend(text[settled..end].nfc().map(|(c, _)| c));
        if segment != text[settled..end] {
            composed.push_str(&text[copied..settled]);
            composed.push_str(&segment);
            copied = end;
        }
        settled = end;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    composed.push_str(&text[copied..]);
    Cow::Owned(composed)
}

/// Largest file that is read, in bytes: several times the largest tokenizer of any model.
const FILE_BYTES: u64 = 256 << 20;

/// The files for which a folder is searched, in this order. Behind them, any rank file.
const NAMES: [&str; 5] = [
    "tokenizer.json",
    "tokenizer.model",
    "tiktoken.model",
    "spiece.model",
    "sentencepiece.bpe.model",
];

/// The ending of rank files' names.
const RANKS: &str = "tiktoken";

impl Tokenizer {
    /// Opens a tokenizer's file, or the tokenizer in a folder: `tokenizer.json`, else a
    /// SentencePiece model (`tokenizer.model`, `spiece.model`), else a rank file of tiktoken
    /// (`tiktoken.model`, `*.tiktoken`, also as `tokenizer.model`). Settings, special tokens and
    /// the chat template come from the files beside it. Fails if there is none, or it is something
    /// else.
    pub fn open(path: &Path) -> Result<Self, TokenizerError> {
        let file = Self::file(path)?;
        let bytes = bytes_of(&file, FILE_BYTES)
            .map_err(|cause| TokenizerError::Unreadable { path: file.clone(), cause })?;
        let wrong = |cause| TokenizerError::NotTokenizer { path: file.clone(), cause };
        let bytes =
            bytes.ok_or_else(|| wrong(format!("it has more than {} MiB", FILE_BYTES >> 20)))?;
        let siblings = siblings(&file);
        let parsed = model(&file.to_string_lossy(), &bytes, &siblings).map_err(wrong)?;
        Ok(Tokenizer::new(path.display().to_string(), parsed, &siblings))
    }

    /// The file that [`Tokenizer::open`] reads. Fails if a folder holds none, or several.
    pub fn file(path: &Path) -> Result<PathBuf, TokenizerError> {
        if path.is_dir() { in_folder(path) } else { Ok(path.to_owned()) }
    }

    /// Opens it from the bytes of [`Tokenizer::binary`] in this [`BUILD`](crate::BUILD). The files
    /// beside it are read anew. Absent if the bytes hold no tokenizer.
    pub fn open_binary(path: &Path, bytes: &[u8]) -> Result<Option<Self>, TokenizerError> {
        let siblings = siblings(&Self::file(path)?);
        Ok(binary::read(bytes).map(|parsed| {
            let parsed = parsed.map(|model| Model::ByteLevel(Box::new(model)));
            Tokenizer::new(path.display().to_string(), parsed, &siblings)
        }))
    }
}

fn siblings(file: &Path) -> SiblingFiles {
    SiblingFiles::read(match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    })
}

fn in_folder(folder: &Path) -> Result<PathBuf, TokenizerError> {
    let named = NAMES.iter().map(|name| folder.join(name));
    if let Some(file) = named.into_iter().find(|file| file.exists()) {
        return Ok(file);
    }
    let unreadable = |cause| TokenizerError::Unreadable { path: folder.to_owned(), cause };
    let mut ranks = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == RANKS) {
            ranks.push(path);
        }
    }
    ranks.sort();
    match ranks.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(TokenizerError::Absent {
            folder: folder.to_owned(),
            looked_for: format!("`{}` and `*.{RANKS}`", NAMES.join("`, `")),
        }),
        several => {
            let name = |path: &PathBuf| path.file_name().map(|name| name.display().to_string());
            let names: Vec<String> = several.iter().filter_map(name).collect();
            Err(TokenizerError::Several {
                folder: folder.to_owned(),
                files: format!("`{}`", names.join("`, `")),
            })
        }
    }
}

fn model(name: &str, bytes: &[u8], siblings: &SiblingFiles) -> Result<ParsedModel<Model>, String> {
    let byte_level = |model| Model::ByteLevel(Box::new(model));
    let hugging_face = |model| Model::HuggingFace(Box::new(model));
    let extension = Path::new(name).extension().and_then(|name| name.to_str());
    if extension == Some(RANKS) || tiktoken::is_ranks(bytes) {
        return Ok(tiktoken::read(name, bytes, siblings)?.map(byte_level));
    }
    if extension == Some("model") {
        return Ok(sentencepiece::read(name, bytes, siblings)?.map(hugging_face));
    }
    match read::read(bytes) {
        Some(parsed) => Ok(parsed.map(byte_level)),
        None => Ok(hugging_face::read(bytes)?.map(hugging_face)),
    }
}

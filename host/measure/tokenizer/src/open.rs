//! Finds a tokenizer's file and reads it with the files beside it.

use std::path::{Path, PathBuf};

use super::beside::Beside;
use super::facts::Read;
use super::file::{FILE_BYTES, bytes_of};
use super::{Model, Tokenizer, TokenizerError};
use super::{hugging_face, kept, read, sentencepiece, tiktoken};

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

/// The tokenizer's file: the path itself, or the file in the folder.
pub(super) fn file(path: &Path) -> Result<PathBuf, TokenizerError> {
    if path.is_dir() { in_folder(path) } else { Ok(path.to_owned()) }
}

/// Opens the kept form of a file, or of the tokenizer in a folder.
pub(super) fn open_kept(path: &Path, kept: &[u8]) -> Result<Option<Tokenizer>, TokenizerError> {
    let beside = beside(&file(path)?);
    Ok(kept::read(kept).map(|Read { facts, model }| {
        let model = Model::ByteLevel(Box::new(model));
        Tokenizer::made(path.display().to_string(), Read { facts, model }, &beside)
    }))
}

/// Opens a file, or the tokenizer in a folder.
pub(super) fn open(path: &Path) -> Result<Tokenizer, TokenizerError> {
    let file = file(path)?;
    let bytes = bytes_of(&file, FILE_BYTES)
        .map_err(|cause| TokenizerError::Unreadable { path: file.clone(), cause })?;
    let wrong = |cause| TokenizerError::NotTokenizer { path: file.clone(), cause };
    let bytes = bytes.ok_or_else(|| wrong(format!("it has more than {} MiB", FILE_BYTES >> 20)))?;
    let beside = beside(&file);
    let read = model(&file.to_string_lossy(), &bytes, &beside).map_err(wrong)?;
    Ok(Tokenizer::made(path.display().to_string(), read, &beside))
}

fn beside(file: &Path) -> Beside {
    Beside::read(match file.parent() {
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

/// Reads the contents of a file of that name.
pub(super) fn model(name: &str, bytes: &[u8], beside: &Beside) -> Result<Read<Model>, String> {
    let extension = Path::new(name).extension().and_then(|name| name.to_str());
    if extension == Some(RANKS) || tiktoken::is_ranks(bytes) {
        let Read { facts, model } = tiktoken::read(name, bytes, beside)?;
        let model = Model::ByteLevel(Box::new(model));
        return Ok(Read { facts, model });
    }
    if extension == Some("model") {
        let Read { facts, model } = sentencepiece::read(name, bytes, beside)?;
        let model = Model::HuggingFace(Box::new(model));
        return Ok(Read { facts, model });
    }
    match read::read(bytes) {
        Some(Read { facts, model }) => Ok(Read { facts, model: Model::ByteLevel(Box::new(model)) }),
        None => {
            let Read { facts, model } = hugging_face::read(bytes)?;
            let model = Model::HuggingFace(Box::new(model));
            Ok(Read { facts, model })
        }
    }
}

//! Finds a tokenizer's file and reads it with the files beside it.

use std::path::{Path, PathBuf};

use super::ParsedModel;
use super::siblings::{SiblingFiles, bytes_of};
use super::{
    Model, Tokenizer, TokenizerError, binary, hugging_face, read, sentencepiece, tiktoken,
};

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

    /// The file that [`Tokenizer::open`] reads: the path itself, or the file in the folder. Fails
    /// if the folder holds none, or several.
    pub fn file(path: &Path) -> Result<PathBuf, TokenizerError> {
        if path.is_dir() { in_folder(path) } else { Ok(path.to_owned()) }
    }

    /// Opens it from the bytes of [`Tokenizer::binary`], made of the same file in this
    /// [`BUILD`](crate::BUILD) of the program. Settings, special tokens and the chat template are
    /// read anew. Absent if the bytes hold no tokenizer.
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

/// Reads the contents of a file of that name.
pub(super) fn model(
    name: &str,
    bytes: &[u8],
    siblings: &SiblingFiles,
) -> Result<ParsedModel<Model>, String> {
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

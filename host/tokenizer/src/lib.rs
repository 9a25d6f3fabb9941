//! The tokenizer of the model under test: a Hugging Face `tokenizer.json`, or a substitute that
//! treats every byte as a token, which serves the mock engine and makes every count approximate.
//!
//! This crate owns the path from text to tokens. It leaves to others which texts are counted.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

mod byte_level;
mod class;
mod hugging_face;
mod merge;
mod normalize;
mod pairs;
mod read;
mod shape;
mod split;
mod spread;
mod table;
#[cfg(test)]
mod tests;

pub use hugging_face::is_guarded;

use byte_level::ByteLevel;
use hugging_face::HuggingFace;
use spread::spread;

/// Largest file that is read, in bytes: several times the largest tokenizer of any model.
const FILE_BYTES: u64 = 256 << 20;

/// Texts to tokens and back.
pub struct Tokenizer {
    name: String,
    facts: Facts,
    model: Model,
}

enum Model {
    HuggingFace(Box<HuggingFace>),
    ByteLevel(Box<ByteLevel>),
    Bytes,
    Pairs,
}

/// A model as read from its file.
struct Read<M> {
    facts: Facts,
    model: M,
}

/// What holds for every text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Token ids are below this.
    pub vocabulary_size: u32,
    /// Ids from here on were added to the vocabulary the model's tokenizer was made with.
    pub base_size: u32,
    /// How many special tokens are put around a single text.
    pub added_tokens: u32,
    /// Ids without a text of their own, ascending.
    pub special: Vec<u32>,
    /// Whether it is a substitute for the model's own tokenizer.
    pub approximate: bool,
}

/// Why a tokenizer could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    /// Nothing there.
    #[error(
        "tokenizer `{path}`: {cause}; give a `tokenizer.json` or a folder that holds one (names on a model hub are not looked up)"
    )]
    Unreadable {
        /// The path as given.
        path: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// Something else.
    #[error(
        "tokenizer `{path}` is not a Hugging Face tokenizer: {cause}; give a `tokenizer.json` or a folder that holds one"
    )]
    NotTokenizer {
        /// The file that was read.
        path: PathBuf,
        /// The library's error.
        cause: String,
    },
}

impl Tokenizer {
    /// Opens a `tokenizer.json`, or the one in a folder.
    ///
    /// # Errors
    /// If there is none, or it is something else.
    pub fn open(path: &Path) -> Result<Self, TokenizerError> {
        let file = if path.is_dir() {
            path.join("tokenizer.json")
        } else {
            path.to_owned()
        };
        let bytes = bytes_of(&file).map_err(|cause| TokenizerError::Unreadable {
            path: file.clone(),
            cause,
        })?;
        let Some(bytes) = bytes else {
            let cause = format!("it has more than {} MiB", FILE_BYTES >> 20);
            return Err(TokenizerError::NotTokenizer { path: file, cause });
        };
        Tokenizer::parse(&path.display().to_string(), &bytes)
            .map_err(|cause| TokenizerError::NotTokenizer { path: file, cause })
    }

    /// Reads what a `tokenizer.json` holds; `name` is its name.
    ///
    /// # Errors
    /// Why it is something else.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self, String> {
        let Read { facts, model } = match read::read(bytes) {
            Some(Read { facts, model }) => Read {
                facts,
                model: Model::ByteLevel(Box::new(model)),
            },
            None => hugging_face(bytes)?,
        };
        Ok(Tokenizer {
            name: name.to_owned(),
            facts,
            model,
        })
    }

    /// The substitute: the id of a token is its byte. Bytes that are no printable ASCII count as
    /// special, so that prompts made of the others have as many characters as tokens.
    pub fn bytes() -> Self {
        Tokenizer {
            name: "bytes".to_owned(),
            facts: Facts {
                vocabulary_size: 256,
                base_size: 256,
                added_tokens: 0,
                special: (0..=255u32).filter(|id| !(32..127).contains(id)).collect(),
                approximate: true,
            },
            model: Model::Bytes,
        }
    }

    /// The tokenizer of datasets' cases: see `tokenizer/pairs.rs`.
    pub fn pairs() -> Self {
        Tokenizer {
            name: "pairs".to_owned(),
            facts: pairs::facts(),
            model: Model::Pairs,
        }
    }

    /// Its path as given, or `bytes`, or `pairs`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Facts about the vocabulary.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Token ids of each text; with `special`, the tokens that the model puts around a text are added.
    ///
    /// # Errors
    /// The library's error for a text that it cannot encode.
    pub fn encode(&self, texts: &[String], special: bool) -> Result<Vec<Vec<u32>>, String> {
        match &self.model {
            Model::Bytes => Ok(texts
                .iter()
                .map(|text| text.bytes().map(u32::from).collect())
                .collect()),
            Model::Pairs => Ok(texts
                .iter()
                .map(|text| pairs::encode(text, special))
                .collect()),
            Model::ByteLevel(model) => Ok(spread(texts, String::len, |text| {
                let mut ids = Vec::with_capacity(text.len() / 4);
                model.encode(text, special, |some| ids.extend_from_slice(some));
                ids
            })),
            Model::HuggingFace(model) => model
                .encode(texts, special)
                .map_err(|cause| self.said(&cause)),
        }
    }

    /// Token counts of each text.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn count(&self, texts: &[String], special: bool) -> Result<Vec<u32>, String> {
        match &self.model {
            Model::Bytes => Ok(texts.iter().map(|text| text.len() as u32).collect()),
            Model::ByteLevel(model) => Ok(spread(texts, String::len, |text| {
                let mut count = 0;
                model.encode(text, special, |some| count += some.len() as u32);
                count
            })),
            Model::HuggingFace(_) | Model::Pairs => Ok(self
                .encode(texts, special)?
                .iter()
                .map(|ids| ids.len() as u32)
                .collect()),
        }
    }

    /// Text of each list of ids, special tokens kept.
    ///
    /// # Errors
    /// The library's error for ids that it cannot decode.
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
                .map(|ids| model.decode(ids).map_err(|cause| self.said(&cause)))
                .collect(),
        }
    }

    /// How many bytes the text of ids has, at most.
    pub fn decoded_bytes(&self, ids: &[u32]) -> u64 {
        match &self.model {
            Model::Bytes | Model::Pairs => 4 * ids.len() as u64,
            Model::ByteLevel(model) => model.decoded_bytes(ids),
            Model::HuggingFace(model) => model.decoded_bytes(ids),
        }
    }

    fn said(&self, cause: &str) -> String {
        format!("tokenizer `{}`: {cause}", self.name)
    }
}

/// Reads a tokenizer of any kind with the `tokenizers` crate.
fn hugging_face(bytes: &[u8]) -> Result<Read<Model>, String> {
    let Read { facts, model } = hugging_face::read(bytes)?;
    Ok(Read {
        facts,
        model: Model::HuggingFace(Box::new(model)),
    })
}

/// Reads a file; returns nothing if it is larger than any tokenizer.
fn bytes_of(file: &Path) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let from = File::open(file)?;
    from.take(FILE_BYTES + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= FILE_BYTES).then_some(bytes))
}

//! The tokenizer of the model under test: a Hugging Face `tokenizer.json`, or a stand-in that
//! takes every byte for a token, which serves the mock engine and makes every count approximate.

use std::path::{Path, PathBuf};

/// Texts to tokens and back.
pub struct Tokenizer {
    name: String,
    facts: Facts,
    model: Model,
}

enum Model {
    HuggingFace(Box<tokenizers::Tokenizer>),
    Bytes,
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
    /// Ids that stand for no text of their own, ascending.
    pub special: Vec<u32>,
    /// Whether it stands in for the model's own tokenizer.
    pub approximate: bool,
}

/// Why a tokenizer could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    /// Nothing there.
    #[error(
        "tokenizer `{path}`: {cause}; give a `tokenizer.json` or a folder that holds one (a name on a model hub is not looked up)"
    )]
    Unreadable {
        /// The path as given.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// Something else.
    #[error(
        "tokenizer `{path}` is no Hugging Face tokenizer: {cause}; give a `tokenizer.json` or a folder that holds one"
    )]
    NotTokenizer {
        /// The file that was read.
        path: PathBuf,
        /// What the library said.
        cause: String,
    },
}

impl Tokenizer {
    /// Opens a `tokenizer.json`, or the one in a folder.
    ///
    /// # Errors
    /// Where there is none, or it is something else.
    pub fn open(path: &Path) -> Result<Self, TokenizerError> {
        let file = if path.is_dir() {
            path.join("tokenizer.json")
        } else {
            path.to_owned()
        };
        let bytes = std::fs::read(&file).map_err(|cause| TokenizerError::Unreadable {
            path: file.clone(),
            cause,
        })?;
        let model = tokenizers::Tokenizer::from_bytes(&bytes).map_err(|cause| {
            TokenizerError::NotTokenizer {
                path: file.clone(),
                cause: cause.to_string(),
            }
        })?;
        let mut special: Vec<u32> = model
            .get_added_tokens_decoder()
            .iter()
            .filter(|(_, token)| token.special)
            .map(|(id, _)| *id)
            .collect();
        special.sort_unstable();
        let added_tokens = model
            .encode("", true)
            .map_or(0, |encoding| encoding.get_ids().len() as u32);
        Ok(Tokenizer {
            name: path.display().to_string(),
            facts: Facts {
                vocabulary_size: model.get_vocab_size(true) as u32,
                base_size: model.get_vocab_size(false) as u32,
                added_tokens,
                special,
                approximate: false,
            },
            model: Model::HuggingFace(Box::new(model)),
        })
    }

    /// The stand-in: the id of a token is its byte. Bytes that are no printable ASCII count as
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

    /// Its path as given, or `bytes`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What holds for every text.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Token ids of each text; with `special`, the tokens that the model puts around a text are added.
    ///
    /// # Errors
    /// What the library says of a text it cannot encode.
    pub fn encode(&self, texts: &[String], special: bool) -> Result<Vec<Vec<u32>>, String> {
        match &self.model {
            Model::Bytes => Ok(texts
                .iter()
                .map(|text| text.bytes().map(u32::from).collect())
                .collect()),
            Model::HuggingFace(model) => Ok(model
                .encode_batch_fast(texts.iter().map(String::as_str).collect(), special)
                .map_err(|cause| format!("the tokenizer cannot encode a text: {cause}"))?
                .into_iter()
                .map(|encoding| encoding.get_ids().to_vec())
                .collect()),
        }
    }

    /// Token counts of each text.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn count(&self, texts: &[String], special: bool) -> Result<Vec<u32>, String> {
        match &self.model {
            Model::Bytes => Ok(texts.iter().map(|text| text.len() as u32).collect()),
            Model::HuggingFace(_) => Ok(self
                .encode(texts, special)?
                .iter()
                .map(|ids| ids.len() as u32)
                .collect()),
        }
    }

    /// Text of each list of ids, special tokens kept.
    ///
    /// # Errors
    /// What the library says of ids it cannot decode.
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
            Model::HuggingFace(model) => tokens
                .iter()
                .map(|ids| {
                    model
                        .decode(ids, false)
                        .map_err(|cause| format!("the tokenizer cannot decode: {cause}"))
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stand_in_takes_every_byte_for_a_token() {
        let tokenizer = Tokenizer::bytes();
        assert_eq!(
            tokenizer.encode(&["aé".to_owned()], true).unwrap(),
            [[97, 195, 169]]
        );
        assert_eq!(tokenizer.decode(&[vec![97, 195, 169]]).unwrap(), ["aé"]);
        assert!(tokenizer.facts().approximate);
    }

    #[test]
    fn a_file_that_is_no_tokenizer_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokenizer.json");
        std::fs::write(&path, "{\"model\": 3}").unwrap();
        let error = Tokenizer::open(dir.path()).err().unwrap().to_string();
        assert!(error.contains("tokenizer.json"), "{error}");
        assert!(error.contains("is no Hugging Face tokenizer"), "{error}");
    }
}

//! Tokenizers of any kind, by the `tokenizers` crate.
//!
//! The crate panics on some files, and obeys settings that are for training. Both end here: a panic
//! is an error, and neither truncation, padding nor dropout affects the count.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::value::RawValue;
use tokenizers::models::ModelWrapper;

use super::shape::{self, Shape};
use super::{Facts, ParsedModel};

/// A text that tries a tokenizer: words, spaces, digits and letters of several bytes.
const PROBE: &str = "A  first\ntry: 10 é 中";

/// A tokenizer of any kind.
pub(super) struct HuggingFace {
    model: tokenizers::Tokenizer,
    /// Factor by which its decoder can make the tokens' texts longer.
    expansion: u64,
    /// The special tokens, where a text that begins with none of them gets a space before it.
    space_unless: Option<Vec<String>>,
    /// Tokens that have a role (`bos_token` and so on), where the model's file says so.
    pub(super) roles: BTreeMap<&'static str, String>,
}

/// The settings that training batches need, and counts must not depend on.
const OF_TRAINING: [&str; 2] = ["truncation", "padding"];

/// Reads a `tokenizer.json`. Errors: the fault of the file, without its name.
pub(super) fn read(bytes: &[u8]) -> Result<ParsedModel<HuggingFace>, String> {
    let mut parts: BTreeMap<Cow<'_, str>, &RawValue> =
        serde_json::from_slice(bytes).map_err(|cause| cause.to_string())?;
    for key in OF_TRAINING {
        parts.remove(key);
    }
    let rest = serde_json::to_vec(&parts).map_err(|cause| cause.to_string())?;
    let expansion = check(&parts)?;
    let mut model =
        guarded(|| tokenizers::Tokenizer::from_bytes(&rest))?.map_err(|cause| cause.to_string())?;
    if let ModelWrapper::BPE(bpe) = model.get_model()
        && bpe.dropout.is_some()
    {
        let mut bpe = bpe.clone();
        bpe.dropout = None;
        model.with_model(bpe);
    }
    for token in guarded(|| model.get_vocab(true))?.keys() {
        shape::check_token(token)?;
    }
    if model.get_vocab_size(true) == 0 {
        return Err("its vocabulary is empty".to_owned());
    }
    let mut special: Vec<u32> = model
        .get_added_tokens_decoder()
        .iter()
        .filter(|(_, token)| token.special)
        .map(|(id, _)| *id)
        .collect();
    special.sort_unstable();
    let added_tokens =
        guarded(|| model.encode("", true))?.map_or(0, |encoding| encoding.get_ids().len() as u32);
    let facts = Facts {
        vocabulary_size: model.get_vocab_size(true) as u32,
        base_size: model.get_vocab_size(false) as u32,
        added_tokens,
        special,
        approximate: false,
    };
    let model = HuggingFace { model, expansion, space_unless: None, roles: BTreeMap::new() };
    // A vocabulary that cannot encode this text is no error yet; a panic is.
    if let Ok(ids) = guarded(|| model.model.encode(PROBE, true))? {
        let _ = guarded(|| model.model.decode(ids.get_ids(), false))?;
    }
    Ok(ParsedModel { facts, model })
}

fn check(parts: &BTreeMap<Cow<'_, str>, &RawValue>) -> Result<u64, String> {
    #[derive(serde::Deserialize)]
    struct Model {
        max_input_chars_per_word: Option<serde_json::Value>,
    }
    let small = ["normalizer", "pre_tokenizer", "post_processor", "decoder"];
    let mut shape = serde_json::Map::new();
    for key in small {
        if let Some(part) = parts.get(key) {
            let value = serde_json::from_str(part.get())
                .map_err(|cause| format!("key `{key}`: {cause}"))?;
            shape.insert(key.to_owned(), value);
        }
    }
    let shape: Shape = serde_json::from_value(shape.into()).map_err(|cause| cause.to_string())?;
    let model = parts.get("model").map(|part| part.get()).unwrap_or("{}");
    // A key that is there twice is an error here; the crate takes the last.
    let model: Model =
        serde_json::from_str(model).map_err(|cause| format!("key `model`: {cause}"))?;
    let longest = model.max_input_chars_per_word;
    shape::check_word(longest.and_then(|longest| longest.as_u64()))?;
    shape.check()
}

impl HuggingFace {
    /// Puts a space before each text, unless it is empty or begins with a special token. The
    /// crate's own way puts none before a text that begins with a space.
    pub(super) fn begin_with_space(&mut self) {
        let added = self.model.get_added_tokens_decoder().into_values();
        let special = added.filter(|token| token.special);
        self.space_unless = Some(special.map(|token| token.content).collect());
    }

    fn begun<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match &self.space_unless {
            Some(special)
                if !text.is_empty() && !special.iter().any(|token| text.starts_with(token)) =>
            {
                Cow::Owned(format!(" {text}"))
            }
            _ => Cow::Borrowed(text),
        }
    }

    pub(super) fn encode(&self, texts: &[String], special: bool) -> Result<Vec<Vec<u32>>, String> {
        let texts = texts.iter().map(|text| self.begun(text)).collect();
        let encoded = guarded(|| self.model.encode_batch_fast(texts, special))?
            .map_err(|cause| format!("cannot encode a text: {cause}"))?;
        Ok((encoded.into_iter()).map(|encoding| encoding.get_ids().to_vec()).collect())
    }

    pub(super) fn decode(&self, ids: &[u32]) -> Result<String, String> {
        guarded(|| self.model.decode(ids, false))?
            .map_err(|cause| format!("cannot decode tokens: {cause}"))
    }

    pub(super) fn decoded_bytes(&self, ids: &[u32]) -> u64 {
        let of = |id: &u32| self.model.id_to_token(*id).map_or(0, |token| token.len() + 1);
        let bytes: u64 = ids.iter().map(|id| of(id) as u64).sum();
        bytes.saturating_mul(self.expansion)
    }
}

thread_local! {
    /// True if a panic of this thread becomes an error.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// True if a panic of the calling thread becomes an error, so that a panic hook need not print it.
pub fn is_guarded() -> bool {
    GUARDED.get()
}

/// The result, or a panic's message as an error.
fn guarded<T>(make: impl FnOnce() -> T) -> Result<T, String> {
    GUARDED.set(true);
    // State that the crate had in hand is dropped with the error; nothing of it is used again.
    let made = catch_unwind(AssertUnwindSafe(make));
    GUARDED.set(false);
    made.map_err(|panic| {
        let message = (panic.downcast_ref::<String>().map(String::as_str))
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        format!("the library that reads it failed: {message}")
    })
}

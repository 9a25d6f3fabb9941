//! Limits on a `tokenizer.json`, checked before the `tokenizers` crate builds it: a file from a
//! stranger must not make a small text a large one, or take hours over it.
//!
//! The limits are far above what any model's tokenizer needs.

use serde_json::Value;

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;

/// The maximum number of components of a kind, such as normalizers, and depth of their sequences.
const COMPONENTS: usize = 64;
const DEPTH: usize = 8;
/// Factor by which normalizers, pre-tokenizers or decoders may make a text longer, all together.
const EXPANSION: u64 = 1024;
/// Most tokens that are put around a text.
pub(super) const AROUND: u64 = 1024;
/// Longest text that is put before each piece of a text, in bytes.
const PREFIX: usize = 64;
/// Most characters of a word whose every part is compared with the vocabulary.
const WORD: u64 = 512;
/// Longest token, in bytes.
pub(super) const TOKEN: usize = 4096;

/// The parts of a file that are not its vocabulary, `null` where it has none.
#[derive(serde::Deserialize)]
pub(super) struct Shape {
    #[serde(default)]
    pub(super) normalizer: Value,
    #[serde(default)]
    pub(super) pre_tokenizer: Value,
    #[serde(default)]
    pub(super) post_processor: Value,
    #[serde(default)]
    pub(super) decoder: Value,
}

impl Shape {
    /// Checks it, and returns the factor by which decoding lengthens tokens. Errors: the excess.
    pub(super) fn check(&self) -> Result<u64, String> {
        let normalizers = expansion("normalizer", "normalizers", &self.normalizer)?;
        let splits = expansion("pre_tokenizer", "pretokenizers", &self.pre_tokenizer)?;
        if normalizers.saturating_mul(splits) > EXPANSION {
            return Err(too_long("normalizer` and `pre_tokenizer"));
        }
        let mut around = 0;
        each("post_processor", "processors", &self.post_processor, |one| {
            around += added(one);
            match around {
                ..=AROUND => Ok(()),
                _ => Err(format!(
                    "`post_processor` puts more than {AROUND} tokens around every text"
                )),
            }
        })?;
        expansion("decoder", "decoders", &self.decoder)
    }
}

/// Checks the limits of a model, which is read from its own part of the file.
pub(super) fn check_word(longest: Option<u64>) -> Result<(), String> {
    match longest {
        Some(longest) if longest > WORD => Err(format!(
            "`model.max_input_chars_per_word` is {longest}, at most {WORD} are supported"
        )),
        _ => Ok(()),
    }
}

pub(super) fn check_token(token: &str) -> Result<(), String> {
    match token.len() {
        ..=TOKEN => Ok(()),
        more => Err(format!("a token has {more} bytes, at most {TOKEN} are supported")),
    }
}

/// Calls `visit` with each component, including the components of nested sequences.
fn each(
    key: &str,
    inner: &str,
    component: &Value,
    mut visit: impl FnMut(&Value) -> Result<(), String>,
) -> Result<(), String> {
    let mut open = vec![(component, 1)];
    let mut components = 0;
    while let Some((component, depth)) = open.pop() {
        components += 1;
        if components > COMPONENTS || depth > DEPTH {
            return Err(format!(
                "`{key}` has more than {COMPONENTS} components, or more than {DEPTH} sequences in each other"
            ));
        }
        // A component with others may still be of another kind: the crate looks at its type.
        visit(component)?;
        if let Some(more) = component[inner].as_array() {
            open.extend(more.iter().rev().map(|one| (one, depth + 1)));
        }
    }
    Ok(())
}

/// Returns the factor by which components make a text longer, at most.
fn expansion(key: &str, inner: &str, component: &Value) -> Result<u64, String> {
    let mut product: u64 = 1;
    each(key, inner, component, |one| {
        let prefix = one["prepend"].as_str().map_or(0, str::len);
        if prefix > PREFIX {
            return Err(format!(
                "`{key}` puts {prefix} bytes before a text, at most {PREFIX} are supported"
            ));
        }
        product = product.saturating_mul(factor(one));
        match product {
            ..=EXPANSION => Ok(()),
            _ => Err(too_long(key)),
        }
    })?;
    Ok(product)
}

fn too_long(key: &str) -> String {
    format!("`{key}` can make a text more than {EXPANSION} times longer")
}

/// The most by which a component lengthens a text, if it does so again when it comes twice.
fn factor(component: &Value) -> u64 {
    let of = |key: &str| component[key].as_str().map_or(0, |text| text.len() as u64);
    match component["type"].as_str() {
        Some("ByteLevel") => 2,
        Some("Metaspace") => 4,
        // Its content is taken away.
        Some("Strip") => 1,
        Some("Precompiled") => longest_entry(component["precompiled_charsmap"].as_str()),
        // Without a type too: files from before types were written still work.
        _ if component["content"].is_string() => match component["pattern"]["String"].as_str() {
            Some(pattern) if !pattern.is_empty() => {
                of("content").div_ceil(pattern.len() as u64).max(1)
            }
            // It may match the nothing between two characters.
            _ => of("content") + 1,
        },
        _ => 1,
    }
}

/// The longest text that stands for a character in SentencePiece's table: after the length of an
/// index and the index, texts that end with a zero each.
fn longest_entry(encoded: Option<&str>) -> u64 {
    // The crate reports invalid base64.
    let bytes = BASE64.decode(encoded.unwrap_or_default()).unwrap_or_default();
    let texts = bytes
        .first_chunk::<4>()
        .map(|length| u32::from_le_bytes(*length) as usize)
        .and_then(|length| bytes.get(4 + length..))
        .unwrap_or_default();
    let longest = texts.split(|byte| *byte == 0).map(<[u8]>::len).max();
    longest.unwrap_or(0).max(1) as u64
}

fn added(processor: &Value) -> u64 {
    let Some(pieces) = processor["single"].as_array() else { return 2 };
    let of = |piece: &Value| {
        let name = piece["SpecialToken"]["id"].as_str()?;
        let ids = processor["special_tokens"][name]["ids"].as_array()?;
        Some(ids.len() as u64)
    };
    // A text that is put in twice counts twice.
    pieces.iter().map(|piece| of(piece).unwrap_or(1)).sum()
}

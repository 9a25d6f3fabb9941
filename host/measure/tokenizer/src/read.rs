//! Reads a byte-level `tokenizer.json`; the `tokenizers` crate has those with other settings.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::byte_level::{AddedTokens, ByteLevel, Spelling};
use super::class::Classes;
use super::merge::Merges;
use super::shape::AROUND;
use super::split::Pattern;
use super::table::{Merge, Pairs, Strings};
use super::{Facts, ParsedModel};

/// Most ids that are held in tables.
pub(super) const MOST_IDS: u32 = 1 << 22;

#[derive(serde::Deserialize)]
struct File<'f> {
    version: Value,
    added_tokens: Vec<AddedToken>,
    #[serde(default)]
    normalizer: Value,
    #[serde(default)]
    pre_tokenizer: Value,
    #[serde(default)]
    post_processor: Value,
    #[serde(default)]
    decoder: Value,
    #[serde(borrow)]
    model: Model<'f>,
}

#[derive(serde::Deserialize)]
struct AddedToken {
    id: u32,
    content: String,
    single_word: bool,
    lstrip: bool,
    rstrip: bool,
    normalized: bool,
    special: bool,
}

#[derive(serde::Deserialize)]
struct Model<'f> {
    #[serde(rename = "type")]
    kind: Option<String>,
    dropout: Option<f32>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    ignore_merges: Option<bool>,
    #[serde(borrow)]
    vocab: Vocabulary<'f>,
    #[serde(borrow)]
    merges: Vec<Pair<'f>>,
}

/// Tokens and their ids, in the file's order.
struct Vocabulary<'f>(Vec<(Text<'f>, u32)>);

/// The two tokens that merge, written as `"a b"` or as `["a", "b"]`.
struct Pair<'f>(Text<'f>, Text<'f>);

/// A text that is borrowed where it holds no escapes.
#[derive(serde::Deserialize)]
struct Text<'f>(#[serde(borrow)] Cow<'f, str>);

/// Reads a tokenizer, if it is of the kind.
pub(super) fn read(bytes: &[u8]) -> Option<ParsedModel<ByteLevel>> {
    let file: File<'_> = serde_json::from_slice(bytes).ok()?;
    let model = &file.model;
    let is_plain = file.version == "1.0"
        && model.kind.as_deref().is_none_or(|kind| kind == "BPE")
        && model.dropout.is_none_or(|dropout| dropout == 0.0)
        && is_empty(&model.continuing_subword_prefix)
        && is_empty(&model.end_of_word_suffix)
        && file.decoder["type"] == "ByteLevel";
    if !is_plain {
        return None;
    }
    let composes = match &file.normalizer {
        Value::Null => false,
        normalizer if normalizer["type"] == "NFC" => true,
        _ => return None,
    };
    let pattern = pattern(&file.pre_tokenizer)?;
    let added = added(&file, composes)?;
    let around = around(&file.post_processor)?;

    let vocabulary = &model.vocab.0;
    let mut ids = Strings::with_capacity(vocabulary.len());
    let mut spelled = SpellingBuilder::default();
    for (token, id) in vocabulary {
        if *id >= MOST_IDS || ids.set(token.0.as_bytes(), *id).is_some() {
            return None;
        }
        if spelled.set(*id, &token.0) {
            // Chance decides which of the two is decoded.
            return None;
        }
    }
    let merges = merges(model, &ids, spelled.lengths())?;
    let base_size = ids.len() as u32;
    let mut next = base_size;
    let mut overlapping = 0;
    for token in &file.added_tokens {
        let expected = match ids.get(token.content.as_bytes()) {
            Some(id) => {
                overlapping += 1;
                id
            }
            None => {
                next += 1;
                next - 1
            }
        };
        // The crate numbers them anew where the file's numbers differ from the crate's.
        if token.id != expected {
            return None;
        }
        spelled.set(token.id, &token.content);
    }
    let mut special: Vec<u32> =
        (file.added_tokens.iter()).filter(|token| token.special).map(|token| token.id).collect();
    special.sort_unstable();
    let facts = Facts {
        vocabulary_size: base_size + file.added_tokens.len() as u32 - overlapping,
        base_size,
        added_tokens: around.iter().map(|ids| ids.len() as u32).sum(),
        special,
        approximate: false,
    };
    let model = ByteLevel {
        classes: Classes::read(),
        composes,
        pattern,
        merges,
        added,
        around,
        spelling: spelled.in_order(),
        memories: Default::default(),
        stands_alone: true,
    };
    Some(ParsedModel { facts, model })
}

fn is_empty(affix: &Option<String>) -> bool {
    affix.as_ref().is_none_or(String::is_empty)
}

fn pattern(pre_tokenizer: &Value) -> Option<Pattern> {
    let is_byte_level = |value: &Value, splits: bool| {
        value["type"] == "ByteLevel"
            && value["add_prefix_space"] == false
            && value["use_regex"].as_bool().unwrap_or(true) == splits
    };
    if is_byte_level(pre_tokenizer, true) {
        return Some(Pattern::Gpt2);
    }
    if pre_tokenizer["type"] != "Sequence" {
        return None;
    }
    let [split, byte_level] = pre_tokenizer["pretokenizers"].as_array()?.as_slice() else {
        return None;
    };
    let fits = split["type"] == "Split"
        && split["behavior"] == "Isolated"
        && split["invert"] == false
        && is_byte_level(byte_level, false);
    let regex = split["pattern"]["Regex"].as_str()?;
    fits.then(|| Pattern::from_regex(regex)).flatten()
}

/// Tokens to find in texts, all at once; so no token may wait for the normalizer.
fn added(file: &File<'_>, composes: bool) -> Option<AddedTokens> {
    let tokens = &file.added_tokens;
    let plain = |token: &AddedToken| !(token.single_word || token.lstrip || token.rstrip);
    let normalized = tokens.iter().filter(|token| token.normalized).count();
    let at_once = normalized == 0 || normalized == tokens.len() && !composes;
    let mut contents: Vec<&str> = tokens.iter().map(|token| &*token.content).collect();
    contents.sort_unstable();
    contents.dedup();
    let distinct = contents.len() == tokens.len() && !contents.contains(&"");
    if !(at_once && distinct && tokens.iter().all(plain)) {
        return None;
    }
    AddedTokens::new(tokens.iter().map(|token| (&*token.content, token.id)))
}

/// Returns the tokens put before and behind a single text.
fn around(post_processor: &Value) -> Option<[Vec<u32>; 2]> {
    match post_processor["type"].as_str() {
        None if post_processor.is_null() => Some(Default::default()),
        Some("ByteLevel") => Some(Default::default()),
        Some("TemplateProcessing") => template(post_processor),
        Some("Sequence") => {
            let mut around = <[Vec<u32>; 2]>::default();
            for processor in post_processor["processors"].as_array()? {
                match processor["type"].as_str()? {
                    "ByteLevel" => {}
                    "TemplateProcessing" if around.iter().all(Vec::is_empty) => {
                        around = template(processor)?;
                    }
                    _ => return None,
                }
            }
            Some(around)
        }
        _ => None,
    }
}

fn template(processor: &Value) -> Option<[Vec<u32>; 2]> {
    let mut around = <[Vec<u32>; 2]>::default();
    let mut texts = 0;
    for piece in processor["single"].as_array()? {
        if piece["Sequence"]["id"] == "A" {
            texts += 1;
            continue;
        }
        let name = piece["SpecialToken"]["id"].as_str()?;
        let ids = processor["special_tokens"][name]["ids"].as_array()?;
        let length = around[0].len() + around[1].len() + ids.len();
        if length as u64 > AROUND {
            return None;
        }
        for id in ids {
            around[texts.min(1)].push(u32::try_from(id.as_u64()?).ok()?);
        }
    }
    (texts == 1).then_some(around)
}

fn merges(model: &Model<'_>, ids: &Strings, lengths: Vec<u32>) -> Option<Merges> {
    let mut bytes = [0; 256];
    for (byte, id) in (0..=255).zip(&mut bytes) {
        let mut buffer = [0; 4];
        *id = ids.get(letter(byte).encode_utf8(&mut buffer).as_bytes())?;
    }
    let mut pairs = Pairs::with_capacity(model.merges.len());
    let mut joined = Vec::new();
    for (rank, Pair(left, right)) in (0..).zip(&model.merges) {
        joined.clear();
        joined.extend_from_slice(left.0.as_bytes());
        joined.extend_from_slice(right.0.as_bytes());
        let merge = Merge { rank, token: ids.get(&joined)? };
        let (left, right) = (ids.get(left.0.as_bytes())?, ids.get(right.0.as_bytes())?);
        pairs.set(left, right, merge);
    }
    let whole = model.ignore_merges.unwrap_or(false).then(|| {
        let mut whole = Strings::with_capacity(model.vocab.0.len());
        for (token, id) in &model.vocab.0 {
            let mut spelling = Vec::new();
            if spell(&token.0, &mut spelling) {
                whole.set(&spelling, *id);
            }
        }
        whole
    });
    Some(Merges { bytes, pairs, lengths, whole })
}

/// The bytes that ids spell, in the order in which they were read.
#[derive(Default)]
struct SpellingBuilder {
    bytes: Vec<u8>,
    /// Start and end of each id's bytes; none where both are 0.
    ranges: Vec<(u32, u32)>,
}

impl SpellingBuilder {
    /// Sets the spelling of an id. Returns true if it was set before.
    fn set(&mut self, id: u32, token: &str) -> bool {
        let index = id as usize;
        if index >= self.ranges.len() {
            self.ranges.resize(index + 1, (0, 0));
        }
        let start = self.bytes.len();
        if !spell(token, &mut self.bytes) {
            self.bytes.truncate(start);
            self.bytes.extend_from_slice(token.as_bytes());
        }
        let range = (start as u32, self.bytes.len() as u32);
        std::mem::replace(&mut self.ranges[index], range) != (0, 0)
    }

    fn lengths(&self) -> Vec<u32> {
        let ranges = self.ranges.iter();
        ranges.map(|(start, end)| end - start).collect()
    }

    fn in_order(&self) -> Spelling {
        let mut bytes = Vec::with_capacity(self.bytes.len());
        let mut starts = vec![0];
        for (start, end) in &self.ranges {
            bytes.extend_from_slice(&self.bytes[*start as usize..*end as usize]);
            starts.push(bytes.len() as u32);
        }
        Spelling { bytes, starts }
    }
}

/// Appends the bytes that a token's letters stand for. Returns false if a letter stands for none.
fn spell(token: &str, bytes: &mut Vec<u8>) -> bool {
    token.chars().all(|letter| byte(letter).map(|byte| bytes.push(byte)).is_some())
}

/// The letter that stands for a byte: itself if it is visible, else the next letter from U+0100 on.
pub(super) fn letter(byte: u8) -> char {
    let unseen = match byte {
        0x00..=0x20 => Some(u32::from(byte)),
        0x7f..=0xa0 => Some(u32::from(byte) - 0x7f + 0x21),
        0xad => Some(0x43),
        _ => None,
    };
    match unseen {
        Some(number) => char::from_u32(0x100 + number).unwrap_or_default(),
        None => char::from(byte),
    }
}

fn byte(letter: char) -> Option<u8> {
    match u32::from(letter) {
        seen @ (0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) => Some(seen as u8),
        low @ 0x100..=0x120 => Some((low - 0x100) as u8),
        high @ 0x121..=0x142 => Some((high - 0x121 + 0x7f) as u8),
        0x143 => Some(0xad),
        _ => None,
    }
}

impl<'de: 'f, 'f> Deserialize<'de> for Vocabulary<'f> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Vocabulary<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a table of tokens")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Vocabulary(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

impl<'de: 'f, 'f> Deserialize<'de> for Pair<'f> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Pair<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("two tokens")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Pair<'de>, E> {
                let (left, right) = halves(text)?;
                Ok(Pair(Text(left.into()), Text(right.into())))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Pair<'de>, E> {
                let (left, right) = halves(text)?;
                let owned = |half: &str| Text(half.to_owned().into());
                Ok(Pair(owned(left), owned(right)))
            }

            fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<Self::Value, S::Error> {
                let short = || S::Error::custom("two tokens are expected");
                let left = seq.next_element()?.ok_or_else(short)?;
                let right = seq.next_element()?.ok_or_else(short)?;
                match seq.next_element::<serde::de::IgnoredAny>()? {
                    None => Ok(Pair(left, right)),
                    Some(_) => Err(short()),
                }
            }
        }
        deserializer.deserialize_any(Pairs)
    }
}

fn halves<E: Error>(text: &str) -> Result<(&str, &str), E> {
    match text.split_once(' ') {
        // A line of this kind is a file's head, not a merge.
        Some((left, right)) if !right.contains(' ') && !text.starts_with("#version") => {
            Ok((left, right))
        }
        _ => Err(E::custom("two tokens are expected")),
    }
}

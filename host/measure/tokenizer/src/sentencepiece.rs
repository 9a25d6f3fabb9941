//! SentencePiece models, converted to the `tokenizers` crate's form.
//!
//! A text without special tokens gets the tokens that SentencePiece itself gives it. Special tokens
//! are found in a text before all else. Serving engines do so and SentencePiece does not, and cuts
//! a chat's markers into letters. The merges and their order follow from the pieces' scores, as in
//! `convert_slow_tokenizer.py` of transformers 5.23. Two differences remain:
//!
//! - Before a text that begins with a space, SentencePiece puts another, as here. Transformers'
//!   conversion of Llama's models does not.
//! - A text that spells a byte's token, such as `<0x41>`, becomes that token in a unigram model
//!   here and in transformers.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value, json};

use super::hugging_face::{self, HuggingFace};
use super::proto::{BPE, Piece, Proto, Role, UNIGRAM};
use super::siblings::{AddedToken, SiblingFiles};
use super::{Facts, ParsedModel};
use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;

/// The character that stands for a space.
const SPACE: &str = "▁";
/// Most work on finding merges, in bytes that are looked at: a hundred times the need of the
/// largest model.
const MOST_WORK: usize = 1 << 31;
/// Most pairs that merge: several times the largest model's number.
const MOST_PAIRS: usize = 1 << 23;
/// Most ids without a token between a model's and the added ids.
const MOST_GAPS: usize = 1 << 16;

pub(super) fn read(
    name: &str,
    bytes: &[u8],
    siblings: &SiblingFiles,
) -> Result<ParsedModel<HuggingFace>, String> {
    let proto = Proto::read(bytes)?;
    if proto.whitespace_is_suffix {
        return Err(
            "it puts spaces behind words (`treat_whitespace_as_suffix`), which is not supported"
                .to_owned(),
        );
    }
    let settings = Settings::new(name, &proto, siblings)?;
    let tokens = tokens(&proto, siblings)?;
    let file = json!({
        "version": "1.0",
        "added_tokens": added(&proto, &tokens, &settings),
        "normalizer": settings.normalizer(&proto),
        "pre_tokenizer": settings.pre_tokenizer(&proto),
        "post_processor": settings.post_processor(),
        "decoder": settings.decoder(&proto),
        "model": model(&proto, &tokens)?,
    });
    let file = serde_json::to_vec(&file).map_err(|cause| cause.to_string())?;
    let ParsedModel { mut facts, mut model } = hugging_face::read(&file)?;
    if settings.prefix == Prefix::First && !proto.removes_spaces {
        model.begin_with_space();
    }
    model.roles = roles(&proto);
    correct(&mut facts, &proto);
    Ok(ParsedModel { facts, model })
}

/// The tokens that begin and end a text, and the token for unknown characters.
fn roles(proto: &Proto) -> BTreeMap<&'static str, String> {
    let text = |id: usize| proto.pieces.get(id).map(|piece| piece.text.clone());
    let at = |id: i64| usize::try_from(id).ok().and_then(text);
    let unknown = proto.pieces.iter().position(|piece| piece.role == Role::Unknown);
    [
        ("bos_token", at(proto.bos)),
        ("eos_token", at(proto.eos)),
        ("unk_token", unknown.and_then(text)),
    ]
    .into_iter()
    .filter_map(|(role, token)| Some((role, token?)))
    .collect()
}

/// Names the tokens that the crate does not know to be special: pieces that no text has.
fn correct(facts: &mut Facts, proto: &Proto) {
    let without_text = |piece: &Piece| !matches!(piece.role, Role::Normal | Role::UserDefined);
    let ids = (0..).zip(&proto.pieces).filter(|(_, piece)| without_text(piece));
    facts.special.extend(ids.map(|(id, _): (u32, _)| id));
    facts.special.sort_unstable();
    facts.special.dedup();
}

/// The places at which a space is put before a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prefix {
    Never,
    /// Before the whole text, unless it begins with a special token.
    First,
    /// Before each piece of text between special tokens.
    Always,
}

struct Settings {
    prefix: Prefix,
    around: [Option<(String, u32)>; 2],
}

impl Settings {
    fn new(name: &str, proto: &Proto, siblings: &SiblingFiles) -> Result<Self, String> {
        siblings.settings()?;
        let classes = siblings.classes();
        let is = |part: &str| classes.iter().any(|class| class.contains(part));
        // Encoder-decoder models end a text with a token, and begin it with none.
        let ends =
            is("t5") || is("pegasus") || (classes.is_empty() && name.ends_with("spiece.model"));
        let legacy = siblings.switch("legacy").unwrap_or(proto.kind == UNIGRAM);
        let prefix = match siblings.switch("add_prefix_space").unwrap_or(proto.adds_prefix) {
            false => Prefix::Never,
            true if legacy => Prefix::Always,
            true => Prefix::First,
        };
        let roles = siblings.roles();
        let token = |role: &str, id: i64| {
            let of_proto = || {
                let id = usize::try_from(id).ok()?;
                Some(proto.pieces.get(id)?.text.clone())
            };
            let content = roles.get(role).cloned().or_else(of_proto)?;
            let id = proto.pieces.iter().position(|piece| piece.text == content);
            let id = id.and_then(|id| u32::try_from(id).ok()).or_else(|| {
                let added = siblings.added().ok()?;
                added.iter().find_map(|(id, token)| (token.content == content).then_some(*id))
            })?;
            Some((content, id))
        };
        let put = |key: &str, otherwise: bool, role: &str, id: i64| {
            let on = siblings.switch(key).unwrap_or(otherwise);
            on.then(|| token(role, id)).flatten()
        };
        Ok(Settings {
            prefix,
            around: [
                put("add_bos_token", !ends, "bos_token", proto.bos),
                put("add_eos_token", ends, "eos_token", proto.eos),
            ],
        })
    }

    fn normalizer(&self, proto: &Proto) -> Value {
        let mut steps = Vec::new();
        if !proto.charsmap.is_empty() {
            let charsmap = BASE64.encode(&proto.charsmap);
            steps.push(json!({"type": "Precompiled", "precompiled_charsmap": charsmap}));
        }
        if proto.removes_spaces {
            // A text's own first space replaces the prefix space.
            if self.prefix == Prefix::Never {
                steps.push(replace(json!({"Regex": "^ +"}), ""));
            }
            steps.push(replace(json!({"Regex": " +$"}), ""));
            steps.push(replace(json!({"Regex": " {2,}"}), " "));
        } else if self.prefix == Prefix::Always {
            steps.push(json!({"type": "Prepend", "prepend": " "}));
        }
        if proto.escapes_spaces {
            steps.push(replace(json!({"String": " "}), SPACE));
        }
        json!({"type": "Sequence", "normalizers": steps})
    }

    /// The space before a text, where spaces are removed: a text's own first space is enough.
    fn pre_tokenizer(&self, proto: &Proto) -> Value {
        if !proto.removes_spaces {
            return Value::Null;
        }
        let scheme = match self.prefix {
            Prefix::Never => "never",
            Prefix::First => "first",
            Prefix::Always => "always",
        };
        let space = if proto.escapes_spaces { SPACE } else { " " };
        json!({"type": "Metaspace", "replacement": space, "prepend_scheme": scheme, "split": false})
    }

    fn post_processor(&self) -> Value {
        let token = |token: &(String, u32)| json!({"SpecialToken": {"id": token.0, "type_id": 0}});
        let text = |name: &str| json!({"Sequence": {"id": name, "type_id": 0}});
        let [before, behind] = &self.around;
        let around = |name: &str| {
            let before = before.iter().map(token);
            let behind = behind.iter().map(token);
            before.chain([text(name)]).chain(behind).collect::<Vec<_>>()
        };
        if before.is_none() && behind.is_none() {
            return Value::Null;
        }
        let of = |(content, id): &(String, u32)| {
            let token = json!({"id": content, "ids": [id], "tokens": [content]});
            (content.clone(), token)
        };
        let special: Map<String, Value> = before.iter().chain(behind).map(of).collect();
        let pair = [around("A"), around("B")].concat();
        json!({
            "type": "TemplateProcessing",
            "single": around("A"),
            "pair": pair,
            "special_tokens": special,
        })
    }

    fn decoder(&self, proto: &Proto) -> Value {
        let mut steps = vec![
            replace(json!({"String": SPACE}), " "),
            json!({"type": "ByteFallback"}),
            json!({"type": "Fuse"}),
        ];
        if !proto.escapes_spaces {
            steps.remove(0);
        }
        if self.prefix != Prefix::Never {
            steps.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
        }
        json!({"type": "Sequence", "decoders": steps})
    }
}

fn replace(pattern: Value, content: &str) -> Value {
    json!({"type": "Replace", "pattern": pattern, "content": content})
}

struct Tokens {
    own: Vec<String>,
    /// Tokens behind the model's, and tokens of the model that settings make special.
    added: BTreeMap<u32, AddedToken>,
}

fn tokens(proto: &Proto, siblings: &SiblingFiles) -> Result<Tokens, String> {
    let mut own = Vec::with_capacity(proto.pieces.len());
    for (id, piece) in proto.pieces.iter().enumerate() {
        own.push(match piece.role {
            // No text contains this.
            Role::Unused => format!("\0{id}"),
            _ => piece.text.clone(),
        });
    }
    let mut added = siblings.added()?;
    let ids: HashMap<&str, usize> = own.iter().map(String::as_str).zip(0..).collect();
    // A name for a place that the model keeps free.
    let renamed: Vec<(usize, String)> = (added.iter())
        .filter_map(|(id, token)| {
            let other = own.get(*id as usize)? != &token.content;
            let known = ids.contains_key(token.content.as_str());
            (other && !known).then(|| (*id as usize, token.content.clone()))
        })
        .collect();
    if ids.len() < own.len() {
        return Err("it holds a piece twice".to_owned());
    }
    for (id, content) in renamed {
        own[id] = content;
    }
    let size = own.len();
    if let Some(last) = added.keys().next_back().copied() {
        let gaps = (last as usize + 1).saturating_sub(size + added.len());
        if gaps > MOST_GAPS {
            return Err(format!("an added token has id {last}, though there are {size} pieces"));
        }
        for id in size as u32..last {
            added.entry(id).or_insert_with(|| AddedToken {
                content: format!("<|reserved_token_{id}|>"),
                special: true,
            });
        }
    }
    Ok(Tokens { own, added })
}

/// Tokens that are found before all else: control symbols, user-defined and added ones.
fn added(proto: &Proto, tokens: &Tokens, settings: &Settings) -> Vec<Value> {
    let mut found = BTreeMap::new();
    for (id, (piece, content)) in (0..).zip(proto.pieces.iter().zip(&tokens.own)) {
        let special = match piece.role {
            Role::Control | Role::Unknown => true,
            Role::UserDefined => false,
            _ => continue,
        };
        found.insert(id, (content.as_str(), special));
    }
    for (id, token) in &tokens.added {
        found.insert(*id, (&token.content, token.special));
    }
    let entry = |(id, (content, special)): (u32, (&str, bool))| {
        // A token with the sign for a space appears once spaces have become that sign. With a
        // prefix in the normalizer, the crate would put the prefix before the token, too.
        let late = content.contains(SPACE) && settings.prefix != Prefix::Always && !special;
        json!({
            "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": late, "special": special,
        })
    };
    found.into_iter().map(entry).collect()
}

fn model(proto: &Proto, tokens: &Tokens) -> Result<Value, String> {
    let unknown = proto.pieces.iter().position(|piece| piece.role == Role::Unknown);
    match proto.kind {
        UNIGRAM => {
            let pieces = tokens.own.iter().zip(&proto.pieces);
            let vocab: Vec<Value> =
                pieces.map(|(token, piece)| json!([token, f64::from(piece.score)])).collect();
            Ok(json!({
                "type": "Unigram", "unk_id": unknown, "vocab": vocab,
                "byte_fallback": proto.byte_fallback,
            }))
        }
        BPE => {
            if proto.pieces.iter().any(|piece| piece.role == Role::Unused) {
                return Err(
                    "it is a BPE model with unused pieces, which is not supported".to_owned()
                );
            }
            let vocab: Map<String, Value> =
                (tokens.own.iter().cloned()).zip((0_u32..).map(Value::from)).collect();
            Ok(json!({
                "type": "BPE", "dropout": null, "unk_token": unknown.map(|id| &tokens.own[id]),
                "continuing_subword_prefix": null, "end_of_word_suffix": null, "fuse_unk": true,
                "byte_fallback": proto.byte_fallback, "ignore_merges": false,
                "vocab": vocab, "merges": merges(&proto.pieces)?,
            }))
        }
        kind => Err(format!(
            "its model type is {kind}; unigram ({UNIGRAM}) and BPE ({BPE}) are supported"
        )),
    }
}

/// The pairs of pieces that join to a piece, in the order of their scores.
fn merges(pieces: &[Piece]) -> Result<Vec<[&str; 2]>, String> {
    let of_texts = |piece: &&Piece| matches!(piece.role, Role::Normal | Role::UserDefined);
    let work: usize = pieces.iter().map(|piece| piece.text.len() * piece.text.len()).sum();
    if work > MOST_WORK {
        return Err("its pieces are too long for their number".to_owned());
    }
    let ids: HashMap<&str, usize> = (pieces.iter().enumerate())
        .filter(|(_, piece)| of_texts(piece))
        .map(|(id, piece)| (piece.text.as_str(), id))
        .collect();
    let mut merges = Vec::new();
    for piece in pieces.iter().filter(of_texts) {
        let mut halves: Vec<(&str, &str)> = (piece.text.char_indices().skip(1))
            .map(|(at, _)| piece.text.split_at(at))
            .filter(|(left, right)| ids.contains_key(left) && ids.contains_key(right))
            .collect();
        halves.sort_by_key(|(left, right)| (ids[left], ids[right]));
        merges.extend(halves.into_iter().map(|(left, right)| (piece.score, left, right)));
        if merges.len() > MOST_PAIRS {
            return Err(format!("more than {MOST_PAIRS} pairs of its pieces merge"));
        }
    }
    let length = |text: &str| text.chars().count();
    merges.sort_by(|one, two| {
        let lengths = |merge: &(f32, &str, &str)| (length(merge.1), length(merge.2));
        (two.0.total_cmp(&one.0)).then_with(|| lengths(two).cmp(&lengths(one)))
    });
    Ok(merges.into_iter().map(|(_, left, right)| [left, right]).collect())
}

//! Rank files as tiktoken reads them: a token's bytes in base64 and its rank, a line each.
//!
//! The file holds neither the expression that cuts texts into words nor the special tokens. Both
//! follow from the family of models, which the file's name or the settings beside it tell. The rank
//! of a merged token is the rank of its bytes, and also its id.
//!
//! The families' expressions and special tokens are from `tiktoken_ext/openai_public.py` in
//! tiktoken 0.14, from `tokenization_qwen.py` of Qwen 1 and from `tokenization_kimi.py` of Kimi K2.

use std::collections::BTreeMap;
use std::path::Path;

use super::byte_level::{AddedTokens, ByteLevel, Spelling};
use super::class::Classes;
use super::merge::Merges;
use super::read::MOST_IDS;
use super::shape::TOKEN;
use super::siblings::{AddedToken, SiblingFiles};
use super::split::Pattern;
use super::table::{Merge, Pairs, Strings};
use super::{Facts, ParsedModel};
use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;

/// Most work on finding merges, in bytes that are looked at: a hundred times the need of the
/// largest file.
const MOST_WORK: usize = 1 << 31;
/// Most pairs that merge: ten times the largest file's number.
const MOST_PAIRS: usize = 1 << 24;

/// Models whose tokenizers differ in nothing but ranks.
#[derive(Clone, Copy)]
struct Family {
    pattern: Pattern,
    /// True if texts are brought into normalization form C.
    composes: bool,
    /// Special tokens for a number of ranks, for files without settings that name them.
    special: fn(u32) -> Vec<(u32, String)>,
}

const GPT2: Family = Family {
    pattern: Pattern::Gpt2,
    composes: false,
    special: |_| vec![(50_256, "<|endoftext|>".to_owned())],
};
const CL100K: Family = Family {
    pattern: Pattern::CL100K,
    composes: false,
    special: |_| {
        let tokens = [
            (100_257, "<|endoftext|>"),
            (100_258, "<|fim_prefix|>"),
            (100_259, "<|fim_middle|>"),
            (100_260, "<|fim_suffix|>"),
            (100_276, "<|endofprompt|>"),
        ];
        tokens.map(|(id, token)| (id, token.to_owned())).to_vec()
    },
};
const O200K: Family = Family {
    pattern: Pattern::O200K,
    composes: false,
    special: |_| {
        vec![(199_999, "<|endoftext|>".to_owned()), (200_018, "<|endofprompt|>".to_owned())]
    },
};
const HARMONY: Family = Family {
    special: |_| {
        let named = |id| match id {
            199_998 => "<|startoftext|>".to_owned(),
            199_999 => "<|endoftext|>".to_owned(),
            200_002 => "<|return|>".to_owned(),
            200_003 => "<|constrain|>".to_owned(),
            200_005 => "<|channel|>".to_owned(),
            200_006 => "<|start|>".to_owned(),
            200_007 => "<|end|>".to_owned(),
            200_008 => "<|message|>".to_owned(),
            200_012 => "<|call|>".to_owned(),
            _ => format!("<|reserved_{id}|>"),
        };
        (199_998..201_088).map(|id| (id, named(id))).collect()
    },
    ..O200K
};
const QWEN: Family = Family {
    pattern: Pattern::QWEN,
    composes: true,
    special: |ranks| {
        let named = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"].map(str::to_owned);
        let extra = (0..205).map(|number| format!("<|extra_{number}|>"));
        (ranks..).zip(named.into_iter().chain(extra)).collect()
    },
};
const KIMI: Family = Family {
    pattern: Pattern::KIMI,
    composes: false,
    special: |ranks| {
        (ranks..ranks + 256).map(|id| (id, format!("<|reserved_token_{id}|>"))).collect()
    },
};
const LLAMA3: Family =
    Family { pattern: Pattern::LLAMA3, composes: false, special: |_| Vec::new() };

/// Families by parts of their files' names.
const BY_NAME: [(&str, Family); 9] = [
    ("r50k_base", GPT2),
    ("p50k_base", GPT2),
    ("gpt2", GPT2),
    ("cl100k_base", CL100K),
    ("o200k_harmony", HARMONY),
    ("o200k_base", O200K),
    ("qwen", QWEN),
    ("kimi", KIMI),
    ("llama3", LLAMA3),
];
/// Families by parts of the names of tokenizers' classes and models' kinds.
const BY_CLASS: [(&str, Family); 5] =
    [("kimi", KIMI), ("moonshot", KIMI), ("qwen", QWEN), ("gpt_oss", HARMONY), ("llama", LLAMA3)];

/// True if it looks like a rank file: a first line of base64 and a number.
pub(super) fn is_ranks(bytes: &[u8]) -> bool {
    let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    first.len() <= 2 * TOKEN && line(first).is_some()
}

pub(super) fn read(
    name: &str,
    bytes: &[u8],
    siblings: &SiblingFiles,
) -> Result<ParsedModel<ByteLevel>, String> {
    let family = family(name, siblings)?;
    let tokens = tokens(bytes)?;
    let ranks = tokens.len() as u32;
    let mut added: BTreeMap<u32, AddedToken> = (family.special)(ranks)
        .into_iter()
        .map(|(id, content)| (id, AddedToken { content, special: true }))
        .collect();
    let stated = siblings.added()?;
    // Settings that name special tokens name all of them. Only Kimi's code reserves ids between.
    if !stated.is_empty() && family.pattern != Pattern::KIMI {
        added.clear();
    }
    added.extend(stated);
    made(&tokens, added, family)
}

fn family(name: &str, siblings: &SiblingFiles) -> Result<Family, String> {
    let stem = Path::new(name).file_name().and_then(|name| name.to_str());
    let stem = stem.unwrap_or(name).to_lowercase();
    let settings = siblings.settings()?;
    let classes = siblings.classes();
    let by_name = BY_NAME.iter().find(|(part, _)| stem.contains(part));
    let by_class = || {
        let holds = |part: &str| classes.iter().any(|class| class.contains(part));
        BY_CLASS.iter().find(|(part, _)| holds(part))
    };
    if let Some((_, family)) = by_name.or_else(by_class) {
        return Ok(*family);
    }
    // Kimi alone ships a file of that name; its settings would say so.
    if stem == "tiktoken.model" && classes.is_empty() && settings.is_empty() {
        return Ok(KIMI);
    }
    let names = BY_NAME.map(|(part, _)| part).join("`, `");
    Err(format!(
        "a tiktoken rank file does not contain its split pattern, and neither the file's name nor a `tokenizer_config.json` beside it identifies it; rename the file so that its name contains one of `{names}`, or give the model's `tokenizer.json`"
    ))
}

fn tokens(bytes: &[u8]) -> Result<BTreeMap<u32, Vec<u8>>, String> {
    let mut tokens = BTreeMap::new();
    for (number, text) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        let text = text.trim_ascii();
        if text.is_empty() {
            continue;
        }
        let Some((token, rank)) = line(text) else {
            return Err(format!("line {number} is not a token in base64, a space and a rank"));
        };
        if token.is_empty() || token.len() > TOKEN {
            return Err(format!(
                "line {number} has a token of {} bytes; from 1 to {TOKEN} are supported",
                token.len()
            ));
        }
        if rank >= MOST_IDS {
            return Err(format!("line {number} has rank {rank}; ranks are below {MOST_IDS}"));
        }
        if tokens.insert(rank, token).is_some() {
            return Err(format!("line {number} repeats rank {rank}"));
        }
    }
    Ok(tokens)
}

fn line(text: &[u8]) -> Option<(Vec<u8>, u32)> {
    let mut parts = text.trim_ascii().splitn(2, |byte| byte.is_ascii_whitespace());
    let token = BASE64.decode(parts.next()?).ok()?;
    let rank = std::str::from_utf8(parts.next()?.trim_ascii()).ok()?;
    Some((token, rank.parse().ok()?))
}

fn made(
    tokens: &BTreeMap<u32, Vec<u8>>,
    added: BTreeMap<u32, AddedToken>,
    family: Family,
) -> Result<ParsedModel<ByteLevel>, String> {
    let mut ids = Strings::with_capacity(tokens.len());
    for (id, token) in tokens {
        if let Some(other) = ids.set(token, *id) {
            return Err(format!("ranks {other} and {id} have the same bytes"));
        }
    }
    let mut bytes = [0; 256];
    for (byte, id) in (0..=255).zip(&mut bytes) {
        *id = ids
            .get(&[byte])
            .ok_or_else(|| format!("byte {byte} has no rank; each of the 256 bytes needs one"))?;
    }
    if let Some((id, token)) =
        added.iter().find(|(id, _)| **id >= MOST_IDS || tokens.contains_key(id))
    {
        return Err(format!(
            "special token `{}` has id {id}, which is a rank or above {MOST_IDS}",
            token.content
        ));
    }
    let pairs = pairs(tokens, &ids)?;
    let spelled = |id: u32| match (tokens.get(&id), added.get(&id)) {
        (Some(token), _) => token.as_slice(),
        (None, Some(token)) => token.content.as_bytes(),
        (None, None) => &[],
    };
    let last = |id: Option<&u32>| id.map_or(0, |id| id + 1);
    let base_size = last(tokens.keys().next_back());
    let vocabulary_size = base_size.max(last(added.keys().next_back()));
    let mut spelling = Spelling { bytes: Vec::new(), starts: vec![0] };
    let mut special = Vec::new();
    for id in 0..vocabulary_size {
        spelling.bytes.extend_from_slice(spelled(id));
        spelling.starts.push(spelling.bytes.len() as u32);
        let is_token =
            tokens.contains_key(&id) || added.get(&id).is_some_and(|token| !token.special);
        // An id that is no token has no text of its own either.
        if !is_token {
            special.push(id);
        }
    }
    let lengths = spelling.starts.windows(2).map(|range| range[1] - range[0]).collect();
    let found = AddedTokens::new(added.iter().map(|(id, token)| (token.content.as_str(), *id)))
        .ok_or("its special tokens are too long, or of too many lengths")?;
    let facts = Facts { vocabulary_size, base_size, added_tokens: 0, special, approximate: false };
    let model = ByteLevel {
        classes: Classes::read(),
        composes: family.composes,
        pattern: family.pattern,
        merges: Merges { bytes, pairs, lengths, whole: Some(ids) },
        added: found,
        around: Default::default(),
        spelling,
        memories: Default::default(),
        stands_alone: false,
    };
    Ok(ParsedModel { facts, model })
}

/// Every two tokens whose bytes together are a token.
fn pairs(tokens: &BTreeMap<u32, Vec<u8>>, ids: &Strings) -> Result<Pairs, String> {
    let work: usize = tokens.values().map(|token| token.len() * token.len()).sum();
    if work > MOST_WORK {
        return Err("its tokens are too long for their number".to_owned());
    }
    let mut found = Vec::new();
    for (rank, token) in tokens {
        for at in 1..token.len() {
            let (left, right) = token.split_at(at);
            if let (Some(left), Some(right)) = (ids.get(left), ids.get(right)) {
                found.push((left, right, *rank));
            }
        }
        if found.len() > MOST_PAIRS {
            return Err(format!("more than {MOST_PAIRS} pairs of its tokens merge"));
        }
    }
    let mut pairs = Pairs::with_capacity(found.len());
    for (left, right, rank) in found {
        pairs.set(left, right, Merge { rank, token: rank });
    }
    Ok(pairs)
}

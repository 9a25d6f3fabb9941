//! Tokenizer files, and the texts that are encoded with them.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokenizer::{ChatTemplate, Tokenizer};

use crate::bytes::first;

/// A tokenizer file of any format, or one of some small files, with a text: our tokenizer encodes
/// and decodes like the `tokenizers` crate, and its facts hold. Or a chat template, which ends.
pub fn tokenizer(data: &[u8]) {
    // Threads of the crate's own would cost more than they save with texts so short.
    tokenizers::utils::parallelism::set_parallelism(false);
    let (mode, data) = first(data);
    if mode == 6 {
        template(data);
        return;
    }
    if mode & 1 == 0 {
        let name = match mode {
            2 => "file.model",
            4 => "o200k_base.tiktoken",
            _ => "file",
        };
        if let Ok(tokenizer) = Tokenizer::parse(name, data) {
            facts(&tokenizer);
            encoded(&tokenizer, &["".to_owned(), "Hello wörld 123".to_owned()]);
        }
        return;
    }
    let (choices, text) = data.split_at(data.len().min(4));
    let Ok(text) = std::str::from_utf8(text) else { return };
    thread_local! {
        static BOTH: RefCell<BTreeMap<Vec<u8>, Option<Both>>> = const { RefCell::new(BTreeMap::new()) };
    }
    BOTH.with_borrow_mut(|known| {
        // Enough for a few at a time; there are thousands.
        if known.len() > 64 {
            known.clear();
        }
        let both = known
            .entry(Choices::canonical(choices))
            .or_insert_with_key(|choices| Both::read(&file(choices)));
        if let Some(both) = both {
            both.agree_on(text);
        }
    });
}

/// A chat template of a stranger renders, or fails; it does not take longer than its bounds allow.
fn template(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let roles = BTreeMap::from([("bos_token".to_owned(), "<s>".to_owned())]);
    if let Ok(template) = ChatTemplate::parse(text, &roles) {
        let messages = [json!({"role": "user", "content": "Hello <b> wörld"})];
        let tools = json!([{"type": "function", "function": {"name": "f", "parameters": {"a": [1.5, null]}}}]);
        for tools in [None, Some(&tools)] {
            let _ = template.render(&messages, tools, &serde_json::Map::new());
        }
    }
}

/// A file that is read by our code and by the crate.
struct Both {
    ours: Tokenizer,
    theirs: tokenizers::Tokenizer,
}

impl Both {
    fn read(file: &str) -> Option<Self> {
        let ours = Tokenizer::parse("file", file.as_bytes());
        let theirs = tokenizers::Tokenizer::from_bytes(file);
        // A file that we refuse is refused by the crate.
        assert!(ours.is_ok() || theirs.is_err());
        let both = Both { ours: ours.ok()?, theirs: theirs.ok()? };
        facts(&both.ours);
        assert_eq!(both.ours.facts().vocabulary_size as usize, both.theirs.get_vocab_size(true));
        assert_eq!(both.ours.facts().base_size as usize, both.theirs.get_vocab_size(false));
        Some(both)
    }

    fn agree_on(&self, text: &str) {
        let ours = encoded(&self.ours, &[text.to_owned()]);
        for (special, ours) in [false, true].into_iter().zip(ours) {
            let theirs = self.theirs.encode_fast(text, special);
            let theirs = theirs.ok().map(|encoding| encoding.get_ids().to_vec());
            assert_eq!(ours, theirs, "{text:?}");
            let Some(ids) = theirs else { continue };
            let theirs = self.theirs.decode(&ids, false).ok();
            let ours = self.ours.decode(std::slice::from_ref(&ids)).ok();
            assert_eq!(ours, theirs.map(|text| vec![text]), "{ids:?}");
        }
    }
}

/// The ids of the last text, without special tokens and with them.
fn encoded(tokenizer: &Tokenizer, texts: &[String]) -> [Option<Vec<u32>>; 2] {
    [false, true].map(|special| {
        let ids = tokenizer.encode(texts, special).ok()?;
        let counts = tokenizer.count(texts, special).expect("it can be encoded");
        assert!(ids.iter().map(Vec::len).eq(counts.iter().map(|count| *count as usize)));
        let _ = tokenizer.decode(&ids);
        ids.into_iter().last()
    })
}

fn facts(tokenizer: &Tokenizer) {
    let facts = tokenizer.facts();
    assert!(facts.special.is_sorted());
    assert!(facts.base_size <= facts.vocabulary_size);
    assert!(!facts.approximate);
}

/// Choices within a file, a byte each.
struct Choices;

const CHOICES: [u8; 4] = [6 * 2, 5 * 2, 4 * 3, 5];

impl Choices {
    /// The same choices as the smallest bytes that stand for them.
    fn canonical(bytes: &[u8]) -> Vec<u8> {
        let all = CHOICES.iter().enumerate();
        all.map(|(at, many)| bytes.get(at).copied().unwrap_or(0) % many).collect()
    }
}

/// Merges that make words of several scripts, and such as stand in each other's way.
const MERGES: [&str; 20] = [
    "Ġ Ġ", "Ġ t", "h e", "Ġt he", "i n", "in g", "Ġ a", "a b", "b c", "ab c", "a bc", "aa a",
    "a a", "' s", "1 2", "12 3", "Ã ©", "Ì ģ", "Ċ Ċ", "č Ċ",
];

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// A small byte-level tokenizer with these choices.
fn file(choices: &[u8]) -> String {
    let mut choices = choices.iter().copied().map(usize::from);
    let mut next = || choices.next().unwrap_or(0);
    let (splitter, normalization) = (next(), next());
    let (around, additions) = (next(), next());
    let letters = (0..=255).map(|byte| letter(byte).to_string());
    let mut vocab = serde_json::Map::new();
    for token in letters.chain(MERGES.map(|merge| merge.replace(' ', ""))) {
        let id = vocab.len();
        vocab.entry(token).or_insert(id.into());
    }
    let size = vocab.len();
    let normalized = additions == 3;
    let added = |id: usize, content: &str, special: bool| {
        json!({
            "id": id, "content": content, "single_word": false, "lstrip": additions == 4, "rstrip": false,
            "normalized": normalized, "special": special,
        })
    };
    let added = match additions {
        0 => vec![],
        1 => vec![added(size, "<s>", true)],
        _ => vec![
            added(size, "<s>", true),
            added(size + 1, "<s><s>", true),
            added(size + 2, "é|", false),
        ],
    };
    let byte_level = |splits: bool, prefix: bool| json!({"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": false, "use_regex": splits});
    let split_by = |regex: &str| {
        let split = json!({
            "type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": false
        });
        json!({"type": "Sequence", "pretokenizers": [split, byte_level(false, false)]})
    };
    let pre_tokenizer = match splitter % 6 {
        0 => byte_level(true, false),
        1 => split_by(LLAMA3),
        2 => split_by(QWEN),
        3 => split_by(GPT2),
        4 => byte_level(true, true),
        _ => split_by(r"\p{L}+|\s"),
    };
    let normalizer = match normalization % 5 {
        0 | 1 => Value::Null,
        2 => json!({"type": "NFC"}),
        3 => json!({"type": "NFKC"}),
        _ => json!({"type": "Lowercase"}),
    };
    let template = json!({
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [size], "tokens": ["<s>"]}},
    });
    let post_processor = match around % 4 {
        0 => Value::Null,
        1 => byte_level(true, true),
        2 => template,
        _ => json!({"type": "Sequence", "processors": [byte_level(true, true), template]}),
    };
    json!({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": added,
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": post_processor,
        "decoder": byte_level(true, true),
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "",
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": normalization >= 5,
            "ignore_merges": splitter >= 6,
            "vocab": vocab,
            "merges": &MERGES[..[20, 10, 0][around / 4]],
        },
    })
    .to_string()
}

/// The letter for a byte in such files: itself if visible, else a letter from U+0100 on.
fn letter(byte: u8) -> char {
    let seen = |byte: u8| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    if seen(byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|byte| !seen(*byte)).count() as u32;
    char::from_u32(0x100 + before).expect("there are 68")
}

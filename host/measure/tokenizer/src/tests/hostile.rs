//! Files that would make tokenizing wrong, endless or enormous, or the `tokenizers` crate panic.

use serde_json::{Value, json};

use super::{added, small, split, split_by};
use crate::Tokenizer;

fn word_level() -> Value {
    json!({
        "version": "1.0", "added_tokens": [], "normalizer": null, "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1, "?": 2}, "unk_token": "?"},
    })
}

fn byte_level() -> Value {
    let file = small("null", &split_by(split::Pattern::KNOWN[2].0), false, false);
    serde_json::from_str(&file).unwrap()
}

fn opened(file: &str) -> Result<Tokenizer, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    std::fs::write(&path, file).unwrap();
    Tokenizer::open(&path).map_err(|error| error.to_string())
}

/// A text of many tokens, a short text and an empty text.
fn texts() -> Vec<String> {
    vec!["a b ".repeat(300), "a".to_owned(), String::new()]
}

#[test]
fn truncation_and_padding_change_no_count() {
    let truncations = [
        json!({"max_length": 8, "stride": 0, "strategy": "LongestFirst", "direction": "Right"}),
        // The crate panics on a stride that is not shorter than the length.
        json!({"max_length": 8, "stride": 8, "strategy": "LongestFirst", "direction": "Left"}),
        json!({"max_length": 0, "stride": 9, "strategy": "OnlyFirst", "direction": "Right"}),
        json!("nonsense"),
    ];
    let padding = |to: u64| {
        json!({
            "strategy": {"Fixed": 4096}, "direction": "Right", "pad_to_multiple_of": to,
            "pad_id": 0, "pad_type_id": 0, "pad_token": "a",
        })
    };
    let paddings = [padding(8), padding(0), json!(3)];
    for plain in [word_level(), byte_level()] {
        let expected = opened(&plain.to_string()).unwrap();
        let counts = |tokenizer: &Tokenizer| {
            assert_eq!(tokenizer.facts(), expected.facts());
            [false, true].map(|special| {
                let ids = tokenizer.encode(&texts(), special).unwrap();
                (ids, tokenizer.count(&texts(), special).unwrap())
            })
        };
        let of_plain = counts(&expected);
        assert!(of_plain[0].1[0] >= 600 && of_plain[0].1[2] == 0);
        for key in ["truncation", "padding"] {
            let settings = match key {
                "truncation" => &truncations[..],
                _ => &paddings[..],
            };
            for setting in settings {
                let mut file = plain.clone();
                file[key] = setting.clone();
                let tokenizer = opened(&file.to_string()).unwrap();
                assert_eq!(counts(&tokenizer), of_plain, "{key} = {setting}");
            }
        }
    }
}

#[test]
fn dropout_changes_no_count() {
    let plain = byte_level();
    let mut dropping = plain.clone();
    dropping["model"]["dropout"] = json!(0.9);
    let text = ["the then thing abc abcabc".to_owned()];
    assert_eq!(
        opened(&dropping.to_string()).unwrap().encode(&text, true),
        opened(&plain.to_string()).unwrap().encode(&text, true),
    );
}

/// The file with a key of it changed.
fn with(mut file: Value, at: &str, value: Value) -> String {
    *file.pointer_mut(at).unwrap() = value;
    file.to_string()
}

fn nested(depth: usize, key: &str, inner: &str) -> String {
    let open = format!("{{\"type\":\"Sequence\",\"{key}\":[");
    open.repeat(depth) + inner + &"]}".repeat(depth)
}

fn template(pieces: usize, ids: usize) -> Value {
    json!({
        "type": "TemplateProcessing",
        "single": vec![json!({"SpecialToken": {"id": "?", "type_id": 0}}); pieces],
        "pair": [],
        "special_tokens": {"?": {"id": "?", "ids": vec![2; ids], "tokens": vec!["?"; ids]}},
    })
}

#[test]
fn a_hostile_file_is_an_error_that_names_it() {
    let replace = |content: String| json!({"type": "Replace", "pattern": {"String": "a"}, "content": content});
    // An index of no length (zeros, which are `A` in base64), and 6000 bytes of text behind it.
    let charsmap = "AAAAAAAA".to_owned() + &"Y2Nj".repeat(2_000);
    // A key of a tokenizer of words, and its value.
    let changes = vec![
        ("no words", "/model/vocab", json!({}), "its vocabulary is empty"),
        (
            "a long token",
            "/model/vocab",
            json!({"x".repeat(5_000): 0}),
            "a token has 5000 bytes, at most 4096 are supported",
        ),
        (
            "texts that double again and again",
            "/normalizer",
            json!({"type": "Sequence", "normalizers": vec![replace("aa".to_owned()); 40]}),
            "`normalizer` can make a text more than 1024 times longer",
        ),
        (
            "a letter that stands for a book",
            "/normalizer",
            replace("a".repeat(1 << 20)),
            "`normalizer` can make a text more than 1024 times longer",
        ),
        (
            "a character that stands for a page",
            "/normalizer",
            json!({"type": "Precompiled", "precompiled_charsmap": charsmap}),
            "`normalizer` can make a text more than 1024 times longer",
        ),
        (
            "bytes of bytes of bytes",
            "/pre_tokenizer",
            json!({
                "type": "Sequence",
                "pretokenizers": vec![json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true}); 40],
            }),
            "`pre_tokenizer` can make a text more than 1024 times longer",
        ),
        (
            "a book before every text",
            "/normalizer",
            json!({"type": "Prepend", "prepend": "a".repeat(1 << 20)}),
            "`normalizer` puts 1048576 bytes before a text, at most 64 are supported",
        ),
        (
            "decoding that doubles",
            "/decoder",
            json!({"type": "Sequence", "decoders": vec![replace("aa".to_owned()); 40]}),
            "`decoder` can make a text more than 1024 times longer",
        ),
        (
            "many components",
            "/normalizer",
            json!({"type": "Sequence", "normalizers": vec![json!({"type": "Lowercase"}); 100]}),
            "`normalizer` has more than 64 components, or more than 8 sequences in each other",
        ),
        (
            "a million tokens around each text",
            "/post_processor",
            template(1_000, 1_000),
            "`post_processor` puts more than 1024 tokens around every text",
        ),
        (
            "words that are compared for hours",
            "/model",
            json!({
                "type": "WordPiece", "vocab": {"a": 0, "[UNK]": 1}, "unk_token": "[UNK]",
                "continuing_subword_prefix": "##", "max_input_chars_per_word": 1_000_000_000,
            }),
            "`model.max_input_chars_per_word` is 1000000000, at most 512 are supported",
        ),
        (
            "a replacement that passes for a sequence",
            "/normalizer",
            json!({
                "type": "Replace", "pattern": {"String": "a"}, "content": "b".repeat(1 << 20), "normalizers": [],
            }),
            "`normalizer` can make a text more than 1024 times longer",
        ),
        (
            "an expression that is none",
            "/pre_tokenizer",
            json!({"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated", "invert": false}),
            "tokenizer.json",
        ),
        // The crate panics where it cuts a text into pieces of no length.
        (
            "pieces of nothing",
            "/pre_tokenizer",
            json!({"type": "FixedLength", "length": 0}),
            "the library that reads it failed: chunk size must be non-zero",
        ),
        // The crate panics where a template names a token that it does not list.
        (
            "a template of unknown tokens",
            "/post_processor",
            json!({
                "type": "TemplateProcessing", "pair": [], "special_tokens": {},
                "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}],
            }),
            "the library that reads it failed: ",
        ),
    ];
    let files = vec![
        ("empty", String::new(), "EOF"),
        ("no JSON", "{\"model\"".to_owned(), "EOF"),
        ("a list", "[]".to_owned(), "invalid type"),
        ("deep", "[".repeat(1 << 20), "tokenizer.json"),
        (
            "deep in a key",
            format!("{{\"normalizer\":{}{}}}", "[".repeat(1 << 20), "]".repeat(1 << 20)),
            "key `normalizer`: recursion limit",
        ),
        ("no model", "{\"version\":\"1.0\"}".to_owned(), "Model missing"),
        (
            "both of them",
            with(
                serde_json::from_str(&with(word_level(), "/normalizer", replace("a".repeat(600))))
                    .unwrap(),
                "/pre_tokenizer",
                json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true}),
            ),
            "`normalizer` and `pre_tokenizer` can make a text more than 1024 times longer",
        ),
        (
            "nested components",
            word_level().to_string().replace(
                "\"normalizer\":null",
                &format!("\"normalizer\":{}", nested(50, "normalizers", r#"{"type":"NFC"}"#)),
            ),
            "or more than 8 sequences in each other",
        ),
        (
            "the same where this crate reads the file",
            with(byte_level(), "/post_processor", template(1_000, 1_000)),
            "`post_processor` puts more than 1024 tokens around every text",
        ),
        (
            "a length of words that is there twice",
            with(
                word_level(),
                "/model",
                json!({
                    "type": "WordPiece", "vocab": {"a": 0, "[UNK]": 1}, "unk_token": "[UNK]",
                    "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                }),
            )
            .replace(
                "\"max_input_chars_per_word\":100",
                "\"max_input_chars_per_word\":1,\"max_input_chars_per_word\":1000000000",
            ),
            "key `model`: duplicate field `max_input_chars_per_word`",
        ),
        (
            "merges of nothing",
            with(byte_level(), "/model/merges", json!(["nothing here"])),
            "tokenizer.json",
        ),
        (
            "merges that are no pairs",
            with(byte_level(), "/model/merges", json!(["a", ["b"], ["c", "d", "e"]])),
            "tokenizer.json",
        ),
    ];
    let changes = changes.into_iter();
    let changed =
        changes.map(|(case, key, value, says)| (case, with(word_level(), key, value), says));
    for (case, file, says) in changed.chain(files) {
        match opened(&file) {
            Ok(_) => panic!("{case}: it was opened"),
            Err(error) => assert!(
                error.contains("tokenizer.json` cannot be read: ") && error.contains(says),
                "{case}: {error}"
            ),
        }
    }
}

#[test]
fn odd_files_that_can_be_used_are_used() {
    let added = |number: usize| {
        added(3 + number, &format!("<{}{number}>", "x".repeat(number % 100)), false, true)
    };
    let catastrophe = json!({
        "type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": false,
    });
    for (what, file) in [
        (
            "a thousand added tokens of many lengths",
            with(word_level(), "/added_tokens", (0..1_000).map(added).collect()),
        ),
        ("an expression that backtracks", with(word_level(), "/pre_tokenizer", catastrophe)),
        (
            "ids with gaps as wide as they can be",
            with(word_level(), "/model/vocab", json!({"a": 0, "b": u32::MAX, "?": 5})),
        ),
    ] {
        let tokenizer = opened(&file).unwrap_or_else(|error| panic!("{what}: {error}"));
        let text = ["a".repeat(200) + "b"];
        let ids = tokenizer.encode(&text, true).unwrap();
        assert!(!ids[0].is_empty(), "{what}");
        assert!(tokenizer.decode(&[vec![0, 7, u32::MAX]]).is_ok(), "{what}");
    }
}

#[test]
fn added_tokens_are_found_whatever_their_number() {
    // Many of them begin alike, and some are the beginning of others.
    let size = byte_level()["model"]["vocab"].as_object().unwrap().len();
    let contents: Vec<String> =
        (0..2_000).map(|number| format!("<c{number}>")).chain(["<c1".to_owned()]).collect();
    let added: Vec<Value> = (contents.iter().enumerate())
        .map(|(number, content)| added(size + number, content, false, false))
        .collect();
    let mut file = byte_level();
    file["added_tokens"] = added.into();
    file["post_processor"] = Value::Null;
    let both = super::Both::new(&file.to_string());
    let texts = ["<c1<c12><c1999><c2000><c1<c", "a<c0>b<c <c1>>", "<<c7>"];
    both.agree_on(&texts.map(str::to_owned));
}

#[test]
fn decoding_is_never_longer_than_predicted() {
    use proptest::prelude::*;
    let all = super::smalls();
    proptest!(ProptestConfig::with_cases(100), |(ids in prop::collection::vec(0..400u32, 0..60))| {
        for both in &all {
            for tokenizer in [&both.ours, &both.theirs] {
                let text = tokenizer.decode(std::slice::from_ref(&ids)).unwrap().remove(0);
                prop_assert!(text.len() as u64 <= 3 * tokenizer.decoded_bytes(&ids), "{ids:?}");
            }
        }
    });
}

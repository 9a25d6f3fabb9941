use super::*;

mod binary_form;
mod chats;
mod files;
mod golden;
mod hostile;

#[test]
fn the_stand_in_makes_every_byte_a_token() {
    let tokenizer = Tokenizer::bytes();
    assert_eq!(tokenizer.encode(&["aé".to_owned()], true).unwrap(), [[97, 195, 169]]);
    assert_eq!(tokenizer.decode(&[vec![97, 195, 169]]).unwrap(), ["aé"]);
    assert!(tokenizer.facts().approximate);
}

#[test]
fn an_error_names_the_file_that_is_no_tokenizer() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokenizer.json");
    std::fs::write(&path, "{\"model\": 3}").unwrap();
    let error = Tokenizer::open(dir.path()).err().unwrap().to_string();
    assert!(error.contains("tokenizer.json"), "{error}");
    assert!(error.contains("cannot be read"), "{error}");
}

/// The same file, read by this module, by this module from its binary form, and by the crate.
struct Both {
    ours: Tokenizer,
    cached: Tokenizer,
    theirs: Tokenizer,
}

impl Both {
    fn new(file: &str) -> Self {
        let named = |parsed| Tokenizer::new(String::new(), parsed, &SiblingFiles::default());
        let byte_level = |parsed: ParsedModel<ByteLevel>| {
            named(parsed.map(|model| Model::ByteLevel(Box::new(model))))
        };
        let ours = byte_level(read::read(file.as_bytes()).expect("a file of the kind"));
        let form = ours.binary().expect("a tokenizer with a binary form");
        let cached = byte_level(binary::read(&form).expect("the binary form"));
        assert_eq!(cached.facts(), ours.facts());
        let theirs = hugging_face::read(file.as_bytes()).unwrap();
        let theirs = named(theirs.map(|model| Model::HuggingFace(Box::new(model))));
        Both { ours, cached, theirs }
    }

    fn agree_on(&self, texts: &[String]) {
        for special in [false, true] {
            let ids = self.theirs.encode(texts, special).unwrap();
            let counts: Vec<u32> = ids.iter().map(|ids| ids.len() as u32).collect();
            for tokenizer in [&self.ours, &self.cached] {
                let ours = tokenizer.encode(texts, special).unwrap();
                for ((text, theirs), ours) in (texts.iter().zip(&ids)).zip(ours) {
                    assert_eq!(&ours, theirs, "of {text:?}");
                }
                assert_eq!(tokenizer.count(texts, special).unwrap(), counts);
            }
            self.agree_on_ids(&ids);
        }
    }

    fn agree_on_ids(&self, ids: &[Vec<u32>]) {
        let theirs = self.theirs.decode(ids).unwrap();
        for tokenizer in [&self.ours, &self.cached] {
            assert_eq!(tokenizer.decode(ids).unwrap(), theirs, "of {ids:?}");
        }
    }
}

/// Merges that make words of several scripts, and merges that exclude each other.
const MERGES: [&str; 30] = [
    "Ġ Ġ", "Ġ t", "h e", "Ġt he", "i n", "e r", "in g", "Ġ a", "a b", "b c", "ab c", "a bc",
    "aa a", "a a", "r e", "' s", "l l", "' ll", "1 2", "12 3", "Ã ©", "Å ¿", "Ì ģ", "e Ì", "Ċ Ċ",
    "č Ċ", "ä ¸", "ä¸ Ń", "aa aa", "n Ċ",
];

/// A tokenizer of that normalizer and pre-tokenizer, all bytes and a few merges.
fn small(normalizer: &str, pre_tokenizer: &str, whole: bool, normalized: bool) -> String {
    let letters = (0..=255).map(|byte| read::letter(byte).to_string());
    let joined = MERGES.map(|merge| merge.replace(' ', ""));
    let unreachable = ["thein".to_owned(), "12".to_owned(), "a b".to_owned()];
    let mut tokens: Vec<String> = Vec::new();
    for token in letters.chain(joined).chain(unreachable) {
        if !tokens.contains(&token) {
            tokens.push(token);
        }
    }
    let size = tokens.len();
    let vocab: serde_json::Map<String, serde_json::Value> =
        tokens.into_iter().zip((0..).map(Into::into)).collect();
    let added = |id: usize, content: &str, special: bool| {
        serde_json::json!({
            "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": normalized, "special": special,
        })
    };
    let mut file: serde_json::Value = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": [
            added(size, "<s>", true), added(size + 1, "<s><s>", true), added(size + 2, "</think>", false),
            added(size + 3, "é|", false),
        ],
        "post_processor": {
            "type": "Sequence",
            "processors": [
                {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": false, "use_regex": true},
                {
                    "type": "TemplateProcessing",
                    "single": [
                        {"SpecialToken": {"id": "<s>", "type_id": 0}},
                        {"Sequence": {"id": "A", "type_id": 0}},
                        {"SpecialToken": {"id": "</think>", "type_id": 0}},
                    ],
                    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                    "special_tokens": {
                        "<s>": {"id": "<s>", "ids": [size], "tokens": ["<s>"]},
                        "</think>": {"id": "</think>", "ids": [size + 2], "tokens": ["</think>"]},
                    },
                },
            ],
        },
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "",
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": whole,
            "vocab": vocab, "merges": MERGES,
        },
    });
    file["normalizer"] = serde_json::from_str(normalizer).unwrap();
    file["pre_tokenizer"] = serde_json::from_str(pre_tokenizer).unwrap();
    file.to_string()
}

fn split_by(regex: &str) -> String {
    serde_json::json!({
        "type": "Sequence",
        "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": false},
            {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false},
        ],
    })
    .to_string()
}

/// Every known pattern, with and without normalization, whole words and tokens that wait for the
/// normalizer.
fn smalls() -> Vec<Both> {
    let gpt2 = r#"{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true}"#;
    let mut files = vec![small("null", gpt2, false, true)];
    for (regex, _) in split::Pattern::KNOWN {
        files.push(small("null", &split_by(regex), true, false));
        files.push(small(r#"{"type": "NFC"}"#, &split_by(regex), false, false));
    }
    files.iter().map(|file| Both::new(file)).collect()
}

/// Pieces that patterns, normalization and added tokens treat differently.
fn piece() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    prop_oneof![
        4 => "[ \t\r\n\u{a0}\u{3000}]{1,4}",
        4 => "[a-c]{1,6}",
        2 => "[0-9٣Ⅷ½]{1,5}",
        2 => "[!.,<>|/é_-]{1,3}",
        3 => prop::sample::select(vec![
            "'s", "'S", "'ſ", "'T", "'re", "'RE", "'vE", "'ll", "'lL", "'d", "'M", "'", "''s", " 's", "the", "ing",
            " the", "<s>", "<s><s>", "<s", "</think>", "é|", "中", "中文", "e\u{301}", "\u{301}", "\u{301}\u{327}",
            "a\u{327}\u{301}", "각", "\u{1100}\u{1161}", "\u{1100}\u{1161}\u{11a8}", "\u{958}", "\u{340}",
            "\u{1f71}", "\u{2126}", "\u{fb1d}", "\u{1d15e}", "\u{16d67}", "\u{2f800}", "\u{fffd}", "\u{200d}",
            "\u{85}", "\u{2028}", "𐐀", "🦀", "\u{e0101}", "ﬁ", "ǅ", "ʰ",
        ]).prop_map(str::to_owned),
        2 => any::<char>().prop_map(String::from),
        1 => "\\PC{0,4}",
    ]
}

#[test]
fn encodes_and_decodes_as_the_crate_does() {
    use proptest::prelude::*;
    let all = smalls();
    let texts = prop::collection::vec(piece(), 0..24).prop_map(|pieces| pieces.concat());
    let ids = prop::collection::vec(prop_oneof![0..320u32, 60..70u32], 0..40);
    proptest!(ProptestConfig::with_cases(400), |(texts in prop::collection::vec(texts, 1..3), ids in ids)| {
        for both in &all {
            both.agree_on(&texts);
            both.agree_on_ids(std::slice::from_ref(&ids));
        }
    });
}

#[test]
fn long_words_merge_as_the_crate_merges_them() {
    use proptest::prelude::*;
    let all = smalls();
    proptest!(ProptestConfig::with_cases(60), |(text in "[abchet]{40,400}")| {
        for both in &all {
            both.agree_on(std::slice::from_ref(&text));
        }
    });
}

#[test]
fn every_character_is_read_as_the_crate_reads_it() {
    let nfc = r#"{"type": "NFC"}"#;
    let both = Both::new(&small(nfc, &split_by(split::Pattern::KNOWN[2].0), false, false));
    // Beside a letter, a digit and a space, which show its class. Later characters have no class.
    let every: Vec<char> = ('\0'..'\u{40000}').collect();
    let texts: Vec<String> = every
        .chunks(64)
        .map(|chars| chars.iter().flat_map(|c| ['e', *c, '1', *c, ' ']).collect())
        .collect();
    assert_eq!(both.ours.encode(&texts, false), both.theirs.encode(&texts, false));
}

#[test]
fn facts_are_the_crates() {
    for both in smalls() {
        assert_eq!(both.ours.facts(), both.theirs.facts());
    }
}

#[test]
fn unknown_settings_are_left_to_the_crate() {
    let fine = small("null", &split_by(split::Pattern::KNOWN[2].0), false, false);
    assert!(read::read(fine.as_bytes()).is_some());
    for (from, to) in [
        (r#""lstrip":false"#, r#""lstrip":true"#),
        (r#""dropout":null"#, r#""dropout":0.5"#),
        (r#""normalizer":null"#, r#""normalizer":{"type":"NFKC"}"#),
        (r#""end_of_word_suffix":null"#, r#""end_of_word_suffix":"</w>""#),
        (r#""invert":false"#, r#""invert":true"#),
        (r#"\\p{N}|"#, r#"\\p{N}{1,2}|"#),
        (r#""decoder":{"type":"ByteLevel""#, r#""decoder":{"type":"BPEDecoder""#),
        (r#""Ġ Ġ""#, r##""#version: 1""##),
    ] {
        let other = fine.replacen(from, to, 1);
        assert_ne!(other, fine, "{from} stands in the file");
        assert!(read::read(other.as_bytes()).is_none(), "{to}");
    }
}

/// The tokenizer of a real model, where the variable `RUNNER_TEST_TOKENIZER` names one of the kind.
#[test]
fn a_models_own_tokenizer_is_read_as_the_crate_reads_it() {
    use proptest::prelude::*;
    let Some(path) = std::env::var_os("RUNNER_TEST_TOKENIZER") else { return };
    let both = Both::new(&std::fs::read_to_string(path).unwrap());
    assert_eq!(both.ours.facts(), both.theirs.facts());
    let size = both.ours.facts().vocabulary_size;
    let runs: Vec<Vec<u32>> =
        (0..size).step_by(900).map(|start| (start..start + 1024).collect()).collect();
    both.agree_on_ids(&runs);
    both.agree_on(&both.ours.decode(&runs).unwrap());
    let texts = prop::collection::vec(piece(), 0..60).prop_map(|pieces| pieces.concat());
    let ids = prop::collection::vec(0..size + 10, 0..60);
    proptest!(ProptestConfig::with_cases(300), |(text in texts, ids in ids)| {
        both.agree_on(&[text]);
        both.agree_on_ids(std::slice::from_ref(&ids));
        both.agree_on(&both.theirs.decode(&[ids]).unwrap());
    });
}

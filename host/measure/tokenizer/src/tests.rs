use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use serde_json::{Map, Value, json};

use super::*;
use crate::{ChatError, ChatTemplate, Tokenizer};

mod binary_form;
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

fn added(id: usize, content: &str, normalized: bool, special: bool) -> Value {
    json!({
        "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
        "normalized": normalized, "special": special,
    })
}

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
    let vocab: Map<String, Value> = tokens.into_iter().zip((0..).map(Into::into)).collect();
    let added = |id: usize, content: &str, special: bool| added(id, content, normalized, special);
    let mut file = json!({
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
    json!({
        "type": "Sequence",
        "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": false},
            {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false},
        ],
    })
    .to_string()
}

/// Every known pattern, normalized or not, whole words, and tokens that await the normalizer.
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
fn facts_tokens_and_texts_are_the_crates() {
    use proptest::prelude::*;
    let all = smalls();
    for both in &all {
        assert_eq!(both.ours.facts(), both.theirs.facts());
    }
    let texts = prop::collection::vec(piece(), 0..24).prop_map(|pieces| pieces.concat());
    let ids = prop::collection::vec(prop_oneof![0..320u32, 60..70u32], 0..40);
    proptest!(ProptestConfig::with_cases(400), |(texts in prop::collection::vec(texts, 1..3), ids in ids)| {
        for both in &all {
            both.agree_on(&texts);
            both.agree_on_ids(std::slice::from_ref(&ids));
        }
    });
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

/// A folder with a tokenizer of words and these files.
fn with(files: &[(&str, &str)]) -> Tokenizer {
    let words = json!({
        "version": "1.0",
        "added_tokens": [added(3, "<s>", false, true)],
        "normalizer": null, "pre_tokenizer": {"type": "Whitespace"}, "decoder": null,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [3], "tokens": ["<s>"]}},
        },
        "model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1, "?": 2}, "unk_token": "?"},
    });
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tokenizer.json"), words.to_string()).unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    Tokenizer::open(folder.path()).unwrap()
}

fn user(content: &str) -> Vec<Value> {
    vec![json!({"role": "user", "content": content})]
}

fn rendered(tokenizer: &Tokenizer, tools: Option<&Value>) -> Result<String, ChatError> {
    tokenizer.render_chat(&user("x"), tools, &Map::new())
}

#[test]
fn templates_are_found_beside_the_tokenizer() {
    let own = ("chat_template.jinja", "own {{ messages[0].content }}");
    let settings = ("tokenizer_config.json", r#"{"chat_template": "settings"}"#);
    let list = (
        "tokenizer_config.json",
        r#"{"chat_template": [
            {"name": "default", "template": "default"}, {"name": "tool_use", "template": "tools"}
        ]}"#,
    );
    let older = ("chat_template.json", r#"{"chat_template": "older"}"#);
    let more = ("additional_chat_templates/tool_use.jinja", "more");
    let tools = json!([]);
    for (files, plain, with_tools) in [
        (&[own, settings, older][..], "own x", "own x"),
        (&[own, more], "own x", "more"),
        (&[settings, older], "settings", "settings"),
        (&[list, older], "default", "tools"),
        (&[older], "older", "older"),
    ] {
        let tokenizer = with(files);
        assert_eq!(rendered(&tokenizer, None).unwrap(), plain);
        assert_eq!(rendered(&tokenizer, Some(&tools)).unwrap(), with_tools);
    }
}

#[test]
fn a_missing_or_broken_template_fails_only_on_use() {
    for (files, says) in [
        (&[][..], "has no chat template; looked beside it for `chat_template.jinja`"),
        (
            &[("tokenizer_config.json", "{")],
            "chat template in `tokenizer_config.json`: `tokenizer_config.json`: EOF",
        ),
        (&[("tokenizer_config.json", r#"{"chat_template": 3}"#)], "is neither a text nor a list"),
        (
            &[("chat_template.jinja", "a\nb\n{% if %}")],
            "chat template in `chat_template.jinja`: syntax error: unexpected end of block",
        ),
        (
            &[(
                "tokenizer_config.json",
                r#"{"chat_template": [{"name": "rag", "template": "x"}]}"#,
            )],
            "but no template `default`",
        ),
    ] {
        let tokenizer = with(files);
        assert_eq!(tokenizer.count(&["a b".to_owned()], true).unwrap(), [3]);
        let error = rendered(&tokenizer, None).unwrap_err().to_string();
        assert!(error.contains(says), "{says}\n{error}");
    }
    assert!(matches!(Tokenizer::bytes().chat_template(), Err(ChatError::Absent { .. })));
}

#[test]
fn a_chat_has_the_tokens_of_its_text_and_no_more() {
    let template = "{{ bos_token }} {% for message in messages %}{{ message.content }} {% endfor %}{% if add_generation_prompt %}b{% endif %}";
    let tokenizer = with(&[
        ("chat_template.jinja", template),
        ("tokenizer_config.json", r#"{"bos_token": {"content": "<s>"}}"#),
    ]);
    let chat = user("a a");
    assert_eq!(tokenizer.render_chat(&chat, None, &Map::new()).unwrap(), "<s> a a b");
    assert_eq!(tokenizer.count_chat(&chat, None, &Map::new()).unwrap(), 4);
    let extra = json!({"add_generation_prompt": false, "bos_token": ""});
    assert_eq!(tokenizer.count_chat(&chat, None, extra.as_object().unwrap()).unwrap(), 2);
}

#[test]
fn arguments_of_calls_are_objects_to_the_template() {
    let tokenizer = with(&[(
        "chat_template.jinja",
        "{% for call in messages[0].tool_calls %}{{ call.function.arguments | tojson }};{% endfor %}",
    )]);
    let call = |arguments: Value| json!({"type": "function", "function": {"name": "f", "arguments": arguments}});
    let calls = json!([
        call(json!("{\"b\": 1, \"a\": [2.0]}")),
        call(json!({"x": null})),
        call(json!("")),
        call(json!("no JSON")),
        {"type": "function", "function": {"name": "f"}},
    ]);
    let messages = [json!({"role": "assistant", "content": null, "tool_calls": calls})];
    let expected = "{\"b\": 1, \"a\": [2.0]};{\"x\": null};{};\"no JSON\";{};";
    assert_eq!(tokenizer.render_chat(&messages, None, &Map::new()).unwrap(), expected);
}

#[test]
fn the_date_is_the_callers() {
    let tokenizer = with(&[("chat_template.jinja", "{{ strftime_now('%d %b %Y') }}")]);
    assert_eq!(rendered(&tokenizer, None).unwrap(), "26 Jul 2024");
    let tokenizer = tokenizer.dated(jiff::civil::date(2025, 12, 1).at(9, 0, 0, 0));
    assert_eq!(rendered(&tokenizer, None).unwrap(), "01 Dec 2025");
}

#[test]
fn templates_of_strangers_end() {
    let deep = format!("{}1{}", "(".repeat(5_000), ")".repeat(5_000));
    for (template, says) in [
        (
            "{% for a in range(90000) %}{% for b in range(90000) %}{% set c = a + b %}{% endfor %}{% endfor %}",
            "takes more than 20000000 steps",
        ),
        ("{% macro m(x) %}{{ m(x) }}{% endmacro %}{{ m(1) }}", "recursion limit"),
        (
            "{% set x = 'x' * 1000000 %}{% for a in range(100) %}{{ x }}{% endfor %}",
            "writes more than 64 MiB",
        ),
        ("{{ 'x' * 100000000000 }}", "repeated string is too large"),
        ("{{ messages | tojson(indent=1000000000) }}", "`indent` is not a number up to 64"),
        ("{{ missing | tojson }}", "`undefined` is no JSON"),
        ("{{ missing.deeper.still }}", "undefined"),
        ("{{ strftime_now('%') }}", "strftime_now: "),
        ("{% include 'other' %}", "other"),
        ("{{ raise_exception('No more than that.') }}", "refuses the messages: No more than that."),
    ] {
        let template = ChatTemplate::parse(template, &BTreeMap::new()).unwrap();
        let error = template.render(&user("x"), None, &Map::new()).unwrap_err();
        assert!(error.to_string().contains(says), "{says}\n{error}");
    }
    assert!(ChatTemplate::parse(&format!("{{{{ {deep} }}}}"), &BTreeMap::new()).is_err());
    assert!(ChatTemplate::parse(&"x".repeat(5 << 20), &BTreeMap::new()).is_err());
}

// Tests of files: the choice of a folder's file, and rank files and models of strangers that would
// make tokenizing wrong, endless or enormous.

fn golden(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/golden");
    std::fs::read(folder.join(name)).unwrap()
}

fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

fn size(folder: &tempfile::TempDir) -> Result<u32, String> {
    let tokenizer = Tokenizer::open(folder.path()).map_err(|error| error.to_string())?;
    Ok(tokenizer.facts().vocabulary_size)
}

#[test]
fn a_folders_first_tokenizer_is_read() {
    let words = json!({
        "version": "1.0", "added_tokens": [], "normalizer": null, "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1, "?": 2}, "unk_token": "?"},
    })
    .to_string();
    let (llama, t5, ranks) = (golden("llama.model"), golden("t5.model"), golden("small.tiktoken"));
    let json: (&str, &[u8]) = ("tokenizer.json", words.as_bytes());
    let model: (&str, &[u8]) = ("tokenizer.model", &llama);
    let spiece: (&str, &[u8]) = ("spiece.model", &t5);
    let settings: (&str, &[u8]) = (
        "tokenizer_config.json",
        br#"{"added_tokens_decoder": {"800": {"content": "<|end|>"}}, "tokenizer_class": "QWenTokenizer"}"#,
    );
    let lines = ranks.split(|byte| *byte == b'\n').count() as u32 - 1;
    assert_eq!(size(&folder(&[json, model, spiece])).unwrap(), 3);
    assert_eq!(size(&folder(&[model, spiece])).unwrap(), 420);
    assert_eq!(size(&folder(&[spiece, ("x.tiktoken", &ranks)])).unwrap(), 145);
    assert_eq!(size(&folder(&[settings, ("x.tiktoken", &ranks)])).unwrap(), 801);
    // Ranks under a model's name.
    assert_eq!(size(&folder(&[settings, ("tokenizer.model", &ranks)])).unwrap(), 801);
    // The names of Kimi's file and Qwen's tell their special tokens.
    assert_eq!(size(&folder(&[("tiktoken.model", &ranks)])).unwrap(), lines + 256);
    assert_eq!(size(&folder(&[("qwen.tiktoken", &ranks)])).unwrap(), lines + 208);
    assert_eq!(size(&folder(&[("o200k_harmony.tiktoken", &ranks)])).unwrap(), 201_088);
}

#[test]
fn errors_name_the_missing_or_unknown_part() {
    const SETTINGS: &str = "tokenizer_config.json";
    let ranks = golden("small.tiktoken");
    let ranks: &[u8] = &ranks;
    for (files, says) in [
        (
            &[("config.json", &b"{}"[..])][..],
            "holds none of `tokenizer.json`, `tokenizer.model`, `tiktoken.model`, `spiece.model`, `sentencepiece.bpe.model` and `*.tiktoken`",
        ),
        (
            &[("a.tiktoken", ranks), ("b.tiktoken", ranks)],
            "holds `a.tiktoken`, `b.tiktoken`; give the path of one",
        ),
        (
            &[("ranks.tiktoken", ranks)],
            "rename the file so that its name contains one of `r50k_base`",
        ),
        (
            &[("tiktoken.model", ranks), (SETTINGS, br#"{"tokenizer_class": "Other"}"#)],
            "rename the file so that",
        ),
        (
            &[("qwen.tiktoken", ranks), (SETTINGS, b"{\"added_tokens")],
            "`tokenizer_config.json`: EOF",
        ),
        (
            &[
                ("qwen.tiktoken", ranks),
                (SETTINGS, br#"{"added_tokens_decoder": {"x": {"content": "y"}}}"#),
            ],
            "`added_tokens_decoder.x` is no token with an id",
        ),
        (
            &[
                ("qwen.tiktoken", ranks),
                (SETTINGS, br#"{"added_tokens_decoder": {"7": {"content": "y"}}}"#),
            ],
            "special token `y` has id 7, which is a rank",
        ),
        (
            &[
                ("qwen.tiktoken", ranks),
                (SETTINGS, br#"{"added_tokens_decoder": {"4294967295": {"content": "y"}}}"#),
            ],
            "special token `y` has id 4294967295, which is a rank or above 4194304",
        ),
        (&[("cl100k_base.tiktoken", b"YQ== 0\nYg== 0\n")], "line 2 repeats rank 0"),
        (&[("cl100k_base.tiktoken", b"YQ== 0\nYQ== 1\n")], "ranks 0 and 1 have the same bytes"),
        (&[("cl100k_base.tiktoken", b"YQ== 0\n\nY 1\n")], "line 3 is not a token in base64"),
        (
            &[("cl100k_base.tiktoken", b"YQ== 4194304\n")],
            "line 1 has rank 4194304; ranks are below 4194304",
        ),
        (&[("cl100k_base.tiktoken", b"YQ== 0\n")], "byte 0 has no rank"),
        (&[("cl100k_base.tiktoken", b"")], "byte 0 has no rank"),
        (&[("tokenizer.model", b"")], "it holds no pieces"),
        (&[("tokenizer.model", b"\x0a\xff")], "it is cut off, or no SentencePiece model"),
        (&[("tokenizer.model", b"\x0a\x03\x0a\x01a\x12\x02\x18\x04")], "its model type is 4"),
        (&[("tokenizer.model", b"\x0a\x03\x0a\x01a\x0a\x03\x0a\x01a")], "it holds a piece twice"),
        (
            &[("tokenizer.model", b"\x0a\x03\x0a\x01a\x12\x03\xc0\x01\x01")],
            "`treat_whitespace_as_suffix`",
        ),
        (
            &[("tokenizer.model", b"\x0a\x08\x0a\x01a\x15\x00\x00\xc0\x7f")],
            "piece 0 has the score NaN",
        ),
        (&[("tokenizer.model", b"\x0a\x02\x18\x01")], "piece 0 has 0 bytes"),
    ] {
        let error = size(&folder(files)).expect_err(says);
        assert!(error.contains(says), "{says}\n{error}");
    }
}

#[test]
fn long_tokens_and_texts_take_little_time() {
    // Ranks of a letter alone: words of any length, of tokens that all merge with one another.
    let mut ranks = golden("small.tiktoken");
    let start = ranks.split(|byte| *byte == b'\n').count() as u32;
    for (rank, length) in (start..).zip(2..400) {
        let token = BASE64.encode(vec![b'q'; length]);
        ranks.extend_from_slice(format!("{token} {rank}\n").as_bytes());
    }
    let tokenizer = Tokenizer::parse("cl100k_base.tiktoken", &ranks).unwrap();
    let text = ["q".repeat(100_000)];
    let ids = tokenizer.encode(&text, false).unwrap();
    assert_eq!(tokenizer.decode(&ids).unwrap(), text);
    let llama = Tokenizer::parse("llama.model", &golden("llama.model")).unwrap();
    let text = ["ab".repeat(50_000)];
    let ids = llama.encode(&text, false).unwrap();
    assert_eq!(llama.decode(&ids).unwrap(), text);
}

#[test]
fn files_that_were_changed_are_read_or_refused() {
    use proptest::prelude::*;
    let files = ["llama.model", "gemma.model", "plain.model", "small.tiktoken"].map(golden);
    let names = ["a.model", "b.model", "c.model", "qwen.tiktoken"];
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6);
    let cut = prop::option::weighted(0.3, any::<prop::sample::Index>());
    proptest!(ProptestConfig::with_cases(150), |(which in 0..4_usize, changes in changes, cut in cut)| {
        let mut bytes = files[which].clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(tokenizer) = Tokenizer::parse(names[which], &bytes) {
            let texts = ["", "the  quick é 中 ab"].map(str::to_owned);
            if let Ok(ids) = tokenizer.encode(&texts, true) {
                prop_assert!(ids.iter().flatten().all(|id| *id < tokenizer.facts().vocabulary_size));
                let _ = tokenizer.decode(&ids);
            }
        }
    });
}

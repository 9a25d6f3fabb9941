//! Tests of files: the choice of a folder's file, and rank files and models of strangers that would
//! make tokenizing wrong, endless or enormous.

use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use serde_json::json;

use crate::Tokenizer;

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

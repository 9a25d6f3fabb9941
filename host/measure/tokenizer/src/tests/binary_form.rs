//! The binary form of a tokenizer: cut or damaged bytes make no tokenizer, or a consistent
//! one. All tests that read a file of the kind check that the form encodes as the file does.

use std::path::Path;

use super::{small, split_by};
use crate::split::Pattern;
use crate::{Model, Tokenizer, binary};

fn form(whole: bool) -> Vec<u8> {
    let (regex, _) = Pattern::KNOWN[2];
    let file = small("null", &split_by(regex), whole, false);
    let tokenizer = Tokenizer::parse("tokenizer.json", file.as_bytes()).unwrap();
    assert!(matches!(tokenizer.model, Model::ByteLevel(_)));
    tokenizer.binary().unwrap()
}

/// Uses every table of it.
fn used(form: &[u8]) -> bool {
    let Some(read) = binary::read(form) else { return false };
    let model = read.model;
    let text = format!("the thing's 123 \u{e9}| <s> {}", "abc ".repeat(40));
    let mut ids = Vec::new();
    model.encode(&text, true, |some| ids.extend_from_slice(some));
    ids.extend([0, 255, 256, u32::MAX]);
    model.decode(&ids);
    model.decoded_bytes(&ids);
    true
}

#[test]
fn a_cut_form_is_no_tokenizer() {
    let whole = form(true);
    assert!(used(&whole));
    for length in 0..whole.len() {
        assert!(!used(&whole[..length]), "{length}");
    }
    assert!(!used(&[&whole[..], b"\0"].concat()));
}

#[test]
fn a_damaged_form_is_consistent_or_no_tokenizer() {
    let whole = form(true);
    let mut taken = 0;
    for at in 0..whole.len() {
        for changed in [whole[at] ^ 1, whole[at] ^ 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = changed;
            taken += u32::from(used(&bytes));
        }
    }
    // Most changes turn an id into another id, which only a digest tells.
    assert!(taken > 0);
}

#[test]
fn a_tokenizer_of_several_files_has_no_binary_form() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/golden");
    for file in ["small.tiktoken", "llama.model"] {
        let bytes = std::fs::read(folder.join(file)).unwrap();
        let name = file.replace("small", "cl100k_base");
        let tokenizer = Tokenizer::parse(&name, &bytes).unwrap();
        assert!(tokenizer.binary().is_none(), "{file}");
    }
    assert!(Tokenizer::bytes().binary().is_none());
}

#[test]
fn files_beside_the_tokenizer_are_read_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (regex, _) = Pattern::KNOWN[2];
    let file = small("null", &split_by(regex), false, false);
    std::fs::write(folder.path().join("tokenizer.json"), file).unwrap();
    let opened = Tokenizer::open(folder.path()).unwrap();
    assert!(opened.chat_template().is_err());
    let form = opened.binary().unwrap();
    let template = folder.path().join("chat_template.jinja");
    std::fs::write(template, "{{ messages[0].content }}").unwrap();
    let again = Tokenizer::open_binary(folder.path(), &form).unwrap().unwrap();
    assert!(again.chat_template().is_ok());
    assert_eq!((again.name(), again.facts()), (opened.name(), opened.facts()));
    assert!(Tokenizer::open_binary(folder.path(), b"{}").unwrap().is_none());
    let file = Tokenizer::file(folder.path()).unwrap();
    assert_eq!(file, folder.path().join("tokenizer.json"));
    let nothing = tempfile::tempdir().unwrap();
    assert!(Tokenizer::open_binary(nothing.path(), &form).is_err());
}

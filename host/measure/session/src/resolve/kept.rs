//! Tokenizers between processes: the parsed `tokenizer.json` is kept beside the compiled plugins.
//! Reading it anew takes a fifth of a second, longer than all else before the first request.
//!
//! The key is the digest of the file and the build of the program. The tokenizer's crate owns the
//! form, and [`cache`] the folder.

use std::path::Path;

use cache::{Cache, Kind, Lookup};
use sha2::{Digest, Sha256};

use super::measured::measure;
use tokenizer::Tokenizer;

const TABLES: Kind =
    Kind { magic: b"runner tokenizer", name: "a tokenizer", source: "tokenizer", maker: "runner" };

/// Opens a tokenizer, if possible from the form cached under its file's digest.
pub(super) fn open(
    path: &Path,
    file: &Path,
    digest: Option<&str>,
    remarks: &mut Vec<String>,
) -> Result<Tokenizer, String> {
    let maker = Sha256::digest(tokenizer::BUILD.to_le_bytes()).into();
    // The loader of plugins reports a folder that is not used.
    let cache = Cache::opened(&TABLES, maker).ok().flatten();
    open_with(path, file, cache.as_ref().zip(digest), remarks)
}

fn open_with(
    path: &Path,
    file: &Path,
    cache: Option<(&Cache, &str)>,
    remarks: &mut Vec<String>,
) -> Result<Tokenizer, String> {
    let text = |cause: tokenizer::TokenizerError| cause.to_string();
    if let Some((cache, digest)) = cache {
        let wrong = match cache.find(digest) {
            Lookup::Whole(form) => match Tokenizer::open_binary(path, &form).map_err(text)? {
                Some(tokenizer) => return Ok(tokenizer),
                None => Some(cache.wrong(digest, "is not a tokenizer")),
            },
            Lookup::Nothing => None,
            Lookup::Wrong(what) => Some(what),
        };
        remarks.extend(wrong.map(|what| {
            format!("warning: the tokenizer `{}` was read anew: {what}", path.display())
        }));
    }
    let tokenizer = Tokenizer::open(path).map_err(text)?;
    if let Some((cache, digest)) = cache
        && let Some(form) = tokenizer.binary()
        // The file may have been replaced since its digest was taken.
        && measure(file).is_ok_and(|(_, now)| now == digest)
    {
        // If this fails, the next process reads the file too.
        let _ = cache.put(digest, &form);
    }
    Ok(tokenizer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::hex;

    /// All bytes and one merge.
    fn file() -> String {
        let shown = |byte: u8| match byte {
            0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => char::from(byte),
            _ => {
                let before =
                    (0..byte).filter(|b| !matches!(b, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff));
                char::from_u32(0x100 + before.count() as u32).unwrap()
            }
        };
        let mut vocab: serde_json::Map<String, serde_json::Value> =
            (0..=255).map(|byte| (shown(byte).to_string(), byte.into())).collect();
        vocab.insert("ab".to_owned(), 256.into());
        serde_json::json!({
            "version": "1.0", "added_tokens": [], "normalizer": null,
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
            "post_processor": null, "decoder": {"type": "ByteLevel"},
            "model": {"type": "BPE", "vocab": vocab, "merges": ["a b"]},
        })
        .to_string()
    }

    #[test]
    fn damaged_cache_entry_is_read_anew() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("tokenizer.json");
        std::fs::write(&path, file()).unwrap();
        let digest = hex(&Sha256::digest(file()));
        let cache = Cache::at(&home.path().join("kept"), &TABLES, [1; 32]);
        let cache = cache.unwrap().unwrap();
        let opened = || {
            let mut remarks = Vec::new();
            let opened = open_with(&path, &path, Some((&cache, &digest)), &mut remarks).unwrap();
            let ids = opened.encode(&["abc".to_owned()], false).unwrap();
            assert_eq!(ids, [[256, 99]]);
            remarks
        };
        assert_eq!(opened(), [""; 0]);
        let kept = match cache.find(&digest) {
            Lookup::Whole(kept) => kept,
            other => panic!("{other:?}"),
        };
        assert_eq!(opened(), [""; 0]);

        // The cached form is used, and not the file: this one has no merge.
        let other = file().replace("a b", "a c").replace("\"ab\"", "\"ac\"");
        std::fs::write(&path, &other).unwrap();
        assert_eq!(opened(), [""; 0]);
        std::fs::write(&path, file()).unwrap();

        let place = cache.path(&digest);
        let mut bytes = std::fs::read(&place).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        std::fs::write(&place, bytes).unwrap();
        let remarks = opened();
        assert_eq!(remarks.len(), 1);
        assert!(remarks[0].contains("was changed after it was written"), "{}", remarks[0]);
        assert_eq!(opened(), [""; 0], "it was replaced");

        cache.put(&digest, b"something else").unwrap();
        let remarks = opened();
        assert!(remarks[0].ends_with("is not a tokenizer"), "{}", remarks[0]);
        match cache.find(&digest) {
            Lookup::Whole(again) => assert_eq!(again, kept),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn changed_file_is_not_cached() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("tokenizer.json");
        std::fs::write(&path, file()).unwrap();
        let cache = Cache::at(&home.path().join("kept"), &TABLES, [1; 32]);
        let cache = cache.unwrap().unwrap();
        let digest = hex(&Sha256::digest("what it was"));
        open_with(&path, &path, Some((&cache, &digest)), &mut Vec::new()).unwrap();
        assert_eq!(cache.find(&digest), Lookup::Nothing);
    }
}

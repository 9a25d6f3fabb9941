//! Files that Arrow's writer made, in the encodings and compressions it has, against the same rows
//! as JSON lines. `files/make.py` makes them.

use std::fs;
use std::path::Path;
use std::rc::Rc;

use runner_plugin::File;
use runner_plugin::random::Python;
use serde_json::{Map, Value};

use super::Parquet;

fn bytes(name: &str) -> Vec<u8> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/files")).join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A file that returns at most this many bytes at once.
struct Pieces(Vec<u8>, usize);

impl File for Pieces {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, offset: u64, length: u32) -> Result<Vec<u8>, String> {
        let start = self.0.len().min(offset as usize);
        let end = self.0.len().min(start + self.1.min(length as usize));
        Ok(self.0[start..end].to_vec())
    }
}

fn open(bytes: Vec<u8>, piece: usize) -> Result<Parquet, String> {
    Parquet::open(Rc::new(Pieces(bytes, piece)))
}

fn rows(mut file: Parquet) -> Result<Vec<Map<String, Value>>, String> {
    let mut rows = Vec::new();
    while let Some((number, row)) = file.row()? {
        rows.push(row);
        assert_eq!(number, rows.len() as u64);
    }
    Ok(rows)
}

fn expected() -> Vec<Map<String, Value>> {
    let text = String::from_utf8(bytes("rows.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_encoding_and_compression_gives_the_rows() {
    let expected = expected();
    assert_eq!(expected.len(), 40);
    for name in ["snappy", "gzip-v2", "zstd-plain", "delta"] {
        for piece in [usize::MAX, 100] {
            let file = open(bytes(&format!("{name}.parquet")), piece).unwrap();
            assert_eq!(rows(file).unwrap(), expected, "{name}");
        }
    }
}

#[test]
fn unsupported_features_are_named() {
    let error = rows(open(bytes("brotli.parquet"), usize::MAX).unwrap()).unwrap_err();
    assert!(error.contains("compressed by Brotli; write it with Snappy"), "{error}");
    for (bytes, expected) in [
        (b"PAR1".to_vec(), "not a whole Parquet file"),
        (b"PAR1\x10\0\0\0PAR1".to_vec(), "metadata is damaged"),
        (b"PAR1\x00\0\0\0PARE".to_vec(), "encrypted"),
    ] {
        let Err(error) = open(bytes, usize::MAX) else { panic!("it must not open") };
        assert!(error.contains(expected), "{error}");
    }
}

/// Damage gives an error or other rows, and never a panic.
#[test]
fn damage_does_no_harm() {
    let mut random = Python::new(1);
    for name in ["snappy", "gzip-v2", "zstd-plain", "delta"] {
        let whole = bytes(&format!("{name}.parquet"));
        for _ in 0..150 {
            let mut damaged = whole.clone();
            for _ in 0..3 {
                let at = random.below(damaged.len() as u64) as usize;
                damaged[at] = random.below(256) as u8;
            }
            let Ok(mut file) = open(damaged, usize::MAX) else { continue };
            for _ in 0..100 {
                if !matches!(file.row(), Ok(Some(_))) {
                    break;
                }
            }
        }
    }
}

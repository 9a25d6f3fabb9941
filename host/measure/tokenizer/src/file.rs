//! Reading a tokenizer's files, within bounds.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Largest file that is read, in bytes: several times the largest tokenizer of any model.
pub(super) const FILE_BYTES: u64 = 256 << 20;

/// Reads a file; returns nothing if it has more bytes than that.
pub(super) fn bytes_of(file: &Path, most: u64) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let from = File::open(file)?;
    from.take(most + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

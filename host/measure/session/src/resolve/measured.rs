//! Files as they are named in a plan: their length and their digest.

use std::fs::File;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use model::hex;

/// A file's path, and its length and SHA-256.
pub(super) type Measured = (PathBuf, std::io::Result<(u64, String)>);

/// Length and SHA-256 of a file.
pub(super) fn measure(path: &Path) -> std::io::Result<(u64, String)> {
    let mut file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(std::io::ErrorKind::IsADirectory.into());
    }
    let mut hash = Sha256::new();
    let mut bytes = 0;
    let mut buffer = vec![0; 1 << 20];
    loop {
        let read = std::io::Read::read(&mut file, &mut buffer)?;
        if read == 0 {
            return Ok((bytes, hex(&hash.finalize())));
        }
        hash.update(&buffer[..read]);
        bytes += read as u64;
    }
}

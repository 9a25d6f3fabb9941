//! The digests of everything in a folder of packages, for `sha256sum --check`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::project::read;

/// The file that has them.
pub const FILE: &str = "SHA256SUMS";

/// The SHA-256 of bytes, in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Writes the digests of all files in a folder, in the order of their names.
///
/// # Errors
/// If the folder cannot be read or written.
pub fn write(folder: &Path) -> Result<()> {
    let mut lines = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_file() && name != FILE {
            lines.push((name.into_owned(), sha256(&read(&path)?)));
        }
    }
    lines.sort();
    let text: String = lines.iter().map(|(name, digest)| format!("{digest}  {name}\n")).collect();
    let path = folder.join(FILE);
    fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    #[test]
    fn every_file_but_the_list_itself_is_listed_by_name() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("b"), "").unwrap();
        fs::write(folder.path().join("a"), "abc").unwrap();
        for _ in 0..2 {
            super::write(folder.path()).unwrap();
            let text = fs::read_to_string(folder.path().join(super::FILE)).unwrap();
            assert_eq!(
                text,
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n\
                 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  b\n"
            );
        }
    }
}

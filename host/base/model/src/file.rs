//! An input file as a plan names it.

use std::path::PathBuf;

/// An input file.
#[model::apply(model::document!)]
#[derive(Eq)]
pub struct PlannedFile {
    /// Its path.
    pub path: PathBuf,
    /// Its length in bytes.
    pub bytes: u64,
    /// SHA-256 of its contents, in hexadecimal.
    pub digest: String,
}

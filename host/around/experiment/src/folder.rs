//! A lab's folder, read without its lab file: everything that its page is drawn from.

use std::path::Path;

use lab::walk::Kept;
use lab::{Lab, Results};
use session::Faults;

use crate::error::Error;
use crate::journal::OpenJournal;

/// The file in a lab's folder with the lab file and its scenarios.
pub const KEPT: &str = "lab.json";

/// Reads a lab's folder: the lab file as it was, its scenarios, and the results in the journal.
///
/// # Errors
/// If it is not a lab's folder, or cannot be read.
pub fn opened(folder: &Path) -> Result<(Kept, Lab, Results), Error> {
    let path = folder.join(KEPT);
    let wrong = |why: String| Error::NoLab {
        path: path.clone(),
        why,
    };
    let text = std::fs::read(&path).map_err(|cause| wrong(cause.to_string()))?;
    let kept: Kept = serde_json::from_slice(&text).map_err(|cause| wrong(cause.to_string()))?;
    let lab = Lab::parse(&kept.path, &kept.text).map_err(|error| Faults::of(&error))?;
    Ok((kept, lab, OpenJournal::peek(folder)?))
}

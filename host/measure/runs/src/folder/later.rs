//! Results of the answers: after the run, and by `runner score` later.

use super::kept::without_secret_configs;
use super::{ASSESSMENT, FolderError, RunFolder};
use crate::assessment::{Assessment, Later};
use serde::Serialize;

/// The scores that were given later.
const SCORES: &str = "scores.json";

/// The file of the agreement with the answers of a baseline.
const AGREEMENT: &str = "agreement.json";

impl RunFolder {
    /// Writes the agreement of the run's answers with a baseline's.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_agreement(&self, agreed: &impl Serialize) -> Result<(), FolderError> {
        self.write_json(AGREEMENT, agreed)
    }

    /// Reads the results of tokenizer and scorers over the answers after the run; empty if neither
    /// was used.
    ///
    /// # Errors
    /// If the file exists but cannot be read.
    pub fn assessment(&self) -> Result<Assessment, FolderError> {
        Ok(self.read_if_there(ASSESSMENT)?.unwrap_or_default())
    }

    /// Reads the later judgings, the oldest first.
    ///
    /// # Errors
    /// If the file exists but cannot be read.
    pub fn later(&self) -> Result<Vec<Later>, FolderError> {
        Ok(self.read_if_there(SCORES)?.unwrap_or_default())
    }

    /// Adds later scores. Nothing that the run wrote is changed.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn add_later(&self, later: Later) -> Result<(), FolderError> {
        let mut all = self.later()?;
        all.push(later);
        self.write_json(SCORES, &without_secret_configs(&all))
    }
}

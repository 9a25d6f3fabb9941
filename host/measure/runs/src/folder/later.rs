//! Results of the answers: after the run, and by `runner score` later.

use super::kept::without_secret_configs;
use super::{Document, FolderError, RunFolder};
use crate::assessment::{Assessment, Later};
use serde::Serialize;

/// The scores that were given later.
const SCORES: &str = "scores.json";

/// The file of the agreement with the answers of a baseline.
const AGREEMENT: &str = "agreement.json";

impl RunFolder {
    /// Writes the agreement of the run's answers with a baseline's.
    pub fn write_agreement(&self, agreed: &impl Serialize) -> Result<(), FolderError> {
        self.write_json(AGREEMENT, agreed)
    }

    /// Reads the results of tokenizer and scorers over the answers after the run; empty if neither
    /// was used.
    pub fn assessment(&self) -> Result<Assessment, FolderError> {
        Ok(self.read_if_there(Assessment::FILE)?.unwrap_or_default())
    }

    /// Reads the later judgings, the oldest first.
    pub fn later(&self) -> Result<Vec<Later>, FolderError> {
        Ok(self.read_if_there(SCORES)?.unwrap_or_default())
    }

    /// Adds later scores. Nothing that the run wrote is changed.
    pub fn add_later(&self, later: Later) -> Result<(), FolderError> {
        let mut all = self.later()?;
        all.push(later);
        self.write_json(SCORES, &without_secret_configs(&all))
    }
}

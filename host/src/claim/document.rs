//! A file with claims in it, whichever tool wrote it: told by its content, not by its name.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Claim, ReadError};

/// What a file holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// The file as given.
    pub file: String,
    /// Its results, in the order in which they stand there.
    pub claims: Vec<Claim>,
    /// What its tables and sentences say of them.
    pub quotes: Vec<Quote>,
}

/// A place outside the results where a page repeats figures of one: a row of its summary table, a
/// sentence that compares.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Quote {
    /// The line, from 1.
    pub line: usize,
    /// The words, shortened: `Generation Heavy Profile: Mean TPOT(ms): 0.12`.
    pub words: String,
    /// The figures, by the names of ours, in our units.
    pub figures: Vec<(String, f64)>,
}

/// Reads a file's content. Effects are the caller's: `name` is for messages only.
///
/// # Errors
/// All that is wrong with it, at once.
pub fn read(name: &str, content: &[u8]) -> Result<Document, Vec<ReadError>> {
    let _ = content;
    Err(vec![ReadError {
        file: name.to_owned(),
        place: None,
        what: "no result was found".into(),
        expected: "expected a text block or JSON of a known tool".into(),
    }])
}

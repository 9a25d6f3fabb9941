//! The mistakes of a file that is to be read as a claim.

/// The reason why a file, or a part of it, is not a known kind of result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {what}; {expected}", .place.as_deref().map(|place| format!(", {place}")).unwrap_or_default())]
pub struct ReadError {
    pub file: String,
    /// The place in the file: `line 3`, `benchmarks[1].metrics`.
    pub place: Option<String>,
    pub what: String,
    /// The expectation, and the advice.
    pub expected: String,
}

impl ReadError {
    /// The error of a whole file.
    pub(crate) fn of_file(file: &str, what: String, expected: &str) -> Self {
        let (file, expected) = (file.to_owned(), expected.to_owned());
        ReadError { file, place: None, what, expected }
    }
}

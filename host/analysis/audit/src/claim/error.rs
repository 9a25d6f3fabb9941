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

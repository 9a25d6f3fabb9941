//! What can be wrong with a file that is to be read as a claim.

/// Why a file, or a part of it, is not a known kind of result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {what}; {expected}", .place.as_deref().map(|place| format!(", {place}")).unwrap_or_default())]
pub struct ReadError {
    /// The file as given.
    pub file: String,
    /// Where in it: `line 3`, `benchmarks[1].metrics`.
    pub place: Option<String>,
    /// What was found.
    pub what: String,
    /// What was expected, and what to do.
    pub expected: String,
}

//! A name and its value, as a page's tables have them.

use serde::Serialize;

/// A name and its value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Pair {
    pub(super) name: String,
    pub(super) value: String,
}

pub(super) fn pair(name: &str, value: impl ToString) -> Pair {
    Pair {
        name: name.to_owned(),
        value: value.to_string(),
    }
}

/// Names with their measured values; leaves out those that were not measured.
pub(super) fn pairs<const N: usize>(given: [(&str, Option<String>); N]) -> Vec<Pair> {
    let known = given.into_iter();
    known
        .filter_map(|(name, value)| Some(pair(name, value?)))
        .collect()
}

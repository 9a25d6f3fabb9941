//! The assessment after a run, over its records: token counts of our own, and scores.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use result::summary::{Column, SilentScorer};
use scenario::plan::PlannedPlugin;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Mean {
    pub mean: f64,
    pub count: u64,
}

/// The results of tokenizer and scorers over the answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Assessment {
    /// Tokens of each measured answer with all its texts, by the exchange's index.
    pub retokenized: Column<u32>,
    #[serde(default, skip_serializing_if = "Column::is_empty")]
    pub reasoning: Column<u32>,
    /// Each score by its name, of each measured answer by the exchange's index.
    pub scores: BTreeMap<String, Column<f64>>,
    /// Answers that a score's scorer failed on or was not asked about, by the exchange's index.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unscored: BTreeMap<String, Vec<u64>>,
    pub means: BTreeMap<String, Mean>,
    /// Scores of the run as a whole.
    pub run_scores: BTreeMap<String, f64>,
    /// Scorers that gave no score.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<SilentScorer>,
    /// The errors of scorers, the first hundred.
    pub errors: Vec<String>,
    /// The number of failures beyond those.
    #[serde(default)]
    pub further_errors: u64,
}

const KEPT_ERRORS: usize = 100;

impl Assessment {
    /// Counts the times that tokenizer and scorers failed.
    pub fn error_count(&self) -> u64 {
        self.errors.len() as u64 + self.further_errors
    }

    pub fn failed(&mut self, error: String) {
        if self.errors.len() < KEPT_ERRORS {
            self.errors.push(error);
        } else {
            self.further_errors += 1;
        }
    }
}

/// Names for scores beside others: their own, or such as `exact-match.2` if it is taken.
pub fn free_names<'n>(
    names: impl Iterator<Item = &'n String>,
    taken: &BTreeSet<String>,
) -> BTreeMap<String, String> {
    let mut taken = taken.clone();
    let mut named = BTreeMap::new();
    for name in names {
        // A score of the answers and one of the run may have one name.
        if named.contains_key(name) {
            continue;
        }
        let mut free = name.clone();
        let mut number: u64 = 2;
        while taken.contains(&free) {
            free = format!("{name}.{number}");
            number += 1;
        }
        taken.insert(free.clone());
        named.insert(name.clone(), free);
    }
    named
}

/// Scores that were given to a saved run, beside the run's own scores (`runner score`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Later {
    pub at: String,
    pub scorers: Vec<PlannedPlugin>,
    /// Each score by its name, of each measured answer by the exchange's index.
    pub scores: BTreeMap<String, Column<f64>>,
    /// Answers that a score's scorer failed on or was not asked about, by the exchange's index.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unscored: BTreeMap<String, Vec<u64>>,
    /// Answers without a score because only some were drawn for it, by the exchange's index.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, Vec<u64>>,
    /// Scores of the run as a whole.
    pub run_scores: BTreeMap<String, f64>,
    /// Scorers that gave no score.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<SilentScorer>,
    /// The number of times that scorers failed.
    #[serde(default)]
    pub errors: u64,
}

impl Later {
    /// Builds the record of a later judging. A score whose name the run has already gets another:
    /// `exact-match.2`. Second, the old and the new name of each such score.
    pub fn new(
        at: String,
        scorers: Vec<PlannedPlugin>,
        judged: Assessment,
        taken: &BTreeSet<String>,
    ) -> (Self, Vec<(String, String)>) {
        let errors = judged.error_count();
        let names = judged.scores.keys().chain(judged.run_scores.keys());
        let named = free_names(names, taken);
        let new = |name: String| named.get(&name).cloned().unwrap_or(name);
        let later = Later {
            at,
            scorers,
            scores: judged.scores.into_iter().map(|(name, column)| (new(name), column)).collect(),
            unscored: judged.unscored.into_iter().map(|(name, all)| (new(name), all)).collect(),
            run_scores: judged.run_scores.into_iter().map(|(name, one)| (new(name), one)).collect(),
            silent: judged.silent,
            errors,
            left_out: BTreeMap::new(),
        };
        let renamed = named.into_iter().filter(|(old, new)| old != new);
        (later, renamed.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_scores_get_new_names() {
        let judged = Assessment {
            scores: ["exact-match", "sane"].map(|name| (name.to_owned(), [(0, 1.0)].into())).into(),
            unscored: [("exact-match".to_owned(), vec![1])].into(),
            run_scores: [("needle:4k".to_owned(), 0.5)].into(),
            ..Assessment::default()
        };
        let taken = ["exact-match", "exact-match.2", "needle:4k"].map(str::to_owned);
        let (later, renamed) = Later::new(String::new(), Vec::new(), judged, &taken.into());
        let names: Vec<&str> = later.scores.keys().map(String::as_str).collect();
        assert_eq!(names, ["exact-match.3", "sane"]);
        assert_eq!(later.unscored["exact-match.3"], [1]);
        assert_eq!(later.run_scores["needle:4k.2"], 0.5);
        assert_eq!(renamed.len(), 2);
    }
}

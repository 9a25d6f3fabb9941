//! What is found out after a run, over its records: token counts of our own, and scores.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use result::summary::{Column, Score};

/// What tokenizer and scorers made of the answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Assessment {
    /// Tokens of each measured answer, reasoning, tool calls and further answers included, by the exchange's index.
    pub retokenized: Column<u32>,
    /// Tokens of the reasoning alone, of answers that have any.
    #[serde(default, skip_serializing_if = "Column::is_empty")]
    pub reasoning: Column<u32>,
    /// Each score by its name, of each measured answer by the exchange's index.
    pub scores: BTreeMap<String, Column<f64>>,
    /// The mean of each score.
    pub means: BTreeMap<String, Score>,
    /// Scores of the run as a whole.
    pub run_scores: BTreeMap<String, f64>,
    /// What scorers failed with, the first hundred times; exchanges they failed on have no score of
    /// theirs.
    pub errors: Vec<String>,
    /// How often they failed beyond that.
    #[serde(default)]
    pub further_errors: u64,
}

/// How many errors are kept.
const KEPT_ERRORS: usize = 100;

impl Assessment {
    /// How often tokenizer and scorers failed.
    pub fn error_count(&self) -> u64 {
        self.errors.len() as u64 + self.further_errors
    }

    /// Notes that tokenizer or scorer failed.
    pub fn failed(&mut self, error: String) {
        if self.errors.len() < KEPT_ERRORS {
            self.errors.push(error);
        } else {
            self.further_errors += 1;
        }
    }
}

//! The expectations of a case, for clients that others judge: the task, the value of each
//! definition if the server is on time, and its value by the log so far.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::Count;
use crate::case::Case;
use crate::log::Log;
use crate::meaning::{Figure, Meaning, World};
use crate::types::{Asks, Part};

/// Values by definition, of each figure.
type ByFigure = BTreeMap<String, BTreeMap<String, f64>>;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Expected {
    pub name: String,
    pub part: Part,
    /// Its events, in a line.
    pub title: String,
    pub why: String,
    pub asks: Asks,
    pub figures: Vec<String>,
    /// The properties of the load that it judges.
    pub load: Vec<String>,
    /// The tolerance of times, as text.
    pub tolerance: String,
    /// The values of each figure by each definition, if the server is on time.
    pub on_time: ByFigure,
    /// The requests of the log so far.
    pub requests: usize,
    /// The values of each figure by each definition, over the log so far: a client's figures are to
    /// equal these. Successes are complete replies.
    pub by_log: ByFigure,
}

impl Expected {
    /// The expectations of a case, with the log so far, whose first `warm_up` requests do not
    /// count. The tokenizer puts no special tokens around a text.
    pub fn new(case: &Case, log: &Log, warm_up: usize, count: &Count<'_>) -> Self {
        let world = World { log, warm_up, asks: &case.asks, count, added: 0 };
        let mut by_log = ByFigure::new();
        for wanted in &case.judges.figures {
            for figure in wanted.each() {
                let values = by_log.entry(figure.to_string()).or_default();
                for word in Meaning::definitions(wanted.quantity) {
                    let meaning = wanted.quantity.meaning(word).ok();
                    let value = meaning.and_then(|meaning| meaning.value(figure, &world));
                    values.extend(value.map(|value| (word.to_owned(), value)));
                }
            }
        }
        Expected {
            name: case.name.clone(),
            part: case.part(),
            title: case.title.clone(),
            why: case.why.trim().to_owned(),
            asks: case.asks.clone(),
            figures: case.judges.figures.iter().map(Figure::to_string).collect(),
            load: case.judges.load.iter().map(ToString::to_string).collect(),
            tolerance: case.tolerance.to_string(),
            on_time: case.expected.clone(),
            requests: log.requests.len(),
            by_log,
        }
    }
}

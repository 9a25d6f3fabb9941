//! Scorers alone, with their inputs: for answers of an earlier run.

use std::sync::Arc;

use super::{Faults, Resolution, Selection, Source};
use model::plugin::Kind;
use model::timings::Timings;
use plugins::sandbox::{Grants, LogBook};
use plugins::scorer::Scorer;
use reader::ConfigTable;
use scenario::plan::PlannedPlugin;

pub struct Judges {
    pub scorers: Vec<Scorer>,
    /// The record of each in the plan.
    pub planned: Vec<PlannedPlugin>,
    pub log: LogBook,
    pub remarks: Vec<String>,
}

/// Resolves a scenario's scorers, at least one, and its tokenizer, and nothing else of it.
pub fn judges(source: &Source) -> Result<Judges, Faults> {
    let super::Ahead { plugins, tokenizer, .. } = super::read_ahead(source, &Timings::default());
    let mut resolution = Resolution::new(source, plugins);
    let mut scorers = resolution.scorers();
    for entry in &source.plugins {
        let scorer = resolution.named(Some(entry), Kind::Scorer, false);
        scorers.extend(scorer.map(|(plugin, place)| (plugin, place, ConfigTable::default())));
    }
    let tokenizer = Arc::new(resolution.tokenizer(tokenizer).tokenizer);
    let grants = Grants { tokenizer, ..resolution.grants_alone() };
    let chosen = Selection { backend: None, dataset: None, scorers };
    let configured = resolution.configured(chosen, &grants);
    let (scorers, planned) = resolution.opened(configured.scorers);
    let Resolution { faults, remarks, .. } = resolution;
    let judges = Judges { scorers, planned, log: grants.log, remarks };
    if faults.is_empty() { Ok(judges) } else { Err(faults) }
}

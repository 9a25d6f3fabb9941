//! Scorers alone, with their inputs: for answers of an earlier run.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::defaults::limits;
use super::{Faults, Resolution, Source, ahead, config_json};
use model::plugin::Kind;
use model::timings::Timings;
use plugins::load::Plugin;
use plugins::sandbox::{Grants, LogBook};
use plugins::scorer::Scorer;
use reader::{ConfigTable, Located, Place};
use scenario::plan::PlannedPlugin;

/// Scorers that are ready to judge.
pub struct Judges {
    /// The scorers, with their configurations.
    pub scorers: Vec<Scorer>,
    /// The record of each in the plan.
    pub planned: Vec<PlannedPlugin>,
    /// The log of the plugins.
    pub log: LogBook,
    /// Remarks for the user on the loading of plugins, one line each.
    pub remarks: Vec<String>,
}

/// Resolves a scenario's scorers and the tokenizer that it names, and nothing else of it. It names
/// at least one scorer.
///
/// # Errors
/// Everything that is wrong with them.
pub fn judges(source: &Source) -> Result<Judges, Faults> {
    let ahead::Ahead { plugins, tokenizer, .. } = ahead::read(source, &Timings::default());
    let mut resolution =
        Resolution { source, faults: Faults::default(), loaded: plugins, remarks: Vec::new() };
    let chosen = resolution.scorers();
    let counting = resolution.tokenizer(tokenizer);
    let log = LogBook::default();
    let grants = Grants {
        limits: limits(&source.scenario),
        log: log.clone(),
        files: Arc::new(BTreeMap::new()),
        tokenizer: Arc::new(counting.tokenizer),
        seed: 0,
    };
    let mut judges = Judges { scorers: Vec::new(), planned: Vec::new(), log, remarks: Vec::new() };
    for (plugin, place, config) in chosen {
        let scorer = Scorer::new(plugin, &config_json(&config), grants.clone());
        let planned = resolution.planned(scorer, place, &config, Scorer::describe, Scorer::plugin);
        let Some((scorer, planned)) = planned else {
            continue;
        };
        if let Err(error) = scorer.open() {
            resolution.faults.add(error, place);
        }
        judges.scorers.push(scorer);
        judges.planned.push(planned);
    }
    judges.remarks = resolution.remarks;
    if resolution.faults.is_empty() { Ok(judges) } else { Err(resolution.faults) }
}

impl<'s> Resolution<'s> {
    /// Loads the scorers that the source names, and no other plugins.
    fn scorers(&mut self) -> Vec<(Plugin, Option<&'s Place>, ConfigTable)> {
        let source = self.source;
        let mut scorers = Vec::new();
        for Located { value: scorer, .. } in source.scenario.scorers.iter().flatten() {
            if let Some((plugin, place)) = self.named(scorer.plugin.as_ref(), Kind::Scorer, false) {
                scorers.push((plugin, place, scorer.config.clone()));
            }
        }
        for entry in &source.plugins {
            if let Some((plugin, place)) = self.named(Some(entry), Kind::Scorer, false) {
                scorers.push((plugin, place, ConfigTable::default()));
            }
        }
        scorers
    }
}

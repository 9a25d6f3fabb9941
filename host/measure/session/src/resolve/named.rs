//! The plugins that a scenario names, and their configurations: all that can be checked of them
//! without its files, its tokenizer and a server.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::defaults::limits;
use super::tokens::Counting;
use super::{Faults, Resolution, Source, config_json};
use model::plugin::Kind;
use plugins::backend::Backend;
use plugins::dataset::Dataset;
use plugins::sandbox::{Grants, LogBook};
use plugins::scorer::Scorer;

/// Loads the plugins that a scenario names, and compares their configurations with their schemas. A
/// backend or a dataset that it leaves to flags is no mistake.
///
/// # Errors
/// If a plugin does not load, is of another kind, or refuses its configuration.
pub fn plugins_of(source: &Source) -> Result<(), Faults> {
    let mut resolution = Resolution {
        source,
        faults: Faults::default(),
        loaded: BTreeMap::new(),
        remarks: Vec::new(),
    };
    resolution.plugins_of();
    if resolution.faults.is_empty() { Ok(()) } else { Err(resolution.faults) }
}

impl Resolution<'_> {
    fn plugins_of(&mut self) {
        let scenario = &self.source.scenario;
        let grants = Grants {
            limits: limits(scenario),
            log: LogBook::default(),
            files: Arc::default(),
            tokenizer: Arc::new(Counting::bytes(Vec::new()).tokenizer),
            seed: 0,
        };
        if let Some(entry) = &scenario.backend.plugin
            && let Some((plugin, place)) = self.named(Some(entry), Kind::Backend, false)
        {
            let config = &scenario.backend.config;
            let backend = Backend::new(plugin, &config_json(config), grants.clone());
            self.planned(backend, place, config, Backend::describe, Backend::plugin);
        }
        if let Some(entry) = &scenario.dataset.plugin
            && let Some((plugin, place)) = self.named(Some(entry), Kind::Dataset, false)
        {
            let config = &scenario.dataset.config;
            let dataset = Dataset::new(plugin, &config_json(config), grants.clone());
            self.planned(dataset, place, config, Dataset::describe, Dataset::plugin);
        }
        for scorer in scenario.scorers.iter().flatten() {
            let scorer = &scorer.value;
            if let Some((plugin, place)) = self.named(scorer.plugin.as_ref(), Kind::Scorer, false) {
                let config = &scorer.config;
                let scorer = Scorer::new(plugin, &config_json(config), grants.clone());
                self.planned(scorer, place, config, Scorer::describe, Scorer::plugin);
            }
        }
    }
}

//! A backend alone, with the means to ask its target: for questions that need no dataset, and make
//! no run.

use std::collections::BTreeMap;

use super::defaults::timeouts;
use super::{Faults, Resolution, Source, config_json, remarks};
use model::connection::Timeouts;
use model::plugin::Kind;
use model::target::{Secrets, Target};
use plugins::backend::Backend;
use reader::Located;
use scenario::plan::Wiring;
use serde_json::Value;

/// A backend, its target, and the means to ask it.
pub(crate) struct Alone {
    pub(crate) backend: Backend,
    pub(crate) target: Target,
    /// Secrets of requests, which nobody else may see.
    pub(crate) secrets: Secrets,
    pub(crate) wiring: Wiring,
    pub(crate) timeouts: Timeouts,
    /// Remarks for the user: the time to load a plugin, and the secrets that the target gets.
    pub(crate) remarks: Vec<String>,
}

/// Resolves a scenario's backend and target, and nothing else of it.
pub(crate) fn alone(source: &Source) -> Result<Alone, Faults> {
    Resolution::new(source, BTreeMap::new()).alone()
}

impl Resolution<'_> {
    fn alone(mut self) -> Result<Alone, Faults> {
        let scenario = &self.source.scenario;
        if let Err(error) = scenario.validate() {
            let problems = error.problems().iter().cloned();
            self.faults.scenario.extend(problems);
        }
        let grants = self.grants_alone();
        let named = self.named(scenario.backend.plugin.as_ref(), Kind::Backend, false);
        let backend = named.and_then(|(plugin, place)| {
            let config = &scenario.backend.config;
            let backend = Backend::new(plugin, &config_json(config), grants);
            self.planned(backend, place, config, Backend::describe, Backend::plugin)
        });
        let backend = backend.map(|(backend, _)| backend);
        let http = self.http(backend.as_ref());
        let targets = self.targets(backend.as_ref());
        let to = targets.as_deref().unwrap_or_default();
        let (secrets, api_key, headers) = self.secrets(backend.as_ref(), to);
        let first = targets.as_ref().and_then(|targets| targets.first().cloned());
        match (backend, first, self.faults.is_empty()) {
            (Some(backend), Some(target), true) => {
                let sent = remarks::sent(&api_key, &headers, to);
                self.remarks.extend(sent);
                Ok(Alone {
                    backend,
                    target,
                    secrets,
                    wiring: self.wiring(http),
                    timeouts: timeouts(scenario),
                    remarks: self.remarks,
                })
            }
            _ => Err(self.faults),
        }
    }
}

/// A backend on each route that its key `route` may name, or as it is by default. Errors: all
/// mistakes of the source.
pub fn on_all_routes(source: &Source) -> Result<Vec<Backend>, Faults> {
    let first = alone(source)?.backend;
    let schema = first.describe().map(|info| info.config_schema).unwrap_or_default();
    let routes = choices(&schema, &schema["properties"]["route"]);
    let mut backends = vec![first];
    for route in routes {
        let mut source = source.clone();
        let route = Located::flag("--backend", route);
        source.scenario.backend.config.set("route", route);
        backends.push(alone(&source)?.backend);
    }
    Ok(backends)
}

/// The texts that a schema's rules allow.
fn choices(schema: &Value, rules: &Value) -> Vec<Value> {
    let target = rules["$ref"].as_str().and_then(|target| target.strip_prefix('#'));
    if let Some(rules) = target.and_then(|target| schema.pointer(target)) {
        return choices(schema, rules);
    }
    let listed = rules["enum"].as_array().into_iter().flatten().cloned();
    let parts = ["oneOf", "anyOf", "allOf"].iter().filter_map(|keyword| rules[keyword].as_array());
    let parts = parts.flatten().flat_map(|part| choices(schema, part));
    listed.chain(rules.get("const").cloned()).chain(parts).filter(Value::is_string).collect()
}

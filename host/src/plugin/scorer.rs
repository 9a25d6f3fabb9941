//! Calling a scorer: one instance over all exchanges of a run, in order.

use wasmtime::Store;
use wasmtime::component::{InstancePre, Linker, ResourceAny};

use super::bindings::scorer_world::exports::runner::plugin::scorer as wit;
use super::bindings::scorer_world::{ScorerPlugin, ScorerPluginPre};
use super::bindings::{log, tokenizer, types};
use super::error::PluginError;
use super::instance::{Configured, Opened, Reopen, World, words};
use super::load::Kind;
use super::sandbox::{Guest, GuestData, Limits};

pub use wit::{Count, CountSource, Exchange, Score};

/// A scorer plugin with its configuration: what instances are made from.
pub type Scorer = Configured<ScorerPlugin>;

/// An open scorer. A trap ends the instance; the next call gets a fresh one.
pub struct Judge(Opened<ScorerPlugin>);

impl World for ScorerPlugin {
    const KIND: Kind = Kind::Scorer;
    type Ready = ScorerPluginPre<Guest>;

    fn limit_ms(limits: &Limits) -> u64 {
        limits.scorer_call_ms
    }

    fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
        types::add_to_linker::<Guest, GuestData>(linker, |guest| guest)?;
        log::add_to_linker::<Guest, GuestData>(linker, |guest| guest)?;
        tokenizer::add_to_linker::<Guest, GuestData>(linker, |guest| guest)
    }

    fn ready(component: InstancePre<Guest>) -> wasmtime::Result<Self::Ready> {
        ScorerPluginPre::new(component)
    }

    fn instantiate(store: &mut Store<Guest>, ready: &Self::Ready) -> wasmtime::Result<Self> {
        ready.instantiate(store)
    }

    fn describe(&self, store: &mut Store<Guest>) -> wasmtime::Result<[String; 4]> {
        let said = self.runner_plugin_about().call_describe(store)?;
        Ok([said.name, said.version, said.summary, said.config_schema])
    }
}

impl Reopen for ScorerPlugin {
    fn open(
        &self,
        store: &mut Store<Guest>,
        from: &Configured<Self>,
    ) -> wasmtime::Result<Result<ResourceAny, types::Error>> {
        self.runner_plugin_scorer()
            .judge()
            .call_open(store, &from.config)
    }
}

impl Configured<ScorerPlugin> {
    /// A fresh instance, opened with the configuration.
    ///
    /// # Errors
    /// Where the plugin refuses the configuration, cannot be instantiated or traps.
    pub fn open(&self) -> Result<Judge, PluginError> {
        Opened::new(self).map(Judge)
    }
}

impl Judge {
    /// Scores of one exchange.
    ///
    /// # Errors
    /// Where the plugin says so, gives a value that is not finite, or traps.
    pub fn score(&mut self, exchange: &Exchange) -> Result<Vec<(String, f64)>, PluginError> {
        let scores = self.0.call("score", |world, store, judge| {
            let interface = world.runner_plugin_scorer().judge();
            interface.call_score(store, judge, exchange)
        })?;
        self.checked("score", scores)
    }

    /// Scores of the run as a whole.
    ///
    /// # Errors
    /// As [`Judge::score`].
    pub fn finish(&mut self) -> Result<Vec<(String, f64)>, PluginError> {
        let scores = self.0.call("finish", |world, store, judge| {
            let interface = world.runner_plugin_scorer().judge();
            interface.call_finish(store, judge)
        })?;
        self.checked("finish", scores)
    }

    fn checked(
        &self,
        call: &'static str,
        scores: Result<Vec<Score>, types::Error>,
    ) -> Result<Vec<(String, f64)>, PluginError> {
        let plugin = &self.0.from.plugin.asked;
        scores
            .map_err(|error| PluginError::said(plugin, error))?
            .into_iter()
            .map(|score| {
                if score.value.is_finite() && !score.name.is_empty() {
                    return Ok((words(&score.name), score.value));
                }
                Err(PluginError::Contract {
                    plugin: plugin.clone(),
                    call,
                    what: format!(
                        "the score `{}` is {}; scores have a name and a finite value",
                        words(&score.name),
                        score.value
                    ),
                })
            })
            .collect()
    }
}

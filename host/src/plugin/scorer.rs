//! Calling a scorer: one instance over all exchanges of a run, in order.

use wasmtime::component::ResourceAny;

use super::backend::expect_kind;
use super::bindings::scorer_world::exports::runner::plugin::scorer as wit;
use super::bindings::scorer_world::{ScorerPlugin, ScorerPluginPre};
use super::bindings::{log, tokenizer, types};
use super::error::PluginError;
use super::instance::{Info, Live, info, instantiate, words};
use super::load::{Kind, Plugin};
use super::sandbox::{Grants, Guest, GuestData, arm, trapped};

pub use wit::{Count, CountSource, Exchange, Score};

/// A scorer plugin with its configuration.
#[derive(Clone)]
pub struct Scorer {
    plugin: Plugin,
    config: String,
    grants: Grants,
}

/// An open scorer.
pub struct Judge {
    scorer: Scorer,
    live: Option<(Live<ScorerPlugin>, ResourceAny)>,
}

impl Scorer {
    /// Takes a loaded plugin as a scorer with this configuration, a JSON object.
    ///
    /// # Errors
    /// Where the plugin is of another kind.
    pub fn new(
        plugin: Plugin,
        config: &serde_json::Value,
        grants: Grants,
    ) -> Result<Self, PluginError> {
        expect_kind(&plugin, Kind::Scorer)?;
        Ok(Scorer {
            plugin,
            config: config.to_string(),
            grants,
        })
    }

    /// The plugin it is made from.
    pub fn plugin(&self) -> &Plugin {
        &self.plugin
    }

    fn limit(&self) -> u64 {
        self.grants.limits.scorer_call_ms
    }

    /// What the plugin says of itself.
    ///
    /// # Errors
    /// Where it cannot be instantiated or traps.
    pub fn describe(&self) -> Result<Info, PluginError> {
        let mut live = self.instantiate()?;
        let said = live
            .world
            .runner_plugin_about()
            .call_describe(&mut live.store)
            .map_err(|error| trapped(&live.store, "describe", self.limit(), &error))?;
        info(
            &self.plugin,
            &said.name,
            &said.version,
            &said.summary,
            &said.config_schema,
        )
    }

    /// A fresh instance, opened with the configuration.
    ///
    /// # Errors
    /// Where the plugin refuses the configuration, cannot be instantiated or traps.
    pub fn open(&self) -> Result<Judge, PluginError> {
        let mut judge = Judge {
            scorer: self.clone(),
            live: None,
        };
        judge.live()?;
        Ok(judge)
    }

    fn instantiate(&self) -> Result<Live<ScorerPlugin>, PluginError> {
        instantiate(
            &self.plugin,
            &self.grants,
            self.limit(),
            |linker| {
                types::add_to_linker::<Guest, GuestData>(linker, |guest| guest)?;
                log::add_to_linker::<Guest, GuestData>(linker, |guest| guest)?;
                tokenizer::add_to_linker::<Guest, GuestData>(linker, |guest| guest)
            },
            |store, component, linker| {
                ScorerPluginPre::new(linker.instantiate_pre(component)?)?.instantiate(store)
            },
        )
    }
}

impl Judge {
    fn live(&mut self) -> Result<(), PluginError> {
        if self.live.is_some() {
            return Ok(());
        }
        let scorer = &self.scorer;
        let mut live = scorer.instantiate()?;
        arm(&mut live.store, scorer.limit());
        let opened = live
            .world
            .runner_plugin_scorer()
            .judge()
            .call_open(&mut live.store, &scorer.config)
            .map_err(|error| trapped(&live.store, "open", scorer.limit(), &error))?
            .map_err(|error| PluginError::said(&scorer.plugin.asked, error))?;
        self.live = Some((live, opened));
        Ok(())
    }

    fn call<T>(
        &mut self,
        call: &'static str,
        make: impl FnOnce(
            wit::GuestJudge<'_>,
            &mut wasmtime::Store<Guest>,
            ResourceAny,
        ) -> wasmtime::Result<T>,
    ) -> Result<T, PluginError> {
        self.live()?;
        let limit = self.scorer.limit();
        let (live, judge) = self.live.as_mut().expect("made above");
        arm(&mut live.store, limit);
        let interface = live.world.runner_plugin_scorer().judge();
        match make(interface, &mut live.store, *judge) {
            Ok(value) => Ok(value),
            Err(error) => {
                let error = trapped(&live.store, call, limit, &error);
                self.live = None;
                Err(error)
            }
        }
    }

    /// Scores of one exchange.
    ///
    /// # Errors
    /// Where the plugin says so, gives a value that is not finite, or traps.
    pub fn score(&mut self, exchange: &Exchange) -> Result<Vec<(String, f64)>, PluginError> {
        let scores = self.call("score", |judge, store, handle| {
            judge.call_score(store, handle, exchange)
        })?;
        self.checked("score", scores)
    }

    /// Scores of the run as a whole.
    ///
    /// # Errors
    /// As [`Judge::score`].
    pub fn finish(&mut self) -> Result<Vec<(String, f64)>, PluginError> {
        let scores = self.call("finish", |judge, store, handle| {
            judge.call_finish(store, handle)
        })?;
        self.checked("finish", scores)
    }

    fn checked(
        &self,
        call: &'static str,
        scores: Result<Vec<Score>, types::Error>,
    ) -> Result<Vec<(String, f64)>, PluginError> {
        let plugin = &self.scorer.plugin.asked;
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

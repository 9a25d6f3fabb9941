//! Calling a dataset: one instance, which yields samples until it is empty.

use wasmtime::component::ResourceAny;

use super::backend::expect_kind;
use super::bindings::dataset_world::{DatasetPlugin, DatasetPluginPre};
use super::bindings::types::Sample;
use super::error::PluginError;
use super::instance::{Info, Live, info, instantiate, words};
use super::load::{Kind, Plugin};
use super::sandbox::{Grants, Guest, GuestData, arm, trapped};

/// A dataset plugin with its configuration.
#[derive(Clone)]
pub struct Dataset {
    plugin: Plugin,
    config: String,
    grants: Grants,
}

/// An open sequence of samples.
pub struct Samples {
    live: Live<DatasetPlugin>,
    generator: ResourceAny,
    limit_ms: u64,
    plugin: String,
}

impl Dataset {
    /// Takes a loaded plugin as a dataset with this configuration, a JSON object.
    ///
    /// # Errors
    /// Where the plugin is of another kind.
    pub fn new(
        plugin: Plugin,
        config: &serde_json::Value,
        grants: Grants,
    ) -> Result<Self, PluginError> {
        expect_kind(&plugin, Kind::Dataset)?;
        Ok(Dataset {
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
        self.grants.limits.dataset_call_ms
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

    /// Opens the sequence; `count` is how many samples will be measured, where that is known.
    ///
    /// # Errors
    /// Where the plugin refuses its configuration or an input, cannot be instantiated or traps.
    pub fn open(&self, seed: u64, count: Option<u64>) -> Result<Samples, PluginError> {
        let mut live = self.instantiate()?;
        arm(&mut live.store, self.limit());
        let generator = live
            .world
            .runner_plugin_dataset()
            .generator()
            .call_open(&mut live.store, &self.config, seed, count)
            .map_err(|error| trapped(&live.store, "open", self.limit(), &error))?
            .map_err(|error| PluginError::said(&self.plugin.asked, error))?;
        Ok(Samples {
            live,
            generator,
            limit_ms: self.limit(),
            plugin: self.plugin.asked.clone(),
        })
    }

    fn instantiate(&self) -> Result<Live<DatasetPlugin>, PluginError> {
        instantiate(
            &self.plugin,
            &self.grants,
            self.limit(),
            |linker| DatasetPlugin::add_to_linker::<Guest, GuestData>(linker, |guest| guest),
            |store, component, linker| {
                DatasetPluginPre::new(linker.instantiate_pre(component)?)?.instantiate(store)
            },
        )
    }
}

impl Samples {
    /// At most `limit` further samples to measure; an empty list ends the sequence.
    ///
    /// # Errors
    /// Where the plugin finds fault with its input, breaks its contract or traps.
    pub fn next(&mut self, limit: u32) -> Result<Vec<Sample>, PluginError> {
        arm(&mut self.live.store, self.limit_ms);
        let samples = self
            .live
            .world
            .runner_plugin_dataset()
            .generator()
            .call_next(&mut self.live.store, self.generator, limit)
            .map_err(|error| trapped(&self.live.store, "next", self.limit_ms, &error))?;
        self.checked("next", limit, samples)
    }

    /// At most `limit` samples whose prompts are never measured.
    ///
    /// # Errors
    /// As [`Samples::next`].
    pub fn spare(&mut self, limit: u32) -> Result<Vec<Sample>, PluginError> {
        arm(&mut self.live.store, self.limit_ms);
        let samples = self
            .live
            .world
            .runner_plugin_dataset()
            .generator()
            .call_spare(&mut self.live.store, self.generator, limit)
            .map_err(|error| trapped(&self.live.store, "spare", self.limit_ms, &error))?;
        self.checked("spare", limit, samples)
    }

    fn checked(
        &self,
        call: &'static str,
        limit: u32,
        samples: Result<Vec<Sample>, super::bindings::types::Error>,
    ) -> Result<Vec<Sample>, PluginError> {
        let samples = samples.map_err(|error| PluginError::said(&self.plugin, error))?;
        let contract = |what: String| PluginError::Contract {
            plugin: self.plugin.clone(),
            call,
            what: words(&what),
        };
        if samples.len() > limit as usize {
            return Err(contract(format!(
                "it gave {} samples, at most {limit} were asked for",
                samples.len()
            )));
        }
        for sample in &samples {
            if let Some(reference) = &sample.reference
                && let Err(cause) = serde_json::from_str::<serde::de::IgnoredAny>(reference)
            {
                return Err(contract(format!(
                    "the reference of sample `{}` is no JSON: {cause}",
                    sample.id
                )));
            }
        }
        Ok(samples)
    }
}

//! Calling a dataset: one instance, which yields samples until it is empty.

use wasmtime::Store;
use wasmtime::component::{InstancePre, Linker, ResourceAny};

use super::bindings::dataset_world::exports::runner::plugin::dataset as wit;
use super::bindings::dataset_world::{DatasetPlugin, DatasetPluginPre};
use super::bindings::types::{self, Sample};
use super::error::PluginError;
use super::instance::{Configured, Live, World, words};
use super::load::Kind;
use super::sandbox::{Guest, GuestData, Limits};

/// A dataset plugin with its configuration: what sequences are opened from.
pub type Dataset = Configured<DatasetPlugin>;

/// An open sequence of samples.
pub struct Samples {
    live: Live<DatasetPlugin>,
    generator: ResourceAny,
    plugin: String,
}

impl World for DatasetPlugin {
    const KIND: Kind = Kind::Dataset;
    type Ready = DatasetPluginPre<Guest>;

    fn limit_ms(limits: &Limits) -> u64 {
        limits.dataset_call_ms
    }

    fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
        DatasetPlugin::add_to_linker::<Guest, GuestData>(linker, |guest| guest)
    }

    fn ready(component: InstancePre<Guest>) -> wasmtime::Result<Self::Ready> {
        DatasetPluginPre::new(component)
    }

    fn instantiate(store: &mut Store<Guest>, ready: &Self::Ready) -> wasmtime::Result<Self> {
        ready.instantiate(store)
    }

    fn describe(&self, store: &mut Store<Guest>) -> wasmtime::Result<[String; 4]> {
        let said = self.runner_plugin_about().call_describe(store)?;
        Ok([said.name, said.version, said.summary, said.config_schema])
    }
}

impl Configured<DatasetPlugin> {
    /// Opens the sequence; `count` is how many samples will be measured, where that is known.
    ///
    /// # Errors
    /// Where the plugin refuses its configuration or an input, cannot be instantiated or traps.
    pub fn open(&self, seed: u64, count: Option<u64>) -> Result<Samples, PluginError> {
        let mut live = self.instantiate()?;
        let generator = live
            .call("open", |world, store| {
                let interface = world.runner_plugin_dataset().generator();
                interface.call_open(store, &self.config, seed, count)
            })?
            .map_err(|error| PluginError::said(&self.plugin.asked, error))?;
        Ok(Samples {
            live,
            generator,
            plugin: self.plugin.asked.clone(),
        })
    }
}

impl Samples {
    /// At most `limit` further samples to measure; an empty list ends the sequence.
    ///
    /// # Errors
    /// Where the plugin finds fault with its input, breaks its contract or traps.
    pub fn next(&mut self, limit: u32) -> Result<Vec<Sample>, PluginError> {
        let samples = self.call("next", |interface, store, generator| {
            interface.call_next(store, generator, limit)
        })?;
        self.checked("next", limit, samples)
    }

    /// At most `limit` samples whose prompts are never measured.
    ///
    /// # Errors
    /// As [`Samples::next`].
    pub fn spare(&mut self, limit: u32) -> Result<Vec<Sample>, PluginError> {
        let samples = self.call("spare", |interface, store, generator| {
            interface.call_spare(store, generator, limit)
        })?;
        self.checked("spare", limit, samples)
    }

    fn call<T>(
        &mut self,
        call: &'static str,
        make: impl FnOnce(
            wit::GuestGenerator<'_>,
            &mut Store<Guest>,
            ResourceAny,
        ) -> wasmtime::Result<T>,
    ) -> Result<T, PluginError> {
        let generator = self.generator;
        self.live.call(call, |world, store| {
            make(world.runner_plugin_dataset().generator(), store, generator)
        })
    }

    fn checked(
        &self,
        call: &'static str,
        limit: u32,
        samples: Result<Vec<Sample>, types::Error>,
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

//! Calling a dataset: one instance, which yields samples until the sequence ends.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use wasmtime::Store;
use wasmtime::component::{Linker, ResourceAny};

use super::awaited::exported;
use super::bindings::dataset_world::{DatasetPlugin, DatasetPluginPre};
use super::bindings::types::{self, Sample};
use super::error::{PluginError, clean_text};
use super::instance::{Configured, Live, World, by_bindings};
use super::sandbox::{Guest, GuestData};
use model::plugin::{Kind, Limits};

pub use super::bindings::dataset_world::exports::runner::plugin::dataset::{
    Amount, Remark, Treatment,
};

pub type Dataset = Configured<DatasetPlugin>;

/// The most remarks that are taken from a dataset: more are for nobody to read.
pub const REMARKS: usize = 64;

pub struct Samples {
    live: Live<DatasetPlugin>,
    generator: ResourceAny,
    plugin: String,
    /// A hash of each id that was returned: of a million, two collide once in forty million runs.
    given: HashSet<u64>,
    /// The id of the last sample; empty before the first one.
    last: String,
}

impl World for DatasetPlugin {
    const KIND: Kind = Kind::Dataset;

    by_bindings!(DatasetPluginPre<Guest>);

    fn limit_ms(limits: &Limits) -> u64 {
        limits.dataset_call_ms
    }

    fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
        DatasetPlugin::add_to_linker::<Guest, GuestData>(linker, |guest| guest)
    }
}

/// Calls a function of `generator`, as in the contract.
macro_rules! generator {
    ($world:ident, $store:ident, $name:literal, $call:ident($($argument:expr),*)) => {{
        let interface = $world.runner_plugin_dataset().generator();
        exported!($store, "dataset", $name, interface, $call($($argument),*))
    }};
}

impl Configured<DatasetPlugin> {
    /// Opens the sequence; `amount` is the number of measured samples.
    pub fn open(&self, seed: u64, amount: Amount) -> Result<Samples, PluginError> {
        let mut live = self.instantiate()?;
        let generator = live
            .call("open", |world, store| {
                let config = &self.config;
                generator!(world, store, "[static]generator.open", call_open(config, seed, amount))
            })?
            .map_err(|error| PluginError::from_plugin(&self.plugin.name, error))?;
        Ok(Samples {
            live,
            generator,
            plugin: self.plugin.name.clone(),
            given: HashSet::new(),
            last: String::new(),
        })
    }
}

impl Samples {
    /// At most `limit` further samples to measure; an empty list ends the sequence.
    pub fn next(&mut self, limit: u32) -> Result<Vec<Sample>, PluginError> {
        let samples = self
            .call("next", |world, store, handle| {
                generator!(world, store, "[method]generator.next", call_next(handle, limit))
            })
            .and_then(|samples| self.checked("next", limit, samples))
            .map_err(|error| error.after(&self.last))?;
        if let Some(last) = samples.last() {
            self.last.clone_from(&last.id);
        }
        Ok(samples)
    }

    /// At most `limit` samples whose prompts are never measured.
    pub fn spare(&mut self, limit: u32) -> Result<Vec<Sample>, PluginError> {
        let samples = self.call("spare", |world, store, handle| {
            generator!(world, store, "[method]generator.spare", call_spare(handle, limit))
        })?;
        self.checked("spare", limit, samples)
    }

    /// Returns the remarks on the input so far; at most [`REMARKS`].
    pub fn remarks(&mut self) -> Result<Vec<Remark>, PluginError> {
        let mut remarks = self.call("remarks", |world, store, handle| {
            generator!(world, store, "[method]generator.remarks", call_remarks(handle))
        })?;
        remarks.truncate(REMARKS);
        for remark in &mut remarks {
            remark.reason = clean_text(&remark.reason);
            remark.first = remark.first.as_deref().map(clean_text);
        }
        Ok(remarks)
    }

    /// The error for samples that break the contract in a way that only the caller sees.
    pub fn broken(&self, call: &'static str, what: &str) -> PluginError {
        PluginError::Contract { plugin: self.plugin.clone(), call, what: clean_text(what) }
    }

    fn call<T>(
        &mut self,
        call: &'static str,
        make: impl FnOnce(&DatasetPlugin, &mut Store<Guest>, ResourceAny) -> wasmtime::Result<T>,
    ) -> Result<T, PluginError> {
        let generator = self.generator;
        self.live.call(call, |world, store| make(world, store, generator))
    }

    fn checked(
        &mut self,
        call: &'static str,
        limit: u32,
        samples: Result<Vec<Sample>, types::Error>,
    ) -> Result<Vec<Sample>, PluginError> {
        let samples = samples.map_err(|error| PluginError::from_plugin(&self.plugin, error))?;
        if samples.len() > limit as usize {
            let count = samples.len();
            let what = format!("it returned {count} samples, but at most {limit} were requested");
            return Err(self.broken(call, &what));
        }
        for sample in &samples {
            let mut hasher = DefaultHasher::new();
            sample.id.hash(&mut hasher);
            if !self.given.insert(hasher.finish()) {
                return Err(self.broken(call, &format!(
                    "it returned two samples with the id `{}`; records and scores are keyed by id, so ids must be unique within a run",
                    sample.id
                )));
            }
            if let Some(reference) = &sample.reference
                && let Err(cause) = serde_json::from_str::<serde::de::IgnoredAny>(reference)
            {
                let what = format!("the reference of sample `{}` is not JSON: {cause}", sample.id);
                return Err(self.broken(call, &what));
            }
        }
        Ok(samples)
    }
}

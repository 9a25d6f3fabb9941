//! The trait of a dataset, and its adapter to the component model.

use std::cell::RefCell;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::bindings::dataset as wit;
use crate::inputs::{HostFiles, HostTokenizer};
use crate::{Amount, Error, Files, Remark, Sample, Tokenizer, config, export};

/// Bytes of samples after which a call had better return, so that its list stays within the host's
/// limit of 64 MiB with any last sample.
pub const ENOUGH: usize = 12 << 20;

/// Inputs that the host provides to a dataset.
pub struct Inputs {
    /// The files that the scenario names.
    pub files: Box<dyn Files>,
    /// The tokenizer of the model under test.
    pub tokenizer: Box<dyn Tokenizer>,
}

/// A sequence of samples made from a configuration and a seed.
pub trait Dataset: Sized + 'static {
    /// The user's configuration.
    type Config: DeserializeOwned + JsonSchema;

    /// Opens the sequence. The same arguments, files and tokenizer must give the same sequence on
    /// every machine. `amount` says how many samples the run will measure.
    fn open(config: Self::Config, seed: u64, amount: Amount, inputs: Inputs)
    -> Result<Self, Error>;

    /// At most `limit` further samples to measure. An empty list ends the sequence. Large ones are
    /// better returned few at a time: see [`ENOUGH`].
    fn next(&mut self, limit: u32) -> Result<Vec<Sample>, Error>;

    /// At most `limit` samples for requests that are not measured. Called before the first
    /// [`next`](Self::next), if at all. `next` must never return any of these prompts. The default
    /// takes the first samples without dependencies. The rest of a session that begins with a spare
    /// sample is lost: the SDK leaves out dependent samples before the first root of
    /// [`next`](Self::next).
    fn spare(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        let mut alone = Vec::new();
        while alone.len() < limit as usize {
            let left = limit - alone.len() as u32;
            let samples = self.next(left)?;
            // A dataset returns few where they are large, or where there are no more.
            let few = samples.len() < left as usize;
            let none = samples.is_empty();
            let roots = samples.into_iter().filter(|sample| sample.after.is_empty());
            alone.extend(roots);
            if none || (few && !alone.is_empty()) {
                break;
            }
        }
        Ok(alone)
    }

    /// Returns the changes to the input so far, by kind and reason: samples that were dropped,
    /// texts that were cut. They stand in the result, so that a run over half of its data says so.
    /// The default reports nothing.
    fn remarks(&self) -> Vec<Remark> {
        Vec::new()
    }
}

impl Amount {
    /// The number of samples that the run will measure, if it is known beforehand.
    pub fn samples(self) -> Option<u64> {
        match self {
            Amount::Samples(count) => Some(count),
            Amount::Sessions(_) | Amount::Unknown => None,
        }
    }

    /// The number of sessions that the run will measure, if it counts sessions.
    pub fn sessions(self) -> Option<u64> {
        match self {
            Amount::Sessions(count) => Some(count),
            Amount::Samples(_) | Amount::Unknown => None,
        }
    }
}

/// This many samples, or an unknown number.
impl From<Option<u64>> for Amount {
    fn from(samples: Option<u64>) -> Self {
        samples.map_or(Amount::Unknown, Amount::Samples)
    }
}

/// An opened dataset as the component's `generator`.
pub struct Generator<D>(RefCell<Sequence<D>>);

/// A dataset, and true if the rest of a spare sample's session may come next.
struct Sequence<D> {
    dataset: D,
    spared: bool,
}

impl<D: Dataset> Sequence<D> {
    fn next(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        loop {
            let mut samples = self.dataset.next(limit)?;
            if !self.spared || samples.is_empty() {
                return Ok(samples);
            }
            let first = samples.iter().position(|sample| sample.after.is_empty());
            samples.drain(..first.unwrap_or(samples.len()));
            if !samples.is_empty() {
                self.spared = false;
                return Ok(samples);
            }
        }
    }
}

impl<D: Dataset> wit::GuestGenerator for Generator<D> {
    fn open(config: String, seed: u64, amount: Amount) -> Result<wit::Generator, Error> {
        export::hook_panics();
        let inputs = Inputs { files: Box::new(HostFiles), tokenizer: Box::new(HostTokenizer) };
        let dataset = D::open(config::parse(&config)?, seed, amount, inputs)?;
        let sequence = Sequence { dataset, spared: false };
        Ok(wit::Generator::new(Generator(RefCell::new(sequence))))
    }

    fn next(&self, limit: u32) -> Result<Vec<Sample>, Error> {
        self.0.borrow_mut().next(limit)
    }

    fn spare(&self, limit: u32) -> Result<Vec<Sample>, Error> {
        let mut sequence = self.0.borrow_mut();
        sequence.spared = true;
        sequence.dataset.spare(limit)
    }

    fn remarks(&self) -> Vec<Remark> {
        self.0.borrow().dataset.remarks()
    }
}

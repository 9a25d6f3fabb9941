//! Samples on their way to a request: with their history, and with their place in the run.

use model::exchange::{History, Phase};
use model::units::Nanos;
use plugins::backend::{Earlier, Sample};

/// A sample whose prompt is whole, and the record of its composition.
pub struct ComposedSample {
    pub sample: Sample,
    /// State that the last reply of its conversation left for it.
    pub earlier: Option<Earlier>,
    /// The requests that it depends on, by their number.
    pub parents: Vec<u64>,
    /// The history in front of it.
    pub history: Option<History>,
    /// Instant at which the first of its dependencies released it.
    pub released: Option<Nanos>,
    /// Its place in its session; absent if it depends on nothing.
    pub lineage: Option<Lineage>,
}

/// The place of a request in its session.
pub struct Lineage {
    /// The number of the request that begins the session.
    pub root: u64,
    /// The name of the conversation that began its conversation, if one did.
    pub parent: Option<String>,
}

impl ComposedSample {
    /// A sample that depends on nothing.
    pub(crate) fn alone(sample: Sample) -> Self {
        ComposedSample {
            sample,
            earlier: None,
            parents: Vec::new(),
            history: None,
            released: None,
            lineage: None,
        }
    }

    pub(crate) fn parents(self, parents: impl Iterator<Item = u64>) -> Self {
        ComposedSample { parents: parents.collect(), ..self }
    }

    pub(crate) fn lineage(self, lineage: Lineage) -> Self {
        ComposedSample { lineage: Some(lineage), ..self }
    }

    pub(crate) fn released(self, released: Option<Nanos>) -> Self {
        ComposedSample { released, ..self }
    }
}

/// A sample to write a request for, with the other facts on record.
pub struct PendingRequest {
    /// The request's number.
    pub index: u64,
    /// Part of the run that it belongs to.
    pub phase: Phase,
    /// The sample, whose prompt is whole.
    pub composed: ComposedSample,
    /// Number of requests that depend on it, if it depends on none.
    pub descendants: u32,
    /// A number for the beginning of its prompt, where routing keys are made of it.
    pub beginning: Option<u64>,
}

impl PendingRequest {
    /// A sample that depends on nothing.
    pub(crate) fn alone(index: u64, phase: Phase, sample: Sample) -> Self {
        PendingRequest {
            index,
            phase,
            composed: ComposedSample::alone(sample),
            descendants: 0,
            beginning: None,
        }
    }

    /// A sample of a session.
    pub(crate) fn of_session(index: u64, composed: ComposedSample) -> Self {
        PendingRequest { index, phase: Phase::Measure, composed, descendants: 0, beginning: None }
    }
}

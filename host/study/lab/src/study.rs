//! The data that the parts of a lab exchange: its scenarios, its stages, and the next starts of
//! engines.

use crate::expand::{Trial, TrialId};
use crate::journal::RunKey;
use search::Load;
use search::sweep::At;

/// A scenario of a lab.
#[model::apply(model::document!)]
pub struct Scenario {
    /// Its name, which no other scenario of the lab has.
    pub name: String,
    /// A digest of its content: its text, its data, its plugins.
    pub content: String,
    /// The time of a run of it, in seconds, if the scenario states it.
    pub seconds: Option<f64>,
    /// Its load, if that is one number: scenarios that differ only in their load are points of one
    /// curve.
    pub load: Option<OfLoad>,
}

/// The load of a scenario.
#[model::apply(model::document!)]
pub struct OfLoad {
    /// The quantity that it is counted in.
    pub kind: Load,
    /// Its amount.
    pub at: At,
    /// A digest of the scenario's other settings: the same for scenarios that differ only in their
    /// load.
    pub besides: String,
}

/// One start of an engine, and the runs that it serves.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    pub trial: Trial,
    pub round: u32,
    /// The runs, in order; at least one.
    pub runs: Vec<RunKey>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// These starts, in this order. After each of them the results may ask for others.
    Run(Vec<Start>),
    Done(LabEnd),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabEnd {
    Complete,
    /// Its time or its money is spent.
    Budget,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PlannedStage {
    pub title: String,
    /// The trials; the others are compared with the first.
    pub trials: Vec<Trial>,
    pub rounds: u32,
}

/// The first attempt of a run.
pub(crate) fn key(trial: &TrialId, scenario: &Scenario, round: u32) -> RunKey {
    RunKey {
        trial: trial.clone(),
        scenario: scenario.name.clone(),
        content: scenario.content.clone(),
        round,
        attempt: 1,
    }
}

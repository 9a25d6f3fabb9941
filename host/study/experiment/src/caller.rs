//! The program that conducts a lab: it measures the runs, and passes the user's interrupts on.

use std::path::Path;

use lab::{Lab, RunKey, Trial};
use serde::{Deserialize, Serialize};
use session::{MeasuredRun, Source};

use crate::error::Error;
use crate::progress::Progress;
use crate::running::Running;

/// The program that conducts a lab.
pub trait Caller {
    /// The error that ends the lab.
    type Failure: From<Error>;

    /// Measures a scenario, in a folder of its own within this one. The run ends early if the
    /// engine dies. `order` describes the scenario to another process with the same lab file
    /// ([`Scenarios::ordered`](crate::Scenarios::ordered)). Fails if there is no result.
    fn measure(
        &self,
        scenario: &Source,
        order: &Order,
        within: &Path,
        engine: &Running,
    ) -> Result<MeasuredRun, NoResult<Self::Failure>>;

    /// Takes note of what happens.
    fn tell(&self, progress: Progress<'_>);

    /// True if the user wants to stop.
    fn is_interrupted(&self) -> bool;

    /// Sets the clean-up, with its message, for an interrupt that does not wait for the lab, or
    /// removes it.
    fn before_leaving(&self, clean_up: Option<Box<dyn FnOnce() -> String + Send>>);
}

/// A run of a lab, for a process that has the same lab file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Order {
    /// The trial's engine, by its position.
    engine: usize,
    /// Its model, by its position.
    model: usize,
    /// The row of each of the engine's dimensions.
    choice: Vec<usize>,
    run: RunKey,
}

impl Order {
    pub(crate) fn new(trial: &Trial, run: &RunKey) -> Self {
        let Trial { engine, model, ref choice, .. } = *trial;
        Order { engine, model, choice: choice.clone(), run: run.clone() }
    }

    /// The trial and the run; `None` if the lab has no such trial.
    pub(crate) fn read(&self, lab: &Lab) -> Option<(Trial, &RunKey)> {
        let described = lab.engines.get(self.engine)?;
        lab.models.get(self.model)?;
        let dimensions = &described.dimensions;
        let mut chosen = self.choice.iter().zip(dimensions);
        let is_there = self.choice.len() == dimensions.len()
            && chosen.all(|(row, dimension)| *row < dimension.rows.len());
        is_there.then_some(())?;
        let trial = lab.trial(self.engine, self.model, &self.choice)?;
        (trial.id == self.run.trial).then_some((trial, &self.run))
    }
}

/// A run without a result.
pub enum NoResult<F> {
    /// The run is at fault, for this reason; others may go well.
    Run(String),
    /// The machine or the input is at fault: nothing can be measured.
    Machine {
        /// The error that ends the lab.
        failure: F,
        /// The same as text, for the journal.
        message: String,
    },
}

//! The program that conducts a lab: it measures the runs, and passes the user's interrupts on.

use std::path::Path;

use session::{MeasuredRun, Source};

use crate::error::Error;
use crate::progress::Progress;
use crate::running::Running;

/// The program that conducts a lab.
pub trait Caller {
    /// The error that ends the lab.
    type Failure: From<Error>;

    /// Measures a scenario, in a folder of its own within this one. The run ends early if the
    /// engine dies. Fails if there is no result.
    fn measure(
        &self,
        scenario: &Source,
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

//! The program that has a lab conducted: it measures the runs, and knows the person in front of it.

use std::path::Path;

use session::{MeasuredRun, Source};

use crate::error::Error;
use crate::progress::Progress;
use crate::running::Running;

/// The program that has a lab conducted.
pub trait Caller {
    /// The error that ends the lab.
    type Failure: From<Error>;

    /// Measures a scenario, in a folder of its own within this one. The run ends early if the
    /// engine dies.
    ///
    /// # Errors
    /// If there is no result.
    fn measure(
        &self,
        scenario: &Source,
        within: &Path,
        engine: &Running,
    ) -> Result<MeasuredRun, Unmeasured<Self::Failure>>;

    /// Takes note of what happens.
    fn tell(&self, progress: Progress<'_>);

    /// True if the person wants to stop.
    fn is_interrupted(&self) -> bool;

    /// Sets the clean-up, with its message, for an interrupt that does not wait for the lab; none
    /// from here on without it.
    fn before_leaving(&self, does: Option<Box<dyn FnOnce() -> String + Send>>);
}

/// A run without a result.
pub enum Unmeasured<F> {
    /// The run is at fault, for this reason; others may go well.
    Run(String),
    /// The machine or the input is at fault: nothing can be measured.
    Machine {
        /// The error that ends the lab.
        failure: F,
        /// The same in words, for the journal.
        words: String,
    },
}

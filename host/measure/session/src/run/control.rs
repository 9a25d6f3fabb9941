//! The hold that the outside has on a run: its end, its threads, its display and its beginning.

use std::sync::Arc;

use load::pace::Signal;
use load::thread_group::ThreadGroup;
use model::clock::Clock;

use crate::gate::Gate;
use crate::live::Live;

/// The influence that the outside has on a run.
#[derive(Clone)]
pub struct Control {
    /// Stops the run, or aborts it.
    pub signal: Signal,
    /// The state of the run, for display.
    pub live: Arc<Live>,
    /// Starts the threads of the run.
    pub group: ThreadGroup,
    /// The gate at which the run waits for others that begin at the same instant; absent for a run
    /// by itself.
    pub gate: Option<Gate>,
}

impl Control {
    /// The clock of the run, which begins now unless it is shared.
    pub(crate) fn clock(&self) -> Clock {
        self.gate.as_ref().map_or_else(Clock::start, Gate::clock)
    }
}

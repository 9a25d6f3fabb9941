//! The user's side of every process of a fleet: settings and interrupts.

use std::path::PathBuf;
use std::time::Duration;

use crate::link::Timing;
use load::pace::Signal;
use session::Ending;

/// The settings of every process of a fleet.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The time for which rank 0 waits for the other processes.
    pub wait: Duration,
    /// The largest clock error at which the run may start.
    pub clock_error: Duration,
    /// The time for which a machine may be out of reach before it counts as lost.
    pub grace: Duration,
    /// The folder for temporary files of the fleet.
    pub scratch: PathBuf,
}

impl Settings {
    pub(super) fn timing(&self) -> Timing {
        Timing { grace: self.grace, ..Timing::default() }
    }
}

/// Interrupts of a process: the first stops sending, the second gives up the replies under way.
pub trait Interrupts {
    /// The number of interrupts that came.
    fn count(&self) -> u32;

    /// Interrupts this process, because another one stopped the fleet for this reason.
    fn interrupt(&self, why: &str);

    /// From now on an interrupt stops this load; an earlier one stops it at once.
    fn watch(&self, load: &Signal);

    /// Ends the load. Returns the time, and whether it was interrupted.
    fn over(&self) -> Ending;
}

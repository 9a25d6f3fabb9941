//! A terminal that conducts a lab: measures runs with their progress shown, and passes interrupts
//! on.

use std::path::Path;

use experiment::{Caller, NoResult, Order, Progress, Running};
use session::live::Snapshot;
use session::{MeasuredRun, Source};

use super::super::failure::{Exit, Failure};
use super::super::interrupt::Interrupt;
use super::super::machines::Machines;
use super::super::measure::{Overseer, Place};
use super::super::print::tell;
use super::super::watch::Displays;

pub(super) struct Terminal<'t> {
    pub machines: &'t Machines,
    pub displays: &'t Displays,
    pub interrupt: &'t Interrupt,
}

impl Caller for Terminal<'_> {
    type Failure = Failure;

    fn measure(
        &self,
        scenario: &Source,
        order: &Order,
        within: &Path,
        engine: &Running,
    ) -> Result<MeasuredRun, NoResult<Failure>> {
        let place = Place { within, repeat: None, overseer: Some(engine) };
        let made = self.machines.measured(scenario, order, place, self.displays, self.interrupt);
        self.interrupt.done();
        made.map_err(|failure| {
            let message = failure.message();
            match failure.exit {
                Exit::Input | Exit::Bug => NoResult::Machine { failure, message },
                _ if self.machines.are_incomplete() => NoResult::Machine { failure, message },
                _ => NoResult::Run(message),
            }
        })
    }

    fn tell(&self, progress: Progress<'_>) {
        tell(progress);
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.came()
    }

    fn before_leaving(&self, clean_up: Option<Box<dyn FnOnce() -> String + Send>>) {
        self.interrupt.before_leaving(clean_up);
    }
}

impl Overseer for Running {
    fn stops(&self, _: &Snapshot) -> bool {
        self.is_dead()
    }
}

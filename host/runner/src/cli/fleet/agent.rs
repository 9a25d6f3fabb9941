//! A process that sends a part of the requests: its command line, and its output.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use ::fleet::place::Place;
use ::fleet::run::{Agent, FleetError, Interrupts, Local, OVER};
use load::pace::Signal;
use load::transport::Dial;
use session::{CheckedRun, Ending, Source};

use super::super::dashboard::screen;
use super::super::failure::Failure;
use super::super::interrupt::Interrupt;
use super::super::measure::{environment, raise_descriptors, teller};
use super::super::print::tell;
use super::Fleet;

/// The outcome of taking part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// This process made its part of a run.
    Run,
    /// The study is over.
    Over,
}

/// Takes part in one run: joins, prepares, sends this process's part of the load, and hands
/// everything over. If its load ended early, rank 0 knows of the error. `local` is present in the
/// process of rank 0. `source` makes the scenario from rank 0's order; `None` ends the study.
pub(super) fn take_part(
    fleet: &Fleet,
    place: Place,
    local: Option<Local>,
    source: impl Fn(Option<&str>) -> Result<Option<Source>, Failure>,
    interrupts: &impl Interrupts,
) -> Result<Taken, Failure> {
    let is_local = local.is_some();
    let agent = Agent::join(&fleet.settings, place, fleet.token.clone(), local)?;
    let prepared = source(agent.order()).and_then(|source| {
        source.map(|source| prepare(fleet, &agent, source, is_local)).transpose()
    });
    let (checked, connect) = match prepared {
        Ok(Some(prepared)) => prepared,
        Ok(None) => {
            agent.decline(OVER.to_owned());
            return Ok(Taken::Over);
        }
        Err(failure) => {
            agent.decline(failure.message());
            return Err(failure);
        }
    };
    let environment = environment(raise_descriptors(&checked.plan));
    let handed = agent.make(checked, &connect, environment, interrupts);
    if let Err(FleetError::NotHandedOver { kept: Some(folder), .. }) = &handed {
        tell(format_args!("the records of this process are in {}", folder.display()));
        tell(format_args!(
            "to add them to the run, copy that folder to the machine of rank 0: runner fleet merge RUN {}",
            folder.file_name().unwrap_or_default().display()
        ));
    }
    handed?;
    Ok(Taken::Run)
}

/// Prepares this process's slice of the run, and checks the target.
fn prepare(
    fleet: &Fleet,
    agent: &Agent,
    source: Source,
    is_local: bool,
) -> Result<(CheckedRun, Dial), Failure> {
    let resolved = agent.resolve(source)?;
    if !is_local {
        // Each machine has its own keys and their targets; rank 0 has printed its own already.
        fleet.remark(&resolved.remarks);
    }
    let connect = resolved.dial()?;
    let checked = resolved.check_now(&connect.afresh(), teller())?;
    Ok((checked, connect))
}

/// The interrupts of one run: the user's, the fleet's, and the orders of an overseer.
pub(super) struct RunInterrupts<'i> {
    user: &'i Interrupt,
    /// True if the fleet ends this run alone, because rank 0 decides on the next one.
    is_one_of_several: bool,
    /// Interrupts by the fleet that end this run alone.
    fleet: AtomicU32,
    overseer: AtomicU32,
    load: Mutex<Option<Signal>>,
}

impl<'i> RunInterrupts<'i> {
    pub(super) fn new(user: &'i Interrupt, is_one_of_several: bool) -> Self {
        let (fleet, overseer) = Default::default();
        RunInterrupts { user, is_one_of_several, fleet, overseer, load: Mutex::default() }
    }

    /// The run's overseer stops it: once for no more requests, twice for no more replies.
    pub(super) fn order(&self, times: u32) {
        self.raise(&self.overseer, times);
    }

    pub(super) fn is_overseen(&self) -> bool {
        self.overseer.load(Ordering::Acquire) > 0
    }

    pub(super) fn ending(&self) -> Ending {
        Ending { at: jiff::Timestamp::now().to_string(), interrupted: self.count() > 0 }
    }

    fn raise(&self, count: &AtomicU32, times: u32) {
        if count.fetch_max(times, Ordering::AcqRel) < times {
            self.stop(times);
        }
    }

    fn stop(&self, times: u32) {
        let load = self.load.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let Some(load) = &*load else { return };
        if times > 1 { load.abort() } else { load.stop() }
    }
}

impl Interrupts for RunInterrupts<'_> {
    fn count(&self) -> u32 {
        let [fleet, overseer] = [&self.fleet, &self.overseer].map(|of| of.load(Ordering::Acquire));
        self.user.count().max(fleet).max(overseer)
    }

    fn interrupt(&self, why: &str) {
        if self.is_one_of_several {
            return self.raise(&self.fleet, self.count() + 1);
        }
        // The dashboard of rank 0 shows it.
        if !screen::is_up() {
            tell(format_args!("stopped by the fleet: {why}"));
        }
        self.user.raise();
    }

    fn watch(&self, load: &Signal) {
        self.user.watch(load);
        *self.load.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(load.clone());
        let times = self.count();
        if times > 0 {
            self.stop(times);
        }
    }

    fn over(&self) -> Ending {
        self.user.done();
        self.ending()
    }
}

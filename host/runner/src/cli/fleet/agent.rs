//! A process that sends a part of the requests: its command line, and its output.

use ::fleet::place::Place;
use ::fleet::run::{Agent, FleetError, Interrupts, Local};
use ::fleet::token::Token;
use load::pace::Signal;
use load::transport::Dial;
use session::{CheckedRun, Ending};

use super::super::dashboard::screen;
use super::super::failure::Failure;
use super::super::interrupt::Interrupt;
use super::super::measure::{environment, raise_descriptors, teller};
use super::super::print::tell;
use super::super::sources::{Text, source_of, text};
use super::Run;

/// The agent in rank 0's own process.
pub(super) struct LocalAgent {
    /// Its part of the run, for rank 0 to show.
    pub local: Local,
    /// The scenario, which rank 0 has read; absent if flags alone describe the run.
    pub scenario: Option<Text>,
}

/// Takes part: joins, prepares, sends this process's part of the load, and hands everything over.
/// If its load ended early, rank 0 knows of the error.
pub(super) fn take_part(
    args: &Run,
    place: Place,
    token: Token,
    own: Option<LocalAgent>,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let settings = args.settings();
    let (local, scenario) = own.map(|own| (own.local, own.scenario)).unzip();
    let agent = Agent::join(&settings, place, token, local)?;
    let (checked, connect) = match prepare(args, &agent, scenario) {
        Ok(prepared) => prepared,
        Err(failure) => {
            agent.decline(failure.message());
            return Err(failure);
        }
    };
    let environment = environment(raise_descriptors(&checked.plan));
    let handed = agent.make(checked, &connect, environment, interrupt);
    if let Err(FleetError::NotHandedOver { kept: Some(folder), .. }) = &handed {
        tell(format_args!("the records of this process are in {}", folder.display()));
        tell(format_args!(
            "to add them to the run, copy that folder to the machine of rank 0: runner fleet merge RUN {}",
            folder.file_name().unwrap_or_default().display()
        ));
    }
    Ok(handed?)
}

/// Prepares this process's slice of the run, and checks the target. `scenario` is present where
/// rank 0 has read it in this process.
fn prepare(
    args: &Run,
    agent: &Agent,
    scenario: Option<Option<Text>>,
) -> Result<(CheckedRun, Dial), Failure> {
    let is_local = scenario.is_some();
    let scenario = match scenario {
        Some(scenario) => scenario,
        None => text(&args.scenarios)?,
    };
    // Every process has the same flags, so rank 0 alone prints the notes on them.
    let (source, _) = source_of(scenario, &args.flags)?;
    let resolved = agent.resolve(source)?;
    if !is_local {
        // Each machine has its own keys and their targets; rank 0 has printed its own already.
        resolved.remarks.iter().for_each(tell);
    }
    let connect = resolved.dial()?;
    let checked = resolved.check_now(&connect.afresh(), teller())?;
    Ok((checked, connect))
}

impl Interrupts for Interrupt {
    fn count(&self) -> u32 {
        self.count()
    }

    fn interrupt(&self, why: &str) {
        // The dashboard of rank 0 shows it.
        if !screen::is_up() {
            tell(format_args!("stopped by the fleet: {why}"));
        }
        self.raise();
    }

    fn watch(&self, load: &Signal) {
        self.watch(load);
    }

    fn over(&self) -> Ending {
        self.done();
        Ending { at: jiff::Timestamp::now().to_string(), interrupted: self.came() }
    }
}

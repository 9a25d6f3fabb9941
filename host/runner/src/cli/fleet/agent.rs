//! A process that sends a part of the requests: its command line, and what it prints.

use ::fleet::place::Place;
use ::fleet::token::Token;
use fleet_run::{Agent, FleetError, Interrupts, Local, ScenarioText};
use load::pace::Signal;
use load::transport::Dial;
use runs::environment::Environment;
use session::{Checked, Ending, Source};

use super::super::dashboard::screen;
use super::super::failure::Failure;
use super::super::interrupt::Interrupt;
use super::super::measure::{raise_descriptors, teller};
use super::super::print::tell;
use super::super::sources::{Text, source_of, text};
use super::arguments::Run;

/// Takes part: joins, prepares, makes this process's part of the load, and hands everything over.
///
/// # Errors
/// If it cannot join, cannot prepare, or rank 0 is gone; or if its load ended early, of which rank
/// 0 knows by then.
pub(super) fn take_part(
    args: &Run,
    place: Place,
    token: Token,
    local: Option<Local>,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let settings = args.settings();
    let is_local = local.is_some();
    let agent = Agent::join(&settings, place, token, local)?;
    let (checked, connect) = match prepare(args, &agent, is_local) {
        Ok(prepared) => prepared,
        Err(failure) => {
            agent.decline(failure.words());
            return Err(failure);
        }
    };
    if !is_local && agent.files() > 0 {
        tell(format_args!(
            "note: the {} files that rank 0 sent stay in {} for later runs, where this user alone can read them",
            agent.files(),
            settings.store().display()
        ));
    }
    let environment = environment(raise_descriptors(&checked.plan));
    let handed = agent.make(checked, &connect, environment, interrupt);
    if let Err(FleetError::NotHandedOver { kept: Some(folder), .. }) = &handed {
        tell(format_args!("what this process measured is in {}", folder.display()));
        tell(format_args!(
            "to take it into the run, copy that folder to the machine of rank 0: runner fleet merge RUN {}",
            folder.file_name().unwrap_or_default().display()
        ));
    }
    Ok(handed?)
}

/// The facts about this machine and command line.
pub(super) fn environment(descriptors: Option<u64>) -> Environment {
    let contract = plugins::Contract::NEWEST.version();
    Environment::look(std::env::args(), descriptors, contract)
}

/// Makes the run that rank 0 describes, and asks the target.
fn prepare(args: &Run, agent: &Agent, is_local: bool) -> Result<(Checked, Dial), Failure> {
    let scenario = agent.scenario().cloned();
    let scenario = scenario.map(|ScenarioText { name, text }| Text { name, folder: None, text });
    // Every process has the same flags, so rank 0 alone prints the notes on them.
    let (source, _) = source_of(scenario, &args.flags)?;
    let own = if is_local || args.trust_rank_0 { None } else { Some(own(args)?) };
    let resolved = agent.resolve(source, own)?;
    if !is_local {
        // Which key goes where is this machine's too; rank 0 has said it already.
        resolved.remarks.iter().for_each(tell);
    }
    let connect = resolved.dial()?;
    let checked = resolved.check_now(&connect.afresh(), teller())?;
    Ok((checked, connect))
}

/// The run of this process's flags, and of the scenario on its command line where this machine has
/// it.
fn own(args: &Run) -> Result<Source, Failure> {
    let is_file = !args.scenarios.iter().any(|name| name == "-");
    let here = is_file.then(|| text(&args.scenarios).ok().flatten()).flatten();
    if let Some(here) = here
        && let Ok((source, _)) = source_of(Some(here), &args.flags)
    {
        return Ok(source);
    }
    Ok(source_of(None, &args.flags)?.0)
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

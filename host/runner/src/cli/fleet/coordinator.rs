//! Rank 0: its command line, its output, and its result.

use std::process::ExitCode;

use ::fleet::link::ReadyAgent;
use ::fleet::place::Place;
use ::fleet::rendezvous::Event;
use ::fleet::run::{CombinedRun, Coordinator, Monitor, NotStarted};
use ::fleet::token::Token;
use load::thread_group::ThreadGroup;
use session::stages::StartedRun;
use session::{Ending, Record, Threads, resolve};

use super::super::conclude::conclude;
use super::super::dashboard::screen;
use super::super::failure::{Exit, Failure};
use super::super::interrupt::Interrupt;
use super::super::measure::{environment, teller};
use super::super::output::print;
use super::super::print::tell;
use super::super::sources::{source_of, text};
use super::super::watch::{Displays, Onlooker};
use super::Run;
use super::agent::{LocalAgent, take_part};

pub(super) fn exec(
    args: &Run,
    place: Place,
    token: &Token,
    interrupt: &Interrupt,
) -> Result<ExitCode, Failure> {
    let displays = args.watch.begin()?;
    let lines = args.output.lines()?;
    let scenario = text(&args.scenarios)?;
    let (source, notes) = source_of(scenario.clone(), &args.flags)?;
    for note in notes {
        tell(format_args!("note: {note}"));
    }
    let resolved = resolve(&source)?;
    resolved.remarks.iter().for_each(tell);
    let connect = resolved.dial()?;
    let checked = resolved.check_now(&connect.afresh(), teller())?;
    let record = Record {
        output: args.output.within.output_dir.clone(),
        started: jiff::Timestamp::now(),
        environment: environment(None),
        repeat: None,
    };
    let mut shown =
        RunDisplay { displays: &displays, interrupt, size: place.size, waiting: Vec::new() };
    let coordinator = Coordinator { settings: args.settings(), place, token: token.clone() };
    let agent = |place, local| {
        take_part(args, place, token.clone(), Some(LocalAgent { local, scenario }), interrupt)
    };
    let CombinedRun { run, made, kept } =
        coordinator.run(checked, record, interrupt, &mut shown, agent).map_err(not_started)?;
    if let Some(folder) = kept {
        tell(format_args!(
            "note: the agents' records are also kept as they came, in {}",
            folder.display()
        ));
    }
    let ending = Ending { at: jiff::Timestamp::now().to_string(), interrupted: interrupt.came() };
    let kept = run.made_elsewhere(made, &ending);
    let assessed = kept.measured()?.assess_until(|| interrupt.ends_assessment());
    let measured = assessed?.summarise()?;
    print(&measured.summary, &args.output, lines, &measured.folder)?;
    interrupt.done();
    Ok(ExitCode::from(conclude(measured, interrupt, &args.output)?))
}

/// The more precise reason: this machine's own agent reports the scenario's mistakes.
fn not_started(NotStarted { why, local }: NotStarted<Failure>) -> Failure {
    let of_fleet = [Exit::Target, Exit::Interrupted];
    local.filter(|local| !of_fleet.contains(&local.exit)).unwrap_or_else(|| why.into())
}

/// The run as it is shown on rank 0.
struct RunDisplay<'r> {
    displays: &'r Displays,
    interrupt: &'r Interrupt,
    size: u32,
    /// Lines that wait until the dashboard has gone.
    waiting: Vec<String>,
}

impl Monitor for RunDisplay<'_> {
    type View = Onlooker;
    type Failure = Failure;

    fn listening(&mut self, port: u16) {
        let size = self.size;
        tell(format_args!("fleet of {size}: rank 0 listens on port {port}"));
        self.interrupt.between_runs(Some("ending the fleet"));
    }

    fn ready(&mut self, agent: &ReadyAgent) {
        if let Some(clock) = &agent.clock {
            let bound = clock.bound.0 as f64 / 1e3;
            tell(format_args!("{} is ready; its clock is known to {bound:.0} µs", agent.who));
        }
    }

    fn show(&mut self, run: &StartedRun<Threads>, threads: &ThreadGroup) -> Onlooker {
        let folder = run.folder().path();
        self.displays.look_at(folder, run.plan(), run.live(), threads, self.interrupt)
    }

    fn on_event(&mut self, event: &Event) {
        let message = match event {
            Event::Lost { who, why, .. } => {
                format!("lost {who}: {why}; the others continue, and the run will be invalid")
            }
            Event::ClockMoved { who, moved } => {
                let by = moved.by as f64 / 1e6;
                format!("the clock of {who} moved by {by:.3} ms")
            }
            Event::Interrupted { who, why } => format!("{who} stops the fleet: {why}"),
            Event::Live { .. } | Event::Finished { .. } | Event::Over => return,
        };
        if screen::is_up() { self.waiting.push(message) } else { tell(message) }
    }

    fn made(&mut self, local: Result<(), Failure>) {
        self.waiting.drain(..).for_each(tell);
        if let Err(failure) = local {
            tell(format_args!("note: rank 0's own part: {}", failure.message()));
        }
        self.interrupt.between_runs(None);
        self.interrupt.assessing();
    }
}

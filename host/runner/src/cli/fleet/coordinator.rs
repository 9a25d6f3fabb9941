//! Rank 0: one run of a fleet, and its display.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ::fleet::link::ReadyAgent;
use ::fleet::rendezvous::Event;
use ::fleet::run::{CombinedRun, FleetError, Monitor, NotStarted};
use load::thread_group::ThreadGroup;
use session::live::Live;
use session::stages::StartedRun;
use session::{MeasuredRun, Record, Source, Threads, resolve};

use super::super::dashboard;
use super::super::failure::{Exit, Failure};
use super::super::interrupt::Interrupt;
use super::super::measure::{Overseer, Place, environment, teller};
use super::super::print::tell;
use super::super::watch::{Displays, Onlooker};
use super::{Fleet, RunInterrupts, take_part};

/// The interval at which an overseer looks at a run.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Measures one run with the whole fleet. `order` describes a study's run to the others.
pub(in super::super) fn measured(
    fleet: &Fleet,
    source: &Source,
    order: Option<String>,
    place: Place<'_>,
    displays: &Displays,
    interrupt: &Interrupt,
) -> Result<MeasuredRun, Failure> {
    let resolved = resolve(source)?;
    fleet.remark(&resolved.remarks);
    let connect = resolved.dial()?;
    let checked = resolved.check_now(&connect.afresh(), teller())?;
    let record = Record {
        output: place.within.to_owned(),
        started: jiff::Timestamp::now(),
        environment: environment(None),
        repeat: place.repeat,
    };
    let interrupts = RunInterrupts::new(interrupt, false);
    let live = OnceLock::new();
    let mut shown = RunDisplay {
        displays,
        interrupt,
        interrupts: &interrupts,
        live: &live,
        between: interrupt.between(),
        size: fleet.place.size,
        waiting: Vec::new(),
    };
    let agent = |own, local| {
        take_part(fleet, own, Some(local), |_| Ok(Some(source.clone())), &interrupts).map(drop)
    };
    let over = AtomicBool::new(false);
    let mut made = None;
    std::thread::scope(|scope| {
        let overseen = place
            .overseer
            .map(|overseer| scope.spawn(|| oversee(overseer, &live, &interrupts, &over)));
        made = Some(fleet.coordinator(order).run(checked, record, &interrupts, &mut shown, agent));
        over.store(true, Ordering::Release);
        if let Some(thread) = overseen {
            thread.thread().unpark();
        }
    });
    let made = made.ok_or_else(|| Failure::bug(""))?;
    let CombinedRun { run, made, kept } = made.map_err(|not| {
        let is_incomplete = matches!(not.why, FleetError::Refused(_));
        fleet.is_incomplete.store(is_incomplete, Ordering::Release);
        not_started(not)
    })?;
    if let Some(folder) = kept {
        tell(format_args!(
            "note: the agents' records are also kept as they came, in {}",
            folder.display()
        ));
    }
    let kept = run.made_elsewhere(made, &interrupts.ending());
    let assessed = kept.measured()?.assess_until(|| interrupt.ends_assessment());
    Ok(assessed?.summarise()?)
}

/// Stops the run where its overseer says so.
fn oversee(
    overseer: &dyn Overseer,
    live: &OnceLock<Arc<Live>>,
    interrupts: &RunInterrupts<'_>,
    over: &AtomicBool,
) {
    while !over.load(Ordering::Acquire) {
        if let Some(state) = live.get().map(|live| live.snapshot()) {
            if overseer.stops(&state) {
                interrupts.order(2);
            } else if overseer.ends(&state) {
                interrupts.order(1);
            }
        }
        std::thread::park_timeout(LOOK_EVERY);
    }
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
    interrupts: &'r RunInterrupts<'r>,
    /// The run's state, for its overseer.
    live: &'r OnceLock<Arc<Live>>,
    /// The message of an interrupt between runs, as the caller set it.
    between: Option<&'static str>,
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
        let _ = self.live.set(Arc::clone(run.live()));
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
            Event::Interrupted { .. } if self.interrupts.is_overseen() => return,
            Event::Interrupted { who, why } => format!("{who} stops the fleet: {why}"),
            Event::Live { .. } | Event::Finished { .. } | Event::Over => return,
        };
        if dashboard::is_up() { self.waiting.push(message) } else { tell(message) }
    }

    fn made(&mut self, local: Result<(), Failure>) {
        self.waiting.drain(..).for_each(tell);
        if let Err(failure) = local {
            tell(format_args!("note: rank 0's own part: {}", failure.message()));
        }
        self.interrupt.between_runs(self.between);
        self.interrupt.assessing();
    }
}

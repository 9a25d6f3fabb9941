//! One measured run, from preflight to summary. It prints only progress: [`super::output`] prints
//! the run's results, and [`super::conclude`] owns its exit code.

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::failure::Failure;
use super::interrupt::Interrupt;
use super::print::tell;
use super::watch::Displays;
use load::pace::Signal;
use load::transport::Dial;
use model::clock::Clock;
use runs::Repeat;
use runs::environment::Environment;
use scenario::plan::Plan;
use session::gate::Gate;
use session::live::Snapshot;
use session::stages::StartedRun;
use session::{Ending, LoadedRun, MeasuredRun, Note, Record, ResolvedRun, Threads};

/// The interval at which to print that a server is not ready yet.
const TELL_AGAIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Descriptors that are not for connections.
const OTHER_DESCRIPTORS: u64 = 128;

/// The place of a run: its folder, and the repeats that it is part of.
pub(super) struct Place<'p> {
    /// The folder in which it gets a folder of its own.
    pub within: &'p Path,
    pub repeat: Option<Repeat>,
    pub overseer: Option<&'p dyn Overseer>,
}

pub(super) trait Overseer: Sync {
    /// True if the run is to stop now, without waiting for the replies under way.
    fn stops(&self, state: &Snapshot) -> bool;

    /// True if the run is to send no more, and to wait for the replies under way.
    fn ends(&self, _state: &Snapshot) -> bool {
        false
    }
}

/// Measures one run, from preflight to summary, and prints only its progress. Until the caller
/// calls [`Interrupt::done`], a signal is for this run.
pub(super) fn measured(
    resolved: ResolvedRun,
    place: Place<'_>,
    displays: &Displays,
    interrupt: &Interrupt,
) -> Result<MeasuredRun, Failure> {
    let overseer = place.overseer;
    let (run, connect) = begun(resolved, place)?;
    interrupt.watch(run.signal());
    let folder = run.folder().path().to_owned();
    let followed = AssertUnwindSafe(|| follow(run, &connect, overseer, displays, interrupt));
    std::panic::catch_unwind(followed).unwrap_or_else(|_| {
        let rest = format!("; the measurements so far are in {}", folder.display());
        Err(Failure::bug(&rest))
    })
}

/// Measures several runs at once, whose first requests are due at one instant. The first is shown.
pub(super) fn measured_together(
    resolved: Vec<ResolvedRun>,
    within: &Path,
    displays: &Displays,
    interrupt: &Interrupt,
) -> Result<Vec<MeasuredRun>, Failure> {
    let clock = Clock::start();
    let mut begun_runs: Vec<(StartedRun<Threads>, Dial, Gate)> = Vec::new();
    for resolved in resolved {
        let begun = begun(resolved, Place { within, repeat: None, overseer: None });
        let (run, connect) = begun.inspect_err(|_| {
            begun_runs.iter().for_each(|(run, ..)| run.folder().discard_unbegun());
        })?;
        let gate = Gate::new(clock);
        begun_runs.push((run.behind(gate.clone()), connect, gate));
    }
    let signals: Vec<Signal> = begun_runs.iter().map(|(run, ..)| run.signal().clone()).collect();
    let gates: Vec<Gate> = begun_runs.iter().map(|(.., gate)| gate.clone()).collect();
    interrupt.watch_all(&signals);
    let onlooker = begun_runs.first().map(|(run, ..)| {
        let folder = run.folder().path();
        displays.look_at(folder, run.plan(), run.live(), run.threads(), interrupt)
    });
    let loaded: Vec<LoadedRun> = std::thread::scope(|scope| {
        let loads: Vec<_> = (begun_runs.into_iter())
            .map(|(run, connect, gate)| {
                scope.spawn(move || {
                    let loaded = run.load_now(&connect);
                    gate.ended();
                    loaded
                })
            })
            .collect();
        if !Gate::open_together(&gates) {
            signals.iter().for_each(Signal::abort);
        }
        loads.into_iter().map_while(|load| load.join().ok()).collect()
    });
    drop(onlooker);
    if loaded.len() < signals.len() {
        return Err(Failure::bug(&format!("; measurements so far are in {}", within.display())));
    }
    interrupt.assessing();
    loaded.into_iter().map(|loaded| assessed(loaded, interrupt, false)).collect()
}

/// Checks the target and creates the run's folder.
fn begun(resolved: ResolvedRun, place: Place<'_>) -> Result<(StartedRun<Threads>, Dial), Failure> {
    // The preflight check has its own connections, so that the run measures the cost of its own.
    let connect = resolved.dial()?;
    let checked = resolved.check_now(&connect.afresh(), teller())?;
    let descriptors = raise_descriptors(&checked.plan);
    let record = Record {
        output: place.within.to_owned(),
        started: jiff::Timestamp::now(),
        environment: environment(descriptors),
        repeat: place.repeat,
    };
    Ok((checked.begin(record, Threads)?, connect))
}

pub(super) fn environment(descriptors: Option<u64>) -> Environment {
    let contract = plugins::Contract::NEWEST.version();
    Environment::look(std::env::args(), descriptors, contract)
}

fn follow(
    run: StartedRun<Threads>,
    connect: &Dial,
    overseer: Option<&dyn Overseer>,
    displays: &Displays,
    interrupt: &Interrupt,
) -> Result<MeasuredRun, Failure> {
    let onlooker =
        displays.look_at(run.folder().path(), run.plan(), run.live(), run.threads(), interrupt);
    let (loaded, stopped) = overseen(run, connect, overseer);
    drop(onlooker);
    interrupt.assessing();
    assessed(loaded, interrupt, stopped)
}

/// Keeps the measurements of a load, and judges its answers.
fn assessed(
    loaded: LoadedRun,
    interrupt: &Interrupt,
    stopped: bool,
) -> Result<MeasuredRun, Failure> {
    let kept = loaded.keep(&Ending {
        at: jiff::Timestamp::now().to_string(),
        interrupted: interrupt.came() || stopped,
    });
    let assessed = kept.measured()?.assess_until(|| interrupt.ends_assessment());
    Ok(assessed?.summarise()?)
}

/// Sends the load, under an overseer if there is one. Returns true if the overseer stopped it.
fn overseen(
    run: StartedRun<Threads>,
    connect: &Dial,
    overseer: Option<&dyn Overseer>,
) -> (LoadedRun, bool) {
    let Some(overseer) = overseer else { return (run.load_now(connect), false) };
    let (live, signal) = (Arc::clone(run.live()), run.signal().clone());
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let mut has_ended = false;
            while !over.load(Ordering::Acquire) {
                let state = live.snapshot();
                if overseer.stops(&state) {
                    signal.abort();
                    return true;
                }
                if !has_ended && overseer.ends(&state) {
                    has_ended = true;
                    signal.stop();
                }
                std::thread::park_timeout(LOOK_EVERY);
            }
            has_ended
        });
        let loaded = run.load_now(connect);
        over.store(true, Ordering::Release);
        looking.thread().unpark();
        (loaded, looking.join().unwrap_or(false))
    })
}

/// Prints the events while targets are checked. Repeats now and then that a server is not ready.
pub(super) fn teller() -> impl FnMut(Note) {
    let mut last: Option<(String, Duration)> = None;
    move |note| match note {
        Note::Waiting { target, waited, seen } => {
            let is_new = last.as_ref().is_none_or(|(other, printed)| {
                *other != target || waited.saturating_sub(*printed) >= TELL_AGAIN
            });
            if is_new {
                let time = model::duration::format(Duration::from_secs(waited.as_secs()));
                tell(format_args!("waiting for {target} ({time}): {seen}"));
                last = Some((target, waited));
            }
        }
        Note::Remark(remark) => tell(format_args!("note: {remark}")),
        Note::Text(text) => tell(text),
    }
}

/// Raises the limit on file descriptors to the plan's possible need. Returns the limit in force.
pub(super) fn raise_descriptors(plan: &Plan) -> Option<u64> {
    let most = plan.slots().map(|slots| slots as u64).or(plan.load.roots()).unwrap_or(u64::MAX);
    let needed = most.saturating_add(OTHER_DESCRIPTORS);
    let limit = load::thread_group::allow(needed).ok()?;
    if limit < needed && plan.load.arrival.rate() == Some(f64::INFINITY) {
        tell(format_args!(
            "warning: {most} connections may be open at the same time, but only {limit} file descriptors are allowed and the limit cannot be raised further; \
             requests beyond it will fail as `refused`. Raise it (ulimit -Hn, LimitNOFILE), or cap requests in flight with --max-concurrency {}",
            limit.saturating_sub(OTHER_DESCRIPTORS).max(1)
        ));
    }
    Some(limit)
}

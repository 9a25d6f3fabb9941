//! `runner fleet`: several processes, mostly on several machines, measure as one run.
//!
//! Slurm, MPI, Kubernetes or a shell loop start the processes; crate `fleet` owns how they find
//! each other and share the run. Rank 0 coordinates ([`coordinator`]), and is an agent ([`agent`])
//! like the others.

mod coordinator;
mod merge;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::fleet::link::JoinError;
use ::fleet::place::{self, NoPlace, Place};
use ::fleet::run::{Coordinator, FleetError, OVER, Settings};
use ::fleet::token::Token;

use super::artifacts::Artifacts;
use super::failure::{Exit, Failure};
use super::flags::Flags;
use super::interrupt::Interrupt;
use super::measure::{environment, raise_descriptors, teller};
use super::output::{Output, print};
use super::print::tell;
use super::round::conclude;
use super::sources::{source_of, text};
use super::watch::Watch;
use super::{dashboard, measure};
use fleet::run::{Agent, Interrupts, Local};
use load::pace::Signal;
use load::transport::Dial;
use model::duration::Span;
use session::{CheckedRun, Ending, Source};

pub(super) use self::coordinator::measured;

/// Measure with many load machines at once, as one run
///
/// Start the same command on each machine: with srun, mpirun, a Kubernetes Indexed Job or a shell
/// loop. The processes find each other by the variables that these starters set. Each reads the
/// scenario, its plugins, the dataset's files and the tokenizer on its own machine. Rank 0
/// coordinates: it compares the digests of all plans, waits for all processes and their clocks, and
/// sets one instant to begin. Each sends its share of the requests, with its share of the users or
/// slots, when a single machine would send them. Records come together in one run folder on rank 0,
/// with one summary.
///
/// Only rank 0 shows progress, the dashboard and the page for Prometheus, of all processes
/// together. Only rank 0 reads devices, once for all: with `--device-metrics nvml` its own
/// machine's, usually not the engine's.
///
/// All processes need a secret in common: RUNNER_FLEET_TOKEN, or a file named by
/// RUNNER_FLEET_TOKEN_FILE, with at least 32 hexadecimal digits (`openssl rand -hex 32`). Keys of
/// servers come from each process's own environment.
#[derive(Clone, Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    override_usage = "runner fleet [OPTIONS] [SCENARIO]\n       runner fleet merge RUN AGENT_FOLDER...",
    after_help = "Examples:\n  \
        srun --nodes 4 --ntasks-per-node 1 runner fleet chat.toml --base-url http://engine:8000\n  \
        mpirun -n 4 runner fleet chat.toml --base-url http://engine:8000\n  \
        runner fleet merge runs/20260102-030405-chat rank-1-4711\n\n\
        Without srun, mpirun or an Indexed Job: set RUNNER_FLEET_RANK, RUNNER_FLEET_SIZE and RUNNER_FLEET_COORDINATOR (the host of rank \
        0) for each process.\n\n\
        Exit codes: as of `runner run`; 5 also where an agent is missing or refused"
)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    run: Run,
}

/// The run of a fleet.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Fleet")]
struct Run {
    /// A scenario: a file or a built-in one; every process reads its own
    #[arg(value_name = "SCENARIO", help_heading = None)]
    scenarios: Vec<String>,
    #[command(flatten)]
    terms: Terms,
    /// Accepted to refuse it: a fleet has no repeats
    #[arg(long, value_name = "N", hide = true)]
    repeat: Option<String>,
    #[command(flatten)]
    watch: Watch,
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    artifacts: Artifacts,
}

/// The settings of every process of a fleet.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Fleet")]
pub(super) struct Terms {
    /// Time that rank 0 waits for the other processes
    #[arg(long, value_name = "TIME", env = "RUNNER_FLEET_WAIT", default_value = "5m")]
    fleet_wait: Span,
    /// Largest clock error at which the run may start
    #[arg(long, value_name = "TIME", env = "RUNNER_CLOCK_ERROR", default_value = "1ms")]
    clock_error: Span,
    /// Time that a machine may be out of reach before it counts as lost
    #[arg(long, value_name = "TIME", env = "RUNNER_FLEET_GRACE", default_value = "20s")]
    fleet_grace: Span,
}

/// The time for which a process waits for the next run of a study: rank 0 assesses a run, or
/// starts an engine.
const BETWEEN_RUNS: Duration = Duration::from_secs(3600);

/// The processes that measure together, as this one sees them.
#[derive(Clone)]
pub(super) struct Fleet {
    settings: Settings,
    place: Place,
    token: Token,
    /// True once a run could not begin because of other processes.
    is_incomplete: Arc<AtomicBool>,
    /// The remarks on the scenario that were printed: every run of a study has the same.
    remarks: Arc<Mutex<BTreeSet<String>>>,
}

impl Fleet {
    /// Reads the place of this process from the variables that its starter set.
    pub(super) fn read(terms: &Terms, output: &Path) -> Result<Self, Failure> {
        let (place, token) = (place::read(&std::env::vars().collect())?, token()?);
        let settings = Settings {
            wait: terms.fleet_wait.0,
            clock_error: terms.clock_error.0,
            grace: terms.fleet_grace.0,
            scratch: output.join(".fleet"),
        };
        Ok(Fleet { settings, place, token, is_incomplete: Arc::default(), remarks: Arc::default() })
    }

    /// True if rank 0 is another process.
    pub(super) fn is_agent(&self) -> bool {
        self.place.rank != 0
    }

    pub(super) fn is_incomplete(&self) -> bool {
        self.is_incomplete.load(Ordering::Acquire)
    }

    /// Prints remarks that were not printed before.
    fn remark(&self, remarks: &[String]) {
        let mut printed = self.remarks.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        remarks.iter().filter(|remark| printed.insert((*remark).clone())).for_each(tell);
    }

    fn coordinator(&self, order: Option<String>) -> Coordinator {
        let (settings, place) = (self.settings.clone(), self.place.clone());
        Coordinator { settings, place, token: self.token.clone(), order }
    }

    /// Takes part in every run of a study; `source` makes a run's scenario from rank 0's order.
    pub(super) fn serve(
        &self,
        source: impl Fn(&str) -> Result<Source, Failure>,
        interrupt: &Interrupt,
    ) -> Result<ExitCode, Failure> {
        let ordered = |order: Option<&str>| match order {
            Some(OVER) => Ok(None),
            Some(order) => source(order).map(Some),
            None => Err(Failure::command_line(
                "rank 0 measures a single run; give every process the same command line",
            )),
        };
        let mut fleet = self.clone();
        loop {
            let interrupts = RunInterrupts::new(interrupt, true);
            let taken = take_part(&fleet, self.place.clone(), None, ordered, &interrupts)?;
            interrupt.done();
            match taken {
                _ if interrupt.came() => return Ok(Exit::Interrupted.into()),
                Taken::Over => return Ok(ExitCode::SUCCESS),
                Taken::Run => fleet.settings.wait = self.settings.wait.max(BETWEEN_RUNS),
            }
        }
    }

    /// Ends the study in the other processes.
    pub(super) fn dismiss(&self, interrupt: &Interrupt) {
        let interrupts = RunInterrupts::new(interrupt, true);
        let now = jiff::Timestamp::now();
        if let Err(error) = self.coordinator(None).dismiss(&now, &interrupts) {
            tell(format_args!("note: the other processes were not told of the end: {error}"));
        }
    }
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Action {
    Merge(merge::Args),
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    match &args.action {
        Some(Action::Merge(args)) => merge::exec(args),
        None => run(&args.run),
    }
}

fn run(args: &Run) -> Result<ExitCode, Failure> {
    args.artifacts.apply();
    if args.repeat.is_some() {
        let message = "a fleet measures one run: leave --repeat out, start the fleet once for each repeat, and give `runner report` the folders of the runs";
        return Err(Failure::command_line(message));
    }
    let interrupt = Interrupt::listen()?;
    let within = &args.output.within.output_dir;
    let fleet = Fleet::read(&args.terms, within)?;
    let source = || source_of(text(&args.scenarios)?, &args.flags);
    if fleet.is_agent() {
        let interrupts = RunInterrupts::new(&interrupt, false);
        // Every process has the same flags, so rank 0 alone prints the notes on them.
        let own = |_: Option<&str>| source().map(|(source, _)| Some(source));
        let taken = take_part(&fleet, fleet.place.clone(), None, own, &interrupts);
        return match taken {
            Ok(_) if interrupt.came() => Ok(Exit::Interrupted.into()),
            taken => taken.map(|_| ExitCode::SUCCESS),
        };
    }
    let displays = args.watch.begin()?;
    let lines = args.output.lines()?;
    let (source, notes) = source()?;
    for note in notes {
        tell(format_args!("note: {note}"));
    }
    let place = measure::Place { within, repeat: None, overseer: None };
    let measured = measured(&fleet, &source, None, place, &displays, &interrupt)?;
    print(&measured.summary, &args.output, lines, &measured.folder)?;
    interrupt.done();
    Ok(ExitCode::from(conclude(measured, &interrupt, &args.output)?))
}

fn token() -> Result<Token, Failure> {
    let value = std::env::var("RUNNER_FLEET_TOKEN").ok();
    let file = std::env::var_os("RUNNER_FLEET_TOKEN_FILE").map(PathBuf::from);
    Token::read(value.as_deref(), file.as_deref()).map_err(Failure::command_line)
}

impl From<NoPlace> for Failure {
    fn from(error: NoPlace) -> Self {
        Failure::several(Exit::CommandLine, error.0)
    }
}

impl From<FleetError> for Failure {
    fn from(error: FleetError) -> Self {
        let exit = match error {
            FleetError::Refused(refusal) => return Failure::several(Exit::Target, refusal.0),
            FleetError::Interrupted(refusal) => {
                return Failure::several(Exit::Interrupted, refusal.0);
            }
            FleetError::Faults(faults) => return faults.into(),
            FleetError::Begin(error) => return error.into(),
            FleetError::Run(error) => return error.into(),
            FleetError::Join(ref why) | FleetError::NotHandedOver { ref why, .. } => match why {
                JoinError::Interrupted(_) => Exit::Interrupted,
                JoinError::Unable(_) => Exit::Input,
                _ => Exit::Target,
            },
            FleetError::Plan(_) | FleetError::NoTime(_) => Exit::Bug,
            _ => Exit::Input,
        };
        Failure::new(exit, error)
    }
}

/// The outcome of taking part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    /// This process made its part of a run.
    Run,
    /// The study is over.
    Over,
}

/// Takes part in one run: joins, prepares, sends this process's part of the load, and hands
/// everything over. If its load ended early, rank 0 knows of the error. `local` is present in the
/// process of rank 0. `source` makes the scenario from rank 0's order; `None` ends the study.
fn take_part(
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
struct RunInterrupts<'i> {
    user: &'i Interrupt,
    /// True if the fleet ends this run alone, because rank 0 decides on the next one.
    is_one_of_several: bool,
    /// Interrupts by the fleet that end this run alone.
    fleet: AtomicU32,
    overseer: AtomicU32,
    load: Mutex<Option<Signal>>,
}

impl<'i> RunInterrupts<'i> {
    fn new(user: &'i Interrupt, is_one_of_several: bool) -> Self {
        let (fleet, overseer) = Default::default();
        RunInterrupts { user, is_one_of_several, fleet, overseer, load: Mutex::default() }
    }

    /// The run's overseer stops it: once for no more requests, twice for no more replies.
    fn order(&self, times: u32) {
        self.raise(&self.overseer, times);
    }

    fn is_overseen(&self) -> bool {
        self.overseer.load(Ordering::Acquire) > 0
    }

    fn ending(&self) -> Ending {
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
        if !dashboard::is_up() {
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

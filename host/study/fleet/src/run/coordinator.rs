//! Rank 0: gathers the processes, gives them one start instant, and makes one run of their
//! measurements.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use crate::link::{
    self, BindError, JoinError, Listen, Offer, Outcome, ReadyAgent, ReadyFleet, Refusal, Running,
    Timing,
};
use crate::place::Place;
use crate::rendezvous::{Event, Rules};
use crate::token::Token;
use jiff::Timestamp;
use load::thread_group::ThreadGroup;
use model::clock::Clock;
use model::units::Nanos;
use session::stages::StartedRun;
use session::{BeginError, CheckedRun, Ending, Faults, Measurements, Record, Threads};

use super::agent::Agent;
use super::combine::combine;
use super::connections::{Connections, version};
use super::view::{Local, View};
use load::pace::Signal;
use runs::folder::FolderError;
use runs::record::RecordError;
use session::parts::RunError;

/// Time between the message with the start instant and that instant.
const LEAD: Nanos = Nanos(2_000_000_000);
/// Time to add if the server's cache is flushed in between.
const FLUSH: Nanos = Nanos(5_000_000_000);
/// The most bytes of records of one agent: tens of millions of requests.
const MOST_RECORDS: u64 = 32 << 30;
/// The interval at which to check for signals before the start.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The time to wait, once all are ready, for inexact clocks.
const MEASURE: Duration = Duration::from_secs(30);

/// The user of rank 0, who watches the run.
pub trait Monitor {
    /// Shows the run until it is dropped.
    type View;
    /// The reason why this process's own agent takes no part.
    type Failure: Send;

    /// Rank 0 listens on this port. From now on an interrupt ends the fleet, which takes a moment.
    fn listening(&mut self, port: u16);

    fn ready(&mut self, agent: &ReadyAgent);

    /// The run is about to begin.
    fn show(&mut self, run: &StartedRun<Threads>, threads: &ThreadGroup) -> Self::View;

    /// An event of the fleet during the run.
    fn on_event(&mut self, event: &Event);

    /// Every agent has finished or is lost; `local` is the result of this process's own agent.
    fn made(&mut self, local: Result<(), Self::Failure>);
}

pub struct Coordinator {
    pub settings: Settings,
    pub place: Place,
    pub token: Token,
    /// The run of a study, for the agents; `None` if the command line alone describes the run.
    pub order: Option<String>,
}

/// The order that ends a study.
pub const OVER: &str = "over";

/// The time for which the end of a study waits for the other processes.
const DISMISS: Duration = Duration::from_secs(15);

/// The reason why a fleet made no run, and the reason of the agent in this process if it has one.
pub struct NotStarted<E> {
    /// The fleet's reason.
    pub why: FleetError,
    /// The agent's reason, which is more precise if this machine prevents the run.
    pub local: Option<E>,
}

impl<E> From<FleetError> for NotStarted<E> {
    fn from(why: FleetError) -> Self {
        NotStarted { why, local: None }
    }
}

/// A run whose records are in its folder, and the measurements beside them.
pub struct CombinedRun {
    pub run: StartedRun<Threads>,
    /// The agents' measurements.
    pub made: Measurements,
    /// The folder with the agents' original records, if a clock is too inexact for the run's own.
    pub kept: Option<PathBuf>,
}

impl Coordinator {
    /// Gathers all processes, has them make the load, waits until every one has finished or is
    /// lost, and brings their records to one clock and into one file. `agent` takes part from this
    /// process. Fails if the run cannot begin, or the records cannot be written.
    pub fn run<M: Monitor>(
        self,
        checked: CheckedRun,
        record: Record,
        interrupts: &impl Interrupts,
        monitor: &mut M,
        agent: impl FnOnce(Place, Local) -> Result<(), M::Failure> + Send,
    ) -> Result<CombinedRun, NotStarted<M::Failure>> {
        let trace = checked.parts.trace.clone();
        let began = record.started.to_string();
        let run = checked.begin(record, Threads).map_err(FleetError::from)?;
        let records = run.folder().path().join("agents");
        make(&records)?;
        let order = self.order.clone();
        let offer = Offer { began, order, records: records.clone(), most_records: MOST_RECORDS };
        let made = self.gather_and_run(&run, offer, interrupts, monitor, agent);
        let (endings, start) = made.inspect_err(|_| {
            let _ = std::fs::remove_dir_all(&records);
            run.folder().discard_unbegun();
        })?;
        let is_known = endings.iter().all(|ending| ending.outcome != Outcome::Unfinished);
        let made = combine(run.folder().path(), run.plan(), &trace, start, endings)
            .map_err(FleetError::from)?;
        if is_known {
            // They are in the run's own file now.
            let _ = std::fs::remove_dir_all(&records);
        }
        // Without its clock, an agent's instants may be wrong there.
        let kept = (!is_known).then_some(records);
        Ok(CombinedRun { run, made, kept })
    }

    /// Tells all processes that the study is over, without a wait for late ones.
    pub fn dismiss(self, now: &Timestamp, interrupts: &impl Interrupts) -> Result<(), FleetError> {
        let connections = Connections::start()?;
        let settings = Settings { wait: DISMISS.min(self.settings.wait), ..self.settings };
        make(&settings.scratch)?;
        let coordinator = connections.wait(listening(&settings, &self.place, &self.token))?;
        let port = coordinator.address().port();
        let place = Place { host: "127.0.0.1".to_owned(), port, ..self.place.clone() };
        let offer = Offer {
            began: now.to_string(),
            order: Some(OVER.to_owned()),
            records: settings.scratch.clone(),
            most_records: MOST_RECORDS,
        };
        let version = version()?;
        std::thread::scope(|scope| {
            let own = scope.spawn(|| {
                let joined = Agent::join(&settings, place, self.token, None);
                joined.map(|agent| agent.decline(OVER.to_owned()))
            });
            let size = self.place.size;
            let gathering = gather(&settings, size, version, coordinator, offer, interrupts);
            // Every process declines, so there is no run.
            let _ = connections.wait(gathering);
            ended(own)
        })
    }

    /// Gathers all processes and has them make the load. Returns their endings and the start.
    fn gather_and_run<M: Monitor>(
        self,
        run: &StartedRun<Threads>,
        offer: Offer,
        interrupts: &impl Interrupts,
        monitor: &mut M,
        agent: impl FnOnce(Place, Local) -> Result<(), M::Failure> + Send,
    ) -> Result<(Vec<link::Ending>, Nanos), NotStarted<M::Failure>> {
        let connections = Connections::start()?;
        let version = version()?;
        let size = self.place.size;
        let listening = listening(&self.settings, &self.place, &self.token);
        let coordinator = connections.wait(listening).map_err(FleetError::from)?;
        let clock = coordinator.clock();
        let port = coordinator.address().port();
        monitor.listening(port);
        let local = Local::default();
        let place = Place { host: "127.0.0.1".to_owned(), port, ..self.place };
        std::thread::scope(|scope| {
            let seen = Arc::clone(&local);
            let agent = scope.spawn(move || agent(place, seen));
            let gathering = gather(&self.settings, size, version, coordinator, offer, interrupts);
            let gathered = match connections.wait(gathering) {
                Ok(gathered) => gathered,
                Err(refusal) => {
                    let local = ended(agent).err();
                    let reason = match interrupts.count() {
                        0 => FleetError::Refused,
                        _ => FleetError::Interrupted,
                    };
                    return Err(NotStarted { why: reason(refusal), local });
                }
            };
            gathered.agents().iter().for_each(|ready| monitor.ready(ready));
            let lead = if run.plan().control.flush_cache { LEAD + FLUSH } else { LEAD };
            let view = View::new(gathered.board(), clock, size, Arc::clone(&local));
            run.live().made_by(Arc::new(view));
            let devices = match run.watch_devices(clock) {
                Ok(devices) => devices,
                Err(error) => {
                    connections.wait(gathered.stop("rank 0 cannot read the devices"));
                    let _ = agent.join();
                    return Err(FleetError::from(error).into());
                }
            };
            // The display belongs to the local part: both end together.
            let threads = local.get().map_or(run.threads(), |local| &local.threads);
            let shown = monitor.show(run, threads);
            let start = clock.now() + lead;
            let mut running = gathered.start(start);
            connections.wait(follow(size, &mut running, &local, monitor));
            let endings = connections.wait(running.finish());
            run.leave_devices(devices);
            drop(shown);
            monitor.made(ended(agent));
            Ok((endings, start))
        })
    }
}

fn ended<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Listens on every address of this machine.
async fn listening(
    settings: &Settings,
    place: &Place,
    token: &Token,
) -> Result<link::Coordinator, link::BindError> {
    let port = place.port;
    let listen = Listen {
        address: format!("[::]:{port}"),
        token: token.clone(),
        clock: Clock::start(),
        timing: settings.timing(),
    };
    match link::Coordinator::bind(listen.clone()).await {
        Ok(coordinator) => Ok(coordinator),
        // A machine without IPv6.
        Err(_) => {
            let address = format!("0.0.0.0:{port}");
            link::Coordinator::bind(Listen { address, ..listen }).await
        }
    }
}

/// Waits until all are ready, or somebody interrupts.
async fn gather(
    settings: &Settings,
    size: u32,
    version: String,
    coordinator: link::Coordinator,
    offer: Offer,
    interrupts: &impl Interrupts,
) -> Result<ReadyFleet, Refusal> {
    let nanos = Nanos::from;
    let stopper = coordinator.stopper();
    let rules = Rules {
        version,
        size,
        arrive: nanos(settings.wait),
        // Plugins are compiled and targets waited for meanwhile.
        prepare: nanos(settings.wait * 2),
        settle: Nanos(2_000_000_000),
        grace: nanos(settings.grace),
        // The clocks must be known to a tenth of this.
        smallest: nanos(settings.clock_error * 10),
        answers: u64::from(settings.timing().first),
        measure: nanos(MEASURE),
    };
    let gathering = coordinator.gather(rules, offer);
    tokio::pin!(gathering);
    let mut stopped = false;
    loop {
        tokio::select! {
            gathered = &mut gathering => return gathered,
            () = tokio::time::sleep(LOOK_EVERY) => {
                if interrupts.count() > 0 && !stopped {
                    stopped = true;
                    stopper.interrupt("interrupted");
                }
            }
        }
    }
}

/// Follows the run until every agent has finished or is lost.
async fn follow(size: u32, running: &mut Running, local: &Local, monitor: &mut impl Monitor) {
    let mut left = size;
    let mut local_is_left = true;
    loop {
        let Some(event) = running.event().await else { return };
        monitor.on_event(&event);
        match event {
            Event::Lost { .. } => left -= 1,
            Event::Finished { rank, .. } => {
                left -= 1;
                local_is_left &= rank != 0;
            }
            Event::Over => return,
            Event::ClockMoved { .. } | Event::Interrupted { .. } | Event::Live { .. } => {}
        }
        // A process that reads the server's metrics waits for the others.
        if left == u32::from(local_is_left)
            && let Some(local) = local.get()
        {
            local.gate.others_are_drained();
        }
    }
}

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

/// The reason why there is no run, or no part of it.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    #[error("cannot {operation}: {cause}")]
    System {
        /// The request, as a verb with its object.
        operation: String,
        cause: io::Error,
    },
    #[error("cannot make the folder `{path}`: {cause}; give a writable one with --output-dir")]
    Folder { path: PathBuf, cause: io::Error },
    /// Rank 0 cannot listen.
    #[error(transparent)]
    Listen(#[from] BindError),
    #[error("cannot write the plan: {0}")]
    Plan(#[from] serde_json::Error),
    /// Processes are in the way of the run.
    #[error(transparent)]
    Refused(Refusal),
    /// Somebody interrupted this process before the run began.
    #[error(transparent)]
    Interrupted(Refusal),
    /// Rank 0 cannot be reached, or does not take this process.
    #[error(transparent)]
    Join(#[from] JoinError),
    #[error("{why}")]
    NotHandedOver {
        /// The end of rank 0.
        why: JoinError,
        /// The folder with the measurements of this process, if there are any.
        kept: Option<PathBuf>,
    },
    #[error(
        "rank 0 gave `{0}` as the time when the run began; expected a time such as 2026-01-02T03:04:05Z"
    )]
    NoTime(String),
    /// The scenario cannot be resolved.
    #[error("{0}")]
    Faults(Faults),
    /// The named folders are not a fleet's run and its lost parts, or cannot be brought together;
    /// the text is the whole message.
    #[error("{0}")]
    Merge(String),
    /// The run's folder cannot be made.
    #[error(transparent)]
    Begin(#[from] BeginError),
    /// The run, or this process's part of it, ended early.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The records cannot be brought together.
    #[error(transparent)]
    Records(#[from] RecordError),
    /// A file of the run, or of a part of it, cannot be read or written.
    #[error(transparent)]
    Keep(#[from] FolderError),
}

/// Wraps the system's error for this operation.
pub(super) fn unable(operation: impl Into<String>) -> impl FnOnce(io::Error) -> FleetError {
    let operation = operation.into();
    move |cause| FleetError::System { operation, cause }
}

/// Makes a folder that only this user can read, with its parents.
pub(super) fn make(path: &Path) -> Result<(), FleetError> {
    model::private::folder(path)
        .map_err(|cause| FleetError::Folder { path: path.to_owned(), cause })
}

//! One run, from plan to records: puts preparation, pacer, workers, decode threads and recorder
//! together, runs the phases, and leaves when every reply has ended.
//!
//! [`on_threads`] runs the parts on threads and real time. [`PausedClock`] is for tests with exact
//! numbers: one task and virtual time.

use std::path::Path;
use std::sync::Arc;

use crate::decode::failures::FailureLimit;
use crate::decode::threads::{most, threads as decode_threads};
use crate::gate::Gate;
use crate::lease::{self, Refusals};
use crate::live::Live;
use crate::parts::{Parts, RunError};
use crate::prepare::{Item, Preparation, Writer};
use load::drive::jars::Jars;
use load::drive::worker_handle::WorkerHandle;
use load::drive::{OpenAttempts, Order, Worker};
use load::pace::news::newsfeed;
use load::pace::{Announcer, Newsfeed, Signal};
use load::thread_group::{GroupThread, ThreadGroup, trip};
use load::transport::Connect;
use load::vitals::{Vitals, yield_to_others};
use model::client::Errands;
use model::clock::Clock;
use model::connection::{Timestamps, Version};
use scenario::plan::{Plan, Wiring};

mod phases;
mod server_control;

use crate::clean_up::{self, Cleaner, LateThread};
use crate::decode::DecodeState;
use crate::decode::inbox::Inboxes;
use crate::decode::steps::Routes;
use crate::pending::RecordQueue;
use crate::sessions::memory::Memory;
use crate::sessions::{Continuer, Sessions};
use load::backlog::{BOUND, Backlog};
use model::exchange::Exchange;
use phases::Phases;
use runs::record::{RecordError, Recorder};
use server_control::ServerControl;

/// The most connections opened ahead for a run with a fixed rate.
const SPARE_CONNECTIONS: usize = 256;

/// Returns the number of workers, and of decode threads at most, on a machine with these cores.
fn threads(wiring: &Wiring, cores: usize) -> (usize, usize) {
    let count = |number: Option<u32>| number.map(|number| number.max(1) as usize);
    let workers = count(wiring.readers).unwrap_or((cores / 2).clamp(1, 8));
    (workers, count(wiring.decoders).unwrap_or(most(cores)))
}

/// The influence that the outside has on a run.
#[derive(Clone)]
pub struct Control {
    /// Stops the run, or aborts it.
    pub signal: Signal,
    pub live: Arc<Live>,
    pub group: ThreadGroup,
    /// The gate at which the run waits for others that begin at the same instant.
    pub gate: Option<Gate>,
}

impl Control {
    /// The clock of the run, which begins now unless it is shared.
    fn clock(&self) -> Clock {
        self.gate.as_ref().map_or_else(Clock::start, Gate::clock)
    }
}

/// A run to execute: its records go into the folder.
#[derive(Clone, Copy)]
pub struct Setup<'r> {
    pub plan: &'r Plan,
    pub parts: &'r Parts,
    pub folder: &'r Path,
    pub control: &'r Control,
}

/// The base on which a run is made: real time and threads, or simulated ones.
pub trait Executor {
    /// Returns the signal that wakes the pacer of a run.
    fn signal(&self) -> Signal;

    /// True if time passes as elsewhere, so that other processes can be measured.
    fn is_in_real_time(&self) -> bool {
        true
    }
}

/// An [`Executor`] that runs plans over connections of this kind.
pub trait Execute<C>: Executor {
    fn execute(&self, setup: Setup<'_>, connect: &C) -> impl Future<Output = Result<(), RunError>>;
}

/// Real time, and threads of the run's own: [`on_threads`]. Its future blocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Threads;

/// Virtual time, on the calling task, for a runtime whose clock is paused.
#[derive(Clone, Copy, Debug, Default)]
pub struct PausedClock;

impl Executor for Threads {
    fn signal(&self) -> Signal {
        Signal::for_thread()
    }
}

impl<C: Connect + Clone + Send + 'static> Execute<C> for Threads {
    async fn execute(&self, setup: Setup<'_>, connect: &C) -> Result<(), RunError> {
        on_threads(setup, connect)
    }
}

impl Executor for PausedClock {
    fn signal(&self) -> Signal {
        Signal::for_task()
    }

    fn is_in_real_time(&self) -> bool {
        false
    }
}

impl<C: Connect + Clone + 'static> Execute<C> for PausedClock {
    async fn execute(&self, setup: Setup<'_>, connect: &C) -> Result<(), RunError> {
        let Setup { plan, parts, control, .. } = setup;
        let local = tokio::task::LocalSet::new();
        let clock = control.clock();
        let (mut renewer, refusals) = lease::renewer(plan, parts, clock)?.unzip();
        if let Some(renewer) = &mut renewer {
            local.run_until(renewer.begin(connect)).await?;
        }
        let (mut running, prepared) = Running::start(setup, (1, 1), (clock, refusals), None)?;
        let (handle, receiver) = WorkerHandle::new();
        let worker = running.worker(connect);
        let cleaner = running.background.cleaner.take();
        // On the heap: the futures of a run are too large for the stack of a thread that tests it.
        let run = local.run_until(Box::pin(async {
            let cleaning =
                cleaner.map(|cleaner| tokio::task::spawn_local(cleaner.run(connect.clone())));
            let renewing = renewer.map(|renewer| {
                let connect = connect.clone();
                tokio::task::spawn_local(async move { renewer.run(&connect).await })
            });
            let conduct = async {
                // The worker leaves when the orders end, so they end with the conducting.
                let orders = [handle];
                Phases { run: &running, orders: &orders }.conduct(prepared).await
            };
            let (conducted, ()) = tokio::join!(conduct, Box::pin(worker.run(receiver)));
            let rest = running.background.decoded();
            let [cleaned, renewed] = [cleaning, renewing].map(|task| async move {
                match task {
                    Some(task) => task.await.ok().flatten(),
                    None => None,
                }
            });
            let errands = (cleaned.await, renewed.await);
            finish(control, rest, conducted, errands)
        }));
        Box::pin(run).await
    }
}

/// Runs a plan in real time, on threads of its own. After an error the measurement is on disk, too.
pub fn on_threads<C: Connect + Clone + Send + 'static>(
    setup: Setup<'_>,
    connect: &C,
) -> Result<(), RunError> {
    let Setup { plan, parts, folder, control } = setup;
    let clock = control.clock();
    let (renewer, refusals) = lease::renewer(plan, parts, clock)?.unzip();
    let renewer = renewer.map(|renewer| {
        let connect = connect.clone();
        let begin = move || renewer.begin_here(&connect);
        let begun = control.group.until_stopped("renew", begin).map_err(RunError::Thread)?;
        begun.ok_or_else(|| interrupted(control))?
    });
    let renewer = renewer.transpose()?;
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let vitals = Some(Vitals::new(clock));
    let watched = vitals.clone();
    let enlist = move |thread| {
        if let Some(vitals) = &watched {
            vitals.enlist(thread);
        }
    };
    let devices = (control.live.telemetry).watch(clock, folder, enlist.clone())?;
    let pages = control.live.pages.watch((plan, parts), clock, folder, enlist)?;
    let threads = threads(&plan.connection, cores);
    let (mut running, prepared) = Running::start(setup, threads, (clock, refusals), vitals)?;
    let mut orders = Vec::new();
    let mut threads = Vec::new();
    for number in 0..running.workers {
        let (handle, receiver) = WorkerHandle::new();
        let napper = running.may_nap().then(|| handle.napper());
        orders.push(handle);
        let worker = running.worker(connect);
        let signal = control.signal.clone();
        let is_open = plan.load.arrival.is_open() && plan.slots().is_none();
        let vitals = running.vitals.as_ref();
        let reader = control.group.start(&format!("read-{number}"), vitals, move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            if let Some(napper) = napper {
                runtime.on_thread_park(napper.settle(signal, is_open));
            }
            runtime.enable_all().build().map(|runtime| runtime.block_on(worker.run(receiver)))
        });
        threads.push(reader.map_err(RunError::Thread)?);
    }
    let cleaning = running.background.cleaning.clone();
    if let Some(cleaner) = running.background.cleaner.take() {
        let (connect, group) = (connect.clone(), control.group.clone());
        cleaning.waits(move || group.start("clean-up", None, move || cleaner.run_here(connect)));
    }
    let renewing = renewer.map(|renewer| {
        let connect = connect.clone();
        control.group.start("renew", None, move || renewer.run_here(&connect))
    });
    let renewing = renewing.transpose().map_err(RunError::Thread)?;
    control.signal.attach();
    if let Some(vitals) = &running.vitals {
        vitals.enlist_this("pace");
    }
    let conducted = control.group.guard("pace", || {
        pollster::block_on(Phases { run: &running, orders: &orders }.conduct(prepared))
    });
    if control.signal.is_aborted() {
        // The pacer may have panicked before it could say so.
        for worker in &orders {
            worker.put(Order::Abort);
        }
    }
    drop(orders);
    let mut conducted = conducted.unwrap_or(Ok(()));
    for thread in threads {
        let read = thread.join().unwrap_or(Ok(()));
        conducted = conducted.and(read.map_err(RunError::Thread));
    }
    control.live.telemetry.finish(devices);
    control.live.pages.finish(pages);
    let rest = running.background.decoded();
    let renewed = renewing.and_then(GroupThread::join).flatten();
    finish(control, rest, conducted, (cleaning.join(), renewed))
}

/// Writes the requests, and sends the requests that are not measured.
type Preparations<'r> = (Preparation, Newsfeed<Item>, Option<ServerControl<'r>>);

struct Running<'r> {
    plan: &'r Plan,
    parts: &'r Parts,
    control: &'r Control,
    workers: usize,
    clock: Clock,
    opened: Arc<OpenAttempts>,
    background: Background,
    /// The cookies of conversations, if they are kept.
    jars: Option<Arc<Jars>>,
    vitals: Option<Arc<Vitals>>,
}

impl<'r> Running<'r> {
    /// Opens the plugins, and starts the threads behind the workers. `decoders` bounds the threads
    /// that decode.
    fn start(
        setup: Setup<'r>,
        (workers, decoders): (usize, usize),
        (clock, refusals): (Clock, Option<Refusals>),
        vitals: Option<Arc<Vitals>>,
    ) -> Result<(Self, Preparations<'r>), RunError> {
        let Setup { plan, parts, control, .. } = setup;
        let failures = FailureLimit::new(control.signal.clone());
        let preparation = {
            let (plan, parts, failures) = (plan.clone(), parts.clone(), failures.clone());
            let group = control.group.clone();
            let remarks = Arc::clone(&control.live.remarks);
            let beyond = Arc::clone(&control.live.beyond_context);
            let open =
                move || Preparation::open(&plan, &parts, &failures, &group, remarks, &beyond);
            let opened = control.group.until_stopped("open", open).map_err(RunError::Thread)?;
            opened.ok_or_else(|| interrupted(control))??
        };
        let server_control = ServerControl::open(plan, parts)?;
        let live = &control.live;
        live.begin(plan, &parts.trace, clock, &control.signal, vitals.as_ref());
        let (announcer, newsfeed) = newsfeed(&control.signal);
        let jars = parts.secrets.keeps_cookies.then(Arc::<Jars>::default);
        let running = Running {
            plan,
            parts,
            control,
            workers,
            clock,
            opened: Arc::default(),
            background: Background::start(
                setup,
                announcer,
                (decoders, clock),
                (failures, refusals, jars.clone()),
                vitals.as_ref(),
            )?,
            jars,
            vitals,
        };
        let sessions = Arc::clone(&running.background.rest.sessions);
        let _ = live.sessions.set(sessions);
        Ok((running, (preparation, newsfeed, server_control)))
    }

    /// True if readers may nap: if the kernel's timestamps count, nothing depends on when they look
    /// except the next request of a closed loop.
    fn may_nap(&self) -> bool {
        let wiring = &self.plan.connection;
        cfg!(target_os = "linux")
            && wiring.timestamps == Timestamps::Kernel
            && wiring.http == Version::Http1
    }

    fn worker<C: Clone>(&self, connect: &C) -> Worker<C> {
        let spare = match (self.plan.load.arrival.peak_rate(), self.plan.slots()) {
            (Some(rate), None) if rate.is_finite() => {
                (rate.ceil() as usize).clamp(4, SPARE_CONNECTIONS).div_ceil(self.workers)
            }
            _ => 0,
        };
        Worker {
            connect: connect.clone(),
            targets: self.parts.targets.len() as u32,
            places: self.parts.places().count(),
            reuse: self.plan.connection.reuse,
            clock: self.clock,
            signal: self.control.signal.clone(),
            replies: Arc::clone(&self.background.replies) as _,
            backlog: Arc::clone(&self.background.backlog),
            timeouts: self.plan.timeouts,
            spare,
            opened: Arc::clone(&self.opened),
            jars: self.jars.clone(),
        }
    }
}

/// The reason why a thread was not waited for.
fn interrupted(control: &Control) -> RunError {
    control.group.panicked().map_or(RunError::Interrupted, Into::into)
}

/// Waits until everything is recorded. Errors of the records come before errors of the load.
fn finish(
    control: &Control,
    rest: Rest,
    conducted: Result<(), RunError>,
    (cleaned, renewed): (Option<Errands>, Option<Errands>),
) -> Result<(), RunError> {
    let recorded = rest.finish(cleaned, renewed);
    control.live.end();
    match control.group.panicked() {
        Some(panicked) => Err(panicked.into()),
        None => recorded.and(conducted),
    }
}

struct Background {
    replies: Arc<Inboxes>,
    /// Bounds the memory between the readers and the recorder.
    backlog: Arc<Backlog>,
    /// Sender of clean-up requests, until a thread or a task takes it.
    cleaner: Option<Cleaner>,
    cleaning: LateThread,
    decoders: Vec<GroupThread<()>>,
    rest: Rest,
}

/// Threads that work until every reply is recorded: sessions and the recorder.
struct Rest {
    finished: RecordQueue,
    sessions: Arc<Sessions>,
    continuers: Vec<GroupThread<()>>,
    recorder: GroupThread<Result<(), RecordError>>,
    live: Arc<Live>,
    failures: FailureLimit,
}

impl Background {
    /// Starts this many decode threads, and the recorder. They let the readers go first: their work
    /// can wait, but bytes that are read late would count as the server's latency.
    fn start(
        Setup { plan, parts, folder, control }: Setup<'_>,
        announcer: Announcer<Item>,
        (threads, clock): (usize, Clock),
        (failures, refusals, jars): (FailureLimit, Option<Refusals>, Option<Arc<Jars>>),
        vitals: Option<&Arc<Vitals>>,
    ) -> Result<Self, RunError> {
        let recorder = Recorder::create(folder)?;
        let backlog = Backlog::new(clock, BOUND);
        let (finished, waiting) = RecordQueue::new(&backlog);
        let group = &control.group;
        let seen = {
            let live = Arc::clone(&control.live);
            move |exchange: &Exchange| {
                trip("record");
                live.count(exchange);
            }
        };
        let signal = control.signal.clone();
        let live = Arc::clone(&control.live);
        let recorder = group.start("record", vitals, move || {
            yield_to_others();
            let recorded = recorder.run(&waiting, seen);
            if recorded.is_err() {
                signal.stop();
            }
            recorded.map(|written| drop(live.written.set(written)))
        });
        let recorder = recorder.map_err(RunError::Thread)?;
        let memory = Memory::new(plan.load.session_memory);
        // One thread writes follow-up requests for every four that decode replies.
        let lanes = (threads.div_ceil(4), control.signal.is_task());
        let (sessions, events) = Sessions::new(announcer, memory, lanes);
        let mut continuers = Vec::new();
        for (number, events) in events.into_iter().enumerate() {
            let writer = Writer::open(plan, parts, &failures, &control.live.beyond_context)?;
            let continuer = Continuer::new(&sessions, events, writer);
            let continuing = group.start(&format!("continue-{number}"), vitals, move || {
                yield_to_others();
                continuer.run();
            });
            continuers.push(continuing.map_err(RunError::Thread)?);
        }
        let (replies, queue) = Inboxes::new(&backlog, plan.request.stream, &sessions);
        if let Some(vitals) = vitals {
            let queue = queue.clone();
            vitals.enlist_queue(move || queue.len());
            vitals.enlist_backlog(&backlog);
        }
        let limits = (clock, plan.timeouts.connect);
        let (clean_ups, cleaning, cleaner) =
            clean_up::queue(parts.secrets.clone(), control.signal.clone(), limits);
        let routes = Routes::new(parts.places(), plan.connection.http, parts.secrets.clone());
        let shared = DecodeState::new(
            failures.clone(),
            Routes { clean_ups: Some(clean_ups), refusals, jars, ..routes },
            Arc::clone(&control.live.output_tokens),
            vitals.cloned(),
            &backlog,
            folder,
        );
        let members = decode_threads(threads, &parts.backend, &shared, clock, &queue, &finished)?;
        let mut decoders = Vec::new();
        for (number, member) in members.into_iter().enumerate() {
            let decoding = group.start(&format!("decode-{number}"), vitals, move || {
                yield_to_others();
                member.run();
            });
            decoders.push(decoding.map_err(RunError::Thread)?);
        }
        Ok(Background {
            replies: Arc::new(replies),
            backlog,
            cleaner: Some(cleaner),
            cleaning,
            decoders,
            rest: Rest {
                finished,
                sessions,
                continuers,
                recorder,
                live: Arc::clone(&control.live),
                failures,
            },
        })
    }

    /// Waits until everything reported is decoded.
    fn decoded(self) -> Rest {
        drop(self.replies);
        for decoder in self.decoders {
            decoder.join();
        }
        self.rest
    }
}

impl Rest {
    /// Waits until everything is on disk. Keeps the counts of clean-ups and of renewed leases.
    fn finish(self, cleaned: Option<Errands>, renewed: Option<Errands>) -> Result<(), RunError> {
        cleaned.map(|cleaned| self.live.cleaned.set(cleaned));
        renewed.map(|renewed| self.live.renewed.set(renewed));
        self.sessions.stop();
        for continuer in self.continuers {
            continuer.join();
        }
        drop(self.finished);
        self.recorder.join().unwrap_or(Ok(()))?;
        self.failures.abort_reason().map_or(Ok(()), Err)
    }
}

//! One run, from plan to records: puts preparation, pacer, workers, decode threads and recorder
//! together, runs the phases, and leaves when every reply has ended.
//!
//! [`on_threads`] is the real one. [`on_paused_clock`] runs the same parts on one task and virtual
//! time, for tests with exact numbers.

mod conduct;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_channel::Sender;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use conduct::Conductor;

use crate::clock::Clock;
use crate::decode::{Decoder, Patience};
use crate::drive::{Opened, Order, Report, Worker};
use crate::exchange::{Exchange, Phase};
use crate::pace::Signal;
use crate::plan::Plan;
use crate::plugin::PluginError;
use crate::plugin::backend::Backend;
use crate::plugin::dataset::Dataset;
use crate::prepare::Preparation;
use crate::record::{RecordError, Recorder};
use crate::target::{Secrets, Target};
use crate::transport::Connect;

/// Connections opened ahead for a run held to a rate, at most.
const SPARE_CONNECTIONS: usize = 256;

/// What a run is made of, beside its plan.
#[derive(Clone)]
pub struct Parts {
    /// The server's dialect.
    pub backend: Backend,
    /// Where samples come from.
    pub dataset: Dataset,
    /// Where requests go.
    pub target: Target,
    /// What must not leave the process but in requests.
    pub secrets: Secrets,
}

/// What can be seen of a run while it goes on.
#[derive(Debug, Default)]
pub struct Live {
    /// Requests that lie ready.
    pub ready: AtomicU64,
    /// Measured exchanges that are over.
    pub done: AtomicU64,
    /// Of these, those that failed.
    pub failed: AtomicU64,
    /// Output events so far.
    pub output_events: Arc<AtomicU64>,
    /// Sum of the times to the first output, in nanoseconds.
    pub first_output_sum: AtomicU64,
    /// Over how many exchanges.
    pub first_output_count: AtomicU64,
    /// When the measurement began, in nanoseconds since the run's origin; 0 before.
    pub measuring_since: AtomicU64,
}

/// Why a run ended early or could not begin.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A plugin refused to begin, or failed too often.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// A plugin failed too often.
    #[error("the run was ended: {0}")]
    LastStraw(String),
    /// Records could not be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// No connection could be opened.
    #[error(
        "cannot open connections to {target}: {failed} of {wanted} attempts failed; is the engine still running, and do its limits allow so many connections?"
    )]
    Connections {
        /// The target.
        target: String,
        /// How many failed.
        failed: usize,
        /// How many were wanted.
        wanted: usize,
    },
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

/// What the outside may do to a run.
#[derive(Clone)]
pub struct Control {
    /// Stops the run, or aborts it.
    pub signal: Signal,
    /// What can be seen of it.
    pub live: Arc<Live>,
}

/// The threads behind the workers.
struct Backstage {
    reports: Vec<Sender<Report>>,
    exchanges: Sender<Box<Exchange>>,
    decoders: Vec<std::thread::JoinHandle<()>>,
    recorder: std::thread::JoinHandle<Result<(), RecordError>>,
    patience: Patience,
}

impl Backstage {
    fn start(
        parts: &Parts,
        folder: &Path,
        threads: usize,
        control: &Control,
        patience: Patience,
    ) -> Result<Self, RunError> {
        let recorder = Recorder::create(folder)?;
        let (exchanges, finished) = crossbeam_channel::unbounded::<Box<Exchange>>();
        let seen = {
            let live = Arc::clone(&control.live);
            move |exchange: &Exchange| live.count(exchange)
        };
        let signal = control.signal.clone();
        let recorder = thread("record", move || {
            let recorded = recorder.run(&finished, seen);
            if recorded.is_err() {
                signal.stop();
            }
            recorded
        })?;
        let mut reports = Vec::new();
        let mut decoders = Vec::new();
        for number in 0..threads {
            let (sender, receiver) = crossbeam_channel::unbounded();
            let decoder = Decoder {
                dialect: parts.backend.open()?,
                patience: patience.clone(),
                secrets: parts.secrets.clone(),
                output_events: Arc::clone(&control.live.output_events),
            };
            let exchanges = exchanges.clone();
            reports.push(sender);
            decoders.push(thread(&format!("decode-{number}"), move || {
                decoder.run(&receiver, &exchanges);
            })?);
        }
        Ok(Backstage {
            reports,
            exchanges,
            decoders,
            recorder,
            patience,
        })
    }

    /// Waits until everything reported is on disk.
    fn finish(self) -> Result<(), RunError> {
        drop(self.reports);
        for decoder in self.decoders {
            propagate(decoder.join());
        }
        drop(self.exchanges);
        propagate(self.recorder.join())?;
        match self.patience.last_straw() {
            Some(reason) => Err(RunError::LastStraw(reason)),
            None => Ok(()),
        }
    }
}

fn thread<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<std::thread::JoinHandle<T>, RunError> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
        .map_err(RunError::Thread)
}

/// A panic of a thread is a bug, and goes on being one.
fn propagate<T>(joined: std::thread::Result<T>) -> T {
    joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

impl Live {
    fn count(&self, exchange: &Exchange) {
        if exchange.phase != Phase::Measure {
            return;
        }
        self.done.fetch_add(1, Ordering::Relaxed);
        if !exchange.is_ok() {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        let first = exchange
            .events
            .iter()
            .find(|event| event.kind.is_output() && event.bytes > 0);
        if let (Some(first), Some(sent)) = (first, exchange.sent) {
            self.first_output_sum
                .fetch_add(first.at.since(sent).0, Ordering::Relaxed);
            self.first_output_count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Ends the waiting for a thread that panics.
struct Alarm(Signal);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.break_down();
        }
    }
}

/// How many workers and decode threads a machine with so many cores gets.
fn workers(cores: usize) -> usize {
    (cores / 2).clamp(1, 8)
}

/// Runs a plan in real time, on threads of its own.
///
/// # Errors
/// Where the run cannot begin or had to end early. What was measured is on disk all the same.
pub fn on_threads<C>(
    plan: &Plan,
    parts: &Parts,
    connect: &C,
    folder: &Path,
    control: &Control,
) -> Result<(), RunError>
where
    C: Connect + Clone + Send + 'static,
{
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let patience = Patience::new(control.signal.clone());
    let preparation = Preparation::open(
        plan,
        &parts.backend,
        &parts.dataset,
        &parts.target,
        &parts.secrets,
        &patience,
    )?;
    let backstage = Backstage::start(parts, folder, workers(cores), control, patience)?;
    let clock = Clock::start();
    let opened = Arc::new(Opened::default());
    let mut orders = Vec::new();
    let mut threads = Vec::new();
    for number in 0..workers(cores) {
        let (sender, receiver) = unbounded_channel();
        let worker = worker(
            plan,
            connect.clone(),
            clock,
            control,
            &backstage,
            &opened,
            workers(cores),
        );
        orders.push(sender);
        let alarm = Alarm(control.signal.clone());
        threads.push(thread(&format!("read-{number}"), move || {
            let _alarm = alarm;
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map(|runtime| runtime.block_on(worker.run(receiver)))
        })?);
    }
    control.signal.attach();
    let conductor = Conductor {
        plan,
        clock,
        control,
        orders: &orders,
        opened: &opened,
        exchanges: &backstage.exchanges,
        target: &parts.target,
    };
    let conducted = pollster::block_on(conductor.conduct(preparation));
    drop(orders);
    for thread in threads {
        propagate(thread.join()).map_err(RunError::Thread)?;
    }
    backstage.finish().and(conducted)
}

/// Runs a plan on the calling task, for a runtime whose clock is paused.
///
/// # Errors
/// As [`on_threads`].
pub async fn on_paused_clock<C>(
    plan: &Plan,
    parts: &Parts,
    connect: &C,
    folder: &Path,
    control: &Control,
) -> Result<(), RunError>
where
    C: Connect + Clone + 'static,
{
    let patience = Patience::new(control.signal.clone());
    let preparation = Preparation::open(
        plan,
        &parts.backend,
        &parts.dataset,
        &parts.target,
        &parts.secrets,
        &patience,
    )?;
    let backstage = Backstage::start(parts, folder, 1, control, patience)?;
    let clock = Clock::start();
    let opened = Arc::new(Opened::default());
    let (sender, receiver): (_, UnboundedReceiver<Order>) = unbounded_channel();
    let orders = vec![sender];
    let worker = worker(
        plan,
        connect.clone(),
        clock,
        control,
        &backstage,
        &opened,
        1,
    );
    let exchanges = backstage.exchanges.clone();
    let conduct = async {
        let conductor = Conductor {
            plan,
            clock,
            control,
            orders: &orders,
            opened: &opened,
            exchanges: &exchanges,
            target: &parts.target,
        };
        let conducted = conductor.conduct(preparation).await;
        drop(orders);
        conducted
    };
    let (conducted, ()) = tokio::join!(conduct, worker.run(receiver));
    drop(exchanges);
    backstage.finish().and(conducted)
}

fn worker<C>(
    plan: &Plan,
    connect: C,
    clock: Clock,
    control: &Control,
    backstage: &Backstage,
    opened: &Arc<Opened>,
    workers: usize,
) -> Worker<C> {
    let spare = match (plan.load.arrival.rate(), plan.slots()) {
        (Some(rate), None) if rate.is_finite() => (rate.ceil() as usize)
            .clamp(4, SPARE_CONNECTIONS)
            .div_ceil(workers),
        _ => 0,
    };
    Worker {
        connect,
        clock,
        signal: control.signal.clone(),
        reports: backstage.reports.clone(),
        timeouts: plan.timeouts,
        spare,
        opened: Arc::clone(opened),
    }
}

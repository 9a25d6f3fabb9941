//! Preparation: samples become requests ahead of time, so that their bytes are ready when due. One
//! thread asks the dataset for samples, a second has the backend write their requests.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};

use crate::decode::failures::FailureLimit;
use crate::parts::{Parts, RunError};
use crate::pending::{PendingRequest, prompt_bytes};
use crate::sessions::graph::Graph;
use load::thread_group::{GroupThread, ThreadGroup, trip};
use model::exchange::{Outcome, Phase, Prepared};
use model::frame::Framing;
use plugins::PluginError;
use plugins::backend::Sample;
use plugins::dataset::{Amount, Dataset, Remark, Samples};
use scenario::plan::{Load, Plan};

mod arrivals;
mod front;
pub(crate) mod gather;
pub(crate) mod writer;

use crate::authenticate::Outgoing;
use crate::lock;
use crate::sessions::Entry;
pub use arrivals::{all, arrivals};
pub use front::salt;
use gather::{Gathering, Whole};
use load::drive::demand::Course;
use load::pace::{Next, Signal};
pub use writer::Writer;

/// Batches of samples that may wait for the backend.
const SAMPLED_AHEAD: usize = 4;
/// Requests held ready beyond the required ones.
const AHEAD: u64 = 4096;

pub struct Preparation {
    samples: Samples,
    writer: Writer,
    plan: Plan,
    failures: FailureLimit,
    pub framing: Framing,
    group: ThreadGroup,
    remarks: Arc<OnceLock<Vec<Remark>>>,
    /// The dataset, if its sessions are drawn again after the last one.
    again: Option<Dataset>,
}

/// Makes a session, given the plan, into a thing that lies ready.
type Make<T> = fn(Whole, &Plan, &mut Writer) -> Result<Option<T>, String>;

impl Preparation {
    /// Opens the dataset and the backend. The dataset's final remarks on its input go into
    /// `remarks`, the first request beyond the model's context into `beyond_context`.
    pub fn open(
        plan: &Plan,
        parts: &Parts,
        failures: &FailureLimit,
        group: &ThreadGroup,
        remarks: Arc<OnceLock<Vec<Remark>>>,
        beyond_context: &Arc<OnceLock<String>>,
    ) -> Result<Self, PluginError> {
        trip("open");
        let mut writer = Writer::open(plan, parts, failures, beyond_context)?;
        let framing = writer.framing()?;
        Ok(Preparation {
            samples: parts.dataset.open(plan.load.seed, amount(&plan.load))?,
            writer,
            plan: plan.clone(),
            failures: failures.clone(),
            framing,
            group: group.clone(),
            remarks,
            again: plan.load.lanes.is_some().then(|| parts.dataset.clone()),
        })
    }

    /// True if a request is of use only for a time after it was written.
    pub fn is_for_a_time(&self) -> bool {
        self.writer.is_for_a_time()
    }

    /// The requests that are sent before the measurement; may be fewer than planned.
    pub fn warmup(&mut self) -> Result<Vec<Item>, PluginError> {
        let signal = self.group.signal();
        let samples =
            spares(&mut self.samples, self.plan.load.warmup_requests(), || signal.is_stopped())?;
        let numbered = (0..).zip(samples).filter(|(index, _)| self.plan.holds(*index));
        let pending = |(index, sample)| PendingRequest::alone(index, Phase::Warmup, sample);
        Ok(numbered.map(|numbered| self.writer.write(pending(numbered))).collect())
    }

    /// Starts to prepare the measured requests. This many must be ready before the first is due.
    pub fn start(self, wanted: u64) -> std::io::Result<Feed> {
        let ahead = if self.writer.is_for_a_time() { 0 } else { AHEAD };
        self.start_as(wanted.saturating_add(ahead), |whole, plan, writer| whole.item(plan, writer))
    }

    /// Starts to prepare whole sessions, without end: this many for lanes, and some to follow.
    pub fn start_trees(self, wanted: u64) -> std::io::Result<Feed<Graph>> {
        let ahead = wanted.div_ceil(4);
        self.start_as(wanted.saturating_add(ahead), |whole, plan, _| whole.tree(plan))
    }

    fn start_as<T: Stocked + Send + 'static>(
        self,
        most: u64,
        make: Make<T>,
    ) -> std::io::Result<Feed<T>> {
        let stock = Arc::new(Stock::new(usize::try_from(most).unwrap_or(usize::MAX)));
        let completing = Completing(Arc::clone(&stock));
        let group = self.group.clone();
        let thread = group.start("prepare", None, move || {
            let Completing(stock) = &completing;
            self.run(stock, make);
        })?;
        Ok(Feed { stock, thread: Some(thread), signal: group.signal().clone() })
    }

    fn run<T: Stocked>(self, stock: &Stock<T>, make: Make<T>) {
        if self.plan.is_idle() {
            // Nothing that the dataset has would be kept, and it may have no end.
            return;
        }
        let Preparation { samples, mut writer, plan, failures, group, remarks, again, .. } = self;
        let planned = plan.requests().unwrap_or(u64::MAX);
        let (sampled, batches) = crossbeam_channel::bounded(SAMPLED_AHEAD);
        let load = plan.load.clone();
        let sampler = group.start("sample", None, move || {
            let drawn = sample(samples, planned, &sampled);
            // A dataset may hold much, and is drawn again by another instance.
            let list = drawn.map(|mut drawing| drawing.samples.remarks());
            if let Some(Ok(list)) = list {
                let _ = remarks.set(list);
                if let Some(dataset) = again {
                    repeat(&dataset, &load, &sampled);
                }
            }
        });
        let sampler = match sampler {
            Ok(sampler) => sampler,
            Err(cause) => return failures.abort(RunError::Thread(cause)),
        };
        // Takes the receiver with it: a sampler that waits for room then finds none.
        if let Err(error) = write_all(&plan, &mut writer, batches, stock, make) {
            failures.abort(error);
        }
        sampler.join();
    }
}

/// Writes the requests of all sessions, until their samples end or nobody needs more.
fn write_all<T: Stocked>(
    plan: &Plan,
    writer: &mut Writer,
    batches: Receiver<Result<Vec<Sample>, PluginError>>,
    stock: &Stock<T>,
    make: Make<T>,
) -> Result<(), RunError> {
    let broken = |what: String| plan_broken(plan, &what);
    let mut gathering = Gathering::sharing(plan);
    let mut has_samples = false;
    for batch in &batches {
        let batch = batch.map_err(|error| match has_samples {
            true => RunError::from(error),
            false => RunError::NoSample(Box::new(error)),
        })?;
        has_samples = true;
        for sample in batch {
            trip("prepare");
            if let Some(whole) = gathering.add(sample).map_err(broken)?
                && let Some(item) = make(whole, plan, writer).map_err(broken)?
                && !stock.add(item)
            {
                return Ok(());
            }
            if gathering.is_over() {
                return Ok(());
            }
        }
    }
    if let Some(whole) = gathering.finish()
        && let Some(item) = make(whole, plan, writer).map_err(broken)?
    {
        stock.add(item);
    }
    Ok(())
}

pub(crate) fn amount(load: &Load) -> Amount {
    match load.amount {
        scenario::plan::Amount::Sessions(_) => {
            load.roots().map_or(Amount::Unknown, Amount::Sessions)
        }
        _ => load.requests().map_or(Amount::Unknown, Amount::Samples),
    }
}

pub(crate) fn plan_broken(plan: &Plan, what: &str) -> PluginError {
    PluginError::Contract {
        plugin: plan.dataset.plugin.plugin.clone(),
        call: "next",
        what: what.to_owned(),
    }
}

/// Draws a dataset's samples again and again, until nothing needs them.
fn repeat(dataset: &Dataset, load: &Load, batches: &Sender<Result<Vec<Sample>, PluginError>>) {
    loop {
        let again = match dataset.open(load.seed, amount(load)) {
            Ok(samples) => Drawing::new(samples, u64::MAX),
            Err(error) => return drop(batches.send(Err(error))),
        };
        let mut is_empty = true;
        for batch in again {
            let has_failed = batch.is_err();
            is_empty = false;
            if batches.send(batch).is_err() || has_failed {
                return;
            }
        }
        if is_empty {
            return;
        }
    }
}

/// Asks a dataset for this many samples, or all it has. Returns it unless it failed.
fn sample(
    samples: Samples,
    planned: u64,
    batches: &Sender<Result<Vec<Sample>, PluginError>>,
) -> Option<Drawing> {
    let mut drawing = Drawing::new(samples, planned);
    for batch in drawing.by_ref() {
        trip("sample");
        let has_failed = batch.is_err();
        let sent = batches.send(batch);
        if has_failed {
            return None;
        }
        if sent.is_err() {
            break;
        }
    }
    Some(drawing)
}

/// The approximate size of a request apart from its body.
const REQUEST_BYTES: usize = 1 << 10;

pub struct Item {
    pub prepared: Box<Prepared>,
    /// The request; the outcome of one that cannot be written.
    pub request: Result<ReadyRequest, Outcome>,
    /// Its role for the requests that depend on it, or that it depends on.
    pub entry: Option<Entry>,
}

/// A request that can be sent, the first if there are several.
pub struct ReadyRequest {
    pub outgoing: Outgoing,
    /// The framing of its reply, if it differs from the run's.
    pub framing: Option<Framing>,
    pub course: Course,
    /// The conversation it belongs to.
    pub session: Option<Arc<str>>,
}

/// A thing that lies ready until the load needs it.
pub trait Stocked {
    /// Its memory, more or less.
    fn bytes(&self) -> usize;
}

impl Stocked for Item {
    fn bytes(&self) -> usize {
        let session = match &self.entry {
            Some(Entry::Root(graph)) => graph.bytes(),
            Some(Entry::Node(_)) | None => 0,
        };
        REQUEST_BYTES + self.prepared.sample.request_bytes as usize + session
    }
}

impl Stocked for Graph {
    fn bytes(&self) -> usize {
        Graph::bytes(self)
    }
}

/// The most samples to ask the dataset for in one call.
const BATCH: u32 = 64;
/// The number of samples in the first call.
const FIRST_BATCH: u32 = 8;

/// Bytes of prompts that one call should return, which are held twice.
const BATCH_BYTES: usize = 4 << 20;

/// The measured samples of a plan, batch by batch.
pub(crate) struct Drawing {
    /// The sequence, also for samples before the first measured one.
    pub(crate) samples: Samples,
    planned: u64,
    given: u64,
    limit: u32,
}

impl Drawing {
    pub(crate) fn new(samples: Samples, planned: u64) -> Self {
        Drawing { samples, planned, given: 0, limit: FIRST_BATCH }
    }
}

impl Iterator for Drawing {
    type Item = Result<Vec<Sample>, PluginError>;

    /// The next samples; nothing at the end of the sequence, and nothing useful after an error.
    fn next(&mut self) -> Option<Self::Item> {
        let left = self.planned - self.given;
        if left == 0 {
            return None;
        }
        let limit = self.limit.min(u32::try_from(left).unwrap_or(BATCH));
        let batch = match self.samples.next(limit) {
            Ok(batch) if batch.is_empty() => return None,
            Ok(batch) => batch,
            Err(error) => return Some(Err(error)),
        };
        self.given += batch.len() as u64;
        let bytes: usize = batch.iter().map(|sample| prompt_bytes(&sample.prompt)).sum();
        let fit = BATCH_BYTES / (bytes / batch.len()).max(1);
        self.limit = u32::try_from(fit).unwrap_or(BATCH).clamp(1, BATCH);
        Some(Ok(batch))
    }
}

/// Draws at most `wanted` samples that are never measured. Fails if one depends on others.
pub(crate) fn spares(
    samples: &mut Samples,
    wanted: u32,
    is_stopped: impl Fn() -> bool,
) -> Result<Vec<Sample>, PluginError> {
    let mut spares = Vec::new();
    while spares.len() < wanted as usize && !is_stopped() {
        let left = wanted - spares.len() as u32;
        let batch = samples.spare(left.min(BATCH))?;
        if batch.is_empty() {
            break;
        }
        if let Some(sample) = batch.iter().find(|sample| !sample.after.is_empty()) {
            let what = format!(
                "the spare sample `{}` depends on others; spare samples stand alone",
                sample.id
            );
            return Err(samples.broken("spare", &what));
        }
        spares.extend(batch);
    }
    Ok(spares)
}

// The feed between preparation and the pacer. Preparation waits if enough requests are ready, the
// pacer if none is; neither waits for the other once the run is stopped.

/// The most bytes of requests held ready.
const AHEAD_BYTES: usize = 1 << 30;

/// The requests for which a waiting side is woken at once: waking takes as long as writing one.
const STEP: usize = 64;

/// The interval at which a waiting pacer checks for a stop of the run.
const GLANCE: Duration = Duration::from_millis(20);

/// Time for which a plugin's call is waited for after a stop; then it is left to itself.
const GRACE: Duration = Duration::from_secs(1);

/// Requests in waiting, or whole sessions, in order.
pub struct Feed<T = Item> {
    stock: Arc<Stock<T>>,
    thread: Option<GroupThread<()>>,
    signal: Signal,
}

/// The requests that lie ready, and their limit.
struct Stock<T> {
    most: usize,
    state: Mutex<StockState<T>>,
    changed: Condvar,
}

struct StockState<T> {
    bytes: usize,
    items: VecDeque<T>,
    complete: bool,
    unwanted: bool,
    /// The requests that must be ready before a waiting thread is woken.
    wanted: Option<usize>,
    waits_for_room: bool,
}

impl<T: Stocked> Feed<T> {
    /// The next request. If preparation is behind and this may wait, waits until the run stops.
    pub fn next(&self, may_wait: bool) -> Next<T> {
        let mut state = lock(&self.stock.state);
        loop {
            if let Some(item) = state.items.pop_front() {
                self.stock.took(&mut state, &item);
                return Next::Ready(item);
            }
            if state.complete || may_wait && self.signal.is_stopped() {
                return Next::None;
            }
            if !may_wait {
                return Next::Later;
            }
            state.wanted = Some(1);
            state = self.stock.wait(state, GLANCE);
        }
    }

    /// Waits until this many are ready, or all that may be; `each` gets their number now and then.
    pub fn wait(&self, wanted: u64, mut each: impl FnMut(usize) -> bool) {
        let mut state = lock(&self.stock.state);
        while !state.complete
            && (state.items.len() as u64) < wanted
            && state.bytes < AHEAD_BYTES
            && each(state.items.len())
        {
            let next = state.items.len() + STEP;
            state.wanted = Some(usize::try_from(wanted).map_or(next, |wanted| wanted.min(next)));
            state = self.stock.wait(state, GLANCE);
        }
        state.wanted = None;
    }
}

impl<T> Drop for Feed<T> {
    fn drop(&mut self) {
        let mut state = lock(&self.stock.state);
        state.unwanted = true;
        self.stock.changed.notify_all();
        let mut waited = Duration::ZERO;
        while !state.complete && waited < GRACE {
            state = self.stock.wait(state, GLANCE);
            waited += if self.signal.is_stopped() { GLANCE } else { Duration::ZERO };
        }
        let complete = state.complete;
        drop(state);
        if let Some(thread) = self.thread.take().filter(|_| complete) {
            thread.join();
        }
    }
}

/// Marks the stock as complete, whatever ends the preparation.
struct Completing<T>(Arc<Stock<T>>);

impl<T> Drop for Completing<T> {
    fn drop(&mut self) {
        lock(&self.0.state).complete = true;
        self.0.changed.notify_all();
    }
}

impl<T> Stock<T> {
    fn new(most: usize) -> Self {
        let state = StockState {
            bytes: 0,
            items: VecDeque::new(),
            complete: false,
            unwanted: false,
            wanted: None,
            waits_for_room: false,
        };
        Stock { most, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Waits for a change, at most this long.
    fn wait<'s>(
        &'s self,
        state: MutexGuard<'s, StockState<T>>,
        most: Duration,
    ) -> MutexGuard<'s, StockState<T>> {
        self.changed.wait_timeout(state, most).unwrap_or_else(PoisonError::into_inner).0
    }
}

impl<T: Stocked> Stock<T> {
    /// Waits for room, then adds an item. False if nothing needs it any more.
    fn add(&self, item: T) -> bool {
        let mut state = lock(&self.state);
        while (state.bytes >= AHEAD_BYTES || state.items.len() >= self.most) && !state.unwanted {
            state.waits_for_room = true;
            self.changed.notify_all();
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waits_for_room = false;
        state.bytes += item.bytes();
        state.items.push_back(item);
        let ready = state.items.len();
        if state.wanted.take_if(|wanted| ready >= *wanted).is_some() {
            self.changed.notify_all();
        }
        !state.unwanted
    }

    fn took(&self, state: &mut StockState<T>, item: &T) {
        state.bytes -= item.bytes();
        let (room, ready) = (STEP.min(self.most / 4), state.items.len());
        if state.waits_for_room && (ready + room <= self.most || ready == 0) {
            self.changed.notify_all();
        }
    }
}

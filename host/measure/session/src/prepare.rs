//! Preparation: samples become requests ahead of time, so that the bytes of a request are ready
//! before it is due. One thread asks the dataset for samples, a second has the backend write their
//! requests.

use std::sync::{Arc, OnceLock};

use crossbeam_channel::{Receiver, Sender};

use crate::decode::failures::FailureLimit;
use crate::parts::{Parts, RunError};
use crate::pending::PendingRequest;
use crate::sessions::graph::Graph;
use load::thread_group::{ThreadGroup, trip};
use model::exchange::Phase;
use model::frame::Framing;
use plugins::PluginError;
use plugins::backend::Sample;
use plugins::dataset::{Amount, Dataset, Remark, Samples};
use scenario::plan::{Load, Plan};

mod arrivals;
pub(crate) mod draw;
mod feed;
mod front;
pub(crate) mod gather;
pub(crate) mod item;
pub(crate) mod masked;
pub(crate) mod writer;

pub use arrivals::{all, arrivals};
use draw::{Drawing, spares};
pub use feed::Feed;
use feed::{Completing, Stock};
pub use front::salt;
use gather::{Gathering, Whole};
pub use item::{Item, ReadyRequest, Stocked};
pub use writer::Writer;

/// Batches of samples that may wait for the backend.
const SAMPLED_AHEAD: usize = 4;
/// Requests held ready beyond the required ones.
const AHEAD: u64 = 4096;

/// Turns samples into requests.
pub struct Preparation {
    samples: Samples,
    writer: Writer,
    plan: Plan,
    failures: FailureLimit,
    /// The framing of replies.
    pub framing: Framing,
    group: ThreadGroup,
    remarks: Arc<OnceLock<Vec<Remark>>>,
    /// The dataset, where its sessions are drawn again after the last one.
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

/// Returns the amount that a dataset is told for a load.
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

//! A mock engine: the script that it plays, and its state.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::SystemTime;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::batch::Batch;
use super::prediction::Predictions;
use super::prefix::PrefixCache;
use super::script::{Script, ScriptError};
use super::truth::{Counters, Truth, lock};
use super::wire::Head;
use model::units::Nanos;

/// Bytes of request bodies that are held at a time, in KiB; further requests wait to be read.
const BODIES_KIB: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retention {
    Nothing,
    Truth,
    Bytes,
}

#[derive(Debug)]
pub struct Engine {
    pub(super) script: Script,
    origin: Instant,
    /// Seconds since 1970.
    pub(super) created: u64,
    /// The free slots, if the script limits concurrency.
    pub(super) slots: Option<Arc<Semaphore>>,
    pub(super) batch: Option<Batch>,
    pub(super) counters: Counters,
    pub(super) prefixes: PrefixCache,
    pub(super) predictions: Mutex<Predictions>,
    /// Room for request bodies, in KiB.
    pub(super) bodies: Arc<Semaphore>,
    pub(super) retention: Retention,
    /// The time of the first request, from which a pause is counted.
    first: OnceLock<Instant>,
    pub(super) truths: Mutex<Vec<Truth>>,
}

impl Engine {
    /// An engine that plays a script and counts, without an end. Make it inside the runtime
    /// that serves it: a paused clock is only paused there.
    pub fn new(script: Script) -> Result<Arc<Self>, ScriptError> {
        Self::build(script, Retention::Nothing)
    }

    /// An engine that also records the truth of every request, for tests to compare with.
    pub fn with_truth(script: Script) -> Result<Arc<Self>, ScriptError> {
        Self::build(script, Retention::Truth)
    }

    /// An engine that also keeps the bytes that it read and wrote.
    pub fn with_bytes(script: Script) -> Result<Arc<Self>, ScriptError> {
        Self::build(script, Retention::Bytes)
    }

    fn build(script: Script, retention: Retention) -> Result<Arc<Self>, ScriptError> {
        script.check()?;
        let slots = script
            .max_concurrency
            .map(|n| Arc::new(Semaphore::new(n.get().min(Semaphore::MAX_PERMITS))));
        let batch = (script.batching.clone())
            .map(|parameters| Batch::new(parameters, script.seed, retention != Retention::Nothing));
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Ok(Arc::new(Engine {
            script,
            origin: Instant::now(),
            created: since_1970.unwrap_or_default().as_secs(),
            slots,
            batch,
            counters: Counters::default(),
            prefixes: PrefixCache::default(),
            predictions: Mutex::default(),
            bodies: Arc::new(Semaphore::new(BODIES_KIB)),
            retention,
            first: OnceLock::new(),
            truths: Mutex::default(),
        }))
    }

    pub fn script(&self) -> &Script {
        &self.script
    }

    /// The instant at which its truth's clock starts: when the engine was made.
    pub fn origin(&self) -> Instant {
        self.origin
    }

    /// The record of every request that has ended, in order of arrival; empty unless truth is kept.
    pub fn truths(&self) -> Vec<Truth> {
        let mut truths = lock(&self.truths).clone();
        truths.sort_by_key(|truth| truth.number);
        truths
    }

    /// Notes that a request came. A pause counts from the first.
    pub(super) fn has_begun(&self, at: Instant) {
        self.first.get_or_init(|| at);
    }

    /// The instant at which an event with this due time can go out: after the pause it falls into.
    pub(super) fn unpaused(&self, due: Instant) -> Instant {
        let Some((pause, first)) = self.script.pause.zip(self.first.get()) else { return due };
        let begins = *first + pause.after.0;
        let ends = begins + pause.lasting.0;
        if due >= begins && due < ends { ends } else { due }
    }

    pub(super) fn head(&self, number: u64, cached_tokens: u32) -> Head<'_> {
        let model = self.script.listed_models()[0];
        Head { number, created: self.created, model, cached_tokens }
    }

    pub(super) fn since(&self, instant: Instant) -> Nanos {
        instant.saturating_duration_since(self.origin).into()
    }
}

//! A scripted LLM server: it speaks the protocols of engines, answers exactly when its script says,
//! and fails as it says. `runner mock` serves it over TCP; whole-run tests over an in-memory pipe
//! on tokio's paused clock, where a TTFT of 120 ms is 120 ms exactly.
//!
//! Routes: OpenAI's `/v1/completions` and `/v1/chat/completions`, `/generate` of SGLang or
//! LMDeploy, `/v1/models`, `/health`, `/version`, `/metrics`, vLLM's `/reset_prefix_cache` and
//! SGLang's `/flush_cache`; and routes that the script defines, for engines that are not built in.
//! A token is one byte of text. Every route is served over HTTP/1.1 and over HTTP/2, with TLS or
//! without.
//!
//! This crate owns the server and its scripts. It leaves measuring to others and shares no code
//! with the runner's own parsing of replies, so that one can check the other; its knowledge of
//! formats comes from captured replies of engines.
//!
//! Deadlines are absolute: token `k` is due at `start + ttft + k * itl`, or when a step of the
//! batch ends that the script has instead, so delays do not add up. Tokio's timers fire on whole
//! milliseconds; shorter inter-token times come in bursts.

#![allow(
    clippy::disallowed_methods,
    reason = "a server of its own, with its own clock"
)]
// A number that somebody wrote must not change on its way.
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)
)]

mod answer;
mod ask;
mod batch;
mod control;
mod dialect;
mod fault;
mod metrics;
mod pace;
mod prefix;
mod reply;
mod script;
mod serve;
mod stream;
#[cfg(test)]
mod tests;
mod tls;
mod truth;
mod wire;

use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use tokio::sync::Semaphore;
use tokio::time::Instant;

pub use dialect::ScriptedRoute;
pub use fault::{Breakdown, Fault, On, What};
pub use script::{
    Counts, Generate, Headers, ReasoningField, RoleChunk, Says, Script, ScriptError, UsageIn,
};
pub use serve::{listen, serve, serve_connection, serve_tls};
pub use simulator::Parameters;
pub use simulator::parameters::NAMES as PARAMETERS;
pub use tls::{Tls, TlsError};
pub use truth::{Batched, End, Sent, Truth};

use model::units::Nanos;

/// A mock engine: a script, its state and what it has done.
#[derive(Debug)]
pub struct Engine {
    script: Script,
    origin: Instant,
    /// Seconds since 1970.
    created: u64,
    /// The free slots, if the script limits concurrency.
    slots: Option<Arc<Semaphore>>,
    /// The batch, if the script has one.
    batch: Option<batch::Batch>,
    counters: truth::Counters,
    prefixes: prefix::PrefixCache,
    /// Room for request bodies, in KiB.
    bodies: Arc<Semaphore>,
    keeps_truth: bool,
    truths: Mutex<Vec<Truth>>,
}

impl Engine {
    /// An engine that plays a script and counts, without an end. Make it inside the runtime
    /// that serves it: a paused clock is only paused there.
    pub fn new(script: Script) -> Result<Arc<Self>, ScriptError> {
        Self::build(script, false)
    }

    /// An engine that also records what it did with every request, for tests to compare with.
    pub fn with_truth(script: Script) -> Result<Arc<Self>, ScriptError> {
        Self::build(script, true)
    }

    fn build(script: Script, keeps_truth: bool) -> Result<Arc<Self>, ScriptError> {
        script.check()?;
        let slots = script
            .max_concurrency
            .map(|n| Arc::new(Semaphore::new(n.get().min(Semaphore::MAX_PERMITS))));
        let batch = (script.batching.clone())
            .map(|parameters| batch::Batch::new(parameters, script.seed, keeps_truth));
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Ok(Arc::new(Engine {
            script,
            origin: Instant::now(),
            created: since_1970.unwrap_or_default().as_secs(),
            slots,
            batch,
            counters: truth::Counters::default(),
            prefixes: prefix::PrefixCache::default(),
            bodies: Arc::new(Semaphore::new(serve::BODIES_KIB)),
            keeps_truth,
            truths: Mutex::default(),
        }))
    }

    /// The script it plays.
    pub fn script(&self) -> &Script {
        &self.script
    }

    /// The instant at which its truth's clock starts: when the engine was made.
    pub fn origin(&self) -> Instant {
        self.origin
    }

    /// Returns the record of every request that has ended, in order of arrival; empty unless it
    /// keeps truth.
    pub fn truths(&self) -> Vec<Truth> {
        let mut truths = truth::lock(&self.truths).clone();
        truths.sort_by_key(|truth| truth.number);
        truths
    }

    fn since(&self, instant: Instant) -> Nanos {
        instant.saturating_duration_since(self.origin).into()
    }
}

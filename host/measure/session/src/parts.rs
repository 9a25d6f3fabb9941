//! The parts of a run, and the reasons why it may end early.

use std::sync::Arc;

use load::thread_group::ThreadPanic;
use model::arrival::Trace;
use model::identity::RunId;
use model::places::{AllowedHost, Places};
use model::target::{Secrets, Target};
use plugins::PluginError;
use plugins::backend::Backend;
use plugins::dataset::Dataset;
use runs::record::RecordError;
use tokenizer::Tokenizer;

use crate::lease::{NoLease, Prepared};
use crate::reuse::SentPrompts;

#[derive(Clone)]
pub struct Parts {
    pub backend: Backend,
    pub dataset: Dataset,
    /// The targets, to which requests are sent in turn.
    pub targets: Vec<Target>,
    /// The engines behind them whose metrics pages are read; empty if the targets' pages are.
    pub monitored: Vec<Target>,
    pub hosts: Vec<AllowedHost>,
    /// Secrets, which must not leave the process except in requests.
    pub secrets: Secrets,
    /// The arrival times of requests, if a file or the dataset sets them; else nothing.
    pub trace: Trace,
    pub run_id: RunId,
    /// The place where prompts are kept to be counted after the load, if they are.
    pub prompts: Option<Arc<SentPrompts>>,
    pub prepared: Prepared,
    pub tokenizer: Arc<Tokenizer>,
}

impl Parts {
    pub fn places(&self) -> Places {
        Places::new(self.targets.clone(), &self.hosts)
    }
}

/// The reason why a run ended early or could not begin.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Plugin(#[from] PluginError),
    #[error(transparent)]
    NoSample(Box<PluginError>),
    #[error("a plugin failed too often: {0}")]
    Aborted(String),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(
        "cannot open connections to {target}: {failed} of {wanted} attempts failed; is the engine still running, and does it allow that many connections?"
    )]
    Connections { target: String, failed: usize, wanted: usize },
    #[error(transparent)]
    Lease(Box<NoLease>),
    #[error(
        "{target} did not flush its prefix cache: {cause}; leave --flush-cache out, or start the server with flushing enabled"
    )]
    Flush { target: String, cause: String },
    #[error(
        "{target} did not report its metrics: {cause}; leave --server-metrics out, or start the server with metrics enabled"
    )]
    Metrics { target: String, cause: String },
    #[error(
        "cannot start a thread: {0}; is the number of processes or the memory limited (ulimit -u, ulimit -v)?"
    )]
    Thread(std::io::Error),
    #[error(transparent)]
    Panicked(#[from] ThreadPanic),
    #[error("{0}")]
    Lanes(String),
    #[error(
        "the warm-up of the lanes failed, so their sessions cannot begin as recorded: {failed} of {sent} requests, the first with `{first}`; look at the server, or use fewer lanes"
    )]
    WarmUp { failed: u64, sent: u64, first: String },
    #[error("{0}")]
    Agent(String),
    /// The user did not wait until answers were counted and judged.
    #[error(
        "interrupted before all answers were counted and judged, so no counts or scores are kept"
    )]
    Unassessed,
    #[error("interrupted before the first request")]
    Interrupted,
}

impl From<NoLease> for RunError {
    fn from(why: NoLease) -> Self {
        RunError::Lease(Box::new(why))
    }
}

impl RunError {
    /// True if the measurement never began, whatever may be recorded of a warm-up.
    pub(crate) fn is_before_measurement(&self) -> bool {
        matches!(
            self,
            RunError::Flush { .. }
                | RunError::Metrics { .. }
                | RunError::Lanes(_)
                | RunError::WarmUp { .. }
        )
    }
}

//! Outcomes of the requests of a run, as its summary has them.

use std::collections::BTreeMap;

use super::messages::Message;
use model::exchange::{Class, Reason};

/// Outcomes of the requests of the measurement.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Requests {
    /// Requests that were due.
    pub total: u64,
    /// Requests that were answered in full.
    pub successful: u64,
    /// Requests that failed, of any class of failure, including requests that were not sent.
    pub failed: u64,
    /// Requests that the client cancelled on purpose: neither successful nor failed.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub cancelled: u64,
    /// Cancelled requests that were never sent, because they depend on a cancelled request.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub cancelled_unsent: u64,
    /// Requests that failed by themselves, not because a request that they depend on failed; absent
    /// if all did.
    pub failed_by_themselves: Option<u64>,
    /// Requests whose first byte was written to the socket.
    pub sent: u64,
    /// Failures by class. A class that did not occur is not listed.
    pub failures: BTreeMap<Class, Failures>,
    /// `successful / (total - cancelled)`.
    pub success_share: Option<f64>,
    /// Requests that the cap on requests in flight held back by more than a millisecond, or never
    /// let go; absent without a cap.
    pub held_back: Option<u64>,
    /// Requests whose prompt and longest answer together have more tokens than the model's context.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub beyond_context: u64,
    /// Failed requests for which the server's error says that the context is too long.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub context_overflows: u64,
    /// Replies with an error status that the backend accepted and read as answers, by status.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub accepted_errors: BTreeMap<u16, u64>,
    /// Beside these, replies with the status 404 that a further request followed, because a result
    /// was not ready yet.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub accepted_not_yet: u64,
    /// Requests that waited for a connection to be opened.
    pub waited_for_connection: u64,
    /// Requests of the warm-up; no other figure includes them.
    pub warmup: u64,
    /// Requests that were sent after a lane was over for which no session was left; of the other
    /// figures, scores alone include them.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub tail: u64,
}

/// Failures of one class.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Failures {
    /// The number of failures.
    pub count: u64,
    /// Failures by HTTP status; of the class `http-status`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub statuses: BTreeMap<u16, u64>,
    /// Failures by the reason that the server gave; failures without a reason are not included.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reasons: BTreeMap<Reason, u64>,
    /// Index of the first failed request.
    pub first: u64,
    /// The first few kinds of messages, in the order of the requests. Messages are of one kind if
    /// they have the same status and differ only in parts with digits.
    pub messages: Vec<Message>,
    /// The number of failures with a message of another kind.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub other_messages: u64,
}

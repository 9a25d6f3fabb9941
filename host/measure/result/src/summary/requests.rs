//! Outcomes of the requests of a run, as its summary has them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::messages::Message;
use model::exchange::{Class, Reason};

/// Outcomes of the requests of the measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Requests {
    /// All that were due.
    pub total: u64,
    /// Those answered in full.
    pub successful: u64,
    /// Those not answered in full, of any class that is a failure, including those not sent.
    pub failed: u64,
    /// Those that the client cancelled on purpose: neither successful nor failed.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub cancelled: u64,
    /// Of these, those never sent, because they would have followed one that was cancelled.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub cancelled_unsent: u64,
    /// Of these, those that failed by themselves, and not because a request that they depend on had
    /// failed; absent if that is all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_by_themselves: Option<u64>,
    /// Those whose first byte was written to the socket.
    pub sent: u64,
    /// Failures by class. A class that did not occur is not listed.
    pub failures: BTreeMap<Class, Failures>,
    /// `successful / (total - cancelled)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success_share: Option<f64>,
    /// Those that the cap on requests in flight held back by more than a millisecond, and those
    /// it never let go; absent without a cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_back: Option<u64>,
    /// Those whose prompt and longest answer together have more tokens than the model's context.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub beyond_context: u64,
    /// Replies with the status of an error that the backend accepted and read as answers, by status.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub accepted_errors: BTreeMap<u16, u64>,
    /// Beside these, those with the status 404 that a further request followed, as where a result is
    /// not there yet.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub accepted_not_yet: u64,
    /// Those that waited for a connection to be opened.
    pub waited_for_connection: u64,
    /// Requests of the warm-up; no other figure includes them.
    pub warmup: u64,
}

/// Failures of one class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Failures {
    /// The number of them.
    pub count: u64,
    /// Their number by HTTP status; of the class `http-status`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub statuses: BTreeMap<u16, u64>,
    /// Their number by the reason that the server gave; failures without a reason are not included.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reasons: BTreeMap<Reason, u64>,
    /// Index of the first of them.
    pub first: u64,
    /// The first few kinds of messages, in the order of the requests. Messages are of one kind if
    /// they differ only in words with digits, and come with the same status.
    pub messages: Vec<Message>,
    /// The number of those that had a message of another kind than these.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub other_messages: u64,
}

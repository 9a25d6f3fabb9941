//! The parts of the mean time to first token by the server's series, where no reply states its own:
//! means over the stages of all requests. No request's own time is known, so there are no
//! percentiles.

use super::{NOTHING_MS, Parts, UNEXPLAINED};
use ::series::{Stage, Stages};

/// The parts of the mean time from due to first token, by the server's series.
///
/// This client's parts are of the answered requests with a first token. The stages are means over
/// all requests that the server observed during the measurement, requests of other clients
/// included.
#[model::apply(model::document!)]
pub struct BySeries {
    /// The number of answered requests with a first token.
    pub requests: u64,
    /// The time from due to first token, in milliseconds.
    pub whole_ms: f64,
    /// The time from due to sent, without the wait for a connection.
    pub client_ms: f64,
    /// The wait for a connection to open, after the request could have been sent.
    pub connection_ms: f64,
    /// The stages in the server.
    pub server: Stages,
    /// The rest of the whole: network, front ends, routers, and time that no series tells. Negative
    /// if the stages are longer than the whole.
    pub unexplained_ms: f64,
}

impl BySeries {
    pub(super) fn new(requests: u64, client: &Parts, stages: &Stages) -> Self {
        let server: f64 = stages.stages.iter().map(|staged| staged.mean_ms).sum();
        BySeries {
            requests,
            whole_ms: client.whole_ms,
            client_ms: client.client_ms,
            connection_ms: client.connection_ms,
            server: stages.clone(),
            unexplained_ms: client.whole_ms - client.client_ms - client.connection_ms - server,
        }
    }

    /// The names and times of the parts, in order, and of the unexplained time, if there is any.
    pub fn named(&self) -> Vec<(&'static str, f64)> {
        let own = [("client", self.client_ms), ("connection", self.connection_ms)];
        let stages = self.server.stages.iter().map(|staged| (label(staged.stage), staged.mean_ms));
        let rest = self.unexplained_ms;
        let rest = (rest.abs() >= NOTHING_MS).then_some((UNEXPLAINED, rest));
        own.into_iter().chain(stages).chain(rest).collect()
    }

    /// A time's share of the whole, from 0 to 1; absent if no time passed.
    pub fn share(&self, ms: f64) -> Option<f64> {
        (self.whole_ms > 0.0).then(|| ms / self.whole_ms)
    }
}

fn label(stage: Stage) -> &'static str {
    match stage {
        Stage::Queue => "queue",
        Stage::PrefillQueue => "queue before prefill",
        Stage::Prefill => "prefill",
        Stage::Transfer => "transfer",
        Stage::DecodeQueue => "queue before decode",
        Stage::FirstStep => "first step of decode",
    }
}

//! A request with its phases, as a waterfall shows it.

use super::one;
use model::exchange::{Class, Outcome};
use model::units::Nanos;
use result::metric::{self, Reading};
use result::summary::first_token::Split;

/// A request and its phases. Instants are seconds since the start of the measurement, spans
/// milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub index: u64,
    pub id: String,
    pub due_s: f64,
    /// The time for which the cap held it back; absent without a cap.
    pub queue_ms: Option<f64>,
    /// The time from when it could have been sent until it was; absent if it was not sent.
    pub send_lag_ms: Option<f64>,
    /// The part of that time that it waited for a connection; absent if it did not wait.
    pub connection_ms: Option<f64>,
    pub sent_s: Option<f64>,
    /// The time from sent to its first token.
    pub ttft_ms: Option<f64>,
    /// The parts of the time to its first token; absent if its server does not tell them.
    pub split: Option<Split>,
    /// The end of its reply, well or badly.
    pub ended_s: Option<f64>,
    /// The time from sent to the last event.
    pub e2e_ms: Option<f64>,
    /// Tokens of its prompt.
    pub input_tokens: Option<u32>,
    /// Tokens of its answer.
    pub output_tokens: Option<u32>,
    /// The failure; absent if it was answered in full.
    pub failure: Option<Class>,
}

impl Request {
    pub(super) fn new(reading: &Reading<'_>, origin: Nanos) -> Self {
        let exchange = reading.exchange;
        let second = |at: Nanos| at.since(origin).as_secs_f64();
        Request {
            index: exchange.index,
            id: exchange.sample.id.clone(),
            due_s: second(exchange.due),
            queue_ms: one(metric::QUEUE, reading),
            send_lag_ms: one(metric::SEND_LAG, reading),
            connection_ms: one(metric::CONNECTION_WAIT, reading),
            sent_s: exchange.sent.map(second),
            ttft_ms: one(metric::TTFT, reading),
            split: Split::new(reading),
            ended_s: exchange.ended.map(second),
            e2e_ms: one(metric::E2E, reading),
            input_tokens: reading.input_tokens.map(|count| count.tokens),
            output_tokens: reading.output_tokens.map(|count| count.tokens),
            failure: match &exchange.outcome {
                Outcome::Ok => None,
                Outcome::Incomplete { class, .. } => Some(*class),
            },
        }
    }

    /// Returns the end of its last phase, as far as is known.
    pub(crate) fn over_s(&self) -> f64 {
        let known = self.ended_s.or(self.sent_s);
        known.unwrap_or(self.due_s + self.queue_ms.unwrap_or(0.0) / 1000.0)
    }
}

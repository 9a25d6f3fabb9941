//! The stages of an exchange before its outcome is known. None of them can be recorded.
//!
//! A request is [`Prepared`] ahead of need, and [`Due`] when the pacer lets it go or the run ends.
//! With a worker, the exchange is [`Open`]. The recorder takes an [`Exchange`], which only
//! [`Open::finish`] and [`Due::unsent`] make of these, and both take an outcome.

use std::collections::BTreeMap;

use super::{Connection, Events, Exchange, Outcome, Phase, Ranked, SampleFacts};
use super::{ServerTimings, Speculation, Step, Usage, Vectors};
use crate::identity::Ids;
use crate::units::Nanos;

/// A request that is written and not yet due.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    /// Position in its phase's sequence of samples, from 0.
    pub index: u64,
    /// Part of the run that it belongs to.
    pub phase: Phase,
    /// Facts about its sample.
    pub sample: SampleFacts,
    /// Index of its target among the plan's targets, from 0.
    pub target: u32,
    /// Instant at which the first request that it depends on released it; absent without any.
    pub released: Option<Nanos>,
    /// True if the request forces the length of its answer, which is then the number of output
    /// tokens that it asks for.
    pub forces_length: bool,
    /// The ids that it carries; absent if it carries none.
    pub ids: Option<Box<Ids>>,
}

/// A request whose time has come.
#[derive(Clone, Debug, PartialEq)]
pub struct Due {
    /// The request. It stays in its box, so that the pacer moves a pointer.
    pub prepared: Box<Prepared>,
    /// Instant at which it should be sent.
    pub due: Nanos,
    /// Instant at which the cap on requests in flight released it; absent if it did not.
    pub granted: Option<Nanos>,
}

/// An exchange under way, with the times so far. An absent time has not come, or never will.
#[derive(Clone, Debug, PartialEq)]
pub struct Open {
    /// The request.
    pub request: Due,
    /// Opening of its connection.
    pub connection: Option<Connection>,
    /// Instant at which its first byte was handed to the socket.
    pub sent: Option<Nanos>,
    /// Instant at which its last byte was handed to the socket.
    pub written: Option<Nanos>,
    /// Instant at which the reply's first byte was read.
    pub first_byte: Option<Nanos>,
    /// Instant at which the reply's headers were complete.
    pub headers: Option<Nanos>,
    /// The reply's HTTP status.
    pub status: Option<u16>,
    /// The longest time that bytes of the reply lay in the socket before they were read.
    pub read_lag: Option<Nanos>,
    /// Instant at which the reply ended, well or badly.
    pub ended: Option<Nanos>,
    /// Its requests, if it is of several by its nature.
    pub steps: Vec<Step>,
    /// Instants at which messages were handed to a WebSocket: all that may be the last before the
    /// first output, and perhaps more.
    pub inputs: Vec<Nanos>,
}

/// The decoded reply of an exchange, as far as it came.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// Meaning and arrival of its frames.
    pub events: Events,
    /// The answer's text.
    pub output: String,
    /// The text of its reasoning.
    pub reasoning: String,
    /// The text of its tool calls.
    pub tool_calls: String,
    /// The texts of further answers.
    pub choices: Vec<String>,
    /// The vectors, if there are any.
    pub vectors: Option<Vectors>,
    /// The order, best first.
    pub order: Vec<Ranked>,
    /// The server's own finish reason.
    pub finish: Option<String>,
    /// Counts of tokens that the server reported, if it did.
    pub usage: Option<Usage>,
    /// The server's own timings, if it reported them.
    pub timings: Option<ServerTimings>,
    /// The steps of speculative decoding, if the server reported them.
    pub speculation: Option<Speculation>,
    /// The length of the answer's sound, if its pieces state theirs.
    pub audio_duration: Option<Nanos>,
    /// Further numbers that the server counted, by name.
    pub counts: BTreeMap<String, u64>,
}

impl Prepared {
    /// A request of the measurement to the first target, which depends on no other and has no ids.
    pub fn new(index: u64, sample: SampleFacts) -> Box<Self> {
        Box::new(Prepared {
            index,
            phase: Phase::Measure,
            sample,
            target: 0,
            released: None,
            forces_length: false,
            ids: None,
        })
    }

    /// Makes the request due at `due`; the cap released it at `granted`.
    pub fn due(self: Box<Self>, due: Nanos, granted: Option<Nanos>) -> Due {
        Due { prepared: self, due, granted }
    }
}

impl Due {
    /// A worker has the request.
    pub fn open(self) -> Open {
        Open {
            request: self,
            connection: None,
            sent: None,
            written: None,
            first_byte: None,
            headers: None,
            status: None,
            read_lag: None,
            ended: None,
            steps: Vec::new(),
            inputs: Vec::new(),
        }
    }

    /// The request was never sent, for this reason.
    pub fn unsent(self, outcome: Outcome) -> Exchange {
        self.open().finish(Reply::default(), outcome)
    }
}

impl Open {
    /// The exchange is over, with this outcome.
    pub fn finish(self, reply: Reply, outcome: Outcome) -> Exchange {
        let Due { prepared, due, granted } = self.request;
        let Prepared { index, phase, sample, target, released, forces_length: _, ids } = *prepared;
        let first = reply.events.iter().find(|event| event.kind.is_output());
        let input_sent = first.and_then(|first| {
            let mut inputs = self.inputs.into_iter().rev();
            inputs.find(|sent| *sent <= first.at)
        });
        Exchange {
            index,
            phase,
            sample,
            due,
            released,
            granted,
            target,
            connection: self.connection,
            sent: self.sent,
            written: self.written,
            input_sent,
            first_byte: self.first_byte,
            headers: self.headers,
            status: self.status,
            read_lag: self.read_lag,
            events: reply.events,
            ended: self.ended,
            steps: self.steps,
            output: reply.output,
            reasoning: reply.reasoning,
            tool_calls: reply.tool_calls,
            choices: reply.choices,
            vectors: reply.vectors,
            order: reply.order,
            finish: reply.finish,
            usage: reply.usage,
            timings: reply.timings,
            speculation: reply.speculation,
            audio_duration: reply.audio_duration,
            counts: reply.counts,
            ids,
            outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::{Class, Event, Kind};

    fn prepared() -> Box<Prepared> {
        let sample = serde_json::json!({ "id": "a", "request-bytes": 2, "request-digest": "0f" });
        let sample = serde_json::from_value(sample).unwrap();
        Box::new(Prepared { target: 1, ..*Prepared::new(3, sample) })
    }

    #[test]
    fn a_finished_exchange_holds_what_each_stage_saw() {
        let mut open = prepared().due(Nanos(10), Some(Nanos(11))).open();
        open.sent = Some(Nanos(12));
        open.written = Some(Nanos(13));
        open.first_byte = Some(Nanos(14));
        open.headers = Some(Nanos(15));
        open.status = Some(200);
        open.read_lag = Some(Nanos(1));
        open.ended = Some(Nanos(17));
        let mut reply =
            Reply { output: "hi".to_owned(), finish: Some("stop".to_owned()), ..Reply::default() };
        reply.events.push(Event { at: Nanos(16), kind: Kind::Text, tokens: None, bytes: 2 });
        let exchange = open.finish(reply, Outcome::Ok);
        assert_eq!(
            serde_json::to_string(&exchange).unwrap(),
            concat!(
                r#"{"index":3,"phase":"measure","#,
                r#""sample":{"id":"a","request-bytes":2,"request-digest":"0f"},"due":10,"granted":11,"#,
                r#""target":1,"sent":12,"written":13,"first-byte":14,"headers":15,"status":200,"#,
                r#""read-lag":1,"events":{"at":[16],"kind":"t","bytes":[2]},"ended":17,"output":"hi","#,
                r#""finish":"stop","outcome":{"class":"complete"}}"#
            )
        );
    }

    #[test]
    fn the_last_message_before_the_output_is_its_input() {
        let input_sent = |events: &[(u64, Kind)]| {
            let mut open = prepared().due(Nanos(10), None).open();
            open.inputs = [12, 20, 30].map(Nanos).to_vec();
            let mut reply = Reply::default();
            for (at, kind) in events {
                reply.events.push(Event { at: Nanos(*at), kind: *kind, tokens: None, bytes: 0 });
            }
            open.finish(reply, Outcome::Ok).input_sent
        };
        let role = (13, Kind::Role);
        assert_eq!(input_sent(&[role, (25, Kind::Text)]), Some(Nanos(20)));
        assert_eq!(input_sent(&[role, (30, Kind::Audio), (40, Kind::Text)]), Some(Nanos(30)));
        assert_eq!(input_sent(&[(11, Kind::Text)]), None);
        assert_eq!(input_sent(&[role, (50, Kind::End)]), None);
    }

    #[test]
    fn a_request_that_was_never_sent_has_its_due_time_and_its_reason() {
        let outcome = Outcome::Incomplete {
            class: Class::NotSent,
            reason: None,
            message: "no slot came free".to_owned(),
        };
        let exchange = prepared().due(Nanos(10), None).unsent(outcome.clone());
        assert_eq!((exchange.due, exchange.sent, exchange.ended), (Nanos(10), None, None));
        assert_eq!(exchange.outcome, outcome);
        assert!(!exchange.is_ok());
    }
}

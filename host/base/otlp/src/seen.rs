//! The parts of an exchange that spans and metrics need. They are taken when the exchange is
//! recorded, because the exchange itself, with its texts and its events, is not kept.

use model::exchange::{Class, Connection, Exchange, Outcome, Phase};
use model::identity::Ids;
use model::units::Nanos;

/// The longest message of a failure that a span has, in bytes.
const MESSAGE: usize = 512;

/// The facts of an exchange that spans and metrics are made of.
#[derive(Clone, Debug)]
pub struct Seen {
    pub(crate) index: u64,
    pub(crate) phase: Phase,
    pub(crate) ids: Option<Box<Ids>>,
    pub(crate) sample: String,
    pub(crate) class: Option<String>,
    pub(crate) conversation: Option<String>,
    pub(crate) turn: Option<u32>,
    /// True if it depends on other requests.
    pub(crate) is_follower: bool,
    pub(crate) descendants: u32,
    pub(crate) target: u32,
    pub(crate) due: Nanos,
    pub(crate) granted: Option<Nanos>,
    pub(crate) connection: Option<Connection>,
    pub(crate) sent: Option<Nanos>,
    pub(crate) written: Option<Nanos>,
    pub(crate) first_byte: Option<Nanos>,
    pub(crate) headers: Option<Nanos>,
    pub(crate) first_output: Option<Nanos>,
    pub(crate) last_output: Option<Nanos>,
    pub(crate) outputs: u64,
    pub(crate) ended: Option<Nanos>,
    pub(crate) status: Option<u16>,
    pub(crate) requested_tokens: Option<u32>,
    pub(crate) input_tokens: Option<u32>,
    pub(crate) cached_tokens: Option<u32>,
    pub(crate) output_tokens: Option<u32>,
    pub(crate) finish: Option<String>,
    pub(crate) is_of_vectors: bool,
    pub(crate) is_of_order: bool,
    pub(crate) requests: u64,
    /// The failure: its class and its message. Absent for an exchange that was cancelled on
    /// purpose.
    pub(crate) failure: Option<(Class, String)>,
    /// True if it was cancelled on purpose.
    pub(crate) is_cancelled: bool,
}

impl Seen {
    /// The facts of this exchange.
    pub fn of(exchange: &Exchange) -> Self {
        let events = &exchange.events;
        let outputs = || (events.kind.iter().enumerate()).filter(|(_, kind)| kind.is_output());
        let at = |found: Option<(usize, _)>| found.and_then(|(place, _)| events.at.get(place));
        let usage = exchange.usage.as_ref();
        let sample = &exchange.sample;
        let class = exchange.outcome.class();
        Seen {
            index: exchange.index,
            phase: exchange.phase,
            ids: exchange.ids.clone(),
            sample: sample.id.clone(),
            class: sample.class.clone(),
            conversation: sample.turn.as_ref().map(|turn| turn.session.clone()),
            turn: sample.turn.as_ref().map(|turn| turn.index),
            is_follower: !sample.parents.is_empty(),
            descendants: sample.descendants,
            target: exchange.target,
            due: exchange.due,
            granted: exchange.granted,
            connection: exchange.connection,
            sent: exchange.sent,
            written: exchange.written,
            first_byte: exchange.first_byte,
            headers: exchange.headers,
            first_output: at(outputs().next()).copied(),
            last_output: at(outputs().next_back()).copied(),
            outputs: outputs().count() as u64,
            ended: exchange.ended,
            status: exchange.status,
            requested_tokens: sample.output_tokens,
            input_tokens: usage.and_then(|usage| usage.input_tokens),
            cached_tokens: usage.and_then(|usage| usage.cached_input_tokens),
            output_tokens: usage.and_then(|usage| usage.output_tokens),
            finish: exchange.finish.clone(),
            is_of_vectors: exchange.vectors.is_some(),
            is_of_order: !exchange.order.is_empty(),
            requests: exchange.steps.len() as u64,
            failure: match &exchange.outcome {
                Outcome::Incomplete { message, .. } if class != Class::Cancelled => {
                    let end = message.floor_char_boundary(MESSAGE);
                    Some((class, message[..end].to_owned()))
                }
                _ => None,
            },
            is_cancelled: class == Class::Cancelled,
        }
    }

    /// The instant of its end, or of its last event if it was given up.
    pub(crate) fn end(&self) -> Nanos {
        let seen = [self.sent, self.written, self.first_byte];
        let last = || seen.into_iter().flatten().max();
        self.ended.or_else(last).map_or(self.due, |last| last.max(self.due))
    }
}

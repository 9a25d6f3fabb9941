//! The writer of a reply, and the values that it gets.

use crate::answer::Answer;
use crate::ask::types::Refusal;
use crate::truth::Timings;

/// The end marker of every built-in dialect.
const DONE: &[u8] = b"data: [DONE]\n\n";

/// Tokens `from..to` of an answer, to be sent as one event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Piece {
    pub from: u32,
    pub to: u32,
    /// True if it carries the finish reason.
    pub last: bool,
    /// Since the engine began to process the request; some dialects report it at the end.
    pub seconds: f64,
    /// The engine's own timings, which some dialects report at the end.
    pub timings: Option<Timings>,
}

pub(crate) trait Wire: Send {
    /// The event that has a role but no text; empty in dialects without one.
    fn role(&self, _: &mut Vec<u8>) {}
    fn piece(&self, answer: &Answer, piece: Piece, out: &mut Vec<u8>);
    /// The event that holds usage and no choice; empty if there is none.
    fn usage(&self, _: &Answer, _: &mut Vec<u8>) {}
    /// The end marker.
    fn done(&self, _: &Answer, out: &mut Vec<u8>) {
        out.extend(DONE);
    }
    /// The whole reply to a request that does not stream: all tokens as one piece.
    fn whole(&self, answer: &Answer, all: Piece, out: &mut Vec<u8>);
    /// The whole reply without an answer, where that is none of the route's errors.
    fn failed(&self, _: &Refusal) -> Option<Vec<u8>> {
        None
    }
}

/// Values that all parts of one reply share.
pub(crate) struct Head<'a> {
    /// The request's number, from which its id is made.
    pub number: u64,
    /// Seconds since 1970.
    pub created: u64,
    /// The default model, if the request names none.
    pub model: &'a str,
    /// Tokens of the prompt that were in the prefix cache.
    pub cached_tokens: u32,
}

impl Head<'_> {
    /// An id of 16 hexadecimal digits.
    pub fn id(&self) -> String {
        format!("{:016x}", model::random::mix(self.number))
    }
}

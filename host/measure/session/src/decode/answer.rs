//! An unfinished answer: the meaning of each frame in a compact form, in part on disk if memory is
//! short. An event of one token takes about ten bytes here and thirty in an
//! [`Exchange`](model::exchange::Exchange), whose columns are made when the reply has ended.

use std::collections::BTreeMap;
use std::io;

use super::{Extent, Fault, Spool};
use load::drive::demand::Demand;
use model::exchange::{
    Class, Event, GATEWAY_OVERHEAD, Kind, Ranked, Reply, ServerTimings, Speculation, Usage, Vectors,
};
use model::frame::Frames;
use model::units::Nanos;
use plugins::backend::{Fold, Meaning, Output, Request, Step};

const EVENT_BYTES: usize = 32;
/// Every kind of event. A kind's place here is its number in a log.
const KINDS: [Kind; 11] = [
    Kind::Role,
    Kind::Text,
    Kind::Reasoning,
    Kind::Tool,
    Kind::Usage,
    Kind::Finish,
    Kind::Failure,
    Kind::End,
    Kind::Vector,
    Kind::Order,
    Kind::Audio,
];
/// The first capacity of a log, in bytes: about fifty events of one token.
const LOG_BYTES: usize = 512;
/// The bits of an event's first byte that give its kind.
const KIND: u8 = 15;
/// Set in an event's first byte if its tokens are known.
const HAS_TOKENS: u8 = 16;
/// Set in an event's first byte if it belongs to another answer than the first.
const HAS_CHOICE: u8 = 32;
/// The most answers to one request that are kept apart; later ones are recorded without text.
const CHOICES: u32 = 1024;
/// The most texts of an order that are kept.
const RANKED: usize = 4096;

#[derive(Default)]
pub(super) struct Answer {
    /// Its place among all replies, in the order in which their requests were sent.
    pub(super) place: u64,
    /// The plugin's memory of the reply; absent before it was shown the reply's head.
    pub(super) fold: Option<Fold>,
    /// The state that the plugin carries to the next request of the conversation.
    pub(super) carry: Option<Vec<u8>>,
    /// Frames that wait until it is worth handing over a large state.
    pub(super) waiting: Frames,
    log: Log,
    finish: Option<String>,
    usage: Option<Usage>,
    timings: Option<ServerTimings>,
    speculation: Option<Speculation>,
    pub(super) counts: BTreeMap<String, u64>,
    /// Microseconds that a gateway states as its own, apart from the plugin's limited numbers.
    pub(super) gateway_overhead: Option<u64>,
    pub(super) clean_up: Option<Box<Request>>,
    /// Milliseconds of sound so far, as far as they are known; absent before the first piece.
    audio: Option<Option<f64>>,
    vectors: Option<Vectors>,
    order: Vec<Ranked>,
    pub(super) whole: bool,
    /// True if it has no end marker, and is complete when the reply's body is.
    pub(super) ends_with_body: bool,
    /// Arrival of its first output, until those who wait for it know.
    pub(super) first_output: Option<Nanos>,
    has_output: bool,
    pub(super) last_output: Nanos,
    pub(super) fault: Option<Fault>,
    /// True if a reply may name a next request.
    pub(super) is_of_steps: bool,
    pub(super) next: Option<Box<Step>>,
    pub(super) followed: u32,
    /// The demands of the WebSocket messages that are being decoded; absent of other replies.
    pub(super) demands: Option<Vec<Demand>>,
    has_result: bool,
    pub(super) received: usize,
}

#[derive(Default)]
struct Log {
    bytes: Vec<u8>,
    /// The parts on disk, in order.
    spooled: Vec<Extent>,
    events: usize,
    text: usize,
    last: Nanos,
}

impl Answer {
    pub(super) fn size(&self) -> usize {
        self.log.text + self.log.events * EVENT_BYTES + self.finish.as_ref().map_or(0, String::len)
    }

    /// Returns the memory that it takes, in bytes, more or less.
    pub(super) fn memory(&self) -> usize {
        self.log.bytes.capacity()
            + self.log.spooled.capacity() * size_of::<Extent>()
            + self.fold.as_ref().map_or(0, Fold::bytes)
            + self.carry.as_ref().map_or(0, Vec::len)
            + size_of_val(&*self.order)
            + (self.speculation.as_ref()).map_or(0, |steps| size_of_val(&*steps.steps_by_accepted))
            + self.counts.keys().map(|name| name.len() + size_of::<(String, u64)>()).sum::<usize>()
            + self.clean_up.as_ref().map_or(0, |request| request.body.len() + request.path.len())
            + self.waiting.bytes().len()
            + (self.next.as_ref()).map_or(0, |step| step.request.body.len() + step.context.len())
            + self.finish.as_ref().map_or(0, String::len)
    }

    pub(super) fn has_output(&self) -> bool {
        let counted = self.usage.and_then(|usage| usage.output_tokens);
        self.has_result || counted.is_some_and(|tokens| tokens > 0)
    }

    /// Moves the log to disk, if it is worth a write.
    pub(super) fn spool(&mut self, spool: &Spool, least: usize) -> io::Result<()> {
        if self.log.bytes.len() >= least {
            self.log.spooled.push(spool.write(&self.log.bytes)?);
            self.log.bytes = Vec::new();
        }
        Ok(())
    }

    /// Takes one meaning in and returns the event to record of it, if there is one.
    pub(super) fn add(&mut self, at: Nanos, meaning: Meaning) -> Option<Event> {
        let mut text = String::new();
        let mut choice = 0;
        let mut take = |piece: Output, kind| {
            (text, choice) = (piece.text, piece.choice);
            (kind, piece.tokens)
        };
        let (kind, tokens) = match meaning {
            Meaning::Opened => (Kind::Role, None),
            Meaning::Text(piece) => take(piece, Kind::Text),
            Meaning::Reasoning(piece) => take(piece, Kind::Reasoning),
            Meaning::ToolCall(piece) => take(piece, Kind::Tool),
            Meaning::Vector(vector) => {
                let vectors = self.vectors.get_or_insert_default();
                let length = u32::try_from(vector.values.len()).unwrap_or(u32::MAX);
                vectors.count += 1;
                vectors.dimensions = vectors.dimensions.max(length);
                self.has_result |= length > 0;
                (Kind::Vector, None)
            }
            Meaning::Order(order) => {
                self.has_result |= !order.is_empty();
                let ranked = order
                    .into_iter()
                    .take(RANKED)
                    .map(|text| Ranked { index: text.index, score: text.score });
                self.order = ranked.collect();
                (Kind::Order, None)
            }
            Meaning::Carry(bytes) => {
                self.carry = Some(bytes);
                return None;
            }
            Meaning::Audio(sound) => {
                self.has_result = true;
                choice = sound.choice;
                if choice == 0 {
                    self.hear(sound.duration);
                }
                (Kind::Audio, None)
            }
            Meaning::Usage(usage) => {
                self.usage = Some(usage.into());
                (Kind::Usage, None)
            }
            Meaning::Timings(timings) => {
                self.timings = Some(timings.into());
                return None;
            }
            Meaning::Speculation(speculation) => {
                self.speculation = Some(speculation.into());
                return None;
            }
            Meaning::EndsWithBody => {
                self.ends_with_body = true;
                return None;
            }
            Meaning::CleanUp(request) => {
                self.clean_up = Some(Box::new(request));
                return None;
            }
            // No name of `further` is known yet, and counts are kept before.
            Meaning::Further(_) | Meaning::Count(_) => return None,
            // Instructions to the reader are no part of the answer.
            Meaning::Next(_) | Meaning::Send(_) | Meaning::Proceed => return None,
            Meaning::Finish(word) => {
                self.finish = Some(word);
                (Kind::Finish, None)
            }
            Meaning::Failure(refusal) => {
                self.fault = Some(Fault::refused(Class::InBandError, refusal));
                (Kind::Failure, None)
            }
            Meaning::End => {
                self.whole = true;
                (Kind::End, None)
            }
        };
        self.has_result |= !text.is_empty();
        let event =
            Event { at, kind, tokens, bytes: u32::try_from(text.len()).unwrap_or(u32::MAX) };
        self.log.push(event, choice, &text);
        if kind.is_output() {
            self.last_output = at;
            if !std::mem::replace(&mut self.has_output, true) {
                self.first_output = Some(at);
            }
        }
        Some(event)
    }

    /// Adds a piece of sound, in milliseconds. One piece of unknown length makes all unknown.
    fn hear(&mut self, milliseconds: Option<f64>) {
        let length = self.audio.unwrap_or(Some(0.0));
        self.audio = Some(length.zip(milliseconds).map(|(length, more)| length + more));
    }

    pub(super) fn into_reply(mut self) -> io::Result<Reply> {
        let overhead = self.gateway_overhead.map(|micros| (GATEWAY_OVERHEAD.to_owned(), micros));
        self.counts.extend(overhead);
        let mut reply = Reply {
            finish: self.finish,
            usage: self.usage,
            timings: self.timings,
            speculation: self.speculation,
            audio_duration: self.audio.flatten().map(Nanos::from_millis_f64),
            counts: self.counts,
            vectors: self.vectors,
            order: self.order,
            ..Reply::default()
        };
        reply.events.reserve(self.log.events);
        reply.output.reserve(self.log.text);
        let mut at = Nanos::ZERO;
        for extent in self.log.spooled {
            unpack(&extent.read()?, &mut at, &mut reply)?;
        }
        unpack(&self.log.bytes, &mut at, &mut reply)?;
        Ok(reply)
    }
}

impl Log {
    fn push(&mut self, event: Event, choice: u32, text: &str) {
        if self.bytes.capacity() == 0 {
            self.bytes.reserve(LOG_BYTES);
        }
        let kind = KINDS.iter().position(|kind| *kind == event.kind);
        let kind = kind.unwrap_or_default() as u8;
        let has_tokens = event.tokens.map_or(0, |_| HAS_TOKENS);
        let has_choice = if choice > 0 { HAS_CHOICE } else { 0 };
        self.bytes.push(kind | has_tokens | has_choice);
        // The difference has a sign: an end that is seen without bytes may go back.
        let step = event.at.0.wrapping_sub(self.last.0) as i64;
        put(&mut self.bytes, ((step << 1) ^ (step >> 63)) as u64);
        self.last = event.at;
        if let Some(tokens) = event.tokens {
            put(&mut self.bytes, tokens.into());
        }
        if choice > 0 {
            put(&mut self.bytes, choice.into());
        }
        put(&mut self.bytes, text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
        self.events += 1;
        self.text += text.len();
    }
}

/// Appends the events of a part of a log. `at` is the time of the event before.
fn unpack(mut log: &[u8], at: &mut Nanos, reply: &mut Reply) -> io::Result<()> {
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, "the answer on disk is damaged");
    while let Some((first, rest)) = log.split_first() {
        log = rest;
        let kind = *KINDS.get(usize::from(first & KIND)).ok_or_else(damaged)?;
        let step = take(&mut log).ok_or_else(damaged)?;
        let step = (step >> 1) as i64 ^ -((step & 1) as i64);
        *at = Nanos(at.0.wrapping_add_signed(step));
        let tokens = match first & HAS_TOKENS {
            0 => None,
            _ => Some(u32::try_from(take(&mut log).ok_or_else(damaged)?).map_err(|_| damaged())?),
        };
        let choice = match first & HAS_CHOICE {
            0 => 0,
            _ => u32::try_from(take(&mut log).ok_or_else(damaged)?).map_err(|_| damaged())?,
        };
        let length = take(&mut log).ok_or_else(damaged)?;
        let (text, rest) = usize::try_from(length)
            .ok()
            .and_then(|length| log.split_at_checked(length))
            .ok_or_else(damaged)?;
        log = rest;
        let text = std::str::from_utf8(text).map_err(|_| damaged())?;
        match (kind, choice) {
            (Kind::Reasoning, 0) => reply.reasoning.push_str(text),
            (Kind::Tool, 0) => reply.tool_calls.push_str(text),
            (_, 0) => reply.output.push_str(text),
            (Kind::Text, 1..=CHOICES) => {
                let further = choice as usize;
                if reply.choices.len() < further {
                    reply.choices.resize(further, String::new());
                }
                reply.choices[further - 1].push_str(text);
            }
            // Of further answers only the text is kept.
            _ => {}
        }
        reply.events.push(Event {
            at: *at,
            kind,
            tokens,
            bytes: u32::try_from(text.len()).unwrap_or(u32::MAX),
        });
    }
    Ok(())
}

/// Appends a number, seven bits a byte, the lowest first.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::exchange::Events;
    use proptest::prelude::*;

    fn piece(text: String, tokens: Option<u32>) -> Output {
        Output { text, tokens, choice: 0 }
    }

    #[test]
    fn choices_are_recorded_separately() {
        let mut answer = Answer::default();
        for (choice, text) in [(0, "a"), (2, "c"), (1, "b"), (0, "A"), (2, "C")] {
            let piece = Output { choice, ..piece(text.to_owned(), Some(1)) };
            answer.add(Nanos(1), Meaning::Text(piece));
        }
        let reply = answer.into_reply().unwrap();
        assert_eq!(reply.output, "aA");
        assert_eq!(reply.choices, ["b", "cC"]);
        assert_eq!(reply.events.tokens.len(), 5);
    }

    #[test]
    fn later_usage_replaces_earlier_usage() {
        let timings = |queue, decode| {
            Meaning::Timings(plugins::backend::Timings {
                queue,
                prefill: None,
                first_token: Some(12.25),
                decode,
            })
        };
        let speculation = |accepted: &[u32]| {
            Meaning::Speculation(plugins::backend::Speculation {
                steps: accepted.iter().sum(),
                steps_by_accepted: accepted.to_vec(),
            })
        };
        let mut answer = Answer::default();
        for meaning in [
            timings(Some(1.5), None),
            speculation(&[2, 1]),
            timings(None, Some(0.0)),
            speculation(&[1, 1, 1]),
        ] {
            assert_eq!(answer.add(Nanos(7), meaning), None);
        }
        assert!(!answer.has_output());
        let reply = answer.into_reply().unwrap();
        let last = ServerTimings {
            first_token: Some(Nanos(12_250_000)),
            decode: Some(Nanos(0)),
            ..ServerTimings::default()
        };
        assert_eq!(reply.timings, Some(last));
        let steps = reply.speculation.unwrap();
        assert_eq!((steps.steps, steps.accepted_tokens()), (3, Some(3)));
        assert_eq!(reply.events, Events::default());
    }

    fn meaning() -> impl Strategy<Value = Meaning> {
        let fields = (".{0,9}", prop::option::of(any::<u32>()));
        (0..6, fields).prop_map(|(kind, (text, tokens))| match kind {
            0 => Meaning::Opened,
            1 => Meaning::Text(piece(text, tokens)),
            2 => Meaning::Reasoning(piece(text, tokens)),
            3 => Meaning::ToolCall(piece(text, tokens)),
            4 => Meaning::Finish(text),
            _ => Meaning::End,
        })
    }

    proptest! {
        /// The reply equals the added meanings, wherever they were spooled.
        #[test]
        fn answer_equals_its_added_meanings(
            added in prop::collection::vec((any::<u64>(), meaning(), any::<bool>()), 0..40),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let spool = Spool::new(folder.path());
            let mut answer = Answer::default();
            let mut events = Events::default();
            let mut texts = [String::new(), String::new(), String::new()];
            for (at, meaning, is_spooled) in added {
                match &meaning {
                    Meaning::Text(piece) => texts[0].push_str(&piece.text),
                    Meaning::Reasoning(piece) => texts[1].push_str(&piece.text),
                    Meaning::ToolCall(piece) => texts[2].push_str(&piece.text),
                    _ => {}
                }
                events.push(answer.add(Nanos(at), meaning).unwrap());
                if is_spooled {
                    answer.spool(&spool, 1).unwrap();
                }
            }
            let reply = answer.into_reply().unwrap();
            prop_assert_eq!(reply.events, events);
            prop_assert_eq!([reply.output, reply.reasoning, reply.tool_calls], texts);
        }
    }

    #[test]
    fn one_token_event_is_small() {
        let mut answer = Answer::default();
        for number in 0..1_000_u64 {
            let text = piece(" word".to_owned(), Some(1));
            answer.add(Nanos(1_000_000_000 + number * 20_000_000), Meaning::Text(text));
        }
        let bytes = answer.log.bytes.len();
        assert!(bytes <= 13_000, "{bytes} bytes for 5,000 of text in 1,000 events");
    }
}

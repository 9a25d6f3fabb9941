//! An exchange as metrics look at it: the instants and counts that definitions speak of, found in
//! one pass over its events, without memory for any of them.

use super::count::{self, Count};
use model::exchange::{Event, Exchange, Kind};
use model::units::Nanos;

/// The instants and counts of one exchange that metrics are defined by.
#[derive(Clone, Debug)]
pub struct Reading<'a> {
    pub exchange: &'a Exchange,
    pub output_tokens: Option<Count>,
    pub input_tokens: Option<Count>,
    /// Output events that carry bytes.
    pub pieces: u64,
    /// The sum over the output events, if each states its tokens.
    pub stated: Option<u32>,
    /// True if the reply came in pieces that show when its tokens were generated.
    pub(crate) streamed: bool,
    /// The time per token at which the answer is read, if the run has an objective on it.
    pub(super) pace: Option<Nanos>,
    pub(super) first: Option<Nanos>,
    pub(super) first_output: Option<Nanos>,
    pub(super) second_output: Option<Nanos>,
    pub(super) first_reasoning: Option<Nanos>,
    pub(super) first_answer: Option<Nanos>,
    pub(super) first_audio: Option<Nanos>,
    pub(super) last_output: Option<Nanos>,
    pub(super) usage: Option<Nanos>,
    pub(super) last: Option<Nanos>,
    pub(super) longest: Option<Nanos>,
    /// Tokens of the first output event that carries any, if each states its tokens.
    pub(super) first_tokens: Option<u32>,
    outputs: u64,
    bytes: u64,
}

impl<'a> Reading<'a> {
    /// Reads an exchange. `streamed` is whether replies were requested as a stream: the single
    /// event of a whole body does not show when the first token came. `retokenized` is the number
    /// of tokens that the client's tokenizer finds in the answer.
    pub fn new(exchange: &'a Exchange, streamed: bool, retokenized: Option<u32>) -> Self {
        let at = &exchange.events.at;
        let mut reading = Reading {
            exchange,
            output_tokens: None,
            input_tokens: count::input(exchange),
            pieces: 0,
            stated: Some(0),
            // Vectors and orders come whole, even if a stream was requested.
            streamed: streamed && count::is_text(exchange),
            pace: None,
            first: at.first().copied(),
            first_output: None,
            second_output: None,
            first_reasoning: None,
            first_answer: None,
            first_audio: None,
            last_output: None,
            usage: None,
            last: at.last().copied(),
            longest: None,
            first_tokens: None,
            outputs: 0,
            bytes: 0,
        };
        // Where no output event carries bytes, the first and the last of them stand for the answer.
        let mut bare: Option<(Nanos, Nanos)> = None;
        for event in exchange.events.iter() {
            if event.kind.is_output() {
                bare = Some((bare.map_or(event.at, |(first, _)| first), event.at));
                reading.output(&event);
            } else if event.kind == Kind::Usage {
                reading.usage = Some(event.at);
            }
        }
        if let (None, Some((first, last))) = (reading.first_output, bare) {
            (reading.first_output, reading.last_output) = (Some(first), Some(last));
        }
        if reading.outputs == 0 {
            reading.stated = None;
        }
        if reading.stated.is_none() {
            reading.first_tokens = None;
        }
        reading.output_tokens = count::output_given(exchange, || reading.stated, retokenized);
        reading
    }

    /// Sets the reader's time for each token; see [`pace`](super::objective::pace).
    pub fn at_pace(mut self, pace: Option<Nanos>) -> Self {
        self.pace = pace;
        self
    }

    fn output(&mut self, event: &Event) {
        self.outputs += 1;
        self.bytes += u64::from(event.bytes);
        self.stated = match (self.stated, event.tokens) {
            (Some(sum), Some(tokens)) => Some(sum.saturating_add(tokens)),
            _ => None,
        };
        if let (None, Some(1..)) = (self.first_tokens, event.tokens) {
            self.first_tokens = event.tokens;
        }
        if !is_piece(event) {
            return;
        }
        self.pieces += u64::from(event.bytes > 0);
        match self.last_output.replace(event.at) {
            None => self.first_output = Some(event.at),
            Some(before) => {
                self.second_output.get_or_insert(event.at);
                self.longest = self.longest.max(Some(event.at.since(before)));
            }
        }
        match event.kind {
            Kind::Text => _ = self.first_answer.get_or_insert(event.at),
            Kind::Reasoning => _ = self.first_reasoning.get_or_insert(event.at),
            Kind::Audio => _ = self.first_audio.get_or_insert(event.at),
            _ => {}
        }
    }

    /// Passes on the arrival time of each token of the answer, as far as it is known:
    /// `(instant, tokens)` in order of arrival. Passes on nothing if the number of tokens is
    /// unknown or the reply was not streamed.
    ///
    /// If every output event states its tokens, uses those. Otherwise distributes the answer's `n`
    /// tokens over its output events in proportion to the bytes that each adds, in whole tokens
    /// that sum to `n`. Each event that carries bytes gets at least one, if there are enough. If no
    /// event carries bytes, each gets an equal part.
    pub fn each_token_arrival(&self, mut show: impl FnMut(Nanos, u64)) {
        let Some(count) = self.output_tokens.filter(|_| self.streamed) else { return };
        let events = &self.exchange.events;
        let outputs = events.iter().filter(|event| event.kind.is_output());
        if self.stated.is_some() {
            for event in outputs {
                show(event.at, u64::from(event.tokens.unwrap_or(0)));
            }
            return;
        }
        let n = u64::from(count.tokens);
        // The usual case. The code below gives the same result with a division for each event.
        if self.pieces > 0 && n == self.pieces {
            for event in outputs {
                show(event.at, u64::from(event.bytes > 0));
            }
            return;
        }
        let whole = match self.pieces {
            0 => self.outputs,
            _ => self.bytes,
        };
        let (mut weighed, mut dealt, mut pieces) = (0, 0, self.pieces);
        for event in outputs {
            let weight = match self.pieces {
                0 => 1,
                _ => u64::from(event.bytes),
            };
            weighed += weight;
            let mut upto = part(n, weighed, whole);
            if self.pieces > 0 && event.bytes == 0 {
                upto = dealt;
            } else if self.pieces > 0 && n >= self.pieces {
                pieces -= 1;
                upto = upto.clamp(dealt + 1, n - pieces);
            }
            show(event.at, upto - dealt);
            dealt = upto;
        }
    }

    /// Finds the times at which an answer was requested, at which its first output came, and at
    /// which its last event came. One that comes whole is answered from the beginning.
    pub fn life(&self) -> Option<[Nanos; 3]> {
        let sent = self.exchange.sent?;
        let first = if self.streamed { self.first_output?.max(sent) } else { sent };
        Some([sent, first, self.last?.max(first)])
    }

    /// The span between `sent` and the last event.
    pub fn latency(&self) -> Option<Nanos> {
        Some(self.last?.since(self.exchange.sent?))
    }

    /// The span between two pieces, for each but the first, in nanoseconds.
    pub(super) fn gaps(&self, show: &mut dyn FnMut(Nanos, u64, u64)) {
        if !self.streamed {
            return;
        }
        let mut before = None;
        for event in self.exchange.events.iter().filter(is_piece) {
            if let Some(before) = before.replace(event.at) {
                show(event.at, event.at.since(before).0, 1);
            }
        }
    }

    /// As [`Reading::dealt_gaps`], if the server states the tokens of each event.
    pub(super) fn token_gaps(&self, show: &mut dyn FnMut(Nanos, u64, u64)) {
        if self.stated.is_some() {
            self.dealt_gaps(show);
        }
    }

    /// The same span divided by the tokens that came at its end, once for each of them: in whole
    /// nanoseconds that sum to it. An event that carries no token does not move the clock.
    pub(super) fn dealt_gaps(&self, show: &mut dyn FnMut(Nanos, u64, u64)) {
        let mut before: Option<Nanos> = None;
        self.each_token_arrival(|at, tokens| {
            if tokens == 0 {
                return;
            }
            if let Some(before) = before.replace(at) {
                let gap = at.since(before).0;
                if tokens == 1 {
                    return show(at, gap, 1);
                }
                let longer = gap % tokens;
                show(at, gap / tokens, tokens - longer);
                if longer > 0 {
                    show(at, gap / tokens + 1, longer);
                }
            }
        });
    }

    /// Shows the time and the stated tokens of each output event but the first.
    pub(super) fn event_tokens(&self, show: &mut dyn FnMut(Nanos, u64, u64)) {
        if !self.streamed || self.stated.is_none() {
            return;
        }
        let outputs = self.exchange.events.iter();
        let stating = outputs.filter(|event| event.kind.is_output() && event.tokens > Some(0));
        for event in stating.skip(1) {
            show(event.at, u64::from(event.tokens.unwrap_or(0)), 1);
        }
    }
}

/// `weighed / whole` of a number of tokens, which fits into 32 bits, rounded.
fn part(tokens: u64, weighed: u64, whole: u64) -> u64 {
    let whole = whole.max(1);
    // A division of 128 bits is slow, and seldom needed.
    if whole < 1 << 31 {
        (tokens * weighed + whole / 2) / whole
    } else {
        let exact = u128::from(tokens) * u128::from(weighed);
        ((exact + u128::from(whole / 2)) / u128::from(whole)) as u64
    }
}

/// True if an event brings a part of the answer: text, or sound, which has no bytes of text.
pub(super) fn is_piece(event: &Event) -> bool {
    event.kind.is_output() && (event.bytes > 0 || event.kind == Kind::Audio)
}

//! An exchange as metrics look at it: the instants that definitions speak of, found in one pass.

use super::count::{self, Count};
use crate::exchange::{Event, Exchange, Kind};
use crate::units::Nanos;

/// More than any server puts into one event of a stream. One that states more is not believed:
/// each token becomes a sample, and a server must not choose how much memory that takes.
const MOST_TOKENS_OF_AN_EVENT: u32 = 1 << 16;

/// The instants and counts of one exchange that metrics are defined by.
#[derive(Clone, Debug)]
pub struct Reading<'a> {
    /// What is read.
    pub exchange: &'a Exchange,
    /// Tokens of the answer, where known.
    pub output_tokens: Option<Count>,
    /// Tokens of the prompt, where known.
    pub input_tokens: Option<Count>,
    /// Output events that carry bytes.
    pub pieces: u64,
    streamed: bool,
    first: Option<Nanos>,
    first_output: Option<Nanos>,
    first_answer: Option<Nanos>,
    last_output: Option<Nanos>,
    last: Option<Nanos>,
}

impl<'a> Reading<'a> {
    /// Reads an exchange. `streamed` says whether replies were asked for piece by piece: the one
    /// event of a whole body says nothing of a first token. `retokenized` is the number of tokens
    /// that a tokenizer of ours finds in the answer.
    pub fn new(exchange: &'a Exchange, streamed: bool, retokenized: Option<u32>) -> Self {
        let mut reading = Reading {
            exchange,
            output_tokens: count::output(exchange, retokenized),
            input_tokens: count::input(exchange),
            pieces: 0,
            streamed,
            first: exchange.events.at.first().copied(),
            first_output: None,
            first_answer: None,
            last_output: None,
            last: exchange.events.at.last().copied(),
        };
        for event in exchange.events.iter().filter(is_piece) {
            reading.pieces += 1;
            reading.first_output.get_or_insert(event.at);
            reading.last_output = Some(event.at);
            if event.kind == Kind::Text {
                reading.first_answer.get_or_insert(event.at);
            }
        }
        if reading.pieces == 0 {
            let mut outputs = exchange
                .events
                .iter()
                .filter(|event| event.kind.is_output());
            reading.first_output = outputs.next().map(|event| event.at);
            reading.last_output = outputs.next_back().map(|e| e.at).or(reading.first_output);
        }
        reading
    }

    /// When each token of the answer came, as well as it is known: `(instant, tokens)` in order
    /// of arrival; none where the number of tokens is unknown or the reply was not streamed.
    ///
    /// Where every output event states its tokens, those. Otherwise the answer's `n` tokens are
    /// dealt to its output events in proportion to the bytes that each adds (to each alike where
    /// none adds any), in whole tokens that sum to `n`.
    pub fn token_arrivals(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        let stated = count::pieces(self.exchange).is_some();
        let n = self
            .output_tokens
            .filter(|_| self.streamed)
            .map(|count| u128::from(count.tokens));
        let outputs = || {
            self.exchange
                .events
                .iter()
                .filter(|event| event.kind.is_output())
        };
        let bytes: u128 = outputs().map(|event| u128::from(event.bytes)).sum();
        let weight = move |event: &Event| {
            if bytes == 0 {
                1
            } else {
                u128::from(event.bytes)
            }
        };
        let whole = if bytes == 0 {
            outputs().count() as u128
        } else {
            bytes
        };
        let mut dealt = (0u128, 0u128);
        n.into_iter().flat_map(move |n| {
            outputs().map(move |event| {
                if stated {
                    return (event.at, u64::from(event.tokens.unwrap_or(0)));
                }
                let (weighed, given) = dealt;
                let due = n * (weighed + weight(&event)) / whole;
                dealt = (weighed + weight(&event), due);
                (event.at, (due - given) as u64)
            })
        })
    }

    pub(super) fn ttft(&self) -> Option<f64> {
        self.streamed_since_sent(self.first_output)
    }

    pub(super) fn ttft_any(&self) -> Option<f64> {
        self.streamed_since_sent(self.first)
    }

    pub(super) fn ttft_answer(&self) -> Option<f64> {
        self.streamed_since_sent(self.first_answer)
    }

    pub(super) fn ttft_from_due(&self) -> Option<f64> {
        let first = self.first_output.filter(|_| self.streamed)?;
        Some(span(self.exchange.due, first))
    }

    pub(super) fn e2e(&self) -> Option<f64> {
        Some(span(self.exchange.sent?, self.last?))
    }

    pub(super) fn e2e_last_token(&self) -> Option<f64> {
        Some(span(self.exchange.sent?, self.last_output?))
    }

    pub(super) fn e2e_from_due(&self) -> Option<f64> {
        Some(span(self.exchange.due, self.last?))
    }

    pub(super) fn tpot(&self) -> Option<f64> {
        self.per_further_token(self.last?)
    }

    pub(super) fn tpot_last_token(&self) -> Option<f64> {
        self.per_further_token(self.last_output?)
    }

    pub(super) fn tpot_with_first(&self) -> Option<f64> {
        let n = self.output_tokens?.tokens;
        (n > 0).then_some(self.e2e_last_token()? / f64::from(n))
    }

    pub(super) fn itl(&self, samples: &mut Vec<f64>) {
        if !self.streamed {
            return;
        }
        let mut before = None;
        for event in self.exchange.events.iter().filter(is_piece) {
            if let Some(before) = before.replace(event.at) {
                samples.push(span(before, event.at));
            }
        }
    }

    pub(super) fn itl_token(&self, samples: &mut Vec<f64>) {
        let believable = |tokens: &Option<u32>| tokens.unwrap_or(0) <= MOST_TOKENS_OF_AN_EVENT;
        if !self.streamed
            || count::pieces(self.exchange).is_none()
            || !self
                .exchange
                .events
                .iter()
                .all(|event| believable(&event.tokens))
        {
            return;
        }
        let mut before = None;
        for event in self
            .exchange
            .events
            .iter()
            .filter(|event| event.kind.is_output())
        {
            // An event that stands for no token does not move the clock.
            let Some(tokens) = event.tokens.filter(|tokens| *tokens > 0) else {
                continue;
            };
            if let Some(before) = before.replace(event.at) {
                let each = span(before, event.at) / f64::from(tokens);
                samples.extend(std::iter::repeat_n(each, tokens as usize));
            }
        }
    }

    pub(super) fn send_lag(&self) -> Option<f64> {
        let ready = self
            .exchange
            .due
            .max(self.exchange.granted.unwrap_or_default());
        Some(span(ready, self.exchange.sent?))
    }

    pub(super) fn queue(&self) -> Option<f64> {
        Some(span(self.exchange.due, self.exchange.granted?))
    }

    pub(super) fn input_length(&self) -> Option<f64> {
        self.input_tokens.map(|count| f64::from(count.tokens))
    }

    pub(super) fn output_length(&self) -> Option<f64> {
        self.output_tokens.map(|count| f64::from(count.tokens))
    }

    pub(super) fn cached_input_length(&self) -> Option<f64> {
        self.exchange.usage?.cached_input_tokens.map(f64::from)
    }

    /// The span between `sent` and the last event.
    pub(crate) fn latency(&self) -> Option<Nanos> {
        Some(self.last?.since(self.exchange.sent?))
    }

    fn streamed_since_sent(&self, instant: Option<Nanos>) -> Option<f64> {
        Some(span(
            self.exchange.sent?,
            instant.filter(|_| self.streamed)?,
        ))
    }

    fn per_further_token(&self, end: Nanos) -> Option<f64> {
        let first = self.first_output.filter(|_| self.streamed)?;
        self.exchange.sent?;
        let further = self
            .output_tokens?
            .tokens
            .checked_sub(1)
            .filter(|further| *further > 0)?;
        Some(span(first, end) / f64::from(further))
    }
}

fn is_piece(event: &Event) -> bool {
    event.kind.is_output() && event.bytes > 0
}

/// Milliseconds from one instant to another.
fn span(from: Nanos, to: Nanos) -> f64 {
    to.since(from).as_millis_f64()
}

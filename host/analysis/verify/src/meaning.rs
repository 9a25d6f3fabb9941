//! The meaning of a figure: which quantity of the server's log it is, by which definition.
//!
//! A [`Meaning`] answers every question that a definition leaves open: the end of TTFT, the unit of
//! a token, the replies that are successes. Its value is a pure function of the log. A client
//! claims one meaning for each of its figures; [`Meaning::others`] lists the meanings that a figure
//! which does not fit may have instead.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

use audit::figures::taken;
use result::figure::Statistic;
use statistics::Sorted;

use crate::Count;
use crate::log::{Log, Request};
use crate::stream::{Chunk, Kind};
use crate::types::{Arrivals, Asks};

model::words! {
    /// A quantity that clients state.
    pub enum Quantity {
        /// Time to first token, in milliseconds.
        Ttft = "ttft",
        /// Time per output token, in milliseconds.
        Tpot = "tpot",
        /// Inter-token latency, in milliseconds.
        Itl = "itl",
        /// End-to-end latency, in milliseconds.
        E2e = "e2e",
        /// Requests that succeeded.
        Successful = "requests.successful",
        /// Requests that failed.
        Failed = "requests.failed",
        /// Tokens of all answers.
        OutputTokens = "tokens.output",
        /// Tokens of all prompts.
        InputTokens = "tokens.input",
        /// Output tokens a second.
        OutputRate = "throughput.output",
        /// Requests a second.
        RequestRate = "throughput.requests",
        /// The length of the measurement, in seconds.
        Duration = "duration",
    }
}

model::words! {
    /// The end of a TTFT.
    pub enum First {
        /// The first chunk, also one that has a role alone or nothing.
        Chunk = "first-chunk",
        /// The first chunk with text of any kind: reasoning, answer, tool call.
        Text = "first-text",
        /// The first chunk with text of the answer.
        Answer = "first-answer",
        /// The first byte of the body, be it of a comment.
        Byte = "first-byte",
    }
}

model::words! {
    /// The end of an end-to-end latency.
    pub enum Last {
        /// The last chunk with text of any kind.
        Text = "last-text",
        /// The last chunk, also one that has usage alone.
        Chunk = "last-chunk",
        /// The end marker, or where there is none the end of the reply.
        End = "end",
    }
}

model::words! {
    /// The way from a reply to a time per output token.
    pub enum PerToken {
        /// (e2e - ttft) / (n - 1).
        OverNMinusOne = "over-n-1",
        /// (e2e - ttft) / n.
        OverN = "over-n",
        /// e2e / n.
        WithFirst = "with-first",
        /// The mean of the gaps between chunks with text.
        MeanOfGaps = "mean-of-gaps",
    }
}

model::words! {
    /// The gaps of an inter-token latency.
    pub enum Gaps {
        /// Between chunks with text.
        Chunks = "chunks",
        /// Between chunks with a choice, text or not.
        Choices = "choices",
        /// Between all chunks, usage too.
        AllChunks = "all-chunks",
        /// Between chunks with text, each divided over the tokens of the later one.
        Tokens = "tokens",
        /// Between tokens. Tokens of one chunk come at once, so their gaps are zero.
        AtOnce = "tokens-at-once",
        /// One for each request: (last text - first text) / (n - 1).
        PerRequest = "per-request",
    }
}

model::words! {
    /// The output tokens of a reply.
    pub enum Tokens {
        /// As many as the server's usage states.
        Usage = "usage",
        /// The tokenizer's count in all text.
        Text = "text",
        /// The tokenizer's count in the answer, without reasoning.
        Answer = "answer",
        /// One for each chunk with text.
        Chunks = "chunks",
        /// One for each chunk.
        AllChunks = "all-chunks",
        /// The requested number.
        Requested = "asked",
        /// The sum of the tokenizer's counts in the text of each chunk, each with the special
        /// tokens that it puts around a text.
        ChunkTexts = "chunk-texts",
    }
}

model::words! {
    /// The tokens of a prompt.
    pub enum Input {
        /// As many as the server's usage states.
        Usage = "usage",
        /// The tokenizer's count in the prompt's text, without a chat's template.
        Text = "text",
        /// The requested number.
        Requested = "asked",
    }
}

model::words! {
    /// The replies that are successes.
    pub enum Success {
        /// Status 200, text, the end marker, and no error.
        Complete = "complete",
        /// Status 200, the end marker, and no error; text or not.
        Marker = "marker",
        /// Status 200, text, a finish reason, and no error; no end marker needed.
        Finish = "finish",
        /// Some text, whatever came after it.
        Text = "text",
        /// Status 200, whatever came.
        Status = "status",
    }
}

model::words! {
    /// The time that a throughput is divided by.
    pub enum Span {
        /// The time from the first request to the end of the last reply.
        ToLastEnd = "to-last-end",
        /// The time from the first request to the last text.
        ToLastText = "to-last-text",
        /// The time from the first request of the warm-up to the end of the last reply.
        WithWarmUp = "with-warm-up",
    }
}

/// A figure by name: a quantity, and of latencies which statistic of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    pub quantity: Quantity,
    /// The statistic; absent of counts, and where all statistics are meant.
    pub statistic: Option<Statistic>,
}

impl Figure {
    /// The figures that it stands for: a latency without a statistic is its mean and its median.
    pub fn each(self) -> Vec<Figure> {
        match self.statistic {
            None if self.quantity.is_latency() => {
                let usual = [Statistic::Mean, Statistic::Percentile(50.0)];
                usual.map(|statistic| Figure { statistic: Some(statistic), ..self }).to_vec()
            }
            _ => vec![self],
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.statistic {
            None => write!(f, "{}", self.quantity),
            Some(statistic) => write!(f, "{}.{statistic}", self.quantity),
        }
    }
}

impl FromStr for Figure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(quantity) = text.parse() {
            return Ok(Figure { quantity, statistic: None });
        }
        let (name, statistic) = text.rsplit_once('.').unwrap_or((text, ""));
        let quantity: Quantity = name.parse()?;
        if !quantity.is_latency() {
            return Err(format!("`{text}`: `{quantity}` has no statistics"));
        }
        let statistic = Some(statistic.parse()?);
        Ok(Figure { quantity, statistic })
    }
}

impl<'de> Deserialize<'de> for Figure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl Quantity {
    /// True if it is a latency; clients state statistics of latencies.
    pub fn is_latency(self) -> bool {
        use Quantity::{E2e, Itl, Tpot, Ttft};
        matches!(self, Ttft | Tpot | Itl | E2e)
    }

    /// True if it is a count, in which no difference is small.
    pub fn is_count(self) -> bool {
        use Quantity::{Failed, InputTokens, OutputTokens, Successful};
        matches!(self, Successful | Failed | OutputTokens | InputTokens)
    }

    pub fn label(self) -> &'static str {
        match self {
            Quantity::Ttft => "TTFT",
            Quantity::Tpot => "TPOT",
            Quantity::Itl => "ITL",
            Quantity::E2e => "E2E latency",
            Quantity::Successful => "successful requests",
            Quantity::Failed => "failed requests",
            Quantity::OutputTokens => "output tokens",
            Quantity::InputTokens => "input tokens",
            Quantity::OutputRate => "output tokens a second",
            Quantity::RequestRate => "requests a second",
            Quantity::Duration => "duration",
        }
    }

    pub fn unit(self) -> &'static str {
        match self {
            Quantity::Duration => " s",
            quantity if quantity.is_latency() => " ms",
            Quantity::OutputRate => " tok/s",
            Quantity::RequestRate => " req/s",
            _ => "",
        }
    }

    /// The usual meaning with this definition of the quantity. Errors: the known words, as text.
    pub fn meaning(self, word: &str) -> Result<Meaning, String> {
        let mut meaning = Meaning::default();
        meaning.define(self, &[word.to_owned()])?;
        Ok(meaning)
    }
}

/// A definition of everything that figures leave open.
#[derive(Clone, Debug, PartialEq)]
pub struct Meaning {
    pub first: First,
    pub last: Last,
    /// True if latencies begin when a request was due, not when it was sent.
    pub from_due: bool,
    pub per_token: PerToken,
    pub gaps: Gaps,
    /// The output tokens of a reply: the first known count.
    pub tokens: Vec<Tokens>,
    /// The tokens of a prompt: the first known count.
    pub input: Vec<Input>,
    pub success: Success,
    pub span: Span,
    /// True if the requests of the warm-up count.
    pub warm_up: bool,
    /// True if the slowest request is left out.
    pub trimmed: bool,
}

impl Default for Meaning {
    fn default() -> Self {
        Meaning {
            first: First::Text,
            last: Last::End,
            from_due: false,
            per_token: PerToken::OverNMinusOne,
            gaps: Gaps::Chunks,
            tokens: vec![Tokens::Usage, Tokens::Text],
            input: vec![Input::Usage, Input::Text],
            success: Success::Complete,
            span: Span::ToLastEnd,
            warm_up: false,
            trimmed: false,
        }
    }
}

/// The facts that values are computed from.
pub struct World<'a> {
    pub log: &'a Log,
    /// The number of its first requests that are no part of the measurement.
    pub warm_up: usize,
    pub asks: &'a Asks,
    pub count: &'a Count<'a>,
    /// The special tokens that the tokenizer puts around a text, which `count` leaves out.
    pub added: u64,
}

impl Meaning {
    /// Defines a quantity by the first known one of these words. Errors: the words that there are.
    pub fn define(&mut self, quantity: Quantity, words: &[String]) -> Result<(), String> {
        let word = match words {
            [] => return Err("expected a definition".to_owned()),
            [word] => word.as_str(),
            [word, ..] if matches!(quantity, Quantity::OutputTokens | Quantity::InputTokens) => {
                word.as_str()
            }
            _ => return Err(format!("`{quantity}` has one definition")),
        };
        match quantity {
            Quantity::Ttft | Quantity::E2e => {
                let due = word.strip_prefix("from-due ");
                self.from_due = due.is_some();
                let word = due.unwrap_or(word);
                match quantity {
                    Quantity::Ttft => self.first = word.parse()?,
                    _ => self.last = word.parse()?,
                }
            }
            Quantity::Tpot => self.per_token = word.parse()?,
            Quantity::Itl => self.gaps = word.parse()?,
            Quantity::Successful | Quantity::Failed => self.success = word.parse()?,
            Quantity::OutputTokens => self.tokens = all(words)?,
            Quantity::InputTokens => self.input = all(words)?,
            Quantity::OutputRate | Quantity::RequestRate | Quantity::Duration => {
                self.span = word.parse()?;
            }
        }
        Ok(())
    }

    /// The value of a figure; nothing if there is nothing to measure, or if a log cannot tell it.
    pub fn value(&self, figure: Figure, world: &World<'_>) -> Option<f64> {
        let measured = self.measured(world);
        let good: Vec<&Request> =
            (measured.iter().copied()).filter(|request| self.is_success(request)).collect();
        let sum = |each: &dyn Fn(&Request) -> Option<u64>| {
            good.iter().map(|request| each(request).unwrap_or(0)).sum::<u64>() as f64
        };
        match figure.quantity {
            Quantity::Successful => Some(good.len() as f64),
            Quantity::Failed => Some((measured.len() - good.len()) as f64),
            Quantity::OutputTokens => Some(sum(&|request| self.tokens_of(request, world))),
            Quantity::InputTokens => Some(sum(&|request| self.input_of(request, world))),
            Quantity::Duration => self.seconds(world, &measured),
            Quantity::RequestRate => Some(good.len() as f64 / self.seconds(world, &measured)?),
            Quantity::OutputRate => {
                let tokens = sum(&|request| self.tokens_of(request, world));
                Some(tokens / self.seconds(world, &measured)?)
            }
            Quantity::Ttft | Quantity::Tpot | Quantity::Itl | Quantity::E2e => {
                let mut each: Vec<Vec<f64>> = (good.iter())
                    .map(|request| self.latencies(figure.quantity, request, world))
                    .collect();
                if self.trimmed {
                    let slowest = |values: &Vec<f64>| values.iter().copied().fold(0.0, f64::max);
                    each.sort_by(|a, b| slowest(a).total_cmp(&slowest(b)));
                    each.pop();
                }
                statistic(figure.statistic?, each.concat())
            }
        }
    }

    fn measured<'w>(&self, world: &World<'w>) -> Vec<&'w Request> {
        let skipped = if self.warm_up { 0 } else { world.warm_up };
        world.log.requests.iter().skip(skipped).collect()
    }

    pub fn is_success(&self, request: &Request) -> bool {
        let ok = request.status == Some(200);
        let clean = ok && !request.has(&Kind::Error);
        let text = request.texts().next().is_some();
        match self.success {
            Success::Complete => clean && text && request.has(&Kind::Done),
            Success::Marker => clean && request.has(&Kind::Done),
            Success::Finish => clean && text && request.chunks().any(|(_, chunk)| chunk.finish),
            Success::Text => text,
            Success::Status => ok,
        }
    }

    pub fn tokens_of(&self, request: &Request, world: &World<'_>) -> Option<u64> {
        self.tokens.iter().find_map(|tokens| match tokens {
            Tokens::Usage => request.chunks().rev().find_map(|(_, chunk)| chunk.usage),
            Tokens::Text | Tokens::Answer => {
                let mut text = String::new();
                for (_, chunk) in request.chunks() {
                    if *tokens == Tokens::Text {
                        text += &chunk.reasoning;
                        text += &chunk.tool;
                    }
                    text += &chunk.answer;
                }
                (world.count)(&text)
            }
            Tokens::Chunks => Some(request.texts().count() as u64),
            Tokens::AllChunks => Some(request.chunks().count() as u64),
            Tokens::Requested => Some(world.asks.output_len),
            Tokens::ChunkTexts => {
                let texts = request.texts();
                texts.map(|(_, chunk)| Some((world.count)(&whole(chunk))? + world.added)).sum()
            }
        })
    }

    pub fn input_of(&self, request: &Request, world: &World<'_>) -> Option<u64> {
        self.input.iter().find_map(|tokens| match tokens {
            Input::Usage => request.chunks().rev().find_map(|(_, chunk)| chunk.prompt_usage),
            Input::Text => {
                let ids = request.prompt_ids().map(|ids| ids as u64);
                ids.or_else(|| (world.count)(&request.prompt()))
            }
            Input::Requested => Some(world.asks.input_len),
        })
    }

    fn seconds(&self, world: &World<'_>, measured: &[&Request]) -> Option<f64> {
        let first = match self.span {
            Span::WithWarmUp => world.log.requests.first()?,
            _ => measured.first()?,
        };
        let ends = measured.iter().map(|request| match self.span {
            Span::ToLastText => request.texts().next_back().map_or(0.0, |(at, _)| at),
            _ => request.end(),
        });
        let span = (ends.fold(0.0, f64::max) - first.received) / 1e3;
        (span > 0.0).then_some(span)
    }

    fn latencies(&self, quantity: Quantity, request: &Request, world: &World<'_>) -> Vec<f64> {
        let one = |value: Option<f64>| value.into_iter().collect();
        match quantity {
            Quantity::Ttft => one(self.ttft(request, world)),
            Quantity::E2e => one(self.e2e(request, world)),
            Quantity::Tpot => one(self.tpot(request, world)),
            Quantity::Itl => self.itl(request, world),
            _ => Vec::new(),
        }
    }

    /// The time from which a latency is counted.
    fn origin(&self, request: &Request, world: &World<'_>) -> Option<f64> {
        if !self.from_due || world.asks.rate.is_none() {
            return Some(request.received);
        }
        // The log tells when a request was due only where all gaps are the same.
        if world.asks.arrivals != Some(Arrivals::Constant) {
            return None;
        }
        let measured = self.measured(world);
        let number = measured.iter().position(|other| std::ptr::eq(*other, request))?;
        let gap = 1e3 / world.asks.rate?;
        Some(measured.first()?.received + gap * number as f64)
    }

    fn ttft(&self, request: &Request, world: &World<'_>) -> Option<f64> {
        let at = match self.first {
            First::Byte => request.first_byte,
            First::Chunk => request.chunks().next().map(|(at, _)| at),
            First::Text => request.texts().next().map(|(at, _)| at),
            First::Answer => {
                (request.texts()).find(|(_, chunk)| !chunk.answer.is_empty()).map(|(at, _)| at)
            }
        };
        Some(at? - self.origin(request, world)?)
    }

    fn e2e(&self, request: &Request, world: &World<'_>) -> Option<f64> {
        let at = match self.last {
            Last::Text => request.texts().next_back()?.0,
            Last::Chunk => request.chunks().next_back()?.0,
            Last::End => request.end(),
        };
        Some(at - self.origin(request, world)?)
    }

    fn tpot(&self, request: &Request, world: &World<'_>) -> Option<f64> {
        let n = self.tokens_of(request, world)? as f64;
        let sent = Meaning { from_due: false, ..self.clone() };
        match self.per_token {
            PerToken::MeanOfGaps => {
                let gaps = gaps(request.texts().map(|(at, _)| at));
                statistics::mean_if_any(&gaps)
            }
            PerToken::WithFirst => (n > 0.0).then_some(sent.e2e(request, world)? / n),
            per_token => {
                let decoded = sent.e2e(request, world)? - sent.ttft(request, world)?;
                let over = match per_token {
                    PerToken::OverNMinusOne => n - 1.0,
                    _ => n,
                };
                (over > 0.0).then_some(decoded / over)
            }
        }
    }

    fn itl(&self, request: &Request, world: &World<'_>) -> Vec<f64> {
        match self.gaps {
            Gaps::Chunks => gaps(request.texts().map(|(at, _)| at)),
            Gaps::Choices => {
                let choices = request.chunks().filter(|(_, chunk)| chunk.has_choice);
                gaps(choices.map(|(at, _)| at))
            }
            Gaps::AllChunks => gaps(request.chunks().map(|(at, _)| at)),
            Gaps::Tokens => {
                let each = gaps(request.texts().map(|(at, _)| at));
                let later = request.texts().skip(1);
                let divided = each.into_iter().zip(later).flat_map(|(gap, (_, chunk))| {
                    let tokens = self.in_chunk(chunk, world);
                    (0..tokens).map(move |_| gap / tokens as f64)
                });
                divided.collect()
            }
            Gaps::AtOnce => {
                let times = request.texts().flat_map(|(at, chunk)| {
                    let tokens = self.in_chunk(chunk, world);
                    (0..tokens).map(move |_| at)
                });
                gaps(times)
            }
            Gaps::PerRequest => {
                let mut texts = request.texts().map(|(at, _)| at);
                let span = texts.next().zip(texts.next_back());
                let tokens = self.tokens_of(request, world).filter(|tokens| *tokens > 1);
                span.zip(tokens)
                    .map(|((first, last), tokens)| (last - first) / (tokens - 1) as f64)
                    .into_iter()
                    .collect()
            }
        }
    }

    /// The tokens of a chunk with text, by the tokenizer.
    fn in_chunk(&self, chunk: &Chunk, world: &World<'_>) -> u64 {
        let around = match self.tokens[..] {
            [Tokens::ChunkTexts] => world.added,
            _ => 0,
        };
        (world.count)(&whole(chunk)).unwrap_or(1).clamp(1, 1 << 16) + around
    }

    /// The other meanings that a figure of this quantity may have, the closest first.
    pub fn others(&self, quantity: Quantity) -> Vec<Meaning> {
        let mut all = vec![self.clone()];
        macro_rules! vary {
            ($field:ident, $values:expr) => {
                all = (all.into_iter())
                    .flat_map(|meaning| {
                        let mut varied = vec![meaning.clone()];
                        for value in $values {
                            if value != self.$field {
                                varied.push(Meaning { $field: value, ..meaning.clone() });
                            }
                        }
                        varied
                    })
                    .collect()
            };
        }
        let booleans = [false, true];
        let single = || Tokens::ALL.map(|tokens| vec![tokens]);
        match quantity {
            Quantity::Ttft => {
                vary!(first, First::ALL);
                vary!(from_due, booleans);
            }
            Quantity::E2e => {
                vary!(last, Last::ALL);
                vary!(from_due, booleans);
            }
            Quantity::Tpot => {
                vary!(per_token, PerToken::ALL);
                vary!(tokens, single());
                vary!(first, First::ALL);
                vary!(last, Last::ALL);
            }
            Quantity::Itl => {
                vary!(gaps, Gaps::ALL);
                vary!(tokens, single());
            }
            Quantity::Successful | Quantity::Failed => {}
            Quantity::OutputTokens => vary!(tokens, single()),
            Quantity::InputTokens => vary!(input, Input::ALL.map(|input| vec![input])),
            Quantity::OutputRate => {
                vary!(tokens, single());
                vary!(span, Span::ALL);
            }
            Quantity::RequestRate | Quantity::Duration => vary!(span, Span::ALL),
        }
        vary!(success, Success::ALL);
        vary!(warm_up, booleans);
        if quantity.is_latency() {
            vary!(trimmed, booleans);
        }
        all.remove(0);
        // Of two with as few differences, the first has another definition of the quantity itself.
        let own = self.word(quantity);
        all.sort_by_key(|meaning| (self.changes(meaning).len(), meaning.word(quantity) == own));
        all
    }

    /// The differences of another meaning from this one, as text.
    pub fn changes(&self, other: &Meaning) -> Vec<String> {
        let mut changes = Vec::new();
        let mut word = |is_changed: bool, word: String| {
            if is_changed {
                changes.push(word);
            }
        };
        word(self.first != other.first, other.first.to_string());
        word(self.last != other.last, other.last.to_string());
        let from = if other.from_due { "from-due" } else { "from-sent" };
        word(self.from_due != other.from_due, from.to_owned());
        word(self.per_token != other.per_token, other.per_token.to_string());
        word(self.gaps != other.gaps, format!("gaps between {}", other.gaps));
        word(self.tokens != other.tokens, format!("tokens by {}", either(&other.tokens)));
        word(self.input != other.input, format!("prompt tokens by {}", either(&other.input)));
        word(self.success != other.success, format!("successes by {}", other.success));
        word(self.span != other.span, other.span.to_string());
        let warm_up = if other.warm_up { "with the warm-up" } else { "without the warm-up" };
        word(self.warm_up != other.warm_up, warm_up.to_owned());
        let trimmed = if other.trimmed { "without the slowest" } else { "with the slowest" };
        word(self.trimmed != other.trimmed, trimmed.to_owned());
        changes
    }

    /// The word, or the words, that define a quantity.
    pub fn word(&self, quantity: Quantity) -> String {
        let due = if self.from_due { "from-due " } else { "" };
        match quantity {
            Quantity::Ttft => format!("{due}{}", self.first),
            Quantity::E2e => format!("{due}{}", self.last),
            Quantity::Tpot => self.per_token.to_string(),
            Quantity::Itl => self.gaps.to_string(),
            Quantity::Successful | Quantity::Failed => self.success.to_string(),
            Quantity::OutputTokens => either(&self.tokens),
            Quantity::InputTokens => either(&self.input),
            Quantity::OutputRate | Quantity::RequestRate | Quantity::Duration => {
                self.span.to_string()
            }
        }
    }

    /// The words that a quantity can be defined by.
    pub fn definitions(quantity: Quantity) -> Vec<&'static str> {
        match quantity {
            Quantity::Ttft => First::ALL.map(First::name).to_vec(),
            Quantity::E2e => Last::ALL.map(Last::name).to_vec(),
            Quantity::Tpot => PerToken::ALL.map(PerToken::name).to_vec(),
            Quantity::Itl => Gaps::ALL.map(Gaps::name).to_vec(),
            Quantity::Successful | Quantity::Failed => Success::ALL.map(Success::name).to_vec(),
            Quantity::OutputTokens => Tokens::ALL.map(Tokens::name).to_vec(),
            Quantity::InputTokens => Input::ALL.map(Input::name).to_vec(),
            Quantity::OutputRate | Quantity::RequestRate | Quantity::Duration => {
                Span::ALL.map(Span::name).to_vec()
            }
        }
    }
}

fn all<T: FromStr<Err = String>>(words: &[String]) -> Result<Vec<T>, String> {
    words.iter().map(|word| word.parse()).collect()
}

fn either<T: ToString>(words: &[T]) -> String {
    words.iter().map(T::to_string).collect::<Vec<_>>().join(" or ")
}

/// The text of a chunk, of every kind.
fn whole(chunk: &Chunk) -> String {
    [&*chunk.reasoning, &chunk.tool, &chunk.answer].concat()
}

fn gaps(times: impl Iterator<Item = f64>) -> Vec<f64> {
    let times: Vec<f64> = times.collect();
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// A statistic of values, as NumPy computes it.
pub(crate) fn statistic(statistic: Statistic, values: Vec<f64>) -> Option<f64> {
    Some(taken(&Sorted::new(values)?, statistic))
}

//! Requests' lengths and the engine's time, as the answers of a run show them: gathered for the
//! intervals that need more than latencies (`expected`).
//!
//! Everything is summed in whole numbers, so the order of the records does not matter. The run's
//! time has a fixed number of slices, so memory does not grow with it.

use std::collections::BTreeMap;

use super::Occupancy;
use super::facts::{Loop, Run};
use super::gaps::Gaps;
use super::survey::SurveyResult;
use crate::metric::Reading;
use crate::metric::count::stopped_for_length;
use model::units::Nanos;
use statistics::cells::leading;
use statistics::covariance::{self, Products};
use statistics::start::slow_start;
use statistics::steps::{Slice, Steps};
use statistics::{Figures, Spread};

/// Slices through which the line of the steps' time goes.
const SLICES: usize = 200;
/// Slices in which waiting and answering are counted, a multiple of the others.
const FINE: usize = 2000;
const EACH: usize = FINE / SLICES;
/// Leading bits of a prompt's length by which it differs from others.
const LENGTH_BITS: u32 = 11;
/// Bits behind the point of a weight.
const POINT: u32 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArrivalKind {
    /// At their own times, independent of the engine.
    Timed,
    AtOnce,
    /// Each when another one has ended.
    Closed,
}

impl ArrivalKind {
    pub(super) fn from_run(run: &Run, surveyed: &SurveyResult) -> Self {
        let due_at_once = surveyed.due.is_none_or(|(first, last)| first == last);
        // A client takes milliseconds to send a burst.
        let all_left = surveyed.first_answer.is_none_or(|end| surveyed.last_sent <= Some(end));
        match run.r#loop {
            Loop::Closed => ArrivalKind::Closed,
            Loop::Open if !due_at_once => ArrivalKind::Timed,
            Loop::Open if all_left || run.max_in_flight.is_none() => ArrivalKind::AtOnce,
            // A cap makes a loop of a burst.
            Loop::Open => ArrivalKind::Closed,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Grid {
    origin: Nanos,
    /// Nanoseconds of a slice.
    length: u64,
}

impl Grid {
    fn at(self, at: Nanos) -> usize {
        ((at.since(self.origin).0 / self.length) as usize).min(FINE - 1)
    }

    /// The beginning of a slice. Damaged records may have instants at the end of all time.
    fn begins(self, slice: usize) -> Nanos {
        let into = (slice as u64).saturating_mul(self.length);
        Nanos(self.origin.0.saturating_add(into))
    }

    /// Adds a weight to the fine slices between two instants.
    fn cover(self, time: &mut Occupancy, (from, to): (Nanos, Nanos), weight: u64) {
        time.add_weighed(from.since(self.origin), to.since(self.origin), weight);
    }

    /// The mean weight by fine slice, divided by `unit`.
    fn means(self, time: &Occupancy, unit: f64) -> Vec<f64> {
        time.nanos().map(|nanos| nanos as f64 / (self.length as f64 * unit)).collect()
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Content {
    tokens: u64,
    prompts: u64,
    /// Tokens of context times nanoseconds.
    context: u128,
    last: Option<Nanos>,
    /// Answers that began.
    begun: u64,
}

impl Content {
    /// Adds tokens; the engine made the last token at an instant.
    fn add(&mut self, at: Nanos, tokens: u64) {
        self.tokens = self.tokens.saturating_add(tokens);
        self.last = self.last.max(Some(at));
    }
}

/// Number of a request's traits: lengths and times, in whole numbers.
pub(super) const TRAITS: usize = 8;

pub(super) mod traits {
    /// Tokens of its prompt.
    pub const PROMPT: usize = 0;
    /// Tokens of its answer.
    pub const OUTPUT: usize = 1;
    /// Microseconds from its first token to its end.
    pub const ANSWERING: usize = 2;
    /// Microseconds from its sending to its end.
    pub const TOOK: usize = 3;
    /// Tokens of its context times microseconds of answering.
    pub const HELD: usize = 4;
    /// Tokens of its answer that came before the last request got its first token.
    pub const BEFORE: usize = 5;
    /// The context of each of these tokens, summed.
    pub const BEFORE_CONTEXT: usize = 6;
    /// The context of each token of the answer, summed.
    pub const CONTEXT: usize = 7;
}

pub(super) struct Lives {
    coming: ArrivalKind,
    grid: Grid,
    /// The instants at which the last request was sent and the last reply began.
    last_sent: Nanos,
    last_first: Nanos,
    contents: Vec<Content>,
    /// The first answer after a prompt of each length, and the number of answers. Long lengths
    /// share a cell with similar ones, so there are at most 23,000 cells.
    lengths: BTreeMap<u64, (Nanos, u64)>,
    gaps: Gaps,
    /// The change, from slice to slice, of the answers that generate tokens at its beginning.
    across: Vec<i64>,
    waiting: Occupancy,
    answering: Occupancy,
    /// Answering, divided by the tokens after the first, with `POINT` bits behind the point.
    per_token: Occupancy,
    sent: Vec<Arrivals>,
    traits: Products<TRAITS>,
    /// True while no answer has ended by itself, before the requested length or after it.
    forced: bool,
    /// Milliseconds from the first token to the end.
    took: Spread,
    draining: u64,
    /// The first token of the answer that was added last; later than any where it does not count.
    first: Nanos,
    /// The answer that was added last, until all of its tokens are known.
    latest: Option<LatestAnswer>,
    /// The slice of the last tokens, with its ends: most tokens follow one of the same slice.
    current: (Nanos, Nanos, usize),
}

#[derive(Clone, Copy, Debug)]
struct LatestAnswer {
    traits: [u64; TRAITS],
    /// Tokens after the first before the last request's first token; `None` before that.
    before: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrivals {
    pub(super) requests: u64,
    /// The longest wait for a first token, and the prompt tokens of the request that had it.
    pub(super) longest: (Nanos, u32),
}

pub(super) struct LifeFigures {
    pub(super) coming: ArrivalKind,
    /// The time of the engine's steps; `None` where answers came whole, and in short runs.
    pub(super) steps: Option<Steps>,
    /// The seconds until first steps took no longer than later ones, and the factor, if any did.
    pub(super) slow_start: Option<(f64, f64)>,
    /// Seconds of a fine slice.
    pub(super) seconds: f64,
    /// Requests that wait for their first token, on average by fine slice.
    pub(super) waiting: Vec<f64>,
    /// Answers under way, on average by fine slice.
    pub(super) answering: Vec<f64>,
    /// Answers under way, on average until the drain.
    pub(super) batch: f64,
    /// The sum over the answers under way of one over their tokens after the first, by fine slice.
    pub(super) per_token: Vec<f64>,
    pub(super) sent: Vec<Arrivals>,
    /// True if no answer ended by itself: then a repeat has the same lengths.
    pub(super) forced: bool,
    pub(super) count: f64,
    pub(super) means: [f64; TRAITS],
    covariances: [[f64; TRAITS]; TRAITS],
    /// The variance of the number of different lengths of prompts over other requests.
    pub(super) lengths_variance: f64,
    /// Milliseconds from the first token to the end.
    pub(super) took: Figures,
    /// Answers under way when the drain began.
    pub(super) draining: f64,
    /// Seconds from the start of the measurement to the drain.
    pub(super) until_drain: f64,
}

impl Lives {
    /// An empty gatherer; `None` if nothing ended.
    pub(super) fn new(run: &Run, surveyed: &SurveyResult) -> Option<Self> {
        let origin = surveyed.origin;
        let length = surveyed.last_end?.since(origin).0.div_ceil(FINE as u64);
        (length > 0).then(|| Lives {
            coming: ArrivalKind::from_run(run, surveyed),
            grid: Grid { origin, length },
            last_sent: surveyed.last_sent.unwrap_or(origin),
            last_first: surveyed.last_first.unwrap_or(origin),
            contents: vec![Content::default(); SLICES],
            lengths: BTreeMap::new(),
            gaps: Gaps::new(SLICES),
            across: vec![0; SLICES + 1],
            waiting: Occupancy::new(Nanos(length), FINE),
            answering: Occupancy::new(Nanos(length), FINE),
            per_token: Occupancy::new(Nanos(length), FINE),
            sent: vec![Arrivals::default(); FINE],
            traits: Products::default(),
            forced: true,
            took: Spread::new(1e6),
            draining: 0,
            first: origin,
            latest: None,
            current: (origin, origin, 0),
        })
    }

    /// The beginning of the drain: the last request was sent or, of a burst, let in.
    fn drain(&self) -> Nanos {
        match self.coming {
            ArrivalKind::AtOnce => self.last_first,
            ArrivalKind::Timed | ArrivalKind::Closed => self.last_sent,
        }
    }

    /// Adds an answer. Unknown tokens are none, because figures that need them are absent.
    pub(super) fn add(&mut self, reading: &Reading<'_>) {
        self.end_latest();
        let Some([sent, first, end]) = reading.life() else {
            // Its tokens count for nothing either.
            self.first = Nanos(u64::MAX);
            return;
        };
        let prompt = reading.input_tokens.map_or(0, |count| count.tokens);
        let output = reading.output_tokens.map_or(0, |count| count.tokens);
        let exchange = reading.exchange;
        let reason = exchange.finish.as_deref();
        self.forced &=
            reason.is_none_or(stopped_for_length) || exchange.sample.output_tokens == Some(output);
        let grid = self.grid;
        grid.cover(&mut self.waiting, (sent, first), 1);
        grid.cover(&mut self.answering, (first, end), 1);
        if output > 1 {
            let weight = (1 << POINT) / u64::from(output - 1);
            grid.cover(&mut self.per_token, (first, end), weight);
        }
        let own = &mut self.sent[grid.at(sent)];
        own.requests += 1;
        own.longest = own.longest.max((first.since(sent), prompt));
        self.hold(prompt, output, (first, end));
        let drain = self.drain();
        self.draining += u64::from(sent <= drain && end > drain);
        let answering = end.since(first);
        self.took.add(answering.as_millis_f64());
        let (prompt, output) = (u64::from(prompt), u64::from(output));
        // An answer's tokens after the last request was let in delay nobody.
        let before = share(output, self.last_first.min(end).since(first), answering);
        let traits = [
            prompt,
            output,
            answering.0 / 1000,
            end.since(sent).0 / 1000,
            (answering.0 / 1000).saturating_mul(prompt + output / 2),
            before,
            context(prompt, before),
            context(prompt, output),
        ];
        self.latest = Some(LatestAnswer { traits, before: None });
        self.first = first;
        self.gaps.begin(first);
    }

    /// Adds tokens that came at an instant, of the answer that was added last.
    pub(super) fn add_tokens(&mut self, at: Nanos, tokens: u64) {
        // The first token is the end of reading the prompt.
        if at <= self.first {
            return;
        }
        if let Some(latest) = &mut self.latest {
            let counted = if at <= self.last_first { tokens } else { 0 };
            latest.before = Some(latest.before.unwrap_or(0).saturating_add(counted));
        }
        let (from, to, _) = self.current;
        if at < from || at >= to {
            let slice = self.grid.at(at) / EACH;
            let begins = |slice: usize| self.grid.begins(slice * EACH);
            self.current = (begins(slice), begins(slice + 1), slice);
        }
        let slice = self.current.2;
        self.contents[slice].add(at, tokens);
        self.gaps.add(at, slice, tokens);
    }

    /// Adds the prompt and the context of an answer to the slices in which it was under way.
    fn hold(&mut self, prompt: u32, output: u32, (first, end): (Nanos, Nanos)) {
        let grid = self.grid;
        let (from, to) = (grid.at(first) / EACH, grid.at(end) / EACH);
        self.contents[from].prompts += u64::from(prompt);
        self.contents[from].begun += 1;
        // A step that reads prompts alone ends with first tokens.
        self.contents[from].add(first, 0);
        let length = leading(prompt.into(), LENGTH_BITS).0;
        let (earliest, many) = self.lengths.entry(length).or_insert((first, 0));
        (*earliest, *many) = (first.min(*earliest), *many + 1);
        self.across[from + 1] += 1;
        self.across[to + 1] -= 1;
        for slice in from..=to {
            let begins = grid.begins(slice * EACH).max(first);
            let ends = if slice == to { end } else { grid.begins((slice + 1) * EACH) };
            let middle = Nanos(u64::midpoint(begins.0, ends.0));
            let generated = share(u64::from(output), middle.since(first), end.since(first));
            let context = u128::from(u64::from(prompt) + generated);
            self.contents[slice].context += context * u128::from(ends.since(begins).0);
        }
    }

    /// Counts the answer that was added last. Steps differ in length, so its tokens are counted
    /// where they are known, rather than taken to come evenly.
    fn end_latest(&mut self) {
        let Some(LatestAnswer { mut traits, before }) = self.latest.take() else { return };
        if let Some(before) = before {
            let before = (before + 1).min(traits[traits::OUTPUT]);
            traits[traits::BEFORE] = before;
            traits[traits::BEFORE_CONTEXT] = context(traits[traits::PROMPT], before);
        }
        self.traits.add(traits);
    }

    /// Combines the added lives; `None` if they show too little.
    pub(super) fn finish(mut self) -> Option<LifeFigures> {
        self.end_latest();
        let took = self.took.clone().figures()?;
        let answering = self.grid.means(&self.answering, 1.0);
        let quick = std::mem::replace(&mut self.gaps, Gaps::new(0)).finish();
        let waiting = self.grid.means(&self.waiting, 1.0);
        let slices = self.slices(&answering, &waiting, &quick);
        let steps = Steps::from_slices(&slices);
        let length = self.grid.length as f64 / 1e9 * EACH as f64;
        let slow_start =
            slow_start(&slices).map(|start| (start.slices as f64 * length, start.factor));
        let until_drain = self.drain().since(self.grid.origin).as_secs_f64();
        let seconds = self.grid.length as f64 / 1e9;
        let until = ((until_drain / seconds).ceil() as usize).clamp(1, FINE);
        // The number of lengths that as many further requests would add (Good and Toulmin 1956,
        // "The number of new species, and the increase in population coverage, when a sample is
        // increased"). The number of all lengths varies as much.
        let more = self.lengths.values().map(|(_, many)| if many % 2 == 1 { 1.0 } else { -1.0 });
        Some(LifeFigures {
            steps,
            lengths_variance: more.sum::<f64>().max(0.0),
            slow_start,
            batch: answering[..until].iter().sum::<f64>() / until as f64,
            seconds,
            waiting,
            per_token: self.grid.means(&self.per_token, f64::from(1_u32 << POINT)),
            answering,
            forced: self.forced,
            count: self.traits.count() as f64,
            means: self.traits.means(),
            covariances: self.traits.covariances(),
            took,
            draining: self.draining as f64,
            until_drain,
            coming: self.coming,
            sent: self.sent,
        })
    }

    /// The slices that the line of the steps' time goes through. Each is taken from the last token
    /// of the slice before it to its own last token, because a whole step belongs to one slice.
    fn slices(&self, answering: &[f64], waiting: &[f64], quick: &[f64]) -> Vec<Slice> {
        let length = self.grid.length as f64 / 1e9 * EACH as f64;
        let seconds = |slice: usize| slice as f64 * length;
        let last = |slice: usize| {
            let at = self.contents[slice].last?;
            Some(at.since(self.grid.origin).as_secs_f64())
        };
        let mut new_lengths = [0.0; SLICES];
        for (first, _) in self.lengths.values() {
            new_lengths[self.grid.at(*first) / EACH] += 1.0;
        }
        let mut across = 0;
        let mut slices = Vec::with_capacity(SLICES);
        for (slice, held) in self.contents.iter().enumerate() {
            let (begins, ends) = (seconds(slice), seconds(slice + 1));
            let from = slice.checked_sub(1).and_then(last).unwrap_or(begins);
            let to = last(slice).unwrap_or(ends);
            across += self.across[slice];
            let next = across + self.across[slice + 1];
            let fine = slice * EACH..(slice + 1) * EACH;
            let own: f64 = answering[fine.clone()].iter().sum();
            let own = own * length / EACH as f64;
            // Nothing begins or ends between the last token of a slice and the slice's end.
            let answered = own + across as f64 * (begins - from) - next as f64 * (ends - to);
            slices.push(if to > from && held.tokens > 0 {
                Slice {
                    seconds: to - from,
                    tokens: held.tokens as f64,
                    batch: answered.max(0.0) / (to - from),
                    prompts: held.prompts as f64,
                    context: held.context as f64 / 1e9 / length,
                    begun: held.begun as f64,
                    new_lengths: new_lengths[slice],
                    waiting: waiting[fine].iter().sum::<f64>() / EACH as f64,
                    quick: quick[slice],
                }
            } else {
                Slice::default()
            });
        }
        slices
    }
}

impl LifeFigures {
    /// The variance from request to request of a sum of traits, each with its factor.
    pub(super) fn variance(&self, factors: [f64; TRAITS]) -> f64 {
        covariance::of_sum(&self.covariances, factors)
    }

    /// The mean of a sum of traits, each with its factor.
    pub(super) fn mean(&self, factors: [f64; TRAITS]) -> f64 {
        self.means.iter().zip(factors).map(|(mean, factor)| mean * factor).sum()
    }
}

/// The context of each token of an answer, summed over `tokens` tokens.
fn context(prompt: u64, tokens: u64) -> u64 {
    tokens.saturating_mul(prompt + tokens / 2)
}

/// The part of a whole that a time is of another.
fn share(whole: u64, part: Nanos, of: Nanos) -> u64 {
    match of.0 {
        0 => whole,
        of => (u128::from(whole) * u128::from(part.0) / u128::from(of)) as u64,
    }
}

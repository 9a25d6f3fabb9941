//! Agreement: whether two runs gave the same answers to the same samples, and whether they differ
//! more than repeats of one configuration do.
//!
//! An option that only makes an engine faster (a kernel, a cache, a batch size) leaves greedy
//! answers as they are, except for rounding in other batches. Repeats of the baseline show the size
//! of that effect: the noise floor. The share of samples whose answer differs from the baseline's
//! is compared with the floor's on the same samples. So the test is on the samples that differ for
//! one and not for the other (McNemar's test; of several repeats, or of conversations, Student's of
//! the differences).
//!
//! Owns the comparison of texts and the test. The caller reads the runs, first the baseline, then
//! its repeats, then the run.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::summary::confidence::Bounds;
use model::exchange::{Exchange, Phase, SampleFacts};
use statistics::clusters::{self, Mean, clustered};
use statistics::share::{Flips, wilson};
use statistics::{Ranked, Sorted};

/// Bytes of the baseline's answers that are held; of further ones, only their equality is known.
const HELD: usize = 256 << 20;

const EXAMPLES: usize = 5;

/// Characters of an example before and after where answers part.
const AROUND: usize = 60;

/// A difference that chance alone brings about less often than this is shown.
const LEVEL: f64 = 0.05;

/// Fewer conversations or lone answers than this are not tested by Student's distribution.
const LEAST: usize = 10;

/// Digests, for this process, the dataset's statements about a sample: two runs sent the same
/// sample if the digests are equal.
pub fn sample_digest(sample: &SampleFacts) -> u64 {
    let mut hasher = DefaultHasher::new();
    sample.id.hash(&mut hasher);
    sample.class.hash(&mut hasher);
    (sample.reference.as_ref().map(ToString::to_string)).hash(&mut hasher);
    if let Some(turn) = &sample.turn {
        (&turn.session, turn.index).hash(&mut hasher);
    }
    hasher.finish()
}

/// The digest of a sample's conversation; `None` if it is no turn of one.
pub fn conversation_digest(sample: &SampleFacts) -> Option<u64> {
    sample.turn.as_ref().map(|turn| digest(&turn.session))
}

/// The agreement of a run's answers with a baseline's answers.
#[model::apply(model::document!)]
pub struct Agreement {
    /// Samples that both answered.
    pub samples: u64,
    /// Answers of the baseline to samples that the run did not answer.
    pub baseline_only: u64,
    /// Answers of the run to samples that the baseline did not answer.
    pub run_only: u64,
    /// Samples whose answers are the same, byte for byte.
    pub identical: u64,
    /// Their share; absent without samples.
    pub identical_share: Option<f64>,
    /// Its 95 % interval (Wilson), for other samples of the same kind.
    pub confidence: Option<Bounds>,
    /// The places where answers differ, and by how much; absent if none does.
    pub apart: Option<Apart>,
    /// The noise floor, and whether the run differs more than it; absent without repeats of the
    /// baseline.
    pub floor: Option<Floor>,
    /// The first few answers that differ, by number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Parting>,
}

/// Answers that differ.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Apart {
    /// The median of the first character at which answers differ, from 0.
    pub first_character: f64,
    /// The median of the first token at which they differ, from 0, as a tokenizer cuts both
    /// answers. Absent without one.
    pub first_token: Option<f64>,
    /// The mean share of the longer answer that both begin with, in characters.
    pub shared_prefix: f64,
    /// The mean length of the run's answers divided by the mean length of the baseline's, in
    /// characters; absent if the baseline's answers are empty.
    pub length_ratio: Option<f64>,
    /// Differing answers without details, because the baseline has too many answers to be held.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub not_held: u64,
}

/// The difference of repeats of the baseline from it.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Floor {
    /// Number of repeats.
    pub repeats: usize,
    /// Samples that the baseline, the run and at least one repeat answered, which the test is over.
    pub samples: u64,
    /// Over these, the share of answers of a repeat that differ from the baseline's.
    pub differing_share: f64,
    /// Over these, the share of the run's answers that differ.
    pub run_differing_share: f64,
    /// The probability of shares so far apart if the run differs no more than a repeat does;
    /// two-sided. Absent if there are too few samples.
    pub probability: Option<f64>,
    /// The 95 % interval of the run's share minus the repeats'.
    pub confidence: Option<Bounds>,
    /// The judgement on that difference.
    pub judgement: Judgement,
}

model::words! {
    /// The judgement on a run's answers: do they differ more than repeats do?
    pub enum Judgement {
        /// They differ more than the answers of repeats, beyond chance.
        Changed = "changed",
        /// The difference is not shown to be larger than between repeats.
        Cleared = "cleared",
        /// There are too few samples to say.
        Unknown = "unknown",
    }
}

/// The place where two answers part.
#[model::apply(model::document!)]
pub struct Parting {
    /// The sample's id.
    pub id: String,
    /// The number of the run's request.
    pub index: u64,
    /// The first character at which the answers differ, from 0.
    pub character: u64,
    /// The first token at which they differ, from 0. Absent without a tokenizer.
    pub token: Option<u64>,
    /// The text of both just before it.
    pub before: String,
    /// The baseline's text from there on.
    pub baseline: String,
    /// The run's text from there on.
    pub run: String,
}

#[derive(Debug)]
struct Answer {
    digest: u64,
    text: Option<Box<str>>,
    conversation: Option<u64>,
    index: u64,
    /// The number of repeats that answered it, and the number of different answers among them.
    repeated: (u32, u32),
    /// True if the run's answer differs; nothing if it has none.
    differs: Option<bool>,
}

/// The number of the first token at which two texts differ, if that can be said.
pub type FirstToken<'t> = Box<dyn Fn(&str, &str) -> Option<u64> + 't>;

/// Answers under comparison. They are added in this order: the baseline's, its repeats', the run's.
#[derive(Default)]
pub struct Answers<'t> {
    first_token: Option<FirstToken<'t>>,
    /// The first token that differs, of each answer with a kept text.
    tokens: Vec<f64>,
    answers: HashMap<u64, Answer>,
    held: usize,
    repeats: usize,
    run_only: u64,
    partings: Vec<Parting>,
    /// The share of the common beginning, of each held answer that differs.
    parted: Vec<f64>,
    prefixes: Vec<(u64, f64)>,
    /// Characters of both sides' answers that are held.
    lengths: [u64; 2],
    not_held: u64,
}

impl<'t> Answers<'t> {
    pub fn tokenized(first_token: FirstToken<'t>) -> Self {
        Answers { first_token: Some(first_token), ..Self::default() }
    }

    pub fn add_baseline(&mut self, exchange: &Exchange) {
        let Some(text) = answer_of(exchange) else { return };
        let sample = &exchange.sample;
        let digest = digest(&text);
        let fits = self.held + text.len() <= HELD;
        self.held += if fits { text.len() } else { 0 };
        self.answers.entry(sample_digest(sample)).or_insert(Answer {
            digest,
            text: fits.then(|| text.into_boxed_str()),
            conversation: conversation_digest(sample),
            index: exchange.index,
            repeated: (0, 0),
            differs: None,
        });
    }

    pub fn begin_repeat(&mut self) {
        self.repeats += 1;
    }

    pub fn add_repeat(&mut self, exchange: &Exchange) {
        let Some(text) = answer_of(exchange) else { return };
        if let Some(answer) = self.answers.get_mut(&sample_digest(&exchange.sample)) {
            answer.repeated.0 += 1;
            answer.repeated.1 += u32::from(answer.digest != digest(&text));
        }
    }

    pub fn add_run(&mut self, exchange: &Exchange) {
        let Some(text) = answer_of(exchange) else { return };
        let Some(answer) = self.answers.get_mut(&sample_digest(&exchange.sample)) else {
            self.run_only += 1;
            return;
        };
        let differs = answer.digest != digest(&text);
        answer.differs = Some(differs);
        let Some(before) = &answer.text else {
            self.not_held += u64::from(differs);
            return;
        };
        let lengths = [before, text.as_str()].map(|text| text.chars().count() as u64);
        self.lengths[0] += lengths[0];
        self.lengths[1] += lengths[1];
        if !differs {
            return;
        }
        let (characters, bytes) = shared_prefix(before, &text);
        self.parted.push(characters as f64);
        let token = (self.first_token.as_ref()).and_then(|first| first(before, &text));
        self.tokens.extend(token.map(|token| token as f64));
        let longer = lengths[0].max(lengths[1]).max(1);
        self.prefixes.push((exchange.index, characters as f64 / longer as f64));
        let place = self.partings.partition_point(|kept| kept.index < exchange.index);
        if place < EXAMPLES {
            let parting = Parting {
                id: exchange.sample.id.clone(),
                index: exchange.index,
                character: characters,
                token,
                before: last(&before[..bytes]),
                baseline: first(&before[bytes..]),
                run: first(&text[bytes..]),
            };
            self.partings.insert(place, parting);
            self.partings.truncate(EXAMPLES);
        }
    }

    pub fn finish(mut self) -> Agreement {
        let mut answers: Vec<Answer> = self.answers.into_values().collect();
        answers.sort_unstable_by_key(|answer| answer.index);
        let both = || answers.iter().filter(|answer| answer.differs.is_some());
        let samples = both().count() as u64;
        let identical = both().filter(|answer| answer.differs == Some(false)).count() as u64;
        let same = clustered(
            both().map(|answer| (answer.conversation, f64::from(answer.differs == Some(false)))),
        );
        let mean = Mean::from_clusters(&same);
        let bounds = mean.and_then(|mean| wilson(mean.mean, mean.independent(samples)));
        // In one order whatever the order of the records, so that the sum is the same.
        self.prefixes.sort_unstable_by_key(|(index, _)| *index);
        let prefixes: f64 = self.prefixes.iter().map(|(_, share)| share).sum();
        let differing = self.prefixes.len() as f64;
        let tokens = Sorted::new(self.tokens);
        let apart = Sorted::new(self.parted).map(|parted| Apart {
            first_character: parted.percentile(50.0),
            first_token: tokens.map(|tokens| tokens.percentile(50.0)),
            shared_prefix: prefixes / differing,
            length_ratio: (self.lengths[0] > 0)
                .then(|| self.lengths[1] as f64 / self.lengths[0] as f64),
            not_held: self.not_held,
        });
        Agreement {
            samples,
            baseline_only: answers.len() as u64 - samples,
            run_only: self.run_only,
            identical,
            identical_share: mean.map(|mean| mean.mean),
            confidence: bounds.map(Bounds::from),
            apart,
            floor: (self.repeats > 0).then(|| floor(&answers, self.repeats)).flatten(),
            examples: self.partings,
        }
    }
}

/// Measures the difference of the run from the baseline beside the difference of the baseline's
/// repeats. `None` without samples that all answered.
fn floor(answers: &[Answer], repeats: usize) -> Option<Floor> {
    let compared = answers.iter().filter_map(|answer| {
        let (repeated, otherwise) = answer.repeated;
        let share = f64::from(otherwise) / f64::from(repeated);
        let differs = f64::from(answer.differs?);
        (repeated > 0).then_some((answer.conversation, differs, share))
    });
    let compared: Vec<(Option<u64>, f64, f64)> = compared.collect();
    let samples = compared.len() as u64;
    if samples == 0 {
        return None;
    }
    let sum = |pick: fn(&(Option<u64>, f64, f64)) -> f64| compared.iter().map(pick).sum::<f64>();
    let shares = [sum(|own| own.2), sum(|own| own.1)].map(|sum| sum / samples as f64);
    let apart = clustered(
        compared.iter().map(|(conversation, differs, share)| (*conversation, differs - share)),
    );
    let is_plain = compared.iter().all(|(_, _, share)| *share == 0.0 || *share == 1.0);
    let (probability, confidence) = if is_plain && apart.len() == compared.len() {
        let count = |wanted: [f64; 2]| {
            compared.iter().filter(|own| [own.1, own.2] == wanted).count() as u64
        };
        let flips = Flips { samples, gained: count([1.0, 0.0]), lost: count([0.0, 1.0]) };
        (Some(flips.probability()), flips.interval())
    } else {
        let found = (apart.len() >= LEAST).then(|| clusters::difference(&apart)).flatten();
        (found.map(|found| found.probability), found.and_then(|found| found.interval))
    };
    let more = shares[1] > shares[0];
    Some(Floor {
        repeats,
        samples,
        differing_share: shares[0],
        run_differing_share: shares[1],
        probability,
        confidence: confidence.map(Bounds::from),
        judgement: match probability {
            Some(probability) if more && probability < LEVEL => Judgement::Changed,
            Some(_) => Judgement::Cleared,
            None => Judgement::Unknown,
        },
    })
}

/// All that a measured request was answered: reasoning, text, tool calls. `None` if it was not.
fn answer_of(exchange: &Exchange) -> Option<String> {
    let is_measured = exchange.phase == Phase::Measure && exchange.is_ok();
    is_measured.then(|| [&*exchange.reasoning, &exchange.output, &exchange.tool_calls].concat())
}

pub(crate) fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The length of the common beginning of two texts: in characters, and in bytes of the first.
fn shared_prefix(a: &str, b: &str) -> (u64, usize) {
    for (characters, ((at, ours), theirs)) in (0..).zip(a.char_indices().zip(b.chars())) {
        if ours != theirs {
            return (characters, at);
        }
    }
    let shorter = if a.len() < b.len() { a } else { b };
    (shorter.chars().count() as u64, shorter.len())
}

fn first(text: &str) -> String {
    text.chars().take(AROUND).collect()
}

fn last(text: &str) -> String {
    let from = text.char_indices().rev().nth(AROUND - 1);
    text[from.map_or(0, |(at, _)| at)..].to_owned()
}

#[cfg(test)]
mod tests;

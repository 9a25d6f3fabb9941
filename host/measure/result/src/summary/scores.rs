//! Scores of the answers: their means with their certainty, by class and by turn, the unjudged
//! answers, and examples of the worst answers.
//!
//! Owns a summary's scores. The arithmetic is in `statistics::share` and `statistics::clusters`;
//! `session` has answers judged, and `figure::score` has the direction of each score.

use std::collections::BTreeMap;

use super::column::Column;
use super::confidence::Bounds;
use super::facts::RunFacts;
use super::groups::{Division, Merge};
use super::unjudged::Unjudged;
use crate::agreement::conversation_digest;
use crate::figure::{Better, score_is_better, score_scale};
use model::exchange::Exchange;
use statistics::bounded;
use statistics::clusters::{self, Mean, clustered};
use statistics::share::wilson;

/// Conversations, or answers of none, up to which a score's scale bounds its interval.
const FEW: usize = 1000;
const EXAMPLES: usize = 3;
/// Characters of a text that are shown of its beginning and of its end; the middle is left out.
const SHOWN: [usize; 2] = [120, 360];

model::words! {
    /// The method of a mean's interval.
    pub enum By {
        /// Wilson's interval of a share; answers of one conversation count as the independent ones
        /// that they are worth.
        Wilson = "wilson",
        /// Gaffke's interval of values on a scale, by the scale's ends; over conversations where
        /// there are any.
        Bounded = "bounded",
        /// Student's distribution, adjusted for skewness; over conversations where there are any.
        Student = "student",
    }
}

/// One score over the judged answers.
#[model::apply(model::document!)]
pub struct Score {
    /// Mean over the judged answers.
    pub mean: f64,
    /// Number of judged answers.
    pub count: u64,
    /// The 95 % interval of the mean, for other samples of the same kind; absent where nothing
    /// shows how scores vary.
    pub confidence: Option<Bounds>,
    /// The method of the interval.
    pub by: Option<By>,
    /// Answers without such a score, by reason; absent if all have one.
    #[serde(default, skip_serializing_if = "Unjudged::is_none")]
    pub unjudged: Unjudged,
    /// Judged answers that the limit of tokens ended, by the server's finish reason; absent if
    /// none.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub cut: u64,
    /// Scores by the class of sample; empty if there are fewer than two.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_class: Vec<ScoredGroup>,
    /// Scores by the turn's place in its conversation, from 0; empty if there are fewer than two.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_turn: Vec<ScoredGroup>,
    /// A few of the worst answers; empty if none is worse than another, and for scores that are
    /// neither better nor worse.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Example>,
}

/// One score over the judged answers of a group.
#[model::apply(model::document!)]
pub struct ScoredGroup {
    /// Its name; absent for the merged group of all that follow in order.
    pub name: Option<String>,
    /// Mean over the judged answers; absent if none could be judged.
    pub mean: Option<f64>,
    /// Number of judged answers.
    pub count: u64,
    /// The 95 % interval of the mean; absent where nothing shows how scores vary.
    pub confidence: Option<Bounds>,
    /// Answers without such a score, by reason; absent if all have one.
    #[serde(default, skip_serializing_if = "Unjudged::is_none")]
    pub unjudged: Unjudged,
}

/// An answer with a bad score.
#[model::apply(model::document!)]
pub struct Example {
    /// The sample's id.
    pub id: String,
    /// The turn's place in its conversation, from 0; absent if the sample is none.
    pub turn: Option<u32>,
    /// The answer's score.
    pub score: f64,
    /// The sample's reference, cut to its beginning and end.
    pub reference: Option<String>,
    /// The end of the prompt, if it is on record.
    pub prompt_end: Option<String>,
    /// The answer, cut to its beginning and end. Where the model only called tools, their calls.
    pub answer: String,
    /// The request's number among the measured ones.
    pub index: u64,
}

impl Example {
    fn new(exchange: &Exchange, score: f64) -> Self {
        let sample = &exchange.sample;
        let reference = sample.reference.as_ref().map(|reference| match reference {
            text if text.is_string() => text.as_str().unwrap_or_default().to_owned(),
            other => other.to_string(),
        });
        let answer =
            if exchange.output.is_empty() { &exchange.tool_calls } else { &exchange.output };
        Example {
            id: cut(&sample.id),
            turn: sample.turn.as_ref().map(|turn| turn.index),
            score,
            reference: reference.as_deref().map(cut),
            prompt_end: sample.prompt_end.clone(),
            answer: cut(answer),
            index: exchange.index,
        }
    }
}

/// A text's beginning and end, with an ellipsis where something lies between.
fn cut(text: &str) -> String {
    let [head, tail] = SHOWN;
    // Never more than four bytes a character, so that a long text is not counted through.
    let begin = |count| text.char_indices().nth(count).map(|(at, _)| at);
    let end = text.char_indices().rev().nth(tail.saturating_sub(1));
    match (begin(head), end) {
        (Some(from), Some((to, _))) if from < to => {
            format!("{} … {}", &text[..from], &text[to..])
        }
        _ => text.to_owned(),
    }
}

pub(super) struct Gather<'a> {
    facts: &'a RunFacts,
    answers: Vec<Answer>,
    classes: Division<String, Places>,
    turns: Division<u32, Places>,
    worst: BTreeMap<&'a str, Vec<Example>>,
}

struct Answer {
    index: u64,
    /// The digest of its conversation's name.
    conversation: Option<u64>,
    has_reference: bool,
    is_cut: bool,
}

#[derive(Default)]
struct Places(Vec<usize>);

impl Merge for Places {
    fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

impl<'a> Gather<'a> {
    pub(super) fn new(facts: &'a RunFacts) -> Self {
        Gather {
            facts,
            answers: Vec::new(),
            classes: Division::default(),
            turns: Division::default(),
            worst: BTreeMap::new(),
        }
    }

    pub(super) fn add(&mut self, exchange: &Exchange) {
        if self.facts.scores.is_empty() || !exchange.is_ok() {
            return;
        }
        let sample = &exchange.sample;
        let place = self.answers.len();
        if let Some(turn) = &sample.turn {
            self.turns.group(turn.index).0.push(place);
        }
        if let Some(class) = &sample.class {
            self.classes.group(class.clone()).0.push(place);
        }
        self.answers.push(Answer {
            index: exchange.index,
            conversation: conversation_digest(sample),
            has_reference: sample.reference.is_some(),
            is_cut: exchange.is_cut(),
        });
        for (name, column) in &self.facts.scores {
            if let Some(value) = column.get(exchange.index) {
                let worst = self.worst.entry(name).or_default();
                keep_worst(worst, (score_is_better(name), value), exchange);
            }
        }
    }

    pub(super) fn finish(self) -> BTreeMap<String, Score> {
        let Gather { facts, answers, classes, turns, mut worst } = self;
        let in_order = |mut places: Vec<usize>| {
            places.sort_unstable_by_key(|place| answers[*place].index);
            places
        };
        let all = in_order((0..answers.len()).collect());
        let classes = classes.finish(|name, Places(places)| (name, in_order(places)), |name| name);
        let turns =
            turns.finish(|name, Places(places)| (name, in_order(places)), |turn| turn.to_string());
        let scores = facts.scores.iter().filter_map(|(name, column)| {
            let listed = |lists: &'a BTreeMap<String, Vec<u64>>| {
                lists.get(name).map_or(&[][..], Vec::as_slice)
            };
            let missing =
                Missing { failed: listed(&facts.unscored), left_out: listed(&facts.left_out) };
            let is_share = column.iter().all(|(_, value)| value == 0.0 || value == 1.0);
            let scale = if is_share { None } else { scale_of(name, column) };
            let judge = |places: &[usize]| {
                let answers = places.iter().map(|place| &answers[*place]);
                Judgements::new(answers, column, missing, is_share, scale)
            };
            let groups = |groups: &[(Option<String>, Vec<usize>)]| match groups {
                [] | [_] => Vec::new(),
                several => (several.iter())
                    .map(|(name, places)| judge(places).group(name.clone()))
                    .collect(),
            };
            let judged = judge(&all);
            let mean = judged.mean?.mean;
            // An answer as bad as all others is no example.
            let examples = worst.remove(name.as_str()).unwrap_or_default();
            let examples = examples.into_iter().filter(|example| {
                if is_share {
                    (example.score == 1.0) == (score_is_better(name) == Better::Lower)
                } else {
                    example.score != mean
                }
            });
            let score = Score {
                mean,
                count: judged.count,
                confidence: judged.confidence,
                by: judged.by,
                unjudged: judged.unjudged,
                cut: judged.cut,
                by_class: groups(&classes),
                by_turn: groups(&turns),
                examples: examples.collect(),
            };
            Some((name.clone(), score))
        });
        scores.collect()
    }
}

/// Keeps an answer among the worst if it is one: first by its score, then by its number.
fn keep_worst(worst: &mut Vec<Example>, (better, value): (Better, f64), exchange: &Exchange) {
    let badness = |score: f64| match better {
        Better::Higher => -score,
        Better::Lower | Better::Neither => score,
    };
    if better == Better::Neither {
        return;
    }
    let is_before = |kept: &Example| {
        let order = badness(kept.score).total_cmp(&badness(value)).reverse();
        order.then(kept.index.cmp(&exchange.index)).is_lt()
    };
    let place = worst.partition_point(is_before);
    if place < EXAMPLES {
        worst.insert(place, Example::new(exchange, value));
        worst.truncate(EXAMPLES);
    }
}

fn scale_of(name: &str, column: &Column<f64>) -> Option<[f64; 2]> {
    let values = || column.iter().map(|(_, value)| value);
    let seen = [values().min_by(f64::total_cmp)?, values().max_by(f64::total_cmp)?];
    score_scale(name, seen, values().all(|value| value.fract() == 0.0))
}

/// The reasons why answers have no score, where they are known; numbers in order.
#[derive(Clone, Copy)]
struct Missing<'f> {
    failed: &'f [u64],
    left_out: &'f [u64],
}

struct Judgements {
    mean: Option<Mean>,
    count: u64,
    confidence: Option<Bounds>,
    by: Option<By>,
    unjudged: Unjudged,
    cut: u64,
}

impl Judgements {
    /// Judges answers in the order of their numbers, so that sums do not depend on the order of the
    /// records.
    fn new<'a>(
        answers: impl Iterator<Item = &'a Answer>,
        column: &Column<f64>,
        missing: Missing<'_>,
        is_share: bool,
        scale: Option<[f64; 2]>,
    ) -> Self {
        let mut unjudged = Unjudged::default();
        let (mut count, mut cut) = (0, 0);
        let clusters = clustered(answers.filter_map(|answer| {
            let value = column.get(answer.index);
            if value.is_some() {
                count += 1;
                cut += u64::from(answer.is_cut);
            } else {
                let is_in = |list: &[u64]| list.binary_search(&answer.index).is_ok();
                *match answer.has_reference {
                    _ if is_in(missing.failed) => &mut unjudged.failed,
                    _ if is_in(missing.left_out) => &mut unjudged.left_out,
                    false => &mut unjudged.without_reference,
                    true => &mut unjudged.passed_over,
                } += 1;
            }
            Some((answer.conversation, value?))
        }));
        let mean = Mean::from_clusters(&clusters);
        // Of many values the spread says enough.
        let scale = scale.filter(|_| clusters.len() <= FEW);
        let interval = match (mean, scale) {
            (Some(mean), None) if is_share => {
                wilson(mean.mean, mean.independent(count)).zip(Some(By::Wilson))
            }
            (Some(_), Some(scale)) => bounded::interval(&clusters, scale).zip(Some(By::Bounded)),
            (Some(_), None) => clusters::interval(&clusters).zip(Some(By::Student)),
            (None, _) => None,
        };
        Judgements {
            mean,
            count,
            confidence: interval.map(|(interval, _)| interval.into()),
            by: interval.map(|(_, by)| by),
            unjudged,
            cut,
        }
    }

    fn group(self, name: Option<String>) -> ScoredGroup {
        ScoredGroup {
            name,
            mean: self.mean.map(|mean| mean.mean),
            count: self.count,
            confidence: self.confidence,
            unjudged: self.unjudged,
        }
    }
}

#[cfg(test)]
mod tests;

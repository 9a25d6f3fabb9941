//! Scores of two runs on the same samples: which answers became better or worse, and whether that
//! is more than chance.
//!
//! Samples are joined by the dataset's statements about them (id, turn, class, reference), and only
//! samples that both runs judged count. Then the difficulty of the samples is the same on both
//! sides, and far smaller differences show than between two means. Shares are tested by McNemar's
//! test over the answers that flipped; other scores, and turns of conversations, by Student's test
//! of the differences, summed by conversation. `statistics` has the arithmetic.

use std::collections::{BTreeMap, HashMap};

use super::side::{Measured, Side};
use super::{Ends, NoInterval};
use model::exchange::{Exchange, Phase};
use result::agreement::{conversation_digest, sample_digest};
use result::summary::Column;
use statistics::Interval;
use statistics::clusters::{self, Cluster, Mean};
use statistics::difference::{Estimate, StandardError};
use statistics::share::Flips;

/// Fewer conversations or lone answers than this are not tested by Student's distribution.
const LEAST: usize = 10;

/// The judged answers of a run.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    /// Each score by its name, by the index of the request.
    scores: BTreeMap<String, Column<f64>>,
    /// The place of each sample, by its digest.
    samples: HashMap<u64, Place>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    index: u64,
    /// The digest of its conversation's name.
    conversation: Option<u64>,
}

model::words! {
    /// The test of two runs' scores on the same samples.
    pub enum PairedBy {
        /// McNemar's test, by the binomial distribution: of fewer than 25 flipped answers.
        McnemarExact = "mcnemar-exact",
        /// McNemar's test, by the normal distribution.
        Mcnemar = "mcnemar",
        /// Student's test of the differences; over conversations where there are any.
        Student = "student",
    }
}

/// The answers to samples that both runs judged.
#[model::apply(model::document!)]
#[derive(Copy, Default)]
pub struct Paired {
    /// Samples that both runs judged.
    pub samples: u64,
    /// Samples with the same score.
    pub equal: u64,
    /// Samples whose score is higher than in the baseline.
    pub higher: u64,
    /// Samples whose score is lower than in the baseline.
    pub lower: u64,
    /// Judged answers of the baseline without a partner. They are not in the figures.
    pub baseline_only: u64,
    /// Judged answers of the side without a partner. They are not in the figures.
    pub side_only: u64,
    /// The test of the difference; absent where samples are too few.
    pub by: Option<PairedBy>,
}

/// A score of two runs on the same samples, and how sure the difference is.
#[model::apply(model::document!)]
pub struct Flipped {
    /// The samples.
    pub paired: Paired,
    /// The baseline's mean over them.
    pub baseline: f64,
    /// The run's mean over them.
    pub value: f64,
    /// The probability of a difference this large if there is none; absent where samples are too
    /// few.
    pub probability: Option<f64>,
    /// The 95 % interval of the difference.
    pub interval: Option<Ends>,
}

/// Scores that two runs have, on the samples that both judged; scores without any are left out.
pub fn flipped(baseline: &Answers, run: &Answers) -> BTreeMap<String, Flipped> {
    let names = baseline.scores.keys();
    let found = names.filter_map(|name| {
        let Pairing { paired, means: [before, after], estimate } = pair(name, baseline, run)?;
        let flipped = Flipped {
            paired,
            baseline: before,
            value: after,
            probability: estimate.map(|estimate| estimate.probability),
            interval: estimate
                .filter(|estimate| estimate.sure.error > 0.0)
                .map(|estimate| estimate.interval.into()),
        };
        Some((name.clone(), flipped))
    });
    found.collect()
}

/// A score of two runs on the same samples.
pub(super) struct Pairing {
    pub paired: Paired,
    /// The means over them: the baseline's, and the side's.
    pub means: [f64; 2],
    pub estimate: Option<Estimate>,
}

impl Answers {
    /// The answers of a run with these scores.
    pub fn new(scores: &BTreeMap<String, Column<f64>>) -> Self {
        Answers { scores: scores.clone(), samples: HashMap::new() }
    }

    pub fn add(&mut self, exchange: &Exchange) {
        if self.scores.is_empty() || exchange.phase != Phase::Measure || !exchange.is_ok() {
            return;
        }
        let sample = &exchange.sample;
        let conversation = conversation_digest(sample);
        self.samples
            .entry(sample_digest(sample))
            .or_insert(Place { index: exchange.index, conversation });
    }
}

/// A score of two single runs, if it is one. Fails if no sample was judged in both.
pub(super) fn pairing(name: &str, sides: [&Side; 2]) -> Result<Option<Pairing>, NoInterval> {
    let [[a], [b]] = sides.map(Side::measured) else { return Ok(None) };
    let columns = |run: &Measured| run.answers.scores.contains_key(name);
    if !(columns(a) && columns(b)) {
        return Ok(None);
    }
    pair(name, &a.answers, &b.answers).map(Some).ok_or(NoInterval::Unpaired)
}

/// A score on the samples that both judged; `None` if there is none.
fn pair(name: &str, a: &Answers, b: &Answers) -> Option<Pairing> {
    let (ours, theirs) = (a.scores.get(name)?, b.scores.get(name)?);
    let both = b.samples.iter().filter_map(|(sample, place)| {
        let before = a.samples.get(sample)?;
        let values = [ours.get(before.index)?, theirs.get(place.index)?];
        Some((before, values))
    });
    let mut both: Vec<(&Place, [f64; 2])> = both.collect();
    // In the order of the run, so that sums are the same to the last bit.
    both.sort_unstable_by_key(|(place, _)| place.index);
    let samples = both.len() as u64;
    if samples == 0 {
        return None;
    }
    let judged = |answers: &Answers, column: &Column<f64>| {
        let places = answers.samples.values();
        places.filter(|place| column.get(place.index).is_some()).count() as u64
    };
    let [baseline_only, side_only] = [judged(a, ours), judged(b, theirs)].map(|all| all - samples);
    let mut paired = Paired { samples, baseline_only, side_only, ..Paired::default() };
    let mut places: HashMap<u64, usize> = HashMap::new();
    let mut apart: Vec<Cluster> = Vec::new();
    for (place, [before, after]) in &both {
        match after.total_cmp(before) {
            _ if after == before => paired.equal += 1,
            std::cmp::Ordering::Greater => paired.higher += 1,
            _ => paired.lower += 1,
        }
        let next = apart.len();
        let at = match place.conversation {
            Some(conversation) => *places.entry(conversation).or_insert(next),
            None => next,
        };
        if at == next {
            apart.push(Cluster::default());
        }
        apart[at].sum += after - before;
        apart[at].count += 1;
    }
    let mean =
        |side: usize| both.iter().map(|(_, values)| values[side]).sum::<f64>() / samples as f64;
    let is_share =
        both.iter().all(|(_, values)| values.iter().all(|value| [0.0, 1.0].contains(value)));
    let is_clustered = apart.len() < both.len();
    let flips = Flips { samples, gained: paired.higher, lost: paired.lower };
    let found = if is_share && !is_clustered { by_flips(&flips) } else { by_student(&apart) };
    let (estimate, by) = found.unzip();
    paired.by = by;
    Some(Pairing { paired, means: [mean(0), mean(1)], estimate })
}

fn by_flips(flips: &Flips) -> Option<(Estimate, PairedBy)> {
    let estimate = Estimate {
        interval: flips.interval()?,
        sure: StandardError { error: flips.error(), freedom: f64::INFINITY },
        probability: flips.probability(),
        run_variation: None,
        walks: false,
    };
    let by = if flips.is_exact() { PairedBy::McnemarExact } else { PairedBy::Mcnemar };
    Some((estimate, by))
}

fn by_student(apart: &[Cluster]) -> Option<(Estimate, PairedBy)> {
    if apart.len() < LEAST {
        return None;
    }
    let found = clusters::difference(apart)?;
    let Mean { mean, error, .. } = Mean::from_clusters(apart)?;
    let estimate = Estimate {
        interval: found.interval.unwrap_or(Interval { low: mean, high: mean }),
        sure: StandardError { error: error?, freedom: apart.len() as f64 - 1.0 },
        probability: found.probability,
        run_variation: None,
        walks: false,
    };
    Some((estimate, PairedBy::Student))
}

impl Flipped {
    /// States the number of answers that changed, and its probability by chance.
    pub fn label(&self) -> String {
        let chance = self.probability.map(|p| format!("; p = {p:.4}"));
        self.paired.flips(&chance.unwrap_or_default())
    }
}

impl Paired {
    fn flips(&self, chance: &str) -> String {
        let Paired { samples, equal, higher, lower, .. } = self;
        let by = match self.by {
            Some(PairedBy::McnemarExact) => "McNemar's test, exact",
            Some(PairedBy::Mcnemar) => "McNemar's test",
            Some(PairedBy::Student) => "Student's test of the differences",
            None => "too few to be tested",
        };
        format!(
            "{samples} samples judged in both runs: {equal} equal, {higher} higher, {lower} lower ({by}{chance})"
        )
    }

    /// States the number of answers that changed and the test of it; the sides by their letters.
    pub fn label(&self, side: &str) -> String {
        let alone = match (self.baseline_only, self.side_only) {
            (0, 0) => String::new(),
            (a, b) => {
                format!("; {a} of A and {b} of {side} have no partner and are not in these figures")
            }
        };
        format!("{}{alone}", self.flips(""))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{USUAL, exchanges, named, plan, scored};
    use super::super::{Judgement, Options, Row, blocks, compare};
    use super::*;
    use model::exchange::Turn;

    const REQUESTS: u64 = 200;

    fn run() -> Vec<Exchange> {
        exchanges(USUAL, REQUESTS, 10.0)
    }

    fn side(run: &[Exchange], score: impl Fn(u64) -> Option<f64>) -> Side {
        let column = (0..REQUESTS).filter_map(|index| Some((index, score(index)?)));
        let scores = BTreeMap::from([("exact-match".to_owned(), column.collect())]);
        Side::Runs(vec![scored("run", plan(&[]), run, scores)])
    }

    fn options(conditions: &[&str]) -> Options {
        Options {
            conditions: conditions.iter().map(|text| text.parse().unwrap()).collect(),
            ..Options::new(named(&["score.exact-match"]), blocks(REQUESTS))
        }
    }

    fn row(sides: [Side; 2]) -> Row {
        let found = compare(&sides, &options(&[])).unwrap();
        found.row("B", "score.exact-match").unwrap().clone()
    }

    /// Right but for every fifth answer.
    fn usual(index: u64) -> Option<f64> {
        Some(f64::from(!index.is_multiple_of(5)))
    }

    #[test]
    fn one_sided_flips_are_worse_and_balanced_ones_equal() {
        let run = run();
        // Ten of the right answers become wrong.
        let lost = |index| usual(index).filter(|_| index % 20 != 1).or(Some(0.0));
        let found = row([side(&run, usual), side(&run, lost)]);
        let paired = found.paired.unwrap();
        assert_eq!((paired.samples, paired.equal, paired.lower, paired.higher), (200, 190, 10, 0));
        assert_eq!(paired.by, Some(PairedBy::McnemarExact));
        assert!((found.probability.unwrap() - 2.0 / 1024.0).abs() < 1e-9);
        assert!((found.difference.unwrap() + 0.05).abs() < 1e-9);
        assert_eq!(found.judgement, Some(Judgement::Worse));
        // The same mean by other answers.
        let moved = |index| Some(f64::from(index % 5 != 1));
        let found = row([side(&run, usual), side(&run, moved)]);
        let paired = found.paired.unwrap();
        assert_eq!((paired.higher, paired.lower, paired.by), (40, 40, Some(PairedBy::Mcnemar)));
        let expected = (Some(Judgement::NoDifference), Some(1.0));
        assert_eq!((found.judgement, found.probability), expected);
    }

    #[test]
    fn turns_of_a_conversation_count_together() {
        let mut run = run();
        for exchange in &mut run {
            exchange.sample.turn = Some(Turn {
                session: format!("c{}", exchange.index / 20),
                index: (exchange.index % 20) as u32,
            });
        }
        // One conversation of ten went wrong: twenty flips, and hardly more than one event.
        let lost = |index| if index < 20 { Some(0.0) } else { usual(index) };
        let found = row([side(&run, usual), side(&run, lost)]);
        assert_eq!(found.paired.unwrap().by, Some(PairedBy::Student));
        assert_eq!(found.judgement, Some(Judgement::NoDifference), "{found:?}");
    }

    #[test]
    fn graded_scores_are_tested_by_their_differences() {
        let run = run();
        let graded = |shift: f64| {
            move |index: u64| Some((index % 7) as f64 / 10.0 + shift * (index % 3) as f64)
        };
        let found = row([side(&run, graded(0.0)), side(&run, graded(0.01))]);
        assert_eq!(found.paired.unwrap().by, Some(PairedBy::Student));
        assert_eq!(found.judgement, Some(Judgement::Better), "{found:?}");
        let same = row([side(&run, graded(0.0)), side(&run, graded(0.0))]);
        assert_eq!(same.judgement, Some(Judgement::NoDifference));
    }

    #[test]
    fn only_samples_that_both_judged_count() {
        let run = run();
        let first = |index| usual(index).filter(|_| index < 150);
        let last = |index| usual(index).filter(|_| index >= 50);
        let found = row([side(&run, first), side(&run, last)]);
        let paired = found.paired.unwrap();
        assert_eq!((paired.samples, paired.baseline_only, paired.side_only), (100, 50, 50));
        assert_eq!((found.baseline, found.value), (Some(0.8), Some(0.8)));
        assert!(paired.label("B").contains("50 of A and 50 of B have no partner"));
    }

    #[test]
    fn other_samples_are_not_paired() {
        let run = run();
        let mut other = run.clone();
        for exchange in &mut other {
            exchange.sample.reference = Some("another".into());
        }
        let sides = [side(&run, usual), side(&other, |_| Some(0.0))];
        let found = compare(&sides, &options(&["score.exact-match -1%"])).unwrap();
        let row = found.row("B", "score.exact-match").unwrap();
        let expected = (Some(NoInterval::Unpaired), Some(Judgement::NotJudged));
        assert_eq!((row.no_interval, row.judgement), expected);
        assert!(found.conditions[0].is_absent && !found.conditions[0].fails);
    }

    #[test]
    fn conditions_on_scores_fail_when_a_loss_is_shown() {
        let run = run();
        let lost = |flips: u64| {
            move |index: u64| {
                if index % 5 == 1 && index / 5 < flips { Some(0.0) } else { usual(index) }
            }
        };
        let outcome = |flips| {
            let sides = [side(&run, usual), side(&run, lost(flips))];
            let found = compare(&sides, &options(&["score.exact-match -1%"])).unwrap();
            (found.conditions[0].fails, found.conditions[0].seen.clone())
        };
        assert!(!outcome(0).0);
        let (fails, seen) = outcome(5);
        assert!(!fails && seen.contains("but not beyond chance"), "{seen}");
        let (fails, seen) = outcome(12);
        assert!(fails && seen.starts_with("-0.0600 (-7.5 %)"), "{seen}");
    }
}

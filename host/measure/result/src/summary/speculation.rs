//! The steps of speculative decoding: tokens per step, the number of steps for each number of
//! accepted tokens, and the effect on the time per output token. `kinds` has the drafts as token
//! counts.
//!
//! Memory has a bound: a list of steps is as long as the longest of the answers, and answers of the
//! same acceptance length are summed together.

use std::collections::BTreeMap;

use super::confidence::Bounds;
use super::groups::Merge;
use crate::metric::Reading;
use crate::metric::definition::accepted_drafts;
use model::exchange::Exchange;
use statistics::Interval;
use statistics::correlation::Pairs;
use statistics::covariance::Products;

/// The steps of speculative decoding.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Speculation {
    /// Number of steps in which the model verified proposed tokens.
    pub steps: u64,
    /// The number of answers that report their steps.
    pub answers: u64,
    /// Tokens per step: 1 + accepted tokens / steps, over the answers that report both; absent if
    /// there was no step.
    pub acceptance_length: Option<f64>,
    /// Its 95 % confidence interval, from the answers that report both; absent for groups, and if
    /// fewer than two answers do.
    pub acceptance_length_interval: Option<Bounds>,
    /// Number of steps that accepted 0, 1, 2, … tokens, over the answers that report it; empty if
    /// none does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps_by_accepted: Vec<u64>,
    /// TPOT by acceptance length, over the answers that have both; absent for groups, and if fewer
    /// than two answers have both.
    pub tpot: Option<TpotByAcceptance>,
}

/// The dependence of an answer's time per output token on its acceptance length.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct TpotByAcceptance {
    /// The number of answers.
    pub answers: u64,
    /// Spearman's rank correlation of the two, from -1, where the answers with longer steps are the
    /// faster ones throughout, to 1; absent if one of the two does not vary. A correlation is no
    /// cause: a load that varies moves TPOT too.
    pub rank_correlation: Option<f64>,
    /// The answers in quarters by their acceptance length, in ascending order. Answers of the same
    /// length are in the same quarter, so quarters may differ in size, and one without answers is
    /// left out.
    pub quarters: Vec<Quarter>,
}

/// Answers of a similar acceptance length.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Quarter {
    /// The number of answers.
    pub answers: u64,
    /// The shortest acceptance length, in tokens per step, to a thousandth.
    pub from: f64,
    /// The longest.
    pub to: f64,
    /// The mean of their TPOT, in milliseconds.
    pub tpot_ms: f64,
}

#[derive(Default)]
pub(super) struct Steps {
    counted: Speculation,
    /// Accepted tokens and steps, of the answers that report both.
    accepted: u64,
    steps: u64,
}

impl Steps {
    pub(super) fn add(&mut self, exchange: &Exchange) {
        let Some(reported) = &exchange.speculation else { return };
        self.counted.answers += 1;
        self.counted.steps += u64::from(reported.steps);
        let list = reported.steps_by_accepted.iter().copied().map(u64::from);
        add_up(&mut self.counted.steps_by_accepted, list);
        if let Some(accepted) = accepted_drafts(exchange) {
            self.accepted = self.accepted.saturating_add(accepted);
            self.steps += u64::from(reported.steps);
        }
    }

    /// The figures; absent if no answer reports its steps.
    pub(super) fn finish(self) -> Option<Speculation> {
        let length = || 1.0 + self.accepted as f64 / self.steps as f64;
        (self.counted.answers > 0).then(|| Speculation {
            acceptance_length: (self.steps > 0).then(length),
            ..self.counted
        })
    }
}

impl Merge for Steps {
    fn merge(&mut self, other: Self) {
        self.counted.answers += other.counted.answers;
        self.counted.steps += other.counted.steps;
        let list = other.counted.steps_by_accepted.into_iter();
        add_up(&mut self.counted.steps_by_accepted, list);
        self.accepted = self.accepted.saturating_add(other.accepted);
        self.steps += other.steps;
    }
}

/// Adds a list to another, entry by entry; the longer one's length is kept.
fn add_up(sums: &mut Vec<u64>, more: impl ExactSizeIterator<Item = u64>) {
    if sums.len() < more.len() {
        sums.resize(more.len(), 0);
    }
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum += more;
    }
}

#[derive(Default)]
pub(super) struct Lengths(Products<2>);

impl Lengths {
    pub(super) fn add(&mut self, exchange: &Exchange) {
        let steps = exchange.speculation.as_ref().map(|reported| reported.steps);
        if let Some((accepted, steps)) = accepted_drafts(exchange).zip(steps) {
            self.0.add([accepted, steps.into()]);
        }
    }

    pub(super) fn finish(self) -> Option<Bounds> {
        let Interval { low, high } = self.0.ratio()?;
        Some(Interval { low: (1.0 + low).max(1.0), high: 1.0 + high }.into())
    }
}

/// Acceptance lengths are told apart to a thousandth of a token.
const THOUSANDTHS: f64 = 1000.0;

#[derive(Default)]
pub(super) struct Paces {
    pairs: Pairs,
    /// Answers by acceptance length, with the sum of their TPOT in nanoseconds.
    lengths: BTreeMap<u64, (u64, u128)>,
}

impl Paces {
    pub(super) fn add(&mut self, reading: &Reading<'_>) {
        let (Some(length), Some(tpot)) = (reading.acceptance_length(), reading.tpot()) else {
            return;
        };
        let length = (length * THOUSANDTHS).round() as u64;
        let tpot = (tpot * 1e6).round() as u64;
        self.pairs.add(length, tpot);
        let (answers, sum) = self.lengths.entry(length).or_default();
        *answers += 1;
        *sum += u128::from(tpot);
    }

    pub(super) fn finish(self) -> Option<TpotByAcceptance> {
        let answers: u64 = self.lengths.values().map(|(answers, _)| answers).sum();
        let mut quarters: BTreeMap<u64, (Quarter, u128)> = BTreeMap::new();
        let mut before = 0;
        for (length, (many, time)) in self.lengths {
            // The quarter that the middle of them lies in.
            let quarter = (2 * (2 * before + many)) / answers.max(1);
            before += many;
            let length = length as f64 / THOUSANDTHS;
            let first = || {
                let quarter = Quarter { from: length, ..Quarter::default() };
                (quarter, 0)
            };
            let (quarter, sum) = quarters.entry(quarter).or_insert_with(first);
            quarter.answers += many;
            quarter.to = length;
            *sum += time;
        }
        let quarters = quarters.into_values().map(|(quarter, sum)| Quarter {
            tpot_ms: sum as f64 / quarter.answers as f64 / 1e6,
            ..quarter
        });
        (answers > 1).then(|| TpotByAcceptance {
            answers,
            rank_correlation: self.pairs.spearman(),
            quarters: quarters.collect(),
        })
    }
}

/// The most entries of a list of steps that are written as text.
const SHOWN: usize = 16;

impl Speculation {
    /// Writes the number of steps for each number of accepted tokens, such as
    /// `0: 12 (24.0 %), 1: 38 (76.0 %)`; `count` writes a number. Absent if no answer reports it.
    pub fn label(&self, count: impl Fn(u64) -> String) -> Option<String> {
        let steps = &self.steps_by_accepted;
        let all: u64 = steps.iter().sum();
        let entry = |tokens: &str, steps: u64| {
            let percent = steps as f64 / all as f64 * 100.0;
            format!("{tokens}: {} ({percent:.1} %)", count(steps))
        };
        let shown = steps.iter().take(SHOWN).enumerate();
        let shown = shown.map(|(tokens, steps)| entry(&tokens.to_string(), *steps));
        let rest = steps.get(SHOWN..).filter(|rest| !rest.is_empty());
        let rest = rest.map(|rest| entry("more", rest.iter().sum()));
        let words: Vec<String> = shown.chain(rest).collect();
        (all > 0).then(|| words.join(", "))
    }

    /// The share of the steps that accepted the token at each position, after all before it, as far
    /// as lists are shown. Empty if no answer reports it.
    pub fn accepted_at(&self) -> Vec<f64> {
        let steps = &self.steps_by_accepted;
        let all: u64 = steps.iter().sum();
        let positions = (1..steps.len()).take(SHOWN).filter(|_| all > 0);
        let shares = positions.map(|position| {
            let accepted: u64 = steps[position..].iter().sum();
            accepted as f64 / all as f64
        });
        shares.collect()
    }

    /// Writes these shares, such as `1: 76.0 %, 2: 30.0 %`. Absent if no answer reports it.
    pub fn positions(&self) -> Option<String> {
        let shares = (1..).zip(self.accepted_at());
        let words =
            shares.map(|(position, share): (u32, _)| format!("{position}: {:.1} %", share * 100.0));
        let words: Vec<String> = words.collect();
        (!words.is_empty()).then(|| words.join(", "))
    }
}

impl TpotByAcceptance {
    /// Writes the mean TPOT of each quarter, such as `1.20 to 1.80 tok/step: 12.31 ms (25), …`, the
    /// number of answers in brackets; `count` writes a number.
    pub fn label(&self, count: impl Fn(u64) -> String) -> String {
        let quarters = self.quarters.iter().map(|quarter| {
            let Quarter { from, to, tpot_ms, .. } = quarter;
            let answers = count(quarter.answers);
            format!("{from:.2} to {to:.2} tok/step: {tpot_ms:.2} ms ({answers})")
        });
        let quarters: Vec<String> = quarters.collect();
        quarters.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Summary;
    use crate::summary::fixture::{facts, output_usage, reply};
    use model::exchange::{self, Kind, Usage};

    /// The length is of the steps of all answers together, not the mean over answers; an answer
    /// without its accepted tokens counts for the steps alone.
    #[test]
    fn steps_are_summed() {
        let steps_of_requests = [
            (exchange::Speculation { steps: 3, steps_by_accepted: vec![1, 1, 1] }, None),
            (exchange::Speculation { steps: 1, steps_by_accepted: vec![0, 1] }, Some(9)),
            (exchange::Speculation { steps: 4, steps_by_accepted: vec![] }, Some(2)),
            (exchange::Speculation { steps: 5, steps_by_accepted: vec![] }, None),
        ];
        let mut run: Vec<Exchange> = (0..steps_of_requests.len() as u64 + 1)
            .map(|index| {
                reply(index, 1000 + index * 100, &[(1050 + index * 100, Kind::Text, None, 4)])
            })
            .collect();
        for (exchange, (steps, accepted)) in run.iter_mut().zip(steps_of_requests) {
            exchange.speculation = Some(steps);
            exchange.usage = accepted.map(|accepted| Usage {
                accepted_draft_tokens: Some(accepted),
                ..Usage::default()
            });
        }
        let summary = Summary::new(&facts(), &run);
        let steps = summary.tokens.speculation.clone().unwrap();
        assert_eq!((steps.steps, steps.answers), (13, 4));
        assert_eq!(steps.steps_by_accepted, [1, 2, 1]);
        // 3 + 1 + 2 tokens of 8 steps.
        assert_eq!(steps.acceptance_length, Some(1.75));
        // Residuals of 3 of 3, 1 of 1 and 2 of 4: Student's interval with 2 degrees of freedom.
        let Some(Bounds { low: Some(1.0), high: Some(high) }) = steps.acceptance_length_interval
        else {
            panic!("{steps:?}");
        };
        let error = ((0.75_f64.powi(2) + 0.25_f64.powi(2) + 1.0) * 3.0 / 2.0).sqrt() / 8.0;
        assert!((high - 1.75 - 4.302_653 * error).abs() < 1e-5, "{high}");
        let lengths = summary.metric("acceptance-length").unwrap();
        assert_eq!((lengths.count, lengths.mean), (3, (2.0 + 2.0 + 1.5) / 3.0));
        let count = |n: u64| n.to_string();
        let words = "0: 1 (25.0 %), 1: 2 (50.0 %), 2: 1 (25.0 %)";
        assert_eq!(steps.label(count).as_deref(), Some(words));
        assert_eq!(steps.positions().as_deref(), Some("1: 75.0 %, 2: 25.0 %"));

        let long = Speculation { steps_by_accepted: vec![1; 20], ..Speculation::default() };
        let words = long.label(count).unwrap();
        assert!(words.ends_with("15: 1 (5.0 %), more: 4 (20.0 %)"), "{words}");
        for nothing in [vec![], vec![0, 0]] {
            let nothing = Speculation { steps_by_accepted: nothing, ..Speculation::default() };
            assert_eq!((nothing.label(count), nothing.positions()), (None, None));
        }
        let silent = [reply(0, 1000, &[(1050, Kind::Text, None, 4)])];
        assert_eq!(Summary::new(&facts(), &silent).tokens.speculation, None);
    }

    /// An answer of 11 tokens that took `gap` ms for each after the first, in ten steps that
    /// accepted `accepted` tokens together.
    fn paced(index: u64, accepted: u32, gap: u64) -> Exchange {
        let sent = 1000 + index * 100;
        let events = [(sent + 50, Kind::Text, None, 4), (sent + 50 + 10 * gap, Kind::End, None, 0)];
        let mut exchange = reply(index, sent, &events);
        exchange.speculation =
            Some(exchange::Speculation { steps: 10, steps_by_accepted: Vec::new() });
        exchange.usage =
            Some(Usage { accepted_draft_tokens: Some(accepted), ..output_usage(11).unwrap() });
        exchange
    }

    fn tpot(run: &[Exchange]) -> Option<TpotByAcceptance> {
        Summary::new(&facts(), run).tokens.speculation?.tpot
    }

    /// Eight answers: the more they accept, the faster they are. Twice two share their length.
    #[test]
    fn quarters_hold_answers_of_similar_length() {
        let accepted = [20, 5, 10, 10, 15, 5, 0, 30];
        let run: Vec<Exchange> = accepted
            .into_iter()
            .zip(0..)
            .map(|(accepted, index)| paced(index, accepted, u64::from(40 - accepted)))
            .collect();
        let found = tpot(&run).unwrap();
        assert_eq!((found.answers, found.rank_correlation), (8, Some(-1.0)));
        let quarter = |answers, from, to, tpot_ms| Quarter { answers, from, to, tpot_ms };
        assert_eq!(
            found.quarters,
            [
                quarter(1, 1.0, 1.0, 40.0),
                quarter(2, 1.5, 1.5, 35.0),
                quarter(3, 2.0, 2.5, (2.0 * 30.0 + 25.0) / 3.0),
                quarter(2, 3.0, 4.0, 15.0),
            ]
        );
        assert_eq!(
            found.label(|n| n.to_string()),
            "1.00 to 1.00 tok/step: 40.00 ms (1), 1.50 to 1.50 tok/step: 35.00 ms (2), \
             2.00 to 2.50 tok/step: 28.33 ms (3), 3.00 to 4.00 tok/step: 15.00 ms (2)"
        );
    }

    #[test]
    fn constant_values_have_no_correlation() {
        let same: Vec<Exchange> = (0..4).map(|index| paced(index, 10, 20 + index)).collect();
        let found = tpot(&same).unwrap();
        assert_eq!((found.rank_correlation, found.quarters.len()), (None, 1));
        assert_eq!(tpot(&same[..1]), None);
    }

    #[test]
    fn groups_have_steps_of_their_own() {
        let mut run: Vec<Exchange> = (0..5).map(|index| paced(index, 10, 20)).collect();
        for (exchange, class) in run.iter_mut().zip(["code", "code", "prose", "prose", "none"]) {
            exchange.sample.class = Some(class.to_owned());
            let speculation = exchange.speculation.as_mut().unwrap();
            speculation.steps_by_accepted = match class {
                "code" => vec![2, 3, 5],
                _ => vec![9, 1],
            };
        }
        run[4].speculation = None;
        let classes = Summary::new(&facts(), &run).groups.by_class;
        let of_class = |name: &str| {
            let mut classes = classes.iter();
            classes.find(|class| class.name.as_deref() == Some(name)).unwrap().speculation.clone()
        };
        let code = of_class("code").unwrap();
        assert_eq!((code.steps, code.answers), (20, 2));
        assert_eq!(code.steps_by_accepted, [4, 6, 10]);
        assert_eq!(code.acceptance_length, Some(1.0 + 26.0 / 20.0));
        assert_eq!(code.accepted_at(), [0.8, 0.5]);
        assert_eq!(of_class("prose").unwrap().acceptance_length, Some(1.1));
        assert_eq!(of_class("none"), None);
    }
}

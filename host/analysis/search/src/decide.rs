//! The test at one load: does a tier hold, does it not, or is it too early to say?
//!
//! The figure tested is the share of the requests that are bad, against the share that an objective
//! allows. Let k of n requests be bad, and n be worth n / d independent ones. Then Clopper and
//! Pearson's bounds of the share are the bounds for k / d of n / d (Clopper and Pearson 1934; with
//! a design effect, Korn and Graubard 1998). A tier passes when the upper bound of each of its
//! objectives is at most the allowed share, and the backlog did not grow. It fails when the lower
//! bound of one of them is above that, or when the backlog grew. Anything else is undecided, and
//! undecided is never a pass.
//!
//! **A queue that has not built up yet shows nothing.** Close to capacity a queue takes long to
//! reach its full length, and a shorter run looks healthy throughout. The backlog shows the changes
//! of the load itself: a pass in an open loop takes runs that hold [`LOADS`] independent ones
//! together.
//!
//! **Nobody doubts a load at which most requests miss**, though the run holds a single load: each
//! run starts with no queue, and a queue seldom grows so long that later stays short
//! ([`late`]). So a fail takes either bound.
//!
//! The bounds are one-sided, at the level that one load has
//! ([`Config::alpha_each`](crate::Config::alpha_each)). Every objective has to pass; that makes a
//! pass harder and not easier, so it needs no correction. Any objective can fail a tier, so the
//! level of failures is divided by their number. In an open loop the requests count for no more
//! than the independent loads that the runs hold. The design effect is itself estimated from few
//! batches, so it is widened as Student's quantile is.

use result::summary::Backlog;
use statistics::beta::binomial;
use statistics::student;

use crate::control::Control;
use crate::decision::{Decided, Decision, Doubt, Failure, Stated};
use crate::gather::Counted;
use crate::slo::Limit;
use statistics::bounds::{fewest, late, lower, upper};

/// Requests beyond which none are predicted.
const FAR: u64 = 1 << 40;

/// Independent loads that a pass takes in an open loop. The first of them, in which the queue
/// builds up, is then a small part.
pub const LOADS: f64 = 40.0;

/// The result of the runs at one load for one objective.
#[model::apply(model::document!)]
#[derive(Copy, Default)]
pub struct Pooled {
    /// Requests that were due.
    pub requests: u64,
    /// Those of them that were bad.
    pub bad: u64,
    /// Those of the bad ones that were answered, and whose metric is not known.
    pub unknown: u64,
    /// The design effects, each run's weighted by its requests: the variances of independent runs
    /// add up.
    effects: [f64; 3],
    /// Degrees of freedom of their estimate.
    freedom: f64,
    /// The number of runs, and the sum of the logarithms of the odds of their misses.
    #[serde(default)]
    runs: u32,
    #[serde(default)]
    odds: f64,
    /// The control of the misses; absent if a run has none.
    pub control: Option<Control>,
    /// True if a run's simulated engine is overloaded.
    #[serde(default)]
    pub overloads: bool,
}

impl Pooled {
    /// Adds the counts of an independent run.
    pub fn add(&mut self, counted: &Counted) {
        let known = counted.bad.saturating_sub(counted.unknown) as f64;
        self.join(&Pooled {
            requests: counted.requests,
            bad: counted.bad,
            unknown: counted.unknown,
            effects: [counted.effect, counted.tail_effect, counted.near_effect],
            freedom: f64::from(counted.batches.saturating_sub(1)),
            runs: 1,
            control: counted.control,
            overloads: counted.overloads,
            odds: (known.max(0.5) / (counted.requests as f64 - known + 1.0)).ln(),
        });
    }

    /// Adds the counts of other independent runs.
    pub fn join(&mut self, other: &Pooled) {
        let (before, own) = (self.requests as f64, other.requests as f64);
        if own > 0.0 {
            for (all, effect) in self.effects.iter_mut().zip(other.effects) {
                *all = (*all * before + effect * own) / (before + own);
            }
            self.control = match (self.control, other.control) {
                (Some(control), Some(others)) => Some(control.join(others, [before, own])),
                (_, others) => others.filter(|_| before == 0.0),
            };
        }
        self.requests += other.requests;
        self.bad += other.bad;
        self.unknown += other.unknown;
        self.freedom += other.freedom;
        self.overloads |= other.overloads;
        self.runs += other.runs;
        self.odds += other.odds;
    }

    /// The design effect at a level, widened because it is an estimate. It is the larger of the
    /// misses' and of the run's highest tenth's; where no request is bad, it is the effect of
    /// requests that came near the limit.
    pub fn effect(&self, level: f64) -> f64 {
        let quantile = |freedom| student::quantile(2.0 * level, freedom);
        let wider = quantile(self.freedom.max(1.0)) / quantile(f64::INFINITY);
        let seen = if self.bad == 0 { self.effects[2].max(1.0) } else { self.typical() };
        seen * wider * wider
    }

    /// The design effects of the misses and of the run's highest tenth.
    pub fn seen(&self) -> [f64; 2] {
        [self.effects[0].max(1.0), self.effects[1].max(1.0)]
    }

    /// The design effect: the largest of the misses', of the run's highest tenth's and of the
    /// control's long run, which meets queues that a short run misses.
    pub fn typical(&self) -> f64 {
        let [own, tail, _] = self.effects;
        own.max(tail).max(self.control.map_or(1.0, |own| own.effect)).max(1.0)
    }
}

/// Decides on a tier from the counts of its objectives over the runs at one load, at the level of
/// one load. `grown` is the backlog of a run in which it grew, and `loads` the number of
/// independent loads in an open loop.
pub fn decide(
    limits: &[(Limit, Pooled)],
    grown: Option<Backlog>,
    loads: Option<f64>,
    level: f64,
) -> Decided {
    let of_failures = level / limits.len().max(1) as f64;
    let stated: Vec<Stated> = limits
        .iter()
        .map(|(limit, pooled)| {
            let effect = pooled.effect(level);
            let worth = pooled.requests as f64 / effect;
            // Misses that come in clusters as long as the load takes to change are worth no more
            // than it.
            let steady = worth.min(loads.unwrap_or(f64::INFINITY));
            let known = pooled.bad.saturating_sub(pooled.unknown);
            let lower_at = |worth: f64| {
                lower(known as f64 / pooled.requests as f64 * worth, worth, of_failures)
            };
            let late = || {
                let queue = late(pooled.runs, pooled.odds, of_failures);
                queue.min(lower_at(pooled.requests as f64))
            };
            let (low, high) = if pooled.requests == 0 {
                (0.0, 1.0)
            } else {
                let low = lower_at(steady).max(loads.map_or(0.0, |_| late()));
                (low, upper(pooled.bad as f64 / effect, worth, level))
            };
            Stated {
                limit: limit.clone(),
                allowed: limit.allowed(),
                requests: pooled.requests,
                bad: pooled.bad,
                unknown: pooled.unknown,
                effect,
                low,
                high,
                long_run: pooled.control.and_then(Control::helps).map(|own| own.share),
            }
        })
        .collect();
    Decided { decision: decision(&stated, grown, loads, level, of_failures), limits: stated }
}

fn decision(
    stated: &[Stated],
    grown: Option<Backlog>,
    loads: Option<f64>,
    level: f64,
    of_failures: f64,
) -> Decision {
    let misses = || stated.iter().position(|own| own.low > own.allowed).map(Failure::Misses);
    if let Some(why) = grown.map(Failure::Growth).or_else(misses) {
        return Decision::Fail { why };
    }
    let open = || stated.iter().filter(|own| own.high > own.allowed);
    let requests = stated.iter().map(|own| own.requests).max().unwrap_or(0);
    if open().next().is_none() && !stated.is_empty() {
        return match loads.filter(|loads| *loads < LOADS) {
            None => Decision::Pass,
            Some(loads) => Decision::Undecided {
                why: Doubt::FewLoads(loads),
                more: Some((requests as f64 * (LOADS / loads.max(1.0) - 1.0)).ceil() as u64),
            },
        };
    }
    if requests == 0 {
        return Decision::Undecided { why: Doubt::NoRun, more: None };
    }
    let too_few = |own: &Stated| (own.requests as f64) < own.effect * fewest(own.allowed, level);
    let why = if open().any(|own| own.unknown > 0) {
        Doubt::Unknown
    } else if open().any(too_few) {
        Doubt::TooFew
    } else {
        Doubt::Close
    };
    // The first objective that fails decides, or the last that passes.
    let fails = (open()).filter_map(|own| needed(own, Side::Fail, of_failures)).min();
    let passes: Option<Vec<u64>> = open().map(|own| needed(own, Side::Pass, level)).collect();
    let total = fails.or_else(|| passes?.into_iter().max());
    Decision::Undecided { why, more: total.map(|total| total.saturating_sub(requests).max(1)) }
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Pass,
    Fail,
}

/// Computes the total number of requests that would decide an objective, if the share of bad ones
/// and the design effect stay. `None` if the share lies on the other side.
fn needed(own: &Stated, side: Side, level: f64) -> Option<u64> {
    let passes = side == Side::Pass;
    let bad = if passes { own.bad } else { own.bad.saturating_sub(own.unknown) };
    let share = bad as f64 / own.requests as f64;
    let decides = |requests: u64| {
        let worth = requests as f64 / own.effect;
        if passes {
            binomial(worth, own.allowed, share * worth) <= level
        } else {
            1.0 - binomial(worth, own.allowed, share * worth - 1.0) <= level
        }
    };
    let possible = if passes { share < own.allowed } else { share > own.allowed };
    if !possible {
        return None;
    }
    let mut high = own.requests.max(1);
    while !decides(high) {
        high *= 2;
        if high > FAR {
            return None;
        }
    }
    let mut low = high / 2;
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if decides(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use simulator::Random;

    fn counted(requests: u64, bad: u64, effect: f64) -> Counted {
        Counted {
            requests,
            bad,
            unknown: 0,
            effect,
            tail_effect: 1.0,
            near_effect: effect,
            batches: 320,
            control: None,
            overloads: false,
        }
    }

    fn limit(text: &str, runs: &[Counted]) -> (Limit, Pooled) {
        let mut pooled = Pooled::default();
        runs.iter().for_each(|run| pooled.add(run));
        (text.parse().unwrap(), pooled)
    }

    fn decide_at(level: f64, runs: &[Counted]) -> Decided {
        decide(&[limit("ttft.p99 < 1s", runs)], None, None, level)
    }

    fn decided(runs: &[Counted]) -> Decision {
        decide_at(0.001, runs).decision
    }

    #[test]
    fn shares_far_from_the_limit_are_decided_and_others_are_not() {
        assert!(decided(&[counted(1000, 0, 1.0)]).is_pass());
        assert!(decided(&[counted(400, 0, 1.0), counted(400, 0, 1.0)]).is_pass());
        assert_eq!(decided(&[counted(1000, 100, 1.0)]), Decision::Fail { why: Failure::Misses(0) });
        // The same counts, worth a twentieth.
        let few = decided(&[counted(1000, 0, 20.0)]);
        let Decision::Undecided { why: Doubt::TooFew, more: Some(more) } = few else {
            panic!("{few:?}");
        };
        assert!(decided(&[counted(1000, 0, 20.0), counted(more, 0, 20.0)]).is_pass());
        assert!(decided(&[counted(1000, 0, 20.0), counted(more * 8 / 10, 0, 20.0)]).is_undecided());
        let close = decided(&[counted(10_000, 90, 1.0)]);
        assert!(
            matches!(close, Decision::Undecided { why: Doubt::Close, more: Some(50_000..) }),
            "{close:?}"
        );
        let exact = decided(&[counted(10_000, 100, 1.0)]);
        assert!(matches!(exact, Decision::Undecided { more: None, .. }), "{exact:?}");
        assert!(matches!(decided(&[]), Decision::Undecided { why: Doubt::NoRun, .. }));
    }

    #[test]
    fn a_tier_holds_where_all_its_objectives_do() {
        let decided = |late: u64, slow: u64| {
            let [late, slow] = [late, slow].map(|bad| [counted(2000, bad, 1.0)]);
            let limits = [limit("ttft.p99 < 1s", &late), limit("tpot.p90 < 1s", &slow)];
            decide(&limits, None, None, 0.001).decision
        };
        assert!(decided(2, 100).is_pass());
        assert!(decided(18, 100).is_undecided());
        assert!(matches!(decided(2, 300), Decision::Fail { why: Failure::Misses(1) }));
        assert!(decided(18, 300).is_fail(), "one is enough");
    }

    #[test]
    fn growth_fails_whatever_the_share_is() {
        let grown = Backlog { second_quarter: 1.0, fourth_quarter: 9.0, chance: 3.0 };
        let limit = limit("ttft.p99 < 1s", &[counted(10_000, 0, 1.0)]);
        let decided = decide(&[limit], Some(grown), None, 0.001);
        assert!(decided.decision.is_fail());
        let json = serde_json::to_string(&decided).unwrap();
        assert_eq!(serde_json::from_str::<Decided>(&json).unwrap(), decided);
    }

    #[test]
    fn the_text_of_a_decision_has_its_figures() {
        let text = |bad, requests| decide_at(0.001, &[counted(requests, bad, 1.0)]).to_string();
        assert_eq!(
            text(100, 1000),
            "failed: ttft.p99 < 1000 ms: 100 of 1000 requests are bad: at least 7.272 %, limit 1 %"
        );
        let passed = "passed: ttft.p99 < 1000 ms: 0 of 1000 requests are bad: at most 0.";
        assert!(text(0, 1000).starts_with(passed));
        let few = text(0, 100);
        assert!(
            few.starts_with("undecided, too few requests: ")
                && few.ends_with(" more requests would decide")
        );
        let (effect, unexplained, share) = (8000.0, 0.01, 0.0438);
        let control = Control { share, unexplained, effect, added: 0.0, uneven: 0.0, slope: 60.0 };
        let run = Counted { control: Some(control), ..counted(2908, 4, 1.0) };
        let text = decide_at(0.001, &[run]).to_string();
        let share =
            "4 of 2908 requests are bad; a long run would have 4.380 % (simulated), limit 1 %";
        assert!(text.contains(share), "{text}");
    }

    #[test]
    fn unknown_metrics_neither_pass_nor_fail() {
        let decision = decided(&[Counted { unknown: 2000, ..counted(2000, 2000, 1.0) }]);
        assert!(
            matches!(decision, Decision::Undecided { why: Doubt::Unknown, .. }),
            "{decision:?}"
        );
    }

    /// The share of wrong decisions on independent requests stays below the level of a look.
    #[test]
    fn wrong_decisions_are_as_rare_as_promised() {
        let (level, runs) = (0.01, 4000);
        let mut random = Random::new(9);
        let mut wrong = [0, 0];
        for (side, share) in [0.0101, 0.0099].into_iter().enumerate() {
            for _ in 0..runs {
                let bad = (0..2000).filter(|_| random.uniform() < share).count() as u64;
                let decision = decide_at(level, &[counted(2000, bad, 1.0)]).decision;
                let is_wrong = if side == 0 { decision.is_pass() } else { decision.is_fail() };
                wrong[side] += u32::from(is_wrong);
            }
        }
        // 1 % of 4000 is 40.
        assert!(wrong.iter().all(|wrong| *wrong <= 55), "{wrong:?}");
    }
}

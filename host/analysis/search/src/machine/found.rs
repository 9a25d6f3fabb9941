//! The findings of a search so far, as an answer.

use super::Search;
use super::bracket::Goal;
use super::interval::Interval;
use crate::answer::{Again, Answer, Ended, Found, Violation};
use crate::decision::{Decision, Doubt, Failure};
use crate::level::Level;

impl Search {
    /// Builds the answer so far.
    pub fn answer(&self) -> Answer {
        let mut levels = self.levels.clone();
        levels.sort_by(|a, b| a.at.total_cmp(&b.at).then(a.confirms.cmp(&b.confirms)));
        let mut tiers = Vec::new();
        for tier in 0..self.config.tiers.len() {
            let interval = self.interval(tier);
            tiers.push(self.found(tier, &interval));
            for level in &mut levels {
                self.mark(level, tier, &interval);
            }
        }
        Answer {
            load: self.config.load,
            tiers,
            levels,
            probes: self.reports.len() as u32,
            requests: self.spent(),
        }
    }

    fn found(&self, tier: usize, interval: &Interval) -> Found {
        let bracket = self.bracket(tier);
        let tried = || self.levels.iter().filter(|level| !level.confirms);
        let passes = tried().filter(|level| level.tiers[tier].decision.is_pass());
        let highest = passes.map(|level| level.at).max_by(f64::total_cmp);
        let mut violations: Vec<Violation> = tried()
            .filter(|level| level.tiers[tier].decision.is_fail())
            .filter_map(|level| {
                let passed = highest.filter(|highest| *highest > level.at)?;
                Some(Violation { failed: level.at, passed })
            })
            .collect();
        violations.sort_unstable_by(|a, b| a.failed.total_cmp(&b.failed));
        let least = bracket.below.into_iter().chain(interval.low).max_by(f64::total_cmp);
        let between = interval.low.zip(interval.high).map(|(low, high)| (low * high).sqrt());
        Found {
            tier: self.config.tiers[tier].clone(),
            passed: interval.low,
            failed: interval.high,
            estimate: interval.guess.or(between).or(least),
            seems_to_hold: bracket.below,
            seems_to_fail: bracket.above,
            curves: interval.curves.clone(),
            more: (interval.more(&self.config))
                .filter(|more| *more > 0 && !interval.is_narrow(&self.config)),
            again: interval.low.filter(|_| self.config.confirm).map(|at| {
                match self.level(at, true).filter(|level| level.requests > 0) {
                    None => Again::NotMade,
                    Some(level) if level.tiers[tier].decision.is_pass() => Again::Shown,
                    Some(level) if level.seems_to_miss(tier) => Again::Doubtful,
                    Some(_) => Again::Agrees,
                }
            }),
            early_stopping: (bracket.below.filter(|_| self.config.early_stopping))
                .and_then(|at| self.level(at, false))
                .map(|level| level.early_stopping(&self.config, tier)),
            undecided: bracket.unknown,
            violations,
            ended: match self.goal(tier) {
                Goal::Done(ended) => ended,
                Goal::Run { at, purpose, requests } => {
                    match self.probe(tier, at, purpose, requests) {
                        Some(_) => Ended::Open,
                        None if self.seconds_left().is_some_and(|left| {
                            (left - self.beyond()) * self.per_s(at).unwrap_or(f64::INFINITY)
                                < self.config.requests_least_at(at) as f64
                        }) =>
                        {
                            Ended::Time
                        }
                        None => Ended::Budget,
                    }
                }
            },
        }
    }

    /// Notes the side of the interval on which a load lies that its own requests do not decide.
    fn mark(&self, level: &mut Level, tier: usize, interval: &Interval) {
        let at = level.at;
        let Some(own) = level.tiers.get_mut(tier) else { return };
        let is_close = matches!(
            own.decision,
            Decision::Undecided { why: Doubt::Close | Doubt::TooFew | Doubt::FewLoads(_), .. }
        );
        if level.confirms {
            // It was to agree, and no number of its requests was to decide.
            if let Decision::Undecided { more, .. } = &mut own.decision {
                *more = None;
            }
        } else if is_close && interval.low.is_some_and(|low| at <= low) {
            own.decision = Decision::Below;
        } else if is_close && interval.high.is_some_and(|high| at >= high) {
            own.decision = Decision::Fail { why: Failure::Above };
        } else if is_close && interval.low.is_some() && interval.high.is_some() {
            own.decision = Decision::Undecided { why: Doubt::Within, more: None };
        }
    }
}

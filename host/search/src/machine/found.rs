//! What a search has found so far, as an answer.

use super::Search;
use super::bracket::{Bracket, Goal};
use crate::answer::{Answer, Ended, Found, Violation, crossing};
use crate::decision::{Decision, Failure};
use crate::level::{Level, Standing};

impl Search {
    /// What is known so far, as an answer.
    pub fn answer(&self) -> Answer {
        let mut levels = self.levels.clone();
        levels.sort_by(|a, b| a.at.total_cmp(&b.at).then(a.confirms.cmp(&b.confirms)));
        let found = |tier: usize| self.found(tier);
        let mut answer = Answer {
            load: self.config.load,
            tiers: (0..self.config.tiers.len()).map(found).collect(),
            levels,
            probes: self.reports.len() as u32,
            requests: self.spent(),
        };
        self.mark_contradictions(&mut answer.levels);
        answer
    }

    fn found(&self, tier: usize) -> Found {
        let Bracket {
            passed,
            failed,
            undecided,
            ..
        } = self.bracket(tier);
        let limits = self.config.tiers[tier].limits.iter().enumerate();
        let crossings = limits.filter_map(|(place, limit)| {
            let seen = self
                .levels
                .iter()
                .filter_map(|level| level.seen(tier, place));
            crossing(&seen.collect::<Vec<_>>(), limit.allowed())
        });
        let ends = passed.zip(failed);
        let estimate = ends.and_then(|(passed, failed)| {
            let first = crossings.min_by(f64::total_cmp)?;
            Some(first.clamp(passed, failed))
        });
        let again = passed.and_then(|at| self.place(at, true));
        let standings = self.standings(tier);
        let highest = (standings.iter())
            .filter(|(_, standing)| *standing == Standing::Pass)
            .map(|(at, _)| *at)
            .max_by(f64::total_cmp);
        let mut violations: Vec<Violation> = (standings.iter())
            .filter(|(_, standing)| *standing == Standing::Fail)
            .filter_map(|(at, _)| {
                let passed = highest.filter(|highest| highest > at)?;
                Some(Violation {
                    failed: *at,
                    passed,
                })
            })
            .collect();
        violations.sort_unstable_by(|a, b| a.failed.total_cmp(&b.failed));
        Found {
            tier: self.config.tiers[tier].clone(),
            passed,
            failed,
            estimate,
            confirmed: (self.config.confirm && passed.is_some()).then(|| {
                again.is_some_and(|place| self.levels[place].standing(tier) == Standing::Pass)
            }),
            undecided,
            violations,
            ended: match self.goal(tier) {
                Goal::Done(ended) => ended,
                Goal::Run { .. } => Ended::Budget,
            },
        }
    }

    /// Says of each load that passed and was not confirmed that it failed.
    fn mark_contradictions(&self, levels: &mut [Level]) {
        for level in levels.iter_mut().filter(|level| !level.confirms) {
            let Some(place) = self.place(level.at, true) else {
                continue;
            };
            for (tier, own) in level.tiers.iter_mut().enumerate() {
                if own.decision.is_pass() && self.levels[place].standing(tier) == Standing::Fail {
                    let why = Failure::Contradicted;
                    own.decision = Decision::Fail { why };
                }
            }
        }
    }
}

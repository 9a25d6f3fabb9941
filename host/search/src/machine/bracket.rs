//! Where a tier's answer lies, and which load narrows it down.

use std::cmp::Ordering;

use super::{Purpose, Search};
use crate::answer::Ended;
use crate::config::Config;
use crate::level::{Level, Standing};

/// What a tier needs next.
pub(super) enum Goal {
    /// A further run at a load.
    Run { at: f64, purpose: Purpose },
    /// Nothing.
    Done(Ended),
}

/// Where the answer for a tier lies, as far as it is known.
pub(super) struct Bracket {
    /// The highest load that passed below every one that failed.
    pub passed: Option<f64>,
    /// The lowest load that failed.
    pub failed: Option<f64>,
    /// Loads between the two at which no further run is made.
    pub undecided: Vec<f64>,
    /// Loads between the two at which a further run may decide.
    pub open: Vec<f64>,
}

impl Search {
    /// How a tier stands at each load, where what confirms overrules what it was to confirm.
    pub(super) fn standings(&self, tier: usize) -> Vec<(f64, Standing)> {
        let tried = self.levels.iter().filter(|level| !level.confirms);
        tried
            .map(|level| {
                let standing = level.standing(tier);
                let again = self
                    .place(level.at, true)
                    .map(|place| self.levels[place].standing(tier));
                match (standing, again) {
                    (Standing::Pass, Some(Standing::Fail)) => (level.at, Standing::Fail),
                    _ => (level.at, standing),
                }
            })
            .collect()
    }

    /// The highest load that passed below every one that failed, the lowest that failed, and those between them that
    /// cannot be decided.
    pub(super) fn bracket(&self, tier: usize) -> Bracket {
        let standings = self.standings(tier);
        let of = |wanted: Standing| {
            let own = standings
                .iter()
                .filter(move |(_, standing)| *standing == wanted);
            own.map(|(at, _)| *at)
        };
        let failed = of(Standing::Fail).min_by(f64::total_cmp);
        let below = |at: &f64| failed.is_none_or(|failed| *at < failed);
        let passed = of(Standing::Pass).filter(below).max_by(f64::total_cmp);
        let above = |at: &f64| passed.is_none_or(|passed| *at > passed);
        let within = |wanted: Standing| {
            let mut own: Vec<f64> = of(wanted).filter(below).filter(above).collect();
            own.sort_unstable_by(f64::total_cmp);
            own
        };
        Bracket {
            passed,
            failed,
            undecided: within(Standing::Undecided),
            open: within(Standing::Open),
        }
    }

    pub(super) fn goal(&self, tier: usize) -> Goal {
        let bracket = self.bracket(tier);
        let Bracket {
            passed,
            failed,
            undecided,
            open,
        } = &bracket;
        let lower = (*passed, undecided.first().copied().or(*failed));
        let upper = (undecided.last().copied().or(*passed), *failed);
        // First a load that passes, then one that fails, then what lies between.
        let gaps = match failed {
            None if passed.is_some() => [upper, lower],
            _ => [lower, upper],
        };
        for gap in gaps {
            let is_end = match gap {
                (_, None) => self.is_given_up(|a, b| b.total_cmp(a)),
                (None, Some(_)) => self.is_given_up(|a, b| a.total_cmp(b)),
                (Some(_), Some(_)) => false,
            };
            if is_end {
                continue;
            }
            if let Some(at) = self.within(gap, open) {
                let purpose = match (passed, failed) {
                    (Some(_), Some(_)) => Purpose::Bisect,
                    _ => Purpose::Bracket,
                };
                return Goal::Run { at, purpose };
            }
        }
        if let (true, Some(at)) = (self.config.confirm, *passed) {
            let again = self
                .place(at, true)
                .map(|place| self.levels[place].standing(tier));
            if matches!(again, None | Some(Standing::Open)) {
                let purpose = Purpose::Confirm;
                return Goal::Run { at, purpose };
            }
        }
        Goal::Done(match (passed, failed) {
            _ if !undecided.is_empty() => Ended::Undecided,
            (Some(_), Some(_)) => Ended::Narrow,
            (_, None) => Ended::Highest,
            (None, Some(_)) => Ended::Lowest,
        })
    }

    /// Whether the first two loads in an order could not be run, as the two highest where this client is too slow for
    /// them: then no load beyond them can be.
    fn is_given_up(&self, order: fn(&f64, &f64) -> Ordering) -> bool {
        let mut tried: Vec<&Level> = self.levels.iter().filter(|own| !own.confirms).collect();
        tried.sort_unstable_by(|a, b| order(&a.at, &b.at));
        tried.len() >= 2 && tried[..2].iter().all(|own| own.is_given_up())
    }

    /// The load to try between two, of which either may be missing: one that is under way already, or a new one. `None`
    /// if they are close enough, or there is none that may be tried.
    fn within(&self, (low, high): (Option<f64>, Option<f64>), open: &[f64]) -> Option<f64> {
        let Config {
            least,
            most,
            factor,
            ..
        } = self.config;
        let wanted = match (low, high) {
            (None, None) => self.config.start,
            (None, Some(high)) => self.round((high / factor).max(least), (0.0, high)),
            (Some(low), None) => self.round((low * factor).min(most), (low, f64::INFINITY)),
            (Some(low), Some(high)) => {
                let is_narrow = high / low <= 1.0 + self.config.width
                    || self.config.load.is_whole() && high - low <= 1.0;
                if is_narrow {
                    return None;
                }
                self.round((low * high).sqrt(), (low, high))
            }
        };
        let inside =
            |at: &f64| low.is_none_or(|low| *at > low) && high.is_none_or(|high| *at < high);
        let under_way = open.iter().copied().filter(inside);
        let nearest =
            under_way.min_by(|a, b| (a / wanted).ln().abs().total_cmp(&(b / wanted).ln().abs()));
        let may = |at: &f64| inside(at) && (least..=most).contains(at);
        nearest.or(Some(wanted).filter(may))
    }

    /// A load in few digits, and still between two others.
    fn round(&self, at: f64, (low, high): (f64, f64)) -> f64 {
        if self.config.load.is_whole() {
            // Towards the middle, also where the two are two apart.
            return at
                .round()
                .clamp(low.floor() + 1.0, (high.ceil() - 1.0).max(1.0));
        }
        let digits = 2 + (-self.config.width.log10()).ceil().max(0.0) as usize;
        let text = format!("{at:.*e}", digits.saturating_sub(1));
        let rounded = text.parse().unwrap_or(at);
        match low < rounded
            && rounded < high
            && (self.config.least..=self.config.most).contains(&rounded)
        {
            true => rounded,
            false => at,
        }
    }
}

//! The place of a tier's answer, and the load that narrows it down.

use std::cmp::Ordering;

use super::interval::Interval;
use super::{Search, nearest};
use crate::answer::Ended;
use crate::config::Config;
use crate::decision::Decision;
use crate::level::{Level, Side, first_requests, glance_requests};
use crate::probe::Purpose;
use statistics::crossing::{NEAR, STEADY};

/// The most by which two loads on either side of the crossing may differ, as a factor, before
/// others are placed about the crossing.
const COARSE: f64 = 1.3;
/// The distance of loads from the crossing, as a change of the logarithm of the odds of a miss, and
/// at most as a change of the logarithm of the load. Requests further out say less of the crossing;
/// requests closer in say less of the slope, without which the crossing has no bounds.
const AWAY: (f64, f64) = (1.0, 0.06);
/// The part of this distance where controls help: they show the share of misses well, so the slope
/// matters less.
const CONTROLLED: f64 = 0.6;
/// The part of this distance for loads above the crossing where controls help.
const NEARER: f64 = 0.5;
/// The parts of the requests about the crossing that go below it, to it and above it. Requests
/// below are worth less, because fewer miss; requests at it show whether the curve is bent.
const PARTS: [f64; 3] = [0.4, 0.3, 0.3];
/// Requests of a run that is placed so, at most, before the whole search has taken more by far.
const SHORT: u64 = 4000;
/// The part of the search's requests so far that a run may add beyond that.
const GROWTH: f64 = 0.3;
/// Requests of a run that is as long as the load's own pace asks for, at most.
const PACED: f64 = 12_000.0;

/// The next thing that a tier needs.
pub(super) enum Goal {
    /// A run at a load, with this number of requests if it is known.
    Run { at: f64, purpose: Purpose, requests: Option<u64> },
    /// Nothing.
    Done(Ended),
}

/// The loads between which the answer for a tier seems to lie.
pub(super) struct Bracket {
    /// The highest load that seems to lie below it, among loads below every one that seems to lie
    /// above it.
    pub below: Option<f64>,
    /// The lowest load that seems to lie above it.
    pub above: Option<f64>,
    /// Loads between the two that could not be run.
    pub unknown: Vec<f64>,
    /// Loads between the two at which a further run says more.
    pub open: Vec<f64>,
}

impl Search {
    /// On which side of the answer each load seems to lie.
    pub(super) fn bracket(&self, tier: usize) -> Bracket {
        let seen: Vec<(&Level, Side)> = (self.levels.iter())
            .filter(|level| !level.confirms)
            .map(|level| (level, level.side(&self.config, tier)))
            .collect();
        // A load that seems to lie above by the share of a few requests alone does not, where a
        // higher one seems to lie below by more.
        let is_refuted = |own: &Level| {
            own.tiers[tier].decision.is_undecided()
                && (seen.iter()).any(|(other, side)| {
                    *side == Side::Below && other.at > own.at && other.loads > 2.0 * own.loads
                })
        };
        let sides: Vec<(f64, Side)> = (seen.iter())
            .filter(|(level, side)| *side != Side::Above || !is_refuted(level))
            .map(|(level, side)| (level.at, *side))
            .collect();
        let on = |wanted: Side| {
            let own = sides.iter().filter(move |(_, side)| *side == wanted);
            own.map(|(at, _)| *at)
        };
        let above = on(Side::Above).min_by(f64::total_cmp);
        let is_lower = |at: &f64| above.is_none_or(|above| *at < above);
        let below = on(Side::Below).filter(is_lower).max_by(f64::total_cmp);
        let is_higher = |at: &f64| below.is_none_or(|below| *at > below);
        let within = |wanted: Side| {
            let mut own: Vec<f64> = on(wanted).filter(is_lower).filter(is_higher).collect();
            own.sort_unstable_by(f64::total_cmp);
            own
        };
        Bracket { below, above, unknown: within(Side::Unknown), open: within(Side::Open) }
    }

    pub(super) fn goal(&self, tier: usize) -> Goal {
        let interval = self.interval(tier);
        if interval.is_narrow(&self.config) {
            return self.confirming(&interval).unwrap_or(Goal::Done(Ended::Narrow));
        }
        let bracket = self.bracket(tier);
        let Bracket { below, above, unknown, open } = &bracket;
        let lower = (*below, unknown.first().copied().or(*above));
        let upper = (unknown.last().copied().or(*below), *above);
        // First a load below, then one above, then one between.
        let gaps = match above {
            None if below.is_some() => [upper, lower],
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
            let coarse = if unknown.is_empty() { COARSE } else { 1.0 + self.config.width };
            if let Some(at) = self.within(gap, open, coarse) {
                let is_first = self.place(at, false).is_none();
                let is_glance = is_first && (gap.0.is_none() || gap.1.is_none());
                let requests = is_glance.then(|| self.glance(at));
                return Goal::Run { at, purpose: Purpose::Bracket, requests };
            }
        }
        let (run, end) = match (*below, *above) {
            (Some(below), Some(above)) if unknown.is_empty() => {
                let ends = [below, above];
                let run = self.ends(ends, &interval).or_else(|| self.narrowing(ends, &interval));
                (run, Ended::Undecided)
            }
            _ if !unknown.is_empty() => (self.deciding(tier, *below), Ended::Undecided),
            (_, None) => (self.deciding(tier, *below), Ended::Highest),
            _ => (self.deciding(tier, *below), Ended::Lowest),
        };
        run.or_else(|| self.confirming(&interval)).unwrap_or(Goal::Done(end))
    }

    /// Requests of a run that looks for the side on which a load lies.
    pub(super) fn glance(&self, at: f64) -> u64 {
        let usual = glance_requests(&self.config, at);
        let due = (at * self.config.glance_seconds()) as u64;
        usual.max(self.filling(at).min(due))
    }

    /// A further run at the load below, where a glance alone says so. Then a run that is to show a
    /// load that does not hold: at the load above, and then far above it.
    fn ends(&self, [below, above]: [f64; 2], interval: &Interval) -> Option<Goal> {
        let Config { most, factor, .. } = self.config;
        let is_glance = |at: f64| {
            self.level(at, false).is_none_or(|own| {
                !own.closed && !own.grew() && own.requests < first_requests(&self.config, at, 1.0)
            })
        };
        let far = self.round((above * factor).min(most), (above, f64::INFINITY));
        let unsure = [above, far].into_iter().filter(|at| interval.high.is_none() && *at <= most);
        // A search that may end at any time has a lower end early.
        let is_limited = self.config.requests_in_all.is_some() || self.seconds_left().is_some();
        let is_unsure = is_limited && interval.low.is_none();
        let tried = self.levels.iter().filter(|own| !own.confirms && own.at < below);
        let mut lower: Vec<f64> = tried.filter(|_| is_unsure).map(|own| own.at).collect();
        lower.sort_unstable_by(|a, b| b.total_cmp(a));
        let mut candidates = [below].into_iter().chain(unsure).chain(lower);
        let at = candidates.find(|at| is_glance(*at))?;
        let known = self.level(at, false).map_or(0, |level| level.requests);
        Some(Goal::Run {
            at,
            purpose: Purpose::Bracket,
            requests: Some(first_requests(&self.config, at, 1.0) - known),
        })
    }

    /// A further run at a load that is to pass by its own requests, because no load is above it.
    fn deciding(&self, tier: usize, at: Option<f64>) -> Option<Goal> {
        let at = at?;
        let level = self.level(at, false)?;
        let is_open =
            matches!(level.tiers[tier].decision, Decision::Undecided { more: Some(_), .. });
        (is_open && !level.closed).then_some(Goal::Run {
            at,
            purpose: Purpose::Bracket,
            requests: None,
        })
    }

    /// A run of its own at the lower end of the interval, if there is to be one and it was not
    /// made.
    fn confirming(&self, interval: &Interval) -> Option<Goal> {
        let at = interval.low.filter(|_| self.config.confirm)?;
        let is_made = self.level(at, true).is_some_and(|level| level.requests > 0 || level.closed);
        let quarter = self.spent() / 4;
        let effect = interval.effect_near(at);
        let requests = first_requests(&self.config, at, effect);
        (!is_made).then_some(Goal::Run {
            at,
            purpose: Purpose::Confirm,
            requests: Some(requests.min(quarter.max(first_requests(&self.config, at, 1.0)))),
        })
    }

    /// The next run about the crossing. `None` if there is no load left to try.
    fn narrowing(&self, [below, above]: [f64; 2], interval: &Interval) -> Option<Goal> {
        let width = self.config.width.ln_1p();
        // Where others have controls, a further run at an overloaded load without one says nothing.
        let says_more = |at: &f64| {
            let is_mute = |own: &Level| own.is_overloaded() && own.unexplained().is_none();
            self.unexplained() == 1.0 || !self.level(*at, false).is_some_and(is_mute)
        };
        let guess = interval.guess.filter(|at| says_more(&self.round(*at, (below, f64::INFINITY))));
        let middle = guess.unwrap_or((below * above).sqrt());
        let (odds, most) = AWAY;
        let away = match interval.slope {
            Some(slope) => {
                let part = if self.unexplained() < 1.0 { CONTROLLED } else { 1.0 };
                let (odds, most) = (part * odds, (part * most).max(0.5 * width));
                (odds / slope).clamp((0.4 * width).min(most), most)
            }
            None => 0.45 * width,
        };
        // The variance that a control leaves grows steeply above the crossing.
        let up = if self.unexplained() < 1.0 { NEARER } else { 1.0 };
        // Requests below the crossing, at it and above it, and the part of them that each is to
        // have.
        let mut sent = [0.0; 3];
        for own in &self.levels {
            let place = match (own.at / middle).ln() / away {
                place if (place * away).abs() > NEAR => continue,
                place if place < -0.5 => 0,
                place if place <= 0.5 * up => 1,
                _ => 2,
            };
            sent[place] += own.requests as f64 / PARTS[place];
        }
        let place = |place: usize| {
            let mut at = middle * (away * [-1.0, 0.0, up][place]).exp();
            if place == 2 {
                at = at.min((middle * interval.overload.unwrap_or(f64::INFINITY)).sqrt());
            }
            self.free_near(at.clamp(self.config.least, self.config.most), [below, above])
        };
        let mut places = [0, 1, 2];
        places.sort_by(|a, b| sent[*a].total_cmp(&sent[*b]));
        let loads: Vec<f64> = places.into_iter().filter_map(place).collect();
        let at = *loads.iter().find(|at| says_more(at)).or(loads.first())?;
        Some(Goal::Run {
            at,
            purpose: Purpose::Narrow,
            requests: Some(self.narrowing_requests(at, middle, interval)),
        })
    }

    /// A load in few digits at which another run may be made: the wanted one, or one beside it.
    fn free_near(&self, at: f64, [below, above]: [f64; 2]) -> Option<f64> {
        let may = |at: &f64| self.level(*at, false).is_none_or(|level| !level.closed);
        if self.config.load.is_whole() {
            let at = at.round();
            let beside = [at, at + 1.0, at - 1.0, below, above];
            let bounds = self.config.least..=self.config.most;
            beside.into_iter().filter(|at| bounds.contains(at)).find(may)
        } else {
            let rounded = self.round(at, (at / (1.0 + self.config.width), f64::INFINITY));
            [rounded, at].into_iter().find(may)
        }
    }

    /// Requests of the next run about the crossing: half of the interval's apparent need, as far as
    /// this few can tell it.
    fn narrowing_requests(&self, at: f64, middle: f64, interval: &Interval) -> u64 {
        let spent = self.requests_near(middle);
        let first = first_requests(&self.config, at, 1.0);
        let last = self.reports.last().map_or(0, |report| report.probe.requests);
        // A control shows the side of a load in a short run, and no run shows more without a curve.
        let is_placing = interval.slope.is_none() && self.unexplained() < 1.0;
        let growth = if is_placing { 0.0 } else { GROWTH };
        let most = ((2 * last).min(SHORT)).max((growth * spent as f64) as u64).max(first);
        let wanted = match interval.more(&self.config) {
            // The last run is to be the last.
            Some(more) if more <= most => more + more / 10,
            Some(more) => (more / 2).min(most),
            None => most,
        };
        let paced = (1.5 * STEADY * self.pace_near(at)).min(PACED) as u64;
        wanted.max(first).max(paced)
    }

    /// Requests for each independent load, at the nearest load where that is known; fewer where
    /// controls explain the misses.
    fn pace_near(&self, at: f64) -> f64 {
        let known = self.levels.iter().filter(|own| own.pace().is_some());
        nearest(known, at, |own| own.at)
            .and_then(|own| Some(own.pace()?.min(own.requests as f64 / 4.0)))
            .map_or(1.0, |pace| pace * self.unexplained())
    }

    /// The part of the misses' variance that controls leave; all where there are none.
    pub(super) fn unexplained(&self) -> f64 {
        self.levels.iter().filter_map(Level::unexplained).fold(1.0, f64::min)
    }

    /// Requests at loads near one, except loads whose backlog grew.
    pub(super) fn requests_near(&self, at: f64) -> u64 {
        let near = (self.levels.iter()).filter(|own| (own.at / at).ln().abs() <= NEAR);
        near.filter(|own| !own.grew()).map(|own| own.requests).sum()
    }

    /// True if the first two loads in an order could not be run, such as the two highest where this
    /// client is too slow for them. Then no load beyond them can be run.
    fn is_given_up(&self, order: fn(&f64, &f64) -> Ordering) -> bool {
        let mut tried: Vec<&Level> = self.levels.iter().filter(|own| !own.confirms).collect();
        tried.sort_unstable_by(|a, b| order(&a.at, &b.at));
        tried.len() >= 2 && tried[..2].iter().all(|own| own.is_given_up())
    }

    /// The load to try between two loads (either may be missing): one already under way, or a new
    /// one. `None` if they are close enough, or there is none that may be tried.
    fn within(
        &self,
        (low, high): (Option<f64>, Option<f64>),
        open: &[f64],
        coarse: f64,
    ) -> Option<f64> {
        let Config { least, most, factor, .. } = self.config;
        let inside =
            |at: &f64| low.is_none_or(|low| *at > low) && high.is_none_or(|high| *at < high);
        let wanted = match (low, high) {
            (None, None) => self.config.start,
            (None, Some(high)) => self.round((high / factor).max(least), (0.0, high)),
            (Some(low), None) => self.round((low * factor).min(most), (low, f64::INFINITY)),
            (Some(low), Some(high)) => {
                let is_close =
                    high / low <= coarse || self.config.load.is_whole() && high - low <= 1.0;
                if is_close {
                    return open.iter().copied().find(inside);
                }
                self.round((low * high).sqrt(), (low, high))
            }
        };
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
            return at.round().clamp(low.floor() + 1.0, (high.ceil() - 1.0).max(1.0));
        }
        let digits = 2 + (-self.config.width.log10()).ceil().max(0.0) as usize;
        let text = format!("{at:.*e}", digits.saturating_sub(1));
        let rounded = text.parse().unwrap_or(at);
        if low < rounded
            && rounded < high
            && (self.config.least..=self.config.most).contains(&rounded)
        {
            rounded
        } else {
            at
        }
    }
}

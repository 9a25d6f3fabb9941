//! The interval of a tier: which loads all runs together leave as the highest that holds.

use super::bracket::Bracket;
use super::{Search, nearest};
use crate::config::{Config, Load};
use crate::decide::{Pooled, decide};
use crate::decision::{Decision, Failure, Stated};
use crate::level::Level;
use statistics::crossing::{Curve, NEAR, Point, controlled, crossing, effects, fit};

/// Digits in which the ends of an interval are given, rounded outwards.
const DIGITS: i32 = 4;
/// Shares of bad requests from which on a load is far above the crossing: this multiple of the
/// allowed share, or half.
const FAR: (f64, f64) = (4.0, 0.5);

/// Independent requests of an overloaded load without a control, among loads that have one. Half of
/// them are bad.
const OVERLOADED: f64 = 4.0;

/// The interval in which the highest load of a tier lies.
pub(super) struct Interval {
    /// The highest load that was shown to hold.
    pub low: Option<f64>,
    /// The lowest load that was shown not to.
    pub high: Option<f64>,
    /// The load at which the share of bad requests seems to be the allowed one.
    pub guess: Option<f64>,
    /// The slope of the objective that decides there.
    pub slope: Option<f64>,
    /// The lowest load above the guess that is overloaded.
    pub overload: Option<f64>,
    /// The regression of each objective.
    pub curves: Vec<Option<Curve>>,
    /// Requests that it follows from.
    requests: u64,
    /// The results for the objective that decides.
    points: Vec<Point>,
    /// The share that it allows.
    allowed: f64,
}

impl Interval {
    /// True if it is as narrow as the configured width.
    pub(super) fn is_narrow(&self, config: &Config) -> bool {
        let (Some(low), Some(high)) = (self.low, self.high) else { return false };
        high / low <= 1.0 + config.width || config.load.is_whole() && high - low <= 1.0
    }

    /// Estimates the number of further requests that would make it so, by the runs so far; absent
    /// if nothing says. The width falls with the root of the requests.
    pub(super) fn more(&self, config: &Config) -> Option<u64> {
        let width = (self.high? / self.low?).ln();
        let wanted = if config.load.is_whole() {
            (1.0 / self.low?).max(config.width).ln_1p()
        } else {
            config.width.ln_1p()
        };
        let more = self.requests as f64 * ((width / wanted).powi(2) - 1.0);
        (self.requests > 0).then_some((more.max(0.0)).ceil() as u64)
    }

    /// Returns the number of requests that one independent one takes at the nearest load.
    pub(super) fn effect_near(&self, at: f64) -> f64 {
        let all = self.points.iter().zip(effects(&self.points, self.allowed));
        nearest(all, at, |(own, _)| own.at).map_or(1.0, |(_, effect)| effect)
    }
}

impl Search {
    pub(super) fn interval(&self, tier: usize) -> Interval {
        let config = &self.config;
        let limits = &config.tiers[tier].limits;
        let failed_alone = |level: &&Level| level.tiers[tier].decision.is_fail();
        let lowest = |at: &mut dyn Iterator<Item = f64>| at.min_by(f64::total_cmp);
        let failed = lowest(&mut self.levels.iter().filter(failed_alone).map(|own| own.at));
        let is_lower = |at: f64| failed.is_none_or(|failed| at < failed);
        let half = config.alpha / 2.0;
        let seen = self.bracket(tier);
        let (mut low, mut high) = (Some(f64::INFINITY), None::<f64>);
        let (mut guess, mut slope, mut points, mut requests) = (None::<f64>, None, Vec::new(), 0);
        let mut allowed = 0.5;
        let mut curves = Vec::new();
        for (place, limit) in limits.iter().enumerate() {
            // A run that confirms is one of its own, unless it showed the opposite.
            let counts = |level: &&Level| !level.confirms || level.tiers[tier].decision.is_fail();
            let own: Vec<Point> = (self.levels.iter().filter(counts))
                .filter_map(|level| level.point(config, tier, place))
                .collect();
            let outside = [half, half / limits.len() as f64];
            let fitted = |points: Vec<Point>| {
                let crossed = crossing(&points, limit.allowed());
                let curve = crossed.and_then(|guess| fit(&points, guess, limit.allowed(), outside));
                (points, crossed, curve)
            };
            let overloaded = self.levels.iter().filter(counts).filter(|own| own.is_overloaded());
            let overloaded = overloaded
                .filter_map(|level| level.point(config, tier, place))
                .filter(|own| own.control.is_none() && own.bad > limit.allowed() * own.requests)
                .map(|own| Point { bad: own.requests / 2.0, loads: OVERLOADED, ..own });
            let with = controlled(&own).and_then(|with| {
                let (_, crossed, curve) = fitted(with.iter().copied().chain(overloaded).collect());
                // Loads without a control take part where the others lie on one side, or show no
                // curve from a minority of the requests.
                let near = |own: &&Point| (own.at / crossed.unwrap_or(own.at)).ln().abs() <= NEAR;
                let requests =
                    |of: &[Point]| -> f64 { of.iter().filter(near).map(|own| own.requests).sum() };
                let is_most = curve.is_some() || 2.0 * requests(&with) >= requests(&own);
                crossed.filter(|_| is_most).map(|_| (with, crossed, curve))
            });
            let plain = |mut own: Vec<Point>| {
                own.iter_mut().for_each(|point| point.control = None);
                let (own, _, curve) = fitted(own);
                let seen = self.levels.iter().filter(counts);
                let seen: Vec<Point> =
                    seen.filter_map(|level| level.seen(config, tier, place)).collect();
                (own, crossing(&seen, limit.allowed()), curve)
            };
            let (own, crossed, curve) = with.unwrap_or_else(|| plain(own));
            let shown = (self.levels.iter())
                .filter(|level| level.shows(config, tier, place) && is_lower(level.at))
                .map(|level| level.at)
                .chain(self.holds_together(tier, place, &seen))
                .max_by(f64::total_cmp);
            let lower = curve.and_then(|curve| curve.low).or(shown);
            low = low.zip(lower).map(|(a, b)| a.min(b));
            let together = || self.fails_together(tier, place, &seen);
            if let Some(end) = curve.and_then(|curve| curve.high).or_else(together) {
                high = Some(high.map_or(end, |high| high.min(end)));
            }
            let own_guess = curve.map(|curve| curve.estimate).or(crossed);
            if let Some(own_guess) = own_guess.filter(|own| guess.is_none_or(|guess| *own < guess))
            {
                guess = Some(own_guess);
                slope = curve.map(|curve| curve.slope);
                requests = curve.map_or(0, |curve| curve.requests);
            }
            if own_guess.is_some() && own_guess == guess || points.is_empty() {
                points = own;
                allowed = limit.allowed();
            }
            curves.push(curve);
        }
        // A load whose backlog grew fails whatever the shares are; a load that failed by its shares
        // does where no curve says more of it.
        let is_bound = |level: &&Level| match &level.tiers[tier].decision {
            Decision::Fail { why: Failure::Misses(place) } => curves[*place].is_none_or(|curve| {
                curve.high.is_none() || (level.at / curve.estimate).ln().abs() > NEAR
            }),
            decision => decision.is_fail(),
        };
        let bound = lowest(&mut self.levels.iter().filter(is_bound).map(|own| own.at));
        high = high.into_iter().chain(bound).min_by(f64::total_cmp);
        if let (Some(lower), Some(upper)) = (low, high)
            && lower >= upper
        {
            let passed = (self.levels.iter())
                .filter(|own| own.tiers[tier].decision.is_pass() && own.at < upper);
            low = passed.map(|own| own.at).max_by(f64::total_cmp);
        }
        let low = low.filter(|low| low.is_finite());
        let (low, high) = self.outwards(low, high);
        let guess = guess.or_else(|| Some((seen.below? * seen.above?).sqrt())).map(|guess| {
            guess.clamp(low.unwrap_or(0.0), high.unwrap_or(f64::INFINITY).max(low.unwrap_or(0.0)))
        });
        // A control says nothing of a load that its simulation does not answer.
        let helps = self.unexplained() < 1.0;
        let overload = guess.and_then(|guess| {
            let is_far = |level: &&Level| {
                let shares = |own: &Stated| {
                    let most = (FAR.0 * own.allowed).min(FAR.1);
                    (helps || own.low > own.allowed) && own.bad as f64 > most * own.requests as f64
                };
                level.is_overloaded() || level.tiers[tier].limits.iter().any(shares)
            };
            let beyond = (self.levels.iter()).filter(|own| own.at > guess);
            lowest(&mut beyond.filter(is_far).map(|own| own.at))
        });
        if requests == 0 {
            requests = guess.map_or(0, |guess| self.requests_near(guess));
        }
        Interval { low, high, guess, slope, overload, curves, requests, points, allowed }
    }

    /// The highest load that holds by its requests and the requests of higher loads that seem to
    /// hold: where it did not hold, neither would these.
    fn holds_together(&self, tier: usize, place: usize, seen: &Bracket) -> Option<f64> {
        let mut own: Vec<&Level> = self.levels.iter().filter(|own| !own.grew()).collect();
        own.retain(|level| seen.below.is_some_and(|below| level.at <= below));
        own.sort_by(|a, b| b.at.total_cmp(&a.at));
        let level = self.config.alpha_each();
        self.together(&own, tier, place, level, |own| own.is_pass())
    }

    /// The lowest load that does not hold by its requests and the requests of lower loads that seem
    /// not to hold.
    fn fails_together(&self, tier: usize, place: usize, seen: &Bracket) -> Option<f64> {
        let mut own: Vec<&Level> = self.levels.iter().collect();
        own.retain(|level| seen.above.is_some_and(|above| level.at >= above));
        own.sort_by(|a, b| a.at.total_cmp(&b.at));
        let level = self.config.alpha_each() / self.config.tiers[tier].limits.len() as f64;
        self.together(&own, tier, place, level, |own| own.is_fail())
    }

    /// The first of these loads up to which their runs together decide so.
    fn together(
        &self,
        levels: &[&Level],
        tier: usize,
        place: usize,
        alpha: f64,
        is_so: impl Fn(&Decision) -> bool,
    ) -> Option<f64> {
        let limit = &self.config.tiers[tier].limits[place];
        let (mut all, mut loads) = (Pooled::default(), 0.0);
        let found = levels.iter().find(|level| {
            if let Some(own) = level.pooled(tier, place) {
                all.join(own);
                loads += level.loads;
            }
            let loads = (self.config.load == Load::Rate).then_some(loads);
            is_so(&decide(&[(limit.clone(), all)], None, loads, alpha).decision)
        });
        found.map(|level| level.at)
    }

    /// The ends in few digits, rounded outwards; whole numbers where only these make sense.
    fn outwards(&self, low: Option<f64>, high: Option<f64>) -> (Option<f64>, Option<f64>) {
        let unit = |at: f64| {
            if self.config.load.is_whole() {
                1.0
            } else {
                10_f64.powi(at.log10().floor() as i32 + 1 - DIGITS)
            }
        };
        // A load that was tried keeps all its digits.
        let tried = |at: &f64| self.place(*at, false).is_some();
        let down =
            |at: f64| if tried(&at) { at } else { decimal((at / unit(at)).floor(), unit(at)) };
        let up = |at: f64| if tried(&at) { at } else { decimal((at / unit(at)).ceil(), unit(at)) };
        let low = low.map(down).filter(|low| *low > 0.0);
        let high = high.map(up);
        match (low, high) {
            (Some(low), Some(high)) if low >= high => (Some(low), Some(low + unit(low))),
            ends => ends,
        }
    }
}

/// A whole number of units of ten, a hundred or a tenth, as it is written in decimals.
fn decimal(units: f64, unit: f64) -> f64 {
    if unit < 1.0 { units / (1.0 / unit).round() } else { units * unit }
}

//! The load at which the share of requests that miss an objective crosses the allowed one: a
//! regression over all loads, with an interval.
//!
//! The logarithm of the odds of a miss is modelled as a straight line over the logarithm of the
//! load, or as a line that is bent upwards: its slope grows by a constant factor with each step.
//! Well below its capacity, an engine's misses follow from the lengths of answers; close to it,
//! from its queue. A straight line through loads on both sides of such a bend crosses too early by
//! several percent. Bends are few and fixed, and the larger ones are less likely before anything is
//! seen. It is a quasi-binomial regression: the counts of a run weigh as much as the independent
//! requests that its design effect leaves. The scatter beyond that (lack of fit included) widens
//! the interval (McCullagh and Nelder 1989, "Generalized Linear Models", sections 4.5 and 9.2). The
//! degrees of freedom of Student's quantile come from the scatter between runs and from the design
//! effects, which grow with the independent loads that the runs hold. Where the misses have a
//! [`Control`], its share and its part of the design effect take their place. The control's slope
//! is information beside the misses, because short runs close to the crossing hardly show a slope.
//!
//! The interval has every load that a likelihood ratio test does not rule out as the crossing, with
//! Student's quantile in place of the normal one because the scatter is estimated. So it is not
//! symmetric, and it stays right where no request missed below and many did above, where a slope
//! has no finite estimate.
//!
//! **Only loads close to the crossing take part**, because no engine follows one curve from idle to
//! overload. These are loads within [`NEAR`] of it whose odds are at most [`ODDS`] times as large,
//! and the next one on a side that has none.

use crate::student;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The farthest from the crossing that a load may be to take part, as a difference of logarithms.
pub const NEAR: f64 = 0.2;
/// The most by which the odds of a miss may exceed the odds at the crossing, as a factor.
pub const ODDS: f64 = 8.0;
/// Loads whose runs are long enough that a regression takes, so that two are left to show the
/// scatter.
const FEWEST: usize = 4;
/// The lowest slope that is considered: odds that hardly grow with the load.
const FLAT: f64 = 0.5;
/// The highest slope: odds that jump.
const STEEP: f64 = 1e6;
/// The distance over which design effects are averaged, as a difference of logarithms of loads.
const SMOOTH: f64 = 0.02;
/// Degrees of freedom of the design effects for each independent load: the tenth of them that a
/// run's highest tenth meets, and two moments of each.
const FREEDOM: f64 = 0.2;
/// The same for each control, whose long run shows the design effect and whose batches show the
/// part that it leaves.
const CONTROL_FREEDOM: f64 = 30.0;
/// Standard deviation of the logarithm of a control's slope: seldom off by more than a factor of 2.
const SLOPE_ERROR: f64 = 0.35;
/// The variance that the error of a load adds to the logit of its share, at most.
const BLUR: f64 = 1.0;
/// Degrees of freedom of the design effects, at least and at most.
const BOUNDS: (f64, f64) = (5.0, 200.0);
/// The factor by which design effects are multiplied because a search ends when its interval is
/// narrow, which it is more often where they fell short. Found by simulated searches
/// (`host/benches/search`).
const LOOKS: f64 = 1.5;
/// Independent loads from which on the design effect of a run counts for its neighbours; a run that
/// holds fewer counts with the weight of its independent loads.
pub const STEADY: f64 = 6.0;
/// Growth of the slope with the load: by a factor of e with each such part of the logarithm of the
/// load.
const BENDS: [f64; 6] = [0.0, 3.0, 7.0, 14.0, 25.0, 45.0];
/// The usual bend: a curve that is bent as much is e times less likely before anything is seen of
/// it.
const USUAL: f64 = 10.0;
/// Parts of the range of loads in which the crossing is looked for first.
const STEPS: u32 = 12;
/// The distance beyond the loads tried to which the interval is looked for, as a difference of
/// logarithms.
const BEYOND: f64 = 1.0;

/// The runs at one load, as they show one objective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub at: f64,
    /// Requests that were due.
    pub requests: f64,
    /// Requests that missed the objective.
    pub bad: f64,
    /// The factor by which dependence multiplies the variance of the misses, as their batches show
    /// it.
    pub effect: f64,
    /// The same of being above the runs' own 90th percentile.
    pub tail_effect: f64,
    /// The number of independent loads that the runs hold; infinite in a closed loop.
    pub loads: f64,
    /// The control of the misses; absent where a run has none.
    pub control: Option<Control>,
}

impl Point {
    /// True if it holds enough independent loads to have the share of a steady state.
    pub fn is_steady(&self) -> bool {
        self.loads >= STEADY
    }
}

/// The share of misses after a control that has much the same luck as the run, and whose long-run
/// share is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Control {
    /// The estimate of the share.
    pub share: f64,
    /// The part of the variance of the misses that the control leaves.
    pub unexplained: f64,
    /// The design effect of the misses in the control's long run.
    pub effect: f64,
    /// The design effect that the control adds: its long-run share is an estimate too.
    pub added: f64,
    /// The variance of the logarithm of the load by the chance of lengths, for one request.
    pub uneven: f64,
    /// The power of the load with which the odds of a miss grow in the control's long run.
    pub slope: f64,
}

impl Control {
    /// The most that a control may leave of the variance.
    const MOST: f64 = 0.4;

    /// The control, where it explains most of the variance.
    pub fn helps(self) -> Option<Control> {
        Some(self).filter(|own| own.unexplained <= Self::MOST)
    }

    /// Pools the controls of two independent parts of a load, by their requests.
    pub fn join(self, other: Control, [own, others]: [f64; 2]) -> Control {
        let mean = |a: f64, b: f64| (a * own + b * others) / (own + others);
        Control {
            share: mean(self.share, other.share),
            unexplained: mean(self.unexplained, other.unexplained),
            effect: mean(self.effect, other.effect),
            added: mean(self.added, other.added),
            uneven: mean(self.uneven, other.uneven),
            slope: mean(self.slope, other.slope),
        }
    }
}

/// The points that have controls, where the controls explain most of the variance over all of them.
/// The part that a control leaves is taken from all loads together, because one run says little of
/// it. `None` where they do not.
pub fn controlled(points: &[Point]) -> Option<Vec<Point>> {
    let of = |own: &Point| Some((*own, own.control?));
    let all: Vec<(Point, Control)> = points.iter().filter_map(of).collect();
    let requests: f64 = all.iter().map(|(own, _)| own.requests).sum();
    let left = all.iter().map(|(own, control)| own.requests * control.unexplained).sum::<f64>();
    let unexplained = left / requests;
    let with = |(own, control)| Point { control: Some(Control { unexplained, ..control }), ..own };
    (unexplained <= Control::MOST).then(|| all.into_iter().map(with).collect())
}

/// The load at which the share of misses is the allowed share, by a regression over the loads close
/// to it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Curve {
    /// The load.
    pub estimate: f64,
    /// The lower end of its interval; absent if the loads that were tried do not bound it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// The power of the load with which the odds of a miss grow there.
    pub slope: f64,
    /// The variance of the misses beyond the design effects of the runs; at least 1.
    pub scatter: f64,
    /// Loads that took part.
    pub loads: u32,
    /// Requests at these loads.
    pub requests: u64,
}

/// Logarithm of a load, its requests, the independent ones they are worth, and the bad of these.
#[derive(Clone, Copy, Debug)]
struct Observation {
    x: f64,
    sent: f64,
    requests: f64,
    bad: f64,
    /// The logit from which on the curve may be as high as it likes. Where far more requests are
    /// bad than is allowed, the curve is another one, and shows no more than that it has crossed.
    enough: f64,
    /// Degrees of freedom of the design effect.
    freedom: f64,
    uneven: f64,
    /// The slope of the control, and its weight.
    slope: Option<(f64, f64)>,
    is_steady: bool,
}

impl Observation {
    /// Counts the bad requests beyond the curve's; nothing where the curve has enough.
    fn rest(&self, logit: f64) -> f64 {
        if logit < self.enough { self.bad - self.requests * share(logit) } else { 0.0 }
    }

    fn logit(&self) -> f64 {
        let [least, most] = [0.5 / self.sent, 1.0 - 0.5 / self.sent];
        let share = (self.bad / self.requests).clamp(least, most);
        (share / (1.0 - share)).ln()
    }

    /// The observation with the weight that its control has at a fitted logit and a slope, with the
    /// variance that the error of its load adds: the effective variance (Orear 1982, "Least squares
    /// when both variables have uncertainties").
    fn weighted(self, logit: f64, slope: f64, effects: &Effects) -> Self {
        if self.slope.is_none() {
            return self;
        }
        let effect = effects.at(&self, logit);
        let of_load = (slope * slope * self.uneven).min(BLUR) * share(logit) * share(-logit);
        let requests = 1.0 / (effect / self.sent + of_load);
        Observation { requests, bad: self.bad / self.requests * requests, ..self }
    }

    fn variance(&self, logit: f64) -> f64 {
        let share = share(logit);
        if logit < self.enough { self.requests * share * (1.0 - share) } else { 0.0 }
    }
}

/// The design effects that controls leave, as a power of the odds of a miss. A control that sees
/// few misses by luck sees few clusters too, so weights follow from the fitted odds, and not from
/// its own (Carroll and Ruppert 1988, "Transformation and Weighting in Regression", section 2.2).
struct Effects {
    power: f64,
    least: f64,
    most: f64,
}

impl Effects {
    fn new(near: &[Observation]) -> Self {
        let own = || near.iter().filter(|own| own.slope.is_some());
        let all: f64 = own().map(|own| own.sent).sum();
        let mean = |of: &dyn Fn(&Observation) -> f64| {
            own().map(|own| own.sent * of(own)).sum::<f64>() / all
        };
        let effect = |own: &Observation| (own.sent / own.requests).ln();
        let (x, y) = (mean(&Observation::logit), mean(&effect));
        let square = mean(&|own| (own.logit() - x).powi(2));
        let product = mean(&|own| (own.logit() - x) * (effect(own) - y));
        Effects {
            power: if square > 0.0 { (product / square).max(0.0) } else { 0.0 },
            least: own().map(effect).fold(f64::INFINITY, f64::min),
            most: own().map(effect).fold(f64::NEG_INFINITY, f64::max),
        }
    }

    fn at(&self, own: &Observation, logit: f64) -> f64 {
        let effect = (own.sent / own.requests).ln() + self.power * (logit - own.logit());
        effect.clamp(self.least, self.most).exp()
    }
}

/// Computes the dependence of a design effect on the share that exceeds a level of a queue. The
/// variance that clusters add to a share p grows as p (1 - p - p log 1/p). So the design effect of
/// a rare excess is larger than the design effect of a frequent one. This is exact for the time in
/// an M/M/1 queue and, in heavy traffic, for any single queue (the Poisson equation of a reflected
/// Brownian motion).
fn rarity(share: f64) -> f64 {
    1.0 - share * (1.0 / share).ln() / (1.0 - share)
}

/// Requests that one independent request takes, for each point: averaged over neighbouring loads,
/// because the clusters of one run are few. The batches of misses show it where many miss; where
/// few do, the batches of the runs' highest tenth show more, as far as a queue makes them. The
/// larger of the two counts. The average is Nadaraya and Watson's with a normal kernel. A control
/// leaves a part of the effect.
pub fn effects(points: &[Point], allowed: f64) -> Vec<f64> {
    let kernel = |a: f64, b: f64| (-((a / b).ln() / SMOOTH).powi(2) / 2.0).exp();
    let rarer = (rarity(allowed) / rarity(0.1)).max(1.0);
    points
        .iter()
        .map(|own| {
            if !own.is_steady() {
                let effect = own.effect.max(own.tail_effect);
                // A control's long run has many independent loads.
                let few = own.control.map_or(own.requests / own.loads.max(1.0), |_| 1.0);
                return left(own, effect.max(few));
            }
            let [mut misses, mut tails, mut bad, mut requests] = [0.0; 4];
            for other in points.iter().filter(|other| other.is_steady()) {
                let near = kernel(own.at, other.at);
                misses += near * other.bad * other.effect;
                bad += near * other.bad;
                tails += near * other.requests * other.tail_effect;
                requests += near * other.requests;
            }
            let of_misses = if bad > 0.0 { misses / bad } else { 1.0 };
            let seen = of_misses.max(1.0 + (tails / requests - 1.0) * rarer).max(1.0);
            left(own, 1.0 + (seen - 1.0) * LOOKS)
        })
        .collect()
}

/// The design effect that a point's control leaves.
fn left(point: &Point, effect: f64) -> f64 {
    point.control.map_or(effect, |own| effect.max(own.effect) * own.unexplained + own.added)
}

/// The load at which the share of misses is the allowed one, between neighbouring loads: by the
/// logit of the share over the logarithm of the load. Where the shares fall with the load, they are
/// pooled until they do not (isotonic regression; Ayer et al. 1955, "An empirical distribution
/// function for sampling with incomplete information"). No shape is assumed beyond that, so it
/// serves to place the next run. `None` if all shares are on one side.
pub fn crossing(points: &[Point], allowed: f64) -> Option<f64> {
    let mut all = observations(points, allowed);
    all.retain(|own| own.requests > 0.0);
    all.sort_by(|a, b| a.x.total_cmp(&b.x));
    let mut pools: Vec<Observation> = Vec::new();
    for mut pool in all {
        let share = |own: &Observation| own.bad / own.requests;
        while let Some(before) = pools.last().filter(|own| share(own) > share(&pool)) {
            let requests = before.requests + pool.requests;
            pool = Observation {
                sent: before.sent + pool.sent,
                x: (before.x * before.requests + pool.x * pool.requests) / requests,
                requests,
                bad: before.bad + pool.bad,
                enough: f64::INFINITY,
                freedom: before.freedom + pool.freedom,
                uneven: 0.0,
                slope: None,
                is_steady: true,
            };
            pools.pop();
        }
        pools.push(pool);
    }
    let first = (pools.iter()).position(|own| own.bad > allowed * own.requests)?;
    let (below, above) = (pools.get(first.checked_sub(1)?)?, &pools[first]);
    let logit = |own: &Observation| {
        let padded = padded(*own, allowed, 1.0);
        (padded.bad / (padded.requests - padded.bad)).ln()
    };
    let wanted = odds(allowed).ln();
    let share = ((wanted - logit(below)) / (logit(above) - logit(below))).clamp(0.0, 1.0);
    Some((below.x + share * (above.x - below.x)).exp())
}

/// The quasi-binomial regression about a first guess of the crossing, as the top of this file
/// describes it, with the interval of its likelihood ratio. `outside` is the probability that is
/// left outside the interval below it and above it. `None` if there are too few loads, or they do
/// not lie on both sides.
pub fn fit(points: &[Point], guess: f64, allowed: f64, outside: [f64; 2]) -> Option<Curve> {
    let wanted = odds(allowed).ln();
    let all = observations(points, allowed);
    let (mut center, mut curve) = (guess.ln(), CurveFit { likelihood: 0.0, slope: 0.0, bend: 0.0 });
    let mut near = Vec::new();
    // The loads that take part follow from the crossing, and it from them.
    for _ in 0..4 {
        near = taking_part(&all, center, curve.slope);
        let effects = Effects::new(&near);
        for own in &mut near {
            let logit = wanted + curve.slope * bent(own.x - center, curve.bend);
            *own = own.weighted(logit, curve.slope, &effects);
        }
        let is_bad = |own: &Observation| own.bad > allowed * own.requests;
        let above = near.iter().filter(|own| is_bad(own)).count();
        let steady = near.iter().filter(|own| own.is_steady).count();
        if steady < FEWEST || above == 0 || above == near.len() {
            return None;
        }
        let part = 1.0 / near.len() as f64;
        let padded: Vec<Observation> =
            (near.iter()).map(|own| padded(*own, allowed, part)).collect();
        let moved = most_likely(&padded, wanted);
        curve = curve_through(&padded, moved, wanted);
        let is_still = (moved - center).abs() < 1e-4;
        center = moved;
        if is_still {
            break;
        }
    }
    let peak = most_likely(&near, wanted);
    let best = curve_through(&near, peak, wanted);
    let left = near.len() as f64 - 2.0 - f64::from(u8::from(best.bend > 0.0));
    let misfit: f64 = near
        .iter()
        .map(|own| {
            let logit = wanted + best.slope * bent(own.x - peak, best.bend);
            own.rest(logit).powi(2) / own.variance(logit).max(0.25)
        })
        .sum();
    let known = near.iter().map(|own| own.freedom).sum::<f64>().clamp(BOUNDS.0, BOUNDS.1);
    let scatter = ((known + misfit) / (known + left)).max(1.0);
    let [low, high] = span(&near);
    let end = |outside: f64, mut beyond: f64| {
        let quantile = student::quantile(2.0 * outside, known + left);
        let most = quantile * quantile * scatter / 2.0;
        let holds = |x: f64| best.likelihood - curve_through(&near, x, wanted).likelihood <= most;
        if holds(beyond) {
            return None;
        }
        let mut inside = peak;
        for _ in 0..24 {
            let middle = f64::midpoint(inside, beyond);
            if holds(middle) { inside = middle } else { beyond = middle }
        }
        Some(inside.exp())
    };
    let took_part: Vec<&Point> =
        points.iter().filter(|point| near.iter().any(|own| own.x == point.at.ln())).collect();
    let requests = took_part.iter().map(|point| point.requests).sum::<f64>();
    Some(Curve {
        estimate: center.exp(),
        low: end(outside[0], low - BEYOND),
        high: end(outside[1], high + BEYOND),
        slope: curve.slope,
        scatter,
        loads: near.len() as u32,
        requests: requests as u64,
    })
}

fn observations(points: &[Point], allowed: f64) -> Vec<Observation> {
    let most = odds(allowed) * ODDS;
    let of = |(own, effect): (&Point, f64)| {
        let bad = own.control.map_or(own.bad, |control| control.share * own.requests);
        let seen = bad / (own.requests - bad).max(f64::MIN_POSITIVE);
        let unexplained = own.control.map_or(1.0, |control| control.unexplained);
        Observation {
            x: own.at.ln(),
            sent: own.requests,
            requests: own.requests / effect,
            bad: bad / effect,
            enough: if seen > most { seen.ln() } else { f64::INFINITY },
            freedom: own.control.map_or(FREEDOM * own.loads, |_| CONTROL_FREEDOM),
            uneven: own.control.map_or(0.0, |control| control.uneven / own.requests),
            slope: own.control.map(|control| (control.slope, own.requests)),
            is_steady: own.loads >= STEADY * unexplained,
        }
    };
    points.iter().zip(effects(points, allowed)).map(of).collect()
}

fn odds(share: f64) -> f64 {
    share / (1.0 - share)
}

fn share(logit: f64) -> f64 {
    1.0 / (1.0 + (-logit).exp())
}

/// With half a request more of either kind, because the logit of nothing is infinite. It is less
/// where there are so few that half a bad request would be more than is allowed.
fn padded(own: Observation, allowed: f64, part: f64) -> Observation {
    let requests = own.requests + part;
    Observation { requests, bad: own.bad + (0.5 * allowed * requests).min(0.5 * part), ..own }
}

fn taking_part(all: &[Observation], center: f64, slope: f64) -> Vec<Observation> {
    let is_near = |own: &&Observation| {
        (own.x - center).abs() <= NEAR && (own.x - center) * slope <= ODDS.ln()
    };
    let (mut near, mut far): (Vec<&Observation>, Vec<&Observation>) = all.iter().partition(is_near);
    let distance = |own: &Observation| (own.x - center).abs();
    far.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
    for side in [-1.0, 1.0] {
        let is_beyond = |own: &&Observation| (own.x - center) * side >= 0.0;
        if !near.iter().any(is_beyond)
            && let Some(place) = far.iter().position(is_beyond)
        {
            near.push(far.remove(place));
        }
    }
    near.into_iter().copied().collect()
}

fn span(near: &[Observation]) -> [f64; 2] {
    near.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], own| {
        [low.min(own.x), high.max(own.x)]
    })
}

/// A difference of logarithms of loads, bent: its slope is 1 at the crossing and grows by a factor
/// of e with each 1 / `bend` above it.
fn bent(away: f64, bend: f64) -> f64 {
    if bend > 0.0 { (bend * away).min(30.0).exp_m1() / bend } else { away }
}

/// The most likely curve through a crossing at a load.
#[derive(Clone, Copy)]
struct CurveFit {
    likelihood: f64,
    slope: f64,
    bend: f64,
}

/// The controls' slopes at their loads, as information beside the misses: mixed estimation (Theil
/// and Goldberger 1961, "On pure and mixed statistical estimation in economics"). The error of the
/// simulation's slope is the same at all loads, so all controls together weigh as one.
struct Slopes {
    /// The mean and the mean square of the distance of the curve's slope from the controls', as
    /// logarithms, at a slope of 1.
    moments: [f64; 2],
    /// One over the variance of the error, or nothing without controls.
    weight: f64,
}

impl Slopes {
    fn new(near: &[Observation], x: f64, bend: f64) -> Self {
        let known = || near.iter().filter_map(|own| Some((own.x, own.slope?)));
        let weights: f64 = known().map(|(_, (_, weight))| weight).sum();
        let mut moments = [0.0; 2];
        for (at, (slope, weight)) in known() {
            let off = bend * (at - x) - slope.ln();
            moments[0] += weight / weights * off;
            moments[1] += weight / weights * off * off;
        }
        let weight = if weights > 0.0 { SLOPE_ERROR.powi(-2) } else { 0.0 };
        Slopes { moments, weight }
    }

    fn likelihood(&self, slope: f64) -> f64 {
        let [mean, square] = self.moments;
        -self.weight * (slope.ln().powi(2) + 2.0 * slope.ln() * mean + square) / 2.0
    }

    fn score(&self, slope: f64) -> f64 {
        -self.weight * (slope.ln() + self.moments[0]) / slope
    }
}

/// The most likely curve with the wanted logit at a load. For each bend the likelihood of the
/// misses is concave in the slope.
fn curve_through(near: &[Observation], x: f64, wanted: f64) -> CurveFit {
    let mut best = CurveFit { likelihood: f64::NEG_INFINITY, slope: FLAT, bend: 0.0 };
    let mut aways = vec![0.0; near.len()];
    for bend in BENDS {
        for (away, own) in aways.iter_mut().zip(near) {
            *away = bent(own.x - x, bend);
        }
        let slopes = Slopes::new(near, x, bend);
        let score = |slope: f64| -> f64 {
            let of = |(own, away): (&Observation, &f64)| own.rest(wanted + slope * away) * away;
            near.iter().zip(&aways).map(of).sum::<f64>() + slopes.score(slope)
        };
        let (mut low, mut high) = (FLAT, STEEP);
        let slope = if score(low) <= 0.0 {
            low
        } else if score(high) >= 0.0 {
            high
        } else {
            for _ in 0..24 {
                let middle = (low * high).sqrt();
                if score(middle) > 0.0 { low = middle } else { high = middle }
            }
            (low * high).sqrt()
        };
        let of = |(own, away): (&Observation, &f64)| {
            let logit = (wanted + slope * away).min(own.enough);
            // log (1 + exp logit), without an overflow.
            let all = logit.max(0.0) + (-logit.abs()).exp().ln_1p();
            own.bad * logit - own.requests * all
        };
        let misses = near.iter().zip(&aways).map(of).sum::<f64>();
        let likelihood = misses + slopes.likelihood(slope) - bend / USUAL;
        if likelihood > best.likelihood {
            best = CurveFit { likelihood, slope, bend };
        }
    }
    best
}

/// The logarithm of the load at which the most likely curve crosses, within the loads that take
/// part: the best of a few, and then by golden sections about it.
fn most_likely(near: &[Observation], wanted: f64) -> f64 {
    let [low, high] = span(near);
    let of = |x: f64| curve_through(near, x, wanted).likelihood;
    let step = (high - low) / f64::from(STEPS);
    let at = |place: u32| low + step * f64::from(place);
    let first = (0..=STEPS).map(|place| (of(at(place)), at(place)));
    let best = first.max_by(|a, b| a.0.total_cmp(&b.0)).map_or(low, |best| best.1);
    let (mut from, mut to) = ((best - step).max(low), (best + step).min(high));
    let golden = (5_f64.sqrt() - 1.0) / 2.0;
    let mut inner = [to - golden * (to - from), from + golden * (to - from)];
    let mut seen = inner.map(of);
    for _ in 0..18 {
        if seen[0] >= seen[1] {
            to = inner[1];
            inner = [to - golden * (to - from), inner[0]];
            seen = [of(inner[0]), seen[0]];
        } else {
            from = inner[0];
            inner = [inner[1], from + golden * (to - from)];
            seen = [seen[1], of(inner[1])];
        }
    }
    f64::midpoint(from, to)
}

#[cfg(test)]
mod tests;

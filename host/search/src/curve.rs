//! Where the share of requests that miss an objective crosses what it allows: a regression over all loads, with an
//! interval.
//!
//! The odds of a miss are modelled as a power of the load, log p / (1 - p) = a + b log load with b above nothing, close to
//! the load where p is what the objective allows. It is a quasi-binomial regression: the counts of a run weigh as
//! those of as many independent requests as its design effect leaves, and what still scatters beyond that (lack of fit
//! included) widens the interval (McCullagh and Nelder 1989, "Generalized Linear Models", sections 4.5 and 9.2).
//!
//! The interval has every load that a likelihood ratio test does not rule out as the crossing, with Student's quantile
//! in place of the normal one because the scatter is estimated. So it is not symmetric, and it stays right where no
//! request missed below and many did above, where a slope has no finite estimate.
//!
//! **Only loads close to the crossing take part**, because no engine follows one curve from idle to overload: those
//! within [`NEAR`] of it whose odds are at most [`ODDS`] times as large, and the next one on a side that has none.

use result::stats::student;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far from the crossing a load may be to take part, as a difference of logarithms.
pub const NEAR: f64 = 0.12;
/// How many times as large the odds of a miss may be there as at the crossing.
pub const ODDS: f64 = 8.0;
/// Loads whose runs are long enough that a regression takes, so that two are left to show the scatter.
const FEWEST: usize = 4;
/// The lowest slope that is considered: odds that hardly grow with the load.
const FLAT: f64 = 0.5;
/// The highest slope: odds that jump.
const STEEP: f64 = 1e4;
/// Degrees of freedom that the design effects count for in the estimate of the scatter.
const PRIOR: f64 = 10.0;
/// The distance over which design effects are averaged, as a difference of logarithms of loads.
const SMOOTH: f64 = 0.04;
/// By what factor design effects are multiplied: those from batches fall short where clusters are longer than batches, and
/// a search ends when its interval is narrow, which it is more often where they fell short. Found by simulated searches
/// (`host/benches/search`).
const SHORT: f64 = 1.8;
/// Independent loads from which on the design effect of a run counts for its neighbours; a run that holds fewer counts as
/// what its number of independent loads is worth.
pub const STEADY: f64 = 6.0;
/// How far beyond the loads that were tried the interval is looked for, as a difference of logarithms.
const BEYOND: f64 = 1.0;

/// What was seen of one objective at one load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The load.
    pub at: f64,
    /// Requests that were due.
    pub requests: f64,
    /// Those of them that missed the objective.
    pub bad: f64,
    /// By what factor dependence multiplies the variance of the misses.
    pub effect: f64,
    /// How many independent loads the runs hold; infinite in a closed loop.
    pub loads: f64,
}

impl Point {
    /// Whether it holds so many independent loads that its share is that of a steady state.
    pub fn is_steady(&self) -> bool {
        self.loads >= STEADY
    }
}

/// The load at which the share of misses is what is allowed, by a regression over the loads close to it.
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
    /// The variance of the misses beyond what the design effects of the runs explain; at least 1.
    pub scatter: f64,
    /// Loads that took part.
    pub loads: u32,
    /// Requests at these loads.
    pub requests: u64,
}

/// The logarithm of a load, and how many independent requests were seen there, and of these, bad ones.
#[derive(Clone, Copy, Debug)]
struct Weighed {
    x: f64,
    requests: f64,
    bad: f64,
    /// The logit from which on the curve may be as high as it likes: where far more requests are bad than is allowed, the
    /// curve is another one, and shows no more than that it has crossed.
    enough: f64,
    /// Whether the runs there hold enough independent loads.
    is_steady: bool,
}

impl Weighed {
    /// How many bad requests there are beyond what the curve says; nothing where it says enough.
    fn rest(&self, logit: f64) -> f64 {
        match logit < self.enough {
            true => self.bad - self.requests * share(logit),
            false => 0.0,
        }
    }

    /// The variance of that.
    fn variance(&self, logit: f64) -> f64 {
        let share = share(logit);
        match logit < self.enough {
            true => self.requests * share * (1.0 - share),
            false => 0.0,
        }
    }
}

/// Requests that one independent request takes, for each point: averaged over neighbouring loads, because the clusters of
/// one run are few.
pub fn effects(points: &[Point]) -> Vec<f64> {
    let kernel = |a: f64, b: f64| (-((a / b).ln() / SMOOTH).powi(2) / 2.0).exp();
    points
        .iter()
        .map(|own| {
            if !own.is_steady() {
                return own.effect.max(own.requests / own.loads.max(1.0));
            }
            let (mut sum, mut weight) = (0.0, 0.0);
            for other in points.iter().filter(|other| other.is_steady()) {
                let counts = kernel(own.at, other.at) * other.requests;
                sum += counts * other.effect;
                weight += counts;
            }
            match sum / weight {
                effect if effect > 1.0 => effect * SHORT,
                _ => 1.0,
            }
        })
        .collect()
}

/// The load at which the share of misses is what is allowed, between neighbouring loads: by the logit of the share over the
/// logarithm of the load. Where the shares fall with the load, they are pooled until they do not (isotonic regression;
/// Ayer et al. 1955, "An empirical distribution function for sampling with incomplete information"). No shape is assumed
/// beyond that, so it serves to place the next run. `None` if all shares are on one side.
pub fn crossing(points: &[Point], allowed: f64) -> Option<f64> {
    let mut all = weighed(points, allowed);
    all.retain(|own| own.requests > 0.0);
    all.sort_by(|a, b| a.x.total_cmp(&b.x));
    let mut pools: Vec<Weighed> = Vec::new();
    for mut pool in all {
        let share = |own: &Weighed| own.bad / own.requests;
        while let Some(before) = pools.last().filter(|own| share(own) >= share(&pool)) {
            let requests = before.requests + pool.requests;
            pool = Weighed {
                x: (before.x * before.requests + pool.x * pool.requests) / requests,
                requests,
                bad: before.bad + pool.bad,
                enough: f64::INFINITY,
                is_steady: before.is_steady && pool.is_steady,
            };
            pools.pop();
        }
        pools.push(pool);
    }
    let first = (pools.iter()).position(|own| own.bad > allowed * own.requests)?;
    let (below, above) = (pools.get(first.checked_sub(1)?)?, &pools[first]);
    let logit = |own: &Weighed| {
        let padded = padded(*own, allowed);
        (padded.bad / (padded.requests - padded.bad)).ln()
    };
    let wanted = odds(allowed).ln();
    let share = ((wanted - logit(below)) / (logit(above) - logit(below))).clamp(0.0, 1.0);
    Some((below.x + share * (above.x - below.x)).exp())
}

/// The regression about a first guess of the crossing. `outside` is the probability that is left outside the interval
/// below it and above it. `None` if there are too few loads, or they do not lie on both sides.
pub fn fit(points: &[Point], guess: f64, allowed: f64, outside: [f64; 2]) -> Option<Curve> {
    let wanted = odds(allowed).ln();
    let all = weighed(points, allowed);
    let (mut center, mut slope) = (guess.ln(), 0.0);
    let mut near = Vec::new();
    // The loads that take part follow from the crossing, and it from them.
    for _ in 0..4 {
        near = taking_part(&all, center, slope);
        let is_bad = |own: &Weighed| own.bad > allowed * own.requests;
        let above = near.iter().filter(|own| is_bad(own)).count();
        let steady = near.iter().filter(|own| own.is_steady).count();
        if steady < FEWEST || above == 0 || above == near.len() {
            return None;
        }
        let padded: Vec<Weighed> = near.iter().map(|own| padded(*own, allowed)).collect();
        let best = free(&padded, center);
        let range = span(&near);
        let moved = best.crossing(wanted).clamp(range[0], range[1]);
        slope = best.slope;
        let is_still = (moved - center).abs() < 1e-4;
        center = moved;
        if is_still {
            break;
        }
    }
    let best = free(&near, center);
    let left = near.len() as f64 - 2.0;
    let misfit: f64 = near
        .iter()
        .map(|own| {
            let logit = best.level + best.slope * (own.x - best.center);
            own.rest(logit).powi(2) / own.variance(logit).max(0.25)
        })
        .sum();
    let scatter = ((PRIOR + misfit) / (PRIOR + left)).max(1.0);
    let [low, high] = span(&near);
    let inside = best
        .crossing(wanted)
        .clamp(low - BEYOND / 2.0, high + BEYOND / 2.0);
    let end = |outside: f64, mut beyond: f64| {
        let quantile = student::quantile(2.0 * outside, PRIOR + left);
        let most = quantile * quantile * scatter / 2.0;
        let holds = |x: f64| best.likelihood - through(&near, x, wanted) <= most;
        if holds(beyond) {
            return None;
        }
        let mut inside = inside;
        for _ in 0..40 {
            let middle = f64::midpoint(inside, beyond);
            match holds(middle) {
                true => inside = middle,
                false => beyond = middle,
            }
        }
        Some(inside.exp())
    };
    let requests = points
        .iter()
        .filter(|point| near.iter().any(|own| own.x == point.at.ln()));
    Some(Curve {
        estimate: center.exp(),
        low: end(outside[0], low - BEYOND),
        high: end(outside[1], high + BEYOND),
        slope,
        scatter,
        loads: near.len() as u32,
        requests: requests.map(|point| point.requests).sum::<f64>() as u64,
    })
}

fn weighed(points: &[Point], allowed: f64) -> Vec<Weighed> {
    let most = odds(allowed) * ODDS;
    let of = |(own, effect): (&Point, f64)| {
        let seen = own.bad / (own.requests - own.bad).max(f64::MIN_POSITIVE);
        Weighed {
            x: own.at.ln(),
            requests: own.requests / effect,
            bad: own.bad / effect,
            enough: match seen > most {
                true => seen.ln(),
                false => f64::INFINITY,
            },
            is_steady: own.is_steady(),
        }
    };
    points.iter().zip(effects(points)).map(of).collect()
}

fn odds(share: f64) -> f64 {
    share / (1.0 - share)
}

fn share(logit: f64) -> f64 {
    1.0 / (1.0 + (-logit).exp())
}

/// With half a request more of either kind, because the logit of nothing is infinite; less where there are so few that
/// half a bad request would be more than is allowed.
fn padded(own: Weighed, allowed: f64) -> Weighed {
    let requests = own.requests + 1.0;
    Weighed {
        requests,
        bad: own.bad + (0.5 * allowed * requests).min(0.5),
        ..own
    }
}

/// The loads that take part in the regression.
fn taking_part(all: &[Weighed], center: f64, slope: f64) -> Vec<Weighed> {
    let is_near =
        |own: &&Weighed| (own.x - center).abs() <= NEAR && (own.x - center) * slope <= ODDS.ln();
    let (mut near, mut far): (Vec<&Weighed>, Vec<&Weighed>) = all.iter().partition(is_near);
    let distance = |own: &Weighed| (own.x - center).abs();
    far.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
    for side in [-1.0, 1.0] {
        let is_beyond = |own: &&Weighed| (own.x - center) * side >= 0.0;
        if !near.iter().any(is_beyond)
            && let Some(place) = far.iter().position(is_beyond)
        {
            near.push(far.remove(place));
        }
    }
    near.into_iter().copied().collect()
}

fn span(near: &[Weighed]) -> [f64; 2] {
    near.iter()
        .fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], own| {
            [low.min(own.x), high.max(own.x)]
        })
}

fn likelihood(near: &[Weighed], center: f64, level: f64, slope: f64) -> f64 {
    let of = |own: &Weighed| {
        let logit = (level + slope * (own.x - center)).min(own.enough);
        // log (1 + exp logit), without an overflow.
        let all = logit.max(0.0) + (-logit.abs()).exp().ln_1p();
        own.bad * logit - own.requests * all
    };
    near.iter().map(of).sum()
}

/// The most likely curve.
struct Best {
    center: f64,
    level: f64,
    slope: f64,
    likelihood: f64,
}

impl Best {
    /// The logarithm of the load at which the logit of the share is what is wanted.
    fn crossing(&self, wanted: f64) -> f64 {
        self.center + (wanted - self.level) / self.slope
    }
}

/// The most likely curve, by Newton's method with halved steps. The likelihood is concave, so there is one; where no bad
/// request lies below any good load, it is approached and not reached.
fn free(near: &[Weighed], center: f64) -> Best {
    let (requests, bad) = (near.iter()).fold((0.0, 0.0), |sum, own| {
        (sum.0 + own.requests, sum.1 + own.bad)
    });
    let mut best = Best {
        center,
        level: odds(((bad + 0.01) / (requests + 0.02)).min(0.99)).ln(),
        slope: FLAT,
        likelihood: f64::NEG_INFINITY,
    };
    best.likelihood = likelihood(near, center, best.level, best.slope);
    for _ in 0..60 {
        let (mut gradient, mut information) = ([0.0; 2], [0.0; 3]);
        for own in near {
            let x = own.x - center;
            let logit = best.level + best.slope * x;
            let (rest, weight) = (own.rest(logit), own.variance(logit));
            gradient = [gradient[0] + rest, gradient[1] + rest * x];
            for (sum, power) in information.iter_mut().zip([1.0, x, x * x]) {
                *sum += weight * power;
            }
        }
        let [a, b, c] = information;
        let determinant = a * c - b * b;
        // At the lowest slope, only the level moves, unless the slope would grow.
        let mut step = match determinant > 1e-12 * a * c {
            true => [
                (c * gradient[0] - b * gradient[1]) / determinant,
                (a * gradient[1] - b * gradient[0]) / determinant,
            ],
            false => [gradient[0] / a.max(1e-12), gradient[1] / c.max(1e-12)],
        };
        if best.slope <= FLAT && step[1] < 0.0 {
            step = [gradient[0] / a.max(1e-12), 0.0];
        }
        let mut part = 1.0;
        let before = best.likelihood;
        while part > 1e-6 {
            let level = best.level + part * step[0];
            let slope = (best.slope + part * step[1]).clamp(FLAT, STEEP);
            let reached = likelihood(near, center, level, slope);
            if reached >= before {
                best = Best {
                    center,
                    level,
                    slope,
                    likelihood: reached,
                };
                break;
            }
            part /= 2.0;
        }
        if best.likelihood - before < 1e-9 {
            break;
        }
    }
    best
}

/// The likelihood of the most likely curve of those with the wanted logit at a load.
fn through(near: &[Weighed], x: f64, wanted: f64) -> f64 {
    let score = |slope: f64| -> f64 {
        let of = |own: &Weighed| {
            let away = own.x - x;
            own.rest(wanted + slope * away) * away
        };
        near.iter().map(of).sum()
    };
    let (mut low, mut high) = (FLAT, STEEP);
    let slope = if score(low) <= 0.0 {
        low
    } else if score(high) >= 0.0 {
        high
    } else {
        for _ in 0..40 {
            let middle = (low * high).sqrt();
            match score(middle) > 0.0 {
                true => low = middle,
                false => high = middle,
            }
        }
        (low * high).sqrt()
    };
    likelihood(near, x, wanted, slope)
}

#[cfg(test)]
mod tests;

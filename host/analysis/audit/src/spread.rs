//! Rules on the spread of latencies: percentiles, deviations and extremes of one against the
//! others'.
//!
//! They rest on two facts about each request. E2E = TTFT + TPOT * (n - 1) wherever a tool computes
//! TPOT after the first token, and every gap lies within its request. Means are the matter of
//! `latency`; the order of one latency's statistics is the matter of `order`.

use std::fmt;
use std::ops::{Add, Div, Mul, Sub};

use super::Finding;
use super::figures::{Figures, shown};
use super::id::Id;
use super::lengths::Evidence;
use super::order::{Point, label, points};
use crate::claim::Stated;
use result::finding::Severity;

/// Below this share of the bound, a percentile is within it: three of them may come from
/// histograms, each off by half a thousandth.
const SLACK: f64 = 0.002;

/// Below this share of the mean E2E, deviations are the rest of numbers that cancel.
const CANCELLED: f64 = 1e-9;

/// The fewest mean further tokens for which answers without any only widen the bound.
const FEW: f64 = 3.0;

/// The most percentiles of a latency that are compared with the others'.
const MOST: usize = 32;

/// The severity of a figure this far from a bound, by how surely all answers have one length.
fn graded(apart: f64, evidence: Evidence) -> Severity {
    match evidence {
        Evidence::Stated if apart > MUCH => Severity::Invalid,
        Evidence::Stated | Evidence::Confirmed => Severity::Suspect,
        Evidence::Inferred => Severity::Note,
    }
}

/// Compares the three latencies of answers of one length. Where all have n tokens, each E2E is
/// TTFT + D with D = TPOT * (n - 1), so their percentiles and deviations bound each other.
pub(super) fn one_length(figures: &Figures<'_>) -> Option<Finding> {
    if !figures.tpot_is_after_first() {
        return None;
    }
    let ((evidence, tokens), answered) = (figures.relied_on()?, figures.answered()?);
    let (apart, words) = percentiles(figures, tokens - 1.0, answered)
        .or_else(|| deviations(figures, tokens - 1.0))?;
    let how = match evidence {
        Evidence::Stated => format!("all answers have {} tokens", shown(tokens)),
        Evidence::Confirmed => format!("the totals fit {} tokens for each request", shown(tokens)),
        Evidence::Inferred => format!(
            "the totals fit {} tokens for each request; a mix of lengths with these totals would explain it",
            shown(tokens)
        ),
    };
    let seen = format!("{words}, and {how}");
    Some(Finding::new(Id::LatencyDisagrees, graded(apart, evidence), seen))
}

/// The percentile of E2E that is furthest outside of the range that the percentiles of TTFT and
/// TPOT allow, and its distance from it.
///
/// At least: a request with E2E < x + y has TTFT < x or D < y. Let r requests be below x, the
/// percentile a of TTFT, and s below y, the percentile b of D. Then at most r + s are below x + y,
/// and every percentile of E2E with r + s requests below it is at least x + y: about where p >= a +
/// b. At most, likewise from above: E2E at 1 - a - b is at most TTFT at 1 - a plus D at 1 - b. The
/// ends are sharp: TTFT is nowhere below its least, or below 0, so E2E at p is at least D at p, and
/// more by the least TTFT.
fn percentiles(figures: &Figures<'_>, further: f64, answered: f64) -> Option<(f64, String)> {
    let ranks = Ranks { last: answered - 1.0 };
    // No TTFT is below 0.
    let firsts: Vec<Option<Point>> =
        few(points(figures, "ttft")).into_iter().map(Some).chain([None]).collect();
    let tpots = few(points(figures, "tpot"));
    let mut worst: Option<(f64, String)> = None;
    for (percent, e2e) in few(points(figures, "e2e")) {
        for &first in &firsts {
            for &tpot in &tpots {
                let rest = tpot.1 * Range::exact(further);
                let bound = first.map_or(rest, |first| first.1 + rest);
                let at = first.map_or(0.0, |first| first.0);
                let least = ranks.at_least(percent, at, tpot.0);
                let most = first.is_some() && ranks.at_most(percent, at, tpot.0);
                let way = match (least && e2e.below(bound), most && bound.below(e2e)) {
                    (true, _) => "less",
                    (_, true) => "more",
                    _ => continue,
                };
                let apart = e2e.apart(bound);
                if apart > SLACK && worst.as_ref().is_none_or(|(most, _)| apart > *most) {
                    let allowed = allowed(first, tpot, further, way);
                    let seen =
                        format!("{} E2E is {e2e} ms, but {allowed} = {bound} ms", label(percent));
                    worst = Some((apart, seen));
                }
            }
        }
    }
    worst
}

/// The points of a latency to compare with the others': a file may state any number.
fn few(points: Vec<Point>) -> Vec<Point> {
    let step = points.len().div_ceil(MOST).max(1);
    points.into_iter().step_by(step).collect()
}

fn allowed(first: Option<Point>, tpot: Point, further: f64, way: &str) -> String {
    let name = label(tpot.0);
    let rest = format!("{} * {}", shown(tpot.1.mid()), shown(further));
    match first {
        None => format!("{name} TPOT * (n - 1) allows no {way} than {rest}"),
        Some((percent, first)) => format!(
            "{} TTFT and {name} TPOT * (n - 1) allow no {way} than {first} + {rest}",
            label(percent)
        ),
    }
}

/// The ranks of percentiles among sorted samples, from 0. A percentile p is between the samples at
/// floor(p * last) and the next, or is the nearest, off by one; the ends are samples.
struct Ranks {
    last: f64,
}

impl Ranks {
    fn at(&self, percent: f64) -> f64 {
        percent / 100.0 * self.last
    }

    /// The most samples that are less than the percentile.
    fn below(&self, percent: f64) -> f64 {
        match percent {
            0.0 => 0.0,
            percent => self.at(percent).ceil() + 1.0,
        }
    }

    /// The most samples that are greater.
    fn above(&self, percent: f64) -> f64 {
        match percent {
            100.0 => 0.0,
            percent => self.last - self.at(percent).floor() + 1.0,
        }
    }

    /// True if E2E at one percentile is at least TTFT at another plus the rest at a third.
    fn at_least(&self, e2e: f64, first: f64, rest: f64) -> bool {
        let sharp = (first == 0.0 && rest <= e2e) || (rest == 0.0 && first <= e2e);
        let rank = match e2e {
            100.0 => self.last,
            e2e => self.at(e2e).floor() - 1.0,
        };
        sharp || rank >= self.below(first) + self.below(rest)
    }

    /// True if it is at most that.
    fn at_most(&self, e2e: f64, first: f64, rest: f64) -> bool {
        let sharp = (first == 100.0 && rest >= e2e) || (rest == 100.0 && first >= e2e);
        let rank = match e2e {
            0.0 => 0.0,
            e2e => self.at(e2e).ceil() + 1.0,
        };
        sharp || self.last - rank >= self.above(first) + self.above(rest)
    }
}

/// The deviation of a sum lies between the difference and the sum of its parts' deviations,
/// whatever their correlation:
/// |TTFT's - D's| <= E2E's <= TTFT's + D's.
fn deviations(figures: &Figures<'_>, further: f64) -> Option<(f64, String)> {
    let e2e = figures.get("e2e.std")?;
    let first = figures.get("ttft.std")?;
    let tpot = figures.get("tpot.std")?;
    let rest = tpot * Range::exact(further);
    let cancelled = figures.positive("e2e.mean")?.high * CANCELLED;
    let least = (first - rest).low.max((rest - first).low).max(0.0);
    let most = (first + rest).high;
    let short = least - e2e.high;
    let over = e2e.low - most;
    let off = short.max(over);
    let apart = off / e2e.mid().max(least);
    if off <= cancelled || apart <= SLACK {
        return None;
    }
    let (way, bound) = if short > over { ("less", least) } else { ("more", most) };
    let words = format!(
        "E2E has a deviation of {e2e} ms, but the deviations of TTFT and of TPOT * (n - 1), {first} ms and {tpot} * {} = {rest} ms, allow no {way} than {}",
        shown(further),
        shown(bound)
    );
    Some((apart, words))
}

/// Checks the bounds that the extremes of TPOT, or its deviation, set to d = mean E2E - mean TTFT,
/// at any lengths; `further` is m = mean(n) - 1.
///
/// d is the mean of TPOT * (n - 1) over the requests, plus the time after the only token of
/// one-token answers. That time is no less than zero and in no TPOT. So d / m is a mean of TPOT
/// that is weighted by n - 1, if no answer is that short: it lies between the extremes. If some
/// are, the lower bound alone holds.
pub(super) fn any_length(
    figures: &Figures<'_>,
    decode: Range,
    further: f64,
) -> Option<(Severity, String)> {
    let each = decode / Range::exact(further);
    let tpots = points(figures, "tpot");
    let extreme = |percent: f64| tpots.iter().find(|point| point.0 == percent).map(|point| point.1);
    let all = figures.shortest().is_some_and(|least| least >= 2.0);
    let finding = |bound: Range, words: String| {
        let apart = each.apart(bound);
        (apart > NOTHING).then(|| (graded(apart, Evidence::Stated), words))
    };
    if let Some(least) = extreme(0.0).filter(|least| each.below(*least)) {
        let words = format!(", and no request has less than {least} ms");
        return finding(least, words);
    }
    if let Some(most) = extreme(100.0).filter(|most| all && most.below(each)) {
        let words = format!(", and no request has more than {most} ms");
        return finding(most, words);
    }
    let bounds = covariance(figures, further, all)?;
    let (way, bound) = match (each.below(bounds), bounds.below(each)) {
        (true, _) => ("less", bounds.low),
        (_, true) if all => ("more", bounds.high),
        _ => return None,
    };
    let words = format!(
        ", and its deviation of {} ms allows no {way} than {} ms with {}",
        shown(figures.claim.value("tpot.std").unwrap_or_default()),
        shown(bound),
        figures.most_tokens()?.1,
    );
    finding(Range::exact(bound), words)
}

/// The range of d / m that the mean and the deviation of TPOT allow where n - 1 is at most K.
///
/// With L = n - 1, d - m * mean(TPOT) is the covariance of TPOT and L, which is no more than the
/// product of their deviations (Cauchy and Schwarz). L is within k and K around m, so its variance
/// is no more than (K - m)(m - k) (Bhatia and Davis).
///
/// This takes every answer to have two tokens. If a share s of them has, with u = m / s as their
/// mean of L, d >= m * mean(TPOT) + s * covariance. And s * sqrt((K - u)(u - 1)), which is sqrt((s
/// K - m)(m - s)), grows with s up to s = m (K + 1) / 2K, which is more than 1 for m >= 2: the
/// lower bound holds with k = 1 all the more. Answers without any token, a share z with L = -1,
/// raise d by z * mean(TPOT) or more. With s <= 1 - z they leave (K - m - z (K + 1))(m - 1 + 2 z)
/// below the root, which falls with z from the start where (K + 3) m >= 3 K + 1, as for m >= 3. The
/// upper bound does not hold then.
fn covariance(figures: &Figures<'_>, further: f64, all: bool) -> Option<Range> {
    let mean = figures.positive("tpot.mean")?;
    let deviation = figures.get("tpot.std")?.high.max(0.0);
    let most = figures.most_tokens()?.0 - 1.0;
    let least = if all { figures.shortest()? - 1.0 } else { 1.0 };
    if !(least..=most).contains(&further) || (further < FEW && !all) {
        return None;
    }
    let by = deviation * ((most - further) * (further - least)).sqrt() / further;
    Some(Range { low: mean.low - by, high: mean.high + by })
}

/// Every gap lies between the first and the last token of one request.
pub(super) fn longest_gap(figures: &Figures<'_>) -> Option<Finding> {
    let greatest = |theirs: &str| {
        let last = points(figures, theirs).pop();
        last.filter(|point| point.0 == 100.0).map(|point| point.1)
    };
    let (gap, e2e) = (greatest("itl")?, greatest("e2e")?);
    if !figures.itl_is_gaps() || !e2e.below(gap) || gap.apart(e2e) <= NOTHING {
        return None;
    }
    let severity = graded(gap.apart(e2e), Evidence::Stated);
    let seen = format!("the longest gap is {gap} ms, but the longest request took {e2e} ms");
    Some(Finding::new(Id::GapOverE2e, severity, seen))
}

/// A number between two, both included. All that are multiplied or divided here are positive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Range {
    pub low: f64,
    pub high: f64,
}

/// Below this share, a difference is of another rounding, or of two clocks read a moment apart.
pub(super) const NOTHING: f64 = 0.001;

/// Beyond this share, two figures that must agree are of different things.
pub(super) const MUCH: f64 = 0.05;

/// Sums of a million floating-point numbers in two orders differ by less than this share.
const FLOAT: f64 = 1e-9;

impl Range {
    pub fn exact(value: f64) -> Self {
        Range { low: value, high: value }
    }

    pub(crate) fn mid(self) -> f64 {
        f64::midpoint(self.low, self.high)
    }

    /// Widened by a share of itself on both sides.
    pub fn wider(self, share: f64) -> Self {
        Range { low: self.low - self.low.abs() * share, high: self.high + self.high.abs() * share }
    }

    /// True if both can be the same number.
    pub fn meets(self, other: Range) -> bool {
        self.wider(FLOAT).low <= other.wider(FLOAT).high
            && other.wider(FLOAT).low <= self.wider(FLOAT).high
    }

    /// The smallest possible distance between them, as a share of the other; 0 if they meet.
    pub fn apart(self, other: Range) -> f64 {
        if self.meets(other) {
            return 0.0;
        }
        let gap = (self.low - other.high).max(other.low - self.high);
        match other.mid() {
            0.0 => f64::INFINITY,
            mid => gap / mid.abs(),
        }
    }

    /// True if it is less than the other beyond rounding.
    pub fn below(self, other: Range) -> bool {
        self.high < other.low && !self.meets(other)
    }
}

/// Its middle, as findings show it.
impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(self.mid()))
    }
}

impl From<Stated> for Range {
    fn from(stated: Stated) -> Self {
        Range { low: stated.value - stated.rounding, high: stated.value + stated.rounding }
    }
}

impl Add for Range {
    type Output = Range;
    fn add(self, other: Range) -> Range {
        Range { low: self.low + other.low, high: self.high + other.high }
    }
}

impl Sub for Range {
    type Output = Range;
    fn sub(self, other: Range) -> Range {
        Range { low: self.low - other.high, high: self.high - other.low }
    }
}

impl Mul for Range {
    type Output = Range;
    fn mul(self, other: Range) -> Range {
        let [a, b] = [self.low * other.low, self.low * other.high];
        let [c, d] = [self.high * other.low, self.high * other.high];
        Range { low: a.min(b).min(c).min(d), high: a.max(b).max(c).max(d) }
    }
}

impl Div for Range {
    type Output = Range;
    /// The quotient is unbounded if the divisor may be zero.
    fn div(self, other: Range) -> Range {
        if other.low <= 0.0 {
            return Range { low: f64::NEG_INFINITY, high: f64::INFINITY };
        }
        self * Range { low: 1.0 / other.high, high: 1.0 / other.low }
    }
}

//! Numbers that are known up to rounding, and arithmetic on them.

use std::fmt;
use std::ops::{Add, Div, Mul, Sub};

use super::figures::shown;
use crate::claim::Stated;

/// A number that lies between two, both included. All that are multiplied or divided here are
/// positive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Range {
    pub low: f64,
    pub high: f64,
}

/// Below this share, a difference is of another rounding, or of two clocks read a moment apart.
pub(super) const NOTHING: f64 = 0.001;

/// Beyond this share, two figures that must agree are of different things.
pub(super) const MUCH: f64 = 0.05;

/// Sums of a million floating-point numbers, added in another order, differ by less than this
/// share.
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

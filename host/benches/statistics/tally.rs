//! Counts of the intervals of a figure in the runs of a case.

use crate::measured::{cell, exceeds, falls_short, percent};
use statistics::{Ranked, Sorted};

#[derive(Clone, Copy)]
pub enum Target {
    /// 90 to 99 % hold the truth, 95 % are given, the median width is at most 1.5 times the need.
    All,
    /// Hold the truth in at least this share where they are given.
    Least(f64),
    /// Nothing: close to capacity, one run cannot show it.
    None,
}

/// The most times as wide as needed that intervals are to be.
const WIDEST: f64 = 1.5;

/// Engines that do not vary give the same to rounding.
const ROUNDING: f64 = 1e-9;

/// Explanation of the columns; all tables of intervals share it.
pub const WORDS: &str = "\"Given\" is the share of runs that have an interval at all, if not all do; \"open\" the share of \
    the given ones without an end; \"±\" half the median width of the others, and \"×\" how many times as wide that is as it had \
    to be, which is 1.96 standard deviations of the figure over the runs. A width is marked if it is more than 1.5 times the \
    needed one even though the standard deviation is known from these runs only (χ² of a normal figure, one-sided, at 5 %).";

#[derive(Clone, Default)]
pub struct Tally {
    runs: usize,
    given: usize,
    held: usize,
    open: usize,
    /// Half the widths of those with two ends, as a share of the truth.
    halves: Vec<f64>,
    /// Squared distances of the figure from the truth, as a share of it.
    squares: f64,
}

impl Tally {
    /// Adds a run by the distances of the truth from its figure and its interval's ends, as shares.
    pub fn add(&mut self, off: f64, ends: Option<[f64; 2]>) {
        self.runs += 1;
        self.squares += off * off;
        let Some([low, high]) = ends else { return };
        self.given += 1;
        self.held += usize::from(low - ROUNDING <= off && off <= high + ROUNDING);
        if (high - low).is_finite() { self.halves.push((high - low) / 2.0) } else { self.open += 1 }
    }

    /// True if so few have an interval that its coverage means nothing.
    fn is_rare(&self) -> bool {
        self.given * 20 < self.runs
    }

    fn half(&self) -> Option<f64> {
        Some(Sorted::new(self.halves.clone())?.percentile(50.0))
    }

    /// Returns half the median width, as a multiple of the width needed.
    fn wider(&self) -> Option<f64> {
        let needed = 1.96 * (self.squares / self.runs as f64).sqrt();
        self.half().filter(|_| needed > ROUNDING).map(|half| half / needed)
    }

    fn is_missed(&self, target: Target) -> bool {
        match target {
            Target::All => {
                let wide = self.wider().map(|wider| wider * least_deviation(self.runs as f64));
                self.is_rare()
                    || falls_short(self.held, self.given, 0.9)
                    || exceeds(self.held, self.given, 0.99)
                    || falls_short(self.given, self.runs, 0.95)
                    || wide.is_some_and(|wider| wider > WIDEST)
            }
            Target::Least(least) => !self.is_rare() && falls_short(self.held, self.given, least),
            Target::None => false,
        }
    }

    /// Coverage, with how often it was given and how wide it was.
    pub fn cell(&self, target: Target) -> String {
        let missed = self.is_missed(target);
        if self.is_rare() {
            return cell("too little data".into(), missed);
        }
        let mut parts = Vec::new();
        if self.given < self.runs {
            parts.push(format!("given {}", percent(self.given, self.runs)));
        }
        if self.open > 0 {
            parts.push(format!("open {}", percent(self.open, self.given)));
        }
        parts.extend(self.half().map(|half| {
            if half < 0.01 {
                format!("± {:.2} %", 100.0 * half)
            } else {
                format!("± {:.1} %", 100.0 * half)
            }
        }));
        parts.extend(self.wider().map(|wider| format!("× {wider:.1}")));
        let text = format!("{} ({})", percent(self.held, self.given), parts.join(", "));
        cell(text, missed)
    }
}

/// The least standard deviation of `values` normal values, as a share of the true one, in nineteen
/// of twenty cases: from Wilson and Hilferty's approximation of the chi-squared distribution.
fn least_deviation(values: f64) -> f64 {
    const QUANTILE: f64 = 1.645;
    let part = 2.0 / (9.0 * (values - 1.0).max(1.0));
    (1.0 - part - QUANTILE * part.sqrt()).max(0.0).powf(1.5)
}

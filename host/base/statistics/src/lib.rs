//! Statistics of samples: means, percentiles, distributions, intervals and tests.
//!
//! This crate owns the arithmetic. It is pure: numbers go in and numbers come out, whatever they
//! mean. It leaves the choice of samples, and the conclusions from a result, to its callers.
//! `result` owns metrics and summaries, `compare` comparisons, `search` the choice of loads, and
//! `lab` the choice of winners. Each function states its method, its assumptions, and its source: a
//! paper, or the function of NumPy or SciPy that gives the same.
//!
//! | of | modules |
//! | --- | --- |
//! | samples as they are | [`moments`], [`ranked`] |
//! | any number of samples in bounded memory | [`histogram`], [`spread`], [`cells`], [`covariance`] |
//! | distributions | [`beta`], [`student`], [`dunnett`] |
//! | independent values | [`student`], [`share`], [`bounds`], [`anytime`], [`trend`] |
//! | shares of late requests, as MLPerf judges them | [`early_stopping`] |
//! | values in clusters | [`clusters`], [`bounded`] |
//! | samples of one run, which depend on each other | [`blocks`], [`batches`], [`dependence`], [`interval`], [`steps`], [`course`] |
//! | two sides | [`decomposition`], [`bootstrap`], [`difference`] |
//! | several sides | [`several`], [`dunnett`], [`twoway`] |
//! | pairs of values | [`correlation`] |
//! | curves | [`corner`], [`crossing`] |
//!
//! **Order.** Statistics of a run's samples do not depend on their order, to the last bit: sums are
//! taken over the sorted samples or in integers. So the same records give the same results however
//! they were merged. Functions of a slice sum in its order.
//!
//! The shares of cases in which intervals hold the truth, and tests err, are measured:
//! `host/benches/statistics`, `host/benches/search` and `host/benches/labs`.
#![forbid(unsafe_code)]

pub mod anytime;
pub mod batches;
pub mod beta;
pub mod blocks;
pub mod bootstrap;
pub mod bounded;
pub mod bounds;
pub mod cells;
pub mod clusters;
pub mod corner;
pub mod correlation;
pub mod course;
pub mod covariance;
pub mod crossing;
pub mod decomposition;
pub mod dependence;
pub mod difference;
pub mod dunnett;
pub mod early_stopping;
pub mod histogram;
pub mod interval;
pub mod moments;
pub mod ranked;
pub mod several;
pub mod share;
pub mod spread;
pub mod start;
pub mod steps;
pub mod student;
pub mod trend;
pub mod twoway;

pub use histogram::Histogram;
pub use interval::Interval;
pub use moments::{mean, mean_if_any, median, variance};
pub use ranked::{Ranked, Sorted, between, place};
pub use spread::{Figures, Spread};

/// Finds the end of a condition that holds from `low` on and not at `high`, by bisection.
pub(crate) fn bisect(low: f64, high: f64, halvings: u32, holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (low, high);
    for _ in 0..halvings {
        let middle = f64::midpoint(low, high);
        if holds(middle) { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests;

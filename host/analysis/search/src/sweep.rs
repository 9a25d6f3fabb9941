//! Sweeps: runs at a list of loads, and their joint results: the throughput-latency curve, its knee
//! and the Pareto front.
//!
//! [`series`] reads a list, and [`order`] gives the order of its runs. Results go in as [`Point`]s;
//! an invalid run, and a figure that was not measured, take no part, and are never taken for zero.

mod curve;
mod series;

pub use curve::{Curve, Knee, Mean, NoKnee, Place, Point, curve};
pub use series::{At, MOST, Run, order, series};

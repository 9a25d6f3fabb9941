//! Sweeps: runs at a list of loads, and what they show together: the throughput-latency curve, its
//! knee and the Pareto front.
//!
//! A list is read by [`series`], and [`order`] says in which order its runs are made. What the runs
//! were goes in as [`Point`]s; a run that is not valid, and a figure that was not measured, take no
//! part, and are never taken for zero.

mod curve;
mod series;

pub use curve::{Curve, Knee, Mean, NoKnee, Place, Point, curve};
pub use series::{At, MOST, Run, order, series};

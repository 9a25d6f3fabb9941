//! The catalogue of metrics, each with its unit, its definition and the tools whose figure it
//! equals. `catalogue` holds the entries; this module defines an entry.
//!
//! A metric takes its samples from one exchange or from one session, and takes none if there is
//! nothing to measure: absent is not zero. `statistics` has the statistics of many exchanges,
//! `summary` the figures of a whole run (throughput, concurrency).

mod catalogue;
pub mod count;
pub(crate) mod definition;
mod names;
pub mod objective;
pub mod reading;
#[cfg(test)]
mod reference;

#[cfg(test)]
mod tests;

pub use catalogue::CATALOGUE;
pub use count::{Count, Source};
pub use names::*;
pub use objective::Objective;
pub use reading::Reading;

use crate::summary::sessions::Session;
use model::units::Nanos;
use statistics::Spread;
use statistics::blocks::Blocks;

/// The exchanges of the measurement that a metric is taken of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Sent requests that were answered. The server's work.
    Answered,
    /// All that were sent, whatever their outcome. The client's work.
    Sent,
    /// Sessions whose every request was answered, a session at a time.
    Session,
}

#[derive(Clone, Copy)]
pub enum Measure {
    One(Single),
    /// Any number of samples per exchange, pooled over the run. Each is passed on in whole steps of
    /// the metric's [`Unit::scale`], with its number of occurrences.
    Pooled(Walk),
    Session(fn(&Session) -> Option<f64>),
}

pub type Single = fn(&Reading<'_>) -> Option<f64>;

/// Passes on the pooled samples of an exchange: the time of each, its value, and its number of
/// occurrences.
pub type Walk = fn(&Reading<'_>, &mut dyn FnMut(Nanos, u64, u64));

pub struct Metric {
    /// Its stable name, in results and thresholds.
    pub name: &'static str,
    pub unit: Unit,
    /// Its definition, as a formula. `n` is the number of output tokens.
    pub definition: &'static str,
    /// The figures of other tools that it equals, under their names.
    pub equals: &'static str,
    pub of: Of,
    pub measure: Measure,
}

pub fn by_name(name: &str) -> Option<&'static Metric> {
    CATALOGUE.iter().find(|metric| metric.name == name)
}

/// The catalogue's metrics with at most one sample per exchange, in its order.
pub fn single() -> impl Iterator<Item = (&'static Metric, Single)> {
    CATALOGUE.iter().filter_map(|metric| match metric.measure {
        Measure::One(measure) => Some((metric, measure)),
        Measure::Pooled(_) | Measure::Session(_) => None,
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Milliseconds,
    Tokens,
    Requests,
    TokensPerSecond,
    /// Tokens to an event of the reply.
    TokensPerEvent,
    /// Tokens to a step of the model.
    TokensPerStep,
    /// A share, from 0 to 1.
    Share,
    /// A duration over another one.
    Ratio,
    /// The same the other way round: more is better.
    Speedup,
}

impl Unit {
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Milliseconds => "ms",
            Unit::Tokens => "tokens",
            Unit::Requests => "requests",
            Unit::TokensPerSecond => "tok/s",
            Unit::TokensPerEvent => "tokens/event",
            Unit::TokensPerStep => "tokens/step",
            Unit::Share => "share",
            Unit::Ratio => "ratio",
            Unit::Speedup => "times",
        }
    }

    /// Returns the value that a request that failed or was not sent counts as, where such requests
    /// count: infinitely slow, a speed of zero, or a share of one. Absent where no value is worse
    /// than another.
    pub fn worst(self) -> Option<f64> {
        match self {
            Unit::Milliseconds | Unit::Ratio => Some(f64::INFINITY),
            Unit::TokensPerSecond | Unit::Speedup => Some(0.0),
            Unit::Share => Some(1.0),
            Unit::Tokens | Unit::Requests | Unit::TokensPerEvent | Unit::TokensPerStep => None,
        }
    }

    /// The number of steps in a unit when samples are whole numbers: milliseconds in nanoseconds.
    pub fn scale(self) -> f64 {
        if matches!(self, Unit::Tokens | Unit::Requests) { 1.0 } else { 1e6 }
    }
}

/// Makes the store for a metric's samples: pooled ones are counted, as there are many of them.
pub fn spread(metric: &Metric) -> Spread {
    let scale = metric.unit.scale();
    match metric.measure {
        Measure::One(_) | Measure::Session(_) => Spread::new(scale),
        Measure::Pooled(_) => Spread::counting(scale),
    }
}

/// Adds the metric's samples of an exchange to it, and to blocks at its index there, if it has any.
pub fn take(
    metric: &Metric,
    reading: &Reading<'_>,
    spread: &mut Spread,
    blocks: Option<(&mut Blocks, u64)>,
) {
    if metric.of == Of::Answered && !reading.exchange.is_ok() {
        return;
    }
    match metric.measure {
        Measure::One(measure) => {
            if let Some(sample) = measure(reading) {
                spread.add(sample);
                if let Some((blocks, index)) = blocks {
                    blocks.add(index, sample);
                }
            }
        }
        Measure::Pooled(walk) => {
            let counts = spread.counts();
            walk(reading, &mut |_, value, times| counts.add(value, times));
        }
        // Sessions are known when all exchanges are.
        Measure::Session(_) => {}
    }
}

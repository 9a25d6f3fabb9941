//! Quantities that carry their unit. Instants and spans of time are whole nanoseconds. Figures for
//! people (milliseconds, tokens per second) are made from them at the edge.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Nanoseconds: an instant since the run's origin, or the span between two of them.
///
/// The origin is the run's own and says nothing about any machine's clock, so records
/// of several machines can be put into one table.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The origin, or no time at all.
    pub const ZERO: Nanos = Nanos(0);

    /// From seconds; negative and non-finite values become zero, too large ones the maximum.
    pub fn from_secs_f64(seconds: f64) -> Self {
        Nanos((seconds * 1e9).round() as u64)
    }

    /// From milliseconds, as [`from_secs_f64`](Self::from_secs_f64).
    pub fn from_millis_f64(milliseconds: f64) -> Self {
        Nanos((milliseconds * 1e6).round() as u64)
    }

    /// In seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// In milliseconds.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The span from `earlier` to this instant; zero if `earlier` is the later one.
    pub fn since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl std::ops::Add for Nanos {
    type Output = Nanos;

    fn add(self, span: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(span.0))
    }
}

impl From<std::time::Duration> for Nanos {
    fn from(span: std::time::Duration) -> Self {
        Nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for std::time::Duration {
    fn from(span: Nanos) -> Self {
        std::time::Duration::from_nanos(span.0)
    }
}

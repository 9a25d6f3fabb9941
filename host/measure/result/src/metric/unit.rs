//! The units of metrics.

/// The unit of a metric's samples.
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
    /// The unit's symbol, as results name it.
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

    /// Returns the number of steps in a unit when samples are counted in whole numbers:
    /// milliseconds are counted in nanoseconds.
    pub fn scale(self) -> f64 {
        match self {
            Unit::Tokens | Unit::Requests => 1.0,
            Unit::Milliseconds
            | Unit::TokensPerSecond
            | Unit::TokensPerEvent
            | Unit::TokensPerStep
            | Unit::Share
            | Unit::Ratio
            | Unit::Speedup => 1e6,
        }
    }
}

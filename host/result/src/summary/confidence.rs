//! Which figures of a run have confidence intervals, and under which conditions. `stats::interval` computes them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Distribution;
use crate::metric::{self, Metric};
use crate::stats::blocks::Blocks;
use crate::stats::interval::{self, Loads};
use crate::stats::{Figures, Interval};

/// 95 % confidence intervals of the figures that many runs of the same scenario against the same engine have on average,
/// as far as one run can show that. They come from blocks of consecutive requests, because requests that are in flight
/// together affect each other. An interval is absent if the run holds too little independent data for it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Confidence {
    /// The confidence level, in percent.
    pub level: f64,
    /// The mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<Bounds>,
    /// The median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median: Option<Bounds>,
    /// The 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<Bounds>,
    /// Whether most samples at or beyond the 99th percentile are of requests that were sent before the first answer had
    /// ended. They met an engine that filled, so the percentile describes the beginning of the run and has no interval;
    /// that of the steady window describes the rest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub p99_of_fill: bool,
}

/// The two ends of an interval. An end that the samples do not bound is absent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Bounds {
    /// The lower end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

impl Bounds {
    /// The interval in words, each end as `shown`, with `between` between the two: `12.3 to 14.5`, `at least 12.3`.
    pub fn words(&self, between: &str, shown: impl Fn(f64) -> String) -> String {
        match (self.low, self.high) {
            (Some(low), Some(high)) => format!("{}{between}{}", shown(low), shown(high)),
            (Some(low), None) => format!("at least {}", shown(low)),
            (None, Some(high)) => format!("at most {}", shown(high)),
            (None, None) => "any value".to_owned(),
        }
    }
}

impl From<Interval> for Bounds {
    fn from(Interval { low, high }: Interval) -> Self {
        let finite = |end: f64| end.is_finite().then_some(end);
        Bounds {
            low: finite(low),
            high: finite(high),
        }
    }
}

/// The metrics that get intervals.
pub const HEADLINE: [&str; 4] = [
    metric::TTFT,
    metric::TPOT,
    metric::E2E,
    metric::TTFT_FROM_DUE,
];

/// Of these, the ones that contain the wait for a place in the engine's batch, which is zero most of the time.
const WAITING: [&str; 2] = [metric::TTFT, metric::TTFT_FROM_DUE];

/// Fewer independent loads than this are not enough for any interval.
pub const LEAST_LOADS: f64 = 3.0;

impl Distribution {
    /// With intervals from the blocks that the samples are in. `loads` is what the run shows of its loads, where the
    /// number in flight varies.
    pub(super) fn with_confidence(
        mut self,
        metric: &Metric,
        figures: &Figures,
        blocks: &Blocks,
        loads: Option<Loads>,
    ) -> Self {
        let enough = loads.is_none_or(|loads| loads.independent >= LEAST_LOADS);
        let waits = WAITING.contains(&metric.name);
        let loads = loads.filter(|_| waits);
        let percentile =
            |percent| interval::percentile(blocks, figures, percent, loads).map(Bounds::from);
        self.confidence = Some(Confidence {
            level: interval::LEVEL,
            mean: interval::mean(blocks, figures, loads).map(Bounds::from),
            median: percentile(50.0),
            p99: percentile(99.0),
            p99_of_fill: interval::is_of_fill(blocks, figures, 99.0),
        })
        .filter(|of| enough && (of.mean.is_some() || of.median.is_some() || of.p99.is_some()));
        self
    }
}

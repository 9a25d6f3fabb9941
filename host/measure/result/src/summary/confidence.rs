//! The figures of a run that have confidence intervals, and the conditions for them.
//! `statistics::interval` computes them.

use crate::metric;
use statistics::Interval;

/// 95 % confidence intervals of a metric's figures, as far as one run can show them. The intervals
/// of the first level are for other requests of this kind: the average figures of many runs of the
/// scenario, each with requests of its own. `same-requests` is the noise within this run. An
/// interval is absent if one run cannot show it. None contains the variation of the engine's pace
/// from run to run.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Confidence {
    /// The confidence level, in percent.
    pub level: f64,
    /// The mean.
    pub mean: Option<Bounds>,
    /// The mean while no request waits for a place in the engine's batch, where requests come by a
    /// rate and none waited. `mean` has no upper end then: a run with waits is not excluded.
    pub mean_unless_full: Option<Bounds>,
    /// The median.
    pub median: Option<Bounds>,
    /// The 99th percentile.
    pub p99: Option<Bounds>,
    /// True if most samples at or beyond the 99th percentile are of requests that were sent before
    /// the first answer had ended. They met an engine that filled, so the percentile describes the
    /// beginning of the run and has no interval; the steady window's percentile describes the rest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub p99_of_fill: bool,
    /// The factor from the variation of the engine's pace to the mean's: more than 1 where requests
    /// come by a rate, because a slower engine also has more of them in its batch.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub mean_follows_pace: f64,
    /// The same of the median.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub median_follows_pace: f64,
    /// The noise within this run, as intervals; absent unless all answers were streamed and had
    /// their requested lengths.
    pub same_requests: Option<Same>,
}

pub(super) fn one() -> f64 {
    1.0
}

fn is_one(factor: &f64) -> bool {
    *factor == 1.0
}

/// Intervals of the figures that many repeats of the same requests have on average, if the engine's
/// pace is the same in all of them.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Same {
    /// The mean.
    pub mean: Option<Bounds>,
    /// The median.
    pub median: Option<Bounds>,
}

/// 95 % confidence intervals of a run's rates.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct RateConfidence {
    /// The confidence level, in percent.
    pub level: f64,
    /// The rates that many runs of the scenario, each with requests of its own, have on average.
    pub other_requests: Rates,
    /// The noise within this run, as intervals; absent unless all answers were streamed and had
    /// their requested lengths.
    pub same_requests: Rates,
}

/// Intervals of a run's rates.
#[model::apply(model::document!)]
#[derive(Copy, Default)]
pub struct Rates {
    /// Answered requests per second.
    pub requests_per_s: Option<Bounds>,
    /// Their input tokens per second.
    pub input_tokens_per_s: Option<Bounds>,
    /// Their output tokens per second.
    pub output_tokens_per_s: Option<Bounds>,
    /// Input and output tokens together per second.
    pub total_tokens_per_s: Option<Bounds>,
}

/// The intervals of a mean and of a median.
pub(super) type Both = [Option<Interval>; 2];

/// The two ends of an interval. An end that the samples do not bound is absent.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Bounds {
    /// The lower end.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

impl Bounds {
    /// False if every figure lies between the two ends.
    pub fn states_anything(&self) -> bool {
        self.high.is_some() || self.low.is_some_and(|low| low > 0.0)
    }

    /// The interval as text, each end as `shown`, with `between` between the two: `12.3 to 14.5`,
    /// `at least 12.3`.
    pub fn label(&self, between: &str, shown: impl Fn(f64) -> String) -> String {
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
        Bounds { low: finite(low), high: finite(high) }
    }
}

/// The metrics that get intervals.
pub const HEADLINE: [&str; 4] = [metric::TTFT, metric::TPOT, metric::E2E, metric::TTFT_FROM_DUE];

/// Fewer independent loads than this are not enough for any interval.
pub const LEAST_LOADS: f64 = 3.0;

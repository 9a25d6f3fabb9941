//! The distribution of a metric's samples, with its confidence intervals.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::confidence::{Both, Bounds, Confidence, LEAST_LOADS, Same};
use super::failing::{self, Amount, WithFailures};
use crate::figure::{Statistic, percentile_name};
use crate::metric::{self, Metric};
use statistics::blocks::Blocks;
use statistics::interval::{self, Loads};
use statistics::{Figures, Ranked};

/// The metrics among these that contain the wait for a place in the engine's batch, which is zero
/// most of the time.
pub(super) const WAITING: [&str; 2] = [metric::TTFT, metric::TTFT_FROM_DUE];

/// The distribution of a metric's samples.
#[model::apply(model::document!)]
pub struct Distribution {
    /// The unit of all figures but the count.
    pub unit: String,
    /// Number of samples that were measured.
    pub count: u64,
    /// The share of the requests that have no sample because they failed or were not sent; of a
    /// metric of sessions, the share of the sessions. Absent if none did.
    pub failure_share: Option<f64>,
    /// Arithmetic mean; absent if it is infinite, as where failures count as infinitely late.
    #[serde(default = "infinity", skip_serializing_if = "is_infinite")]
    pub mean: f64,
    /// Standard deviation of the population; absent if it is infinite.
    #[serde(default = "infinity", skip_serializing_if = "is_infinite")]
    pub std: f64,
    /// Smallest sample.
    pub min: f64,
    /// Largest sample.
    #[serde(with = "failing::amount")]
    #[schemars(with = "Amount")]
    pub max: f64,
    /// 50th percentile.
    #[serde(with = "failing::amount")]
    #[schemars(with = "Amount")]
    pub median: f64,
    /// Percentiles by linear interpolation, as `np.percentile`: `p99`, `p99.9`.
    #[serde(with = "failing::amounts")]
    #[schemars(with = "BTreeMap<String, Amount>")]
    pub percentiles: BTreeMap<String, f64>,
    /// The basis of median and percentiles; all other figures are exact either way.
    pub from: Basis,
    /// The largest error of the median and the percentiles, as a share of them; absent if they are
    /// exact.
    pub relative_error: Option<f64>,
    /// Confidence intervals; for the headline metrics of a request.
    pub confidence: Option<Confidence>,
    /// The same figures when requests that failed or were not sent count as the worst, which
    /// thresholds use; absent if there are none, for token counts, and within the steady window.
    pub with_failures: Option<WithFailures>,
}

/// The basis from which the percentiles of a distribution are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Every sample.
    Samples,
    /// A histogram with buckets narrower than a thousandth of their values (HDR histogram).
    Histogram,
}

fn infinity() -> f64 {
    f64::INFINITY
}

fn is_infinite(figure: &f64) -> bool {
    figure.is_infinite()
}

impl Distribution {
    pub(super) fn new(metric: &Metric, figures: &Figures, percentiles: &[f64]) -> Self {
        Distribution {
            unit: metric.unit.symbol().to_owned(),
            count: figures.count(),
            failure_share: None,
            mean: figures.mean(),
            std: figures.std(),
            min: figures.min(),
            max: figures.max(),
            median: figures.percentile(50.0),
            percentiles: percentiles
                .iter()
                .map(|&percent| (percentile_name(percent), figures.percentile(percent)))
                .collect(),
            from: match figures {
                Figures::Samples(_) => Basis::Samples,
                Figures::Histogram(_) => Basis::Histogram,
            },
            relative_error: figures.error(),
            confidence: None,
            with_failures: None,
        }
    }

    /// Includes requests that failed or were not sent in every figure, as the worst. Confidence
    /// intervals do not hold for such figures, so there are none.
    pub(super) fn with_failures_included(self) -> Self {
        let Some(with) = &self.with_failures else { return self };
        let percentiles = with.percentiles.iter();
        Distribution {
            mean: with.mean.0,
            std: with.std.0,
            min: with.min.0,
            max: with.max.0,
            median: with.median.0,
            percentiles: percentiles.map(|(name, amount)| (name.clone(), amount.0)).collect(),
            confidence: None,
            ..self
        }
    }

    pub fn percentile(&self, percent: f64) -> Option<f64> {
        self.percentiles.get(&percentile_name(percent)).copied()
    }

    /// A statistic of the samples; absent for a percentile that was not requested, and for a mean
    /// that failures make infinite.
    pub fn statistic(&self, statistic: Statistic) -> Option<f64> {
        match statistic {
            Statistic::Mean => Some(self.mean).filter(|mean| mean.is_finite()),
            Statistic::Std => Some(self.std).filter(|std| std.is_finite()),
            Statistic::Min => Some(self.min),
            Statistic::Max => Some(self.max),
            Statistic::Percentile(50.0) => Some(self.median),
            Statistic::Percentile(percent) => self.percentile(percent),
        }
    }

    /// Adds intervals from the blocks of the samples. `both` are from the answers' information on
    /// other runs and on the same requests, if there is any. `loads` is the run's information on
    /// its loads, where the number in flight varies.
    pub(super) fn with_confidence(
        mut self,
        metric: &Metric,
        figures: &Figures,
        blocks: &Blocks,
        loads: Option<Loads>,
        both: Option<(Option<Both>, Option<Same>)>,
    ) -> Self {
        let enough = loads.is_none_or(|loads| loads.independent >= LEAST_LOADS);
        let loads = loads.filter(|_| WAITING.contains(&metric.name));
        let percentile =
            |percent| interval::percentile(blocks, figures, percent, loads).filter(|_| enough);
        let [mean, median] = both.and_then(|(other, _)| other).unwrap_or_else(|| {
            let mean = interval::mean(blocks, figures, loads).filter(|_| enough);
            [mean, percentile(50.0)]
        });
        let p99_of_fill = interval::is_of_fill(blocks, figures, 99.0);
        self.confidence = Some(Confidence {
            level: interval::LEVEL,
            mean: mean.map(Bounds::from).filter(Bounds::states_anything),
            mean_unless_full: None,
            median: median.map(Bounds::from),
            p99: percentile(99.0).map(Bounds::from),
            p99_of_fill,
            mean_follows_pace: 1.0,
            median_follows_pace: 1.0,
            same_requests: both.and_then(|(_, same)| same),
        })
        .filter(|of| of.mean.is_some() || of.median.is_some() || of.p99.is_some() || p99_of_fill);
        self
    }

    /// With an interval of the mean that is of runs without waits alone.
    pub(super) fn without_waits(mut self) -> Self {
        if let Some(confidence) = &mut self.confidence {
            confidence.mean_unless_full = confidence.mean.filter(|of| of.high.is_some());
            let open = confidence.mean.map(|of| Bounds { high: None, ..of });
            confidence.mean = open.filter(Bounds::states_anything);
        }
        self
    }

    /// With the factors from the variation of the engine's pace to a mean's and a median's.
    pub(super) fn following(mut self, [mean, median]: [f64; 2]) -> Self {
        if let Some(confidence) = &mut self.confidence {
            (confidence.mean_follows_pace, confidence.median_follows_pace) = (mean, median);
        }
        self
    }
}

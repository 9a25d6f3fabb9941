//! The figures of a metric when requests that failed or were never sent count too: as the worst
//! that a user can get. Latency over answered requests alone improves with each slow request that
//! fails, so thresholds use these figures.
//!
//! A request without an answer is infinitely slow, has a speed of zero, and stalled all the time: a
//! share of one. Such samples lie beyond all others, so a percentile over both is a percentile of
//! the measured samples at another rank.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::Requests;
use super::sessions::Sessions;
use crate::figure::{Statistic, percentile_name};
use crate::metric::{Measure, Metric, Of};
use statistics::{Figures, Ranked, between, place};

/// The figures of a metric with each failed request counted as the worst: as infinitely slow, as a
/// speed of zero, or as a share of one.
#[model::apply(model::document!)]
pub struct WithFailures {
    /// Requests that failed or were not sent; for a metric of requests that were sent, those not
    /// sent; for a metric of sessions, the sessions that failed or were cut short.
    pub requests: u64,
    /// Samples that they count as: one each, and if a request has many samples, as many as an
    /// answered request has on average, rounded up.
    pub samples: u64,
    /// Arithmetic mean.
    pub mean: Amount,
    /// Standard deviation of the population.
    pub std: Amount,
    /// Smallest sample.
    pub min: Amount,
    /// Largest sample.
    pub max: Amount,
    /// 50th percentile.
    pub median: Amount,
    /// Percentiles by linear interpolation; infinite as soon as an infinite sample has a part in
    /// them.
    pub percentiles: BTreeMap<String, Amount>,
}

/// A figure that may be infinite. JSON has no number for that, so it is written as `"infinite"`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Deserialize, JsonSchema)]
#[serde(from = "AmountJson")]
#[schemars(with = "AmountJson")]
pub struct Amount(pub f64);

/// An [`Amount`] in JSON.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum AmountJson {
    Finite(f64),
    Infinite(Infinite),
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Infinite {
    Infinite,
}

impl From<AmountJson> for Amount {
    fn from(written: AmountJson) -> Self {
        Amount(match written {
            AmountJson::Finite(amount) => amount,
            AmountJson::Infinite(Infinite::Infinite) => f64::INFINITY,
        })
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = if self.0.is_finite() {
            AmountJson::Finite(self.0)
        } else {
            AmountJson::Infinite(Infinite::Infinite)
        };
        written.serialize(serializer)
    }
}

pub(super) mod amount {
    use super::Amount;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(figure: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        Amount(*figure).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        Ok(Amount::deserialize(deserializer)?.0)
    }
}

pub(super) mod amounts {
    use std::collections::BTreeMap;

    use super::Amount;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(
        figures: &BTreeMap<String, f64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(figures.iter().map(|(name, figure)| (name, Amount(*figure))))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<String, f64>, D::Error> {
        let read = BTreeMap::<String, Amount>::deserialize(deserializer)?;
        Ok(read.into_iter().map(|(name, amount)| (name, amount.0)).collect())
    }
}

/// Counts the requests, or sessions, without a sample of a metric because they failed or were not
/// sent, and the requests that may have one. Requests cancelled on purpose are neither. `None` for
/// a metric of sessions where there are none.
pub(super) fn missing(
    metric: &Metric,
    requests: &Requests,
    sessions: Option<&Sessions>,
) -> Option<(u64, u64)> {
    Some(match metric.of {
        Of::Answered => (requests.failed, requests.successful),
        Of::Sent => {
            let unsent = requests.total.saturating_sub(requests.sent);
            let unsent = unsent.saturating_sub(requests.cancelled_unsent);
            (unsent, requests.sent)
        }
        Of::Session => {
            let sessions = sessions?;
            let ended = sessions.total - sessions.cancelled;
            (ended - sessions.complete, sessions.complete)
        }
    })
}

impl WithFailures {
    /// A statistic; absent for a percentile that was not requested.
    pub fn statistic(&self, statistic: Statistic) -> Option<f64> {
        let amount = match statistic {
            Statistic::Mean => self.mean,
            Statistic::Std => self.std,
            Statistic::Min => self.min,
            Statistic::Max => self.max,
            Statistic::Percentile(50.0) => self.median,
            Statistic::Percentile(percent) => *self.percentiles.get(&percentile_name(percent))?,
        };
        Some(amount.0)
    }

    /// The figures of a metric; absent if every request counts, or if no value of it is worse.
    pub(super) fn new(
        metric: &Metric,
        figures: &Figures,
        (requests, sessions): (&Requests, Option<&Sessions>),
        percentiles: &[f64],
    ) -> Option<Self> {
        let worst = metric.unit.worst()?;
        let (missing, present) = missing(metric, requests, sessions)?;
        let samples = match metric.measure {
            Measure::One(_) | Measure::Session(_) => missing,
            Measure::Pooled(_) => {
                let each = u128::from(figures.count()) * u128::from(missing);
                let samples = each.div_ceil(u128::from(present.max(1)));
                u64::try_from(samples).unwrap_or(u64::MAX)
            }
        };
        (missing > 0).then(|| {
            let all = All { figures, samples, worst };
            WithFailures {
                requests: missing,
                samples,
                mean: Amount(all.mean()),
                std: Amount(all.std()),
                min: Amount(figures.min().min(worst)),
                max: Amount(figures.max().max(worst)),
                median: Amount(all.percentile(50.0)),
                percentiles: percentiles
                    .iter()
                    .map(|&percent| (percentile_name(percent), Amount(all.percentile(percent))))
                    .collect(),
            }
        })
    }
}

/// Measured samples, and a number of further ones that are worse than all of them.
struct All<'a> {
    figures: &'a Figures,
    samples: u64,
    worst: f64,
}

impl All<'_> {
    fn count(&self) -> u64 {
        self.figures.count().saturating_add(self.samples)
    }

    fn at(&self, rank: u64) -> f64 {
        let measured = self.figures.count();
        // No speed is below zero, and no latency or share above the worst.
        match self.worst {
            0.0 if rank < self.samples => 0.0,
            0.0 => self.figures.at(rank - self.samples),
            _ if rank < measured => self.figures.at(rank),
            worst => worst,
        }
    }

    /// As [`Ranked::percentile`], where infinity minus infinity is no number.
    fn percentile(&self, percent: f64) -> f64 {
        let (below, share) = place(self.count(), percent);
        let (a, b) = (self.at(below), self.at(below + 1));
        // The position is rounded: the rest of a whole rank does not reach the next.
        let rounding = 4.0 * f64::EPSILON * self.count() as f64;
        if !(b.is_finite() || share <= rounding) {
            f64::INFINITY
        } else if a.is_finite() && b.is_finite() {
            between(a, b, share)
        } else {
            a
        }
    }

    fn mean(&self) -> f64 {
        let sum = self.figures.mean() * self.figures.count() as f64;
        (sum + self.worst * self.samples as f64) / self.count() as f64
    }

    fn std(&self) -> f64 {
        let mean = self.mean();
        if mean.is_infinite() {
            return f64::INFINITY;
        }
        let (inner, own) = (self.figures.std(), self.figures.mean() - mean);
        let measured = self.figures.count() as f64 * (inner * inner + own * own);
        let further = self.samples as f64 * (self.worst - mean) * (self.worst - mean);
        ((measured + further) / self.count() as f64).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric;
    use crate::metric::spread;
    use proptest::prelude::*;
    use statistics::Spread;

    fn requests(successful: u64, failed: u64, unsent: u64) -> Requests {
        Requests {
            total: successful + failed,
            successful,
            failed,
            sent: successful + failed - unsent,
            ..Requests::default()
        }
    }

    fn with_failures(name: &str, samples: &[f64], requests: &Requests) -> Option<WithFailures> {
        let metric = metric::by_name(name).unwrap();
        let mut all: Spread = spread(metric);
        samples.iter().for_each(|sample| all.add(*sample));
        WithFailures::new(metric, &all.figures()?, (requests, None), &[10.0, 90.0, 99.0])
    }

    #[test]
    fn a_failure_makes_a_latency_infinite() {
        let samples: Vec<f64> = (1..=10).map(f64::from).collect();
        // Of 11, P90 is the tenth; of 12, it lies between the tenth and the eleventh.
        let one = with_failures("ttft", &samples, &requests(10, 1, 0)).unwrap();
        assert_eq!((one.requests, one.samples), (1, 1));
        assert_eq!((one.median.0, one.percentiles["p90"].0), (6.0, 10.0));
        assert_eq!((one.min.0, one.percentiles["p10"].0), (1.0, 2.0));
        for infinite in [one.mean, one.std, one.max, one.percentiles["p99"]] {
            assert_eq!(infinite.0, f64::INFINITY);
        }
        let two = with_failures("ttft", &samples, &requests(10, 2, 0)).unwrap();
        assert_eq!(two.median.0, 6.5);
        assert_eq!(two.percentiles["p90"].0, f64::INFINITY);
        assert_eq!(with_failures("ttft", &samples, &requests(10, 0, 0)), None);
        assert_eq!(with_failures("input-tokens", &samples, &requests(10, 5, 0)), None);
    }

    #[test]
    fn failed_requests_count_as_the_worst() {
        let of = with_failures("output-speed", &[10.0, 30.0], &requests(2, 2, 0)).unwrap();
        assert_eq!((of.mean.0, of.min.0, of.max.0), (10.0, 0.0, 30.0));
        assert_eq!((of.median.0, of.percentiles["p10"].0), (5.0, 0.0));
        assert_eq!(of.std.0, 150.0f64.sqrt());
        let of = with_failures("stall-share", &[0.0, 0.5], &requests(2, 2, 0)).unwrap();
        assert_eq!((of.mean.0, of.min.0, of.max.0), (0.625, 0.0, 1.0));
        assert_eq!((of.median.0, of.percentiles["p90"].0), (0.75, 1.0));
        // Two answers of three gaps; each of the three that failed counts as three.
        let gaps = with_failures("itl", &[5.0; 6], &requests(2, 3, 1)).unwrap();
        assert_eq!((gaps.requests, gaps.samples), (3, 9));
        // One of five was not sent.
        let lag = with_failures("send-lag", &[1.0; 4], &requests(2, 3, 1)).unwrap();
        assert_eq!((lag.requests, lag.samples), (1, 1));
        assert_eq!(with_failures("send-lag", &[1.0; 4], &requests(2, 3, 0)), None);
    }

    #[test]
    fn infinity_is_written_as_a_word() {
        let text = serde_json::to_string(&[Amount(1.5), Amount(f64::INFINITY)]).unwrap();
        assert_eq!(text, r#"[1.5,"infinite"]"#);
        let read: Vec<Amount> = serde_json::from_str(&text).unwrap();
        assert_eq!(read, [Amount(1.5), Amount(f64::INFINITY)]);
    }

    proptest! {
        /// A percentile at another rank is the percentile over all samples.
        #[test]
        fn ranks_count_all_samples(
            samples in prop::collection::vec(0.0f64..1e4, 1..200),
            failed in 1u64..200,
            percent in 0.1f64..99.9,
        ) {
            let beyond = 1e300;
            let metric = metric::by_name("ttft").unwrap();
            let figures = |samples: &[f64]| {
                let mut all = spread(metric);
                samples.iter().for_each(|sample| all.add(*sample));
                all.figures().unwrap()
            };
            let answered = samples.len() as u64;
            let ours = WithFailures::new(
                metric, &figures(&samples), (&requests(answered, failed, 0), None), &[percent],
            ).unwrap();
            let mut all = samples.clone();
            all.extend(std::iter::repeat_n(beyond, failed as usize));
            let theirs = figures(&all).percentile(percent);
            let ours = ours.statistic(Statistic::Percentile(percent)).unwrap();
            if theirs < 1e280 {
                prop_assert_eq!(ours, theirs);
            } else {
                prop_assert_eq!(ours, f64::INFINITY);
            }
        }
    }
}

//! Means of values that come in clusters, as the scores of a conversation's turns do: how sure such a mean is.
//!
//! Clusters are independent of each other, values within one are not. So whole clusters are resampled (the cluster
//! bootstrap, Davison and Hinkley 1997, section 3.8), with a fixed seed. The percentile interval of few clusters is too
//! narrow, so it is widened about the mean as Hesterberg 2015, "What teachers should know about the bootstrap", section
//! 4.3, does: by √(m / (m - 1)) and Student's quantile. Of more than [`RESAMPLED`] clusters the interval is Student's, which
//! the bootstrap's comes to.

use rand_mt::Mt64;

use super::interval::{LEVEL, NORMAL};
use super::{Interval, Ranked, Sorted, student};

/// Up to so many clusters are resampled.
pub const RESAMPLED: usize = 1000;

/// Resamples. With another seed, the ends of an interval would lie some 2 % of its width elsewhere.
const RESAMPLES: usize = 2000;

/// The seed of the resamples, so that the same scores always have the same interval.
const SEED: u64 = 95;

/// Values that depend on each other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cluster {
    /// Their sum.
    pub sum: f64,
    /// Their number.
    pub count: u64,
}

/// The mean of clustered values, and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean over all values.
    pub mean: f64,
    /// Its standard error; absent of a single cluster.
    pub error: Option<f64>,
    /// Number of clusters.
    pub clusters: usize,
}

/// How an interval of a mean came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Resampled clusters.
    Bootstrap,
    /// Student's distribution.
    Student,
}

/// What resamples say of a mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The 95 % interval.
    pub interval: Interval,
    /// How likely a mean so far from zero is if the true one is zero; two-sided.
    pub probability: f64,
    /// How both came about.
    pub method: Method,
}

impl Mean {
    /// The mean of clusters; `None` if they hold no value. The order of the clusters makes no difference beyond rounding.
    pub fn of(clusters: &[Cluster]) -> Option<Mean> {
        let sum: f64 = clusters.iter().map(|cluster| cluster.sum).sum();
        let count: u64 = clusters.iter().map(|cluster| cluster.count).sum();
        if count == 0 {
            return None;
        }
        let mean = sum / count as f64;
        let squares = clusters.iter().map(|cluster| {
            let beyond = cluster.sum - mean * cluster.count as f64;
            beyond * beyond
        });
        let several = clusters.len() as f64;
        // The ratio estimator's linearised variance (Cochran 1977, section 6.3).
        let variance =
            squares.sum::<f64>() * several / (several - 1.0) / (count as f64 * count as f64);
        Some(Mean {
            mean,
            error: (clusters.len() > 1).then(|| variance.sqrt()),
            clusters: clusters.len(),
        })
    }

    /// How many independent answers a share is worth whose values lie in these clusters: their number divided by the design
    /// effect, never more than there are, and fewer where few clusters show that effect (Korn and Graubard 1998, "Confidence
    /// intervals for proportions with small expected number of positive counts estimated from survey data"). Where all values
    /// are equal, nothing shows how they cluster, so each cluster counts as one.
    pub fn independent(&self, values: u64) -> f64 {
        let values = values as f64;
        let clusters = self.clusters as f64;
        if clusters >= values {
            return values;
        }
        let spread = self.mean * (1.0 - self.mean);
        let Some(error) = self.error.filter(|_| spread > 0.0) else {
            return clusters;
        };
        let worth = match error > 0.0 {
            true => (spread / (error * error)).min(values),
            false => values,
        };
        let quantile = student::quantile(1.0 - LEVEL / 100.0, clusters - 1.0);
        worth * (NORMAL / quantile).powi(2)
    }
}

/// The interval of the mean of clustered values, and the probability of such a mean by chance. `None` of fewer than two
/// clusters.
pub fn estimate(clusters: &[Cluster]) -> Option<Estimate> {
    let whole = Mean::of(clusters)?;
    let error = whole.error?;
    let several = clusters.len() as f64;
    let quantile = student::quantile(1.0 - LEVEL / 100.0, several - 1.0);
    if clusters.len() > RESAMPLED {
        return Some(Estimate {
            interval: Interval {
                low: whole.mean - quantile * error,
                high: whole.mean + quantile * error,
            },
            probability: by_student(whole.mean, error, several - 1.0),
            method: Method::Student,
        });
    }
    let mut random = Mt64::new(SEED);
    let drawn: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let (mut sum, mut count) = (0.0, 0);
            for _ in 0..clusters.len() {
                let Cluster { sum: own, count: n } = clusters[below(&mut random, clusters.len())];
                sum += own;
                count += n;
            }
            sum / count as f64
        })
        .collect();
    let drawn = Sorted::new(drawn)?;
    let wider = quantile / NORMAL * (several / (several - 1.0)).sqrt();
    let outside = (100.0 - LEVEL) / 2.0;
    let end = |percent| whole.mean + wider * (drawn.percentile(percent) - whole.mean);
    // The share of widened draws beyond zero; at least one in all is, because resamples are finitely many.
    let zero = whole.mean - whole.mean / wider;
    let rank = (0..RESAMPLES as u64).filter(|rank| match whole.mean >= 0.0 {
        true => drawn.at(*rank) <= zero,
        false => drawn.at(*rank) >= zero,
    });
    let beyond = rank.count() as f64;
    Some(Estimate {
        interval: Interval {
            low: end(outside),
            high: end(100.0 - outside),
        },
        probability: (2.0 * (beyond + 1.0) / (RESAMPLES as f64 + 1.0)).min(1.0),
        method: Method::Bootstrap,
    })
}

/// A mean without spread is certain; one that is zero then is no difference.
fn by_student(mean: f64, error: f64, freedom: f64) -> f64 {
    match (mean == 0.0, error > 0.0) {
        (true, _) => 1.0,
        (false, true) => student::two_sided(mean / error, freedom),
        (false, false) => 0.0,
    }
}

/// A place below `count`, each equally likely but for a part in 2⁶⁴.
fn below(random: &mut Mt64, count: usize) -> usize {
    ((u128::from(random.next_u64()) * count as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(values: &[f64]) -> Vec<Cluster> {
        let cluster = |value: &f64| Cluster {
            sum: *value,
            count: 1,
        };
        values.iter().map(cluster).collect()
    }

    /// The ten differences in hours of sleep of Student 1908 (R's `sleep`, paired): the t interval is 0.700 to 2.460, and the
    /// p-value 0.00283.
    #[test]
    fn the_bootstrap_agrees_with_student_where_values_are_almost_normal() {
        let hours = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let clusters = alone(&hours);
        let mean = Mean::of(&clusters).unwrap();
        assert!((mean.mean - 1.58).abs() < 1e-12);
        assert!((mean.error.unwrap() - 0.388_96).abs() < 1e-5);
        let found = estimate(&clusters).unwrap();
        assert_eq!(found.method, Method::Bootstrap);
        assert!((found.interval.low - 0.70).abs() < 0.25, "{found:?}");
        assert!((found.interval.high - 2.46).abs() < 0.35, "{found:?}");
        assert!(found.probability < 0.01, "{found:?}");
        // Nothing is left to chance.
        assert_eq!(estimate(&clusters), Some(found));
    }

    #[test]
    fn many_clusters_have_students_interval() {
        let values: Vec<f64> = (0..2001).map(|i| f64::from(i % 5)).collect();
        let found = estimate(&alone(&values)).unwrap();
        assert_eq!(found.method, Method::Student);
        // The deviation is √2, so the half is 1.961 √2 / √2001.
        let half = (found.interval.high - found.interval.low) / 2.0;
        assert!((half - 0.062_02).abs() < 1e-4, "{half}");
        let (few, _) = values.split_at(RESAMPLED);
        let few = estimate(&alone(few)).unwrap();
        let narrower = (few.interval.high - few.interval.low) / 2.0;
        assert!((narrower / half - 2001_f64.sqrt() / 1000_f64.sqrt()).abs() < 0.12);
    }

    /// Turns that repeat each other say no more than one of them.
    #[test]
    fn values_of_a_cluster_count_as_what_they_show() {
        let turns = |size: u64| -> Vec<Cluster> {
            let of = |i: u64| Cluster {
                sum: (size * (i % 2)) as f64,
                count: size,
            };
            (0..50).map(of).collect()
        };
        let [one, ten] = [1, 10].map(|size| estimate(&turns(size)).unwrap().interval);
        assert!((one.low - ten.low).abs() < 1e-12 && (one.high - ten.high).abs() < 1e-12);
        let mean = Mean::of(&turns(10)).unwrap();
        // Of 49 degrees of freedom the quantile is 2.0096.
        assert!((mean.independent(500) - 49.0 * 0.951_2).abs() < 0.01);
        // Alternating within each, the conversations are all alike: nothing clusters.
        let mixed = vec![
            Cluster {
                sum: 5.0,
                count: 10
            };
            50
        ];
        assert!((Mean::of(&mixed).unwrap().independent(500) - 475.6).abs() < 0.1);
        let right = vec![
            Cluster {
                sum: 10.0,
                count: 10
            };
            50
        ];
        assert_eq!(Mean::of(&right).unwrap().independent(500), 50.0);
    }

    #[test]
    fn one_cluster_has_a_mean_and_no_interval() {
        let one = [Cluster { sum: 3.0, count: 4 }];
        assert_eq!(Mean::of(&one).unwrap().mean, 0.75);
        assert_eq!((estimate(&one), estimate(&[])), (None, None));
        assert_eq!(Mean::of(&[Cluster::default()]), None);
    }

    /// How often intervals of skewed values hold the mean. Coverage of the nominal 95 % from twenty lognormal values is known
    /// to be some 88 to 93 % for any interval of this kind.
    #[test]
    fn intervals_hold_the_mean() {
        let mut random = Mt64::new(3);
        let mut uniform = move || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let mut held = 0;
        for _ in 0..200 {
            let values: Vec<f64> = (0..20).map(|_| uniform().sqrt()).collect();
            let found = estimate(&alone(&values)).unwrap().interval;
            held += u32::from(found.low <= 2.0 / 3.0 && 2.0 / 3.0 <= found.high);
        }
        assert!((182..=198).contains(&held), "{held} of 200");
    }

    /// Where there is no difference, one is found in about five of a hundred.
    #[test]
    fn chance_is_rarely_a_difference() {
        let mut random = Mt64::new(4);
        let mut uniform = move || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let trials = 300;
        let found = (0..trials).filter(|_| {
            let values: Vec<f64> = (0..40).map(|_| uniform() - uniform()).collect();
            estimate(&alone(&values)).unwrap().probability < 0.05
        });
        let found = found.count();
        assert!((4..=28).contains(&found), "{found} of {trials}");
    }
}

//! Values that a second variable of two values divides, such as the grades of right and of wrong
//! answers: the distance of the two groups.
//!
//! Both figures assume independent values, and neither takes a common scale of the two variables.

use crate::moments::{mean, mean_if_any, squares_about};

/// The values that are `false`, and the values that are `true`, each in order.
pub fn split(values: &[(f64, bool)]) -> [Vec<f64>; 2] {
    [false, true].map(|wanted| {
        let own = values.iter().filter(|(_, is)| *is == wanted);
        own.map(|(value, _)| *value).collect()
    })
}

/// Computes the point-biserial correlation (Tate 1954, "Correlation between a discrete and a
/// continuous variable"), which is Pearson's where one variable has two values:
/// `scipy.stats.pointbiserialr`. `None` unless both kinds and two values occur.
pub fn point_biserial(values: &[(f64, bool)]) -> Option<f64> {
    let [no, yes] = split(values);
    let apart = mean_if_any(&yes)? - mean_if_any(&no)?;
    let (n0, n1, n) = (no.len() as f64, yes.len() as f64, values.len() as f64);
    let all: Vec<f64> = values.iter().map(|(value, _)| *value).collect();
    let deviation = (squares_about(&all, mean(&all)) / n).sqrt();
    (deviation > 0.0).then(|| (apart / deviation * (n1 * n0).sqrt() / n).clamp(-1.0, 1.0))
}

/// Computes the probability that a value that is `true` is above one that is `false`, ties counting
/// as half: Mann and Whitney's U by mean ranks over the number of pairs (Hanley and McNeil 1982,
/// "The meaning and use of the area under a receiver operating characteristic curve"). `None`
/// unless both kinds occur.
pub fn concordance(values: &[(f64, bool)]) -> Option<f64> {
    let n1 = values.iter().filter(|(_, is)| *is).count() as f64;
    let n0 = values.len() as f64 - n1;
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut ranks = 0.0;
    let mut place = 0;
    for equal in sorted.chunk_by(|a, b| a.0 == b.0) {
        let yes = equal.iter().filter(|(_, is)| *is).count() as f64;
        ranks += yes * (place as f64 + (equal.len() as f64 + 1.0) / 2.0);
        place += equal.len();
    }
    (n0 > 0.0 && n1 > 0.0).then(|| (ranks - n1 * (n1 + 1.0) / 2.0) / (n0 * n1))
}

//! Tests of several differences at once: which of them are shown, by their p-values.
//!
//! The more differences are looked at, the more of them seem large by chance. Benjamini and
//! Hochberg's procedure bounds the share of differences that are not there among the shown ones.
//! Differences from one reference whose correlation is known have a sharper test,
//! [`Dunnett`](crate::dunnett::Dunnett).

/// Returns for each of several differences if it is shown. Benjamini and Hochberg's procedure: if
/// no figure differs, it shows any in a share `outside` of comparisons, however many figures there
/// are. If many differ, that share of the shown ones is false. Assumes p-values that are
/// independent or positively dependent (Benjamini and Hochberg 1995, "Controlling the false
/// discovery rate"; Benjamini and Yekutieli 2001). `scipy.stats.false_discovery_control` adjusts
/// the p-values instead.
pub fn benjamini_hochberg(probabilities: &[f64], outside: f64) -> Vec<bool> {
    let mut sorted: Vec<f64> = probabilities.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let many = sorted.len() as f64;
    let limit = (1..)
        .zip(&sorted)
        .filter(|(rank, p)| **p <= outside * f64::from(*rank) / many)
        .map(|(_, p)| *p)
        .last();
    let is_shown = |p: &f64| limit.is_some_and(|limit| *p <= limit);
    probabilities.iter().map(is_shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest p-value at or below its rank's level counts, and all below it.
    #[test]
    fn benjamini_and_hochberg_show_more_of_many() {
        let shown = |probabilities: &[f64]| benjamini_hochberg(probabilities, 0.05);
        assert_eq!(shown(&[0.04, 0.03]), [true, true]);
        assert_eq!(shown(&[0.04, 0.5]), [false, false]);
        assert_eq!(shown(&[0.5, 0.03, 0.02, 0.6]), [false, false, false, false]);
        assert_eq!(shown(&[]), Vec::<bool>::new());
    }
}

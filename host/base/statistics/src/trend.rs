//! Trends of values in order: a straight line, with the slope that several groups have in common.

use crate::difference::StandardError;
use crate::moments::mean;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slope {
    /// The change of the value with each step.
    pub slope: f64,
    /// The standard error of the slope, and its degrees of freedom.
    pub sure: StandardError,
}

/// Computes the slope that groups of points have in common, each group about a level of its own. It
/// is least squares with a dummy variable for each group (Student's test of a regression, as
/// `scipy.stats.linregress` has it for a single group). Assumes that the residuals are independent,
/// normal and equally large in all groups. Groups of one point say nothing. `None` where nothing is
/// left to estimate the error from.
pub fn slope(groups: &[Vec<(f64, f64)>]) -> Option<Slope> {
    let (mut xx, mut xy, mut yy, mut freedom) = (0.0, 0.0, 0.0, -1.0);
    for points in groups.iter().filter(|points| points.len() > 1) {
        let [xs, ys]: [Vec<f64>; 2] =
            [points.iter().map(|(x, _)| *x).collect(), points.iter().map(|(_, y)| *y).collect()];
        let (centre, level) = (mean(&xs), mean(&ys));
        for (x, y) in points {
            xx += (x - centre).powi(2);
            xy += (x - centre) * (y - level);
            yy += (y - level).powi(2);
        }
        freedom += points.len() as f64 - 1.0;
    }
    if freedom < 1.0 {
        return None;
    }
    let slope = xy / xx;
    let rest = (yy - slope * xy).max(0.0);
    let error = (rest / freedom / xx).sqrt();
    Some(Slope { slope, sure: StandardError { error, freedom } })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By `scipy.stats.linregress`, and by hand for two groups.
    #[test]
    fn slopes_are_those_of_least_squares() {
        let line = vec![(1.0, 2.0), (2.0, 3.0), (3.0, 5.0), (4.0, 4.0)];
        let found = slope(std::slice::from_ref(&line)).unwrap();
        assert!((found.slope - 0.8).abs() < 1e-12 && found.sure.freedom == 2.0);
        assert!((found.sure.error - 0.424_264_068_711_928_5).abs() < 1e-12);
        // A second group at another level has the same slope, and three degrees of freedom more.
        let above = line.iter().map(|(x, y)| (x + 9.0, y + 50.0)).collect();
        let both = slope(&[line, above]).unwrap();
        assert!((both.slope - 0.8).abs() < 1e-12 && both.sure.freedom == 5.0);
    }

    #[test]
    fn nothing_is_left_of_too_few_points() {
        let two = vec![(1.0, 2.0), (2.0, 3.0)];
        assert_eq!(slope(&[two, vec![(1.0, 9.0)]]), None);
        assert_eq!(slope(&[]), None);
    }
}

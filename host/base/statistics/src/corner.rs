//! Two straight lines that meet in a corner, and one straight line beside them.
//!
//! The lines are fitted by least squares, with the corner wherever the squares are least (Hudson
//! 1966, "Fitting segmented curves whose join points have to be estimated"). The caller judges by
//! the squares and the slopes whether two lines say more than one.

/// Corners that are tried between two points.
const STEPS: u32 = 64;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Corner {
    pub at: f64,
    pub level: f64,
    /// The slopes below it and above it.
    pub slopes: [f64; 2],
    /// The sum of squares that the lines leave.
    pub squares: f64,
}

/// Finds the corner of the two lines that leave the least squares, with at least two points on
/// either side of it. Points are in ascending order of their first number, and are assumed to lie
/// off the lines independently and equally far. `None` of fewer than four, and where no corner has
/// one solution.
pub fn corner(points: &[(f64, f64)]) -> Option<Corner> {
    let mut best: Option<Corner> = None;
    let inner = points.get(1..points.len().saturating_sub(1))?;
    for pair in inner.windows(2) {
        for step in 0..=STEPS {
            let share = f64::from(step) / f64::from(STEPS);
            let at = pair[0].0 + (pair[1].0 - pair[0].0) * share;
            if let Some(fit) = fit(points, at)
                && best.as_ref().is_none_or(|best| fit.squares < best.squares)
            {
                best = Some(fit);
            }
        }
    }
    best
}

/// Computes the squares that one line leaves, by least squares: `np.polyfit(x, y, 1, full=True)`.
pub fn line(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|own| own.0), mean(|own| own.1));
    let sum = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
    let (xx, xy) = (sum(&|own| (own.0 - x).powi(2)), sum(&|own| (own.0 - x) * (own.1 - y)));
    let slope = xy / xx;
    sum(&|own| (own.1 - y - slope * (own.0 - x)).powi(2))
}

/// The best two lines that meet at a place: level + below * min(x - at, 0) + above * max(x - at,
/// 0).
fn fit(points: &[(f64, f64)], at: f64) -> Option<Corner> {
    let row = |x: f64| [1.0, (x - at).min(0.0), (x - at).max(0.0)];
    // The normal equations, and Gauss's elimination.
    let mut matrix = [[0.0_f64; 4]; 3];
    for (x, y) in points {
        let row = row(*x);
        for (own, left) in matrix.iter_mut().zip(row) {
            for (cell, right) in own.iter_mut().zip(row.into_iter().chain([*y])) {
                *cell += left * right;
            }
        }
    }
    for pivot in 0..3 {
        let largest = (pivot..3)
            .max_by(|a, b| matrix[*a][pivot].abs().total_cmp(&matrix[*b][pivot].abs()))?;
        matrix.swap(pivot, largest);
        let first = matrix[pivot];
        if first[pivot].abs() < 1e-300 {
            return None;
        }
        for (place, own) in matrix.iter_mut().enumerate() {
            if place != pivot {
                let factor = own[pivot] / first[pivot];
                for (cell, other) in own.iter_mut().zip(first) {
                    *cell -= factor * other;
                }
            }
        }
    }
    let [level, below, above] = [0, 1, 2].map(|place| matrix[place][3] / matrix[place][place]);
    let squares = points.iter().map(|(x, y)| {
        let [one, left, right] = row(*x);
        (y - level * one - below * left - above * right).powi(2)
    });
    Some(Corner { at, level, slopes: [below, above], squares: squares.sum() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: lines of the slopes 2 and 0 that meet at 3.
    #[test]
    fn lines_that_meet_are_found() {
        let points: Vec<(f64, f64)> =
            [1.0_f64, 2.0, 4.0, 5.0, 6.0].iter().map(|x| (*x, 2.0 * x.min(3.0))).collect();
        let found = corner(&points).unwrap();
        assert!((found.at - 3.0).abs() < 1e-9 && (found.level - 6.0).abs() < 1e-9);
        assert!((found.slopes[0] - 2.0).abs() < 1e-9 && found.slopes[1].abs() < 1e-9);
        assert!(found.squares < 1e-20 && line(&points) > 1.0);
        assert_eq!((corner(&points[..3]), corner(&[])), (None, None));
    }
}

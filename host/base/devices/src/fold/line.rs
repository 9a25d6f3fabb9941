//! Values over time, as points that a line joins.

/// A gap between two points is not bridged if it is longer than this many intervals, and longer
/// than this many seconds: the values in between are unknown.
const LONGEST_GAP: (f64, f64) = (10.0, 5.0);

/// Values at instants in seconds, the earliest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    points: Vec<(f64, f64)>,
    gap: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    /// The sum of value times seconds.
    pub sum: f64,
    /// The seconds that the points cover.
    pub covered_s: f64,
}

impl Area {
    /// The mean value; `None` if the points cover nothing.
    pub fn mean(self) -> Option<f64> {
        (self.covered_s > 0.0).then(|| self.sum / self.covered_s)
    }
}

impl Line {
    /// A line through points that are `every` seconds apart unless one is missing.
    pub fn new(points: Vec<(f64, f64)>, every: f64) -> Self {
        Line { points, gap: (LONGEST_GAP.0 * every).max(LONGEST_GAP.1) }
    }

    /// The area below the line, and the covered part of the interval.
    pub fn area(&self, from: f64, to: f64) -> Area {
        self.sum(from, to, |a, b, [start, end]| {
            let at = |t: f64| a.1 + (b.1 - a.1) * (t - a.0) / (b.0 - a.0);
            (at(start) + at(end)) / 2.0 * (end - start)
        })
    }

    /// The same where each value holds until the next.
    pub fn steps(&self, from: f64, to: f64) -> Area {
        self.sum(from, to, |a, _, [start, end]| a.1 * (end - start))
    }

    fn sum(
        &self,
        from: f64,
        to: f64,
        part: impl Fn((f64, f64), (f64, f64), [f64; 2]) -> f64,
    ) -> Area {
        let mut area = Area { sum: 0.0, covered_s: 0.0 };
        for two in self.points.windows(2) {
            let (a, b) = (two[0], two[1]);
            let (start, end) = (a.0.max(from), b.0.min(to));
            if end > start && b.0 - a.0 <= self.gap {
                area.sum += part(a, b, [start, end]);
                area.covered_s += end - start;
            }
        }
        area
    }

    /// The values within an interval, its ends included.
    pub fn within(&self, from: f64, to: f64) -> impl Iterator<Item = f64> + '_ {
        let inside = self.points.iter().filter(move |(at, _)| (from..=to).contains(at));
        inside.map(|(_, value)| *value)
    }

    /// Returns the growth of a counter within an interval, as an area of one per second of growth.
    /// A counter that repeats its value was not read anew, so it counts from change to change.
    /// Fails if the counter went back, or did not move.
    pub fn growth(&self, from: f64, to: f64) -> Result<Area, &'static str> {
        let mut changes = self.points.clone();
        changes.dedup_by(|later, earlier| later.1 == earlier.1);
        if changes.len() < 2 {
            return Err(match self.points.len() {
                0 | 1 => "the counter was read once at most",
                _ => "the counter does not move",
            });
        }
        if changes.windows(2).any(|two| two[1].1 < two[0].1) {
            return Err("the counter went back");
        }
        let (first, last) = (changes[0].0, changes[changes.len() - 1].0);
        let (start, end) = (first.max(from), last.min(to));
        if end <= start {
            return Err("the counter did not move in this time");
        }
        let at = |t: f64| {
            let after = changes.partition_point(|(at, _)| *at <= t).clamp(1, changes.len() - 1);
            let (a, b) = (changes[after - 1], changes[after]);
            a.1 + (b.1 - a.1) * (t - a.0) / (b.0 - a.0)
        };
        Ok(Area { sum: at(end) - at(start), covered_s: end - start })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(points: &[(f64, f64)]) -> Line {
        Line::new(points.to_vec(), 1.0)
    }

    #[test]
    fn areas_within_an_interval() {
        let line = line(&[(0.0, 0.0), (2.0, 20.0), (4.0, 20.0)]);
        for (from, to, sum, covered_s) in [
            (0.0, 4.0, 60.0, 4.0),
            (1.0, 3.0, 35.0, 2.0),
            (0.5, 1.0, 3.75, 0.5),
            (-5.0, 1.0, 5.0, 1.0),
            (3.0, 9.0, 20.0, 1.0),
            (5.0, 9.0, 0.0, 0.0),
        ] {
            assert_eq!(line.area(from, to), Area { sum, covered_s }, "{from} {to}");
        }
        assert_eq!(line.area(1.0, 3.0).mean(), Some(17.5));
        assert_eq!(line.area(5.0, 9.0).mean(), None);
        assert_eq!(line.steps(1.0, 3.0).sum, 20.0, "0 for a second, then 20");
        assert_eq!(line.within(2.0, 4.0).collect::<Vec<_>>(), [20.0, 20.0]);
    }

    #[test]
    fn a_long_gap_is_not_bridged() {
        let line = line(&[(0.0, 10.0), (10.0, 10.0), (30.0, 10.0), (31.0, 10.0)]);
        let area = line.area(0.0, 31.0);
        assert_eq!((area.sum, area.covered_s), (110.0, 11.0));
    }

    #[test]
    fn counters_grow_from_change_to_change() {
        let growth = |points: &[(f64, f64)], from, to| line(points).growth(from, to);
        let area = |sum, covered_s| Ok(Area { sum, covered_s });
        let even = [(0.0, 100.0), (1.0, 110.0), (2.0, 120.0)];
        assert_eq!(growth(&even, 0.0, 2.0), area(20.0, 2.0));
        assert_eq!(growth(&even, 0.5, 1.5), area(10.0, 1.0));
        assert_eq!(growth(&even, -1.0, 9.0), area(20.0, 2.0));
        // Read anew every three seconds only.
        let seldom = [(0.0, 0.0), (1.0, 0.0), (3.0, 30.0), (4.0, 30.0), (6.0, 60.0), (7.0, 60.0)];
        assert_eq!(growth(&seldom, 0.0, 7.0), area(60.0, 6.0));
        assert_eq!(growth(&seldom, 2.0, 5.0), area(30.0, 3.0));
        assert_eq!(growth(&even, 3.0, 4.0), Err("the counter did not move in this time"));
        assert_eq!(growth(&[(0.0, 5.0), (1.0, 5.0)], 0.0, 1.0), Err("the counter does not move"));
        assert_eq!(growth(&even[..1], 0.0, 1.0), Err("the counter was read once at most"));
        assert_eq!(
            growth(&[(0.0, 5.0), (1.0, 7.0), (2.0, 1.0)], 0.0, 1.0),
            Err("the counter went back")
        );
    }
}

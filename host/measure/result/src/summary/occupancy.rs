//! Time that is spent in each of equal spans of a run, such as by requests in flight.

use model::units::Nanos;

/// Time spent in each of equal spans, summed over all stays, in whole nanoseconds: their order does
/// not matter, and a long stay costs no more than a short one.
pub struct Occupancy {
    grain: Nanos,
    /// Nanoseconds in spans that were begun or ended within. Records may state any instant, many
    /// times.
    part: Vec<i128>,
    /// The change of the weights that spend a whole span there, from one span to the next.
    whole: Vec<i128>,
}

impl Occupancy {
    /// An empty count, with this number of spans of that length from zero on. `grain` is above
    /// zero.
    #[must_use]
    pub fn new(grain: Nanos, spans: usize) -> Self {
        Occupancy { grain, part: vec![0; spans], whole: vec![0; spans + 1] }
    }

    /// Adds the time between two instants since the first span began; time after the last span is
    /// left out.
    pub fn add(&mut self, from: Nanos, to: Nanos) {
        self.add_weighed(from, to, 1);
    }

    /// The same, where each nanosecond counts this many times.
    pub(super) fn add_weighed(&mut self, from: Nanos, to: Nanos, weight: u64) {
        let weight = i128::from(weight);
        let grain = i128::from(self.grain.0);
        let end = grain * self.part.len() as i128;
        let (from, to) = (i128::from(from.0).min(end), i128::from(to.0).min(end));
        if to <= from {
            return;
        }
        let (first, last) = (from / grain, (to - 1) / grain);
        if first == last {
            self.part[first as usize] += (to - from) * weight;
            return;
        }
        self.part[first as usize] += ((first + 1) * grain - from) * weight;
        self.part[last as usize] += (to - last * grain) * weight;
        self.whole[first as usize + 1] += weight;
        self.whole[last as usize] -= weight;
    }

    /// The seconds spent in each span.
    #[must_use]
    pub fn seconds(self) -> Vec<f64> {
        self.nanos().map(|nanos| nanos as f64 / 1e9).collect()
    }

    /// The nanoseconds spent in each span, with their weights.
    pub(super) fn nanos(&self) -> impl Iterator<Item = i128> {
        let mut through = 0;
        self.part.iter().zip(&self.whole).map(move |(part, more)| {
            through += more;
            part + through * i128::from(self.grain.0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_dealt_to_the_spans_it_lies_in() {
        let mut occupancy = Occupancy::new(Nanos(10), 4);
        occupancy.add(Nanos(2), Nanos(5));
        occupancy.add(Nanos(5), Nanos(35));
        occupancy.add(Nanos(10), Nanos(20));
        occupancy.add(Nanos(38), Nanos(99));
        occupancy.add(Nanos(7), Nanos(7));
        let nanos: Vec<f64> = occupancy.seconds().iter().map(|s| (s * 1e9).round()).collect();
        assert_eq!(nanos, [8.0, 20.0, 10.0, 7.0]);
    }
}

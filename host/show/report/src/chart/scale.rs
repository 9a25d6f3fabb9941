//! Maps values to pixels, and places ticks at round numbers, whatever the data.

use super::{Axis, Ticks};
use model::number;

#[derive(Clone, Debug)]
pub struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    log: bool,
}

/// A place on an axis that is written out.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    pub at: f64,
    pub label: String,
}

impl Scale {
    /// Values between `low` and `high` lie between the pixels `from` and `to`.
    pub fn linear(low: f64, high: f64, from: f64, to: f64) -> Self {
        Scale { low, high, from, to, log: false }
    }

    /// The same by their logarithms. Both ends are more than zero.
    pub fn log(low: f64, high: f64, from: f64, to: f64) -> Self {
        Scale { low: low.ln(), high: high.ln(), from, to, log: true }
    }

    /// The pixel of a value. A value beyond an end is drawn at the end.
    pub fn place(&self, value: f64) -> f64 {
        let value = if self.log { value.max(f64::MIN_POSITIVE).ln() } else { value };
        let share = (value - self.low) / (self.high - self.low);
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        self.from + share * (self.to - self.from)
    }
}

/// The end of an axis from zero that includes a value and ends at a round number.
pub(crate) fn round_end(value: f64, about: usize) -> f64 {
    if !(value.is_finite() && value > 0.0) {
        return 1.0;
    }
    let step = number::round_step(value, about);
    (value / step - 1e-9).ceil() * step
}

/// About a given number of ticks for an axis.
pub fn ticks(axis: &Axis, log: bool, about: usize) -> Vec<Tick> {
    if matches!(axis.ticks, Ticks::None | Ticks::Names) {
        return Vec::new();
    }
    let values = if log {
        decades(axis.low, axis.high, about)
    } else {
        let mut step = number::round_step(axis.high - axis.low, about);
        if axis.ticks == Ticks::Counts {
            step = step.max(1.0);
        }
        let first = (axis.low / step - 1e-9).ceil() as i64;
        let last = (axis.high / step + 1e-9).floor() as i64;
        let at = (first..=last).map(|n| n as f64 * step);
        return at.map(|at| tick(axis, at, step)).collect();
    };
    // Half of the power of ten, so that 1.5 is not written as 2.
    let own = |at: f64| 0.5 * 10f64.powf(at.log10().floor());
    values.into_iter().map(|at| tick(axis, at, own(at))).collect()
}

fn tick(axis: &Axis, at: f64, step: f64) -> Tick {
    let label = match axis.ticks {
        Ticks::Percent => format!("{}%", number::tick(at * 100.0, step * 100.0)),
        _ => number::tick(at, step),
    };
    Tick { at, label }
}

/// Powers of ten between two values, with multiples if there are few, only some if many.
fn decades(low: f64, high: f64, about: usize) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let within = |multiples: &[f64], every: usize| -> Vec<f64> {
        let powers = (first..=last).step_by(every).map(|power| 10f64.powi(power));
        let all = powers.flat_map(|power| multiples.iter().map(move |m| m * power));
        all.filter(|at| *at >= low * 0.999_999 && *at <= high * 1.000_001).collect()
    };
    let finest = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0];
    let candidates = [
        within(&finest, 1),
        within(&[1.0, 2.0, 3.0, 5.0], 1),
        within(&[1.0, 2.0, 5.0], 1),
        within(&[1.0, 3.0], 1),
        within(&[1.0], 1),
        within(&[1.0], 2),
    ];
    let fits = candidates.iter().find(|ticks| ticks.len() <= about.max(3));
    fits.cloned().unwrap_or_else(|| within(&[1.0], 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(low: f64, high: f64, ticks: Ticks) -> Axis {
        Axis::new("", low, high, ticks)
    }

    fn labels(axis: &Axis, log: bool, about: usize) -> Vec<String> {
        ticks(axis, log, about).into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn ticks_stand_at_round_numbers() {
        let of = |low, high, about| labels(&axis(low, high, Ticks::Numbers), false, about);
        assert_eq!(of(0.0, 500.0, 5), ["0", "100", "200", "300", "400", "500"]);
        assert_eq!(of(0.0, 0.9, 4), ["0", "0.25", "0.5", "0.75"]);
        assert_eq!(of(0.0, 45_000.0, 4), ["0", "20k", "40k"]);
        assert_eq!(of(3.0, 3.0, 4), ["3"]);
        let shares = axis(0.0, 1.0, Ticks::Percent);
        assert_eq!(labels(&shares, false, 4), ["0%", "25%", "50%", "75%", "100%"]);
        let counts = axis(0.0, 2.0, Ticks::Counts);
        assert_eq!(labels(&counts, false, 10), ["0", "1", "2"]);
    }

    #[test]
    fn ticks_of_logarithms_are_as_many_as_fit() {
        let of = |low, high, about| labels(&axis(low, high, Ticks::Numbers), true, about);
        assert_eq!(of(1.0, 1000.0, 4), ["1", "10", "100", "1,000"]);
        assert_eq!(of(10.0, 100.0, 4), ["10", "20", "50", "100"]);
        assert_eq!(of(95.0, 210.0, 8), ["100", "150", "200"]);
        assert_eq!(of(0.5, 5.0, 6), ["0.5", "1", "2", "3", "5"]);
        assert_eq!(of(1.0, 5.0, 6), ["1", "1.5", "2", "3", "4", "5"]);
        assert_eq!(of(9_000.0, 21_000.0, 6), ["10k", "15k", "20k"]);
    }

    #[test]
    fn ends_are_round_and_hold_the_value() {
        for (value, end) in [(0.0, 1.0), (97.0, 100.0), (100.0, 100.0), (101.0, 150.0)] {
            assert_eq!(round_end(value, 4), end);
        }
    }

    #[test]
    fn places_are_between_the_ends() {
        let scale = Scale::linear(0.0, 10.0, 100.0, 0.0);
        assert_eq!([-5.0, 0.0, 5.0, 20.0].map(|v| scale.place(v)), [100.0, 100.0, 50.0, 0.0]);
        let log = Scale::log(1.0, 100.0, 0.0, 100.0);
        assert_eq!([0.0, 1.0, 10.0, 100.0].map(|v| log.place(v).round()), [0.0, 0.0, 50.0, 100.0]);
        assert_eq!(Scale::linear(1.0, 1.0, 7.0, 9.0).place(1.0), 7.0);
    }
}

//! A rate that changes over time, and the instants at which the area under it reaches a given
//! number.
//!
//! Everything is in closed form: no stepping, so that due times neither drift nor depend on a step.
//! The arrival chooses the numbers (1, 2, 3 … or a random process of rate 1).

use crate::units::Nanos;

/// Areas that differ by less than the first, or by less than the second as a share of the whole,
/// are equal. So a request at the very end of a stage belongs to the next stage, in spite of
/// rounded rates and durations.
const SLACK: (f64, f64) = (1e-9, 1e-12);

crate::words! {
    /// The course of a rate from one value to another.
    pub enum Shape {
        /// By the same amount in every second.
        Linear = "linear",
        /// By the same factor in every second.
        Exponential = "exponential",
    }
}

/// A rate, constant or changing, for a while.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Stage {
    /// Requests per second at its beginning.
    pub from: f64,
    /// Requests per second at its end.
    pub to: f64,
    /// Change of the rate between the two.
    pub shape: Shape,
    /// Length of the stage.
    #[serde(rename = "for")]
    pub length: Nanos,
}

impl Stage {
    /// Requests due within it: the area under its rate.
    pub fn area(&self) -> f64 {
        let seconds = self.length.as_secs_f64();
        if self.from == self.to {
            return self.from * seconds;
        }
        match self.shape {
            Shape::Linear => (self.from + self.to) / 2.0 * seconds,
            Shape::Exponential => (self.to - self.from) / (self.to / self.from).ln() * seconds,
        }
    }

    /// Seconds from its beginning until this many requests were due.
    ///
    /// Linear: `from·t + k·t²/2 = area` with `k = (to − from) / length`, solved so that nothing
    /// cancels for a small `k`. Exponential: `from/g·(e^(g·t) − 1) = area` with
    /// `g = ln(to / from) / length`.
    fn seconds_until(&self, area: f64) -> f64 {
        let seconds = self.length.as_secs_f64();
        if self.from == self.to {
            return area / self.from;
        }
        match self.shape {
            Shape::Linear => {
                let slope = (self.to - self.from) / seconds;
                let square = (self.from * self.from + 2.0 * slope * area).max(0.0);
                let sum = self.from + square.sqrt();
                if sum > 0.0 { 2.0 * area / sum } else { 0.0 }
            }
            Shape::Exponential => {
                let growth = (self.to / self.from).ln() / seconds;
                (growth * area / self.from).ln_1p() / growth
            }
        }
    }
}

/// Computes the length of a change from one rate to another with this many due requests.
pub fn length_for(shape: Shape, from: f64, to: f64, requests: u64) -> Nanos {
    let second = Stage { from, to, shape, length: Nanos(1_000_000_000) };
    Nanos::from_secs_f64(requests as f64 / second.area())
}

pub(super) struct Profile<S> {
    stages: S,
    current: Option<Stage>,
    /// Seconds, and the area, before the current stage.
    before: (f64, f64),
}

impl<S: Iterator<Item = Stage>> Profile<S> {
    pub(super) fn new(mut stages: S) -> Self {
        Profile { current: stages.next(), stages, before: (0.0, 0.0) }
    }

    /// Seconds until the area has reached `area`, which must not be less than in the call before.
    /// At a rate of zero, the end of that period. `None` beyond the last stage.
    pub(super) fn seconds_until(&mut self, area: f64) -> Option<f64> {
        loop {
            let stage = self.current?;
            let (seconds, before) = self.before;
            let end = before + stage.area();
            if area < end - SLACK.0 - SLACK.1 * end {
                return Some(seconds + stage.seconds_until((area - before).max(0.0)));
            }
            self.before = (seconds + stage.length.as_secs_f64(), end);
            self.current = self.stages.next();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stage(shape: Shape, from: f64, to: f64, seconds: f64) -> Stage {
        Stage { from, to, shape, length: Nanos::from_secs_f64(seconds) }
    }

    #[test]
    fn areas_are_exact_for_each_shape() {
        assert_eq!(stage(Shape::Linear, 2.0, 4.0, 10.0).area(), 30.0);
        assert_eq!(stage(Shape::Linear, 3.0, 3.0, 10.0).area(), 30.0);
        assert_eq!(stage(Shape::Exponential, 3.0, 3.0, 10.0).area(), 30.0);
        // The integral of 2^t from 0 to 3 is 7 / ln 2.
        let area = stage(Shape::Exponential, 1.0, 8.0, 3.0).area();
        assert!((area - 7.0 / 2f64.ln()).abs() < 1e-12);
        assert_eq!(length_for(Shape::Linear, 2.0, 4.0, 30).0, 10_000_000_000);
    }

    #[test]
    fn requests_at_the_end_of_a_stage_belong_to_the_next() {
        // A tenth a second for thirty seconds is a little more than 3 in binary.
        let stages = [
            stage(Shape::Linear, 0.1, 0.1, 30.0),
            stage(Shape::Linear, 0.0, 0.0, 5.0),
            stage(Shape::Linear, 1.0, 1.0, 2.0),
        ];
        let mut profile = Profile::new(stages.into_iter());
        let at: Vec<_> = (0..6).map(|i| profile.seconds_until(f64::from(i))).collect();
        let at: Vec<_> = at.into_iter().flatten().collect();
        assert_eq!(at, [0.0, 10.0, 20.0, 35.0, 36.0]);
    }

    fn any_stage() -> impl Strategy<Value = Stage> {
        let shape = prop_oneof![Just(Shape::Linear), Just(Shape::Exponential)];
        (shape, 0.01..500.0, 0.01..500.0, 0.001..100.0)
            .prop_map(|(shape, from, to, seconds)| stage(shape, from, to, seconds))
    }

    /// The area under a rate by Simpson's rule, which knows nothing of the closed forms.
    fn simpson(stages: &[Stage], until: f64) -> f64 {
        let (mut begins, mut area) = (0.0, 0.0);
        for stage in stages {
            let seconds = stage.length.as_secs_f64();
            let rate = |t: f64| match stage.shape {
                Shape::Linear => stage.from + (stage.to - stage.from) * t / seconds,
                Shape::Exponential => stage.from * (stage.to / stage.from).powf(t / seconds),
            };
            let length = (until - begins).clamp(0.0, seconds);
            let steps = 2000;
            let step = length / f64::from(steps);
            let sum: f64 = (0..steps)
                .map(|i| {
                    let t = f64::from(i) * step;
                    rate(t) + 4.0 * rate(t + step / 2.0) + rate(t + step)
                })
                .sum();
            area += sum * step / 6.0;
            begins += seconds;
        }
        area
    }

    proptest! {
        #[test]
        fn instants_match_the_area_under_the_rate(
            stages in prop::collection::vec(any_stage(), 1..5),
            shares in prop::collection::vec(0.0..0.999_f64, 1..6),
        ) {
            let whole: f64 = stages.iter().map(Stage::area).sum();
            let mut areas: Vec<f64> = shares.iter().map(|share| share * whole).collect();
            areas.sort_by(f64::total_cmp);
            let mut profile = Profile::new(stages.clone().into_iter());
            let mut last = 0.0;
            for area in areas {
                let at = profile.seconds_until(area).unwrap();
                prop_assert!(at >= last);
                last = at;
                let under = simpson(&stages, at);
                prop_assert!((under - area).abs() < 1e-6 * (1.0 + whole), "{under} {area}");
            }
            prop_assert_eq!(profile.seconds_until(whole), None);
        }
    }
}

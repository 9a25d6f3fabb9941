//! Repeats: runs of the same plan that are compared with each other, and the spread of their
//! figures. The spread within one run is in its summary.

use crate::until::Stopped;
use crate::{Choice, Ends, figures};
use result::figure::Figure;
use result::summary::Summary;
use statistics::interval::LEVEL;
use statistics::{Interval, anytime, mean, student, variance};

/// Fewer repeats have a range and no interval.
pub const FEWEST: usize = 3;

/// The spread between repeats of a scenario.
#[model::apply(model::document!)]
pub struct Repeats {
    /// The scenario.
    pub scenario: String,
    /// The number of repeats that were measured.
    pub runs: usize,
    /// True if each repeat drew new requests with a seed of its own; absent if all sent the same
    /// requests (`--same-requests`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub new_requests: bool,
    /// Confidence level of the intervals, in percent.
    pub level: f64,
    /// Each figure that any of them has.
    pub figures: Vec<Repeated>,
    /// The end of the repeats; absent of a fixed number of repeats.
    pub stopped: Option<Stopped>,
}

/// A figure of several repeats.
#[model::apply(model::document!)]
pub struct Repeated {
    /// Its name.
    pub figure: String,
    /// Its unit; empty for a share or a number.
    pub unit: String,
    /// The number of repeats that have it.
    pub runs: usize,
    /// The mean over them.
    pub mean: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// The coefficient of variation: the standard deviation (divided by n - 1) over the mean, in
    /// percent. Absent for one run, and if the mean is zero.
    pub variation_percent: Option<f64>,
    /// The interval of the mean of many repeats with 95 % confidence, by Student's distribution;
    /// absent of fewer than three: `min` and `max` are the range of two. Of repeats that stop
    /// themselves, it holds whenever one looks.
    pub interval: Option<Ends>,
}

/// Summarizes repeats: the spread of the headline's figures, and their end if they stopped
/// themselves because of further figures.
pub fn repeats(
    scenario: &str,
    summaries: &[Summary],
    stopped: Option<(Stopped, &[Figure])>,
) -> Repeats {
    let all: Vec<&Summary> = summaries.iter().collect();
    let mut figures = figures(&Choice::Headline, &all, &[]);
    let (stopped, further) = stopped.unzip();
    for figure in further.unwrap_or_default() {
        if !figures.contains(figure) {
            figures.push(figure.clone());
        }
    }
    let interval: fn(&[f64]) -> Option<Interval> = match stopped {
        Some(_) => anytime::mean,
        // With one degree of freedom, the interval of a throughput reaches below zero.
        None => |values| {
            student::interval(values, 1.0 - LEVEL / 100.0).filter(|_| values.len() >= FEWEST)
        },
    };
    let figures = figures.iter().filter_map(|figure| repeated(figure, summaries, interval));
    Repeats {
        scenario: scenario.to_owned(),
        runs: summaries.len(),
        new_requests: false,
        level: LEVEL,
        figures: figures.collect(),
        stopped,
    }
}

fn repeated(
    figure: &Figure,
    summaries: &[Summary],
    interval: fn(&[f64]) -> Option<Interval>,
) -> Option<Repeated> {
    // One that failures make infinite has no distance from the others.
    let values = summaries.iter().filter_map(|s| figure.read(s));
    let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    let min = values.iter().copied().reduce(f64::min)?;
    let max = values.iter().copied().reduce(f64::max)?;
    let mean = mean(&values);
    let deviation = variance(&values).map(f64::sqrt).filter(|_| mean != 0.0);
    Some(Repeated {
        figure: figure.to_string(),
        unit: figure.unit().to_owned(),
        runs: values.len(),
        mean,
        min,
        max,
        variation_percent: deviation.map(|deviation| 100.0 * deviation / mean.abs()),
        interval: interval(&values).map(Ends::from),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchanges::{facts, reply};
    use model::exchange::Kind::{End, Text};

    /// One request each, whose first token comes after 100, 110 and 120 ms.
    #[test]
    fn the_spread_of_three_repeats() {
        let summary = |first: u64| {
            let at = 1000 + first;
            let events = [(at, Text, None, 1), (at + 50, Text, None, 1), (at + 50, End, None, 0)];
            Summary::new(&facts(), &[reply(0, 1000, &events)])
        };
        let found = repeats("chat", &[100, 110, 120].map(summary), None);
        let ttft = &found.figures[0];
        assert_eq!((ttft.figure.as_str(), ttft.runs), ("ttft.mean", 3));
        assert_eq!((ttft.mean, ttft.min, ttft.max), (110.0, 100.0, 120.0));
        assert_eq!(ttft.variation_percent, Some(100.0 * 10.0 / 110.0));
        // t(2) = 4.3027, and 10 / √3.
        let ends = ttft.interval.unwrap();
        assert!(
            (ends.high - 134.841).abs() < 0.001 && (ends.low - 85.159).abs() < 0.001,
            "{ends:?}"
        );
        let one = repeats("chat", &[summary(100)], None);
        assert_eq!((one.figures[0].variation_percent, one.figures[0].interval), (None, None));
        // Student's interval of these two reaches from 41 to 169 ms.
        let two = &repeats("chat", &[100, 110].map(summary), None).figures[0];
        assert_eq!((two.min, two.max, two.interval), (100.0, 110.0, None));
        assert_eq!(repeats("chat", &[], None).figures, []);
    }
}

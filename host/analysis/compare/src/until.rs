//! Repeats that stop themselves: runs are made until the mean of a figure over them is known to
//! within a bound.
//!
//! This module owns the notation (`ttft.p99 ±5%`), the estimate of the number of runs, and the
//! text. `statistics::anytime` gives the interval, which holds at any time of looking. The command
//! line makes the runs, and `repeats` computes their spread.

use std::fmt::Write as _;
use std::str::FromStr;

use model::number;
use result::figure::Figure;
use result::finding::Verdict;
use result::limit::{Difference, EITHER_SIDE, Grammar, LimitError, Numbers};
use result::summary::Summary;
use statistics::{anytime, mean_if_any, variance};

/// Runs of a scenario at most, unless the user says otherwise.
pub const MOST: u32 = 20;

/// Runs of a scenario at least: fewer have no interval.
pub const FEWEST: u32 = anytime::FEWEST as u32;

/// Variations from run to run, for forecasts of the runs: a steady engine's, and a tail's.
const ASSUMED: [f64; 2] = [0.02, 0.05];

/// More runs than this are not counted out.
const FAR: usize = 10_000;

/// The certainty that a figure must reach.
#[derive(Clone, Debug, PartialEq)]
pub struct Until {
    pub figure: Figure,
    /// The most that the interval of its mean may reach from that mean on either side; above zero.
    pub within: Difference,
}

const GRAMMAR: Grammar<()> = Grammar {
    signs: EITHER_SIDE,
    numbers: Numbers::AboveZero,
    example: "`ttft.p99 ±5%`, `ttft.p99 +-5%` or `e2e.mean ±20ms`",
};

impl FromStr for Until {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let mut written = GRAMMAR.read(text)?;
        let figure = written.figure();
        if let Some(figure) = figure.as_ref().filter(|figure| figure.unit().is_empty()) {
            written.wrong(format!(
                "`{figure}` is a share or a count, and a few runs cannot show its variation; name a latency, a throughput or another figure with a unit"
            ));
        }
        let within = written.difference(figure.as_ref().map(Figure::unit));
        let limit = figure.zip(within);
        written.finish(limit.map(|(figure, within)| Until { figure, within }))
    }
}

impl std::fmt::Display for Until {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.within {
            Difference::Percent(percent) => write!(f, "{} \u{b1}{percent} %", self.figure),
            Difference::Absolute(amount) => {
                write!(f, "{} \u{b1}{amount} {}", self.figure, self.figure.unit())
            }
        }
    }
}

/// The certainty of a figure's mean after some repeats.
#[model::apply(model::document!)]
pub struct Known {
    /// The condition as it was written.
    pub asked: String,
    /// The figure's name.
    pub figure: String,
    /// Its unit.
    pub unit: String,
    /// The valid repeats that have it.
    pub runs: usize,
    /// Its mean over them; absent if none has it.
    pub mean: Option<f64>,
    /// The distance to which the 95 % interval reaches from the mean on either side, at any time of
    /// looking; absent of fewer than three repeats, and where all are equal.
    pub half_width: Option<f64>,
    /// The number of further repeats that it takes, as far as those so far show; absent of one
    /// repeat, and once it is reached.
    pub more: Option<usize>,
    /// True if the interval reaches no further than the condition allows.
    pub is_reached: bool,
}

model::words! {
    /// The reason why repeats ended.
    pub enum Ended {
        /// All figures are as sure as they were to be.
        Reached = "reached",
        /// The largest number of repeats was made.
        Most = "most",
        /// The user interrupted them.
        Interrupted = "interrupted",
    }
}

/// The end of repeats that stop themselves.
#[model::apply(model::document!)]
pub struct Stopped {
    /// The reason.
    pub because: Ended,
    /// The most repeats that there could have been.
    pub most: u32,
    /// The certainty of each figure.
    pub known: Vec<Known>,
}

impl Until {
    /// The repeats that a figure of this variation takes; `None` if that depends on its size.
    fn beforehand(&self, variation: f64) -> Option<Option<usize>> {
        match self.within {
            Difference::Percent(percent) => Some(anytime::needed(variation, percent / 100.0, FAR)),
            Difference::Absolute(_) => None,
        }
    }

    /// The expected number of repeats, as text, before the first one.
    pub fn forecast(&self, most: u32) -> String {
        let counted = ASSUMED.iter().filter_map(|variation| {
            let runs = self.beforehand(*variation)?;
            let runs = runs.map_or_else(|| format!("more than {FAR}"), |runs| runs.to_string());
            Some(format!(
                "about {runs} runs if the figure varies by {} from run to run",
                number::percent(*variation)
            ))
        });
        let counted: Vec<String> = counted.collect();
        let counted = if counted.is_empty() {
            "the second run shows the number of runs".to_owned()
        } else {
            counted.join(", ")
        };
        format!("{self}: {counted}; at least {FEWEST}, at most {most}")
    }

    /// Computes the certainty of the figure after these repeats.
    pub fn known(&self, summaries: &[Summary]) -> Known {
        let valid = summaries.iter().filter(|summary| summary.verdict != Verdict::Invalid);
        let values = valid.filter_map(|summary| self.figure.read(summary));
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        let centre = mean_if_any(&values);
        let interval = anytime::mean(&values);
        let half_width = interval.map(|interval| (interval.high - interval.low) / 2.0);
        // That a few values are equal does not show how they vary.
        let half_width = half_width.filter(|half| *half > 0.0);
        let within = centre.map(|centre| match self.within {
            Difference::Percent(percent) => centre.abs() * percent / 100.0,
            Difference::Absolute(amount) => amount,
        });
        let is_reached = half_width.zip(within).is_some_and(|(half, within)| half <= within);
        let more = variance(&values).zip(within).and_then(|(variance, within)| {
            let needed = anytime::needed(variance.sqrt(), within, FAR)?;
            (!is_reached).then(|| needed.saturating_sub(values.len()).max(1))
        });
        Known {
            asked: self.to_string(),
            figure: self.figure.to_string(),
            unit: self.figure.unit().to_owned(),
            runs: values.len(),
            mean: centre,
            half_width,
            more,
            is_reached,
        }
    }
}

impl Known {
    /// Writes the state, such as `ttft.p99 is 104 ms ± 7.2 % after 4 runs`.
    fn state(&self) -> String {
        let Known { figure, unit, runs, .. } = self;
        let after = number::plural(*runs as u64, "run");
        let Some(mean) = self.mean else { return format!("{figure} is in no valid run yet") };
        let value = number::significant(mean, 4);
        match self.half_width {
            Some(half) => format!(
                "{figure} is {value} {unit} \u{b1} {} after {after}",
                number::percent(half / mean.abs())
            ),
            None if *runs >= anytime::FEWEST => {
                format!("{figure} is {value} {unit} in all of {after}, so its variation is unknown")
            }
            None => format!("{figure} is {value} {unit} after {after}"),
        }
    }

    /// Writes the state and the number of further repeats; `time` gives the time that they take.
    pub fn progress(&self, time: impl Fn(usize) -> String) -> String {
        let mut words = self.state();
        let _ = match (self.is_reached, self.more) {
            (true, _) => write!(words, ", within the bound ({})", self.asked),
            (false, Some(more)) => {
                let runs = number::plural(more as u64, "more run");
                write!(words, "; about {runs} ({}) for {}", time(more), self.asked)
            }
            (false, None) => write!(words, "; {} takes at least {FEWEST} runs", self.asked),
        };
        words
    }
}

impl Stopped {
    /// Describes the end of the repeats, in a line for each figure.
    pub fn lines(&self) -> Vec<String> {
        let Stopped { most, known, .. } = self;
        let why = match self.because {
            Ended::Reached => "Stopped".to_owned(),
            Ended::Most => format!("Stopped at {most} runs, the limit of --repeat"),
            Ended::Interrupted => "Interrupted".to_owned(),
        };
        let lines = known.iter().map(|known| {
            let end = match (known.is_reached, known.more) {
                (true, _) => format!("within the bound ({})", known.asked),
                (false, Some(more)) => format!(
                    "not within the bound ({}), which takes about {}",
                    known.asked,
                    number::plural(more as u64, "more run")
                ),
                (false, None) => format!("not within the bound ({})", known.asked),
            };
            format!("{why}: {}, {end}.", known.state())
        });
        let mut lines: Vec<String> = lines.collect();
        lines.push("Intervals hold at any time (a confidence sequence), so stopping at a narrow one is sound; they are wider than intervals of a fixed number of runs.".to_owned());
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchanges::{facts, reply};
    use model::exchange::Kind::{End, Text};

    /// A run of one request; its first token comes after this many milliseconds.
    fn summary(first: u64) -> Summary {
        let at = 1000 + first;
        let events = [(at, Text, None, 1), (at + 50, Text, None, 1), (at + 50, End, None, 0)];
        Summary::new(&facts(), &[reply(0, 1000, &events)])
    }

    fn until(text: &str) -> Until {
        text.parse().unwrap()
    }

    #[test]
    fn bounds_are_read() {
        for (text, within) in [
            ("ttft.p99 \u{b1}5%", Difference::Percent(5.0)),
            ("ttft.p99 +-5%", Difference::Percent(5.0)),
            (" ttft.p99+/-0.5 % ", Difference::Percent(0.5)),
            ("e2e.mean \u{b1}20ms", Difference::Absolute(20.0)),
            ("throughput.requests-per-s +-0.5req/s", Difference::Absolute(0.5)),
        ] {
            assert_eq!(until(text).within, within, "{text}");
        }
        assert_eq!(until("ttft.p99 +-5%").to_string(), "ttft.p99 \u{b1}5 %");
    }

    /// For 99, 100 and 101 ms the standard error is 1 / √3, and the quantile 13.2219.
    #[test]
    fn three_runs_are_as_sure_as_the_confidence_sequence_says() {
        let known = until("ttft.mean +-5%").known(&[99, 100, 101].map(summary));
        assert_eq!((known.runs, known.mean, known.is_reached), (3, Some(100.0), false));
        assert!((known.half_width.unwrap() - 7.633_67).abs() < 1e-4, "{known:?}");
        // Four of that spread reach 6.5382 / 2 ms.
        assert_eq!(known.more, Some(1));
        let expected = "ttft.mean is 100 ms \u{b1} 7.6 % after 3 runs; about 1 more run (1 min) for ttft.mean \u{b1}5 %";
        assert_eq!(known.progress(|more| format!("{more} min")), expected);
        let known = until("ttft.mean \u{b1}8ms").known(&[99, 100, 101].map(summary));
        assert!(known.is_reached && known.more.is_none(), "{known:?}");
    }

    #[test]
    fn equal_values_do_not_reach_a_bound() {
        let until = until("ttft.mean +-5%");
        let equal = until.known(&[100, 100, 100].map(summary));
        assert_eq!((equal.half_width, equal.is_reached), (None, false));
        assert!(equal.progress(|_| String::new()).contains("so its variation is unknown"));
        let two = until.known(&[100, 101].map(summary));
        assert_eq!((two.half_width, two.is_reached), (None, false));
        // A run that is not valid says nothing.
        let mut runs = [99, 100, 101].map(summary);
        runs[2].verdict = Verdict::Invalid;
        assert_eq!(until.known(&runs).runs, 2);
        assert!(!until.known(&[]).is_reached);
    }

    #[test]
    fn forecasts_the_number_of_runs() {
        let expected = "ttft.p99 \u{b1}5 %: about 5 runs if the figure varies by 2 % from run to run, about 16 runs if the figure varies by 5 % from run to run; at least 3, at most 20";
        assert_eq!(until("ttft.p99 +-5%").forecast(20), expected);
        assert!(until("ttft.p99 +-5ms").forecast(20).contains("the second run shows"));
    }

    #[test]
    fn the_result_states_the_end_of_the_repeats() {
        let until = until("ttft.mean +-5%");
        let runs = [99, 100, 101].map(summary);
        let stopped = Stopped { because: Ended::Most, most: 3, known: vec![until.known(&runs)] };
        let figures = [until.figure];
        let found = crate::variation::repeats("chat", &runs, Some((stopped, &figures)));
        // The table's intervals hold at any time, too.
        let ends = found.figures[0].interval.unwrap();
        assert!((ends.high - 107.633_67).abs() < 1e-4, "{ends:?}");
        let words = found.stopped.unwrap().lines();
        let expected = "Stopped at 3 runs, the limit of --repeat: ttft.mean is 100 ms \u{b1} 7.6 % after 3 runs, not within the bound (ttft.mean \u{b1}5 %), which takes about 1 more run.";
        assert_eq!(words[0], expected);
    }
}

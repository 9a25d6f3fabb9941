//! The variation of runs of the same scenario against the same engine.
//!
//! A run's own blocks cannot show that: a restarted engine, another clock speed or another
//! placement of memory make a whole run faster or slower. With one run per side, this variation
//! therefore enters the error from outside: from repeats if there are any, pooled over the sides
//! that have them, else as an assumption that the result states.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::NoInterval;
use super::side::Side;
use crate::until::Stopped;
use crate::{Choice, Ends, figures};
use model::number;
use result::figure::{Better, Figure};
use result::summary::Summary;
use statistics::difference::RunVariation;
use statistics::interval::LEVEL;
use statistics::{Interval, anytime, mean, student, variance};

/// The variation that is assumed unless repeats show it: a standard deviation of 2 % of the
/// engine's pace. Its share of a figure depends on how it follows the load (`sensitivity`).
pub const USUAL: f64 = 0.02;

/// The same beside other work on the machine. Beside busy loops whose number varied, the means of
/// one engine varied by up to 15 % from run to run.
pub(super) static BESIDE_WORK: Variation = Variation::Assumed { share: 10.0 * USUAL };

/// The variation of figures from run to run, as a standard deviation and a share of the figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "from", deny_unknown_fields)]
pub enum Variation {
    /// An assumed variation.
    Assumed {
        /// The standard deviation of the engine's pace, as a share of it. A figure that follows the
        /// load varies by more.
        share: f64,
    },
    /// None: the sides were measured at the same time, so it is in both alike.
    Shared,
    /// A variation that was measured on repeats.
    Repeats {
        /// The folder of the repeats, as it was given.
        folder: String,
        /// The scenario that they repeat.
        scenario: String,
        /// The variation of each figure that at least two of them have.
        figures: BTreeMap<String, Shows>,
    },
    /// A variation that was measured on the sides of the comparison that have repeats, pooled.
    Sides {
        /// The letters of these sides.
        sides: Vec<String>,
        /// The variation of each figure that at least two runs of a side have.
        figures: BTreeMap<String, Shows>,
    },
}

/// The variation of a figure between repeats.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Shows {
    /// Its standard deviation, as a share of its mean.
    pub share: f64,
    /// The number of repeats that have it.
    pub runs: usize,
    /// The degrees of freedom: the repeats without one for each side.
    pub freedom: usize,
}

impl Shows {
    /// Pools a figure's variation over sides, each around its mean; `None` if none has two values.
    fn pooled<'v>(sides: impl Iterator<Item = &'v Vec<f64>>) -> Option<Self> {
        let (mut squares, mut runs, mut freedom) = (0.0, 0, 0);
        for values in sides {
            if let Some(variance) = variance(values) {
                squares += variance / mean(values).powi(2) * (values.len() - 1) as f64;
                runs += values.len();
                freedom += values.len() - 1;
            }
        }
        let share = (squares / freedom as f64).sqrt();
        share.is_finite().then_some(Shows { share, runs, freedom })
    }
}

impl Default for Variation {
    fn default() -> Self {
        Variation::Assumed { share: USUAL }
    }
}

impl Variation {
    /// Computes the variation that a scenario's repeats in a folder show; `None` of fewer than two.
    pub fn of_repeats(
        folder: &str,
        scenario: &str,
        summaries: &[Summary],
        figures: &[Figure],
    ) -> Option<Self> {
        let shown = figures.iter().filter_map(|figure| {
            let values: Vec<f64> = summaries.iter().filter_map(|own| figure.read(own)).collect();
            Some((figure.to_string(), Shows::pooled([&values].into_iter())?))
        });
        (summaries.len() > 1).then(|| Variation::Repeats {
            folder: folder.to_owned(),
            scenario: scenario.to_owned(),
            figures: shown.collect(),
        })
    }

    /// Pools the variation over the sides that have several runs; `None` if none has.
    pub(super) fn of_sides(sides: &[Side], names: &[String], figures: &[&Figure]) -> Option<Self> {
        let several = || sides.iter().zip(names).filter(|(side, _)| side.runs() > 1);
        let shown = figures.iter().filter_map(|figure| {
            let values: Vec<_> = several().map(|(side, _)| side.values(figure)).collect();
            Some((figure.to_string(), Shows::pooled(values.iter())?))
        });
        several().next().map(|_| Variation::Sides {
            sides: several().map(|(_, name)| name.clone()).collect(),
            figures: shown.collect(),
        })
    }

    /// Returns the variation of a figure; `None` of counts and shares, which do not follow the
    /// engine's speed. Fails if the repeats do not show it.
    pub fn figure(&self, figure: &Figure) -> Result<Option<RunVariation>, NoInterval> {
        if figure.unit().is_empty() || figure.better() == Better::Neither {
            return Ok(None);
        }
        Ok(Some(match self {
            Variation::Shared => return Ok(None),
            Variation::Assumed { share } => {
                RunVariation { share: *share, freedom: f64::INFINITY, is_whole: false }
            }
            Variation::Repeats { figures, .. } | Variation::Sides { figures, .. } => {
                let Shows { share, freedom, .. } =
                    *figures.get(&figure.to_string()).ok_or(NoInterval::Variation)?;
                RunVariation { share, freedom: freedom as f64, is_whole: true }
            }
        }))
    }

    /// A description for a note below a comparison.
    pub fn label(&self) -> String {
        match self {
            Variation::Assumed { share } => format!(
                "assumed to be {} of the engine's pace (standard deviation); measure yours with `runner run --repeat N --same-requests`, and pass it with --run-variation",
                number::percent(*share)
            ),
            Variation::Shared => "not added, because the sides were measured at the same time; another start of an engine may differ by more".to_owned(),
            Variation::Repeats { folder, scenario, figures } => {
                measured(figures, &format!("repeats of {scenario} in {folder}"))
            }
            Variation::Sides { sides, figures } => {
                measured(figures, &format!("runs of {} (pooled)", sides.join(" and ")))
            }
        }
    }
}

/// Describes a measured variation, given the name of its runs.
fn measured(figures: &BTreeMap<String, Shows>, of: &str) -> String {
    let shares = || figures.values().map(|shown| shown.share);
    let least = shares().fold(f64::INFINITY, f64::min);
    let most = shares().fold(0.0, f64::max);
    let runs = figures.values().map(|shown| shown.runs).max().unwrap_or(0);
    let freedom = figures.values().map(|shown| shown.freedom).max().unwrap_or(0);
    format!(
        "taken from {runs} {of}, whose figures vary by {} to {} (standard deviation, {})",
        number::percent(least.min(most)),
        number::percent(most),
        number::plural(freedom as u64, "degree") + " of freedom"
    )
}

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

/// Summarizes repeats: the headline's spread, and the end of repeats that stopped themselves.
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
    use super::super::fixture::{USUAL as ENGINE, exchanges, measured, named, plan};
    use super::*;
    use crate::exchanges::{facts, reply};
    use model::exchange::Kind::{End, Text};

    fn summaries(many: u64) -> Vec<Summary> {
        let of = |seed| {
            let engine = super::super::fixture::Engine { seed, ..ENGINE };
            measured("run", plan(&[]), &exchanges(engine, 60, 10.0)).reported.summary
        };
        (0..many).map(of).collect()
    }

    #[test]
    fn repeats_show_how_much_figures_vary() {
        let figures = named(&["ttft.mean", "requests.success-share", "queue.mean"]);
        let shown = Variation::of_repeats("runs", "chat", &summaries(3), &figures).unwrap();
        let varies = shown.figure(&figures[0]).unwrap().unwrap();
        assert_eq!((varies.freedom, varies.is_whole), (2.0, true));
        assert!(varies.share > 0.0 && varies.share < 0.5, "{varies:?}");
        // Shares do not follow the engine's speed, and a figure that no repeat has is not shown.
        assert_eq!(shown.figure(&figures[1]), Ok(None));
        assert_eq!(shown.figure(&figures[2]), Err(NoInterval::Variation));
        let label = shown.label();
        assert!(label.starts_with("taken from 3 repeats of chat in runs"), "{label}");
        assert_eq!(Variation::of_repeats("runs", "chat", &summaries(1), &figures), None);
        let usual = Variation::default().label();
        assert!(usual.starts_with("assumed to be 2 % of the engine's pace"), "{usual}");
    }

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
        let apart = [ends.high - 134.841, ends.low - 85.159];
        assert!(apart.iter().all(|apart| apart.abs() < 0.001), "{ends:?}");
        let one = repeats("chat", &[summary(100)], None);
        assert_eq!((one.figures[0].variation_percent, one.figures[0].interval), (None, None));
        // Student's interval of these two reaches from 41 to 169 ms.
        let two = &repeats("chat", &[100, 110].map(summary), None).figures[0];
        assert_eq!((two.min, two.max, two.interval), (100.0, 110.0, None));
        assert_eq!(repeats("chat", &[], None).figures, []);
    }
}

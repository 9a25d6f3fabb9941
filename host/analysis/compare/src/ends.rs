//! The interval of a difference, or why there is none.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use statistics::interval::Interval;

/// The ends of an interval.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Ends {
    /// The lower one.
    pub low: f64,
    /// The upper one.
    pub high: f64,
}

impl From<Interval> for Ends {
    fn from(interval: Interval) -> Self {
        Ends { low: interval.low, high: interval.high }
    }
}

/// The reason why a figure has no interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoInterval {
    /// One side does not have the figure.
    Absent,
    /// A side was published without samples.
    Published,
    /// There are fewer than ten requests.
    FewRequests,
    /// Fewer than five samples lie beyond the percentile.
    FewSamples,
    /// The samples beyond the percentile lie in fewer than five blocks of the run.
    FewBlocks,
    /// A single run per side does not provide one; repeats do.
    OneRun,
    /// It is a score, and no sample was judged in both runs.
    Unpaired,
    /// Fewer than two of the repeats that show how much runs vary have the figure.
    Variation,
    /// Other work on this machine, or a limit on this client, changed the times of a side, and may
    /// explain the difference: one run per side does not show by how much.
    TimesInDoubt,
    /// Nothing varied, as where all of a few requests were answered: chance is not seen, and not
    /// excluded either.
    NothingVaried,
}

impl NoInterval {
    /// The reason, as text.
    pub fn label(self) -> &'static str {
        match self {
            NoInterval::Absent => "not on both sides",
            NoInterval::Published => "published without samples",
            NoInterval::FewRequests => "too few requests",
            NoInterval::FewSamples => "too few samples beyond it",
            NoInterval::FewBlocks => "samples beyond it in too few blocks",
            NoInterval::OneRun => "not known from one run per side",
            NoInterval::Unpaired => "no sample was judged in both runs",
            NoInterval::Variation => "not in the repeats that show how runs vary",
            NoInterval::TimesInDoubt => "times in doubt",
            NoInterval::NothingVaried => "nothing varied",
        }
    }
}

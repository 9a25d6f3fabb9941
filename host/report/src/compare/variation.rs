//! How much runs of the same scenario against the same engine vary from one to the next.
//!
//! A run's own blocks cannot show that: a restarted engine, another clock speed or another placement of memory make a
//! whole run faster or slower. With one run per side, this variation therefore enters the error from outside: from
//! repeats if there are any, else as an assumption that the result states.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::estimate::{mean, variance};
use crate::chart::number;
use result::figure::{Better, Figure};
use result::summary::Summary;

/// What is assumed unless repeats show it: a standard deviation of 2 % of a figure. An engine whose pace varies by 1 %
/// from run to run has latencies that vary by that in a closed loop, and by up to twice as much at 0.8 of its capacity,
/// where a slower pace also means a fuller batch.
pub const USUAL: f64 = 0.02;

/// How much figures vary from run to run, as a standard deviation and a share of the figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "from", deny_unknown_fields)]
pub enum Variation {
    /// It is assumed.
    Assumed {
        /// The standard deviation of every latency and throughput, as a share of it.
        share: f64,
    },
    /// It was measured on repeats.
    Repeats {
        /// How many.
        runs: usize,
        /// The standard deviation of each figure, as a share of its mean.
        shares: BTreeMap<String, f64>,
    },
}

/// The variation of one figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Varies {
    /// The standard deviation of one run, as a share of the figure.
    pub share: f64,
    /// The degrees of freedom with which it is known; infinite if it is assumed.
    pub freedom: f64,
    /// Whether it contains what the blocks of a run show too.
    pub is_whole: bool,
}

impl Default for Variation {
    fn default() -> Self {
        Variation::Assumed { share: USUAL }
    }
}

impl Variation {
    /// What repeats show; `None` of fewer than two.
    pub fn of_repeats(summaries: &[Summary], figures: &[Figure]) -> Option<Self> {
        let shares = figures.iter().filter_map(|figure| {
            let values: Vec<f64> = (summaries.iter())
                .filter_map(|own| figure.read(own))
                .collect();
            let about = mean(&values);
            let share = variance(&values)?.sqrt() / about.abs();
            share.is_finite().then(|| (figure.to_string(), share))
        });
        (summaries.len() > 1).then(|| Variation::Repeats {
            runs: summaries.len(),
            shares: shares.collect(),
        })
    }

    /// That of a figure; `None` of counts and shares, which do not follow the engine's speed.
    pub fn of(&self, figure: &Figure) -> Option<Varies> {
        if figure.unit().is_empty() || figure.better() == Better::Neither {
            return None;
        }
        match self {
            Variation::Assumed { share } => Some(Varies {
                share: *share,
                freedom: f64::INFINITY,
                is_whole: false,
            }),
            Variation::Repeats { runs, shares } => Some(Varies {
                share: *shares.get(&figure.to_string())?,
                freedom: *runs as f64 - 1.0,
                is_whole: true,
            }),
        }
    }

    /// In words, for a note below a comparison.
    pub fn words(&self) -> String {
        match self {
            Variation::Assumed { share } => format!(
                "assumed to be {} of a figure (standard deviation); measure yours with `runner run --repeat`, and pass it with --run-variation",
                number::percent(*share)
            ),
            Variation::Repeats { runs, .. } => format!("taken from {runs} repeats"),
        }
    }
}

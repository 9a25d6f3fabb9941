//! Goodput: the number of requests that met the run's objectives. Failed requests and unsent ones
//! met none.

use std::collections::BTreeMap;

use crate::metric::objective::{self, Objective};
use crate::metric::{Reading, Single};

/// The number of requests that met the run's objectives.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Goodput {
    /// Answered requests that met every objective.
    pub good: u64,
    /// `good` divided by all requests that were due. Failed and unsent requests are included,
    /// requests that were cancelled on purpose are not.
    pub slo_attainment: Option<f64>,
    /// Good requests per second.
    pub requests_per_s: Option<f64>,
    /// Their output tokens per second; absent if the tokens of any of them are unknown.
    pub output_tokens_per_s: Option<f64>,
    /// Each objective by its metric's name.
    pub objectives: BTreeMap<String, Attainment>,
}

/// The number of requests that met one objective.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Attainment {
    /// The limit in milliseconds.
    pub at_most_ms: f64,
    /// Answered requests that met it.
    pub kept: u64,
    /// Answered requests that missed it.
    pub missed: u64,
    /// Answered requests for which the metric is unknown. They do not count as good.
    pub unknown: u64,
    /// `kept` divided by the same requests.
    pub attainment: Option<f64>,
}

/// The requests judged so far.
pub(super) struct Gather {
    objectives: Vec<(String, Single, Attainment)>,
    good: u64,
    tokens: Option<u64>,
}

impl Gather {
    /// An empty judge by these objectives; `None` if there are none.
    pub(super) fn new(objectives: &[Objective]) -> Option<Self> {
        let known = objectives.iter().filter_map(|objective| {
            let attainment =
                Attainment { at_most_ms: objective.at_most_ms, ..Attainment::default() };
            Some((objective.metric.clone(), objective.measure()?, attainment))
        });
        (!objectives.is_empty()).then(|| Gather {
            objectives: known.collect(),
            good: 0,
            tokens: Some(0),
        })
    }

    /// Judges a request that was answered. Gives whether it is good.
    pub(super) fn add(&mut self, reading: &Reading<'_>) {
        let mut good = true;
        for (_, measure, attainment) in &mut self.objectives {
            let kept = objective::kept(*measure, attainment.at_most_ms, reading);
            match kept {
                Some(true) => attainment.kept += 1,
                Some(false) => attainment.missed += 1,
                None => attainment.unknown += 1,
            }
            good &= kept == Some(true);
        }
        if good {
            self.good += 1;
            let tokens = reading.output_tokens.map(|count| u64::from(count.tokens));
            self.tokens = self.tokens.zip(tokens).map(|(sum, more)| sum.saturating_add(more));
        }
    }

    /// `total` is the number of requests that were due and not cancelled on purpose, `duration` the
    /// seconds of the run.
    pub(super) fn finish(self, total: u64, duration: Option<f64>) -> Goodput {
        let share = |part: u64| (total > 0).then(|| part as f64 / total as f64);
        let per_s = |amount: u64| duration.map(|seconds| amount as f64 / seconds);
        let objectives = self.objectives.into_iter().map(|(metric, _, attainment)| {
            let attainment = Attainment { attainment: share(attainment.kept), ..attainment };
            (metric, attainment)
        });
        Goodput {
            good: self.good,
            slo_attainment: share(self.good),
            requests_per_s: per_s(self.good),
            output_tokens_per_s: self.tokens.and_then(per_s),
            objectives: objectives.collect(),
        }
    }
}

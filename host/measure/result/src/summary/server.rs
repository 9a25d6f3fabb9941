//! The server's own metrics, unchanged, and their change over the measurement.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Figures that servers count of themselves, under names that all servers share.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Requests answered, since the server began.
    FinishedRequests,
    /// Requests being worked on.
    RunningRequests,
    /// Requests that wait.
    WaitingRequests,
    /// Tokens of prompts, since the server began.
    InputTokens,
    /// Tokens of answers, since the server began.
    OutputTokens,
    /// Tokens looked up in the prefix cache, since the server began.
    PrefixCacheQueries,
    /// Tokens found in the prefix cache, since the server began.
    PrefixCacheHits,
    /// Share of the cache for keys and values in use, from 0 to 1.
    KvCacheUsage,
    /// Requests that were begun and put back, since the server began.
    Preemptions,
}

impl Figure {
    /// True if it only grows, so that the difference of two readings is the count between them.
    pub(crate) fn is_count(self) -> bool {
        !matches!(self, Figure::RunningRequests | Figure::WaitingRequests | Figure::KvCacheUsage)
    }
}

/// The targets' own metrics during the measurement.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Server {
    /// Each target, in the order of the plan.
    pub targets: Vec<TargetMetrics>,
}

/// The metrics of one target. A figure that it does not report is absent, never zero.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct TargetMetrics {
    /// Its base URL.
    pub url: String,
    /// Its values before the first measured request was sent, after the warm-up.
    pub before: BTreeMap<Figure, f64>,
    /// Its values after the last reply had ended; absent if it did not return them.
    pub after: Option<BTreeMap<Figure, f64>>,
    /// Its counts in between: the differences of the counters. A counter that shrank, because the
    /// server restarted for example, is left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub during: BTreeMap<Figure, f64>,
    /// The reason why it returned no values after the run.
    pub lost: Option<String>,
}

impl TargetMetrics {
    pub fn since(url: String, before: BTreeMap<Figure, f64>) -> Self {
        TargetMetrics { url, before, ..TargetMetrics::default() }
    }

    pub fn until(&mut self, after: BTreeMap<Figure, f64>) {
        let counts = after.iter().filter(|(figure, _)| figure.is_count());
        self.during = counts
            .filter_map(|(figure, after)| {
                let during = after - self.before.get(figure)?;
                (during >= 0.0).then_some((*figure, during))
            })
            .collect();
        self.after = Some(after);
    }

    /// Notes that one end has no values.
    pub fn lost(&mut self, why: String) {
        self.lost = Some(why);
    }
}

impl Server {
    /// The sum over all targets during the measurement; absent if one of them does not report it.
    pub fn counted(&self, figure: Figure) -> Option<f64> {
        let each = self.targets.iter();
        each.map(|target| target.during.get(&figure).copied())
            .sum::<Option<f64>>()
            .filter(|_| !self.targets.is_empty())
    }

    /// The largest reading among the targets, before and after; absent if none reports it.
    pub fn largest(&self, figure: Figure) -> [Option<f64>; 2] {
        let most = |readings: &mut dyn Iterator<Item = &f64>| readings.copied().reduce(f64::max);
        let before = self.targets.iter().map(|target| &target.before);
        let after = self.targets.iter().filter_map(|target| target.after.as_ref());
        [
            most(&mut before.filter_map(|of| of.get(&figure))),
            most(&mut after.filter_map(|of| of.get(&figure))),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(before: &[(Figure, f64)], after: &[(Figure, f64)]) -> TargetMetrics {
        let mut metrics =
            TargetMetrics::since("http://a".to_owned(), before.iter().copied().collect());
        metrics.until(after.iter().copied().collect());
        metrics
    }

    #[test]
    fn only_counters_have_a_difference() {
        use Figure::{InputTokens, KvCacheUsage, OutputTokens, Preemptions};
        let one = counted(
            &[(InputTokens, 10.0), (OutputTokens, 5.0), (KvCacheUsage, 0.1)],
            &[(InputTokens, 30.0), (OutputTokens, 1.0), (KvCacheUsage, 0.5), (Preemptions, 2.0)],
        );
        assert_eq!(one.during, BTreeMap::from([(InputTokens, 20.0)]));
        let other = counted(&[(InputTokens, 0.0)], &[(InputTokens, 1.0)]);
        let mut server = Server { targets: vec![one, other] };
        assert_eq!(server.counted(InputTokens), Some(21.0));
        assert_eq!(server.counted(OutputTokens), None);
        assert_eq!(server.largest(KvCacheUsage), [Some(0.1), Some(0.5)]);
        server.targets.push(TargetMetrics::since("http://c".to_owned(), BTreeMap::new()));
        assert_eq!(server.counted(InputTokens), None, "one does not say");
        assert_eq!(Server::default().counted(InputTokens), None);
    }
}

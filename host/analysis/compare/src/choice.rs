//! The choice of the figures that are compared.

use std::collections::BTreeSet;

use super::side::{LATENCIES, metric_of};
use audit::claim::Claim;
use result::figure::{Better, Figure, Statistic, WHOLE};
use result::metric;
use result::summary::Summary;
use result::summary::first_token::Part;

/// Statistics of the headline's latencies.
const STATISTICS: [Statistic; 3] =
    [Statistic::Mean, Statistic::Percentile(50.0), Statistic::Percentile(99.0)];

/// Headline figures of the run as a whole.
const WHOLES: [&str; 6] = [
    "throughput.requests-per-s",
    "throughput.output-tokens-per-s",
    "throughput.total-tokens-per-s",
    "goodput.requests-per-s",
    "goodput.slo-attainment",
    "requests.success-share",
];

#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    /// The figures that decide most comparisons.
    Headline,
    These(Vec<Figure>),
    /// All that any run has.
    All,
}

/// The figures of a choice, in the order of the catalogue. If a claim means another metric by one
/// of the headline's names, ours of the same definition is taken.
pub fn figures(choice: &Choice, summaries: &[&Summary], claims: &[&Claim]) -> Vec<Figure> {
    let judged = || scores(summaries.iter().flat_map(|summary| summary.scores.keys()));
    match choice {
        Choice::These(figures) => figures.clone(),
        Choice::Headline => {
            let latencies =
                LATENCIES.into_iter().filter_map(|latency| metric::by_name(meant(latency, claims)));
            let latencies = latencies
                .flat_map(|metric| STATISTICS.map(|statistic| Figure::Of(metric.name, statistic)));
            latencies
                .chain(parts(summaries))
                .chain(stages(summaries))
                .chain(wholes(|name| WHOLES.contains(&name)))
                .chain(judged().into_iter().filter(|score| score.better() != Better::Neither))
                .collect()
        }
        Choice::All => {
            let measured: BTreeSet<&str> = (summaries.iter())
                .flat_map(|summary| summary.metrics.keys())
                .map(String::as_str)
                .collect();
            let metrics = metric::CATALOGUE.iter().filter(|metric| {
                let claimed = claims.iter().any(|claim| {
                    LATENCIES.iter().any(|theirs| metric_of(claim, theirs) == Some(metric.name))
                });
                measured.contains(metric.name) || claimed
            });
            let statistics = statistics(summaries);
            let of = |name| statistics.iter().map(move |s| Figure::Of(name, *s));
            metrics
                .flat_map(|metric| of(metric.name))
                .chain(wholes(|_| true))
                .chain(judged())
                .chain(scores(summaries.iter().flat_map(|summary| summary.run_scores.keys())))
                .collect()
        }
    }
}

/// The means of the parts of the time to first token that a run's server tells.
fn parts(summaries: &[&Summary]) -> impl Iterator<Item = Figure> {
    let is_measured = |part: &Part| {
        let name = part.metric();
        (summaries.iter()).any(|summary| summary.metrics.contains_key(name))
    };
    let measured = Part::ALL.into_iter().filter(is_measured);
    measured.map(|part| Figure::Of(part.metric(), Statistic::Mean))
}

/// The means of the stages before the first token that a run's server tells by its series.
fn stages(summaries: &[&Summary]) -> impl Iterator<Item = Figure> {
    let is_measured =
        |figure: &Figure| summaries.iter().any(|summary| figure.read(summary).is_some());
    wholes(|name| name.starts_with("server.stages.")).filter(is_measured)
}

/// Our metric that the claims mean by a latency's name, which is its own if no claim defines it.
fn meant<'c>(latency: &'static str, claims: &[&'c Claim]) -> &'c str {
    claims.iter().find_map(|claim| metric_of(claim, latency)).unwrap_or(latency)
}

/// Mean, median, the percentiles that runs report, deviation and extremes.
fn statistics(summaries: &[&Summary]) -> Vec<Statistic> {
    let mut percentiles: Vec<f64> = (summaries.iter())
        .flat_map(|summary| summary.run.percentiles.iter().copied())
        .filter(|percent| *percent > 0.0 && *percent < 100.0)
        .chain([50.0])
        .collect();
    percentiles.sort_unstable_by(f64::total_cmp);
    percentiles.dedup();
    let percentiles = percentiles.into_iter().map(Statistic::Percentile);
    [Statistic::Mean]
        .into_iter()
        .chain(percentiles)
        .chain([Statistic::Std, Statistic::Min, Statistic::Max])
        .collect()
}

/// Scores by their names, each once.
fn scores<'s>(names: impl Iterator<Item = &'s String>) -> Vec<Figure> {
    let names: BTreeSet<&String> = names.collect();
    names.into_iter().cloned().map(Figure::Score).collect()
}

fn wholes(keep: impl Fn(&str) -> bool) -> impl Iterator<Item = Figure> {
    let kept = WHOLE.iter().enumerate().filter(move |(_, whole)| keep(whole.name));
    kept.map(|(place, _)| Figure::Whole(place))
}

/// Percentiles that a choice needs of runs, in percent.
pub fn percentiles(choice: &Choice) -> Vec<f64> {
    match choice {
        Choice::Headline | Choice::All => vec![50.0, 99.0],
        Choice::These(figures) => (figures.iter())
            .filter_map(|figure| match figure {
                Figure::Of(_, Statistic::Percentile(percent)) => Some(*percent),
                _ => None,
            })
            .collect(),
    }
}

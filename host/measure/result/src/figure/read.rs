//! Values of figures in a summary.

use std::cmp::Ordering;

use super::score::{PREFIX, better};
use super::{Better, Figure, Statistic, WHOLE};
use crate::metric::CATALOGUE;
use crate::summary::{Bounds, Summary};

impl Figure {
    /// The figure's value in a summary; absent if it was not measured, or if the percentile was not
    /// requested.
    pub fn read(&self, summary: &Summary) -> Option<f64> {
        match self {
            Figure::Of(metric, statistic) => summary.metric(metric)?.statistic(*statistic),
            Figure::Whole(place) => (WHOLE[*place].value)(summary),
            Figure::Score(name) => score(name, summary),
        }
    }

    /// The 95 % interval of the figure for other requests of this kind; absent if one run does not
    /// show it.
    pub fn interval(&self, summary: &Summary) -> Option<Bounds> {
        match self {
            Figure::Of(metric, statistic) => {
                let shown = summary.metric(metric)?.confidence?;
                match statistic {
                    Statistic::Mean => shown.mean,
                    Statistic::Percentile(50.0) => shown.median,
                    Statistic::Percentile(99.0) => shown.p99,
                    _ => None,
                }
            }
            Figure::Whole(place) => {
                let rates = summary.throughput.confidence?.other_requests;
                match WHOLE[*place].name {
                    "throughput.requests-per-s" => rates.requests_per_s,
                    "throughput.input-tokens-per-s" => rates.input_tokens_per_s,
                    "throughput.output-tokens-per-s" => rates.output_tokens_per_s,
                    "throughput.total-tokens-per-s" => rates.total_tokens_per_s,
                    _ => None,
                }
            }
            Figure::Score(name) => summary.scores.get(name)?.confidence,
        }
    }

    /// Every figure that a summary has: the figures of the run as a whole, the statistics of each
    /// metric in the order of the catalogue, and the scores.
    pub fn all(summary: &Summary) -> Vec<Figure> {
        let wholes = (0..WHOLE.len()).map(Figure::Whole);
        let metrics = CATALOGUE.iter().filter_map(|metric| {
            let keys = summary.metric(metric.name)?.percentiles.keys();
            let percentiles = keys.filter_map(|key| key.parse().ok());
            // The median may be among the percentiles.
            let further = percentiles.filter(|one| *one != Statistic::Percentile(50.0));
            let mut statistics: Vec<Statistic> = further.collect();
            statistics.sort_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
            let first = [
                Statistic::Mean,
                Statistic::Std,
                Statistic::Min,
                Statistic::Max,
                Statistic::Percentile(50.0),
            ];
            let all = first.into_iter().chain(statistics);
            Some(all.map(|statistic| Figure::Of(metric.name, statistic)))
        });
        let scores = summary.scores.keys().chain(summary.run_scores.keys());
        let scores = scores.map(|name| Figure::Score(name.clone()));
        let all = wholes.chain(metrics.flatten()).chain(scores);
        all.filter(|figure| figure.read(summary).is_some()).collect()
    }

    /// Reads the figure with requests that failed or were not sent counted as the worst. Their
    /// latency is infinite, their speed zero, their answer wrong. The value of [`Figure::read`] if
    /// there are none, and for token counts.
    pub fn read_with_failures(&self, summary: &Summary) -> Option<f64> {
        let own = self.read(summary)?;
        let (metric, statistic) = match self {
            Figure::Of(metric, statistic) => (metric, statistic),
            Figure::Whole(_) => return Some(own),
            Figure::Score(name) => return Some(score_with_failures(name, summary).unwrap_or(own)),
        };
        match &summary.metric(metric)?.with_failures {
            Some(all) => all.statistic(*statistic),
            None => Some(own),
        }
    }
}

/// The value of a score in a summary; absent if no scorer gave it.
fn score(name: &str, summary: &Summary) -> Option<f64> {
    let mean = summary.scores.get(name).map(|score| score.mean);
    mean.or_else(|| summary.run_scores.get(name).copied())
}

/// The mean where requests that failed or were not sent count as the worst: as 0, or as 1 for a
/// share of faults. Otherwise a run could pass because it loses the samples that it would answer
/// wrongly. Absent for scores of the run as a whole, which are no means, and for scores that are
/// neither better nor worse.
fn score_with_failures(name: &str, summary: &Summary) -> Option<f64> {
    let score = summary.scores.get(name)?;
    let worst = match better(name) {
        Better::Higher => 0.0,
        Better::Lower => 1.0,
        Better::Neither => return None,
    };
    let (judged, failed) = (score.count as f64, summary.requests.failed as f64);
    Some((score.mean * judged + worst * failed) / (judged + failed)).filter(|_| failed > 0.0)
}

/// Scores that a message names at most.
const NAMED: usize = 12;

/// Says that a score was not measured, and which were.
pub(crate) fn scores_there_are(summary: &Summary) -> String {
    let names = summary.scores.keys().chain(summary.run_scores.keys());
    let names: Vec<String> = names.take(NAMED).map(|name| format!("{PREFIX}{name}")).collect();
    let silent = summary.silent_scorers.iter().map(|scorer| scorer.label());
    let silent: Vec<String> = silent.collect();
    let (names, silent) = (names.join(", "), silent.join("; "));
    match (names.is_empty(), silent.is_empty()) {
        (false, true) => format!("not measured; the run has {names}"),
        (false, false) => format!("not measured: {silent}; the run has {names}"),
        (true, false) => format!("not measured: {silent}"),
        (true, true) => {
            "not measured: no scorer judged the answers; name one under [[scorers]]".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::fixture::{facts, failed, reply};
    use model::exchange::Class;
    use model::exchange::Kind::{End, Text};

    #[test]
    fn scores_are_figures_and_lost_requests_are_wrong_answers() {
        let answer = |index| reply(index, 1000, &[(1050, Text, None, 3), (1060, End, None, 0)]);
        let mut run: Vec<_> = (0..10).map(answer).collect();
        let mut facts = facts();
        let right = (0..10).map(|index| (index, f64::from(index % 5 != 0)));
        facts.scores.insert("exact-match".into(), right.collect());
        let unparsed = (0..10).map(|index| (index, 0.0));
        facts.scores.insert("exact-match-unparsed".into(), unparsed.collect());
        facts.run_scores.insert("needle:4k".into(), 0.25);
        let read = |run: &[_]| {
            let summary = Summary::new(&facts, run);
            ["exact-match", "exact-match-unparsed", "needle:4k", "none"].map(|name| {
                let figure: Figure = format!("score.{name}").parse().unwrap();
                (figure.read(&summary), figure.read_with_failures(&summary))
            })
        };
        let same = |value: f64| (Some(value), Some(value));
        assert_eq!(read(&run), [same(0.8), same(0.0), same(0.25), (None, None)]);
        for exchange in &mut run[1..3] {
            *exchange = failed(exchange.clone(), Class::Truncated, "cut off");
        }
        let [right, unparsed, whole, _] = read(&run);
        assert_eq!(right, (Some(0.75), Some(0.6)));
        assert_eq!(unparsed, (Some(0.0), Some(0.2)));
        assert_eq!(whole, same(0.25));
    }
}

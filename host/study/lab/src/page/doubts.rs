//! The suspect runs behind a mean: their number, their findings, and the mark of such a mean.

use std::collections::BTreeMap;

use crate::expand::TrialId;
use crate::findings::{RunReport, StudyReport, TrialReport};
use result::finding::Verdict;

/// The mark of a mean with a suspect run.
const MARK: &str = " †";

fn is_suspect(run: &RunReport) -> bool {
    run.verdict == Some(Verdict::Suspect)
}

/// The mark behind a trial's mean on a scenario; empty if no run of it is suspect.
pub(super) fn mark(study: &StudyReport, trial: Option<&TrialId>, scenario: &str) -> &'static str {
    let trial = study.trials.iter().find(|own| Some(&own.id) == trial);
    trial.map_or("", |trial| mark_of(trial, scenario))
}

/// The mark by a trial's report.
pub(super) fn mark_of(trial: &TrialReport, scenario: &str) -> &'static str {
    if trial.runs.iter().any(|run| run.scenario == scenario && is_suspect(run)) { MARK } else { "" }
}

/// The number of suspect runs with their findings, the most frequent first.
pub(super) fn suspect(study: &StudyReport) -> Option<String> {
    let runs = || study.trials.iter().flat_map(|trial| &trial.runs);
    let suspect: Vec<&RunReport> = runs().filter(|run| is_suspect(run)).collect();
    let measured = runs().filter(|run| run.verdict.is_some()).count();
    if suspect.is_empty() {
        return None;
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for run in &suspect {
        for (name, _) in run.findings.iter().filter_map(|text| super::experiments::named(text)) {
            *counts.entry(name).or_default() += 1;
        }
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let names: Vec<String> =
        counts.iter().take(4).map(|(name, count)| format!("`{name}` ({count})")).collect();
    let names = if names.is_empty() {
        String::new()
    } else {
        format!("; their findings: {}", names.join(", "))
    };
    let suspect = suspect.len();
    Some(format!(
        "{suspect} of {measured} runs are suspect{names}. A mean with a suspect run is marked †."
    ))
}

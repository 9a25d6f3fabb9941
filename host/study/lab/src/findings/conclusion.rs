//! The conclusion of a study, as text.

use super::Conclusion;
use crate::expand::TrialId;
use crate::file::Lab;
use crate::judge::{HeldRow, Row, StageReport, ToShow};
use crate::stat::{Gain, MOST_ROUNDS, OUTSIDE};
use crate::strategy::{CONFIRMATION, Decision, Kind, Study};
use model::duration::roughly;

pub(super) fn conclusion(lab: &Lab, study: &Study) -> Conclusion {
    let Some(decision) = &study.decision else {
        let words = "It is not done, so nothing is concluded yet.".to_owned();
        return Conclusion { words, ..Conclusion::default() };
    };
    let recommended = match decision.kind {
        Kind::Better | Kind::BestOfRest => decision.chosen.as_ref(),
        Kind::NoDifference | Kind::NotConfirmed => {
            // A baseline that breaks a constraint is not recommended by default.
            let rows = rows(study, &decision.baseline.id);
            let is_out = rows.clone().any(|row| row.why.is_some());
            let may_win = rows.last().is_some_and(Row::may_win);
            Some(&decision.baseline).filter(|_| !is_out && may_win)
        }
        Kind::Nothing | Kind::NoObjective | Kind::Unfinished => None,
    };
    let labels = |ids: &[TrialId]| -> Vec<String> {
        let trials = study.trials.iter().filter(|trial| ids.contains(&trial.id));
        trials.map(|trial| lab.label(trial)).collect()
    };
    let row = decision.row.as_ref().filter(|_| decision.chosen.is_some());
    Conclusion {
        kind: decision.kind,
        words: sentences(lab, study, decision, &labels(&decision.ties)),
        trial: recommended.map(|trial| trial.id.clone()),
        command: recommended.map(|trial| trial.recorded(&lab.engines[trial.engine])),
        gain: row.and_then(|row| row.gain),
        scenarios: row.map(|row| row.scenarios.clone()).unwrap_or_default(),
        ties: labels(&decision.ties),
        ..Conclusion::default()
    }
}

/// The rows of a trial, stage by stage.
fn rows<'s>(study: &'s Study, trial: &'s TrialId) -> impl Iterator<Item = &'s Row> + Clone {
    study.stages.iter().filter_map(|stage| stage.row(trial))
}

/// A gain as text: `15.6 % (95 % interval 13.1 to 18.2 %)`.
pub(crate) fn gain_text(gain: &Gain) -> String {
    let percent = format!("{:+.2} %", gain.percent);
    match gain.interval {
        Some([low, high]) => format!("{percent} (95 % interval {low:+.2} to {high:+.2} %)"),
        None => format!("{percent} (no interval from one repeat)"),
    }
}

/// States the rounds that would show a difference; `key` is the lab file's for them.
pub(crate) fn to_show_text(to_show: Option<&ToShow>, key: &str) -> String {
    let Some(ToShow { rounds, seconds }) = to_show else {
        return format!("More than {MOST_ROUNDS} rounds would be needed to show it.");
    };
    let time = seconds.map(|seconds| format!(", which takes {} more", roughly(seconds)));
    format!("{rounds} rounds would show it (`{key} = {rounds}`){}.", time.unwrap_or_default())
}

/// The key of the lab file for the number of a stage's rounds.
pub(crate) fn key_of(stage: &StageReport) -> &'static str {
    match stage.title.as_str() {
        CONFIRMATION => "confirm",
        _ => "repeats",
    }
}

/// A constraint that is not confirmed, and the rounds that would confirm it.
pub(crate) fn held_text(held: &HeldRow) -> String {
    let to_show = to_show_text(held.to_show.as_ref(), "repeats");
    if held.figure.is_some_and(|figure| figure.repeats == 1) {
        format!("{}. One round cannot show it.", held.words)
    } else {
        format!("{}. {to_show}", held.words)
    }
}

/// Describes a stage that shows no gain: its best gain, and its smallest detectable gain.
fn not_shown(lab: &Lab, stage: &StageReport) -> String {
    let percent = |row: &&Row| row.gain.map_or(f64::NEG_INFINITY, |gain| gain.percent);
    let best = (stage.rows.iter().filter(|row| row.may_win()))
        .max_by(|a, b| percent(a).total_cmp(&percent(b)))
        .filter(|row| percent(row) > 0.0);
    let mut text = String::new();
    if let Some((row, gain)) = best.and_then(|row| Some((row, row.gain?))) {
        text = format!(" The best was `{}` with {}.", row.label, gain_text(&gain));
        if gain.probability.is_some() {
            let to_show = to_show_text(row.to_show.as_ref(), key_of(stage));
            text.push_str(&format!(" If that is its true gain: {}", lower(&to_show)));
        }
    }
    let rounds = stage.rounds[1] + 1 - stage.rounds[0];
    if let Some(detectable) = stage.detectable.filter(|_| lab.repeats > 1) {
        text.push_str(&format!(
            " {rounds} rounds find a true gain of {detectable:.1} % in nine of ten labs like this one."
        ));
    }
    text
}

/// Begins a sentence in lower case, to continue after a colon.
fn lower(sentence: &str) -> String {
    match sentence.strip_prefix("More") {
        Some(rest) => format!("more{rest}"),
        None => sentence.to_owned(),
    }
}

fn sentences(lab: &Lab, study: &Study, decision: &Decision, ties: &[String]) -> String {
    let figure = lab.objective.as_ref().map(|objective| objective.measure.to_string());
    let label = decision.chosen.as_ref().map(|trial| format!("`{}`", lab.label(trial)));
    let gain = decision.row.as_ref().and_then(|row| row.gain.as_ref()).map(gain_text);
    let [figure, label, gain] = [figure, label, gain].map(Option::unwrap_or_default);
    let mut text = match decision.kind {
        Kind::Better => {
            let scenarios = decision.row.as_ref().map_or(0, |row| row.scenarios.len());
            let mean = if scenarios > 1 { ", by the geometric mean of the scenarios" } else { "" };
            format!("{label} is better than the baseline in {figure}{mean}: {gain}.")
        }
        Kind::BestOfRest => format!(
            "{label} has the best {figure} of the trials that were measured and meet the constraints. The baseline is not \
             among them, so there is no comparison."
        ),
        Kind::NoDifference => {
            format!("No trial is shown to be better than the baseline in {figure}.")
        }
        Kind::NotConfirmed if gain.is_empty() => {
            format!("{label} was the best, but could not be confirmed by fresh runs.")
        }
        Kind::NotConfirmed => format!(
            "{label} was the best, but fresh runs do not show it to be better than the baseline in {figure}: {gain}."
        ),
        Kind::Nothing if study.stages.iter().all(|stage| stage.rows.iter().all(is_unmeasured)) => {
            "No trial was measured.".to_owned()
        }
        Kind::Nothing => "No trial was measured that meets the constraints.".to_owned(),
        Kind::NoObjective => "There is no objective, so nothing is recommended.".to_owned(),
        Kind::Unfinished => "It is not done, so nothing is concluded yet.".to_owned(),
    };
    let last = study.stages.iter().rev();
    match (decision.kind, &decision.chosen) {
        (Kind::NoDifference, _) => {
            // Of several experiments, the last with a comparison.
            let mut compared = last.filter(|stage| stage.rows.len() > 1);
            text.extend(compared.next().map(|stage| not_shown(lab, stage)));
        }
        (Kind::NotConfirmed, Some(chosen)) => {
            let stage = study.stages.iter().rev().find(|stage| stage.row(&chosen.id).is_some());
            let row = stage.and_then(|stage| Some((stage, stage.row(&chosen.id)?)));
            text.extend(row.map(|(stage, row)| not_confirmed(decision, stage, row)));
        }
        _ => {}
    }
    let recommended = match decision.kind {
        Kind::Better | Kind::BestOfRest | Kind::NotConfirmed => decision.chosen.as_ref(),
        _ => Some(&decision.baseline),
    };
    let row = recommended.and_then(|trial| rows(study, &trial.id).last());
    for held in row.iter().flat_map(|row| &row.constraints) {
        text.push_str(&format!(" {}", held_text(held)));
    }
    if decision.kind == Kind::Better && !decision.is_confirmed {
        text.push_str(
            " No fresh runs confirm it: the best of several trials is partly lucky, so its gain is somewhat less.",
        );
    }
    if lab.repeats == 1 && lab.objective.is_some() && decision.kind != Kind::Better {
        text.push_str(" One repeat cannot show a difference.");
    }
    if !ties.is_empty() && matches!(decision.kind, Kind::Better | Kind::BestOfRest) {
        let ties: Vec<String> = ties.iter().map(|tie| format!("`{tie}`")).collect();
        let ties = reader::words::joined(&ties, "and");
        text.push_str(&format!(" No difference is shown from {ties}."));
    }
    text
}

fn is_unmeasured(row: &Row) -> bool {
    row.scenarios.iter().all(|scenario| scenario.figure.is_none())
}

/// Explains why fresh runs did not confirm a trial.
fn not_confirmed(decision: &Decision, stage: &StageReport, row: &Row) -> String {
    let gain = row.gain.filter(|gain| gain.percent > 0.0 && row.may_win());
    let Some(p) = gain.and_then(|gain| gain.probability) else { return String::new() };
    if p > OUTSIDE {
        let to_show = to_show_text(row.to_show.as_ref(), key_of(stage));
        return format!(" If that is its true gain: {}", lower(&to_show));
    }
    format!(
        " One of many experiments is lucky easily, so it takes a p-value of {:.3} or less to confirm \
         its choice; this one is {p:.3}. Set `confirm` higher.",
        decision.needed
    )
}

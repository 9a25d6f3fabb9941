//! What a study came to, in words.

use super::Conclusion;
use crate::expand::TrialId;
use crate::file::Lab;
use crate::stat::Gain;
use crate::strategy::{Decision, Kind, Study};

pub(super) fn conclusion(lab: &Lab, study: &Study) -> Conclusion {
    let Some(decision) = &study.decision else {
        return Conclusion {
            kind: Kind::Unfinished,
            words: "It is not done, so nothing is concluded yet.".to_owned(),
            trial: None,
            command: None,
            gain: None,
            scenarios: Vec::new(),
            ties: Vec::new(),
        };
    };
    let recommended = match decision.kind {
        Kind::Better | Kind::BestOfRest => decision.chosen.as_ref(),
        Kind::NoDifference | Kind::NotConfirmed => {
            // A baseline that breaks a constraint is not recommended by default.
            let baseline = decision.baseline.clone();
            let is_out = study
                .stages
                .iter()
                .filter_map(|stage| stage.row(&baseline.id))
                .any(|row| row.why.is_some());
            Some(&decision.baseline).filter(|_| !is_out)
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
        words: words(lab, decision, &labels(&decision.ties)),
        trial: recommended.map(|trial| trial.id.clone()),
        command: recommended.map(|trial| trial.recorded(&lab.engines[trial.engine])),
        gain: row.and_then(|row| row.gain),
        scenarios: row.map(|row| row.scenarios.clone()).unwrap_or_default(),
        ties: labels(&decision.ties),
    }
}

/// A gain in words: `15.6 % (95 % interval 13.1 to 18.2 %)`.
pub(crate) fn gain_words(gain: &Gain) -> String {
    let percent = format!("{:+.2} %", gain.percent);
    match gain.interval {
        Some([low, high]) => format!("{percent} (95 % interval {low:+.2} to {high:+.2} %)"),
        None => format!("{percent} (no interval from one repeat)"),
    }
}

fn words(lab: &Lab, decision: &Decision, ties: &[String]) -> String {
    let figure = lab
        .objective
        .as_ref()
        .map(|objective| objective.measure.to_string())
        .unwrap_or_default();
    let label = decision
        .chosen
        .as_ref()
        .map(|trial| format!("`{}`", lab.label(trial)))
        .unwrap_or_default();
    let gain = decision
        .row
        .as_ref()
        .and_then(|row| row.gain.as_ref())
        .map(gain_words)
        .unwrap_or_default();
    let mut text = match decision.kind {
        Kind::Better => format!("{label} is better than the baseline in {figure}: {gain}."),
        Kind::BestOfRest => format!(
            "{label} has the best {figure} of the trials that were measured and meet the constraints. The baseline is not among \
             them, so there is nothing to hold it against."
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
        Kind::Nothing => "No trial was measured that meets the constraints.".to_owned(),
        Kind::NoObjective => "There is no objective, so nothing is recommended.".to_owned(),
        Kind::Unfinished => "It is not done, so nothing is concluded yet.".to_owned(),
    };
    if decision.kind == Kind::Better && !decision.is_confirmed {
        text.push_str(
            " No fresh runs confirm it: as the best of several it was in part lucky, so its gain is somewhat less.",
        );
    }
    if lab.repeats == 1 && lab.objective.is_some() && decision.kind != Kind::Better {
        text.push_str(" Of one repeat, no difference can be shown.");
    }
    if !ties.is_empty() && matches!(decision.kind, Kind::Better | Kind::BestOfRest) {
        let ties: Vec<String> = ties.iter().map(|tie| format!("`{tie}`")).collect();
        text.push_str(&format!(
            " No difference is shown from {}.",
            reader::words::joined(&ties, "and")
        ));
    }
    text
}

//! The rounds that would show a gain or confirm a constraint, and their time.

use crate::estimate::Timing;
use crate::expand::Trial;
use crate::judge::{Judgement, StageReport, ToShow};
use crate::strategy::Study;
use crate::study::{Scenario, Start, key};

/// Adds the rounds that would show a difference or confirm a constraint, and the time of the
/// missing ones, to each row and constraint that needs them.
pub(super) fn to_show(study: &mut Study, scenarios: &[Scenario], timing: &Timing) {
    for stage in &mut study.stages {
        let round = round(stage, &study.trials, scenarios, timing);
        let were = stage.rounds[1] + 1 - stage.rounds[0];
        let compared = stage.rows.iter().filter(|row| row.why.is_none()).count();
        let noise = stage.noise;
        let takes = |rounds: u32, were: u32| ToShow {
            rounds,
            seconds: round.map(|round| round * f64::from(rounds - were)),
        };
        for row in &mut stage.rows {
            let gain = row.gain.filter(|_| row.judgement == Judgement::NoDifference);
            let rounds = gain
                .zip(noise)
                .and_then(|(gain, noise)| noise.rounds(gain.percent, compared, were));
            row.to_show = rounds.map(|rounds| takes(rounds, were));
            for held in &mut row.constraints {
                let repeats = held.figure.map_or(0, |figure| figure.repeats as u32);
                held.to_show = held.to_show.map(|to_show| takes(to_show.rounds, repeats));
            }
        }
    }
}

/// Estimates the time of a round of a stage, in seconds, with the trials that are not ruled out.
fn round(
    stage: &StageReport,
    trials: &[Trial],
    scenarios: &[Scenario],
    timing: &Timing,
) -> Option<f64> {
    let rows = stage.rows.iter().filter(|row| row.why.is_none());
    let starts = rows.filter_map(|row| trials.iter().find(|trial| trial.id == row.trial));
    let seconds = starts.map(|trial| {
        let run = |scenario| key(&trial.id, scenario, 1);
        timing.start(&Start {
            trial: trial.clone(),
            round: 1,
            runs: scenarios.iter().map(run).collect(),
        })
    });
    seconds.sum()
}

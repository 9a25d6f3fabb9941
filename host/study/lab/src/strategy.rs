//! Strategies: the trials to run, their stages, and the trial to recommend.
//!
//! Each is a function of the lab and of the measurements so far ([`study`]), without memory of its
//! own; [`next`] asks them for the next starts. They are deterministic.
//!
//! - **Matrix**: every combination of values in one stage, against the baseline.
//! - **One at a time**: each option alone in one stage, from the baseline. Of each option, the best
//!   value is kept, if it is shown to be better. The kept values are then run together, against the
//!   baseline and the best single value. Options whose conditions hold only then follow in a stage
//!   of their own. Combinations that are only good together are not found.
//!
//! **Several engines** are first compared at their baselines by `one-at-a-time`, and the best
//! engine is tuned; the first of the file, if no difference is shown. A matrix takes all engines.
//!
//! **Confirmation.** The best of many was partly chosen by luck. So the reported gain comes from
//! fresh runs of it and the baseline; if they do not show it, the baseline stays. Where no trial is
//! shown to be better, the most promising trial is confirmed all the same: a test of one side at
//! 5 % is enough to try. The more choices led to a trial, the stronger its confirmation must be
//! ([`needed`]), so that at most one of 200 labs without any difference recommends a trial. Each
//! model is a study of its own.

mod one_at_a_time;

use crate::estimate::Timing;
use crate::expand::{Trial, TrialId};
use crate::file::{Lab, Strategy};
use crate::journal::Results;
use crate::judge::{Judgement, Row, StageReport};
use crate::stat::OUTSIDE;
use crate::study::{LabEnd, Next, PlannedStage, Scenario, Start};
use crate::walk::Walk;

/// A model's study, as far as its results go.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// The model, by its position.
    pub model: usize,
    /// The stages so far; the last may not be done.
    pub stages: Vec<StageReport>,
    /// Every trial that any stage has.
    pub trials: Vec<Trial>,
    /// The starts that are to be made next; none if it is done.
    pub pending: Vec<Start>,
    /// Its decision, if it is done.
    pub decision: Option<Decision>,
    /// True if the budget ends it.
    pub is_spent: bool,
}

/// The decision of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The kind of answer.
    pub kind: Kind,
    /// The baseline that others are compared with.
    pub baseline: Trial,
    /// The trial that is recommended, or was chosen and not confirmed.
    pub chosen: Option<Trial>,
    /// The chosen trial against the baseline, in the stage that decides.
    pub row: Option<Row>,
    /// True if that stage has fresh runs of it, so that the gain is not the luckiest of many.
    pub is_confirmed: bool,
    /// The p-value that confirms it.
    pub needed: f64,
    /// Trials that may be as good.
    pub ties: Vec<TrialId>,
}

/// The heading of the stage that confirms a choice.
pub(crate) const CONFIRMATION: &str = "Confirmation";

/// The probability that a lab without any difference recommends a trial.
const FALSE: f64 = 1.0 / 200.0;

/// The p-value that a confirmation must not exceed after this number of choices. A choice passes a
/// trial that is no better with a probability of at most 5 %, and a confirmation with half of its
/// p-value; the product must be [`FALSE`].
fn needed(choices: usize) -> f64 {
    let let_through = (OUTSIDE * choices as f64).min(1.0);
    (2.0 * FALSE / let_through).min(OUTSIDE)
}

model::words! {
    /// The kind of answer that a study gives.
    pub enum Kind {
        /// A trial is better than the baseline, beyond chance.
        Better = "better",
        /// The baseline is ruled out; this trial is the best of the others.
        BestOfRest = "best-of-rest",
        /// No trial is shown to be better than the baseline.
        NoDifference = "no-difference",
        /// A trial was shown to be better, and fresh runs did not confirm it.
        NotConfirmed = "not-confirmed",
        /// No trial was measured that meets the constraints.
        Nothing = "nothing",
        /// There is no objective.
        NoObjective = "no-objective",
        /// It is not done.
        Unfinished = "unfinished",
    }
    default Unfinished
}

/// Decides the next starts, or the end of the lab, from the lab, its scenarios and the measurements
/// so far.
pub fn next(lab: &Lab, scenarios: &[Scenario], results: &Results) -> Next {
    let timing = Timing::new(scenarios, results);
    for model in 0..lab.models.len() {
        let study = study_by(lab, model, scenarios, results, &timing);
        if study.is_spent {
            return Next::Done(LabEnd::Budget);
        }
        if !study.pending.is_empty() {
            return Next::Run(study.pending);
        }
    }
    Next::Done(LabEnd::Complete)
}

/// The study of a model, as far as its results go.
pub fn study(lab: &Lab, model: usize, scenarios: &[Scenario], results: &Results) -> Study {
    study_by(lab, model, scenarios, results, &Timing::new(scenarios, results))
}

fn study_by(
    lab: &Lab,
    model: usize,
    scenarios: &[Scenario],
    results: &Results,
    timing: &Timing,
) -> Study {
    let mut walk = Walk::new(lab, model, scenarios, results);
    let decision = walk.decision();
    let is_spent = walk.is_spent(timing);
    Study {
        model,
        stages: walk.stages,
        trials: walk.trials,
        pending: walk.pending,
        decision,
        is_spent,
    }
}

/// A choice between trials: the best trial and the stage that showed it.
struct Choice {
    trial: Trial,
    stage: StageReport,
}

impl Walk<'_> {
    fn decision(&mut self) -> Option<Decision> {
        let mut baselines = self.lab.engines_with(self.model);
        let first = baselines.find_map(|(engine, _)| self.lab.baseline(engine, self.model))?;
        match self.lab.strategy {
            Strategy::Matrix => {
                let trials = self.lab.matrix(self.model);
                let stage =
                    self.stage(self.planned("Every combination", trials, self.lab.repeats))?;
                let chosen = self.best(&stage, |_| true);
                let chosen = chosen.or_else(|| self.promising(&stage));
                self.conclude(first, chosen, None)
            }
            Strategy::OneAtATime => self.one_at_a_time(),
        }
    }

    fn planned(&self, title: &str, trials: Vec<Trial>, rounds: u32) -> PlannedStage {
        PlannedStage { title: title.to_owned(), trials: crate::expand::merged(trials), rounds }
    }

    fn is_maximized(&self) -> bool {
        self.lab.objective.as_ref().is_none_or(|objective| objective.is_maximized)
    }

    fn trial(&self, id: &TrialId) -> Option<Trial> {
        self.trials.iter().find(|trial| trial.id == *id).cloned()
    }

    fn best(&mut self, stage: &StageReport, among: impl Fn(&TrialId) -> bool) -> Option<Choice> {
        self.choices.insert(stage.rounds[0]);
        let row = stage.best_of(among, self.is_maximized())?;
        self.choice(row, stage)
    }

    /// The trial that fresh runs may show to be better, if there is any.
    fn promising(&self, stage: &StageReport) -> Option<Choice> {
        let row = stage.most_promising().filter(|_| self.lab.confirm > 0)?;
        self.choice(row, stage)
    }

    fn choice(&self, row: &Row, stage: &StageReport) -> Option<Choice> {
        Some(Choice { trial: self.trial(&row.trial)?, stage: stage.clone() })
    }

    /// Confirms a choice with fresh runs, unless a stage has done so, and returns the study's
    /// decision.
    fn conclude(
        &mut self,
        baseline: Trial,
        chosen: Option<Choice>,
        confirmed: Option<StageReport>,
    ) -> Option<Decision> {
        let Some(choice) = chosen.filter(|choice| choice.trial.id != baseline.id) else {
            let row = self.stages.iter().rev().find_map(|stage| stage.row(&baseline.id)).cloned();
            let is_eligible = row.as_ref().is_some_and(Row::is_eligible);
            let kind = match (&self.lab.objective, is_eligible) {
                (None, _) => Kind::NoObjective,
                (Some(_), true) => Kind::NoDifference,
                (Some(_), false) => Kind::Nothing,
            };
            return Some(Decision {
                kind,
                baseline,
                chosen: None,
                row,
                is_confirmed: false,
                needed: OUTSIDE,
                ties: Vec::new(),
            });
        };
        let ties = choice.stage.ties(&self.sides(), self.errors.as_ref(), &choice.trial.id);
        let ties = ties.into_iter().filter(|tie| *tie != baseline.id).collect();
        let is_confirmed = confirmed.is_some() || self.lab.confirm > 0;
        let choices = self
            .choices
            .iter()
            .filter(|first| confirmed.as_ref().is_none_or(|stage| stage.rounds[0] != **first));
        let needed = if is_confirmed { needed(choices.count()) } else { OUTSIDE };
        let decides = match (confirmed, self.lab.confirm) {
            (Some(stage), _) => stage,
            (None, 0) => choice.stage.clone(),
            (None, rounds) => {
                let trials = vec![baseline.clone(), choice.trial.clone()];
                self.stage(self.planned(CONFIRMATION, trials, rounds))?
            }
        };
        let baseline_row = decides.row(&baseline.id);
        let row = decides.row(&choice.trial.id).cloned();
        let may_win = row.as_ref().is_some_and(Row::may_win);
        let is_shown = row.as_ref().is_some_and(|row| {
            let p = row.gain.and_then(|gain| gain.probability);
            row.judgement == Judgement::Better && p.is_some_and(|p| p <= needed)
        });
        let kind = if may_win && is_shown {
            Kind::Better
        } else if may_win && !baseline_row.is_some_and(Row::is_eligible) {
            Kind::BestOfRest
        } else {
            Kind::NotConfirmed
        };
        Some(Decision {
            kind,
            baseline,
            chosen: Some(choice.trial),
            row,
            is_confirmed,
            needed,
            ties,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::needed;

    /// One choice in twenty is no better, and half of the p-value: 0.005 at most.
    #[test]
    fn more_choices_need_a_stronger_confirmation() {
        for (choices, wanted) in [(1, 0.05), (4, 0.05), (8, 0.025), (20, 0.01), (1000, 0.01)] {
            assert!((needed(choices) - wanted).abs() < 1e-12, "{choices}");
        }
    }
}

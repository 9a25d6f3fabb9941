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

use crate::estimate::Timing;
use crate::expand::{Trial, TrialId};
use crate::file::{Lab, Strategy};
use crate::journal::Results;
use crate::judge::{Judgement, Row, Sides, StageReport};
use crate::stat::OUTSIDE;
use crate::study::{LabEnd, Next, Scenario, Start};
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
    pub decision: Option<Decision>,
    /// True if the budget ends it.
    pub is_spent: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
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

/// Decides the next starts, or the end of the lab, from the measurements so far.
pub fn next(lab: &Lab, scenarios: &[Scenario], results: &Results) -> Next {
    let (sides, timing) = (Sides { lab, scenarios, results }, Timing::new(scenarios, results));
    for model in 0..lab.models.len() {
        let study = study_by(sides, model, &timing);
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
    study_by(Sides { lab, scenarios, results }, model, &Timing::new(scenarios, results))
}

pub(crate) fn study_by(sides: Sides<'_>, model: usize, timing: &Timing) -> Study {
    let mut walk = Walk::new(sides, model);
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
        let lab = self.sides.lab;
        let mut baselines = lab.engines_with(self.model);
        let first = baselines.find_map(|(engine, _)| lab.baseline(engine, self.model))?;
        match lab.strategy {
            Strategy::Matrix => {
                let trials = lab.matrix(self.model);
                let stage = self.stage("Every combination", trials, lab.repeats)?;
                let chosen = self.best(&stage, |_| true);
                let chosen = chosen.or_else(|| self.promising(&stage));
                self.conclude(first, chosen, None)
            }
            Strategy::OneAtATime => self.one_at_a_time(),
        }
    }

    fn trial(&self, id: &TrialId) -> Option<Trial> {
        self.trials.iter().find(|trial| trial.id == *id).cloned()
    }

    fn best(&mut self, stage: &StageReport, among: impl Fn(&TrialId) -> bool) -> Option<Choice> {
        self.choices.insert(stage.rounds[0]);
        let row = stage.best_of(among, self.sides.lab.is_maximized())?;
        self.choice(row, stage)
    }

    /// The trial that fresh runs may show to be better, if there is any.
    fn promising(&self, stage: &StageReport) -> Option<Choice> {
        let row = stage.most_promising().filter(|_| self.sides.lab.confirm > 0)?;
        self.choice(row, stage)
    }

    fn choice(&self, row: &Row, stage: &StageReport) -> Option<Choice> {
        Some(Choice { trial: self.trial(&row.trial)?, stage: stage.clone() })
    }

    /// Confirms a choice with fresh runs, unless a stage has, and returns the study's decision.
    fn conclude(
        &mut self,
        baseline: Trial,
        chosen: Option<Choice>,
        confirmed: Option<StageReport>,
    ) -> Option<Decision> {
        let lab = self.sides.lab;
        let Some(choice) = chosen.filter(|choice| choice.trial.id != baseline.id) else {
            let row = self.stages.iter().rev().find_map(|stage| stage.row(&baseline.id)).cloned();
            let is_eligible = row.as_ref().is_some_and(Row::is_eligible);
            let kind = match (&lab.objective, is_eligible) {
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
        let ties = choice.stage.ties(&self.sides, self.errors.as_ref(), &choice.trial.id);
        let ties = ties.into_iter().filter(|tie| *tie != baseline.id).collect();
        let is_confirmed = confirmed.is_some() || lab.confirm > 0;
        let confirming = confirmed.as_ref().map(|stage| stage.rounds[0]);
        let choices = self.choices.iter().filter(|first| Some(**first) != confirming);
        let needed = if is_confirmed { needed(choices.count()) } else { OUTSIDE };
        let decides = match (confirmed, lab.confirm) {
            (Some(stage), _) => stage,
            (None, 0) => choice.stage.clone(),
            (None, rounds) => {
                let trials = vec![baseline.clone(), choice.trial.clone()];
                self.stage(CONFIRMATION, trials, rounds)?
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

impl Walk<'_> {
    /// The engine to tune, by its baseline, and the common baseline: the first measured engine's.
    fn engine(&mut self) -> Option<[Trial; 2]> {
        let lab = self.sides.lab;
        let baselines: Vec<Trial> = (lab.engines_with(self.model))
            .filter_map(|(engine, _)| lab.baseline(engine, self.model))
            .collect();
        let first = baselines.first()?.clone();
        if baselines.len() == 1 {
            return Some([first.clone(), first]);
        }
        let stage = self.stage("Choosing the engine", baselines.clone(), lab.repeats)?;
        let was_measured =
            |trial: &&Trial| stage.row(&trial.id).is_some_and(|row| row.level.is_some());
        let first = baselines.iter().find(was_measured).cloned().unwrap_or(first);
        let best = self.best(&stage, |_| true).map_or_else(|| first.clone(), |choice| choice.trial);
        Some([best, first])
    }

    /// The dimensions that can be varied from a trial.
    fn varied(&self, from: &Trial) -> Vec<usize> {
        let lab = self.sides.lab;
        let dimensions = &lab.engines[from.engine].dimensions;
        let varied = (0..dimensions.len()).filter(|place| dimensions[*place].is_varied());
        varied.filter(|place| lab.value_in(from, *place).is_some()).collect()
    }

    fn one_at_a_time(&mut self) -> Option<Decision> {
        let lab = self.sides.lab;
        let [mut from, baseline] = self.engine()?;
        let mut tried: Vec<usize> = Vec::new();
        let mut chosen: Option<Choice> = None;
        let mut confirmed = None;
        loop {
            let left: Vec<usize> =
                self.varied(&from).into_iter().filter(|place| !tried.contains(place)).collect();
            if left.is_empty() {
                break;
            }
            let each: Vec<Vec<Trial>> =
                left.iter().map(|place| lab.variations(&from, *place)).collect();
            tried.extend(&left);
            let trials: Vec<Trial> = each.iter().flatten().cloned().collect();
            if trials.is_empty() {
                continue;
            }
            let trials = [from.clone(), baseline.clone()].into_iter().chain(trials).collect();
            let stage = self.stage("Each option alone", trials, lab.repeats)?;
            let kept: Vec<(usize, Choice)> = (each.iter())
                .filter_map(|group| self.best(&stage, |id| group.iter().any(|own| own.id == *id)))
                .map(|choice| (differing(&from, &choice.trial), choice))
                .collect();
            let Some(best) =
                self.best(&stage, |id| kept.iter().any(|(_, choice)| choice.trial.id == *id))
            else {
                if chosen.is_none() && from.id == baseline.id {
                    chosen = self.promising(&stage);
                }
                break;
            };
            let together = self.together(&from, &kept);
            let choice = match together.filter(|together| together.id != best.trial.id) {
                None => best,
                Some(together) => {
                    let rounds = lab.repeats.max(lab.confirm);
                    let trials = vec![baseline.clone(), best.trial.clone(), together];
                    let stage = self.stage("The best of each option together", trials, rounds)?;
                    confirmed = Some(stage.clone());
                    // The best single value stays if the stage shows neither, and the last stage
                    // then decides.
                    self.best(&stage, |_| true).unwrap_or(Choice { stage, ..best })
                }
            };
            from = choice.trial.clone();
            chosen = Some(choice);
            // A further stage chooses from values that no stage has confirmed.
            if self.varied(&from).iter().any(|place| !tried.contains(place)) {
                confirmed = None;
            }
        }
        if chosen.is_none() && from.id != baseline.id {
            let stage = self.stages.first()?.clone();
            chosen = Some(Choice { trial: from, stage });
        }
        if chosen.is_none() && self.stages.is_empty() {
            self.stage("The baseline", vec![baseline.clone()], lab.repeats)?;
        }
        self.conclude(baseline, chosen, confirmed)
    }

    /// One trial of all kept choices; excluded combinations lose their choice with the least gain.
    fn together(&self, from: &Trial, kept: &[(usize, Choice)]) -> Option<Trial> {
        let level = |choice: &Choice| {
            choice.stage.row(&choice.trial.id).and_then(|row| row.level).unwrap_or_default()
        };
        let mut kept: Vec<&(usize, Choice)> = kept.iter().collect();
        kept.sort_by(|(_, a), (_, b)| level(b).total_cmp(&level(a)));
        if !self.sides.lab.is_maximized() {
            kept.reverse();
        }
        while !kept.is_empty() {
            let mut choice = from.choice.clone();
            for (dimension, best) in &kept {
                choice[*dimension] = best.trial.choice[*dimension];
            }
            if let Some(trial) = self.sides.lab.trial(from.engine, from.model, &choice) {
                return Some(trial);
            }
            kept.pop();
        }
        None
    }
}

/// The first dimension in which two trials of an engine differ.
fn differing(a: &Trial, b: &Trial) -> usize {
    a.choice.iter().zip(&b.choice).position(|(a, b)| a != b).unwrap_or_default()
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

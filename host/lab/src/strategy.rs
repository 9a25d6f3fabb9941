//! Strategies: which trials are run, in which stages, and which one is recommended.
//!
//! Each is a function of the lab and of what was measured so far ([`study`]), without memory of its own; [`next`] asks them
//! what to run. They are deterministic.
//!
//! - **Matrix**: every combination of values in one stage, against the baseline.
//! - **One at a time**: each value of each option alone, from the baseline; of each option the best value is kept, if it is
//!   shown to be better. What is kept is then run together, against the baseline and the best one alone. Options whose
//!   conditions hold only then follow in a stage of their own. Combinations that are only good together are not found.
//! - **Descent**: one option after another, from the best so far, as often as `passes` says or until nothing changes.
//! - **Halving**: every combination with one repeat; the best third (`eta`) again with three times as many repeats or requests,
//!   and so on; what is left last has all repeats. Those that are dropped are dropped by their means, which one repeat does
//!   not show to differ: close ones may be dropped by chance. The baseline stays to the end.
//!
//! **Several engines** are first held against each other at their baselines by `one-at-a-time` and `descent`, and the best one
//! is tuned; the first of the file, if no difference is shown. A matrix and halving take all engines.
//!
//! **Confirmation.** What was chosen as the best of many was in part lucky. So the gain that is reported comes from fresh runs
//! of it and the baseline; if they do not show it, the baseline stays. Each model is a study of its own.

use crate::estimate::Timing;
use crate::expand::{Trial, TrialId};
use crate::file::{Lab, Strategy};
use crate::journal::Results;
use crate::judge::{Judgement, Row, Sides, StageReport};
use crate::walk::{Asked, Ended, Next, Scenario, Start, WHOLE, Walk};

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
    pub asks: Vec<Start>,
    /// What it came to, if it is done.
    pub decision: Option<Decision>,
    /// Whether the budget lets it go on.
    pub is_spent: bool,
}

/// What a study came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The kind of answer.
    pub kind: Kind,
    /// The baseline that others are held against.
    pub baseline: Trial,
    /// The trial that is recommended, or was chosen and not confirmed.
    pub chosen: Option<Trial>,
    /// It against the baseline, in the stage that decides.
    pub row: Option<Row>,
    /// Whether that stage has fresh runs of it, so that the gain is not that of the luckiest of many.
    pub is_confirmed: bool,
    /// Trials that may be as good.
    pub ties: Vec<TrialId>,
}

model::words! {
    /// The kind of answer that a study gives.
    pub enum Kind {
        /// A trial is better than the baseline, beyond chance.
        Better = "better",
        /// The baseline is ruled out; a trial that is not is the best of the rest.
        BestOfRest = "best-of-rest",
        /// No trial is shown to be better than the baseline.
        NoDifference = "no-difference",
        /// One was shown to be better, and fresh runs did not confirm it.
        NotConfirmed = "not-confirmed",
        /// No trial was measured that meets the constraints.
        Nothing = "nothing",
        /// There is no objective.
        NoObjective = "no-objective",
        /// It is not done.
        Unfinished = "unfinished",
    }
}

/// What to do next. `timing` is what the journal and the scenarios say of times.
pub fn next(lab: &Lab, scenarios: &[Scenario], results: &Results) -> Next {
    let timing = Timing::of(scenarios, results);
    for model in 0..lab.models.len() {
        let study = study_by(lab, model, scenarios, results, &timing);
        if study.is_spent {
            return Next::Done(Ended::Budget);
        }
        if !study.asks.is_empty() {
            return Next::Run(study.asks);
        }
    }
    Next::Done(Ended::Complete)
}

/// The study of a model, as far as its results go.
pub fn study(lab: &Lab, model: usize, scenarios: &[Scenario], results: &Results) -> Study {
    study_by(
        lab,
        model,
        scenarios,
        results,
        &Timing::of(scenarios, results),
    )
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
        asks: walk.asks,
        decision,
        is_spent,
    }
}

/// A choice between trials: the best one and the stage that showed it.
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
                    self.stage(self.asked("Every combination", trials, self.lab.repeats))?;
                let chosen = self.best(&stage, |_| true);
                self.conclude(first, chosen, None)
            }
            Strategy::Halving => self.halving(first),
            Strategy::OneAtATime => self.one_at_a_time(),
            Strategy::Descent => self.descent(),
        }
    }

    fn asked(&self, title: &str, trials: Vec<Trial>, rounds: u32) -> Asked {
        Asked {
            title: title.to_owned(),
            trials: crate::expand::merged(trials),
            rounds,
            share: WHOLE,
        }
    }

    fn sides(&self, share: u32) -> Sides<'_> {
        Sides {
            lab: self.lab,
            scenarios: self.scenarios,
            results: self.results,
            share,
        }
    }

    fn is_maximized(&self) -> bool {
        self.lab
            .objective
            .as_ref()
            .is_none_or(|objective| objective.is_maximized)
    }

    fn trial(&self, id: &TrialId) -> Option<Trial> {
        self.trials.iter().find(|trial| trial.id == *id).cloned()
    }

    fn best(&self, stage: &StageReport, among: impl Fn(&TrialId) -> bool) -> Option<Choice> {
        let row = stage.best_of(among, self.is_maximized())?;
        Some(Choice {
            trial: self.trial(&row.trial)?,
            stage: stage.clone(),
        })
    }

    /// The engine to tune: its baseline. And the baseline of all: that of the first engine that was measured.
    fn engine(&mut self) -> Option<[Trial; 2]> {
        let lab = self.lab;
        let baselines = lab
            .engines_with(self.model)
            .filter_map(|(engine, _)| lab.baseline(engine, self.model));
        let baselines: Vec<Trial> = baselines.collect();
        let first = baselines.first()?.clone();
        if baselines.len() == 1 {
            return Some([first.clone(), first]);
        }
        let stage =
            self.stage(self.asked("Choosing the engine", baselines.clone(), lab.repeats))?;
        let was_measured =
            |trial: &&Trial| stage.row(&trial.id).is_some_and(|row| row.level.is_some());
        let first = baselines
            .iter()
            .find(was_measured)
            .cloned()
            .unwrap_or(first);
        let best = self
            .best(&stage, |_| true)
            .map_or_else(|| first.clone(), |choice| choice.trial);
        Some([best, first])
    }

    /// The dimensions that can be varied from a trial.
    fn varied(&self, from: &Trial) -> Vec<usize> {
        let engine = &self.lab.engines[from.engine];
        let dimensions =
            (0..engine.dimensions.len()).filter(|place| engine.dimensions[*place].is_varied());
        dimensions
            .filter(|place| self.lab.value_in(from, *place).is_some())
            .collect()
    }

    fn one_at_a_time(&mut self) -> Option<Decision> {
        let [mut from, baseline] = self.engine()?;
        let mut tried: Vec<usize> = Vec::new();
        let mut chosen: Option<Choice> = None;
        let mut confirmed = None;
        loop {
            let left: Vec<usize> = self
                .varied(&from)
                .into_iter()
                .filter(|place| !tried.contains(place))
                .collect();
            if left.is_empty() {
                break;
            }
            let each: Vec<Vec<Trial>> = left
                .iter()
                .map(|place| self.lab.variations(&from, *place))
                .collect();
            tried.extend(&left);
            let trials: Vec<Trial> = each.iter().flatten().cloned().collect();
            if trials.is_empty() {
                continue;
            }
            let trials = [from.clone(), baseline.clone()]
                .into_iter()
                .chain(trials)
                .collect();
            let stage = self.stage(self.asked("Each option alone", trials, self.lab.repeats))?;
            let kept = each
                .iter()
                .filter_map(|of| self.best(&stage, |id| of.iter().any(|trial| trial.id == *id)));
            let kept: Vec<(usize, Choice)> = kept
                .map(|choice| (differing(&from, &choice.trial), choice))
                .collect();
            let Some(best) = self.best(&stage, |id| {
                kept.iter().any(|(_, choice)| choice.trial.id == *id)
            }) else {
                break;
            };
            let together = self.together(&from, &kept);
            let choice = match together.filter(|together| together.id != best.trial.id) {
                None => best,
                Some(together) => {
                    let rounds = self.lab.repeats.max(self.lab.confirm);
                    let trials = vec![baseline.clone(), best.trial.clone(), together];
                    let stage =
                        self.stage(self.asked("The best of each option together", trials, rounds))?;
                    confirmed = Some(stage.clone());
                    // The best alone stays if the stage shows neither, and the last stage then decides.
                    self.best(&stage, |_| true)
                        .unwrap_or(Choice { stage, ..best })
                }
            };
            from = choice.trial.clone();
            chosen = Some(choice);
            // A stage that follows chooses from what no stage has confirmed.
            if self
                .varied(&from)
                .iter()
                .any(|place| !tried.contains(place))
            {
                confirmed = None;
            }
        }
        if chosen.is_none() && from.id != baseline.id {
            let stage = self.stages.first()?.clone();
            chosen = Some(Choice { trial: from, stage });
        }
        if chosen.is_none() && self.stages.is_empty() {
            self.stage(self.asked("The baseline", vec![baseline.clone()], self.lab.repeats))?;
        }
        self.conclude(baseline, chosen, confirmed)
    }

    /// What is kept of each dimension in one trial; the least gain is given up where a combination is excluded.
    fn together(&self, from: &Trial, kept: &[(usize, Choice)]) -> Option<Trial> {
        let level = |choice: &Choice| {
            choice
                .stage
                .row(&choice.trial.id)
                .and_then(|row| row.level)
                .unwrap_or_default()
        };
        let mut kept: Vec<&(usize, Choice)> = kept.iter().collect();
        kept.sort_by(|(_, a), (_, b)| level(b).total_cmp(&level(a)));
        if !self.is_maximized() {
            kept.reverse();
        }
        while !kept.is_empty() {
            let mut choice = from.choice.clone();
            for (dimension, of) in &kept {
                choice[*dimension] = of.trial.choice[*dimension];
            }
            if let Some(trial) = self.lab.trial(from.engine, from.model, &choice) {
                return Some(trial);
            }
            kept.pop();
        }
        None
    }

    fn descent(&mut self) -> Option<Decision> {
        let [mut from, baseline] = self.engine()?;
        let mut chosen: Option<Choice> = None;
        if from.id != baseline.id {
            let stage = self.stages.first()?.clone();
            chosen = Some(Choice {
                trial: from.clone(),
                stage,
            });
        }
        for pass in 1..=self.lab.passes {
            let mut is_changed = false;
            // Options whose condition begins to hold within a pass follow in the next one.
            for place in self.varied(&from) {
                let others = self.lab.variations(&from, place);
                if others.is_empty() || self.lab.value_in(&from, place).is_none() {
                    continue;
                }
                let name = &self.lab.engines[from.engine].dimensions[place].name;
                let title = format!("Pass {pass}: {name}");
                let trials = [from.clone(), baseline.clone()]
                    .into_iter()
                    .chain(others)
                    .collect();
                let stage = self.stage(self.asked(&title, trials, self.lab.repeats))?;
                if let Some(choice) = self.best(&stage, |id| *id != baseline.id) {
                    from = choice.trial.clone();
                    chosen = Some(choice);
                    is_changed = true;
                }
            }
            if !is_changed {
                break;
            }
        }
        if self.stages.is_empty() {
            self.stage(self.asked("The baseline", vec![baseline.clone()], self.lab.repeats))?;
        }
        self.conclude(baseline, chosen, None)
    }

    fn halving(&mut self, baseline: Trial) -> Option<Decision> {
        let eta = self.lab.halving.eta;
        let mut trials = self.lab.matrix(self.model);
        let mut share = self.lab.halving.first_share;
        let mut rounds = 1;
        for rung in 1.. {
            let others = trials.len().saturating_sub(1);
            let is_full = share >= 1.0 && rounds >= self.lab.repeats;
            let is_last = is_full || others <= eta as usize;
            let asked = Asked {
                title: match is_last {
                    true => format!("Rung {rung}, the last"),
                    false => format!("Rung {rung}"),
                },
                trials: trials.clone(),
                rounds: if is_last {
                    self.lab.repeats
                } else {
                    rounds.min(self.lab.repeats)
                },
                share: if is_last { WHOLE } else { thousandths(share) },
            };
            let is_short = asked.share < WHOLE;
            let stage = self.stage(asked)?;
            if is_last {
                let chosen = self.best(&stage, |_| true);
                return self.conclude(baseline, chosen, None);
            }
            match is_short {
                true => share = (share * f64::from(eta)).min(1.0),
                false => rounds = rounds.saturating_mul(eta),
            }
            trials = self.survivors(&stage, &baseline, others.div_ceil(eta as usize));
        }
        None
    }

    /// The baseline, and so many of the others, by their means.
    fn survivors(&self, stage: &StageReport, baseline: &Trial, many: usize) -> Vec<Trial> {
        let mut rows: Vec<&Row> = stage
            .rows
            .iter()
            .filter(|row| row.is_eligible() && row.trial != baseline.id)
            .collect();
        rows.sort_by(|a, b| {
            b.level
                .unwrap_or_default()
                .total_cmp(&a.level.unwrap_or_default())
        });
        if !self.is_maximized() {
            rows.reverse();
        }
        let best = rows
            .into_iter()
            .take(many)
            .filter_map(|row| self.trial(&row.trial));
        [baseline.clone()].into_iter().chain(best).collect()
    }

    /// Confirms a choice with fresh runs, unless a stage has done so, and says what the study came to.
    fn conclude(
        &mut self,
        baseline: Trial,
        chosen: Option<Choice>,
        confirmed: Option<StageReport>,
    ) -> Option<Decision> {
        let Some(choice) = chosen.filter(|choice| choice.trial.id != baseline.id) else {
            let row = self
                .stages
                .iter()
                .rev()
                .find_map(|stage| stage.row(&baseline.id))
                .cloned();
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
                ties: Vec::new(),
            });
        };
        let ties = choice
            .stage
            .ties(&self.sides(choice.stage.share), &choice.trial.id);
        let ties = ties.into_iter().filter(|tie| *tie != baseline.id).collect();
        let is_confirmed = confirmed.is_some() || self.lab.confirm > 0;
        let decides = match (confirmed, self.lab.confirm) {
            (Some(stage), _) => stage,
            (None, 0) => choice.stage.clone(),
            (None, rounds) => {
                let trials = vec![baseline.clone(), choice.trial.clone()];
                self.stage(self.asked("Confirmation", trials, rounds))?
            }
        };
        let baseline_row = decides.row(&baseline.id);
        let row = decides.row(&choice.trial.id).cloned();
        let is_eligible = row.as_ref().is_some_and(Row::is_eligible);
        let kind = match row.as_ref().map(|row| row.judgement) {
            Some(Judgement::Better) => Kind::Better,
            _ if is_eligible && !baseline_row.is_some_and(Row::is_eligible) => Kind::BestOfRest,
            _ => Kind::NotConfirmed,
        };
        Some(Decision {
            kind,
            baseline,
            chosen: Some(choice.trial),
            row,
            is_confirmed,
            ties,
        })
    }
}

/// The first dimension in which two trials of an engine differ.
fn differing(a: &Trial, b: &Trial) -> usize {
    let pairs = a.choice.iter().zip(&b.choice);
    pairs
        .into_iter()
        .position(|(a, b)| a != b)
        .unwrap_or_default()
}

/// A share in thousandths; at least one.
fn thousandths(share: f64) -> u32 {
    (1..=WHOLE)
        .rev()
        .find(|part| f64::from(*part) <= share * f64::from(WHOLE) + 1e-9)
        .unwrap_or(1)
}

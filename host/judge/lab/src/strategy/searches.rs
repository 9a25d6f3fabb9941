//! The strategies that choose what to try next from what was measured.

use super::{Choice, Decision};
use crate::expand::Trial;
use crate::judge::{Row, StageReport};
use crate::study::{PlannedStage, WHOLE};
use crate::walk::Walk;

impl Walk<'_> {
    /// The engine to tune: its baseline. And the baseline of all: that of the first engine that was
    /// measured.
    fn engine(&mut self) -> Option<[Trial; 2]> {
        let lab = self.lab;
        let baselines =
            lab.engines_with(self.model).filter_map(|(engine, _)| lab.baseline(engine, self.model));
        let baselines: Vec<Trial> = baselines.collect();
        let first = baselines.first()?.clone();
        if baselines.len() == 1 {
            return Some([first.clone(), first]);
        }
        let stage =
            self.stage(self.asked("Choosing the engine", baselines.clone(), lab.repeats))?;
        let was_measured =
            |trial: &&Trial| stage.row(&trial.id).is_some_and(|row| row.level.is_some());
        let first = baselines.iter().find(was_measured).cloned().unwrap_or(first);
        let best = self.best(&stage, |_| true).map_or_else(|| first.clone(), |choice| choice.trial);
        Some([best, first])
    }

    /// The dimensions that can be varied from a trial.
    fn varied(&self, from: &Trial) -> Vec<usize> {
        let engine = &self.lab.engines[from.engine];
        let dimensions =
            (0..engine.dimensions.len()).filter(|place| engine.dimensions[*place].is_varied());
        dimensions.filter(|place| self.lab.value_in(from, *place).is_some()).collect()
    }

    pub(super) fn one_at_a_time(&mut self) -> Option<Decision> {
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
                left.iter().map(|place| self.lab.variations(&from, *place)).collect();
            tried.extend(&left);
            let trials: Vec<Trial> = each.iter().flatten().cloned().collect();
            if trials.is_empty() {
                continue;
            }
            let trials = [from.clone(), baseline.clone()].into_iter().chain(trials).collect();
            let stage = self.stage(self.asked("Each option alone", trials, self.lab.repeats))?;
            let kept = each
                .iter()
                .filter_map(|of| self.best(&stage, |id| of.iter().any(|trial| trial.id == *id)));
            let kept: Vec<(usize, Choice)> =
                kept.map(|choice| (differing(&from, &choice.trial), choice)).collect();
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
                    let rounds = self.lab.repeats.max(self.lab.confirm);
                    let trials = vec![baseline.clone(), best.trial.clone(), together];
                    let stage =
                        self.stage(self.asked("The best of each option together", trials, rounds))?;
                    confirmed = Some(stage.clone());
                    // The best alone stays if the stage shows neither, and the last stage then
                    // decides.
                    self.best(&stage, |_| true).unwrap_or(Choice { stage, ..best })
                }
            };
            from = choice.trial.clone();
            chosen = Some(choice);
            // A stage that follows chooses from what no stage has confirmed.
            if self.varied(&from).iter().any(|place| !tried.contains(place)) {
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

    /// Builds one trial with the kept choice of each dimension; the least gain is given up where a
    /// combination is excluded.
    fn together(&self, from: &Trial, kept: &[(usize, Choice)]) -> Option<Trial> {
        let level = |choice: &Choice| {
            choice.stage.row(&choice.trial.id).and_then(|row| row.level).unwrap_or_default()
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

    pub(super) fn descent(&mut self) -> Option<Decision> {
        let [mut from, baseline] = self.engine()?;
        let mut chosen: Option<Choice> = None;
        let mut promising: Option<Choice> = None;
        if from.id != baseline.id {
            let stage = self.stages.first()?.clone();
            chosen = Some(Choice { trial: from.clone(), stage });
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
                let trials = [from.clone(), baseline.clone()].into_iter().chain(others).collect();
                let stage = self.stage(self.asked(&title, trials, self.lab.repeats))?;
                if let Some(choice) = self.best(&stage, |id| *id != baseline.id) {
                    from = choice.trial.clone();
                    chosen = Some(choice);
                    is_changed = true;
                } else if chosen.is_none() {
                    promising = likelier(promising, self.promising(&stage));
                }
            }
            if !is_changed {
                break;
            }
        }
        if self.stages.is_empty() {
            self.stage(self.asked("The baseline", vec![baseline.clone()], self.lab.repeats))?;
        }
        self.conclude(baseline, chosen.or(promising), None)
    }

    pub(super) fn halving(&mut self, baseline: Trial) -> Option<Decision> {
        let eta = self.lab.halving.eta;
        let mut trials = self.lab.matrix(self.model);
        let mut share = self.lab.halving.first_share;
        let mut rounds = 1;
        for rung in 1.. {
            let others = trials.len().saturating_sub(1);
            let is_full = share >= 1.0 && rounds >= self.lab.repeats;
            let is_last = is_full || others <= eta as usize;
            let asked = PlannedStage {
                title: match is_last {
                    true => format!("Rung {rung}, the last"),
                    false => format!("Rung {rung}"),
                },
                trials: trials.clone(),
                rounds: if is_last { self.lab.repeats } else { rounds.min(self.lab.repeats) },
                share: if is_last { WHOLE } else { thousandths(share) },
            };
            let is_short = asked.share < WHOLE;
            let stage = self.stage(asked)?;
            if is_last {
                let chosen = self.best(&stage, |_| true);
                let chosen = chosen.or_else(|| self.promising(&stage));
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

    /// The baseline and the best of the others by their means, `many` of them; those whose means
    /// meet all constraints first.
    fn survivors(&self, stage: &StageReport, baseline: &Trial, many: usize) -> Vec<Trial> {
        let mut rows: Vec<&Row> =
            stage.rows.iter().filter(|row| row.is_eligible() && row.trial != baseline.id).collect();
        let level = |row: &Row| {
            let level = row.level.unwrap_or_default();
            if self.is_maximized() { level } else { -level }
        };
        rows.sort_by(|a, b| {
            let may_win = b.may_win().cmp(&a.may_win());
            may_win.then(level(b).total_cmp(&level(a)))
        });
        let best = rows.into_iter().take(many).filter_map(|row| self.trial(&row.trial));
        [baseline.clone()].into_iter().chain(best).collect()
    }
}

/// The choice that is more probably better than its stage's first trial.
fn likelier(a: Option<Choice>, b: Option<Choice>) -> Option<Choice> {
    let p = |choice: &Choice| {
        let gain = choice.stage.row(&choice.trial.id)?.gain?;
        gain.probability
    };
    match (&a, &b) {
        (Some(before), Some(now)) if p(now) < p(before) => b,
        (None, _) => b,
        _ => a,
    }
}

/// The first dimension in which two trials of an engine differ.
fn differing(a: &Trial, b: &Trial) -> usize {
    let pairs = a.choice.iter().zip(&b.choice);
    pairs.into_iter().position(|(a, b)| a != b).unwrap_or_default()
}

/// A share in thousandths; at least one.
fn thousandths(share: f64) -> u32 {
    (1..=WHOLE).rev().find(|part| f64::from(*part) <= share * f64::from(WHOLE) + 1e-9).unwrap_or(1)
}

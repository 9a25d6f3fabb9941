//! The strategy that tries each option alone, and then the best values together.

use super::{Choice, Decision};
use crate::expand::Trial;
use crate::walk::Walk;

impl Walk<'_> {
    /// The engine to tune, by its baseline, and the common baseline: the first measured engine's.
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
            self.stage(self.planned("Choosing the engine", baselines.clone(), lab.repeats))?;
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
            let stage = self.stage(self.planned("Each option alone", trials, self.lab.repeats))?;
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
                    let rounds = self.lab.repeats.max(self.lab.confirm);
                    let trials = vec![baseline.clone(), best.trial.clone(), together];
                    let stage = self.stage(self.planned(
                        "The best of each option together",
                        trials,
                        rounds,
                    ))?;
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
            self.stage(self.planned("The baseline", vec![baseline.clone()], self.lab.repeats))?;
        }
        self.conclude(baseline, chosen, confirmed)
    }

    /// Builds one trial with the kept choice of each dimension; the choice with the least gain is
    /// dropped where a combination is excluded.
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
            for (dimension, best) in &kept {
                choice[*dimension] = best.trial.choice[*dimension];
            }
            if let Some(trial) = self.lab.trial(from.engine, from.model, &choice) {
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

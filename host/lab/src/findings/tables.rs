//! The tables of a study: by option, everything against the baseline, the Pareto front, and the drift.

use std::collections::BTreeMap;

use super::{Front, OptionTable, OptionValue, Point};
use crate::expand::{Trial, TrialId};
use crate::file::Lab;
use crate::journal::{Cell, Finished, Outcome, Results};
use crate::judge::{self, Judgement, Row, Sides};
use crate::measured::Measured;
use crate::objective::{Measure, Objective};
use crate::stat::{self, Drift, Spread};
use crate::strategy::Study;
use crate::walk::{Scenario, WHOLE, key};
use result::finding::Verdict;

/// What tables are made of.
pub(super) struct Tables<'a> {
    sides: Sides<'a>,
    study: &'a Study,
    /// Every round of any stage that has all requests.
    rounds: Vec<u32>,
}

impl<'a> Tables<'a> {
    pub fn new(
        lab: &'a Lab,
        scenarios: &'a [Scenario],
        results: &'a Results,
        study: &'a Study,
    ) -> Self {
        let stages = study.stages.iter().filter(|stage| stage.share == WHOLE);
        let sides = Sides {
            lab,
            scenarios,
            results,
            share: WHOLE,
        };
        Tables {
            sides,
            study,
            rounds: stages
                .flat_map(|stage| stage.rounds[0]..=stage.rounds[1])
                .collect(),
        }
    }

    /// The baseline that others are held against; of a study that is not done, the first trial.
    fn baseline(&self) -> Option<&'a Trial> {
        let decision = self
            .study
            .decision
            .as_ref()
            .map(|decision| &decision.baseline);
        decision.or(self.study.trials.first())
    }

    /// Why a trial is ruled out, by any stage.
    fn why(&self, trial: &TrialId) -> Option<String> {
        let mut rows = self
            .study
            .stages
            .iter()
            .filter_map(|stage| stage.row(trial));
        rows.find_map(|row| row.why.clone())
    }

    /// Every trial against the baseline, in the rounds that both have, judged together.
    pub fn against_baseline(&self) -> Vec<Row> {
        let Some(baseline) = self.baseline() else {
            return Vec::new();
        };
        let mut trials: Vec<&Trial> = self.study.trials.iter().collect();
        trials.sort_by_key(|trial| trial.id != baseline.id);
        let rows = trials.into_iter().map(|trial| {
            let rounds = self.common(&trial.id, &baseline.id);
            let mut row = self.sides.row(trial, baseline, &rounds);
            row.why = self.why(&trial.id);
            if row.why.is_some() && row.judgement != Judgement::Reference {
                row.judgement = Judgement::RuledOut;
            }
            row
        });
        let mut rows: Vec<Row> = rows.collect();
        judge::judge(&mut rows);
        rows
    }

    /// Rounds that two trials have: what changed in between is then the same for both. All rounds, if there are none.
    fn common(&self, a: &TrialId, b: &TrialId) -> Vec<u32> {
        let measured = |trial: &TrialId, round: u32| {
            self.sides.scenarios.iter().any(|scenario| {
                let key = key(trial, scenario, round, WHOLE);
                matches!(
                    self.sides.results.cell(&key, self.sides.lab.retries),
                    Cell::Counted(..)
                )
            })
        };
        let both = |round: &&u32| measured(a, **round) && measured(b, **round);
        let common: Vec<u32> = self.rounds.iter().filter(both).copied().collect();
        if common.is_empty() {
            self.rounds.clone()
        } else {
            common
        }
    }

    /// The values of each option alone, from the baseline of its engine.
    pub fn options(&self, against: &[Row]) -> Vec<OptionTable> {
        let lab = self.sides.lab;
        let mut tables = Vec::new();
        for (place, engine) in lab.engines_with(self.study.model) {
            let Some(baseline) = lab.baseline(place, self.study.model) else {
                continue;
            };
            for (dimension, of) in engine.dimensions.iter().enumerate() {
                if !of.is_varied() {
                    continue;
                }
                let differs_here_alone = |trial: &&Trial| {
                    let pairs = trial.choice.iter().zip(&baseline.choice).enumerate();
                    let others = pairs.into_iter().filter(|(place, _)| *place != dimension);
                    trial.engine == place && others.into_iter().all(|(_, (a, b))| a == b)
                };
                let trials = self.study.trials.iter().filter(differs_here_alone);
                let values = trials.filter_map(|trial| {
                    let row = against.iter().find(|row| row.trial == trial.id)?.clone();
                    let value = lab.value_in(trial, dimension)?;
                    Some(OptionValue { value, row })
                });
                let values: Vec<OptionValue> = values.collect();
                if values.len() > 1 {
                    tables.push(OptionTable {
                        engine: engine.name.clone(),
                        option: of.name.clone(),
                        values,
                    });
                }
            }
        }
        tables
    }

    /// The Pareto front of each scenario, over the rounds that have all requests.
    pub fn pareto(&self) -> Vec<Front> {
        let Some(objective) = &self.sides.lab.objective else {
            return Vec::new();
        };
        let fronts = self.sides.scenarios.iter().map(|scenario| {
            let trials = self
                .study
                .trials
                .iter()
                .filter(|trial| self.why(&trial.id).is_none());
            let points = trials.filter_map(|trial| {
                let runs = self.runs(&trial.id, scenario);
                let [first, second] = &objective.pareto;
                Some(Point {
                    trial: trial.id.clone(),
                    label: self.sides.lab.label(trial),
                    at: [over(&runs, first)?, over(&runs, second)?],
                    is_on_front: false,
                })
            });
            let mut points: Vec<Point> = points.collect();
            let higher = objective.pareto.each_ref().map(Measure::is_better_higher);
            let front: Vec<bool> = points
                .iter()
                .map(|point| !points.iter().any(|other| dominates(other, point, higher)))
                .collect();
            for (point, is_on_front) in points.iter_mut().zip(front) {
                point.is_on_front = is_on_front;
            }
            Front {
                scenario: scenario.name.clone(),
                figures: objective.pareto.each_ref().map(ToString::to_string),
                points,
            }
        });
        fronts.filter(|front| !front.points.is_empty()).collect()
    }

    /// The lab's scenarios.
    pub fn scenarios(&self) -> &'a [Scenario] {
        self.sides.scenarios
    }

    /// The lab's objective.
    pub fn objective(&self) -> Option<&'a Objective> {
        self.sides.lab.objective.as_ref()
    }

    /// The study's trials.
    pub fn trials(&self) -> &'a [Trial] {
        &self.study.trials
    }

    /// What a trial is called.
    pub fn label(&self, trial: &Trial) -> String {
        self.sides.lab.label(trial)
    }

    /// The runs of a trial on a scenario that count.
    pub fn runs(&self, trial: &TrialId, scenario: &Scenario) -> Vec<&'a Measured> {
        let counted = self.rounds.iter().filter_map(|round| {
            let key = key(trial, scenario, *round, WHOLE);
            match self.sides.results.cell(&key, self.sides.lab.retries) {
                Cell::Counted(_, measured) => Some(measured),
                _ => None,
            }
        });
        counted.collect()
    }

    /// The trend over rounds that all trials have in common.
    pub fn drift(&self) -> Option<Drift> {
        let groups = self.study.trials.iter().map(|trial| {
            let starts = self.sides.starts(&trial.id, &self.rounds);
            starts
                .into_iter()
                .map(|(round, log)| (f64::from(round), log))
                .collect()
        });
        stat::drift(&groups.collect::<Vec<_>>())
    }
}

/// A figure over runs; nothing if a run lacks it.
pub(super) fn over(runs: &[&Measured], measure: &Measure) -> Option<Spread> {
    let values: Option<Vec<f64>> = runs.iter().map(|run| run.value(measure)).collect();
    stat::spread(&values?)
}

/// Whether a point is at least as good as another in both figures, and better in one.
fn dominates(a: &Point, b: &Point, higher: [bool; 2]) -> bool {
    let sign = higher.map(|higher| if higher { 1.0 } else { -1.0 });
    let apart = |place: usize| sign[place] * (a.at[place].mean - b.at[place].mean);
    let apart = [apart(0), apart(1)];
    apart.iter().all(|apart| *apart >= 0.0) && apart.iter().any(|apart| *apart > 0.0)
}

/// The names of trials of which no difference from the baseline is shown.
pub(super) fn not_significant(against: &[Row]) -> Vec<String> {
    let rows = against
        .iter()
        .filter(|row| row.judgement == Judgement::NoDifference);
    rows.map(|row| row.label.clone()).collect()
}

/// Figures over the runs of a trial that count, by scenario and name.
pub(super) fn figures(runs: &[&Finished]) -> BTreeMap<String, BTreeMap<String, Spread>> {
    let mut values: BTreeMap<String, BTreeMap<String, Vec<f64>>> = BTreeMap::new();
    let mut counted: Vec<(&str, u32)> = Vec::new();
    for finished in runs.iter().filter(|finished| finished.run.share == WHOLE) {
        let Outcome::Measured(measured) = &finished.outcome else {
            continue;
        };
        let of = (finished.run.scenario.as_str(), finished.run.round);
        // Of several attempts the first that is not invalid counts.
        if measured.verdict == Verdict::Invalid || counted.contains(&of) {
            continue;
        }
        counted.push(of);
        let own = values.entry(finished.run.scenario.clone()).or_default();
        for (name, number) in measured
            .figures
            .iter()
            .filter(|(_, number)| number.0.is_finite())
        {
            own.entry(name.clone()).or_default().push(number.0);
        }
    }
    let spreads = values.into_iter().map(|(scenario, figures)| {
        let figures = figures
            .into_iter()
            .filter_map(|(name, values)| Some((name, stat::spread(&values)?)));
        (scenario, figures.collect())
    });
    spreads.collect()
}

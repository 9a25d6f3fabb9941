//! The tables of a study: by option, everything against the baseline, the Pareto front, and the
//! drift.

use std::collections::BTreeMap;

use super::{Front, OptionTable, OptionValue, Point};
use crate::expand::{Trial, TrialId};
use crate::file::Lab;
use crate::journal::{Finished, Outcome, Results};
use crate::judge::{self, Errors, Fits, Judgement, Row, Sides, StageReport};
use crate::measured::Measured;
use crate::stat::{self, Drift, Spread};
use crate::strategy::Study;
use crate::study::Scenario;
use result::figure::{Better, Figure};
use result::finding::Verdict;

/// The data of the tables.
pub(super) struct Tables<'a> {
    pub sides: Sides<'a>,
    pub study: &'a Study,
    stages: Vec<(&'a StageReport, Fits)>,
    /// Every round of any stage.
    pub rounds: Vec<u32>,
}

impl<'a> Tables<'a> {
    pub fn new(
        lab: &'a Lab,
        scenarios: &'a [Scenario],
        results: &'a Results,
        study: &'a Study,
    ) -> Self {
        let sides = Sides { lab, scenarios, results };
        let stages: Vec<(&StageReport, Fits)> = (study.stages.iter())
            .map(|stage| {
                let trials: Vec<&TrialId> = stage.rows.iter().map(|row| &row.trial).collect();
                let is_out = |place: usize| place > 0 && stage.rows[place].why.is_some();
                (stage, Fits::new(&sides, &trials, &rounds(stage), is_out))
            })
            .collect();
        let rounds = study.stages.iter().flat_map(rounds).collect();
        Tables { rounds, sides, study, stages }
    }

    /// Finds the baseline of comparisons; the first trial of an unfinished study.
    fn baseline(&self) -> Option<&'a Trial> {
        let decision = self.study.decision.as_ref().map(|decision| &decision.baseline);
        decision.or(self.study.trials.first())
    }

    /// The reason why any stage ruled a trial out.
    fn why(&self, trial: &TrialId) -> Option<String> {
        let mut rows = self.study.stages.iter().filter_map(|stage| stage.row(trial));
        rows.find_map(|row| row.why.clone())
    }

    /// Every trial against the baseline, each by the last stage that has both: the stages before
    /// chose it partly by luck. They are judged together.
    pub fn against_baseline(&self) -> Vec<Row> {
        let Some(baseline) = self.baseline() else { return Vec::new() };
        let mut trials: Vec<&Trial> = self.study.trials.iter().collect();
        trials.sort_by_key(|trial| trial.id != baseline.id);
        let places: Vec<Option<(usize, usize, usize)>> =
            trials.iter().map(|trial| self.last(trial, baseline)).collect();
        let mut rows: Vec<Row> = (trials.iter().zip(&places))
            .map(|(trial, place)| {
                let stage = place.map(|(stage, ..)| self.stages[stage].0);
                self.row(trial, baseline, stage)
            })
            .collect();
        let is_judged = |row: &Row| row.judgement != Judgement::Reference && row.why.is_none();
        let pairs: Vec<Option<judge::Pair<'_>>> = (rows.iter().zip(&places))
            .map(|(row, place)| {
                let (stage, base, trial) = (*place).filter(|_| is_judged(row))?;
                Some((&self.stages[stage].1, base, trial))
            })
            .collect();
        let errors = self.stages.iter();
        let errors = errors.fold(Errors::default(), |errors, (_, fits)| errors.and(fits));
        let correlation = self.correlation(&pairs);
        judge::judge(&mut rows, &pairs, correlation, &errors);
        rows
    }

    /// The last stage that compares a trial with the baseline, and their places in it.
    fn last(&self, trial: &Trial, baseline: &Trial) -> Option<(usize, usize, usize)> {
        self.stages.iter().enumerate().rev().find_map(|(number, (stage, fits))| {
            let place = |trial: &Trial| stage.rows.iter().position(|row| row.trial == trial.id);
            let (base, own) = (place(baseline)?, place(trial)?);
            fits.starts.apart(base, own).map(|_| (number, base, own))
        })
    }

    /// The least correlation of differences: none between differences of different stages, which
    /// have no runs in common.
    fn correlation(&self, pairs: &[Option<judge::Pair<'_>>]) -> f64 {
        let mut compared = pairs.iter().flatten();
        let Some((fits, base, _)) = compared.next() else { return 0.0 };
        let trials: Option<Vec<usize>> = (pairs.iter().flatten())
            .map(|(own, _, trial)| std::ptr::eq(*own, *fits).then_some(*trial))
            .collect();
        trials.map_or(0.0, |trials| fits.starts.correlation(*base, &trials))
    }

    /// A trial's row, not judged yet, with its figures in that stage; else in the trial's last
    /// stage.
    fn row(&self, trial: &Trial, baseline: &Trial, stage: Option<&StageReport>) -> Row {
        let mut own = self.study.stages.iter().rev();
        let row = (stage.and_then(|stage| stage.row(&trial.id)))
            .or_else(|| own.find_map(|stage| stage.row(&trial.id)));
        let mut row = row.cloned().unwrap_or_else(|| self.sides.row(trial, &self.rounds));
        row.why = self.why(&trial.id);
        // Its stage may have compared it with another trial than the baseline.
        row.gain = None;
        for scenario in &mut row.scenarios {
            scenario.gain = None;
        }
        row.judgement = if trial.id == baseline.id {
            Judgement::Reference
        } else if row.why.is_some() {
            Judgement::RuledOut
        } else {
            Judgement::NotJudged
        };
        row
    }

    /// The values of each option alone, from the baseline of its engine.
    pub fn options(&self, against: &[Row]) -> Vec<OptionTable> {
        let lab = self.sides.lab;
        let mut tables = Vec::new();
        for (place, engine) in lab.engines_with(self.study.model) {
            let Some(baseline) = lab.baseline(place, self.study.model) else { continue };
            let varied = engine.dimensions.iter().enumerate();
            for (dimension, varied) in varied.filter(|(_, dimension)| dimension.is_varied()) {
                let differs_here_alone = |trial: &&Trial| {
                    let pairs = trial.choice.iter().zip(&baseline.choice).enumerate();
                    let others = pairs.into_iter().filter(|(place, _)| *place != dimension);
                    trial.engine == place && others.into_iter().all(|(_, (a, b))| a == b)
                };
                let trials = self.study.trials.iter().filter(differs_here_alone);
                let values: Vec<OptionValue> = (trials)
                    .filter_map(|trial| {
                        let row = against.iter().find(|row| row.trial == trial.id)?.clone();
                        Some(OptionValue { value: lab.value_in(trial, dimension)?, row })
                    })
                    .collect();
                if values.len() > 1 {
                    tables.push(OptionTable {
                        engine: engine.name.clone(),
                        option: varied.name.clone(),
                        values,
                    });
                }
            }
        }
        tables
    }

    /// The Pareto front of each scenario, over the rounds that have all requests.
    pub fn pareto(&self) -> Vec<Front> {
        let Some(objective) = &self.sides.lab.objective else { return Vec::new() };
        let fronts = self.sides.scenarios.iter().map(|scenario| {
            let trials = self.study.trials.iter().filter(|trial| self.why(&trial.id).is_none());
            let points = trials.filter_map(|trial| {
                let runs = self.sides.runs(&trial.id, scenario, &self.rounds);
                let [first, second] = &objective.pareto;
                Some(Point {
                    trial: trial.id.clone(),
                    label: self.sides.lab.label(trial),
                    at: [over(&runs, first)?, over(&runs, second)?],
                    is_on_front: false,
                })
            });
            let mut points: Vec<Point> = points.collect();
            let higher = objective.pareto.each_ref().map(|figure| figure.better() != Better::Lower);
            let front: Vec<bool> = (points.iter())
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

    /// The trend over rounds that is common to all trials.
    pub fn drift(&self) -> Option<Drift> {
        let effects: Vec<_> =
            self.stages.iter().map(|(_, fits)| fits.starts.rounds().collect()).collect();
        stat::drift(&effects)
    }
}

fn rounds(stage: &StageReport) -> Vec<u32> {
    (stage.rounds[0]..=stage.rounds[1]).collect()
}

/// A figure over runs; nothing if a run lacks it.
pub(super) fn over(runs: &[&Measured], measure: &Figure) -> Option<Spread> {
    let values: Option<Vec<f64>> = runs.iter().map(|run| run.value(measure)).collect();
    stat::spread(&values?)
}

/// True if a point is at least as good as another in both figures, and better in one.
fn dominates(a: &Point, b: &Point, higher: [bool; 2]) -> bool {
    let apart = [0, 1].map(|place| {
        let apart = a.at[place].mean - b.at[place].mean;
        if higher[place] { apart } else { -apart }
    });
    apart.iter().all(|apart| *apart >= 0.0) && apart.iter().any(|apart| *apart > 0.0)
}

/// The names of trials that show no difference from the baseline.
pub(super) fn not_significant(against: &[Row]) -> Vec<String> {
    let rows = against.iter().filter(|row| row.judgement == Judgement::NoDifference);
    rows.map(|row| row.label.clone()).collect()
}

/// Figures over the counted runs of a trial, by scenario and name.
pub(super) fn figures(runs: &[&Finished]) -> BTreeMap<String, BTreeMap<String, Spread>> {
    let mut values: BTreeMap<String, BTreeMap<String, Vec<f64>>> = BTreeMap::new();
    let mut counted: Vec<(&str, u32)> = Vec::new();
    for finished in runs {
        let Outcome::Measured(measured) = &finished.outcome else { continue };
        let key = (finished.run.scenario.as_str(), finished.run.round);
        // Of several attempts the first that is not invalid counts.
        if measured.verdict == Verdict::Invalid || counted.contains(&key) {
            continue;
        }
        counted.push(key);
        let own = values.entry(finished.run.scenario.clone()).or_default();
        for (name, number) in measured.figures.iter().filter(|(_, number)| number.0.is_finite()) {
            own.entry(name.clone()).or_default().push(number.0);
        }
    }
    let spreads = values.into_iter().map(|(scenario, figures)| {
        let figures =
            figures.into_iter().filter_map(|(name, values)| Some((name, stat::spread(&values)?)));
        (scenario, figures.collect())
    });
    spreads.collect()
}

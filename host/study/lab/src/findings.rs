//! The findings of a lab, for its page: the conclusion, every experiment, the failures, and how to
//! reproduce them.
//!
//! It follows from the lab file, the scenarios and the journal alone, so it can be made again at
//! any time. It is written as `lab-report.json`.

mod conclusion;
mod curves;

use std::collections::BTreeMap;

use crate::estimate::{self, Remaining, Timing};
use crate::expand::{Trial, TrialId};
use crate::file::Lab;
use crate::journal::{Facts, Finished, Outcome, Results, VERSION, ended};
use crate::judge::{self, Errors, Fits, Judgement, Row, ScenarioRow, Sides, StageReport, ToShow};
use crate::measured::Measured;
use crate::stat::{self, Drift, Gain, Spread};
use crate::strategy::{self, Kind, Study};
use crate::study::{LabEnd, Next, Scenario, Start, key};
use crate::template::shown;
pub(crate) use conclusion::{gain_text, held_text, key_of, to_show_text};
pub use curves::{LoadCurves, LoadLine};
use model::target::REDACTED;
use report::workload::Workload;
use result::figure::{Better, Figure};
use result::finding::Verdict;

/// The most lines of a log that are shown.
const MOST_LINES: usize = 40;

/// The findings of a lab.
#[model::apply(model::document!)]
pub struct LabReport {
    /// The format's version.
    pub version: u32,
    /// The lab's name.
    pub name: String,
    /// Its purpose.
    pub about: Option<String>,
    /// The program that made it, and its version, as the journal says.
    pub program: Option<String>,
    /// The strategy.
    pub strategy: String,
    /// Repeats of each trial on each scenario.
    pub repeats: u32,
    /// The objective.
    pub objective: Option<String>,
    /// The objective's figure with its unit, as `throughput.output-tokens-per-s (tok/s)`.
    pub figure: Option<String>,
    /// The constraints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<String>,
    /// The doubts about the objective, one for each scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
    /// The scenarios: their names and the digests of their content.
    pub scenarios: Vec<ScenarioFacts>,
    /// Keys that were laid over every scenario.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, serde_json::Value>,
    /// The reason why it is not complete, if it is not.
    pub incomplete: Option<String>,
    /// The time and money that it took.
    pub spent: Spent,
    /// The starts of engines that answered, in order; without engines that ran already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starts: Vec<StartReport>,
    /// The rest of the present stage of each study.
    pub left: Remaining,
    /// A study for each model.
    pub studies: Vec<StudyReport>,
}

/// A start of an engine that answered.
#[model::apply(model::document!)]
pub struct StartReport {
    /// The trial's id.
    pub trial: TrialId,
    /// The round.
    pub round: u32,
    /// Seconds from the start of its process until it answered.
    pub ready_after_s: f64,
    /// Seconds from the start of its process until the first token of its first run with a token,
    /// of the warm-up or of the measurement; absent without such a run.
    pub first_token_after_s: Option<f64>,
}

/// A scenario.
#[model::apply(model::document!)]
pub struct ScenarioFacts {
    /// Its name.
    pub name: String,
    /// A digest of its content.
    pub content: String,
    /// The workload that ran under its name, as the folder of its first run says; absent if no run
    /// has been measured.
    pub workload: Option<Workload>,
}

/// The time and money that a lab took.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Spent {
    /// The time of engines and runs, in seconds.
    pub seconds: f64,
    /// Their cost; absent if no price is given.
    pub cost: Option<f64>,
    /// Runs that ended.
    pub runs: usize,
    /// Engines that were started, whether they answered or not.
    pub starts: usize,
    /// The number of these that never answered.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub starts_that_failed: usize,
}

/// The findings of one model.
#[model::apply(model::document!)]
pub struct StudyReport {
    /// The model's name; empty where the lab names none.
    pub model: String,
    /// Its conclusion.
    pub conclusion: Conclusion,
    /// Every trial, with its runs.
    pub trials: Vec<TrialReport>,
    /// The experiments in their order.
    pub stages: Vec<StageReport>,
    /// A table for each option: its values alone, from the baseline.
    pub options: Vec<OptionTable>,
    /// Every trial against the baseline, each by the last stage with all requests that has both;
    /// judged together.
    pub against_baseline: Vec<Row>,
    /// Throughput and latency over the load, of scenarios that differ in their load alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<LoadCurves>,
    /// The Pareto front of each scenario.
    pub pareto: Vec<Front>,
    /// The names of trials that show no difference from the baseline.
    pub not_significant: Vec<String>,
    /// The trials that failed, and why.
    pub failed: Vec<FailedTrial>,
    /// The change of the machine from round to round, if there was one.
    pub drift: Option<Drift>,
}

/// The conclusion of a study.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Conclusion {
    /// The kind of answer.
    pub kind: Kind,
    /// The answer in a sentence or two.
    pub words: String,
    /// The recommended trial: the baseline, if no other is better; none if nothing can be
    /// recommended.
    pub trial: Option<TrialId>,
    /// Its command, as a shell reads it, with its variables.
    pub command: Option<String>,
    /// The text block of the recommended trial's last run on the first scenario; absent if no run
    /// was kept.
    pub block: Option<String>,
    /// The gain of the chosen trial over the baseline.
    pub gain: Option<Gain>,
    /// The same by scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scenarios: Vec<ScenarioRow>,
    /// Trials that may be as good: their names, where no difference from the chosen trial is shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ties: Vec<String>,
}

/// A trial.
#[model::apply(model::document!)]
pub struct TrialReport {
    /// The trial's id.
    pub id: TrialId,
    /// The trial's name in tables.
    pub label: String,
    /// The engine's name.
    pub engine: String,
    /// Its options.
    pub settings: BTreeMap<String, serde_json::Value>,
    /// Its command, as a shell reads it, with its variables; for an engine that ran already, its
    /// address.
    pub command: String,
    /// The facts about its engine and the machine, as far as known.
    pub facts: Option<Facts>,
    /// Figures over its runs, by scenario and name.
    pub figures: BTreeMap<String, BTreeMap<String, Spread>>,
    /// Its runs.
    pub runs: Vec<RunReport>,
}

/// A run.
#[model::apply(model::document!)]
pub struct RunReport {
    /// The scenario.
    pub scenario: String,
    /// The round.
    pub round: u32,
    /// The attempt, from 1.
    pub attempt: u32,
    /// Its folder.
    pub folder: String,
    /// Its time, in seconds.
    pub seconds: f64,
    /// Its verdict; absent if it failed.
    pub verdict: Option<Verdict>,
    /// The objective's figure, in its unit.
    pub figure: Option<f64>,
    /// Its findings, or why it failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
}

/// The values of an option, alone and from the baseline.
#[model::apply(model::document!)]
pub struct OptionTable {
    /// The engine.
    pub engine: String,
    /// The option, or the group of linked options.
    pub option: String,
    /// Its values, the baseline first.
    pub values: Vec<OptionValue>,
}

/// A value of an option.
#[model::apply(model::document!)]
pub struct OptionValue {
    /// The value.
    pub value: String,
    /// The trial that has it.
    pub row: Row,
}

/// The Pareto front of a scenario.
#[model::apply(model::document!)]
pub struct Front {
    /// The scenario.
    pub scenario: String,
    /// The two figures.
    pub figures: [String; 2],
    /// Trials that were measured and meet the constraints.
    pub points: Vec<Point>,
}

/// A trial in the plane of two figures.
#[model::apply(model::document!)]
pub struct Point {
    /// The trial.
    pub trial: TrialId,
    /// The trial's name in tables.
    pub label: String,
    /// Its two figures.
    pub at: [Spread; 2],
    /// True if no other trial is at least as good in both and better in one, by their means.
    pub is_on_front: bool,
}

/// A trial that failed, or was ruled out.
#[model::apply(model::document!)]
pub struct FailedTrial {
    /// The trial.
    pub trial: TrialId,
    /// The trial's name in tables.
    pub label: String,
    /// The reason.
    pub why: String,
    /// The last lines of its engine's log, if the engine ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<String>,
}

/// Collects the findings of a lab so far.
pub fn lab_report(lab: &Lab, scenarios: &[Scenario], results: &Results) -> LabReport {
    let incomplete = match strategy::next(lab, scenarios, results) {
        Next::Done(LabEnd::Complete) => None,
        Next::Done(LabEnd::Budget) => Some("its budget is spent".to_owned()),
        Next::Run(starts) => Some(format!("{} starts of engines come next", starts.len())),
    };
    let (sides, timing) = (Sides { lab, scenarios, results }, Timing::new(scenarios, results));
    let studies = (0..lab.models.len()).map(|model| {
        let mut study = strategy::study_by(sides, model, &timing);
        to_show(&mut study, scenarios, &timing);
        report(sides, &study)
    });
    let objective = lab.objective.as_ref();
    let failures: usize = results.failures.values().map(Vec::len).sum();
    LabReport {
        version: VERSION,
        name: lab.name.clone(),
        about: lab.about.clone(),
        program: results.program.clone(),
        strategy: lab.strategy.name().to_owned(),
        repeats: lab.repeats,
        objective: objective.map(ToString::to_string),
        figure: objective.map(|objective| match objective.measure.unit() {
            "" => objective.measure.to_string(),
            unit => format!("{} ({unit})", objective.measure),
        }),
        constraints: (objective.iter().flat_map(|objective| &objective.constraints))
            .map(ToString::to_string)
            .collect(),
        doubts: (objective.iter())
            .flat_map(|objective| scenarios.iter().filter_map(move |own| objective.doubt(own)))
            .collect(),
        scenarios: (scenarios.iter())
            .map(|scenario| ScenarioFacts {
                name: scenario.name.clone(),
                content: scenario.content.clone(),
                workload: None,
            })
            .collect(),
        set: without_secrets(lab.set.to_json()),
        incomplete,
        spent: Spent {
            seconds: results.seconds,
            cost: lab.per_hour.map(|price| price * results.seconds / 3600.0),
            runs: results.runs.len(),
            starts: results.starts.values().map(Vec::len).sum::<usize>() + failures,
            starts_that_failed: failures,
        },
        starts: (results.ready.iter().enumerate())
            .filter_map(|(place, ready)| {
                Some(StartReport {
                    trial: ready.trial.clone(),
                    round: ready.round,
                    ready_after_s: ready.ready_after_s?,
                    first_token_after_s: results.first_tokens.get(&place).copied(),
                })
            })
            .collect(),
        left: estimate::progress(lab, scenarios, results).stage,
        studies: studies.collect(),
    }
}

fn without_secrets(
    values: impl IntoIterator<Item = (String, serde_json::Value)>,
) -> BTreeMap<String, serde_json::Value> {
    let mut all = serde_json::Value::Object(values.into_iter().collect());
    model::redact::fields(&mut all, &|_| REDACTED.to_owned());
    match all {
        serde_json::Value::Object(keys) => keys.into_iter().collect(),
        _ => BTreeMap::new(),
    }
}

fn report(sides: Sides<'_>, study: &Study) -> StudyReport {
    let tables = Tables::new(sides, study);
    let against = tables.against_baseline();
    let alike = against.iter().filter(|row| row.judgement == Judgement::NoDifference);
    StudyReport {
        model: sides.lab.models[study.model].name.clone(),
        conclusion: conclusion::conclusion(sides.lab, study),
        trials: study.trials.iter().map(|trial| trial_report(sides, trial)).collect(),
        stages: study.stages.clone(),
        options: tables.options(&against),
        curves: tables.curves(),
        pareto: tables.pareto(),
        not_significant: alike.map(|row| row.label.clone()).collect(),
        failed: failed(study, sides.results),
        drift: tables.drift(),
        against_baseline: against,
    }
}

fn trial_report(Sides { lab, scenarios, results }: Sides<'_>, trial: &Trial) -> TrialReport {
    let is_current = |finished: &&Finished| {
        let run = &finished.run;
        let same =
            |scenario: &Scenario| scenario.name == run.scenario && scenario.content == run.content;
        run.trial == trial.id && scenarios.iter().any(same)
    };
    let runs: Vec<&Finished> = results.runs.values().filter(is_current).collect();
    TrialReport {
        id: trial.id.clone(),
        label: lab.label(trial),
        engine: lab.engines[trial.engine].name.clone(),
        settings: without_secrets(trial.settings.iter().cloned()),
        command: trial.recorded(&lab.engines[trial.engine]),
        facts: results.facts.get(&trial.id).cloned(),
        figures: figures(&runs),
        runs: runs.iter().map(|finished| run_report(lab, finished)).collect(),
    }
}

fn run_report(lab: &Lab, finished: &Finished) -> RunReport {
    let (verdict, figure, findings) = match &finished.outcome {
        Outcome::Measured(measured) => {
            let objective = lab.objective.as_ref();
            let figure = objective.and_then(|objective| measured.value(&objective.measure));
            let broken = objective.map(|objective| objective.broken(measured)).unwrap_or_default();
            let findings = broken.into_iter().chain(measured.findings.clone()).collect();
            (Some(measured.verdict), figure.filter(|figure| figure.is_finite()), findings)
        }
        Outcome::Failed(why) | Outcome::Stopped(why) => (None, None, vec![why.clone()]),
        Outcome::Died(end) => (None, None, vec![ended(end)]),
    };
    RunReport {
        scenario: finished.run.scenario.clone(),
        round: finished.run.round,
        attempt: finished.run.attempt,
        folder: finished.folder.clone(),
        seconds: finished.seconds,
        verdict,
        figure,
        findings,
    }
}

/// Trials that are ruled out in any stage, with the reason of the first such stage.
fn failed(study: &Study, results: &Results) -> Vec<FailedTrial> {
    let mut failed: Vec<FailedTrial> = Vec::new();
    let rows = study.stages.iter().flat_map(|stage| &stage.rows);
    for (row, why) in rows.filter_map(|row| Some((row, row.why.as_ref()?))) {
        if failed.iter().any(|known| known.trial == row.trial) {
            continue;
        }
        let start =
            results.failures.get(&row.trial).and_then(|all| all.last()).map(|failure| &failure.end);
        let death = results.deaths.get(&row.trial).and_then(|all| all.last());
        // A page shows only the last lines.
        let log = start.or(death).map_or(&[][..], |end| end.log.as_slice());
        failed.push(FailedTrial {
            trial: row.trial.clone(),
            label: row.label.clone(),
            why: why.clone(),
            log: log[log.len().saturating_sub(MOST_LINES)..].to_vec(),
        });
    }
    failed
}

/// A trial's settings as text, for tables.
pub(crate) fn settings_text(trial: &TrialReport) -> String {
    let settings = trial.settings.iter().map(|(name, value)| format!("{name} {}", shown(value)));
    settings.collect::<Vec<_>>().join(", ")
}

/// Adds the rounds that would show a difference or confirm a constraint, and the time of the
/// missing ones, to each row and constraint that needs them.
fn to_show(study: &mut Study, scenarios: &[Scenario], timing: &Timing) {
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
        let runs = scenarios.iter().map(|scenario| key(&trial.id, scenario, 1)).collect();
        timing.start(&Start { trial: trial.clone(), round: 1, runs })
    });
    seconds.sum()
}

struct Tables<'a> {
    pub sides: Sides<'a>,
    pub study: &'a Study,
    stages: Vec<(&'a StageReport, Fits)>,
    /// Every round of any stage.
    pub rounds: Vec<u32>,
}

impl<'a> Tables<'a> {
    pub fn new(sides: Sides<'a>, study: &'a Study) -> Self {
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

    /// The least correlation of differences; none across stages, which have no runs in common.
    fn correlation(&self, pairs: &[Option<judge::Pair<'_>>]) -> f64 {
        let mut compared = pairs.iter().flatten();
        let Some((fits, base, _)) = compared.next() else { return 0.0 };
        let trials: Option<Vec<usize>> = (pairs.iter().flatten())
            .map(|(own, _, trial)| std::ptr::eq(*own, *fits).then_some(*trial))
            .collect();
        trials.map_or(0.0, |trials| fits.starts.correlation(*base, &trials))
    }

    /// A trial's row, not judged yet, with its figures in that stage, else in its last one.
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
fn over(runs: &[&Measured], measure: &Figure) -> Option<Spread> {
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

/// Figures over the counted runs of a trial, by scenario and name.
fn figures(runs: &[&Finished]) -> BTreeMap<String, BTreeMap<String, Spread>> {
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

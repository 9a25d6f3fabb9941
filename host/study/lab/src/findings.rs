//! The findings of a lab, for its page: the conclusion, every experiment, the failures, and how to
//! reproduce them.
//!
//! It follows from the lab file, the scenarios and the journal alone, so it can be made again at
//! any time. It is written as `lab-report.json`.

mod conclusion;
mod curves;
mod tables;

use std::collections::BTreeMap;

use crate::estimate::{self, Remaining, Timing};
use crate::expand::{Trial, TrialId};
use crate::file::Lab;
use crate::journal::{Facts, Finished, Outcome, Results, VERSION, ended};
use crate::judge::{Judgement, Row, ScenarioRow, StageReport, ToShow};
use crate::stat::{Drift, Gain, Spread};
use crate::strategy::{self, Kind, Study};
use crate::study::{LabEnd, Next, Scenario, Start, key};
use crate::template::shown;
pub(crate) use conclusion::{gain_text, held_text, key_of, to_show_text};
pub use curves::{LoadCurves, LoadLine};
use model::target::REDACTED;
use report::workload::Workload;
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
    let timing = Timing::new(scenarios, results);
    let mut studies: Vec<Study> = (0..lab.models.len())
        .map(|model| strategy::study(lab, model, scenarios, results))
        .collect();
    studies.iter_mut().for_each(|study| to_show(study, scenarios, &timing));
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
        studies: studies.iter().map(|study| report(lab, scenarios, results, study)).collect(),
    }
}

/// Keys and values without secrets.
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

fn report(lab: &Lab, scenarios: &[Scenario], results: &Results, study: &Study) -> StudyReport {
    let tables = tables::Tables::new(lab, scenarios, results, study);
    let against = tables.against_baseline();
    StudyReport {
        model: lab.models[study.model].name.clone(),
        conclusion: conclusion::conclusion(lab, study),
        trials: (study.trials.iter())
            .map(|trial| trial_report(lab, scenarios, results, trial))
            .collect(),
        stages: study.stages.clone(),
        options: tables.options(&against),
        curves: tables.curves(),
        pareto: tables.pareto(),
        not_significant: tables::not_significant(&against),
        failed: failed(study, results),
        drift: tables.drift(),
        against_baseline: against,
    }
}

fn trial_report(
    lab: &Lab,
    scenarios: &[Scenario],
    results: &Results,
    trial: &Trial,
) -> TrialReport {
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
        figures: tables::figures(&runs),
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
        let run = |scenario| key(&trial.id, scenario, 1);
        timing.start(&Start {
            trial: trial.clone(),
            round: 1,
            runs: scenarios.iter().map(run).collect(),
        })
    });
    seconds.sum()
}

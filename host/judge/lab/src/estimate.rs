//! Estimates of a lab's time: from what was measured so far, else from what scenarios say of
//! themselves.

use crate::expand::TrialId;
use crate::file::Lab;
use crate::journal::{Event, Facts, Finished, Outcome, Ready, Results};
use crate::measured::{Measured, Number};
use crate::objective::Constraint;
use crate::strategy;
use crate::study::{Next, Scenario, Start, WHOLE};
use model::duration::roughly;
use result::finding::Verdict;
use statistics::median;

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most starts that a forecast follows.
const MOST_STARTS: usize = 20_000;

/// The known times of runs and starts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timing {
    /// The time that runs of a scenario took, in seconds, by scenario; the median.
    runs: BTreeMap<String, f64>,
    /// The time that engines took to start, by trial; the median.
    starts: BTreeMap<TrialId, f64>,
    /// The median over all of them.
    start: Option<f64>,
}

impl Timing {
    /// Takes the times from the results, else from the scenarios.
    pub fn of(scenarios: &[Scenario], results: &Results) -> Self {
        let mut runs = BTreeMap::new();
        for scenario in scenarios {
            let measured = results.runs.values().filter(|finished| {
                let is_whole =
                    finished.run.share == WHOLE && finished.run.content == scenario.content;
                is_whole && matches!(finished.outcome, Outcome::Measured(_))
            });
            let measured = median(measured.map(|finished| finished.seconds).collect());
            runs.extend(
                measured.or(scenario.seconds).map(|seconds| (scenario.name.clone(), seconds)),
            );
        }
        let starts = results.starts.iter();
        Timing {
            runs,
            starts: starts
                .filter_map(|(trial, all)| Some((trial.clone(), median(all.clone())?)))
                .collect(),
            start: median(results.starts.values().flatten().copied().collect()),
        }
    }

    /// Estimates the time of a start of an engine and its runs, in seconds; nothing if a run's time
    /// is not known. A start of which nothing is known counts as no time.
    pub fn start(&self, start: &Start) -> Option<f64> {
        let runs = start.runs.iter().map(|run| {
            let share = f64::from(run.share) / f64::from(WHOLE);
            Some(self.runs.get(&run.scenario)? * share)
        });
        let runs: Option<f64> = runs.sum();
        let start = match start.trial.launch.is_some() {
            true => self.starts.get(&start.trial.id).copied().or(self.start),
            false => None,
        };
        Some(runs? + start.unwrap_or(0.0))
    }
}

/// Starts and runs that are left, and how long they take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Left {
    /// Starts of engines.
    pub starts: usize,
    /// Runs.
    pub runs: usize,
    /// The time that they take, in seconds; absent if the time of a scenario is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

/// The progress of a lab.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Progress {
    /// Runs that ended.
    pub done: usize,
    /// Seconds that were spent.
    pub seconds: f64,
    /// The rest of the present stage of each study; of studies that have not begun, their first
    /// stage.
    pub stage: Left,
    /// The rest if no option is better than the baseline.
    pub at_least: Left,
    /// The rest if every option is better than the one before it.
    pub if_all_help: Left,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |left: &Left| match left.seconds {
            Some(seconds) if left.runs > 0 => {
                format!("{} runs, some {}", left.runs, roughly(seconds))
            }
            _ => format!("{} runs", left.runs),
        };
        write!(
            f,
            "done: {} runs in {}; this stage: {}; remaining: at least {}, at most {}",
            self.done,
            roughly(self.seconds),
            of(&self.stage),
            of(&self.at_least),
            of(&self.if_all_help)
        )
    }
}

/// Computes the progress of a lab, and what is left of it.
pub fn progress(lab: &Lab, scenarios: &[Scenario], results: &Results) -> Progress {
    let timing = Timing::of(scenarios, results);
    let asks = (0..lab.models.len())
        .flat_map(|model| strategy::study(lab, model, scenarios, results).asks);
    Progress {
        done: results.runs.len(),
        seconds: results.seconds,
        stage: left(&asks.collect::<Vec<_>>(), &timing),
        at_least: left(&forecast(lab, scenarios, results, 0.0), &timing),
        if_all_help: left(&forecast(lab, scenarios, results, 0.1), &timing),
    }
}

fn left(starts: &[Start], timing: &Timing) -> Left {
    Left {
        starts: starts.len(),
        runs: starts.iter().map(|start| start.runs.len()).sum(),
        // The sum of nothing is -0.0.
        seconds: (starts.iter().map(|start| timing.start(start)))
            .sum::<Option<f64>>()
            .map(|seconds| seconds + 0.0),
    }
}

/// Every start that is left, if each option that differs from the baseline makes the objective
/// better by that share.
pub fn forecast(lab: &Lab, scenarios: &[Scenario], results: &Results, better: f64) -> Vec<Start> {
    let mut lab = lab.clone();
    // What the budget cuts off is for the one who reads the forecast to see.
    lab.budget = crate::file::Budget::default();
    let mut results = results.clone();
    let mut starts: Vec<Start> = Vec::new();
    while starts.len() < MOST_STARTS {
        let Next::Run(asked) = strategy::next(&lab, scenarios, &results) else {
            break;
        };
        for start in asked {
            for event in supposed(&lab, &start, better) {
                results.add(&event);
            }
            starts.push(start);
        }
    }
    starts
}

/// The events of a start as a forecast supposes them.
fn supposed(lab: &Lab, start: &Start, better: f64) -> Vec<Event> {
    let differs = lab.baseline(start.trial.engine, start.trial.model).map_or(0, |baseline| {
        let pairs = baseline.choice.iter().zip(&start.trial.choice);
        pairs.filter(|(a, b)| a != b).count()
    });
    let mut value = 1.0;
    for _ in 0..differs {
        value *= 1.0 + better;
    }
    let mut measured = Measured {
        verdict: Verdict::Valid,
        figures: BTreeMap::new(),
        with_failures: BTreeMap::new(),
        findings: Vec::new(),
    };
    if let Some(objective) = &lab.objective {
        let met = objective.constraints.iter().filter_map(Constraint::met_by);
        let met: BTreeMap<String, Number> =
            met.map(|(measure, value)| (measure.to_string(), Number(value))).collect();
        // What meets the constraints, by as much more as the options help.
        let name = objective.measure.to_string();
        let base = met.get(&name).map_or(100.0, |met| met.0);
        let value = if objective.is_maximized { base * value } else { base / value };
        measured.figures.extend(met);
        measured.figures.insert(name, Number(value));
    }
    let ready = Event::Ready(Ready {
        trial: start.trial.id.clone(),
        round: start.round,
        seconds: 0.0,
        ready_after_s: None,
        facts: Facts::default(),
    });
    let runs = start.runs.iter().map(|run| {
        Event::Finished(Finished {
            run: run.clone(),
            folder: String::new(),
            seconds: 0.0,
            outcome: Outcome::Measured(measured.clone()),
        })
    });
    [ready].into_iter().chain(runs).collect()
}

/// A trial of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Planned {
    /// The trial's id.
    pub trial: TrialId,
    /// The model's name; empty where the lab names none.
    pub model: String,
    /// The trial's name in tables.
    pub label: String,
    /// Its command, as a shell reads it, with its variables.
    pub command: String,
    /// The starts and runs that are left of it.
    pub left: Left,
}

/// Lists every trial that is left if no option helps, in the order of their first start.
pub fn plan(lab: &Lab, scenarios: &[Scenario], results: &Results) -> Vec<Planned> {
    let timing = Timing::of(scenarios, results);
    let starts = forecast(lab, scenarios, results, 0.0);
    let mut order: Vec<&Start> = Vec::new();
    for start in &starts {
        if !order.iter().any(|known| known.trial.id == start.trial.id) {
            order.push(start);
        }
    }
    let planned = order.into_iter().map(|first| {
        let trial = &first.trial;
        let own = starts.iter().filter(|start| start.trial.id == trial.id);
        Planned {
            trial: trial.id.clone(),
            model: lab.models[trial.model].name.clone(),
            label: lab.label(trial),
            command: trial.recorded(&lab.engines[trial.engine]),
            left: left(&own.cloned().collect::<Vec<_>>(), &timing),
        }
    });
    planned.collect()
}

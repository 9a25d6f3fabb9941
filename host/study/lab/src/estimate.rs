//! Estimates of a lab's time: from the measurements so far, else from the scenarios' own durations.

use crate::expand::TrialId;
use crate::file::Lab;
use crate::journal::{Outcome, Results};
use crate::judge::Sides;
use crate::strategy::study_by;
use crate::study::{Scenario, Start};
use model::duration::roughly;
use statistics::median;

use std::collections::BTreeMap;
use std::fmt;

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
    pub fn new(scenarios: &[Scenario], results: &Results) -> Self {
        let mut runs = BTreeMap::new();
        for scenario in scenarios {
            let measured = results.runs.values().filter(|finished| {
                let is_same = finished.run.content == scenario.content;
                is_same && matches!(finished.outcome, Outcome::Measured(_))
            });
            let measured = median(measured.map(|finished| finished.seconds).collect());
            let seconds = measured.or(scenario.seconds);
            runs.extend(seconds.map(|seconds| (scenario.name.clone(), seconds)));
        }
        let start =
            |(trial, all): (&TrialId, &Vec<f64>)| Some((trial.clone(), median(all.clone())?));
        Timing {
            runs,
            starts: results.starts.iter().filter_map(start).collect(),
            start: median(results.starts.values().flatten().copied().collect()),
        }
    }

    /// Estimates the time of a start of an engine and its runs, in seconds; nothing if a run's time
    /// is not known. A start without a known time counts as no time.
    pub fn start(&self, start: &Start) -> Option<f64> {
        let runs: Option<f64> =
            start.runs.iter().map(|run| self.runs.get(&run.scenario).copied()).sum();
        let id = start.trial.launch.as_ref().map(|_| &start.trial.id);
        let start = id.and_then(|id| self.starts.get(id).copied().or(self.start));
        Some(runs? + start.unwrap_or(0.0))
    }
}

/// Remaining starts and runs, and their time.
#[model::apply(model::document!)]
#[derive(Copy, Default)]
pub struct Remaining {
    /// Starts of engines.
    pub starts: usize,
    /// Runs.
    pub runs: usize,
    /// The time that they take, in seconds; absent if the time of a scenario is not known.
    pub seconds: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Runs that ended.
    pub done: usize,
    /// Seconds that were spent.
    pub seconds: f64,
    /// The rest of each study's present stage, or of its first if it has not begun.
    pub stage: Remaining,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (done, spent) = (self.done, roughly(self.seconds));
        write!(f, "done: {done} runs in {spent}; this stage: {} runs", self.stage.runs)?;
        match self.stage.seconds {
            Some(seconds) if self.stage.runs > 0 => write!(f, ", some {}", roughly(seconds)),
            _ => Ok(()),
        }
    }
}

/// Computes the progress of a lab, and the rest of its present stage.
pub fn progress(lab: &Lab, scenarios: &[Scenario], results: &Results) -> Progress {
    let stage = left(stage(lab, scenarios, results).iter(), &Timing::new(scenarios, results));
    Progress { done: results.runs.len(), seconds: results.seconds, stage }
}

/// The starts that the present stage of each study still needs.
pub fn stage(lab: &Lab, scenarios: &[Scenario], results: &Results) -> Vec<Start> {
    let (sides, timing) = (Sides { lab, scenarios, results }, Timing::new(scenarios, results));
    (0..lab.models.len()).flat_map(|model| study_by(sides, model, &timing).pending).collect()
}

/// Counts starts and their runs, and estimates their time.
pub fn left<'s>(starts: impl Iterator<Item = &'s Start> + Clone, timing: &Timing) -> Remaining {
    let seconds: Option<f64> = starts.clone().map(|start| timing.start(start)).sum();
    Remaining {
        starts: starts.clone().count(),
        runs: starts.map(|start| start.runs.len()).sum(),
        // The sum of nothing is -0.0.
        seconds: seconds.map(|seconds| seconds + 0.0),
    }
}

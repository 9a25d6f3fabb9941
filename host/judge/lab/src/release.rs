//! A lab beside a previous release: each figure of each model on each scenario, before and now,
//! with the difference.
//!
//! The difference is judged as differences between trials are, by Student's test over repeats, all
//! of them together. A published result states means and nothing of how they vary, so nothing is
//! judged against it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::expand::Trial;
use crate::file::Lab;
use crate::journal::Results;
use crate::previous::{Earlier, FIGURES, Origin, Previous, runs};
use crate::stat::{self, Gain, Spread};
use crate::strategy::Study;
use crate::study::Scenario;
use result::figure::{Better, Figure};
use statistics::several::holm;

/// A previous release, and what differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Release {
    /// Its name in the lab file.
    pub previous: String,
    /// The origin of its figures.
    pub origin: Origin,
    /// The share within which figures are called the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_within: Option<f64>,
    /// Every figure that both have.
    pub rows: Vec<Difference>,
    /// Figures without one to compare with, and why, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alone: Vec<String>,
}

/// A figure before and now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Difference {
    /// The model; empty where the lab names none.
    pub model: String,
    /// The trial's name in tables.
    pub trial: String,
    /// The scenario.
    pub scenario: String,
    /// The figure's name.
    pub figure: String,
    /// The value before.
    pub before: Spread,
    /// The value now.
    pub now: Spread,
    /// The change, in percent, with the interval; of a latency, less is better.
    pub change: Gain,
    /// The verdict: better, worse, or not shown.
    pub verdict: Verdict,
    /// The engine of before, with its version, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// The earlier source: a folder, or the name of a published result.
    pub source: String,
}

model::words! {
    /// The verdict on a figure against its earlier value.
    pub enum Verdict {
        /// It is better, beyond chance.
        Better = "better",
        /// It is worse, beyond chance.
        Worse = "worse",
        /// No difference is shown. That does not mean that there is none.
        NoDifference = "no-difference",
        /// The interval of the difference lies within what is called the same.
        Same = "same",
        /// There is nothing to judge by: a published mean, or one repeat on both sides.
        NotJudged = "not-judged",
    }
}

impl Verdict {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::NoDifference => "no difference shown",
            Verdict::Same => "same",
            Verdict::NotJudged => "not judged",
        }
    }
}

/// Lists the differences from a previous release, in all studies of a lab.
pub(crate) fn release(
    lab: &Lab,
    scenarios: &[Scenario],
    results: &Results,
    studies: &[Study],
    previous: &Previous,
) -> Release {
    let (mut rows, mut alone) = (Vec::new(), Vec::new());
    for study in studies {
        for trial in &study.trials {
            for scenario in scenarios {
                let now = runs(results, &trial.id, scenario);
                if now.is_empty() {
                    continue;
                }
                match earlier(lab, trial, scenario, previous) {
                    Ok(found) => rows.extend(differences(lab, trial, scenario, &now, found)),
                    Err(Some(why)) => alone.push(why),
                    Err(None) => {}
                }
            }
        }
    }
    judge(&mut rows, previous.origin, lab.page.same_within);
    Release {
        previous: previous.name.clone(),
        origin: previous.origin,
        same_within: lab.page.same_within,
        rows,
        alone,
    }
}

/// Finds the earlier figures of a trial on a scenario; else why there are none, if that is worth a
/// word.
fn earlier<'p>(
    lab: &Lab,
    trial: &Trial,
    scenario: &Scenario,
    previous: &'p Previous,
) -> Result<&'p Earlier, Option<String>> {
    let (label, model) = (lab.label(trial), &lab.models[trial.model]);
    let is_model = |name: &str| {
        let known = model.values.values().map(String::as_str);
        let mut known = known.chain([model.name.as_str()]);
        model.name.is_empty() || known.any(|known| known == name)
    };
    // What was no lab's trial is held against the engine as it is by default.
    let is_baseline =
        lab.baseline(trial.engine, trial.model).is_some_and(|baseline| baseline.id == trial.id);
    let is_trial = |of: &Earlier| of.trial.as_ref().map_or(is_baseline, |of| *of == label);
    let mut of_trial = previous.results.iter().filter(|of| is_trial(of) && is_model(&of.model));
    let Some(found) = of_trial.find(|of| of.scenario == scenario.name) else {
        let of = match model.name.as_str() {
            "" => label,
            model => format!("{model}, {label}"),
        };
        let why = format!("{of} on {}: {} has no such result", scenario.name, previous.name);
        // Of other trials none is expected.
        return Err(is_baseline.then_some(why));
    };
    match &found.content {
        Some(content) if *content != scenario.content => Err(Some(format!(
            "{label} on {}: the scenario has changed since, so its figures cannot be compared",
            scenario.name
        ))),
        _ => Ok(found),
    }
}

fn differences(
    lab: &Lab,
    trial: &Trial,
    scenario: &Scenario,
    now: &[std::collections::BTreeMap<String, crate::measured::Number>],
    earlier: &Earlier,
) -> Vec<Difference> {
    let of = |figure: &&str| {
        let values = |runs: &[std::collections::BTreeMap<_, crate::measured::Number>]| {
            let known = runs.iter().filter_map(|run| run.get(*figure));
            let known = known.map(|number| number.0).filter(|value| *value > 0.0);
            known.collect::<Vec<f64>>()
        };
        let (before, now) = (values(&earlier.runs), values(now));
        let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<_>>();
        Some(Difference {
            model: lab.models[trial.model].name.clone(),
            trial: lab.label(trial),
            scenario: scenario.name.clone(),
            figure: (*figure).to_owned(),
            before: stat::spread(&before)?,
            now: stat::spread(&now)?,
            change: stat::gain(&logs(&before), &logs(&now))?,
            verdict: Verdict::NotJudged,
            engine: earlier.engine.clone(),
            source: earlier.source.clone(),
        })
    };
    FIGURES.iter().filter_map(of).collect()
}

/// Judges differences, all together.
fn judge(rows: &mut [Difference], origin: Origin, same_within: Option<f64>) {
    if origin == Origin::Published {
        // Its interval would be that of this side alone.
        for row in rows {
            row.change.interval = None;
            row.change.probability = None;
        }
        return;
    }
    let probabilities: Vec<Option<f64>> = rows.iter().map(|row| row.change.probability).collect();
    for (row, shown) in rows.iter_mut().zip(holm(&probabilities, stat::OUTSIDE)) {
        let Some([low, high]) = row.change.interval else {
            continue;
        };
        let better = row.figure.parse::<Figure>().map(|figure| figure.better());
        let within = same_within.map(|share| 100.0 * share);
        let is_same = within.is_some_and(|most| low > -most && high < most);
        row.verdict = match (is_same, shown) {
            (true, _) => Verdict::Same,
            (false, false) => Verdict::NoDifference,
            (false, true) => match (better == Ok(Better::Lower)) == (row.change.percent < 0.0) {
                true => Verdict::Better,
                false => Verdict::Worse,
            },
        };
    }
}

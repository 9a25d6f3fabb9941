//! A previous release, as a lab keeps it: the figures of each model on each scenario, run by run.
//!
//! It is kept in `lab.json`, so that the page can be drawn again though the other folder is gone.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::expand::TrialId;
use crate::file::Lab;
use crate::journal::{Outcome, Results};
use crate::measured::{Measured, Number};
use crate::study::{Scenario, WHOLE};
use result::finding::Verdict;

/// The figures that are compared with each other.
pub const FIGURES: [&str; 8] = [
    "throughput.requests-per-s",
    "throughput.output-tokens-per-s",
    "throughput.total-tokens-per-s",
    "ttft.mean",
    "ttft.p99",
    "tpot.mean",
    "tpot.p99",
    "e2e.mean",
];

/// The most results of a previous release.
pub const MOST: usize = 10_000;

model::words! {
    /// The origin of a previous release's figures.
    pub enum Origin {
        /// From another lab's folder.
        Lab = "lab",
        /// From a folder of runs.
        Runs = "runs",
        /// From a public page, which states means and nothing of how they vary.
        Published = "published",
    }
}

/// A previous release.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Previous {
    /// Its name in the lab file.
    pub name: String,
    /// The origin of its figures.
    pub origin: Origin,
    /// Its results.
    pub results: Vec<Earlier>,
}

/// An earlier result of a model on a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Earlier {
    /// The model, as it was called.
    pub model: String,
    /// The lab's scenario.
    pub scenario: String,
    /// The trial's name in tables; absent if it was no lab's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<String>,
    /// A digest of all that the scenario consisted of, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The engine with its version, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Its source: a folder, or the name of a published result.
    pub source: String,
    /// The figures of each run; of a published result, what it states.
    pub runs: Vec<BTreeMap<String, Number>>,
}

/// Takes the figures of a run that are compared with others.
pub fn figures(measured: &Measured) -> BTreeMap<String, Number> {
    let kept = FIGURES.iter().filter_map(|name| {
        let value = measured.named(name).filter(|value| value.is_finite())?;
        Some(((*name).to_owned(), Number(value)))
    });
    kept.collect()
}

/// The figures of each run of a trial on a scenario that counts: valid, of its own requests, all of
/// them.
pub fn runs(
    results: &Results,
    trial: &TrialId,
    scenario: &Scenario,
) -> Vec<BTreeMap<String, Number>> {
    let counts = results.runs.values().filter(|finished| {
        let run = &finished.run;
        let is_asked = run.trial == *trial && run.scenario == scenario.name;
        is_asked && run.content == scenario.content && run.share == WHOLE
    });
    let measured = counts.filter_map(|finished| match &finished.outcome {
        Outcome::Measured(measured) if measured.verdict != Verdict::Invalid => Some(measured),
        _ => None,
    });
    measured.map(figures).collect()
}

impl Previous {
    /// Reads the figures of another lab, from its folder of that name.
    pub fn of_lab(name: &str, lab: &Lab, scenarios: &[Scenario], results: &Results) -> Self {
        let mut all = Vec::new();
        for (model, of) in lab.models.iter().enumerate() {
            for trial in crate::study(lab, model, scenarios, results).trials {
                let facts = results.facts.get(&trial.id);
                let version = facts.and_then(|facts| facts.version.as_deref());
                let engine = &lab.engines[trial.engine].name;
                for scenario in scenarios {
                    let runs = runs(results, &trial.id, scenario);
                    if runs.is_empty() || all.len() >= MOST {
                        continue;
                    }
                    all.push(Earlier {
                        model: of.name.clone(),
                        scenario: scenario.name.clone(),
                        trial: Some(lab.label(&trial)),
                        content: Some(scenario.content.clone()),
                        engine: Some(match version {
                            Some(version) => format!("{engine} {version}"),
                            None => engine.clone(),
                        }),
                        source: name.to_owned(),
                        runs,
                    });
                }
            }
        }
        Previous { name: name.to_owned(), origin: Origin::Lab, results: all }
    }
}

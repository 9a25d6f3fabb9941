//! The page of a lab, in its folder.

use std::path::Path;

use lab::findings::{LabReport, RunReport};
use lab::walk::SavedLab;
use lab::{Lab, Results};

use super::super::destination::replace;
use super::super::failure::Failure;
use super::super::print::json;
use super::super::saved::{block, workload};

/// The page, as one HTML file.
pub(super) const PAGE: &str = "lab.html";
const MARKDOWN: &str = "lab.md";
/// The page's content, as JSON.
const REPORT: &str = "lab-report.json";

/// Returns the report of a lab so far.
pub(super) fn found(lab: &Lab, kept: &SavedLab, results: &Results) -> LabReport {
    // The shown lab has no secrets.
    lab::findings::lab_report(lab.shown(), &kept.scenarios, results)
}

/// Writes the page in both forms, and its content as JSON.
pub(super) fn write_page(
    folder: &Path,
    lab: &Lab,
    kept: &SavedLab,
    results: &Results,
) -> Result<(), Failure> {
    let mut report = found(lab, kept, results);
    let studies = report.studies.iter();
    let runs: Vec<&RunReport> = studies
        .flat_map(|study| &study.trials)
        .flat_map(|trial| &trial.runs)
        .filter(|run| run.verdict.is_some())
        .collect();
    for scenario in &mut report.scenarios {
        let own = runs.iter().filter(|run| run.scenario == scenario.name);
        scenario.workload = workload(folder, own.map(|run| &*run.folder));
    }
    for study in &mut report.studies {
        let trial =
            study.trials.iter().find(|own| study.conclusion.trial.as_ref() == Some(&own.id));
        let first = report.scenarios.first().map(|scenario| &scenario.name);
        let own = trial.iter().flat_map(|trial| trial.runs.iter().rev());
        let own = own.filter(|run| run.verdict.is_some() && Some(&run.scenario) == first);
        study.conclusion.block = block(folder, own.map(|run| &*run.folder));
    }
    let page = lab::page::page(&report);
    replace(&folder.join(REPORT), json(&report)?.as_bytes())?;
    replace(&folder.join(MARKDOWN), page.markdown().as_bytes())?;
    replace(&folder.join(PAGE), page.html().as_bytes())
}

//! The previous release that a lab is held against: another lab's folder, a folder of runs, or
//! published results.

use std::path::Path;

use audit::claim::Claim;
use audit::published;
use lab::measured::Number;
use lab::previous::{Earlier, FIGURES, MOST, Origin, Previous, figures};
use lab::{Lab, Measured};
use result::finding::Verdict;
use runs::folder::{self, RunFolder};

use crate::error::Error;
use crate::folder::{KEPT, opened};
use crate::scenarios::Scenarios;

/// Reads the figures that the lab file names as `page.previous`, a path from `home`; nothing if it
/// names none.
///
/// # Errors
/// If they cannot be read, or are ambiguous.
pub fn read(
    lab: &Lab,
    home: Option<&Path>,
    scenarios: &Scenarios,
) -> Result<Option<Previous>, Error> {
    let Some(named) = &lab.page.previous else {
        return Ok(None);
    };
    let name = named.value.as_str();
    let previous = match name.strip_prefix(published::PREFIX) {
        Some(pattern) => of_published(name, pattern, scenarios),
        None => {
            let path = home.unwrap_or(Path::new("")).join(name);
            if path.join(KEPT).exists() {
                of_lab(name, &path)
            } else {
                of_runs(name, &path, scenarios)
            }
        }
    };
    previous.map(Some).map_err(|why| Error::Previous(name.to_owned(), why))
}

fn of_lab(name: &str, folder: &Path) -> Result<Previous, String> {
    let (kept, lab, results) = opened(folder).map_err(|error| error.to_string())?;
    Ok(Previous::of_lab(name, &lab, &kept.scenarios, &results))
}

fn of_published(name: &str, pattern: &str, scenarios: &Scenarios) -> Result<Previous, String> {
    let mut results: Vec<Earlier> = Vec::new();
    for claim in published::find(pattern)? {
        let asked = claim.scenario.as_deref().and_then(|of| scenarios.named(of));
        let (Some(model), Some(scenario)) = (&claim.model, asked) else {
            continue;
        };
        let earlier = published_as(&claim, model, scenario);
        let same = |of: &&Earlier| of.model == earlier.model && of.scenario == earlier.scenario;
        if let Some(other) = results.iter().find(same) {
            return Err(format!(
                "`{}` and `{}` are of the same model and scenario; name one of them, with * for what differs",
                other.source, earlier.source
            ));
        }
        results.push(earlier);
    }
    Ok(Previous { name: name.to_owned(), origin: Origin::Published, results })
}

fn published_as(claim: &Claim, model: &str, scenario: &str) -> Earlier {
    let stated = FIGURES.iter().filter_map(|figure| {
        let value = claim.value(figure)?;
        Some(((*figure).to_owned(), Number(value)))
    });
    let engine = claim.about.engine.as_deref();
    Earlier {
        model: model.to_owned(),
        scenario: scenario.to_owned(),
        trial: None,
        content: None,
        engine: engine.map(|engine| match &claim.about.engine_version {
            Some(version) => format!("{engine} {version}"),
            None => engine.to_owned(),
        }),
        source: claim.source.file.clone(),
        runs: vec![stated.collect()],
    }
}

/// The valid runs below a folder. Runs of one model on one scenario are repeats of each other.
fn of_runs(name: &str, folder: &Path, scenarios: &Scenarios) -> Result<Previous, String> {
    let found = folder::runs(folder).map_err(|error| error.to_string())?;
    if found.len() > MOST {
        return Err(format!(
            "there are {} runs below it, and {MOST} are read at most; name a folder of fewer",
            found.len()
        ));
    }
    let mut results: Vec<Earlier> = Vec::new();
    for run in &found {
        let Some(earlier) = of_run(run, scenarios).map_err(|error| error.to_string())? else {
            continue;
        };
        let same = |of: &&mut Earlier| {
            of.model == earlier.model
                && of.scenario == earlier.scenario
                && of.engine == earlier.engine
        };
        match results.iter_mut().find(same) {
            Some(of) => of.runs.extend(earlier.runs),
            None => results.push(earlier),
        }
    }
    Ok(Previous { name: name.to_owned(), origin: Origin::Runs, results })
}

/// A run, if it is valid and of one of the lab's scenarios.
fn of_run(run: &RunFolder, scenarios: &Scenarios) -> Result<Option<Earlier>, folder::FolderError> {
    let reported = run.reported()?;
    let plan = &reported.plan;
    let Some(scenario) = scenarios.named(&plan.name) else {
        return Ok(None);
    };
    if reported.summary.verdict == Verdict::Invalid {
        return Ok(None);
    }
    let measured = Measured::of(&reported.summary, None, Vec::new());
    let about = &plan.about;
    Ok(Some(Earlier {
        model: plan.target.model.clone(),
        scenario: scenario.to_owned(),
        trial: None,
        content: None,
        engine: about.engine.as_ref().map(|engine| match &about.engine_version {
            Some(version) => format!("{engine} {version}"),
            None => engine.clone(),
        }),
        source: reported.folder,
        runs: vec![figures(&measured)],
    }))
}

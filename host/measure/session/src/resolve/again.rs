//! The dataset of a saved run, opened again: records have no prompts, because the plan says how to
//! draw them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Faults, Resolution, Source, ahead, config_json};
use model::plugin::Kind;
use model::timings::Timings;
use plugins::dataset::Dataset;
use plugins::sandbox::{Grants, LogBook};
use reader::{ConfigTable, Located, Place, Problem};
use scenario::plan::Plan;

/// The source, in messages, of the names of the dataset, its files and its tokenizer.
const SETTER: &str = "plan.json";

/// The dataset of a saved run.
pub(crate) struct Again {
    /// It, with the configuration, the files and the tokenizer that it had.
    pub(crate) dataset: Dataset,
    /// Remarks for the user on its loading, one line each.
    pub(crate) remarks: Vec<String>,
}

/// Resolves the dataset of a plan, and nothing else of it. The source says where plugins are
/// searched for.
///
/// # Errors
/// Everything that is not there any more, or that is not what it was.
pub(crate) fn again(plan: &Plan, source: &Source) -> Result<Again, Faults> {
    let source = of_plan(plan, source.clone());
    let ahead::Ahead { plugins, tokenizer, files } = ahead::read(&source, &Timings::default());
    let mut resolution = Resolution {
        source: &source,
        faults: Faults::default(),
        loaded: plugins,
        remarks: Vec::new(),
    };
    let counting = resolution.tokenizer(tokenizer);
    let digest = &plan.tokenizer.digest;
    if digest.is_some() && !counting.planned.approximate && counting.planned.digest != *digest {
        resolution.changed(&format!("the tokenizer `{}`", plan.tokenizer.name));
    }
    let files = resolution.files(files);
    for (name, file) in &files {
        let planned = plan.dataset.files.get(name);
        if planned.is_some_and(|planned| planned.digest != file.digest) {
            resolution.changed(&format!("the file `{}`", file.path.display()));
        }
    }
    let paths: BTreeMap<_, _> = files.into_iter().map(|(name, file)| (name, file.path)).collect();
    let grants = Grants {
        limits: plan.sandbox.clone(),
        log: LogBook::default(),
        files: Arc::new(paths),
        tokenizer: Arc::new(counting.tokenizer),
        seed: plan.load.seed,
    };
    let scenario = &source.scenario;
    let named = resolution.named(scenario.dataset.plugin.as_ref(), Kind::Dataset, false);
    let dataset = named.and_then(|(plugin, place)| {
        let config = &scenario.dataset.config;
        let made = Dataset::new(plugin, &config_json(config), grants);
        resolution.planned(made, place, config, Dataset::describe, Dataset::plugin)
    });
    match (dataset, resolution.faults.is_empty()) {
        (Some((dataset, _)), true) => Ok(Again { dataset, remarks: resolution.remarks }),
        _ => Err(resolution.faults),
    }
}

/// A source that names what the plan had. Its paths were written down as they were seen from where
/// the run was made.
fn of_plan(plan: &Plan, mut source: Source) -> Source {
    let planned = &plan.dataset.plugin;
    let pinned = format!("{}@sha256:{}", planned.plugin, planned.digest);
    let scenario = &mut source.scenario;
    scenario.dataset.plugin = Some(Located::flag(SETTER, pinned));
    let place = Place::Flag(SETTER.to_owned());
    if let serde_json::Value::Object(config) = planned.config.clone() {
        scenario.dataset.config = ConfigTable::from_json(config, &place);
    }
    let files = plan.dataset.files.iter();
    scenario.dataset.files = files
        .map(|(name, file)| (name.clone(), Located::flag(SETTER, file.path.clone())))
        .collect();
    // The substitute has no file.
    scenario.tokenizer.path = plan
        .tokenizer
        .digest
        .is_some()
        .then(|| Located::flag(SETTER, plan.tokenizer.name.clone().into()));
    source
}

impl Resolution<'_> {
    /// Notes that something is not what it was when the run was made, so that other samples would
    /// come of it.
    fn changed(&mut self, what: &str) {
        let problem = Problem::new(format!("{what} has changed since the run was made"));
        let help =
            "put back what the run was made with; its questions cannot be drawn again without it";
        self.faults.scenario.push(problem.help(help));
    }
}

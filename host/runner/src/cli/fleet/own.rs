//! What a process itself lets rank 0 choose: its keys, its headers and its files are for what its own command line names,
//! or a scenario that it has itself.
//!
//! Rank 0 sends the scenario. Without these rules, whoever is rank 0 could have each machine send any of its variables to
//! any server, and read any of its files as a dataset.

use std::path::Path;

use scenario::Scenario;
use session::{Resolved, Source};

use super::super::failure::{Exit, Failure};
use super::super::flags::Flags;
use super::super::sources::{source_of, text};

/// The flag that lifts these rules.
const TRUST: &str = "--trust-rank-0";

/// What a process names by itself.
pub(super) struct Own(Scenario);

impl Own {
    /// Of its flags, and of the scenario on its command line where this machine has it.
    ///
    /// # Errors
    /// What is wrong with the flags.
    pub fn of(scenarios: &[String], flags: &Flags) -> Result<Self, Failure> {
        let is_file = !scenarios.iter().any(|name| name == "-");
        let here = is_file.then(|| text(scenarios).ok().flatten()).flatten();
        if let Some(here) = here
            && let Ok((source, _)) = source_of(Some(here), flags)
        {
            return Ok(Own(source.scenario));
        }
        Ok(Own(source_of(None, flags)?.0.scenario))
    }

    /// Whether rank 0's scenario reads only what came from rank 0, into `work`, and what this process names; and whether
    /// the variable that it names is one that this process names.
    ///
    /// # Errors
    /// Everything else that it names.
    pub fn check(&self, source: &Source, work: &Path) -> Result<(), Failure> {
        let (asked, own) = (&source.scenario, &self.0);
        let mut wrong = Vec::new();
        if let Some(said) = &asked.target.api_key_env
            && own.target.api_key_env.as_ref().map(|own| &own.value) != Some(&said.value)
        {
            wrong.push(format!(
                "rank 0's scenario wants the value of this machine's variable {}, which this process's command line does not name: give --api-key-env {} to every process, or {TRUST}",
                said.value, said.value
            ));
        }
        let mut paths = Vec::new();
        for (name, said) in &asked.dataset.files {
            let own = own.dataset.files.get(name).map(|own| &own.value);
            paths.push((&said.value, own));
        }
        for (said, own) in [
            (&asked.load.trace.file, &own.load.trace.file),
            (&asked.tokenizer.path, &own.tokenizer.path),
            (&asked.connection.ca_cert, &own.connection.ca_cert),
        ] {
            if let Some(said) = said {
                paths.push((&said.value, own.as_ref().map(|own| &own.value)));
            }
        }
        for (path, own) in paths {
            if !path.starts_with(work) && own != Some(path) {
                wrong.push(not_sent(&path.display().to_string()));
            }
        }
        for plugin in plugins(asked) {
            let is_sent = Path::new(plugin).starts_with(work);
            let is_own = plugins(own).any(|own| own == plugin);
            if !is_sent
                && !is_own
                && shipped::plugin(plugin).is_none()
                && Path::new(plugin).exists()
            {
                wrong.push(not_sent(plugin));
            }
        }
        refused(wrong)
    }

    /// Whether what is secret on this machine goes only to targets that this process names, or to this machine.
    ///
    /// # Errors
    /// If rank 0's scenario sends it elsewhere.
    pub fn check_targets(&self, resolved: &Resolved, source: &Source) -> Result<(), Failure> {
        let urls = |scenario: &Scenario| {
            let urls = scenario.target.base_url.iter().flat_map(|said| &said.value);
            urls.map(|said| said.value.clone()).collect::<Vec<_>>()
        };
        let asked = urls(&source.scenario);
        if asked.is_empty() || asked == urls(&self.0) {
            return Ok(());
        }
        let key = resolved.draft.target.api_key.variable();
        let key = key.map(|variable| format!("the API key from its variable {variable}"));
        let headers = self.0.target.headers.iter();
        let headers = headers.map(|(name, _)| format!("its header {name}"));
        let goes = |what: String| {
            format!(
                "rank 0's scenario has this machine send {what} to {}, which this process's command line does not name: give --base-url {} to every process, or {TRUST}",
                asked.join(", "),
                asked.join(",")
            )
        };
        refused(key.into_iter().chain(headers).map(goes).collect())
    }
}

/// The plugins that a scenario names.
fn plugins(scenario: &Scenario) -> impl Iterator<Item = &str> {
    let scorers = scenario.scorers.iter().flatten();
    (scorers.filter_map(|scorer| scorer.value.plugin.as_ref()))
        .chain(&scenario.backend.plugin)
        .chain(&scenario.dataset.plugin)
        .map(|said| &*said.value)
}

fn not_sent(path: &str) -> String {
    format!(
        "rank 0's scenario reads this machine's `{path}`, which rank 0 did not send and this process's command line does not name: name it there, or give {TRUST}"
    )
}

fn refused(wrong: Vec<String>) -> Result<(), Failure> {
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(Failure::several(Exit::CommandLine, wrong)),
    }
}

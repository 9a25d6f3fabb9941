//! Limits on rank 0's choices in this process: the process's keys, headers and files serve only
//! targets and datasets that its own command line names, or a scenario that it has itself.
//!
//! Rank 0 sends the scenario. Without these rules, whoever is rank 0 could have each machine send
//! any of its variables to any server, and read any of its files as a dataset.

use std::path::Path;

use model::hex;
use scenario::Scenario;
use session::{Resolved, Shipped, Source};
use sha2::{Digest, Sha256};

use crate::error::FleetError;

/// The flag that lifts these rules.
const TRUST: &str = "--trust-rank-0";

/// The variable that most clients read their key from.
const USUAL: &str = "OPENAI_API_KEY";

/// The rules, made of the scenario and plugins that a process names by itself.
pub(crate) struct Policy {
    scenario: Scenario,
    /// The plugins that its flags name.
    plugins: Vec<String>,
    shipped: Shipped,
}

impl Policy {
    /// Of the run that this process's own command line describes.
    pub(crate) fn of(own: Source) -> Self {
        let plugins = own.plugins.into_iter();
        Policy {
            plugins: plugins.map(|said| said.value).collect(),
            scenario: own.scenario,
            shipped: own.shipped,
        }
    }

    /// Checks that rank 0's scenario reads only files that came from rank 0, into `work`, and files
    /// that this process names; and that the variable that it names is one that this process names.
    ///
    /// # Errors
    /// If it names anything else: all of it.
    pub(crate) fn check(&self, source: &Source, work: &Path) -> Result<(), FleetError> {
        let (asked, own) = (&source.scenario, &self.scenario);
        let mut wrong = Vec::new();
        if let Some(said) = &asked.target.api_key_env
            && own.target.api_key_env.as_ref().map(|own| &own.value) != Some(&said.value)
        {
            wrong.push(format!(
                "rank 0's scenario wants the value of this machine's variable {}, which this process's command line does not name: give --api-key-env {} to every process, or {TRUST}",
                said.value, said.value
            ));
        }
        if let Some(said) = &asked.report.otlp
            && own.report.otlp.as_ref().map(|own| &own.value) != Some(&said.value)
        {
            wrong.push(format!(
                "rank 0's scenario has this machine send spans to {}, with the headers in its variable OTEL_EXPORTER_OTLP_HEADERS, and this process's command line does not name that collector: give --otlp {} to every process, or {TRUST}",
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
            let ships = self.shipped(plugin).is_some();
            if !is_sent && !is_own && !ships && Path::new(plugin).exists() {
                wrong.push(not_sent(plugin));
            }
        }
        refused(wrong)
    }

    /// Checks that secrets of this machine go only to targets that this process names, or to this
    /// machine; and that no other secret is sent, and each is as safe on the way as by this
    /// process's own command line.
    ///
    /// # Errors
    /// If rank 0's scenario wants it otherwise.
    pub(crate) fn check_targets(
        &self,
        resolved: &Resolved,
        source: &Source,
    ) -> Result<(), FleetError> {
        let (asked, own) = (&source.scenario, &self.scenario);
        let key = resolved.draft.target.api_key.variable();
        let mut wrong = Vec::new();
        if let Some(variable) = key.filter(|variable| !self.chooses(resolved, variable)) {
            wrong.push(format!(
                "rank 0's backend wants the value of this machine's variable {variable}, which this process's command line does not name: give --api-key-env {variable} to every process, or {TRUST}"
            ));
        }
        let key = key.map(|variable| format!("the API key from its variable {variable}"));
        let headers = own.target.headers.iter();
        let headers = headers.map(|(name, _)| format!("its header {name}"));
        let secrets: Vec<String> = key.into_iter().chain(headers).collect();
        let urls = |scenario: &Scenario| {
            let urls = scenario.target.base_url.iter().flat_map(|said| &said.value);
            urls.map(|said| said.value.clone()).collect::<Vec<_>>()
        };
        let targets = urls(asked);
        let shown = targets.join(", ");
        if !targets.is_empty() && targets != urls(own) {
            wrong.extend(secrets.iter().map(|what| {
                format!(
                    "rank 0's scenario has this machine send {what} to {shown}, which this process's command line does not name: give --base-url {} to every process, or {TRUST}",
                    targets.join(",")
                )
            }));
        }
        if targets.iter().any(|url| url.starts_with("https:")) {
            let insecure = |scenario: &Scenario| scenario.connection.insecure();
            let weaker = [
                (
                    insecure(asked) && !insecure(own),
                    "without a look at its certificate",
                    "--insecure",
                ),
                (
                    asked.connection.ca_cert.is_some() && own.connection.ca_cert.is_none(),
                    "by a certificate that rank 0 trusts",
                    "--ca-cert FILE",
                ),
            ];
            for (_, how, flag) in weaker.into_iter().filter(|(is_weaker, ..)| *is_weaker) {
                wrong.extend(secrets.iter().map(|what| {
                    format!(
                        "rank 0's scenario has this machine send {what} to {shown} {how}, which this process's command line does not allow: give {flag} to every process, or {TRUST}"
                    )
                }));
            }
        }
        refused(wrong)
    }

    /// True if this process's own words lead to that variable: they name it or a backend that ships
    /// and reads it, or it is the one that every client reads.
    fn chooses(&self, resolved: &Resolved, variable: &str) -> bool {
        let named = self.scenario.target.api_key_env.as_ref();
        let is_named = named.is_some_and(|said| said.value == variable);
        let backend = &resolved.draft.backend.digest;
        let is_backend = |unpack: fn() -> Vec<u8>| hex(&Sha256::digest(unpack())) == *backend;
        let mut own = plugins(&self.scenario).chain(self.plugins.iter().map(String::as_str));
        variable == USUAL || is_named || own.any(|name| self.shipped(name).is_some_and(is_backend))
    }

    /// The function that unpacks the plugin of that name, if it ships.
    fn shipped(&self, name: &str) -> Option<fn() -> Vec<u8>> {
        let mut shipped = self.shipped.iter();
        shipped.find_map(|(known, unpack)| (*known == name).then_some(*unpack))
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

fn refused(wrong: Vec<String>) -> Result<(), FleetError> {
    if wrong.is_empty() { Ok(()) } else { Err(FleetError::NotAllowed(wrong)) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A collector's headers are secrets of the machine.
    #[test]
    fn spans_go_only_to_a_collector_that_this_process_names() {
        let of = |text: &str| Source {
            scenario: Scenario::parse("s", text).unwrap(),
            ..Source::default()
        };
        let asked = of("report.otlp = \"http://collector:4318\"");
        let check = |own: &str| Policy::of(of(own)).check(&asked, Path::new("/work"));
        let refused = check("").unwrap_err().to_string();
        let advice = "give --otlp http://collector:4318 to every process, or --trust-rank-0";
        assert!(refused.contains(advice), "{refused}");
        assert!(check("report.otlp = \"http://other:4318\"").is_err());
        check("report.otlp = \"http://collector:4318\"").unwrap();
    }

    /// A new key with a path, an address or a variable fails this test: let
    /// [`Policy`](super::Policy) know of it first.
    #[test]
    fn every_key_that_reaches_out_of_the_scenario_is_known_here() {
        let reaches = |key: &&scenario::Key| {
            let flag = key.flag.as_ref().map(|flag| flag.value_name);
            let said = format!("{} {}", key.expected, flag.unwrap_or_default()).to_lowercase();
            let words = ["path", "file", "folder", "url", "variable"];
            words.iter().any(|word| said.contains(word))
        };
        let keys: BTreeSet<&str> =
            (scenario::keys().iter().filter(reaches)).map(|key| key.path.as_str()).collect();
        let known = [
            "target.base-url",
            "target.api-key-env",
            "tokenizer.path",
            "connection.ca-cert",
            "dataset.files.NAME",
            "load.trace.file",
            "report.otlp",
            // Rank 0 alone reads it.
            "run.device-metrics",
            // No secret goes there, unless it is a target too.
            "target.metrics-url",
        ];
        assert_eq!(keys, BTreeSet::from(known));
    }
}

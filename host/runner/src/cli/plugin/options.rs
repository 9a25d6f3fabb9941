//! The arguments that the subcommands have in common: the form of a result, the folders to search
//! for plugins, and the plugin that a name means.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;

use crate::cli::failure::{Exit, Failure};
use crate::cli::print::{finish, json};
use model::plugin::Limits;
use plugins::PluginError;
use plugins::load::{Plugin, SearchPath, load_within};
use scenario::Scenario;

/// Output format of a subcommand.
#[derive(Clone, Debug, clap::Args)]
pub(in crate::cli) struct Form {
    /// Print the result as JSON instead of text
    #[arg(long, env = "RUNNER_JSON")]
    pub(super) json: bool,
}

impl Form {
    pub(in crate::cli) fn print<F: Serialize>(
        &self,
        facts: &F,
        text: impl FnOnce(&F) -> String,
    ) -> Result<ExitCode, Failure> {
        finish(&if self.json { json(facts)? } else { text(facts) })
    }
}

/// Folders to search for plugins, in addition to the path as given and the shipped plugins.
#[derive(Clone, Debug, clap::Args)]
pub(in crate::cli) struct Folders {
    /// Folders to search for plugins, separated as in PATH
    #[arg(long, value_name = "FOLDERS", env = "RUNNER_PLUGIN_PATH")]
    plugin_path: Option<OsString>,
}

impl Folders {
    pub(in crate::cli) fn paths(&self) -> Vec<PathBuf> {
        self.plugin_path.iter().flat_map(std::env::split_paths).collect()
    }

    pub(super) fn search(&self) -> SearchPath {
        let mut folders = self.paths();
        folders.retain(|folder| !folder.as_os_str().is_empty());
        SearchPath { folders, ..shipped_alone() }
    }
}

/// The sandbox's limits of the plugin.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Sandbox {
    /// Limit of the sandbox, as under [sandbox] of a scenario: compile=10m, memory=1GiB; repeatable
    #[arg(long, value_name = "KEY=VALUE", env = "RUNNER_SANDBOX", value_delimiter = ',')]
    sandbox: Vec<String>,
}

impl Sandbox {
    pub(super) fn limits(&self) -> Result<Limits, Failure> {
        let keys: Vec<String> = self.sandbox.iter().map(|key| format!("sandbox.{key}")).collect();
        let (scenario, problems) = Scenario::assigned(&keys);
        let problems = problems.iter().map(|problem| format!("--sandbox: {}", problem.message()));
        Failure::of_any(Exit::CommandLine, problems)?;
        Ok(session::limits(&scenario))
    }

    pub(super) fn load(&self, name: &str, search: &SearchPath) -> Result<Plugin, Failure> {
        load_within(name, search, &self.limits()?).map_err(raised_by)
    }
}

pub(super) fn raised_by(error: PluginError) -> Failure {
    match &error {
        PluginError::Excessive { .. } => {
            Failure::new(Exit::Plugin, format!("{error}; here with --sandbox KEY=VALUE"))
        }
        _ => error.into(),
    }
}

/// Returns the search path for a plugin by its path, or by its name if it ships.
pub(super) fn shipped_alone() -> SearchPath {
    SearchPath { shipped: shipped::PLUGINS, ..SearchPath::default() }
}

/// The plugin to load for a name that a user gives: `vllm` is `backends/vllm.wasm` if the name is
/// unambiguous.
pub(in crate::cli) fn meant(name: &str) -> Result<String, Failure> {
    if name.contains(['/', '\\', '.', '@']) {
        return Ok(name.to_owned());
    }
    let wanted = format!("/{name}.wasm");
    let mut found = shipped::plugins().filter(|name| name.ends_with(&wanted));
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one.to_owned()),
        (Some(one), Some(other)) => {
            Err(Failure::command_line(format!("`{name}` is ambiguous: use `{one}` or `{other}`")))
        }
        (None, _) => Ok(name.to_owned()),
    }
}

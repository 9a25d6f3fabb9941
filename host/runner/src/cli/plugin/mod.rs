//! `runner plugin`: tools for plugin authors, and facts about plugins for users. One file per
//! subcommand.

pub mod bench;
pub mod build;
pub mod check;
pub mod info;
pub mod list;
pub mod new;
pub mod record;
pub mod test;

mod facts;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;

use super::failure::Failure;
use super::print::finish;
use crate::cli::failure::Exit;
use crate::cli::print::json;
use crate::guide::Page;
use model::plugin::Limits;
use plugins::PluginError;
use plugins::load::{Plugin, SearchPath, load_within};
use scenario::Scenario;

/// Create, build, check, test and list plugins
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "From scratch to a tested component:\n  \
        runner plugin new backend my-engine    creates a project that builds unchanged\n  \
        cd my-engine\n  \
        runner plugin build                    writes target/plugin/my-engine.wasm\n  \
        runner plugin check target/plugin/my-engine.wasm\n  \
        runner plugin test                     runs its cases in the sandbox\n  \
        runner plugin bench                    times a backend's calls on its cases\n  \
        runner plugin record URL               makes a case of a server's reply\n\n\
        To look around:\n  \
        runner plugin list                     the plugins that ship with the runner\n  \
        runner plugin info vllm                the keys of [backend.config]\n  \
        runner plugin guide backend            how to write a backend\n\n\
        Exit codes: 0 success, 2 command line, 3 project or input, 4 plugin or compiler")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Command {
    New(new::Args),
    Build(build::Args),
    Check(check::Args),
    Test(test::Args),
    Bench(bench::Args),
    Record(record::Args),
    Info(info::Args),
    List(list::Args),
    Guide(GuideArgs),
}

/// Print the guide for plugin authors
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner plugin guide                        where to start\n  \
        runner plugin guide backend | less         from scratch to a measured engine\n  \
        runner plugin guide engine > engine.toml   the engine of that exercise, for runner mock")]
struct GuideArgs {
    /// Page to print
    #[arg(value_name = "PAGE", value_enum, default_value_t = Page::Start)]
    page: Page,
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    match &args.command {
        Command::New(args) => new::exec(args),
        Command::Build(args) => build::exec(args),
        Command::Check(args) => check::exec(args),
        Command::Test(args) => test::exec(args),
        Command::Bench(args) => bench::exec(args),
        Command::Record(args) => record::exec(args),
        Command::Info(args) => info::exec(args),
        Command::List(args) => list::exec(args),
        Command::Guide(args) => finish(args.page.text()),
    }
}

/// Output format of a subcommand.
#[derive(Clone, Debug, clap::Args)]
pub(in crate::cli) struct Form {
    /// Print the result as JSON instead of text
    #[arg(long, env = "RUNNER_JSON")]
    json: bool,
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

    fn search(&self) -> SearchPath {
        let mut folders = self.paths();
        folders.retain(|folder| !folder.as_os_str().is_empty());
        SearchPath { folders, ..shipped_alone() }
    }
}

/// The sandbox's limits of the plugin.
#[derive(Clone, Debug, clap::Args)]
struct Sandbox {
    /// Limit of the sandbox, as under [sandbox] of a scenario: compile=10m, memory=1GiB; repeatable
    #[arg(long, value_name = "KEY=VALUE", env = "RUNNER_SANDBOX", value_delimiter = ',')]
    sandbox: Vec<String>,
}

impl Sandbox {
    fn limits(&self) -> Result<Limits, Failure> {
        let keys: Vec<String> = self.sandbox.iter().map(|key| format!("sandbox.{key}")).collect();
        let (scenario, problems) = Scenario::assigned(&keys);
        let problems = problems.iter().map(|problem| format!("--sandbox: {}", problem.message()));
        Failure::of_any(Exit::CommandLine, problems)?;
        Ok(session::limits(&scenario))
    }

    fn load(&self, name: &str, search: &SearchPath) -> Result<Plugin, Failure> {
        load_within(name, search, &self.limits()?).map_err(raised_by)
    }
}

fn raised_by(error: PluginError) -> Failure {
    match &error {
        PluginError::Excessive { .. } => {
            Failure::new(Exit::Plugin, format!("{error}; here with --sandbox KEY=VALUE"))
        }
        _ => error.into(),
    }
}

/// Returns the search path for a plugin by its path, or by its name if it ships.
fn shipped_alone() -> SearchPath {
    SearchPath { shipped: shipped::PLUGINS, ..SearchPath::default() }
}

/// The plugin of a name: `vllm` is `backends/vllm.wasm` if the name is unambiguous.
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

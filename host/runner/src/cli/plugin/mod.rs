//! `runner plugin`: tools for plugin authors, and facts about plugins for users. One file per
//! subcommand.

pub mod build;
pub mod check;
pub mod guide;
pub mod info;
pub mod list;
pub mod new;
pub mod record;
pub mod test;

mod facts;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::builder::FalseyValueParser;
use serde::Serialize;

use super::failure::{Exit, Failure};
use super::print::{write_json, write_stdout};
use plugins::load::SearchPath;

/// Create, build, check, test and list plugins
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "From scratch to a tested component:\n  \
        runner plugin new backend my-engine    creates a project that builds unchanged\n  \
        cd my-engine\n  \
        runner plugin build                    writes target/plugin/my-engine.wasm\n  \
        runner plugin check target/plugin/my-engine.wasm\n  \
        runner plugin test                     runs its cases in the sandbox\n  \
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
    Record(record::Args),
    Info(info::Args),
    List(list::Args),
    Guide(guide::Args),
}

/// Runs the subcommand.
///
/// # Errors
/// As the subcommand.
pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    match &args.command {
        Command::New(args) => new::exec(args),
        Command::Build(args) => build::exec(args),
        Command::Check(args) => check::exec(args),
        Command::Test(args) => test::exec(args),
        Command::Record(args) => record::exec(args),
        Command::Info(args) => info::exec(args),
        Command::List(args) => list::exec(args),
        Command::Guide(args) => guide::exec(args),
    }
}

/// Output format of a subcommand.
#[derive(Clone, Debug, clap::Args)]
struct Form {
    /// Print the result as JSON instead of text
    #[arg(long, env = "RUNNER_JSON", value_parser = FalseyValueParser::new())]
    json: bool,
}

impl Form {
    /// Prints facts, as JSON or as text.
    fn print<F: Serialize>(
        &self,
        facts: &F,
        words: impl FnOnce(&F) -> String,
    ) -> Result<(), Failure> {
        if !self.json {
            return write_stdout(&words(facts));
        }
        let json = serde_json::to_string_pretty(facts);
        let json = json.map_err(|cause| Failure::new(Exit::Bug, format!("no JSON: {cause}")))?;
        write_json(&(json + "\n"))
    }
}

/// Folders to search for plugins, in addition to the path as given and the shipped plugins.
#[derive(Clone, Debug, clap::Args)]
struct Folders {
    /// Folders to search for plugins, separated as in PATH
    #[arg(long, value_name = "FOLDERS", env = "RUNNER_PLUGIN_PATH")]
    plugin_path: Option<OsString>,
}

/// Returns the search path for a plugin by its path, or by its name if it ships.
fn shipped_alone() -> SearchPath {
    SearchPath {
        shipped: shipped::PLUGINS,
        ..SearchPath::default()
    }
}

impl Folders {
    fn search(&self) -> SearchPath {
        let paths = self.plugin_path.iter();
        SearchPath {
            scenario: None,
            folders: paths
                .flat_map(std::env::split_paths)
                .filter(|folder| !folder.as_os_str().is_empty())
                .collect(),
            shipped: shipped::PLUGINS,
        }
    }
}

/// The plugin to load for a name that a user gives: `vllm` is `backends/vllm.wasm` if the name is
/// unambiguous.
pub(in crate::cli) fn meant(asked: &str) -> Result<String, Failure> {
    if asked.contains(['/', '\\', '.', '@']) {
        return Ok(asked.to_owned());
    }
    let wanted = format!("/{asked}.wasm");
    let mut found = shipped::plugins().filter(|name| name.ends_with(&wanted));
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one.to_owned()),
        (Some(one), Some(other)) => Err(Failure::new(
            Exit::CommandLine,
            format!("`{asked}` is ambiguous: use `{one}` or `{other}`"),
        )),
        (None, _) => Ok(asked.to_owned()),
    }
}

//! `runner plugin`: what a plugin's author needs, and what a user wants to know of one. One file per subcommand.

pub mod build;
pub mod check;
pub mod guide;
pub mod info;
pub mod list;
pub mod new;
pub mod test;

mod facts;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::builder::FalseyValueParser;
use serde::Serialize;

use super::failure::{Exit, Failure};
use super::run::write_stdout;
use plugins::load::SearchPath;

/// Make, build, check, test and list plugins
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "From nothing to a tested component:\n  \
        runner plugin new backend my-engine    a project that builds as it stands\n  \
        cd my-engine\n  \
        runner plugin build                    writes target/plugin/my-engine.wasm\n  \
        runner plugin check target/plugin/my-engine.wasm\n  \
        runner plugin test                     its cases, in the sandbox of a run\n\n\
        What there is:\n  \
        runner plugin list                     the plugins inside this runner\n  \
        runner plugin info vllm                what can be written under [backend.config]\n  \
        runner plugin guide backend            how such a plugin is written\n\n\
        Exit codes: 0 done, 2 command line, 3 project or input, 4 plugin or compiler")]
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
    Info(info::Args),
    List(list::Args),
    Guide(guide::Args),
}

/// Runs the subcommand.
///
/// # Errors
/// What went wrong.
pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    match &args.command {
        Command::New(args) => new::exec(args),
        Command::Build(args) => build::exec(args),
        Command::Check(args) => check::exec(args),
        Command::Test(args) => test::exec(args),
        Command::Info(args) => info::exec(args),
        Command::List(args) => list::exec(args),
        Command::Guide(args) => guide::exec(args),
    }
}

/// In which form facts are printed.
#[derive(Clone, Debug, clap::Args)]
struct Form {
    /// Print the facts as one JSON object
    #[arg(long, env = "RUNNER_JSON", value_parser = FalseyValueParser::new())]
    json: bool,
}

impl Form {
    /// Prints facts, as JSON or in words.
    fn print<F: Serialize>(
        &self,
        facts: &F,
        words: impl FnOnce(&F) -> String,
    ) -> Result<(), Failure> {
        let text = match self.json {
            true => {
                let json = serde_json::to_string_pretty(facts);
                json.map_err(|cause| Failure::new(Exit::Bug, format!("no JSON: {cause}")))? + "\n"
            }
            false => words(facts),
        };
        write_stdout(&text)
    }
}

/// Where plugins are looked for, beside the path as given and what ships.
#[derive(Clone, Debug, clap::Args)]
struct Folders {
    /// Folders to look for plugins in, set apart as in PATH
    #[arg(long, value_name = "FOLDERS", env = "RUNNER_PLUGIN_PATH")]
    plugin_path: Option<OsString>,
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

/// The name to load for what a user calls a plugin: `vllm` is `backends/vllm.wasm` where nothing else can be meant.
fn meant(asked: &str) -> Result<String, Failure> {
    if asked.contains(['/', '\\', '.', '@']) {
        return Ok(asked.to_owned());
    }
    let wanted = format!("/{asked}.wasm");
    let mut found = shipped::plugins().filter(|name| name.ends_with(&wanted));
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one.to_owned()),
        (Some(one), Some(other)) => Err(Failure::new(
            Exit::CommandLine,
            format!("`{asked}` can be `{one}` or `{other}`; say which"),
        )),
        (None, _) => Ok(asked.to_owned()),
    }
}

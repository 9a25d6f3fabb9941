//! `runner scenario`: lists the keys of scenarios, checks scenarios, and shows a scenario with
//! flags laid over it.

mod keys;
pub(super) mod show;

use std::process::ExitCode;

use super::artifacts::Artifacts;
use super::failure::Failure;
use super::flags::Flags;
use super::plugin::Folders;
use super::print::finish;
use super::sources;

/// List the keys of scenarios, check scenarios, and show them resolved
///
/// A scenario is a TOML file that describes a run. Every key can be set on the command line too:
/// many have a flag of their own, and --set KEY=VALUE sets any of them.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner scenario keys load                         the keys of [load], with their flags\n  \
        runner scenario check mine.toml                   every mistake at once; exit code 3 if there is one\n  \
        runner scenario show mine.toml --set load.seed=7  every value with that flag, and its source")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Command {
    Keys(keys::Args),
    Check(CheckArgs),
    Show(Box<ShowArgs>),
}

/// Check scenarios: every mistake in every file at once
///
/// This checks each scenario by itself, without flags. It loads the plugins that a scenario names
/// and checks their configurations. It does not look at the files that a scenario names; a run
/// checks these too before it begins.
///
/// Exit codes: 0 no mistakes, 3 a scenario has a mistake, 4 a plugin does not load
#[derive(Clone, Debug, clap::Args)]
struct CheckArgs {
    /// Scenario files or folders, built-in scenarios such as scenarios/lmdeploy, or `-` for stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,
    #[command(flatten)]
    folders: Folders,
    #[command(flatten)]
    artifacts: Artifacts,
}

/// Show a scenario as a run would use it: with flags laid over it and defaults filled in
///
/// Prints TOML that is itself a scenario. A comment behind each value says where it comes from: a
/// place in the file, a flag (or the variable that stands for it), or the default. Values of
/// headers are not shown.
#[derive(Clone, Debug, clap::Args)]
struct ShowArgs {
    /// A scenario file or folder, a built-in scenario such as scenarios/quickstart, or `-` for
    /// stdin; without it, only the flags
    #[arg(value_name = "FILE")]
    file: Option<String>,
    #[command(flatten)]
    flags: Flags,
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    match &args.command {
        Command::Keys(args) => keys::exec(args),
        Command::Check(args) => check(args),
        Command::Show(args) => show::exec(args.file.as_slice(), &args.flags),
    }
}

fn check(args: &CheckArgs) -> Result<ExitCode, Failure> {
    args.artifacts.apply();
    let names = sources::check(&args.files, &args.folders.paths())?;
    let lines: Vec<String> = names.iter().map(|name| format!("{name}: ok\n")).collect();
    finish(&lines.concat())
}

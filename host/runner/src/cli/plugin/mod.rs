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
pub(super) mod options;

use std::process::ExitCode;

use super::failure::Failure;
use super::print::finish;
use crate::guide::Page;

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

//! `runner plugin guide`: the guide for plugin authors.

use std::process::ExitCode;

use crate::cli::failure::Failure;
use crate::cli::print::write_stdout;
use crate::guide::Page;

/// Print the guide for plugin authors
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner plugin guide                        where to start\n  \
        runner plugin guide backend | less         from scratch to a measured engine\n  \
        runner plugin guide engine > engine.toml   the engine of that exercise, for runner mock")]
pub struct Args {
    /// Page to print
    #[arg(value_name = "PAGE", value_enum, default_value_t = Page::Start)]
    page: Page,
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    write_stdout(args.page.text())?;
    Ok(ExitCode::SUCCESS)
}

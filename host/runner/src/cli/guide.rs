//! `runner guide`: the user guide.

use std::fmt::Write;
use std::process::ExitCode;

use crate::cli::failure::Failure;
use crate::cli::print::write_stdout;
use crate::guide::pages::{PAGES, page};

/// Print the user guide, a page at a time
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner guide                 list the pages\n  \
        runner guide load | less     how to choose the load\n  \
        runner guide scenario-keys   every key of a scenario")]
pub struct Args {
    /// The page to print; without it, the list of pages
    #[arg(value_name = "PAGE")]
    page: Option<String>,
}

/// Runs the subcommand.
///
/// # Errors
/// Where there is no such page, or stdout cannot be written.
pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let text = match &args.page {
        Some(name) => page(name).map_err(Failure::command_line)?.text().to_owned(),
        None => list(),
    };
    write_stdout(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn list() -> String {
    let mut text = String::from("The user guide. `runner guide PAGE` prints a page:\n\n");
    for page in PAGES {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {:<14} {}", page.name, page.about);
    }
    text
}

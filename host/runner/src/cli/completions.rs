//! `runner completions`: prints what a shell needs to complete the command line.

use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory};

use super::failure::Failure;
use super::flags::{backends, datasets};
use super::print::write_stdout;
use crate::guide::pages::PAGES;

/// Print shell completions
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Shell to print completions for
    shell: clap_complete::Shell,
}

/// Runs the subcommand.
///
/// # Errors
/// If stdout cannot be written.
pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    let mut command = with_values(super::Cli::command());
    clap_complete::generate(args.shell, &mut command, "runner", &mut script);
    write_stdout(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// The command line with the names that shells offer as values: what ships, and the names that other tools have for it.
/// The command line itself takes others too, such as plugins in files.
fn with_values(command: Command) -> Command {
    let is_guide = command.get_name() == "guide";
    let named = |arg: Arg| {
        let names: Vec<&'static str> = match (arg.get_id().as_str(), is_guide) {
            ("backend", _) => (shipped_in("backends/"))
                .chain(backends::shipped_aliases().map(|alias| alias.name))
                .collect(),
            ("dataset_name", _) => (shipped_in("datasets/"))
                .chain(datasets::ALIASES.iter().map(|alias| alias.name))
                .collect(),
            ("page", true) => PAGES.iter().map(|page| page.name).collect(),
            ("lab", _) => shipped::labs().collect(),
            _ => return arg,
        };
        arg.value_parser(PossibleValuesParser::new(names))
            .hide_possible_values(true)
    };
    command.mut_args(named).mut_subcommands(with_values)
}

/// The names of the plugins of a folder that ship.
fn shipped_in(folder: &'static str) -> impl Iterator<Item = &'static str> {
    shipped::plugins().filter_map(move |plugin| plugin.strip_prefix(folder)?.strip_suffix(".wasm"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_offer_names_of_what_ships() {
        for shell in [clap_complete::Shell::Bash, clap_complete::Shell::Zsh] {
            let mut script = Vec::new();
            let mut command = with_values(super::super::Cli::command());
            clap_complete::generate(shell, &mut command, "runner", &mut script);
            let script = String::from_utf8(script).unwrap();
            for name in [
                "sglang-oai-chat",
                "lmdeploy",
                "prefix_repetition",
                "shared-prefix",
                "coming-from",
            ] {
                assert!(script.contains(name), "{shell}: {name}");
            }
        }
    }
}

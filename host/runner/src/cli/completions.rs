//! `runner completions`: prints what a shell needs to complete the command line.

use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command};
use clap_complete::Shell;

use super::failure::Failure;
use super::flags::{backends, datasets};
use super::print::write_stdout;
use crate::guide::pages::PAGES;

/// Print shell completions
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Shell to print completions for
    shell: Shell,
}

/// Runs the subcommand.
///
/// # Errors
/// If stdout cannot be written.
pub fn exec(args: &Args, command: Command) -> Result<ExitCode, Failure> {
    write_stdout(&script(args.shell, command))?;
    Ok(ExitCode::SUCCESS)
}

/// Everything that a shell needs.
fn script(shell: Shell, command: Command) -> String {
    let mut script = Vec::new();
    let mut command = with_values(command);
    clap_complete::generate(shell, &mut command, "runner", &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    if shell == Shell::Zsh {
        // It offers either names or files, and these are both.
        for names in [scenarios(), shipped::labs().collect()] {
            let names = names.join(" ");
            script = script.replace(
                &format!(":({names})'"),
                &format!(":{{_files; compadd {names}}}'"),
            );
        }
    }
    script
}

/// The scenarios that ship, and the folders of several.
fn scenarios() -> Vec<&'static str> {
    let files = shipped::scenarios();
    let folders = files.filter_map(|file| Some(file.rsplit_once('/')?.0));
    let mut names: Vec<&str> = shipped::scenarios().chain(folders).collect();
    names.retain(|name| name.contains('/'));
    names.sort_unstable();
    names.dedup();
    names
}

/// The command line with the names that shells offer as values: what ships, and the names that
/// other tools have for it. The command line itself takes others too, such as plugins in files.
fn with_values(command: Command) -> Command {
    let of = command.get_name().to_owned();
    let named = |arg: Arg| {
        let names: Vec<&'static str> = match (arg.get_id().as_str(), of.as_str()) {
            ("backend", _) => (shipped_in("backends/"))
                .chain(backends::shipped_aliases().map(|alias| alias.name))
                .collect(),
            ("dataset_name", _) => (shipped_in("datasets/"))
                .chain(datasets::ALIASES.iter().map(|alias| alias.name))
                .collect(),
            ("page", "guide") => PAGES.iter().map(|page| page.name).collect(),
            ("lab", _) => shipped::labs().collect(),
            ("scenarios", _) | ("files", "check") if arg.is_positional() => scenarios(),
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
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn shells_offer_names_of_what_ships() {
        for shell in [Shell::Bash, Shell::Zsh] {
            let script = script(shell, Cli::command());
            for name in [
                "sglang-oai-chat",
                "lmdeploy",
                "prefix_repetition",
                "shared-prefix",
                "coming-from",
                "scenarios/lmdeploy/long-input.toml",
                "scenarios/gpustack scenarios/gpustack/generation-heavy.toml",
                "scenarios/labs/gpustack.toml",
            ] {
                assert!(script.contains(name), "{shell}: {name}");
            }
        }
    }

    #[test]
    fn zsh_offers_files_beside_the_names() {
        let script = script(Shell::Zsh, Cli::command());
        for of in ["'*::scenarios -- ", "'::lab -- "] {
            let mut lines = script.lines().filter(|line| line.starts_with(of));
            assert!(lines.all(|line| line.contains(":{_files; compadd scenarios/")));
            assert!(script.contains(of));
        }
    }
}

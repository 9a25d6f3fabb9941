//! `runner man`: prints the manual page of a command, or writes all pages to a folder.
//!
//! `clap_mangen` lays the pages out. Their bytes depend on the version, the command line and
//! `SOURCE_DATE_EPOCH` alone.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::Resettable;
use clap::{Arg, Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use super::Cli;
use super::destination::Destination;
use super::failure::Failure;
use super::help::variable_in_long_help;
use super::print::finish;
use model::nearest;

/// Print the manual page of a command, or write the pages of all commands
///
/// A date stands on the pages only where SOURCE_DATE_EPOCH gives one, so that two builds write the
/// same bytes.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner man run | man -l -                       read the page of `runner run`\n  \
        runner man plugin new | man -l -                the page of a command below another\n  \
        runner man --output ~/.local/share/man/man1     install all pages: man runner-search")]
pub struct Args {
    /// Words of the command, such as `run` or `plugin new` [default: the page of the program]
    #[arg(value_name = "COMMAND")]
    words: Vec<String>,
    /// Folder to write all pages to, each under its name, such as runner-run.1
    #[arg(long, value_name = "FOLDER", env = "RUNNER_MAN_OUTPUT", conflicts_with = "words")]
    output: Option<PathBuf>,
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let program = built(Cli::command());
    let date = date(std::env::var("SOURCE_DATE_EPOCH").ok().as_deref())?;
    let Some(folder) = &args.output else {
        let command = named(&program, &args.words)?;
        return finish(&page(&program, command, &date));
    };
    std::fs::create_dir_all(folder)
        .map_err(Failure::write(folder, "; give a writable folder with --output"))?;
    for command in all(&program) {
        let mut file = Destination::open(&folder.join(format!("{}.1", name(command))))?;
        file.text(&page(&program, command, &date))?;
        file.finish()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The command line with names and usages of all commands, without `help`, which has no page.
fn built(program: Command) -> Command {
    fn without_help(command: Command) -> Command {
        command.disable_help_subcommand(true).mut_subcommands(without_help)
    }
    let mut program = without_help(program);
    program.build();
    with_variables(program)
}

/// A command with each flag's variable in its help, never with the variable's value.
fn with_variables(command: Command) -> Command {
    let without_value = |arg: Arg| variable_in_long_help(arg.hide_env_values(true));
    command.mut_args(without_value).mut_subcommands(with_variables)
}

fn name(command: &Command) -> String {
    command.get_bin_name().unwrap_or(command.get_name()).replace(' ', "-")
}

/// The page of a command. The text below the flags keeps its lines, because of examples.
fn page(program: &Command, command: &Command, date: &str) -> String {
    let below = command.get_after_long_help().or_else(|| command.get_after_help());
    let below = below.map(ToString::to_string);
    let name = name(command);
    let bare = command.clone().after_help(Resettable::Reset).after_long_help(Resettable::Reset);
    let source = format!("runner {}", program.get_version().unwrap_or_default());
    let man = Man::new(bare)
        .title(name.to_uppercase())
        .section("1")
        // An empty argument has to be written.
        .date(if date.is_empty() { "\"\"" } else { date })
        .source(source)
        .manual("User Commands");
    let mut page = Vec::new();
    // Writing to memory cannot fail.
    let _ = man.render(&mut page);
    if let Some(below) = below {
        let mut notes = Roff::new();
        notes.control("SH", ["NOTES"]).control("nf", []);
        for line in below.lines() {
            notes.text([roman(line)]);
        }
        notes.control("fi", []);
        let _ = notes.to_writer(&mut page);
    }
    String::from_utf8_lossy(&page).into_owned()
}

fn named<'c>(program: &'c Command, words: &[String]) -> Result<&'c Command, Failure> {
    let mut command = program;
    for word in words {
        let Some(below) = command.find_subcommand(word) else {
            let parent = command.get_bin_name().unwrap_or_default();
            let names = command.get_subcommands().map(Command::get_name);
            let instead = match nearest(word, names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("`{parent} --help` lists the commands"),
            };
            let message = format!("there is no command `{parent} {word}`; {instead}");
            return Err(Failure::command_line(message));
        };
        command = below;
    }
    Ok(command)
}

fn all(command: &Command) -> Vec<&Command> {
    let below = command.get_subcommands().flat_map(all);
    std::iter::once(command).chain(below).collect()
}

/// The date of pages, from `SOURCE_DATE_EPOCH`; empty without it.
fn date(epoch: Option<&str>) -> Result<String, Failure> {
    let Some(text) = epoch.filter(|text| !text.is_empty()) else { return Ok(String::new()) };
    let seconds = text.parse().ok();
    let time = seconds.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    let time = time.ok_or_else(|| {
        Failure::command_line(format!(
            "`SOURCE_DATE_EPOCH`: expected seconds since 1970, found `{text}`; unset it for pages without a date"
        ))
    })?;
    Ok(time.strftime("%Y-%m-%d").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_pages_by_source_date_epoch() {
        for (epoch, expected) in [
            (None, Some("")),
            (Some(""), Some("")),
            (Some("0"), Some("1970-01-01")),
            (Some("1795651200"), Some("2026-11-26")),
            (Some("yesterday"), None),
            (Some("99999999999999999"), None),
        ] {
            assert_eq!(date(epoch).ok().as_deref(), expected, "{epoch:?}");
        }
    }

    #[test]
    fn suggests_the_nearest_command() {
        let program = built(Cli::command());
        let find = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            named(&program, &words).map(Command::get_name).map_err(|failure| failure.message())
        };
        assert_eq!(find("plugin new"), Ok("new"));
        assert_eq!(
            find("plugin nwe").unwrap_err(),
            "there is no command `runner plugin nwe`; did you mean `new`?"
        );
        assert_eq!(
            find("run fast").unwrap_err(),
            "there is no command `runner run fast`; `runner run --help` lists the commands"
        );
    }
}

//! The command line with the variables of the environment that stand for its flags. The command
//! line counts more: a variable whose flag conflicts with a given one is ignored.

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::builder::Resettable;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, Id};

use super::words::is_flag;

/// Reads words as a command. The returned command draws errors in its matches.
pub(super) fn read(
    build: fn() -> Command,
    words: &[OsString],
) -> Result<(Command, ArgMatches), clap::Error> {
    let mut command = build();
    let wrong = match command.try_get_matches_from_mut(words) {
        Ok(matches) => return Ok((command, matches)),
        Err(help) if !help.use_stderr() => return Err(help),
        Err(wrong) => wrong,
    };
    let Ok(given) = build().ignore_errors(true).try_get_matches_from(words) else {
        return Err(wrong);
    };
    let mut command = without_conflicts(build(), &given);
    let matches = command.try_get_matches_from_mut(words)?;
    Ok((command, matches))
}

/// The command without variables of flags that conflict with given ones, at every level.
fn without_conflicts(command: Command, given: &ArgMatches) -> Command {
    let is_given =
        |arg: &Arg| given.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
    let mut ignored: BTreeSet<Id> = BTreeSet::new();
    for arg in command.get_arguments() {
        for other in command.get_arg_conflicts_with(arg) {
            let pairs = [(arg, other), (other, arg)];
            let ends = pairs.into_iter().filter(|(one, _)| is_given(one));
            ignored.extend(ends.map(|(_, other)| other.get_id().clone()));
        }
    }
    let below = given.subcommand();
    let command = command.mut_args(|arg| {
        // The flags of a command above the given one have no effect.
        if below.is_some() || ignored.contains(arg.get_id()) {
            arg.env(Resettable::Reset)
        } else {
            arg
        }
    });
    match below {
        Some((name, below)) => {
            command.mut_subcommand(name, |command| without_conflicts(command, below))
        }
        None => command,
    }
}

/// The variable that set a flag (`--seed <SEED>`), if the command line itself does not set it.
pub(super) fn variable_for(command: &Command, flag: &str) -> Option<String> {
    let long = flag.split_whitespace().next()?.strip_prefix("--")?;
    let flag = format!("--{long}");
    if std::env::args_os().any(|word| is_flag(&word, &flag)) {
        return None;
    }
    let nested = command.get_subcommands().flat_map(Command::get_subcommands);
    let commands = std::iter::once(command).chain(command.get_subcommands()).chain(nested);
    let variables = commands.flat_map(Command::get_arguments);
    variables
        .filter(|argument| argument.get_long() == Some(long))
        .filter_map(Arg::get_env)
        .find(|variable| std::env::var_os(variable).is_some())
        .map(|variable| variable.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command with a flag whose variable is set wherever tests run.
    fn command() -> Command {
        let flag = |name: &'static str| Arg::new(name).long(name);
        let below = Command::new("below")
            .arg(flag("url").env("PATH").conflicts_with("port"))
            .arg(flag("port"))
            .arg(flag("host").env("PATH").conflicts_with("url"));
        Command::new("above")
            .arg(flag("number").env("PATH").value_parser(clap::value_parser!(u8)))
            .subcommand(below)
    }

    #[test]
    fn given_flags_override_conflicting_variables() {
        for (line, url, host) in [
            ("above below --port 1", false, true),
            ("above below --url u", true, false),
            ("above below --host h", false, true),
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let (_, matches) = read(command, &words).unwrap();
            let (_, below) = matches.subcommand().unwrap();
            let has = |name: &str| below.contains_id(name);
            assert_eq!((has("url"), has("host")), (url, host), "{line}");
        }
        // Neither of two variables counts more than the other.
        let words = ["above", "below"].map(OsString::from);
        assert!(read(command, &words).is_err());
    }
}

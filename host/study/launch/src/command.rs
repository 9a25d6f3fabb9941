//! A command as the system is to run it.

use std::io::{self, PipeWriter};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::spec::Value;

/// True if a variable of ours is for this program alone: its settings, and its keys for servers. An
/// engine gets it only where its own environment names it. `HF_TOKEN` is not one of these, because
/// engines download models.
pub fn is_withheld(name: &str) -> bool {
    name.starts_with("RUNNER_") || name.ends_with("_API_KEY") || name == "API_KEY"
}

/// A program with its arguments, in a process group of its own, without input. It has this
/// environment and ours, without the variables of `is_withheld` and of `withheld`.
pub(crate) fn command(
    words: &[String],
    environment: &[(String, Value)],
    withheld: &[String],
    directory: Option<&Path>,
) -> Option<Command> {
    let (program, arguments) = words.split_first()?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).process_group(0);
    for (name, _) in std::env::vars_os() {
        let is_named = |name: &str| is_withheld(name) || withheld.iter().any(|own| own == name);
        if name.to_str().is_some_and(is_named) {
            command.env_remove(name);
        }
    }
    for (name, value) in environment {
        match value {
            Value::Plain(text) | Value::Secret(text) => command.env(name, text),
            Value::Unset => command.env_remove(name),
        };
    }
    if let Some(directory) = directory {
        command.current_dir(directory);
    }
    Some(command)
}

/// Sends all output of a command into one pipe.
pub(crate) fn write_to(command: &mut Command, pipe: PipeWriter) -> io::Result<()> {
    command.stderr(pipe.try_clone()?).stdout(pipe);
    Ok(())
}

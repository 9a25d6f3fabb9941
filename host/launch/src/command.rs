//! A command as the system is to run it.

use std::io::{self, PipeWriter};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::spec::Value;

/// A program with its arguments, in a process group of its own, without input, and with this environment beside ours.
pub(crate) fn command(
    words: &[String],
    environment: &[(String, Value)],
    directory: Option<&Path>,
) -> Option<Command> {
    let (program, arguments) = words.split_first()?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .process_group(0);
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

/// Has a command write all it writes into one pipe.
pub(crate) fn write_to(command: &mut Command, pipe: PipeWriter) -> io::Result<()> {
    command.stderr(pipe.try_clone()?).stdout(pipe);
    Ok(())
}

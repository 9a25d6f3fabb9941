//! The engine to launch, and the time to wait for it.

use std::io::{self, PipeWriter};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use model::redact::Known;

/// A variable of the engine's environment.
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    /// This text, which is recorded.
    Plain(String),
    /// This text, which is never written down.
    Secret(String),
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Plain(text) => write!(f, "Plain({text:?})"),
            Value::Secret(_) => f.write_str("Secret(…)"),
        }
    }
}

/// An engine to launch. [`Spec::new`] has the defaults.
#[derive(Clone)]
pub struct Spec {
    /// The engine's name, for messages.
    pub name: String,
    /// The program and its arguments, ready to run: nothing in it is interpreted.
    pub command: Vec<String>,
    /// The variables beside this process's own. The last of a name counts.
    pub environment: Vec<(String, Value)>,
    /// Further variables of this process that it does not inherit, beside the variables that are
    /// [withheld](crate::is_withheld) from every engine.
    pub withheld: Vec<String>,
    /// The folder to run it in; here if absent.
    pub directory: Option<PathBuf>,
    /// The address to listen on, as a client on this machine writes it.
    pub host: String,
    pub port: u16,
    /// The time that it may take until it answers.
    pub ready_timeout: Duration,
    /// The time that it may take to end after SIGTERM.
    pub stop_timeout: Duration,
    /// The time that its port and its devices' memory may take to become free after its end.
    pub settle_timeout: Duration,
    /// The file for its output. A second file with `.earlier` after the name comes beside it.
    pub log: PathBuf,
    /// The number of bytes that both files hold together; beyond that the oldest are lost.
    pub log_limit: u64,
    /// Number of the last lines to keep for messages.
    pub last_lines: usize,
    /// Further texts that must not be written down, such as a key in `command`.
    pub secrets: Vec<String>,
}

impl Spec {
    /// An engine with the usual timeouts: 15 minutes until ready, 30 seconds to stop, a minute
    /// until its resources are free. It may log 256 MiB, and messages have 40 lines.
    pub fn new(
        name: impl Into<String>,
        command: Vec<String>,
        (host, port): (impl Into<String>, u16),
        log: impl Into<PathBuf>,
    ) -> Self {
        Spec {
            name: name.into(),
            command,
            environment: Vec::new(),
            withheld: Vec::new(),
            directory: None,
            host: host.into(),
            port,
            ready_timeout: Duration::from_secs(15 * 60),
            stop_timeout: Duration::from_secs(30),
            settle_timeout: Duration::from_secs(60),
            log: log.into(),
            log_limit: 256 << 20,
            last_lines: 40,
            secrets: Vec::new(),
        }
    }

    /// Returns the texts that must not be written down.
    pub(crate) fn secrets(&self) -> Known {
        let of_environment = self.environment.iter().filter_map(|(_, value)| match value {
            Value::Secret(text) => Some(text),
            Value::Plain(_) => None,
        });
        Known::new(of_environment.chain(&self.secrets).cloned())
    }
}

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
    for (name, Value::Plain(text) | Value::Secret(text)) in environment {
        command.env(name, text);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_written_down() {
        let mut spec = Spec::new("e", Vec::new(), ("127.0.0.1", 1), "log");
        let secret = |text: &str| Value::Secret(text.to_owned());
        spec.environment = vec![
            ("A".to_owned(), secret("opensesame")),
            ("B".to_owned(), secret("open")),
            ("C".to_owned(), secret("it")),
            ("D".to_owned(), Value::Plain("plain".to_owned())),
        ];
        spec.secrets = vec!["in the command".to_owned()];
        let secrets = spec.secrets();
        let expected = "[redacted], [redacted] it: plain, [redacted]";
        assert_eq!(secrets.redact("opensesame, open it: plain, in the command"), expected);
        assert_eq!(&*secrets.redact_bytes(b"\xff plain"), b"\xff plain");
        assert_eq!(&*secrets.redact_bytes(b"\xff open"), "\u{fffd} [redacted]".as_bytes());
        assert_eq!(format!("{:?}", spec.environment[0]), r#"("A", Secret(…))"#);
    }
}

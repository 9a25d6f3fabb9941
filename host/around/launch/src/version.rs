//! Asks a program for its version.

use std::io::{self, PipeReader, Read};
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use tokio::sync::oneshot;

use crate::command::command;
use crate::exit::Exit;
use crate::leader::Leader;
use crate::spec::Value;

/// The part of what a program says that is looked at.
const LARGEST: u64 = 64 << 10;

/// The part of a version that is kept, in characters.
const LONGEST: usize = 200;

/// The time that what a program has written may take to arrive once it has ended.
const ARRIVES_WITHIN: Duration = Duration::from_secs(2);

/// The reason why a version is not known.
#[derive(Debug, thiserror::Error)]
pub enum NoVersion {
    /// There is no command.
    #[error("the command for the version is empty")]
    NoCommand,
    /// The system does not run it.
    #[error("`{program}` does not run: {source}")]
    Program {
        /// The program to run.
        program: String,
        /// The reason why it does not.
        source: io::Error,
    },
    /// It does not end.
    #[error("`{program}` did not say its version within {} s", within.as_secs_f64())]
    Late {
        /// The program that ran.
        program: String,
        /// The time that it was waited for.
        within: Duration,
    },
    /// It fails, or says nothing.
    #[error("`{program}` said no version: it ended with {exit}{}", said(line))]
    None {
        /// The program that ran.
        program: String,
        /// The way it ended.
        exit: Exit,
        /// The last line that it wrote.
        line: Option<String>,
    },
}

fn said(line: &Option<String>) -> String {
    line.as_ref().map_or(String::new(), |line| format!(": {line}"))
}

/// A process that is killed, with its group, if nobody waits for it any more.
struct Guard(Leader);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.signal_group(Signal::KILL);
        self.0.reap();
    }
}

/// Asks a program for its version: the line of its output that looks most like one.
///
/// # Errors
/// If it does not run, does not end in time, fails, or says nothing.
pub async fn version(
    words: &[String],
    environment: &[(String, Value)],
    withheld: &[String],
    directory: Option<&Path>,
    within: Duration,
) -> Result<String, NoVersion> {
    let mut command =
        command(words, environment, withheld, directory).ok_or(NoVersion::NoCommand)?;
    let program = words[0].clone();
    let failed = |source| NoVersion::Program { program: program.clone(), source };
    let (output, of_output) = io::pipe().map_err(failed)?;
    let (errors, of_errors) = io::pipe().map_err(failed)?;
    command.stdout(of_output).stderr(of_errors);
    let leader = Leader::start(&mut command).map_err(failed)?;
    let guard = Guard(leader);
    // Its ends of the pipes stay open in it.
    drop(command);
    let output = collect(output).map_err(failed)?;
    let errors = collect(errors).map_err(failed)?;
    let Ok(exit) = tokio::time::timeout(within, guard.0.ended()).await else {
        return Err(NoVersion::Late { program, within });
    };
    let arrived = async |text: oneshot::Receiver<String>| {
        let text = tokio::time::timeout(ARRIVES_WITHIN, text).await;
        text.ok().and_then(Result::ok).unwrap_or_default()
    };
    let (output, errors) = (arrived(output).await, arrived(errors).await);
    let line = line(&output).or_else(|| self::line(&errors));
    match line {
        Some(line) if exit.is_success() => Ok(line),
        line => Err(NoVersion::None { program, exit, line }),
    }
}

/// Reads a pipe to its end on a thread of its own.
fn collect(mut pipe: PipeReader) -> io::Result<oneshot::Receiver<String>> {
    let (tell, text) = oneshot::channel();
    let thread = std::thread::Builder::new().name("engine-version".to_owned());
    thread.spawn(move || {
        let mut bytes = Vec::new();
        let _ = (&mut pipe).take(LARGEST).read_to_end(&mut bytes);
        let _ = tell.send(String::from_utf8_lossy(&bytes).into_owned());
        // A program that says more is not held up.
        let _ = io::copy(&mut pipe, &mut io::sink());
    })?;
    Ok(text)
}

/// The last line that is a version or begins as one does; or else the last one.
fn line(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut backwards = lines.iter().rev().filter(|line| !line.is_empty());
    let last = backwards.clone().next()?;
    let line = backwards.find(|line| looks_like_a_version(line));
    let line = model::clean::line(line.unwrap_or(last)).into_owned();
    Some(line.chars().take(LONGEST).collect())
}

/// `0.11.0`, `v0.11.0+cpu`, `version: 6500 (abc)`.
fn looks_like_a_version(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    let number = lower.strip_prefix('v').unwrap_or(&lower);
    let number = number.split(|c: char| !c.is_ascii_digit() && c != '.').next();
    let number =
        number.is_some_and(|it| it.contains('.') && it.starts_with(|c: char| c.is_ascii_digit()));
    let words = lower.split_whitespace().count();
    (number && words <= 2) || lower.starts_with("version")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_among_other_lines() {
        for (text, version) in [
            ("0.11.0\n", Some("0.11.0")),
            ("INFO 11-23 loading\n0.11.1+cpu\n", Some("0.11.1+cpu")),
            ("v1.2\n\ngood bye\n", Some("v1.2")),
            ("version: 6500 (1f6e)\nbuilt with cc 13\n", Some("version: 6500 (1f6e)")),
            ("lmdeploy 0.9.2\n", Some("lmdeploy 0.9.2")),
            ("\n \n", None),
        ] {
            assert_eq!(line(text).as_deref(), version, "{text:?}");
        }
    }
}

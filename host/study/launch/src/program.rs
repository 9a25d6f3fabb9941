//! Runs a program to its end: in bounded time, and with its output kept.
//!
//! An engine runs until it is stopped; a program such as a benchmark client ends by itself. It runs
//! in a process group of its own, which is killed when its time is over, so that no process of it
//! holds a port or a core afterwards.

use std::io::{self, PipeReader, Read};
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use tokio::sync::oneshot;

use crate::exit::Exit;
use crate::leader::Leader;
use crate::parent::Watch;
use crate::process;
use crate::spec::{Value, command};

/// The kept part of each of its outputs, in bytes: the last.
const KEPT: usize = 16 << 20;

/// The time that an ended program's output may take to arrive.
const ARRIVES_WITHIN: Duration = Duration::from_secs(2);

/// A program that ended by itself, or was ended because its time was over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramOutput {
    /// Its exit; nothing if its time was over.
    pub exit: Option<Exit>,
    /// Its processor time, with the processes that it waited for; absent if it is not shown.
    pub processor: Option<Duration>,
    /// The last part of its standard output.
    pub stdout: Vec<u8>,
    /// The last part of its standard error.
    pub stderr: Vec<u8>,
}

#[derive(Debug, thiserror::Error)]
pub enum NotRun {
    #[error("the command is empty")]
    NoCommand,
    #[error("`{program}` does not run: {source}")]
    Program { program: String, source: io::Error },
}

/// A process that is killed with its group, if nobody waits for it any more, or if this process is
/// killed. The watch ends first: afterwards the group may be another's.
struct Guard(Leader, Option<Watch>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.signal_group(Signal::KILL);
        self.1 = None;
        self.0.reap();
    }
}

/// Runs a program until it ends, its time is over, or the future is dropped. Programs that run at
/// the same time each get the processor time of all. Fails if the system does not run it.
pub async fn run(
    words: &[String],
    environment: &[(String, Value)],
    withheld: &[String],
    directory: Option<&Path>,
    within: Duration,
) -> Result<ProgramOutput, NotRun> {
    let mut command = command(words, environment, withheld, directory).ok_or(NotRun::NoCommand)?;
    let program = words[0].clone();
    let failed = |source| NotRun::Program { program: program.clone(), source };
    let before = process::children_time();
    let (output, of_output) = io::pipe().map_err(failed)?;
    let (errors, of_errors) = io::pipe().map_err(failed)?;
    command.stdout(of_output).stderr(of_errors);
    let mut watch = Watch::begin("", Duration::ZERO).ok();
    let leader = Leader::start(&mut command).map_err(failed)?;
    if let Some(watch) = &mut watch {
        watch.over(leader.pid());
    }
    let guard = Guard(leader, watch);
    // Its ends of the pipes stay open in it.
    drop(command);
    let output = collect(output).map_err(failed)?;
    let errors = collect(errors).map_err(failed)?;
    let exit = tokio::time::timeout(within, guard.0.ended()).await.ok();
    if exit.is_none() {
        guard.0.signal_group(Signal::KILL);
        guard.0.ended().await;
    }
    let arrived = async |bytes: oneshot::Receiver<Vec<u8>>| {
        let bytes = tokio::time::timeout(ARRIVES_WITHIN, bytes).await;
        bytes.ok().and_then(Result::ok).unwrap_or_default()
    };
    // Other processes of its group would hold the pipes open.
    guard.0.signal_group(Signal::KILL);
    let (stdout, stderr) = (arrived(output).await, arrived(errors).await);
    drop(guard);
    let processor = process::children_time().and_then(|after| after.checked_sub(before?));
    Ok(ProgramOutput { exit, processor, stdout, stderr })
}

/// Reads a pipe to its end on a thread of its own, and keeps the last part.
fn collect(mut pipe: PipeReader) -> io::Result<oneshot::Receiver<Vec<u8>>> {
    let (tell, bytes) = oneshot::channel();
    let thread = std::thread::Builder::new().name("program-output".to_owned());
    thread.spawn(move || {
        let mut kept = Vec::new();
        let mut chunk = vec![0; 64 << 10];
        loop {
            match pipe.read(&mut chunk) {
                Ok(0) => break,
                Ok(read) => kept.extend_from_slice(&chunk[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
            if kept.len() > 2 * KEPT {
                kept.drain(..kept.len() - KEPT);
            }
        }
        kept.drain(..kept.len().saturating_sub(KEPT));
        let _ = tell.send(kept);
    })?;
    Ok(bytes)
}

/// The kept part of a version, in characters.
const LONGEST: usize = 200;

/// Asks a program for its version: the line of its output that looks most like one. Errors: as
/// text, that it does not run, does not end in time, fails, or prints nothing.
pub async fn version(
    words: &[String],
    environment: &[(String, Value)],
    withheld: &[String],
    directory: Option<&Path>,
    within: Duration,
) -> Result<String, String> {
    let ran = run(words, environment, withheld, directory, within).await;
    let ran = ran.map_err(|error| error.to_string())?;
    let program = &words[0];
    let Some(exit) = ran.exit else {
        let seconds = within.as_secs_f64();
        return Err(format!("`{program}` did not print its version within {seconds} s"));
    };
    let line = line(&String::from_utf8_lossy(&ran.stdout))
        .or_else(|| line(&String::from_utf8_lossy(&ran.stderr)));
    match line {
        Some(line) if exit.is_success() => Ok(line),
        Some(line) => Err(format!("`{program}` printed no version: it ended with {exit}: {line}")),
        None => Err(format!("`{program}` printed no version: it ended with {exit}")),
    }
}

/// The last line that is a version or begins like one; or else the last line.
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

    fn words(script: &str) -> Vec<String> {
        ["sh", "-c", script].map(str::to_owned).to_vec()
    }

    #[tokio::test]
    async fn both_outputs_and_the_exit_are_kept() {
        let environment = [("A".to_owned(), Value::Plain("1".to_owned()))];
        let command = words("echo out $A; echo err >&2; exit 3");
        let ran = run(&command, &environment, &[], None, Duration::from_secs(60)).await;
        let ran = ran.unwrap();
        assert_eq!(ran.exit, Some(Exit::Code(3)));
        assert_eq!((&ran.stdout[..], &ran.stderr[..]), (&b"out 1\n"[..], &b"err\n"[..]));
        let busy = words("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done");
        let ran = run(&busy, &[], &[], None, Duration::from_secs(60)).await.unwrap();
        assert!(ran.processor.is_none_or(|time| time > Duration::ZERO), "{ran:?}");
        let none =
            run(&["no-such-program".to_owned()], &[], &[], None, Duration::from_secs(1)).await;
        let message = none.unwrap_err().to_string();
        assert!(message.contains("`no-such-program` does not run"), "{message}");
    }

    #[tokio::test]
    async fn ends_an_endless_program_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let command = words("sleep 600 & echo $! >pid; echo begun; wait");
        let within = Duration::from_millis(500);
        let ran = run(&command, &[], &[], Some(folder.path()), within).await.unwrap();
        assert_eq!(ran.exit, None);
        assert_eq!(ran.stdout, b"begun\n");
        let pid = std::fs::read_to_string(folder.path().join("pid")).unwrap();
        let pid = pid.trim().parse().unwrap();
        // Its outputs close a moment before the system counts it as ended.
        let lives = || {
            let process = crate::process::Table::default().process(pid);
            process.is_some_and(|process| !process.ended)
        };
        for _ in 0..2000 {
            if !lives() {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("process {pid} is still there");
    }

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

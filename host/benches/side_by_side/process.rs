//! Processes on cores of their own, and their costs.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

pub const RUNNER: &str = env!("CARGO_BIN_EXE_runner");
/// The core of clients, and the core of the engine.
pub const CORES: [&str; 2] = ["0", "1"];

/// A command pinned to cores, in the form of `taskset`: `0`, `0-3`.
pub fn pinned(cores: &str, program: impl AsRef<Path>) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", cores]).arg(program.as_ref());
    command
}

#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Processor time in the program.
    pub user: Duration,
    /// Processor time in the kernel.
    pub system: Duration,
    /// Most memory it had at a time, in bytes.
    pub peak: u64,
}

impl Cost {
    pub fn cpu(&self) -> Duration {
        self.user + self.system
    }
}

/// Runs a command to its end, which must be a success; returns its stdout and its cost.
pub fn run(command: Command) -> Result<(String, Cost)> {
    let command_line = format!("{command:?}");
    let (status, stdout, stderr, cost) = run_to_status(command)?;
    if !status.success() {
        bail!("{command_line} ended with {status}: {stdout}{stderr}");
    }
    Ok((stdout, cost))
}

/// The same, whatever the end: a run that is stopped or has only failures has a result too.
pub fn run_to_any_end(command: Command) -> Result<(String, Cost)> {
    let (_, stdout, _, cost) = run_to_status(command)?;
    Ok((stdout, cost))
}

fn run_to_status(mut command: Command) -> Result<(ExitStatus, String, String, Cost)> {
    let before = children_cpu()?;
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("{command:?}"))?;
    let status = format!("/proc/{}/status", child.id());
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let reader = std::thread::spawn(move || stdout.map(std::io::read_to_string));
    let errors = std::thread::spawn(move || stderr.map(std::io::read_to_string));
    let mut peak = 0;
    let ended = loop {
        if let Some(ended) = child.try_wait()? {
            break ended;
        }
        peak = peak.max(high_water(&status).unwrap_or(0));
        std::thread::sleep(Duration::from_millis(5));
    };
    let output = |thread: std::thread::JoinHandle<Option<std::io::Result<String>>>| {
        thread.join().ok().flatten().and_then(Result::ok).unwrap_or_default()
    };
    let (stdout, stderr) = (output(reader), output(errors));
    let [user, system] = children_cpu()?;
    let cost = Cost { user: user - before[0], system: system - before[1], peak };
    Ok((ended, stdout, stderr, cost))
}

fn high_water(status: &str) -> Option<u64> {
    let status = std::fs::read_to_string(status).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib << 10)
}

/// User and system time of all children that have ended.
fn children_cpu() -> Result<[Duration; 2]> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = |time: nix::sys::time::TimeVal| time.tv_sec() * 1_000_000 + time.tv_usec();
    let [user, system] = [usage.user_time(), usage.system_time()].map(micros);
    Ok([Duration::from_micros(u64::try_from(user)?), Duration::from_micros(u64::try_from(system)?)])
}

/// A mock engine on cores of its own; ends when dropped.
pub struct Mock {
    child: Child,
    pub address: String,
    truth: PathBuf,
}

impl Mock {
    /// Starts one on the second core with these flags.
    pub fn start(folder: &Path, flags: &[&str]) -> Result<Self> {
        let truth = folder.join("truth.jsonl");
        let mut command = pinned(CORES[1], RUNNER);
        command.args(["mock", "--port", "0"]).args(flags);
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("it has a stdout")?).read_line(&mut line)?;
        let address = line.trim().strip_prefix("listening on http://");
        Ok(Mock { address: address.context(line.clone())?.to_owned(), child, truth })
    }

    pub fn with_truth(folder: &Path, flags: &[&str]) -> Result<Self> {
        let truth = folder.join("truth.jsonl");
        let path = truth.to_str().context("a path in UTF-8")?;
        Mock::start(folder, &[flags, &["--truth", path]].concat())
    }

    /// Ends the process; returns its observations, a line of JSON for each request.
    pub fn end(mut self) -> Result<Vec<serde_json::Value>> {
        self.terminate();
        let text = std::fs::read_to_string(&self.truth)?;
        text.lines().map(|line| serde_json::from_str(line).map_err(Into::into)).collect()
    }

    fn terminate(&mut self) {
        // `taskset` becomes the program it starts, so the child is the mock.
        let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM);
        let _ = self.child.wait();
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.terminate();
    }
}

//! Fleets: several processes of the built binary make one run against the mock engine.
//!
//! - `processes`: the requests of all together, refused and lost processes, and interrupts.
//! - `shown`: the fleet's figures on rank 0 while the run goes on, devices, and notes on flags.
//! - `studies`: sweeps, searches and labs whose every run is a fleet's.
//! - `starters`: Open MPI, Slurm, the variables of Kubernetes, and clocks that are not alike.
//! - `clocks`: a clock that is set during a run, and ways that are not equally long.
//! - `networks`: machines of their own, as namespaces of the kernel's network, whose links break.

mod clocks;
mod networks;
mod processes;
mod shown;
mod starters;
mod studies;

use std::path::Path;
use std::process::{Command, Stdio};

use model::exchange::{Exchange, Phase};
use model::units::Nanos;
use runs::folder::RunFolder;
use tempfile::TempDir;

use crate::support::port;
use crate::support::process::{Mock, Process, inherit, run_patiently, runner, words};

/// Two hundred requests in five seconds.
const SCENARIO: &str = r#"
name = "together"
[dataset]
plugin = "datasets/random.wasm"
config = { input-len = 40, output-len = 11 }
[load]
requests = 200
arrival = "poisson"
rate = 40.0
warmup = 2
seed = 7
"#;

/// Flags that every process has on its command line.
const FLAGS: &str = "--backend vllm --no-progress";

/// Processes that share a token and a coordinator's port.
struct Fleet {
    folder: TempDir,
    mock: Mock,
    engine: String,
    /// The machine of rank 0, and its port.
    coordinator: String,
    port: u16,
    size: u32,
    token: String,
}

/// The way the engine answers.
const ENGINE: [&str; 4] = ["--ttft", "20ms", "--itl", "5ms"];

impl Fleet {
    fn new(size: u32) -> Self {
        Fleet::against(size, Mock::start(&ENGINE))
    }

    fn against(size: u32, mock: Mock) -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join("together.toml"), SCENARIO).unwrap();
        Fleet {
            folder,
            mock,
            engine: "127.0.0.1".to_owned(),
            coordinator: "127.0.0.1".to_owned(),
            port: port::free(),
            size,
            token: "0123456789abcdef".repeat(4),
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The process of a rank, in a folder of its own.
    fn command(&self, rank: u32, flags: &str) -> Command {
        self.process(rank, "fleet ../together.toml", flags)
    }

    /// The process of a rank that runs some command, in a folder of its own.
    fn process(&self, rank: u32, line: &str, flags: &str) -> Command {
        let folder = self.path().join(format!("rank{rank}"));
        std::fs::create_dir_all(&folder).unwrap();
        let mut command = runner();
        command
            .args(words(line))
            .args(words(FLAGS))
            .args(["--host", &self.engine, "--port", self.mock.port()])
            .args(words(flags))
            .current_dir(folder)
            .env("RUNNER_FLEET_TOKEN", &self.token)
            .env("RUNNER_FLEET_SIZE", self.size.to_string())
            .env("RUNNER_FLEET_RANK", rank.to_string())
            .env("RUNNER_FLEET_COORDINATOR", format!("{}:{}", self.coordinator, self.port));
        command
    }

    /// Starts all processes; returns them by rank.
    fn start(&self, flags: &str) -> Vec<Process> {
        (0..self.size).map(|rank| Process::start(&mut self.command(rank, flags))).collect()
    }

    /// Starts all processes, which must end well.
    #[track_caller]
    fn succeeds(&self, flags: &str) {
        for process in self.start(flags) {
            process.end().with_code(0);
        }
    }

    /// The only run folder on rank 0.
    fn run(&self) -> RunFolder {
        only_run(&self.path().join("rank0/runs"))
    }
}

/// The number of bytes of an agent's records that have come to rank 0.
fn records_of(fleet: &Fleet, rank: u32) -> u64 {
    let folders = std::fs::read_dir(fleet.path().join("rank0/runs"));
    let folders = folders.into_iter().flatten().flatten();
    let files = folders
        .map(|entry| entry.path().join(format!("agents/records-{rank:04}.jsonl.zst")))
        .filter_map(|path| path.metadata().ok());
    files.map(|file| file.len()).sum()
}

/// Returns the requests of a single process of the same scenario, behind these words.
fn alone(fleet: &Fleet, starter: &[&str]) -> Vec<Exchange> {
    let folder = fleet.path().join("alone");
    std::fs::create_dir(&folder).unwrap();
    let mut ours = runner();
    ours.args(["../together.toml", "--backend", "vllm", "--no-progress"])
        .args(["--host", &fleet.engine, "--port", fleet.mock.port()])
        .current_dir(&folder);
    let mut command = if starter.is_empty() { ours } else { behind(starter, &ours) };
    run_patiently(&mut command).with_code(0);
    measured(&only_run(&folder.join("runs")))
}

/// A command behind other words, in its folder and with its variables.
fn behind(words: &[&str], ours: &Command) -> Command {
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .arg(ours.get_program())
        .args(ours.get_args())
        .current_dir(ours.get_current_dir().unwrap());
    inherit(&mut command, ours);
    command.stdin(Stdio::null());
    command
}

fn only_run(runs: &Path) -> RunFolder {
    let entries = std::fs::read_dir(runs).unwrap();
    let mut folders: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("plan.json").exists())
        .collect();
    assert_eq!(folders.len(), 1, "{folders:?}");
    RunFolder::at(&folders.remove(0))
}

/// Measured exchanges in the order of their numbers.
fn measured(run: &RunFolder) -> Vec<Exchange> {
    let mut exchanges = run.exchanges().unwrap();
    exchanges.retain(|exchange| exchange.phase == Phase::Measure);
    exchanges.sort_by_key(|exchange| exchange.index);
    exchanges
}

/// The time when each was due, from when the first was.
fn due(exchanges: &[Exchange]) -> Vec<Nanos> {
    let first = exchanges[0].due;
    exchanges.iter().map(|exchange| exchange.due.since(first)).collect()
}

fn digests(exchanges: &[Exchange]) -> Vec<&str> {
    exchanges.iter().map(|exchange| &*exchange.sample.request_digest).collect()
}

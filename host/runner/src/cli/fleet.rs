//! `runner fleet`: several processes, mostly on several machines, make one run.
//!
//! What starts the processes exists already (Slurm, MPI, Kubernetes, ssh); crate `fleet` knows how
//! they find each other and agree. Rank 0 coordinates ([`coordinate`]), and is an agent ([`agent`])
//! like the others.

mod agent;
mod bundle;
mod coordinate;
mod gathered;
mod hosts;
mod manifest;
mod merge;
mod others;
mod own;
mod token;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::fleet::link::Timing;
use ::fleet::place::{self, Place};
use ::fleet::token::Token;
use model::duration::Span;
use model::hex;
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::artifacts::Artifacts;
use super::failure::{Exit, Failure};
use super::flags::Flags;
use super::interrupt::Interrupt;
use super::output::Output;
use super::watch::Watch;

/// Measure with many load machines at once, as one run
///
/// Start the same command on each machine with what you have: srun, mpirun, a Kubernetes Indexed
/// Job, or --hosts for ssh. The processes find each other by the variables that these set. Rank 0
/// coordinates: it sends the scenario's text and files to the others, waits until all are ready and
/// their clocks are known, and gives them one instant to begin at. Each sends its share of the
/// requests, with its share of the users or slots, at the instants at which a single machine would
/// send them. Records come together in one run folder on rank 0, with one summary.
///
/// Rank 0 alone shows progress, the dashboard and the page for Prometheus, of all processes
/// together. It alone reads devices, once for all: with `--device-metrics nvml` its own machine's,
/// usually not the engine's.
///
/// All processes need a secret in common: RUNNER_FLEET_TOKEN, or a file named by
/// RUNNER_FLEET_TOKEN_FILE, with at least 32 hexadecimal digits (`openssl rand -hex 32`). --hosts
/// makes one. `runner fleet token` makes of it what the others need and rank 0 alone keeps the
/// rest.
///
/// A process sends its keys and headers to targets that its own command line names, or its own copy
/// of the scenario, and opens no other file of its machine than these name: see --trust-rank-0.
#[derive(Clone, Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    override_usage = "runner fleet [OPTIONS] [SCENARIO]\n       runner fleet manifest [OPTIONS]\n       runner fleet merge RUN AGENT_FOLDER...",
    after_help = "Examples:\n  \
        srun --nodes 4 --ntasks-per-node 1 runner fleet chat.toml --base-url http://engine:8000\n  \
        mpirun -n 4 runner fleet chat.toml --base-url http://engine:8000\n  \
        runner fleet --hosts load1,load2,load3 chat.toml --base-url http://engine:8000\n  \
        runner fleet manifest --for kubernetes --size 4 --image registry/runner --scenario chat.toml\n\n\
        Without any of these: set RUNNER_FLEET_RANK, RUNNER_FLEET_SIZE and RUNNER_FLEET_COORDINATOR (the host of rank \
        0) for each process.\n\n\
        Exit codes: as of `runner run`; 5 also where an agent is missing or refused"
)]
pub struct Args {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    run: Run,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum What {
    Manifest(Box<manifest::Args>),
    Merge(merge::Args),
    Token(token::Args),
}

/// The run of a fleet.
#[derive(Clone, Debug, clap::Args)]
struct Run {
    /// A scenario: a file or a built-in one; only rank 0 needs to have it
    #[arg(value_name = "SCENARIO")]
    scenarios: Vec<String>,
    /// Start the other processes by ssh on these machines, and be rank 0 here
    #[arg(
        long,
        value_name = "HOST,HOST",
        env = "RUNNER_FLEET_HOSTS",
        value_delimiter = ',',
        help_heading = "Fleet"
    )]
    hosts: Vec<String>,
    /// The command that reaches a machine, for --hosts
    #[arg(
        long,
        value_name = "COMMAND",
        env = "RUNNER_SSH",
        default_value = "ssh -o BatchMode=yes",
        help_heading = "Fleet"
    )]
    ssh: String,
    /// Path of the program on those machines, for --hosts
    #[arg(
        long,
        value_name = "PATH",
        env = "RUNNER_REMOTE_RUNNER",
        default_value = "runner",
        help_heading = "Fleet"
    )]
    remote_runner: String,
    /// Time that rank 0 waits for the other processes
    #[arg(
        long,
        value_name = "TIME",
        env = "RUNNER_FLEET_WAIT",
        default_value = "5m",
        help_heading = "Fleet"
    )]
    fleet_wait: Span,
    /// Largest clock error at which the run may start
    #[arg(
        long,
        value_name = "TIME",
        env = "RUNNER_CLOCK_ERROR",
        default_value = "1ms",
        help_heading = "Fleet"
    )]
    clock_error: Span,
    /// Time that a machine may be out of reach before it counts as lost
    #[arg(
        long,
        value_name = "TIME",
        env = "RUNNER_FLEET_GRACE",
        default_value = "20s",
        help_heading = "Fleet"
    )]
    fleet_grace: Span,
    /// Only to say that a fleet has none
    #[arg(long, value_name = "N", hide = true)]
    repeat: Option<String>,
    /// Let rank 0's scenario choose which keys and files of this machine are used, and where they
    /// go
    ///
    /// Without it, this process refuses a scenario that wants a variable, a target for a key, or a
    /// file that neither its command line nor its own copy of the scenario names. --hosts gives it
    /// to what it starts, with the keys.
    #[arg(long, env = "RUNNER_TRUST_RANK_0", help_heading = "Fleet")]
    trust_rank_0: bool,
    #[command(flatten)]
    watch: Watch,
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    artifacts: Artifacts,
}

/// Runs the subcommand.
///
/// # Errors
/// If this process has no place in a fleet, or its run cannot begin.
pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    match &args.what {
        Some(What::Manifest(args)) => manifest::exec(args),
        Some(What::Merge(args)) => merge::exec(args),
        Some(What::Token(_)) => token::exec(),
        None => args.run.exec(),
    }
}

impl Run {
    fn exec(&self) -> Result<ExitCode, Failure> {
        self.artifacts.apply();
        if self.repeat.is_some() {
            let words = "a fleet makes one run: leave --repeat out, start the fleet once for each repeat, and give `runner report` the folders of the runs";
            return Err(Failure::new(Exit::CommandLine, words.to_owned()));
        }
        let interrupt = Interrupt::listen()?;
        let mut others = hosts::Started::default();
        let (place, token) = if self.hosts.is_empty() {
            (self.place()?, token()?)
        } else {
            let (started, place, token) = hosts::start(self)?;
            others = started;
            (place, token)
        };
        if place.rank == 0 && !token.coordinates() {
            let words = "rank 0 has an agents' token, which cannot coordinate: give it the run's token, from which `runner fleet token` made this one";
            return Err(Failure::new(Exit::CommandLine, words));
        }
        let code = match place.rank {
            0 => coordinate::exec(self, &place, &token, &interrupt),
            _ => agent::exec(self, place, token, &interrupt),
        };
        others.end();
        code
    }

    /// The place of this process, as what started it says.
    fn place(&self) -> Result<Place, Failure> {
        place::read(&std::env::vars().collect())
            .map_err(|wrong| Failure::several(Exit::CommandLine, wrong.0))
    }

    /// The time that things may take.
    fn timing(&self) -> Timing {
        Timing {
            grace: self.fleet_grace.0,
            ..Timing::default()
        }
    }

    /// The folder for what is only needed while the fleet works.
    fn scratch(&self) -> PathBuf {
        self.output.within.output_dir.join(".fleet")
    }
}

fn token() -> Result<Token, Failure> {
    let value = std::env::var("RUNNER_FLEET_TOKEN").ok();
    let file = std::env::var_os("RUNNER_FLEET_TOKEN_FILE").map(PathBuf::from);
    Token::read(value.as_deref(), file.as_deref())
        .map_err(|error| Failure::new(Exit::CommandLine, error.to_string()))
}

/// A runtime for connections. It has a thread of its own, because a process that is silent counts
/// as gone, whatever else it does.
struct Connections {
    handle: Handle,
    /// Ends the thread when it is dropped.
    _stop: oneshot::Sender<()>,
}

impl Connections {
    fn start() -> Result<Self, Failure> {
        let unable = |cause: std::io::Error| {
            Failure::new(Exit::Input, format!("cannot start a runtime: {cause}"))
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(unable)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        std::thread::Builder::new()
            .name("fleet".to_owned())
            .spawn(move || runtime.block_on(stopped).ok())
            .map_err(unable)?;
        Ok(Connections {
            handle,
            _stop: stop,
        })
    }

    /// Waits for something that needs these connections.
    fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.handle.block_on(future)
    }
}

/// The program that this is: its version, the platform, and the beginning of the executable's
/// digest, so that builds of one version that differ are told apart.
fn build() -> Result<String, Failure> {
    let unreadable = |cause: std::io::Error| {
        let words = format!("cannot read this program's own file: {cause}");
        Failure::new(Exit::Input, words)
    };
    let path = std::env::current_exe().map_err(unreadable)?;
    let mut digest = Sha256::new();
    std::io::copy(&mut File::open(path).map_err(unreadable)?, &mut digest).map_err(unreadable)?;
    Ok(format!(
        "{} {}-{} {}",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH,
        hex(&digest.finalize()[..6])
    ))
}

/// This machine's name.
fn host_name() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let name = kernel.ok().or_else(|| std::env::var("HOSTNAME").ok());
    let name = name.map(|name| name.trim().to_owned());
    name.filter(|name| !name.is_empty())
        .unwrap_or_else(|| "unnamed".to_owned())
}

/// Makes a folder that is this user's alone, with those above it.
fn make(folder: &Path) -> Result<(), Failure> {
    model::private::folder(folder).map_err(|cause| {
        let words = format!(
            "cannot make the folder `{}`: {cause}; give a writable one with --output-dir",
            folder.display()
        );
        Failure::new(Exit::Input, words)
    })
}

//! `runner fleet`: several processes, mostly on several machines, make one run.
//!
//! What starts the processes exists already (Slurm, MPI, Kubernetes, ssh); crate `fleet` knows how
//! they find each other and agree, and `fleet_run` makes one run of theirs. Rank 0 coordinates
//! ([`coordinator`]), and is an agent ([`agent`]) like the others.

mod agent;
mod arguments;
mod coordinator;
mod manifest;
mod merge;
mod token;

use std::process::ExitCode;

use ::fleet::link::{JoinError, Refusal};
use ::fleet::place::{self, NoPlace, Place};
use ::fleet::ssh::{Remote, StartError, Started};
use ::fleet::token::Token;
use fleet_run::FleetError;

use self::arguments::Run;
use super::failure::{Exit, Failure};
use super::interrupt::Interrupt;
use super::print::tell;

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

/// Runs the subcommand.
///
/// # Errors
/// If this process has no place in a fleet, or its run cannot begin.
pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    match &args.what {
        Some(What::Manifest(args)) => manifest::exec(args),
        Some(What::Merge(args)) => merge::exec(args),
        Some(What::Token(_)) => token::exec(),
        None => run(&args.run),
    }
}

/// Runs this process of a fleet.
fn run(args: &Run) -> Result<ExitCode, Failure> {
    args.artifacts.apply();
    if args.repeat.is_some() {
        let words = "a fleet makes one run: leave --repeat out, start the fleet once for each repeat, and give `runner report` the folders of the runs";
        return Err(Failure::command_line(words));
    }
    let interrupt = Interrupt::listen()?;
    let mut started = Started::default();
    let (place, token) = if args.hosts.is_empty() {
        (place()?, token::read()?)
    } else {
        let (by_ssh, place, token) = start(args)?;
        started = by_ssh;
        (place, token)
    };
    if place.rank == 0 && !token.coordinates() {
        let words = "rank 0 has an agents' token, which cannot coordinate: give it the run's token, from which `runner fleet token` made this one";
        return Err(Failure::command_line(words));
    }
    let code = match place.rank {
        0 => coordinator::exec(args, place, &token, &interrupt),
        _ => match agent::take_part(args, place, token, None, &interrupt) {
            Ok(()) if interrupt.came() => Ok(ExitCode::from(Exit::Interrupted as u8)),
            taken => taken.map(|()| ExitCode::SUCCESS),
        },
    };
    for host in started.end() {
        tell(format_args!("note: the connection to {host} does not end, and is cut"));
    }
    code
}

/// The place of this process, as what started it says.
fn place() -> Result<Place, Failure> {
    Ok(place::read(&std::env::vars().collect())?)
}

/// Starts the other processes by ssh.
fn start(args: &Run) -> Result<(Started, Place, Token), Failure> {
    if args.scenarios.iter().any(|name| name == "-") {
        return Err(Failure::command_line(
            "the scenario of a fleet cannot come from stdin with --hosts: name its file",
        ));
    }
    let remote = Remote {
        hosts: &args.hosts,
        ssh: &args.ssh,
        program: &args.remote_runner,
        command_line: &std::env::args().collect::<Vec<_>>(),
        variables: std::env::vars().collect(),
    };
    Ok(remote.start()?)
}

impl From<NoPlace> for Failure {
    fn from(error: NoPlace) -> Self {
        Failure::several(Exit::CommandLine, error.0)
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        let exit = match error {
            StartError::Place(error) => return error.into(),
            StartError::Token(_) | StartError::Host(_) => Exit::CommandLine,
            StartError::Random(_) | StartError::Command { .. } => Exit::Input,
        };
        Failure::new(exit, error.to_string())
    }
}

impl From<FleetError> for Failure {
    fn from(error: FleetError) -> Self {
        let several = |exit, refusal: Refusal| {
            let reasons = refusal.0.iter().map(ToString::to_string);
            Failure::several(exit, reasons.collect())
        };
        let exit = match error {
            FleetError::Refused(refusal) => return several(Exit::Target, refusal),
            FleetError::Interrupted(refusal) => return several(Exit::Interrupted, refusal),
            FleetError::NotAllowed(wrong) => return Failure::several(Exit::CommandLine, wrong),
            FleetError::Faults(faults) => return faults.into(),
            FleetError::Begin(error) => return error.into(),
            FleetError::Run(error) => return error.into(),
            FleetError::Join(ref why) | FleetError::NotHandedOver { ref why, .. } => match why {
                JoinError::Interrupted(_) => Exit::Interrupted,
                JoinError::Unable(_) => Exit::Input,
                _ => Exit::Target,
            },
            FleetError::Plan(_) | FleetError::Documents(_) | FleetError::NotSent(_) => Exit::Bug,
            _ => Exit::Input,
        };
        Failure::new(exit, error.to_string())
    }
}

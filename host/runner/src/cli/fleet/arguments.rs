//! The arguments of a process of a fleet.

use fleet_run::Settings;
use model::duration::Span;

use super::super::artifacts::Artifacts;
use super::super::flags::Flags;
use super::super::output::Output;
use super::super::watch::Watch;

/// The run of a fleet.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Run {
    /// A scenario: a file or a built-in one; only rank 0 needs to have it
    #[arg(value_name = "SCENARIO")]
    pub scenarios: Vec<String>,
    /// Start the other processes by ssh on these machines, and be rank 0 here
    #[arg(
        long,
        value_name = "HOST,HOST",
        env = "RUNNER_FLEET_HOSTS",
        value_delimiter = ',',
        help_heading = "Fleet"
    )]
    pub hosts: Vec<String>,
    /// The command that reaches a machine, for --hosts
    #[arg(
        long,
        value_name = "COMMAND",
        env = "RUNNER_SSH",
        default_value = "ssh -o BatchMode=yes",
        help_heading = "Fleet"
    )]
    pub ssh: String,
    /// Path of the program on those machines, for --hosts
    #[arg(
        long,
        value_name = "PATH",
        env = "RUNNER_REMOTE_RUNNER",
        default_value = "runner",
        help_heading = "Fleet"
    )]
    pub remote_runner: String,
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
    pub repeat: Option<String>,
    /// Let rank 0's scenario choose which keys and files of this machine are used, and where they
    /// go
    ///
    /// Without it, this process refuses a scenario that wants a variable, a target for a key, or a
    /// file that neither its command line nor its own copy of the scenario names. --hosts gives it
    /// to what it starts, with the keys.
    #[arg(long, env = "RUNNER_TRUST_RANK_0", help_heading = "Fleet")]
    pub trust_rank_0: bool,
    #[command(flatten)]
    pub watch: Watch,
    #[command(flatten)]
    pub flags: Flags,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub artifacts: Artifacts,
}

impl Run {
    /// The settings of the fleet.
    pub fn settings(&self) -> Settings {
        Settings {
            wait: self.fleet_wait.0,
            clock_error: self.clock_error.0,
            grace: self.fleet_grace.0,
            scratch: self.output.within.output_dir.join(".fleet"),
        }
    }
}

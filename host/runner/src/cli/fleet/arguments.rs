//! The arguments of a process of a fleet.

use ::fleet::run::Settings;
use model::duration::Span;

use super::super::artifacts::Artifacts;
use super::super::flags::Flags;
use super::super::output::Output;
use super::super::watch::Watch;

/// The run of a fleet.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Fleet")]
pub(super) struct Run {
    /// A scenario: a file or a built-in one; every process reads its own
    #[arg(value_name = "SCENARIO", help_heading = None)]
    pub scenarios: Vec<String>,
    /// Time that rank 0 waits for the other processes
    #[arg(long, value_name = "TIME", env = "RUNNER_FLEET_WAIT", default_value = "5m")]
    fleet_wait: Span,
    /// Largest clock error at which the run may start
    #[arg(long, value_name = "TIME", env = "RUNNER_CLOCK_ERROR", default_value = "1ms")]
    clock_error: Span,
    /// Time that a machine may be out of reach before it counts as lost
    #[arg(long, value_name = "TIME", env = "RUNNER_FLEET_GRACE", default_value = "20s")]
    fleet_grace: Span,
    /// Accepted to refuse it: a fleet has no repeats
    #[arg(long, value_name = "N", hide = true)]
    pub repeat: Option<String>,
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

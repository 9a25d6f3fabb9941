//! The machines that measure the runs of a study: this one, or a fleet.
//!
//! With `--fleet`, every process of the fleet has the same command line. Rank 0 decides on each
//! run, and its order describes the run to the other processes.

use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;

use super::failure::Failure;
#[cfg(feature = "studies")]
use super::fleet::{Fleet, Terms, measured as measured_by_fleet};
use super::interrupt::Interrupt;
use super::loads;
use super::measure::{Place, measured};
use super::watch::Displays;
use session::{MeasuredRun, Source, resolve};

/// Measuring the runs of a study with a fleet.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Fleet")]
pub(super) struct OnFleet {
    /// Measure every run with the processes of a fleet, which all have this command line
    ///
    /// Slurm, MPI, Kubernetes or a shell loop start the processes, as for `runner fleet`.
    #[arg(long, env = "RUNNER_ON_FLEET")]
    fleet: bool,
    #[cfg(feature = "studies")]
    #[command(flatten)]
    terms: Terms,
}

/// The machines that measure.
pub(super) enum Machines {
    One,
    #[cfg(feature = "studies")]
    Fleet(Box<Fleet>),
}

impl OnFleet {
    /// The machines; `output` is the folder for results.
    pub(super) fn machines(&self, output: &Path) -> Result<Machines, Failure> {
        if !self.fleet {
            return Ok(Machines::One);
        }
        #[cfg(feature = "studies")]
        return Ok(Machines::Fleet(Box::new(Fleet::read(&self.terms, output)?)));
        #[cfg(not(feature = "studies"))]
        {
            let _ = output;
            Err(Failure::not_built("`--fleet`"))
        }
    }
}

#[cfg_attr(
    not(feature = "studies"),
    allow(unused_variables, reason = "one machine needs neither orders nor their scenarios")
)]
impl Machines {
    /// Conducts a study; if the rank is not 0, takes part in its runs by the scenarios of `source`.
    pub(super) fn conduct(
        &self,
        source: impl Fn(&str) -> Result<Source, Failure>,
        interrupt: &Interrupt,
        study: impl FnOnce() -> Result<ExitCode, Failure>,
    ) -> Result<ExitCode, Failure> {
        match self {
            Machines::One => study(),
            #[cfg(feature = "studies")]
            Machines::Fleet(fleet) if fleet.is_agent() => fleet.serve(source, interrupt),
            #[cfg(feature = "studies")]
            Machines::Fleet(fleet) => {
                let ended = study();
                fleet.dismiss(interrupt);
                ended
            }
        }
    }

    /// True if processes of the fleet were missing, so that further runs have no sense.
    #[cfg(feature = "studies")]
    pub(super) fn are_incomplete(&self) -> bool {
        match self {
            Machines::One => false,
            Machines::Fleet(fleet) => fleet.is_incomplete(),
        }
    }

    /// Measures one run. `order` describes it to the other processes of a fleet.
    pub(super) fn measured(
        &self,
        source: &Source,
        order: &impl Serialize,
        place: Place<'_>,
        displays: &Displays,
        interrupt: &Interrupt,
    ) -> Result<MeasuredRun, Failure> {
        match self {
            Machines::One => measured(resolve(source)?, place, displays, interrupt),
            #[cfg(feature = "studies")]
            Machines::Fleet(fleet) => {
                let order = serde_json::to_string(order).map_err(Failure::cannot("write JSON"))?;
                measured_by_fleet(fleet, source, Some(order), place, displays, interrupt)
            }
        }
    }
}

/// A scenario at the load of an order.
pub(super) fn ordered(source: &Source, order: &str) -> Result<Source, Failure> {
    let amount = serde_json::from_str(order).map_err(Failure::cannot("read rank 0's order"))?;
    Ok(loads::with(source, amount))
}

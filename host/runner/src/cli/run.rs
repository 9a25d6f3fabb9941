//! `runner run`: resolves every scenario, then measures one after the other.

pub(super) mod accuracy;

use std::process::ExitCode;

use super::artifacts::Artifacts;
use super::failure::Failure;
use super::flags::Flags;
use super::interrupt::Interrupt;
use super::needs::limits;
use super::output::Output;
use super::repeat::{self, Repetition};
use super::round::measure_all;
use super::sources::{described, sources};
use super::versus;
use super::watch::Watch;
use compare::until;
use session::paired::Servers;
use session::resolve;

/// Measure an engine, described by scenarios, flags, or both (flags override)
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Scenario files or folders, built-in scenarios such as scenarios/lmdeploy, or `-` for stdin
    #[arg(value_name = "SCENARIO")]
    scenarios: Vec<String>,
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    output: Output,
    /// Measure every scenario N times, alternating, each time with the next seed, and show the
    /// spread of the repeats [default: 1; with --until 20]
    #[arg(long, value_name = "N", env = "RUNNER_REPEAT", value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = "Load")]
    repeat: Option<u32>,
    /// Send the same requests in each repeat, for runs to compare; the spread then leaves out new
    /// requests
    #[arg(long, env = "RUNNER_SAME_REQUESTS", help_heading = "Load")]
    same_requests: bool,
    /// Repeat until the mean of this figure is certain enough, such as 'ttft.p99 ±5%' (or +-5%);
    /// repeatable
    ///
    /// Measures at least 3 times, and at most --repeat times. The 95 % interval over the runs holds
    /// at every look, so stopping once it is narrow enough is valid. Several scenarios end
    /// together.
    #[arg(long, value_name = "FIGURE ±BOUND", env = "RUNNER_UNTIL", value_delimiter = ',')]
    #[arg(help_heading = "Load")]
    until: Vec<String>,
    /// Compare with this server by the same requests; repeatable
    ///
    /// Sides take turns, or are measured together (--paired-order). A threshold such as
    /// 'difference.ttft.p50 <= 2ms' limits a difference.
    #[arg(long, value_name = "NAME=URL", env = "RUNNER_VERSUS", help_heading = "Target")]
    #[arg(conflicts_with_all = ["repeat", "same_requests", "until", "baseline", "preset"])]
    versus: Vec<String>,
    /// Follow the rules of a published benchmark: mlperf-accuracy judges the whole dataset, then
    /// measures
    #[arg(long, value_name = "NAME", env = "RUNNER_PRESET")]
    #[arg(conflicts_with_all = ["repeat", "same_requests", "until", "baseline"])]
    #[arg(help_heading = "Load")]
    preset: Option<String>,
    #[command(flatten)]
    watch: Watch,
    #[command(flatten)]
    artifacts: Artifacts,
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let otherwise = "; `runner demo` needs neither, and `runner --help` lists all flags";
    described(&args.scenarios, &args.flags, "run", otherwise)?;
    args.artifacts.apply();
    // Before files are read and plugins compiled, which may take long.
    let interrupt = Interrupt::listen()?;
    let sources = || sources(&args.scenarios, &args.flags);
    if let Some(preset) = &args.preset {
        accuracy::known(preset)?;
        return accuracy::exec(sources()?, &args.output, &args.watch, &interrupt);
    }
    let repeats = args.repeats()?;
    if repeats > 1 {
        let (until, sources) = (limits("--until", &args.until)?, sources()?);
        let plan = Repetition { until: &until, of: repeats, same_requests: args.same_requests };
        return repeat::exec(sources, plan, &args.output, &args.watch, &interrupt);
    }
    if args.same_requests {
        let message = "--same-requests: one run has no repeats; add --repeat N or --until";
        return Err(Failure::command_line(message));
    }
    let further = versus::further(&args.versus);
    let (mut runs, mut pairings) = (Vec::new(), Vec::new());
    for source in sources()? {
        match versus::servers(source, &further)? {
            Servers::One(source) => runs.push(resolve(&source)?),
            Servers::Several(pairing) => pairings.push(pairing),
        }
    }
    let mut code = ExitCode::SUCCESS;
    if !runs.is_empty() {
        code = measure_all(runs, &args.output, &args.watch, &interrupt)?;
    }
    for pairing in pairings {
        let own = versus::exec(&pairing, &args.output, &args.watch, &interrupt)?;
        if code == ExitCode::SUCCESS {
            code = own;
        }
    }
    Ok(code)
}

impl Args {
    fn repeats(&self) -> Result<u32, Failure> {
        if self.until.is_empty() {
            return Ok(self.repeat.unwrap_or(1));
        }
        let most = self.repeat.unwrap_or(until::MOST);
        if most < until::FEWEST {
            return Err(Failure::command_line(format!(
                "--repeat {most}: --until takes at least {} runs, because fewer do not show their spread; give a larger number, or leave --repeat out for at most {}",
                until::FEWEST,
                until::MOST
            )));
        }
        Ok(most)
    }
}

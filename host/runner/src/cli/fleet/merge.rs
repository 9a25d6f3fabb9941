//! `runner fleet merge`: adds a lost agent's records on its own disk to the run.

use std::path::PathBuf;
use std::process::ExitCode;

use ::fleet::run::merge::{MergedAgent, merge};
use report::text;

use super::super::failure::Failure;
use super::super::print::{json, tell, write_stdout};

/// Add the records of lost agents to a fleet's run
///
/// An agent that lost rank 0 keeps its records on its own machine, and prints the folder. Copy that
/// folder here: this command adds its records to the run, by the run's clock, and computes the
/// summary and the verdict again. The folder must be of the same run, and of a lost rank. Added
/// answers keep the server's token counts; to judge them with scorers, use `runner score`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        scp -r load2:runs/.fleet/rank-1-4711 .\n  \
        runner fleet merge runs/20260102-030405-chat rank-1-4711\n\n\
        Exit codes: 0 done, 3 a folder cannot be read or is of another run")]
pub(super) struct Args {
    /// The run's folder, on rank 0
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// The folder that a lost agent named, or the run's folder in it
    #[arg(value_name = "AGENT_FOLDER", required = true)]
    agents: Vec<PathBuf>,
    /// Print the result as JSON instead of text
    #[arg(long, env = "RUNNER_JSON")]
    json: bool,
}

pub(super) fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let (folder, summary) = merge(&args.run, &args.agents, taken)?;
    write_stdout(&if args.json { json(&summary)? } else { text::short(&summary) })?;
    tell(format_args!("records: {}", folder.path().display()));
    Ok(ExitCode::SUCCESS)
}

fn taken(agent: &MergedAgent) {
    let MergedAgent { name, came, known, .. } = agent;
    let left = if agent.is_lost {
        "it stopped before its last request, and still counts as lost"
    } else {
        "its records are complete"
    };
    tell(format_args!("{name}: {came} further records, {known} were there; {left}"));
}

//! `runner explain`: takes the differences of two results apart.

use std::process::ExitCode;

use super::compare::sides::account;
use super::failure::Failure;
use super::print::{finish, json};
use compare::explain::{explain, text};

/// Explain why two results of one engine differ
///
/// Splits each difference by its cause: different definitions under one name, the workload, the
/// schedule, failures, and the client itself. The remainder is the engine, or unexplained. A
/// definition is computed again from the records of a run of this program, so one of the two
/// results is best such a run. For other tools' results, the identity E2E = TTFT + TPOT * (n - 1)
/// is used as far as their figures allow. A part that cannot be separated is described, and never
/// estimated.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner explain runs/20260102-030405-chat vllm.json      a run, and a result of vllm bench serve\n  \
        runner explain runs/a runs/b                            two runs\n  \
        runner explain guidellm.json#2 summary_lifecycle_metrics.json --format json\n\n\
        Exit codes: 0 done, 3 a result cannot be read")]
pub struct Args {
    /// The result to explain the other from: a run's folder, a file that runner audit reads (#2
    /// picks the second result in it), or published:NAME
    #[arg(value_name = "A")]
    a: String,
    /// The result to explain, named in the same way
    #[arg(value_name = "B")]
    b: String,
    /// Output format
    #[arg(long, env = "RUNNER_EXPLAIN_FORMAT", value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Text to read
    Text,
    /// JSON that follows `runner schema explain`
    Json,
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let explained = explain(&account(&args.a)?, &account(&args.b)?);
    finish(&match args.format {
        Format::Text => text(&explained),
        Format::Json => json(&explained)?,
    })
}

//! `runner verify`: runs a benchmark client over cases whose truth is known, and says which of its
//! figures are true.
//!
//! Reads profiles and cases, and shows the card. `conduct` runs a client; what a figure means and
//! whether it is true is up to the crate `verify`.

mod conduct;
pub(super) mod files;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueHint;

use super::failure::{Exit, Failure};
use super::print::{json, tell, write_stdout};
use conduct::Conductor;
use model::duration::Span;
use verify::{Card, Case, Outcome, Verdict};

/// Check a benchmark client's figures against a server whose every byte is known
///
/// Runs the client over cases: loads, streams and faults of the mock engine, which logs what it
/// sent and when. Each figure that the client states is held against its true value by the
/// definition that the client claims, and then against every other definition: the card says which
/// figures are exact, which follow another definition than they claim, and which follow none.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner verify runner                            this program itself\n  \
        runner verify vllm --tokenizer FOLDER           vllm bench serve, in every case\n  \
        runner verify my-client.toml --case 'stream-*'  a client of your own, in some\n  \
        runner verify --list                            the cases and the clients that ship\n\n\
        runner guide verify says how a profile is written.\n\n\
        Exit codes: 0 done, 3 a profile or a case is wrong, 7 a figure is not what it claims (with --strict)")]
pub struct Args {
    /// Client: the name of a profile that ships, or a profile's file
    #[arg(value_name = "CLIENT", required_unless_present = "list", value_hint = ValueHint::FilePath)]
    client: Option<String>,
    /// List the cases and the clients that ship
    #[arg(long, env = "RUNNER_VERIFY_LIST")]
    list: bool,
    /// Case to run, by name, with * at its end for all that begin so; repeatable
    #[arg(
        long = "case",
        value_name = "CASE",
        env = "RUNNER_VERIFY_CASE",
        value_delimiter = ','
    )]
    case: Vec<String>,
    /// Folder with cases of your own, instead of those that ship
    #[arg(long, value_name = "FOLDER", env = "RUNNER_VERIFY_CASES", value_hint = ValueHint::DirPath)]
    cases: Option<PathBuf>,
    /// Program to run instead of the first word of the profile's command
    #[arg(long, value_name = "PATH", env = "RUNNER_VERIFY_PROGRAM", value_hint = ValueHint::ExecutablePath)]
    program: Option<PathBuf>,
    /// Folder of the tokenizer that the client uses and that counts [default: a token is a word]
    #[arg(long, value_name = "FOLDER", env = "RUNNER_VERIFY_TOKENIZER", value_hint = ValueHint::DirPath)]
    tokenizer: Option<PathBuf>,
    /// Time that one run of the client may take
    #[arg(
        long,
        value_name = "TIME",
        env = "RUNNER_VERIFY_TIMEOUT",
        default_value = "2m"
    )]
    timeout: Span,
    /// Most runs of a case of which only times are off, because a busy machine moves them too
    #[arg(long, value_name = "N", env = "RUNNER_VERIFY_TRIES", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    tries: u32,
    /// Least tolerance of times, where a case's own is less: for a busy machine
    #[arg(
        long,
        value_name = "TIME",
        env = "RUNNER_VERIFY_TOLERANCE",
        default_value = "0ms"
    )]
    tolerance: Span,
    /// Folder that keeps each run's log and what the client left
    #[arg(long, value_name = "FOLDER", env = "RUNNER_VERIFY_KEEP", value_hint = ValueHint::DirPath)]
    keep: Option<PathBuf>,
    /// Output format
    #[arg(long, env = "RUNNER_VERIFY_FORMAT", value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Exit with 7 if a figure is not what it claims, or a case fails
    #[arg(long, env = "RUNNER_VERIFY_STRICT")]
    strict: bool,
}

/// The output formats of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Text to read
    Text,
    /// JSON that follows `runner schema verify`
    Json,
}

/// Runs the subcommand.
///
/// # Errors
/// If a profile or a case is wrong, or the client cannot be run at all.
pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let cases = files::cases(args.cases.as_deref())?;
    if args.list {
        write_stdout(&files::list(&cases)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let client = args.client.as_deref().unwrap_or_default();
    let profile = files::profile(client)?;
    let mut cases = files::chosen(cases, &args.case)?;
    for case in &mut cases {
        case.tolerance.time = case.tolerance.time.max(args.tolerance);
    }
    let conductor = Conductor::new(
        profile,
        args.program.as_deref(),
        args.tokenizer.as_deref(),
        args.keep.as_deref(),
        args.timeout.0.max(Duration::from_secs(1)),
        args.tries,
    )?;
    let version = conductor.version()?;
    let mut judged = Vec::new();
    for case in &cases {
        let card = conductor.run(case)?;
        tell(format_args!("{}", progress(case, &card.outcome)));
        judged.push(card);
    }
    let runner = env!("CARGO_PKG_VERSION").to_owned();
    let client = conductor.client(version);
    let card = Card::new(runner, client, conductor.tokenizer_name(), judged);
    let shown = match args.format {
        Format::Text => verify::text::text(&card),
        Format::Json => json(&card)?,
    };
    write_stdout(&shown)?;
    match args.strict && !card.totals.is_clean() {
        true => Ok(ExitCode::from(Exit::Invalid as u8)),
        false => Ok(ExitCode::SUCCESS),
    }
}

fn progress(case: &Case, outcome: &Outcome) -> String {
    let outcome = match outcome {
        Outcome::Judged(Verdict::Exact) => "exact".to_owned(),
        Outcome::Judged(verdict) => verdict.label().to_owned(),
        Outcome::Failed(why) => format!("failed: {why}"),
        Outcome::NotApplicable(_) => "not applicable".to_owned(),
    };
    format!("{}: {outcome}", case.name)
}

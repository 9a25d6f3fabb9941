//! `runner verify`: runs a benchmark client over cases whose truth is known, and judges each of its
//! figures.
//!
//! Reads profiles and cases, and shows the card. `conduct` runs a client; the crate `verify` owns
//! the meaning of a figure and its verdict.

mod conduct;
pub(super) mod files;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueHint;
use jiff::Timestamp;

use super::destination::Destination;
use super::failure::{Exit, Failure};
use super::print::{finish, json, tell};
use conduct::Conductor;
use model::duration::Span;
use report::verified;
use runs::environment::Environment;
use verify::ceiling::Level;
use verify::{Card, Case, Outcome, Profile};

/// Check a benchmark client's figures against a server with known replies
///
/// Runs the client over cases: loads, streams and faults of the mock engine, which logs its replies
/// and their times. Each figure of the client is compared with its true value by the client's own
/// definition, and then by every other definition. The card shows which figures are exact, which
/// follow another definition than they claim, and which follow none.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner verify runner                            this program itself\n  \
        runner verify vllm --tokenizer FOLDER           vllm bench serve, in every case\n  \
        runner verify my-client.toml --case 'stream-*'  a client of your own, in some cases\n  \
        runner verify guidellm --ceiling -o guidellm.json --format json\n  \
        runner verify guidellm.json vllm.json --format html -o clients.html\n  \
        runner verify --list                            the cases and the clients that ship\n\n\
        runner guide verify explains profiles.\n\n\
        Exit codes: 0 done, 3 a profile or a case is wrong, 7 a figure does not match its claim (with --strict)")]
pub struct Args {
    /// Client: the name of a profile that ships, a profile's file, or a card to show again
    ///
    /// Several are shown beside each other. A card is a file of --format json, CARD.json.
    #[arg(value_name = "CLIENT", required_unless_present = "list", value_hint = ValueHint::FilePath)]
    clients: Vec<String>,
    /// List the cases and the clients that ship
    #[arg(long, env = "RUNNER_VERIFY_LIST")]
    list: bool,
    /// Case to run, by name, with * at its end for any rest; repeatable
    #[arg(long = "case", value_name = "CASE", env = "RUNNER_VERIFY_CASE", value_delimiter = ',')]
    case: Vec<String>,
    /// Folder with cases of your own, instead of the shipped ones
    #[arg(long, value_name = "FOLDER", env = "RUNNER_VERIFY_CASES", value_hint = ValueHint::DirPath)]
    cases: Option<PathBuf>,
    /// Program to run instead of the first word of the profile's command
    #[arg(long, value_name = "PATH", env = "RUNNER_VERIFY_PROGRAM", value_hint = ValueHint::ExecutablePath)]
    program: Option<PathBuf>,
    /// Folder of the tokenizer that the client uses and that counts [default: a token is a word]
    #[arg(long, value_name = "FOLDER", env = "RUNNER_VERIFY_TOKENIZER", value_hint = ValueHint::DirPath)]
    tokenizer: Option<PathBuf>,
    /// Time that one run of the client may take
    #[arg(long, value_name = "TIME", env = "RUNNER_VERIFY_TIMEOUT", default_value = "2m")]
    timeout: Span,
    /// Most runs of a case that fails only in its times, since a busy machine moves them too
    #[arg(long, value_name = "N", env = "RUNNER_VERIFY_TRIES", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    tries: u32,
    /// Least tolerance of times, where a case's own is less: for a busy machine
    #[arg(long, value_name = "TIME", env = "RUNNER_VERIFY_TOLERANCE", default_value = "0ms")]
    tolerance: Span,
    /// Folder for each run's log and the client's files
    #[arg(long, value_name = "FOLDER", env = "RUNNER_VERIFY_KEEP", value_hint = ValueHint::DirPath)]
    keep: Option<PathBuf>,
    /// Also find the load up to which the client's times are true, and its processor time for a
    /// token
    ///
    /// Streams of a token every 20 ms: 8 of them, then more, up to 2048. It takes about a minute.
    #[arg(long, env = "RUNNER_VERIFY_CEILING")]
    ceiling: bool,
    /// Output format
    #[arg(long, env = "RUNNER_VERIFY_FORMAT", value_enum, default_value_t = Format::Text)]
    format: Format,
    /// File to write, - for stdout
    #[arg(long, short, value_name = "FILE", env = "RUNNER_VERIFY_OUTPUT", default_value = "-", value_hint = ValueHint::FilePath)]
    output: PathBuf,
    /// Exit with 7 if a figure does not match its claim, or a case fails
    #[arg(long, env = "RUNNER_VERIFY_STRICT")]
    strict: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Text to read
    Text,
    /// JSON of one client that follows `runner schema verify`
    Json,
    /// Tables for a Markdown page
    Markdown,
    /// One HTML file that compares clients
    Html,
    /// An SVG badge of one client
    Badge,
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let cases = files::cases(args.cases.as_deref())?;
    if args.list {
        return finish(&files::list(&cases)?);
    }
    let one = matches!(args.format, Format::Json | Format::Badge);
    if one && args.clients.len() > 1 {
        return Err(Failure::command_line(
            "--format json and --format badge show one client; give one, or choose another format",
        ));
    }
    let mut cases = files::chosen(cases, &args.case)?;
    for case in &mut cases {
        case.tolerance.time = case.tolerance.time.max(args.tolerance);
    }
    let clients = subjects(&args.clients)?;
    let mut out = Destination::open(&args.output)?;
    let mut cards = Vec::new();
    let mut ended = None;
    for client in clients {
        let judged = match client {
            Subject::Card(card) => Ok((*card, None)),
            Subject::Client(profile) => judged(args, *profile, &cases),
        };
        match judged {
            Ok((card, none)) => {
                cards.push(card);
                ended = none;
            }
            // The cards before it are shown.
            Err(failure) if !cards.is_empty() => ended = Some(failure),
            Err(failure) => return Err(failure),
        }
        if ended.is_some() {
            break;
        }
    }
    match args.format {
        Format::Text => {
            let texts: Vec<String> = cards.iter().map(verify::text::text).collect();
            out.text(&texts.join("\n"))?
        }
        Format::Json => out.json(&json(&cards[0])?)?,
        Format::Markdown => out.text(&verified::page(&cards).markdown())?,
        Format::Html => out.bytes(verified::page(&cards).html().as_bytes())?,
        Format::Badge => out.bytes(verified::badge(&cards[0]).as_bytes())?,
    };
    out.finish()?;
    if let Some(failure) = ended {
        return Err(failure);
    }
    if args.strict && !cards.iter().all(|card| card.totals.is_clean()) {
        Ok(Exit::Invalid.into())
    } else {
        Ok(ExitCode::SUCCESS)
    }
}

enum Subject {
    Client(Box<Profile>),
    /// The card of an earlier run.
    Card(Box<Card>),
}

/// Reads the requested clients, before any of them runs.
fn subjects(clients: &[String]) -> Result<Vec<Subject>, Failure> {
    let read = clients.iter().map(|client| {
        if client.ends_with(".json") {
            files::card(client).map(|card| Subject::Card(Box::new(card)))
        } else {
            files::profile(client).map(|profile| Subject::Client(Box::new(profile)))
        }
    });
    read.collect()
}

/// Runs a client over the cases. An interrupt is returned beside the card so far.
fn judged(
    args: &Args,
    profile: Profile,
    cases: &[Case],
) -> Result<(Card, Option<Failure>), Failure> {
    let keep = args.keep.as_ref().map(|keep| match args.clients.len() {
        1 => keep.clone(),
        _ => keep.join(&profile.name),
    });
    let conductor = Conductor::new(
        profile,
        args.program.as_deref(),
        args.tokenizer.as_deref(),
        keep.as_deref(),
        args.timeout.0.max(Duration::from_secs(1)),
        args.tries,
    )?;
    let version = conductor.version()?;
    let card = |cases, ceiling| {
        let runner = env!("CARGO_PKG_VERSION").to_owned();
        let client = conductor.client(version.clone());
        Card {
            date: Some(Timestamp::now().strftime("%Y-%m-%d").to_string()),
            machine: Some(machine()),
            ceiling,
            ..Card::new(runner, client, conductor.tokenizer_name.clone(), cases)
        }
    };
    let mut judged = Vec::new();
    for case in cases {
        match conductor.run(case) {
            Ok(card) => {
                tell(format_args!("{}", progress(case, &card.outcome)));
                judged.push(card);
            }
            Err(failure) if failure.exit == Exit::Interrupted && !judged.is_empty() => {
                let message =
                    format!("interrupted; the card has {} of {} cases", judged.len(), cases.len());
                let failure = Failure::new(Exit::Interrupted, message);
                return Ok((card(judged, None), Some(failure)));
            }
            Err(failure) => return Err(failure),
        }
    }
    if !args.ceiling {
        return Ok((card(judged, None), None));
    }
    let report = |level: &Level| {
        let off = level.worst().map(|off| format!("off by {:.1} %", off * 100.0));
        let result = level.failed.clone().or(off).unwrap_or_default();
        tell(format_args!("{} streams: {result}", level.streams));
    };
    match conductor.ceiling(report) {
        Ok(ceiling) => Ok((card(judged, Some(ceiling)), None)),
        Err(failure) if failure.exit == Exit::Interrupted => {
            Ok((card(judged, None), Some(failure)))
        }
        Err(failure) => Err(failure),
    }
}

fn machine() -> String {
    let about = Environment::look([], None, "");
    let cores = about.cores.map(|cores| format!("{cores} cores"));
    let parts = [about.cpu, cores, Some(about.platform)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn progress(case: &Case, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Failed(why) => format!("{}: failed: {why}", case.name),
        _ => format!("{}: {}", case.name, outcome.label()),
    }
}

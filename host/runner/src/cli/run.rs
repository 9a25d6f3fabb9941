//! `runner run`: resolves every scenario, then measures one after the other.

mod conclude;

use std::fs::File;
use std::io::Write;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::builder::FalseyValueParser;

use self::conclude::{Judging, conclude};
use super::artifacts::Artifacts;
use super::failure::{Exit, Failure, tell};
use super::flags::Flags;
use super::interrupt::Interrupt;
use super::repeat;
use super::sources::sources;
use super::watch::{Watch, Watching};
use load::pace::Signal;
use load::transport::Dial;
use load::transport::dial::DialError;
use model::clock::Clock;
use model::timings::Stage;
use plugins::PluginError;
use report::environment::Environment;
use report::folder::{self, RunFolder, Status};
use report::repeat::Repeat;
use report::{json, text};
use result::summary::{RunFacts, Summary};
use scenario::plan::Plan;
use session::assess::assess_read;
use session::preflight;
use session::resolve::{Resolved, resolve};
use session::run::{self, Control, Live};

/// How often to print that a server is not ready yet.
const TELL_AGAIN: Duration = Duration::from_secs(10);
/// Descriptors that are not for connections.
const OTHER_DESCRIPTORS: u64 = 128;

/// Measure an engine, described by scenarios, flags, or both (flags override)
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Scenario files or folders, built-in scenarios such as scenarios/lmdeploy, or `-` for stdin
    #[arg(value_name = "SCENARIO")]
    pub scenarios: Vec<String>,
    #[command(flatten)]
    pub(super) flags: Flags,
    #[command(flatten)]
    pub(super) output: Output,
    /// Measure every scenario N times, alternating, and show how far the repeats differ
    #[arg(long, value_name = "N", env = "RUNNER_REPEAT", default_value_t = NonZeroU32::MIN, help_heading = "Load")]
    repeat: NonZeroU32,
    #[command(flatten)]
    pub(super) watch: Watch,
    #[command(flatten)]
    artifacts: Artifacts,
}

/// Where results go.
#[derive(Clone, Debug, clap::Args)]
pub struct Output {
    /// Folder in which each run creates its own folder
    #[arg(
        long,
        value_name = "FOLDER",
        env = "RUNNER_OUTPUT_DIR",
        default_value = "runs",
        help_heading = "Result"
    )]
    output_dir: PathBuf,
    /// Append each summary to this file, one line of JSON each
    #[arg(
        long,
        value_name = "FILE",
        env = "RUNNER_OUTPUT_FILE",
        help_heading = "Result"
    )]
    output_file: Option<PathBuf>,
    /// Print the summary as JSON instead of text
    #[arg(long, env = "RUNNER_JSON", value_parser = FalseyValueParser::new(), help_heading = "Result")]
    pub(super) json: bool,
    /// Exit with 7 if the measurement is invalid
    #[arg(long, env = "RUNNER_STRICT", value_parser = FalseyValueParser::new(), help_heading = "Result")]
    strict: bool,
}

/// Runs the subcommand.
///
/// # Errors
/// If a run cannot begin, or ends early.
pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    if args.scenarios.is_empty() && !args.flags.describe_a_run() {
        return Err(Failure::new(
            Exit::CommandLine,
            "nothing to run: name a scenario (such as scenarios/quickstart.toml), or describe the run with flags (--backend and --dataset-name); `runner demo` needs neither, and `runner --help` lists all flags",
        ));
    }
    args.artifacts.apply();
    if args.repeat > NonZeroU32::MIN {
        return repeat::exec(args, args.repeat.get());
    }
    let mut runs = Vec::new();
    for source in sources(&args.scenarios, &args.flags)? {
        runs.push(resolve(&source)?);
    }
    measure_all(runs, &args.output, &args.watch)
}

/// Measures one run after the other. The exit code is that of the first run that failed.
///
/// # Errors
/// If the first run cannot begin.
pub fn measure_all(
    runs: Vec<Resolved>,
    output: &Output,
    watch: &Watch,
) -> Result<ExitCode, Failure> {
    let watching = watch.begin()?;
    let interrupt = Interrupt::listen()
        .map_err(|cause| Failure::new(Exit::Bug, format!("cannot listen for signals: {cause}")))?;
    let several = runs.len() > 1;
    runs.iter().flat_map(|run| &run.remarks).for_each(tell);
    let mut first_failure: Option<ExitCode> = None;
    for resolved in runs {
        if several {
            tell(format_args!("== {} ==", resolved.plan.name));
        }
        let code = match measure(
            resolved,
            output,
            &watching,
            &interrupt,
            &mut Round::default(),
        ) {
            Ok(0) => continue,
            Ok(code) => ExitCode::from(code),
            Err(failure) => failure.report(),
        };
        first_failure.get_or_insert(code);
        if interrupt.came() {
            break;
        }
    }
    Ok(first_failure.unwrap_or(ExitCode::SUCCESS))
}

/// One of several repeats, or a run by itself.
#[derive(Default)]
pub(super) struct Round {
    /// Which repeat it is.
    pub repeat: Option<Repeat>,
    /// What was measured, as soon as it is known.
    pub summary: Option<Summary>,
}

/// Measures one run, from preflight to result.
pub(super) fn measure(
    mut resolved: Resolved,
    output: &Output,
    watching: &Watching,
    interrupt: &Interrupt,
    round: &mut Round,
) -> Result<u8, Failure> {
    let lines = output.lines()?;
    // The preflight check has its own connections, so that the run measures what its own connections cost.
    let connect = reach(&resolved)?;
    probe(&mut resolved, &connect.afresh())?;
    let Resolved {
        plan,
        parts,
        scorers,
        tokenizer,
        log,
        remarks: _,
        timings,
    } = resolved;
    let descriptors = raise_descriptors(&plan);
    let started = jiff::Timestamp::now();
    let folder = RunFolder::create(&output.output_dir, &plan.name, &started).map_err(|error| {
        let advice = "give a writable folder with --output-dir";
        Failure::new(Exit::Input, format!("{error}; {advice}"))
    })?;
    folder.begin(
        &plan,
        &Environment::look(
            std::env::args(),
            descriptors,
            plugins::Contract::NEWEST.version(),
        ),
    )?;
    if let Some(repeat) = &round.repeat {
        folder.write_repeat(repeat)?;
    }

    let control = Control {
        signal: Signal::for_thread(),
        live: Arc::new(Live::timed_by(&timings)),
    };
    interrupt.watch(&control.signal);
    let onlooker = watching.look_at(folder.path(), &plan, &control.live, interrupt);
    let ran = run::on_threads(&plan, &parts, &connect, folder.path(), &control);
    drop(onlooker);

    let status = Status {
        started: started.to_string(),
        ended: jiff::Timestamp::now().to_string(),
        interrupted: interrupt.came(),
        timings: timings.reached(),
        error: ran
            .as_ref()
            .err()
            .map(|error| parts.secrets.redact(&error.to_string())),
    };
    // If something cannot be saved, as on a full disk, still show what can be shown.
    let mut kept = folder.end(&status);
    let client = control.live.client.get().cloned();
    if let Some(client) = &client {
        kept = kept.and(folder.write_client(client));
    }
    let server = control.live.server.get().cloned();
    if let Some(server) = &server {
        kept = kept.and(folder.write_server(server));
    }
    let (records, ran) = match (folder.read(), ran) {
        (Ok(_), Err(why)) if why.is_before_measurement() => return Err(why.into()),
        (Ok(records), ran) => (records, ran),
        // It ended before anything was recorded: the reason matters more than the empty result.
        (Err(_), Err(why)) => {
            folder.discard_unbegun();
            return Err(unbegun(why, &plan));
        }
        (Err(error), Ok(())) => return Err(error.into()),
    };
    let assessment = assess_read(records, &tokenizer, &scorers)?;
    kept = kept.and(folder.write_assessment(&assessment));
    let logged: Vec<String> = (log.drain().iter())
        .map(|line| parts.secrets.redact(line))
        .collect();
    kept = kept.and(folder.write_log(&logged));
    let judging = Judging::of(&assessment);
    let cut_short = status.interrupted || status.error.is_some();
    let facts = RunFacts {
        client,
        server,
        ..folder::facts(&plan, assessment, cut_short)
    };
    let summary = folder.summarize(&facts)?;
    kept = kept.and(folder.write_summary(&summary));
    round.summary = Some(summary.clone());
    print(&summary, output, lines, &folder)?;
    let code = conclude(ran, &summary, &judging, interrupt, output)?;
    kept?;
    Ok(code)
}

/// Why a run ended before its first record. A dataset knows its files by the scenario's names for
/// them; the user knows them by their paths.
fn unbegun(why: run::RunError, plan: &Plan) -> Failure {
    let run::RunError::Plugin(PluginError::Input { .. }) = &why else {
        return why.into();
    };
    let files = plan.dataset.files.iter();
    let files: Vec<String> = files
        .map(|(name, file)| format!("`{name}` is {}", file.path.display()))
        .collect();
    Failure::new(Exit::Input, format!("{why} ({})", files.join(", ")))
}

impl Output {
    /// Opens the file that summaries are appended to, before anything is measured in vain.
    fn lines(&self) -> Result<Option<File>, Failure> {
        let Some(path) = &self.output_file else {
            return Ok(None);
        };
        let opened = File::options().append(true).create(true).open(path);
        opened.map(Some).map_err(|cause| {
            Failure::new(
                Exit::Input,
                format!(
                    "cannot append to `{}`: {cause}; give a writable file with --output-file",
                    path.display()
                ),
            )
        })
    }
}

/// Prepares what connections need: addresses and trusted certificates.
fn reach(resolved: &Resolved) -> Result<Dial, Failure> {
    let wiring = &resolved.plan.connection;
    let targets = &resolved.parts.targets;
    Dial::new(targets, wiring.http, &wiring.trust, wiring.timestamps).map_err(|error| {
        let exit = match error {
            DialError::Unknown { .. } => Exit::Target,
            DialError::Trust(_) => Exit::Input,
        };
        Failure::new(exit, error.to_string())
    })
}

/// Asks every target what it serves, and determines the model's name.
fn probe(resolved: &mut Resolved, connect: &Dial) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|cause| Failure::new(Exit::Bug, format!("cannot start a runtime: {cause}")))?;
    let mut dialect = resolved.parts.backend.open()?;
    for (number, target) in (0..).zip(&resolved.parts.targets) {
        let asked = preflight::Asked {
            connect,
            clock: Clock::start(),
            timeouts: &resolved.plan.timeouts,
            number,
            target,
            secrets: &resolved.parts.secrets,
        };
        if let Some(limit) = resolved.plan.control.wait_ready {
            let mut told: Option<Duration> = None;
            let waits = |waited: Duration, seen: &str| {
                if told.is_none_or(|last| waited.saturating_sub(last) >= TELL_AGAIN) {
                    told = Some(waited);
                    let waited = model::duration::format(Duration::from_secs(waited.as_secs()));
                    tell(format_args!("waiting for {target} ({waited}): {seen}"));
                }
            };
            tokio::task::LocalSet::new().block_on(
                &runtime,
                preflight::wait_ready(&asked, &mut dialect, limit, waits),
            )?;
        }
        let found = tokio::task::LocalSet::new().block_on(
            &runtime,
            preflight::probe(
                &asked,
                &mut dialect,
                (
                    resolved.plan.target.model.as_deref(),
                    &resolved.plan.request.adapters,
                ),
            ),
        )?;
        if let Some(remark) = found.remark {
            tell(format_args!("note: {remark}"));
        }
        resolved.plan.target.model = Some(found.model);
    }
    resolved.timings.reach(Stage::TargetProbed);
    Ok(())
}

/// Raises the limit on file descriptors to what the plan may need. Returns the limit in force.
fn raise_descriptors(plan: &Plan) -> Option<u64> {
    let most = plan
        .slots()
        .map(|slots| slots as u64)
        .or(plan.requests())
        .unwrap_or(u64::MAX - OTHER_DESCRIPTORS);
    let needed = most + OTHER_DESCRIPTORS;
    let limit = rlimit::increase_nofile_limit(needed).ok()?;
    if limit < needed && plan.load.arrival.rate() == Some(f64::INFINITY) {
        tell(format_args!(
            "warning: {most} connections may be open at the same time, but only {limit} file descriptors are allowed and the limit cannot be raised further; \
             requests beyond it will fail as `connect`. Raise it (ulimit -Hn, LimitNOFILE), or cap requests in flight with --max-concurrency {}",
            limit.saturating_sub(OTHER_DESCRIPTORS).max(1)
        ));
    }
    Some(limit)
}

fn print(
    summary: &Summary,
    output: &Output,
    lines: Option<File>,
    folder: &RunFolder,
) -> Result<(), Failure> {
    let cannot =
        |what: &str, cause: String| Failure::new(Exit::Bug, format!("cannot {what}: {cause}"));
    let as_json =
        |summary| json::json(summary).map_err(|cause| cannot("write JSON", cause.to_string()));
    let shown = match output.json {
        true => as_json(summary)?,
        false => text::text(summary),
    };
    write_stdout(&shown)?;
    tell(format_args!("records: {}", folder.path().display()));
    if let Some(mut lines) = lines {
        let line = serde_json::to_string(summary)
            .map_err(|cause| cannot("write JSON", cause.to_string()))?;
        writeln!(lines, "{line}").map_err(|cause| {
            Failure::new(
                Exit::Input,
                format!(
                    "cannot append to the --output-file: {cause}; the summary is in {}",
                    folder.path().display()
                ),
            )
        })?;
    }
    Ok(())
}

/// Writes a result to stdout. A reader that has gone away is no error.
///
/// # Errors
/// If stdout cannot be written.
pub fn write_stdout(text: &str) -> Result<(), Failure> {
    wrote(std::io::stdout().write_all(text.as_bytes())).map(drop)
}

/// Whether a result still has a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// It has.
    Reads,
    /// It has gone away, which is no error.
    Gone,
}

impl Reader {
    /// Whether it has gone away.
    pub fn is_gone(self) -> bool {
        self == Reader::Gone
    }
}

/// What came of writing a part of a result to stdout.
///
/// # Errors
/// If stdout cannot be written.
pub fn wrote(written: std::io::Result<()>) -> Result<Reader, Failure> {
    match written {
        Ok(()) => Ok(Reader::Reads),
        Err(cause) if cause.kind() == std::io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(cause) => Err(Failure::new(
            Exit::Input,
            format!("cannot write the result to stdout: {cause}"),
        )),
    }
}

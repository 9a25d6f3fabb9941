//! `runner run`: resolves every scenario, then measures one after the other.

pub(super) mod accuracy;
pub(super) mod conclude;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::builder::FalseyValueParser;

use self::conclude::conclude;
use super::agreement::agreed;
use super::artifacts::Artifacts;
use super::failure::{Exit, Failure};
use super::flags::Flags;
use super::interrupt::Interrupt;
use super::limits::limits;
use super::print::{tell, write_stdout};
use super::repeat;
use super::report::vllm_result;
use super::saved::Within;
use super::sources::sources;
use super::watch::{Watch, Watching};
use compare::until::{self, Until};
use load::transport::Dial;
use report::{json, text};
use result::summary::Summary;
use runs::environment::Environment;
use runs::folder::RunFolder;
use runs::repeat::Repeat;
use scenario::plan::Plan;
use session::live::Snapshot;
use session::stages::Begun;
use session::{Ending, Loaded, Measured, Note, Record, Resolved, Threads, resolve};

/// The interval at which to print that a server is not ready yet.
const TELL_AGAIN: Duration = Duration::from_secs(10);
/// The interval at which an overseer looks at a run.
const LOOK_EVERY: Duration = Duration::from_millis(20);
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
    /// Measure every scenario N times, alternating, and show how far the repeats differ [default:
    /// 1; with --until 20]
    #[arg(long, value_name = "N", env = "RUNNER_REPEAT", value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = "Load")]
    repeat: Option<u32>,
    /// Repeat until the mean of this figure is sure enough, such as 'ttft.p99 ±5%' (or +-5%);
    /// repeatable
    ///
    /// At least 3 runs, and at most as many as --repeat says. The 95 % interval over the runs holds
    /// whenever one looks, so stopping once it is narrow enough is no error. Several scenarios end
    /// together.
    #[arg(
        long,
        value_name = "FIGURE ±BOUND",
        env = "RUNNER_UNTIL",
        value_delimiter = ',',
        help_heading = "Load"
    )]
    until: Vec<String>,
    /// Follow the rules of a published benchmark: mlperf-accuracy judges the whole dataset, then
    /// measures
    #[arg(
        long,
        value_name = "NAME",
        env = "RUNNER_PRESET",
        conflicts_with_all = ["repeat", "until", "baseline"],
        help_heading = "Load"
    )]
    preset: Option<String>,
    #[command(flatten)]
    pub(super) watch: Watch,
    #[command(flatten)]
    artifacts: Artifacts,
}

/// The place where results go.
#[derive(Clone, Debug, clap::Args)]
pub struct Output {
    #[command(flatten)]
    pub(super) within: Within,
    /// Write the result as `vllm bench serve --save-result` does too, to this file in the output
    /// folder
    #[arg(
        long,
        value_name = "FILE",
        env = "RUNNER_RESULT_FILENAME",
        help_heading = "Result"
    )]
    result_filename: Option<PathBuf>,
    /// Append to that file, a line for each run, instead of replacing it
    #[arg(long, env = "RUNNER_APPEND_RESULT", value_parser = FalseyValueParser::new(), help_heading = "Result")]
    append_result: bool,
    /// Append each summary to this file, one line of JSON each
    #[arg(
        long,
        value_name = "FILE",
        env = "RUNNER_OUTPUT_FILE",
        help_heading = "Result"
    )]
    output_file: Option<PathBuf>,
    /// Compare the answers with those of this run, and print how they agree (runner agreement)
    #[arg(
        long,
        value_name = "RUN",
        env = "RUNNER_BASELINE",
        help_heading = "Result"
    )]
    baseline: Option<PathBuf>,
    /// A repeat of the baseline, which shows how much answers differ without any change; repeatable
    #[arg(
        long,
        value_name = "RUN",
        env = "RUNNER_FLOOR",
        value_delimiter = ',',
        requires = "baseline",
        help_heading = "Result"
    )]
    floor: Vec<PathBuf>,
    /// Print the result as JSON instead of text
    #[arg(long, env = "RUNNER_JSON", value_parser = FalseyValueParser::new(), help_heading = "Result")]
    pub(super) json: bool,
    /// Print every figure and the reasons of each finding, instead of one screen
    #[arg(long, env = "RUNNER_DETAILS", value_parser = FalseyValueParser::new(), help_heading = "Result")]
    details: bool,
    /// Exit with 0 even if the measurement is invalid or more than half of the requests failed
    ///
    /// Without it such a run exits with 7. A run in which no request was answered exits with 5 in
    /// any case, and no threshold holds for an invalid run.
    #[arg(long, env = "RUNNER_ALLOW_INVALID", hide_env_values = true, value_parser = FalseyValueParser::new(), help_heading = "Result")]
    allow_invalid: bool,
    /// Exit with 7 if the measurement is invalid: the default, and stronger than --allow-invalid
    /// and its variable
    #[arg(long, env = "RUNNER_STRICT", value_parser = FalseyValueParser::new(), help_heading = "Result")]
    strict: bool,
}

impl Output {
    /// True if an invalid measurement counts as a success.
    pub(super) fn allows_invalid(&self) -> bool {
        self.allow_invalid && !self.strict
    }
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
    // Before files are read and plugins compiled, which may take long.
    let interrupt = listen()?;
    if let Some(preset) = &args.preset {
        return accuracy::exec(args, preset, &interrupt);
    }
    let repeats = args.repeats()?;
    if repeats > 1 {
        return repeat::exec(args, repeats, &interrupt);
    }
    let mut runs = Vec::new();
    for source in sources(&args.scenarios, &args.flags)? {
        runs.push(resolve(&source)?);
    }
    measure_all(runs, &args.output, &args.watch, &interrupt)
}

impl Args {
    /// Returns the precision that ends the repeats, if they stop themselves.
    pub(super) fn until(&self) -> Result<Vec<Until>, Failure> {
        limits("--until", &self.until)
    }

    /// The number of times that each scenario is measured, at most if repeats stop themselves.
    fn repeats(&self) -> Result<u32, Failure> {
        if self.until.is_empty() {
            return Ok(self.repeat.unwrap_or(1));
        }
        let most = self.repeat.unwrap_or(until::MOST);
        if most < until::FEWEST {
            let words = format!(
                "--repeat {most}: --until takes at least {} runs, because fewer do not show how far they are apart; give a larger number, or leave --repeat out for at most {}",
                until::FEWEST,
                until::MOST
            );
            return Err(Failure::new(Exit::CommandLine, words));
        }
        Ok(most)
    }
}

/// Listens for signals from now on.
///
/// # Errors
/// If the system does not allow it.
pub(crate) fn listen() -> Result<Interrupt, Failure> {
    Interrupt::listen()
        .map_err(|cause| Failure::new(Exit::Bug, format!("cannot listen for signals: {cause}")))
}

/// Measures one run after the other. The exit code is that of the first run that failed.
///
/// # Errors
/// If the first run cannot begin.
pub(crate) fn measure_all(
    runs: Vec<Resolved>,
    output: &Output,
    watch: &Watch,
    interrupt: &Interrupt,
) -> Result<ExitCode, Failure> {
    let watching = watch.begin()?;
    let several = runs.len() > 1;
    // Runs of one target say the same of it.
    let mut told = BTreeSet::new();
    let remarks = runs.iter().flat_map(|run| &run.remarks);
    remarks.filter(|line| told.insert(*line)).for_each(tell);
    let mut first_failure: Option<ExitCode> = None;
    for resolved in runs {
        if several {
            tell(format_args!("== {} ==", resolved.draft.name));
        }
        let code = measure(
            resolved,
            output,
            &watching,
            interrupt,
            &mut Round::default(),
        );
        let Some(code) = failed(code) else { continue };
        first_failure.get_or_insert(code);
        if interrupt.came() {
            break;
        }
    }
    Ok(first_failure.unwrap_or(ExitCode::SUCCESS))
}

/// Reports why a run failed; its code, if it did.
pub(super) fn failed(code: Result<u8, Failure>) -> Option<ExitCode> {
    match code {
        Ok(0) => None,
        Ok(code) => Some(ExitCode::from(code)),
        Err(failure) => Some(failure.report()),
    }
}

/// One of several repeats, or a run by itself.
#[derive(Default)]
pub(super) struct Round {
    /// The repeat that it is.
    pub repeat: Option<Repeat>,
    /// The summary, as soon as it is known.
    pub summary: Option<Summary>,
    /// The run's folder, as soon as there is a result in it.
    pub folder: Option<PathBuf>,
}

/// Measures one run, from preflight to result, and prints that.
pub(super) fn measure(
    resolved: Resolved,
    output: &Output,
    watching: &Watching,
    interrupt: &Interrupt,
    round: &mut Round,
) -> Result<u8, Failure> {
    let lines = output.lines()?;
    let place = Place {
        within: &output.within.output_dir,
        repeat: round.repeat.clone(),
        overseer: None,
    };
    let measured = measured(resolved, place, watching, interrupt);
    let printed = measured.and_then(|measured| {
        round.summary = Some(measured.summary.clone());
        round.folder = Some(measured.folder.path().to_owned());
        print(&measured.summary, output, lines, &measured.folder)?;
        Ok(measured)
    });
    interrupt.done();
    conclude(printed?, interrupt, output)
}

/// The place of a run: its folder, and the repeats that it is part of.
pub(super) struct Place<'p> {
    /// The folder in which it gets a folder of its own.
    pub within: &'p Path,
    /// The repeats of which it is one.
    pub repeat: Option<Repeat>,
    /// Looks at it now and then, and may stop it.
    pub overseer: Option<&'p dyn Overseer>,
}

/// Looks at a run while it goes on.
pub(super) trait Overseer: Sync {
    /// True if the run is to stop now, without waiting for the replies under way.
    fn stops(&self, state: &Snapshot) -> bool;
}

/// Measures one run, from preflight to summary, and prints its progress alone. Until the caller
/// calls
/// [`Interrupt::done`], a signal is for this run.
///
/// # Errors
/// If the run cannot begin, or nothing of it can be read.
pub(super) fn measured(
    resolved: Resolved,
    place: Place<'_>,
    watching: &Watching,
    interrupt: &Interrupt,
) -> Result<Measured, Failure> {
    // The preflight check has its own connections, so that the run measures what its own
    // connections cost.
    let connect = resolved.dial()?;
    let checked = resolved.check_now(&connect.afresh(), teller())?;
    let descriptors = raise_descriptors(&checked.plan);
    let record = Record {
        output: place.within.to_owned(),
        started: jiff::Timestamp::now(),
        environment: Environment::look(
            std::env::args(),
            descriptors,
            plugins::Contract::NEWEST.version(),
        ),
        repeat: place.repeat,
    };
    let run = checked.begin(record, Threads)?;
    interrupt.watch(run.signal());
    let folder = run.folder().path().to_owned();
    let followed = AssertUnwindSafe(|| follow(run, &connect, place.overseer, watching, interrupt));
    std::panic::catch_unwind(followed).unwrap_or_else(|_| {
        let kept = format!(". What was measured until then is in {}", folder.display());
        Err(Failure::bug(&kept))
    })
}

/// Makes the load, and all that follows it.
fn follow(
    run: Begun<Threads>,
    connect: &Dial,
    overseer: Option<&dyn Overseer>,
    watching: &Watching,
    interrupt: &Interrupt,
) -> Result<Measured, Failure> {
    let onlooker = watching.look_at(
        run.folder().path(),
        run.plan(),
        run.live(),
        run.threads(),
        interrupt,
    );
    let (loaded, stopped) = overseen(run, connect, overseer);
    drop(onlooker);
    interrupt.assessing();
    let kept = loaded.keep(&Ending {
        at: jiff::Timestamp::now().to_string(),
        interrupted: interrupt.came() || stopped,
    });
    let assessed = kept
        .measured()?
        .assess_until(|| interrupt.ends_assessment());
    Ok(assessed?.summarise()?)
}

/// Makes the load, under an overseer if there is one. Says whether that one stopped it.
fn overseen(
    run: Begun<Threads>,
    connect: &Dial,
    overseer: Option<&dyn Overseer>,
) -> (Loaded, bool) {
    let Some(overseer) = overseer else {
        return (run.load_now(connect), false);
    };
    let (live, signal) = (Arc::clone(run.live()), run.signal().clone());
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            while !over.load(Ordering::Acquire) {
                if overseer.stops(&live.snapshot()) {
                    signal.abort();
                    return true;
                }
                std::thread::park_timeout(LOOK_EVERY);
            }
            false
        });
        let loaded = run.load_now(connect);
        over.store(true, Ordering::Release);
        looking.thread().unpark();
        (loaded, looking.join().unwrap_or(false))
    })
}

/// Prints what happens while targets are checked. Repeats now and then that a server is not ready.
pub(super) fn teller() -> impl FnMut(Note) {
    let mut last: Option<(String, Duration)> = None;
    move |note| match note {
        Note::Waiting {
            target,
            waited,
            seen,
        } => {
            let is_new = last.as_ref().is_none_or(|(other, told)| {
                *other != target || waited.saturating_sub(*told) >= TELL_AGAIN
            });
            if is_new {
                let time = model::duration::format(Duration::from_secs(waited.as_secs()));
                tell(format_args!("waiting for {target} ({time}): {seen}"));
                last = Some((target, waited));
            }
        }
        Note::Remark(remark) => tell(format_args!("note: {remark}")),
        Note::Said(words) => tell(words),
    }
}

impl Output {
    /// Writes a run's result as `vllm bench serve` does, if that is asked for.
    fn write_result(&self, folder: &RunFolder) -> Result<(), Failure> {
        let Some(name) = &self.result_filename else {
            return Ok(());
        };
        let path = self.within.output_dir.join(name);
        let line = vllm_result(folder)?;
        let opened = File::options()
            .write(true)
            .create(true)
            .append(self.append_result)
            .truncate(!self.append_result)
            .open(&path);
        let written = opened.and_then(|mut file| file.write_all(line.as_bytes()));
        written.map_err(|cause| {
            Failure::new(
                Exit::Input,
                format!(
                    "cannot write `{}`: {cause}; give a writable file with --result-filename. The result is in {}",
                    path.display(),
                    folder.path().display()
                ),
            )
        })
    }

    /// Opens the file that summaries are appended to, and looks whether the runs to compare with
    /// are there, before anything is measured in vain.
    pub(super) fn lines(&self) -> Result<Option<File>, Failure> {
        for run in self.baseline.iter().chain(&self.floor) {
            RunFolder::at(run).plan()?;
        }
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

/// Raises the limit on file descriptors to what the plan may need. Returns the limit in force.
pub(super) fn raise_descriptors(plan: &Plan) -> Option<u64> {
    let most = plan
        .slots()
        .map(|slots| slots as u64)
        .or(plan.load.roots())
        .unwrap_or(u64::MAX);
    let needed = most.saturating_add(OTHER_DESCRIPTORS);
    let limit = load::descriptors::allow(needed).ok()?;
    if limit < needed && plan.load.arrival.rate() == Some(f64::INFINITY) {
        tell(format_args!(
            "warning: {most} connections may be open at the same time, but only {limit} file descriptors are allowed and the limit cannot be raised further; \
             requests beyond it will fail as `refused`. Raise it (ulimit -Hn, LimitNOFILE), or cap requests in flight with --max-concurrency {}",
            limit.saturating_sub(OTHER_DESCRIPTORS).max(1)
        ));
    }
    Some(limit)
}

pub(super) fn print(
    summary: &Summary,
    output: &Output,
    lines: Option<File>,
    folder: &RunFolder,
) -> Result<(), Failure> {
    let cannot =
        |what: &str, cause: String| Failure::new(Exit::Bug, format!("cannot {what}: {cause}"));
    let as_json =
        |summary| json::json(summary).map_err(|cause| cannot("write JSON", cause.to_string()));
    let shown = if output.json {
        as_json(summary)?
    } else if output.details {
        text::text(summary)
    } else {
        text::short(summary)
    };
    write_stdout(&shown)?;
    let path = folder.path().display();
    tell(format_args!("records: {path}"));
    if !output.json && !output.details {
        tell(format_args!(
            "every figure, and what to do about each finding: runner report {path} --details"
        ));
    }
    if let Some(baseline) = &output.baseline {
        let agreed = agreed(folder.path(), baseline, &output.floor)?;
        folder.write_agreement(&agreed)?;
        if !output.json {
            write_stdout(&report::agreed::text(&agreed))?;
        }
    }
    output.write_result(folder)?;
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

//! `runner ci`: judges a build by its runs and a baseline's, and writes files for a system for
//! continuous integration: a summary in Markdown, JUnit XML, annotations.
//!
//! It measures nothing: `runner run --repeat` does, and the caller keeps the baseline. `report`
//! owns the forms; this module owns the choice of files and the exit code.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;

use super::compare::{Differences, sides};
use super::destination::replace;
use super::failure::{Exit, Failure};
use super::needs::limits;
use super::print::write_stdout;
use super::report;
use super::round::answered;
use ::report::build::{self, Baseline, Build, Check, Outcome, Run, Subject};
use ::report::compared::refusal;
use compare::{Condition, Kind, Options, compare};
use model::{clean, private};
use runs::folder::{self, FolderError, RunFolder};

/// Judge a build by its runs and by a baseline, for systems of continuous integration
///
/// The runs are repeats of one scenario (runner run --repeat N --same-requests). The build fails if
/// a run is invalid, if a threshold does not hold in a run, or if a condition on the difference
/// from the baseline holds. It passes with a note if there is no baseline yet. It passes with a
/// warning if the runs are not comparable with the baseline; --strict makes it fail instead.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner run chat.toml --repeat 3 --same-requests --output-dir results\n  \
        runner ci results --baseline main --fail-if 'ttft.p10 +3%' --fail-if 'tpot.median +3%'\n  \
        runner ci results --output-dir report --format github   summary.md and junit.xml; annotations on stdout\n\n\
        Exit codes: 0 the build passes, 3 a run is not readable, a condition cannot be checked, or the baseline is\n  \
        not comparable (with --strict), 5 every request failed, 6 a threshold does not hold or a condition holds,\n  \
        7 a run is invalid")]
pub struct Args {
    /// Folders of the build's runs, or folders that contain them: repeats of one scenario
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    /// Format of the output on stdout; it does not change the files of --output-dir
    #[arg(long, env = "RUNNER_CI_FORMAT", value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Folder for summary.md and junit.xml; without it, no file is written
    #[arg(long, value_name = "FOLDER", env = "RUNNER_CI_OUTPUT_DIR")]
    output_dir: Option<PathBuf>,
    /// Exit with 0 even if the measurement is invalid or more than half of the requests failed
    ///
    /// Such runs are judged by their figures then. No threshold holds for an invalid run.
    #[arg(long, env = "RUNNER_ALLOW_INVALID", hide_env_values = true)]
    allow_invalid: bool,
    /// Folder with the runs of the baseline; a missing or empty folder means no baseline yet
    #[arg(long, value_name = "FOLDER", env = "RUNNER_CI_BASELINE", help_heading = "Baseline")]
    baseline: Option<PathBuf>,
    /// Exit with 6 if this holds, such as 'ttft.p99 +5%', 'e2e.mean +20ms' or
    /// 'requests.success-share -0.01'
    #[arg(long = "fail-if", value_name = "CONDITION", env = "RUNNER_FAIL_IF")]
    #[arg(value_delimiter = ',', help_heading = "Baseline")]
    fail_if: Vec<String>,
    /// Fail if there is a baseline and it is not comparable
    #[arg(long, env = "RUNNER_CI_STRICT", help_heading = "Baseline")]
    strict: bool,
    #[command(flatten)]
    differences: Differences,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The checks as a table
    Text,
    /// Annotations for the log of a GitHub workflow
    Github,
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let conditions: Vec<Condition> = limits("--fail-if", &args.fail_if)?;
    if args.baseline.is_none() && !conditions.is_empty() {
        return Err(Failure::command_line(
            "--fail-if compares with a baseline; name the folder of its runs with --baseline",
        ));
    }
    let folders = report::open(&args.runs)?;
    let build = Build {
        scenario: scenario(&folders)?,
        runs: folders.iter().map(run).collect::<Result<_, _>>()?,
        allows_invalid: args.allow_invalid,
        baseline: match &args.baseline {
            None => Baseline::NotRequested,
            Some(path) => args.against(path, folders, conditions),
        },
    };
    if let Some(folder) = &args.output_dir {
        private::folder(folder).map_err(Failure::write(folder, ""))?;
        let xml = build::junit(&build).map_err(Failure::cannot("write the report"))?;
        for (name, text) in [("summary.md", build::markdown(&build)), ("junit.xml", xml)] {
            replace(&folder.join(name), clean::text(&text).as_bytes())?;
        }
    }
    write_stdout(&match args.format {
        Format::Text => build::text(&build),
        Format::Github => build::annotations(&build),
    })?;
    build.runs.iter().try_for_each(|run| answered(&run.summary))?;
    conclude(&build.checks())
}

impl Args {
    /// The comparison with a baseline. A fault of the baseline is not the build's, so no error.
    fn against(&self, path: &Path, runs: Vec<RunFolder>, conditions: Vec<Condition>) -> Baseline {
        let not_comparable = |reasons| Baseline::NotComparable { reasons, fails: self.strict };
        let baseline = match folder::runs(path) {
            Ok(baseline) => baseline,
            Err(FolderError::NoRun { path }) => return Baseline::None(path.display().to_string()),
            Err(error) => return not_comparable(vec![error.to_string()]),
        };
        let read = match sides::listed(vec![baseline, runs], &conditions) {
            Ok(read) => read,
            Err(failure) => return not_comparable(vec![failure.message()]),
        };
        let mut allowed = self.differences.allow.clone();
        allowed.extend(self.allow_invalid.then_some(Kind::Verdict));
        let options = Options {
            conditions,
            allowed,
            must_agree: self.differences.must_agree.clone(),
            ..Options::new(read.figures, read.blocks)
        };
        match compare(&read.sides, &options) {
            Ok(compared) => Baseline::Compared(Box::new(compared)),
            Err(obstacles) => not_comparable(refusal(&obstacles)),
        }
    }
}

fn scenario(runs: &[RunFolder]) -> Result<String, Failure> {
    let names = runs.iter().map(|run| Ok((run, run.plan()?.name)));
    let names: Vec<_> = names.collect::<Result<_, FolderError>>()?;
    let name = names.first().map(|(_, name)| name.clone()).unwrap_or_default();
    if let Some((run, other)) = names.iter().find(|(_, other)| *other != name) {
        return Err(Failure::input(format!(
            "{}: expected a run of {name}, found one of {other}; judge each scenario separately",
            run.path().display()
        )));
    }
    Ok(name)
}

fn run(folder: &RunFolder) -> Result<Run, Failure> {
    let name = folder.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Run { folder: name, summary: folder.summarize(&folder.facts()?)? })
}

/// The exit code: the code of the first kind of check that fails.
fn conclude(checks: &[Check]) -> Result<ExitCode, Failure> {
    let failing = || checks.iter().filter(|check| check.outcome == Outcome::Fails);
    let Some(first) = failing().next() else { return Ok(ExitCode::SUCCESS) };
    let exit = match first.subject {
        Subject::Run | Subject::Finding => Exit::Invalid,
        Subject::Threshold | Subject::Condition => Exit::Threshold,
        Subject::Baseline => Exit::Input,
    };
    let messages = failing().map(|check| format!("{}: {}", check.name, check.seen));
    Err(Failure::several(exit, messages))
}

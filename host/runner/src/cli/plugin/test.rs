//! `runner plugin test`: runs a plugin's cases in the sandbox, and reports failures.

mod junit;
pub(super) mod text;

use super::{Sandbox, shipped_alone};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::author::fresh;
use crate::cli::artifacts::Artifacts;
use crate::cli::failure::{Exit, Failure};
use crate::cli::print::{json, tell, write_stdout, write_styled};
use model::clean;
use model::plugin::Limits;
use plugins::case::{self, Suite, SuiteReport, TimedReport};
use plugins::load::Plugin;

/// Run a plugin's cases in the sandbox
///
/// A case is a folder with the plugin's inputs and its expected outputs. Replies are decoded whole,
/// frame by frame, in random batches and in several instances; the result must be the same each
/// time. Truncated and damaged replies must result in events or an error, never in a trap.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 all cases pass, 4 a case fails or the plugin cannot be loaded,\n  \
        3 a case's folder is invalid or there are no cases, 2 command line"
)]
pub struct Args {
    /// A plugin project (with its cases in cases/), a folder of cases, or a single case
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Component to test [default: the output of `runner plugin build` in DIR/target/plugin]
    #[arg(long, value_name = "FILE", env = "RUNNER_TEST_PLUGIN")]
    plugin: Option<String>,
    /// Run only the cases whose name contains this text
    #[arg(long, value_name = "TEXT", env = "RUNNER_TEST_FILTER")]
    filter: Option<String>,
    /// Rewrite failing expectations with the plugin's output; review the diff afterwards
    #[arg(long, env = "RUNNER_TEST_BLESS")]
    bless: bool,
    /// Output format
    #[arg(long, env = "RUNNER_TEST_FORMAT", value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Print the result as JSON instead of text
    #[arg(long, env = "RUNNER_JSON", conflicts_with = "format")]
    json: bool,
    #[command(flatten)]
    sandbox: Sandbox,
    #[command(flatten)]
    artifacts: Artifacts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// One line per case, diffs and a summary
    Text,
    /// The full report
    Json,
    /// JUnit XML for continuous integration
    Junit,
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    args.artifacts.apply();
    let format = if args.json { Format::Json } else { args.format };
    let found = suite(&args.dir, args.plugin.as_deref(), args.filter.as_deref(), &args.sandbox);
    let found = found.and_then(|suite| {
        let description = suite.describe()?;
        Ok((suite, description))
    });
    let (suite, description) = match found {
        Ok(found) => found,
        Err(failure) => {
            // A program that reads a report in a machine's form finds the reason in it, and not
            // yesterday's report.
            if failure.exit != Exit::CommandLine {
                let file = args.plugin.clone();
                let file = file.unwrap_or_else(|| args.dir.display().to_string());
                print(&SuiteReport::untested(file, failure.message()), format)?;
            }
            return Err(failure);
        }
    };
    let mut report = SuiteReport::new(&suite.plugin, &suite.limits, &description);
    if format == Format::Text {
        write_stdout(&text::heading(&report))?;
    }
    let progress = progress(suite.cases.len());
    for case in &suite.cases {
        progress.set_message(clean::line(&case.name).into_owned());
        let began = Instant::now();
        let checked = TimedReport {
            report: suite.check(case, args.bless),
            seconds: began.elapsed().as_secs_f64(),
        };
        if format == Format::Text {
            let width = suite.cases.iter().map(|case| case.name.chars().count()).max();
            let line = text::case(&checked, width.unwrap_or_default());
            progress.suspend(|| write_styled(&line))?;
        }
        report.add(checked);
        progress.inc(1);
    }
    progress.finish_and_clear();
    if args.filter.is_none() {
        report.untouched = suite.untouched();
    }
    if format == Format::Text {
        write_styled(&text::summary(&report))?;
    }
    print(&report, format)?;
    if args.bless && report.failed > 0 {
        tell(
            "--bless wrote nothing for the cases that fail: the plugin does something wrong there",
        );
    } else if report.can_be_blessed() {
        tell("if the plugin's output is right, run again with --bless and review the diff");
    }
    Ok(match report.failed {
        0 => ExitCode::SUCCESS,
        _ => Exit::Plugin.into(),
    })
}

fn print(report: &SuiteReport, format: Format) -> Result<(), Failure> {
    match format {
        Format::Text => Ok(()),
        Format::Junit => {
            let xml = junit::xml(report).map_err(Failure::cannot("write JUnit's XML"))?;
            write_stdout(&xml)
        }
        Format::Json => write_stdout(&json(report)?),
    }
}

pub(super) fn suite(
    dir: &Path,
    plugin: Option<&str>,
    filter: Option<&str>,
    sandbox: &Sandbox,
) -> Result<Suite, Failure> {
    let mut found = case::cases(dir).map_err(Failure::input)?;
    if let Some(wanted) = filter {
        let all = found.cases.len();
        found.cases.retain(|case| {
            let name = case.file_name().unwrap_or_default();
            name.to_string_lossy().contains(wanted)
        });
        if found.cases.is_empty() {
            return Err(Failure::input(format!(
                "none of the {all} cases in `{}` has `{wanted}` in its name",
                dir.display()
            )));
        }
    }
    let name = match (plugin, &found.project) {
        (Some(plugin), _) => plugin.to_owned(),
        (None, Some(project)) => component(None, project)?,
        (None, None) => {
            return Err(Failure::command_line(format!(
                "`{}` is not in a plugin project, which has its cases in cases/; name the component with --plugin",
                dir.display()
            )));
        }
    };
    let plugin = sandbox.load(&name, &shipped_alone())?;
    read(&plugin, sandbox.limits()?, &found.cases)
}

pub(super) fn read(plugin: &Plugin, limits: Limits, cases: &[PathBuf]) -> Result<Suite, Failure> {
    let read = Suite::read(plugin.clone(), limits, cases);
    read.map_err(|mistakes| Failure::several(Exit::Input, mistakes))
}

/// The named component, or the component built from the project's present sources.
pub(super) fn component(named: Option<&str>, project: &Path) -> Result<String, Failure> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    let built = case::component(project).map_err(|why| Failure::new(Exit::Plugin, why))?;
    up_to_date(&built)?;
    Ok(built.display().to_string())
}

fn up_to_date(component: &Path) -> Result<(), Failure> {
    let Some(project) = fresh::project_of(component) else { return Ok(()) };
    match fresh::stale(&project) {
        None => Ok(()),
        Some(change) => Err(Failure::new(
            Exit::Plugin,
            format!(
                "`{}` was built from other sources: {change}; {}, or name the component with --plugin to test it as it is",
                component.display(),
                fresh::remedy(&project)
            ),
        )),
    }
}

fn progress(cases: usize) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(cases as u64), target);
    let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style);
    bar
}

//! `runner lab`: starts engines with the options of a lab file, measures them, and writes the page.

mod drive;
mod engine;
mod journal;
mod machine;
mod overlay;
mod previous;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::FalseyValueParser;

use self::drive::LabRun;
use self::journal::OpenJournal;
use self::overlay::{Home, Scenarios};
use super::artifacts::Artifacts;
use super::destination::replace;
use super::failure::{Exit, Failure};
use super::flags::Flags;
use super::interrupt::Interrupt;
use super::output::Within;
use super::print::{json, tell, write_stdout};
use super::resume;
use super::saved::workload;
use super::watch::Watch;
use lab::estimate::in_words;
use lab::findings::{LabReport, RunReport};
use lab::walk::Kept;
use lab::{Lab, Next, Results};
use model::clean;
use result::finding::Verdict;
use runs::folder::slug;

/// The page, as one HTML file.
const PAGE: &str = "lab.html";
/// The same, as Markdown.
const MARKDOWN: &str = "lab.md";
/// The lab file and its scenarios.
const KEPT: &str = "lab.json";
/// The page's content, as JSON.
const REPORT: &str = "lab-report.json";

/// Try an engine's options, one file for the whole experiment, and write the page
///
/// A lab file names engines with their launch commands, the options to vary, models, scenarios, an
/// objective with constraints, and a strategy. The lab starts each engine, waits until it answers,
/// measures every scenario against it, stops it, and decides what to try next. Everything is in the
/// lab's folder: a journal, a folder for each run, the engines' logs, and the page, as `lab.html`
/// and `lab.md`. A lab that was interrupted goes on where it was, and one whose file changed
/// measures only what changed.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner lab labs/qwen.toml --dry-run     what would be started and measured, and for how long\n  \
        runner lab labs/qwen.toml               run it, or resume it\n  \
        runner lab --resume runs/qwen-lab       resume what that folder holds\n  \
        runner lab labs/qwen.toml --page-only   write the page again from the journal\n\n\
        Exit codes: 0 done, 2 command line, 3 wrong lab file, scenario or input, 4 plugin, 5 no trial could be measured, \
        7 every run is invalid, 130 interrupted (--resume continues)")]
pub struct Args {
    /// The lab file, or a built-in one such as scenarios/labs/gpustack.toml
    #[arg(
        value_name = "LAB",
        required_unless_present_any = ["resume", "page_only"]
    )]
    lab: Option<String>,
    /// Show what would be started and measured first, with an estimate of the time, and do nothing
    #[arg(long, env = "RUNNER_DRY_RUN", value_parser = FalseyValueParser::new(), help_heading = "Lab")]
    dry_run: bool,
    /// Write the page again from the journal, and do nothing else
    #[arg(long, env = "RUNNER_PAGE_ONLY", value_parser = FalseyValueParser::new(), conflicts_with = "dry_run", help_heading = "Lab")]
    page_only: bool,
    /// Resume the lab in this folder, which holds the name of the lab file and the flags that it
    /// began with
    ///
    /// Secrets are not kept: keys are read from the environment again, and headers have to be given
    /// again.
    #[arg(
        long,
        alias = "folder",
        value_name = "FOLDER",
        env = "RUNNER_LAB_RESUME",
        help_heading = "Result"
    )]
    resume: Option<PathBuf>,
    #[command(flatten)]
    within: Within,
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    watch: Watch,
    #[command(flatten)]
    artifacts: Artifacts,
}

/// Runs the subcommand.
///
/// # Errors
/// If the lab file or a scenario is wrong, or the lab's folder cannot be written.
pub fn exec(args: &Args, words: Vec<String>) -> Result<ExitCode, Failure> {
    args.artifacts.apply();
    let Some(path) = &args.lab else {
        return match (&args.resume, args.page_only) {
            (Some(folder), true) => draw_again(folder),
            _ => Err(Failure::new(
                Exit::CommandLine,
                "name a lab file, or a lab's folder with --resume",
            )),
        };
    };
    let (text, home) = read(path)?;
    let lab = parsed(path, &text)?;
    let within = &args.within.output_dir;
    let named = || within.join(format!("{}-lab", slug(&lab.name)));
    let folder = args.resume.clone().unwrap_or_else(named);
    if args.dry_run {
        let scenarios = Scenarios::of(&lab, &home, &args.flags, true)?;
        previous::read(&lab, &home, &scenarios)?;
        let results = OpenJournal::peek(&folder)?;
        return write_stdout(&plan(&lab, scenarios.all(), &results)).map(|()| ExitCode::SUCCESS);
    }
    if args.page_only {
        return draw_again(&folder);
    }
    let scenarios = Scenarios::of(&lab, &home, &args.flags, false)?;
    let kept = Kept {
        version: lab::journal::VERSION,
        path: path.clone(),
        text: lab.kept().to_owned(),
        scenarios: scenarios.all().to_vec(),
        previous: previous::read(&lab, &home, &scenarios)?,
    };
    let interrupt = Interrupt::listen()?;
    let watching = args.watch.begin()?;
    let (mut journal, mut results) = OpenJournal::open(&folder, &lab, &text)?;
    tell(format_args!("lab: {}", folder.display()));
    let markers = args.artifacts.folder().unwrap_or_else(|| folder.clone());
    resume::keep(&folder, words, None)?;
    // The lab's folder tells what it is of wherever it is.
    replace(&folder.join(KEPT), json(&kept)?.as_bytes())?;
    let run = LabRun::new(
        &lab,
        &scenarios,
        &folder,
        markers.join("engines"),
        home.folder(),
        &watching,
        &interrupt,
    )?;
    run.clean_up()?;
    let ended = loop {
        let starts = match lab::next(&lab, scenarios.all(), &results) {
            Next::Run(starts) => starts,
            Next::Done(ended) => break Some(ended),
        };
        let Some(start) = starts.first() else {
            break None;
        };
        tell(progress(&lab, scenarios.all(), &results));
        run.start(start, &mut journal, &mut results)?;
        write_page(&folder, &lab, &kept, &results)?;
        if interrupt.came() {
            break None;
        }
    };
    write_page(&folder, &lab, &kept, &results)?;
    match ended {
        None => {
            tell(format_args!(
                "interrupted; go on with: runner lab --resume {}. The page so far: {}",
                folder.display(),
                folder.join(PAGE).display()
            ));
            Ok(ExitCode::from(Exit::Interrupted as u8))
        }
        Some(ended) => {
            if ended == lab::Ended::Budget {
                tell(
                    "the budget is spent, so the lab is not complete; raise [budget] and go on with --resume",
                );
            }
            let report = found(&lab, &kept, &results);
            let conclusions = report.studies.iter().map(|study| &*study.conclusion.words);
            write_stdout(&format!("{}\n", conclusions.collect::<Vec<_>>().join("\n")))?;
            tell(format_args!("page: {}", folder.join(PAGE).display()));
            let measured = results.runs.values().filter_map(|run| match &run.outcome {
                lab::journal::Outcome::Measured(measured) => Some(measured.verdict),
                _ => None,
            });
            // The best of them: verdicts are in order, and an invalid one is the worst.
            Ok(match measured.min() {
                None => ExitCode::from(Exit::Target as u8),
                Some(Verdict::Invalid) => ExitCode::from(Exit::Invalid as u8),
                Some(_) => ExitCode::SUCCESS,
            })
        }
    }
}

impl Args {
    /// The folder to resume, if it says everything.
    pub(super) fn resumes(&self) -> Option<&Path> {
        let by_folder = self.lab.is_none() && !self.page_only;
        self.resume.as_deref().filter(|_| by_folder)
    }
}

/// The lab file's text, and the folder that its paths start from.
fn read(name: &str) -> Result<(String, Home), Failure> {
    let path = Path::new(name);
    match reader::read_text(path) {
        Ok(text) => {
            let folder = path.parent().unwrap_or(Path::new("")).to_owned();
            Ok((text, Home::Folder(folder)))
        }
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => match shipped::lab(name) {
            Some(text) => Ok((text.to_owned(), Home::Shipped(name.to_owned()))),
            None => Err(Failure::new(
                Exit::Input,
                format!(
                    "no lab `{name}`: there is no such file; the built-in ones are {}",
                    shipped::labs().collect::<Vec<_>>().join(", ")
                ),
            )),
        },
        Err(cause) => Err(Failure::new(
            Exit::Input,
            format!("cannot read the lab `{name}`: {cause}"),
        )),
    }
}

/// Describes the runs that remain, for `--dry-run`.
fn plan(lab: &Lab, scenarios: &[lab::Scenario], results: &Results) -> String {
    let mut text = format!("{}\n\n", progress(lab, scenarios, results));
    for planned in lab::estimate::plan(lab.shown(), scenarios, results) {
        let lab::estimate::Planned {
            model, label, left, ..
        } = &planned;
        let time = left.seconds.map_or("unknown time".to_owned(), in_words);
        let name = if model.is_empty() {
            label.clone()
        } else {
            format!("{model}: {label}")
        };
        let (starts, runs) = (left.starts, left.runs);
        text.push_str(&format!("{name}\n  {starts} starts, {runs} runs, {time}\n"));
        text.push_str(&format!("  {}\n", planned.command));
    }
    text.push_str("What follows depends on what is measured: an option that helps is tried with the others.\n");
    clean::text(&text).into_owned()
}

fn progress(lab: &Lab, scenarios: &[lab::Scenario], results: &Results) -> String {
    let progress = lab::progress(lab, scenarios, results);
    let of = |left: &lab::estimate::Left| match left.seconds {
        Some(seconds) => format!("{} runs, some {}", left.runs, in_words(seconds)),
        None => format!("{} runs", left.runs),
    };
    format!(
        "done: {} runs in {}; this stage: {}; remaining: at least {}, at most {}",
        progress.done,
        in_words(progress.seconds),
        of(&progress.stage),
        of(&progress.at_least),
        of(&progress.if_all_help)
    )
}

fn parsed(path: &str, text: &str) -> Result<Lab, Failure> {
    Lab::parse(path, text).map_err(|error| {
        let mut faults = session::Faults::default();
        faults.scenario.extend(error.problems().iter().cloned());
        Failure::from(faults)
    })
}

/// Writes the page from what the lab's folder holds: the lab file as it was, its scenarios, and the
/// journal.
fn draw_again(folder: &Path) -> Result<ExitCode, Failure> {
    let (kept, lab, results) = opened(folder)?;
    write_page(folder, &lab, &kept, &results)?;
    tell(format_args!("page: {}", folder.join(PAGE).display()));
    Ok(ExitCode::SUCCESS)
}

/// Reads a lab's folder: the lab file as it was, its scenarios, and the results in the journal.
fn opened(folder: &Path) -> Result<(Kept, Lab, Results), Failure> {
    let path = folder.join(KEPT);
    let wrong = |cause: String| {
        let words = format!(
            "cannot read `{}`: {cause}; run the lab first, or name its folder with --resume",
            path.display()
        );
        Failure::new(Exit::Input, words)
    };
    let text = std::fs::read(&path).map_err(|cause| wrong(cause.to_string()))?;
    let kept: Kept = serde_json::from_slice(&text).map_err(|cause| wrong(cause.to_string()))?;
    let lab = parsed(&kept.path, &kept.text)?;
    Ok((kept, lab, OpenJournal::peek(folder)?))
}

/// Returns the report of a lab so far.
fn found(lab: &Lab, kept: &Kept, results: &Results) -> LabReport {
    // What is shown has no secrets.
    lab::findings::of(
        lab.shown(),
        &kept.scenarios,
        results,
        kept.previous.as_ref(),
    )
}

/// Writes the page in both forms, and what it is made of.
fn write_page(folder: &Path, lab: &Lab, kept: &Kept, results: &Results) -> Result<(), Failure> {
    let mut report = found(lab, kept, results);
    let studies = report.studies.iter();
    let runs: Vec<&RunReport> = studies
        .flat_map(|study| &study.trials)
        .flat_map(|trial| &trial.runs)
        .filter(|run| run.verdict.is_some())
        .collect();
    for scenario in &mut report.scenarios {
        let own = runs.iter().filter(|run| run.scenario == scenario.name);
        scenario.workload = workload(folder, own.map(|run| &*run.folder));
    }
    let page = lab::page::page(&report);
    replace(&folder.join(REPORT), json(&report)?.as_bytes())?;
    replace(&folder.join(MARKDOWN), page.markdown().as_bytes())?;
    replace(&folder.join(PAGE), page.html().as_bytes())
}

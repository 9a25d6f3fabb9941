//! `runner lab`: starts engines with the options of a lab file, measures them, and writes the page.

mod terminal;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use self::terminal::Terminal;
use super::artifacts::Artifacts;
use super::destination::replace;
use super::failure::{Exit, Failure};
use super::flags::Flags;
use super::interrupt::Interrupt;
use super::machines::{Machines, OnFleet};
use super::measure::environment;
use super::output::Within;
use super::print::{json, tell, write_stdout};
use super::saved::{block, workload};
use super::scenario::show;
use super::sources::sources;
use super::watch::Watch;
use super::{Cli, Command, resume};
use experiment::{Experiment, KEPT, OpenJournal, Place, Scenarios, opened};
use lab::estimate::{self, Timing};
use lab::findings::{LabReport, RunReport};
use lab::walk::SavedLab;
use lab::{Lab, Results, Trial};
use model::clean;
use model::duration::roughly;
use result::finding::Verdict;
use runs::folder::slug;

const PAGE: &str = "lab.html";
const MARKDOWN: &str = "lab.md";
const REPORT: &str = "lab-report.json";

/// Try an engine's options, one file for the whole experiment, and write the page
///
/// A lab file names engines with their launch commands, the options to vary, models, scenarios, an
/// objective with constraints, and a strategy. The lab starts each engine, waits until it answers,
/// measures every scenario against it, stops it, and decides what to try next. Everything is in the
/// lab's folder: a journal, a folder for each run, the engines' logs, and the page, as `lab.html`
/// and `lab.md`. An interrupted lab resumes. After a change of its file, a lab measures only the
/// changed part.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner lab labs/qwen.toml --dry-run     print the first starts and runs\n  \
        runner lab labs/qwen.toml               run it, or resume it\n  \
        runner lab --resume runs/qwen-lab       resume the lab in that folder\n  \
        runner lab labs/qwen.toml --page-only   write the page again from the journal\n\n\
        Exit codes: 0 done, 2 command line, 3 wrong lab file, scenario or input, 4 plugin, 5 no trial could be measured, \
        7 every run is invalid, 130 interrupted (--resume continues)")]
pub struct Args {
    /// The lab file, or a built-in one such as scenarios/labs/gpustack.toml
    #[arg(value_name = "LAB", required_unless_present_any = ["resume", "page_only"])]
    lab: Option<String>,
    /// Print the first starts and runs, and do nothing
    #[arg(long, env = "RUNNER_DRY_RUN", help_heading = "Lab")]
    dry_run: bool,
    /// Write the page again from the journal, and do nothing else
    #[arg(long, env = "RUNNER_PAGE_ONLY", conflicts_with = "dry_run", help_heading = "Lab")]
    page_only: bool,
    /// Resume the lab in this folder, with the lab file and the flags that the folder names
    ///
    /// Secrets are not kept: keys are read from the environment again, and headers have to be given
    /// again.
    #[arg(long, alias = "folder", value_name = "FOLDER", env = "RUNNER_LAB_RESUME")]
    #[arg(help_heading = "Result")]
    resume: Option<PathBuf>,
    #[command(flatten)]
    within: Within,
    #[command(flatten)]
    on_fleet: OnFleet,
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    watch: Watch,
    #[command(flatten)]
    artifacts: Artifacts,
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let (code, text) = conduct(args, resume::words(super::command))?;
    write_stdout(&text)?;
    Ok(code)
}

/// Returns the exit code and the text for stdout. `words` resume the lab.
fn conduct(args: &Args, words: Vec<String>) -> Result<(ExitCode, String), Failure> {
    args.artifacts.apply();
    let Some(path) = &args.lab else {
        return match (&args.resume, args.page_only) {
            (Some(folder), true) => draw_again(folder),
            _ => Err(Failure::command_line("name a lab file, or a lab's folder with --resume")),
        };
    };
    let (text, home) = Home::read(path)?;
    let lab = Lab::parse(path, &text)?;
    let folder = args.folder(&lab);
    if args.dry_run {
        let scenarios = scenarios(&lab, &home, &args.flags, true)?;
        let plan = plan(&lab, scenarios.all(), &OpenJournal::peek(&folder)?);
        return Ok((ExitCode::SUCCESS, plan));
    }
    if args.page_only {
        return draw_again(&folder);
    }
    let scenarios = scenarios(&lab, &home, &args.flags, false)?;
    let interrupt = Interrupt::listen()?;
    let machines = args.on_fleet.machines(&args.within.output_dir)?;
    let ordered = |order: &str| {
        let order = serde_json::from_str(order).map_err(Failure::cannot("read rank 0's order"))?;
        Ok(scenarios.ordered(&lab, &order)?)
    };
    let mut conclusions = String::new();
    let code = machines.conduct(ordered, &interrupt, || {
        let file = LabFile { path, text: &text, home: &home, lab: &lab, scenarios: &scenarios };
        let (code, found) = run(args, &file, words, &folder, &machines, &interrupt)?;
        conclusions = found;
        Ok(code)
    })?;
    Ok((code, conclusions))
}

struct LabFile<'l> {
    path: &'l String,
    text: &'l str,
    home: &'l Home,
    lab: &'l Lab,
    scenarios: &'l Scenarios,
}

/// Runs a lab in its folder, or resumes it.
fn run(
    args: &Args,
    file: &LabFile<'_>,
    words: Vec<String>,
    folder: &Path,
    machines: &Machines,
    interrupt: &Interrupt,
) -> Result<(ExitCode, String), Failure> {
    let LabFile { path, text, home, lab, scenarios } = *file;
    let saved = SavedLab {
        version: lab::journal::VERSION,
        path: path.clone(),
        text: scenarios.marked().redact(lab.kept()),
        scenarios: scenarios.all().to_vec(),
    };
    let displays = args.watch.begin()?;
    let mut journal = OpenJournal::open(folder, lab, text)?;
    journal.notes().iter().for_each(note);
    tell(format_args!("lab: {}", folder.display()));
    resume::keep(folder, words, None, scenarios.marked())?;
    // The lab's folder describes the lab wherever it is.
    replace(&folder.join(KEPT), json(&saved)?.as_bytes())?;
    // The page is drawn from the text without secrets, as when it is drawn again.
    let public = Lab::parse(path, &saved.text).map_err(|_| {
        Failure::input(format!(
            "`{path}` is no lab file without its secrets; write values that a plugin marks as secret as text between quotes"
        ))
    })?;
    let draw = |results: &Results| write_page(folder, &public, &saved, results);
    interrupt.between_runs(Some("stopping the engine"));
    let terminal = Terminal { machines, displays: &displays, interrupt };
    let place = Place {
        folder: folder.to_owned(),
        home: home.folder().map(Path::to_owned),
        environment: environment(None),
    };
    let experiment = Experiment::new(lab, scenarios, place, &terminal)?;
    let ended = experiment.conduct(&mut journal, draw)?;
    let results = journal.results();
    draw(results)?;
    match ended {
        None => {
            tell(format_args!(
                "interrupted; resume with `runner lab --resume {}`; the page so far: {}",
                folder.display(),
                folder.join(PAGE).display()
            ));
            Ok((Exit::Interrupted.into(), String::new()))
        }
        Some(ended) => {
            if ended == lab::LabEnd::Budget {
                tell(
                    "the budget is spent, so the lab is not complete; raise [budget] and continue with --resume",
                );
            }
            let report = found(lab, &saved, results);
            let conclusions = report.studies.iter().map(|study| &*study.conclusion.words);
            let text = format!("{}\n", conclusions.collect::<Vec<_>>().join("\n"));
            tell(format_args!("page: {}", folder.join(PAGE).display()));
            let measured = results.runs.values().filter_map(|run| match &run.outcome {
                lab::journal::Outcome::Measured(measured) => Some(measured.verdict),
                _ => None,
            });
            // The best of them: verdicts are in order, and an invalid one is the worst.
            let code = match measured.min() {
                None => Exit::Target.into(),
                Some(Verdict::Invalid) => Exit::Invalid.into(),
                Some(_) => ExitCode::SUCCESS,
            };
            Ok((code, text))
        }
    }
}

impl Args {
    /// The folder to resume, if it is the only instruction.
    pub(super) fn resumes(&self) -> Option<&Path> {
        let by_folder = self.lab.is_none() && !self.page_only;
        self.resume.as_deref().filter(|_| by_folder)
    }

    fn folder(&self, lab: &Lab) -> PathBuf {
        let named = || self.within.output_dir.join(format!("{}-lab", slug(&lab.name)));
        self.resume.clone().unwrap_or_else(named)
    }
}

/// The names of a lab's engines; `path` is a lab file or a lab's folder.
pub(super) fn engines(path: &Path) -> Result<Vec<String>, Failure> {
    let lab = if path.is_dir() { opened(path)?.1 } else { parsed(path)? };
    Ok(lab.engines.into_iter().map(|engine| engine.name).collect())
}

fn parsed(path: &Path) -> Result<Lab, Failure> {
    let path = path.display().to_string();
    Ok(Lab::parse(&path, &Home::read(&path)?.0)?)
}

/// Runs the lab of a file, or resumes it; its folder and exit code. A folder stays as it is.
pub(super) fn finished(path: &Path) -> Result<(PathBuf, ExitCode), Failure> {
    if path.is_dir() {
        return Ok((path.to_owned(), ExitCode::SUCCESS));
    }
    let words = ["runner".as_ref(), "lab".as_ref(), path.as_os_str()].map(ToOwned::to_owned);
    let read = Cli::from_words(&words).map_err(Failure::command_line)?;
    let Some(Command::Lab(args)) = read.command else {
        return Err(Failure::new(Exit::Bug, "`runner lab` is another command"));
    };
    let folder = args.folder(&parsed(path)?);
    let (code, _) = conduct(&args, vec![path.display().to_string()])?;
    Ok((folder, code))
}

/// The valid runs of a lab: the names of their engines, and their folders in the lab's.
pub(super) fn runs(folder: &Path) -> Result<Vec<(String, String)>, Failure> {
    let (saved, lab, results) = opened(folder)?;
    let report = found(&lab, &saved, &results);
    let trials = report.studies.into_iter().flat_map(|study| study.trials);
    let runs = trials.flat_map(|trial| {
        let valid = |run: &RunReport| run.verdict.is_some_and(|own| own != Verdict::Invalid);
        let runs = trial.runs.into_iter().filter(valid);
        runs.map(|run| (trial.engine.clone(), run.folder)).collect::<Vec<_>>()
    });
    Ok(runs.collect())
}

/// Reads the scenarios of a lab, with flags over them, and notes their open settings.
fn scenarios(lab: &Lab, home: &Home, flags: &Flags, for_plan: bool) -> Result<Scenarios, Failure> {
    let named = lab.scenarios.iter();
    let names: Vec<String> = named.map(|named| home.scenario(&named.value)).collect();
    let sources = sources(&names, flags)?;
    let scenarios = Scenarios::new(lab, home.folder(), sources, show::shown, for_plan)?;
    scenarios.notes().iter().for_each(note);
    Ok(scenarios)
}

fn note(message: &String) {
    tell(format_args!("note: {message}"));
}

fn plan(lab: &Lab, scenarios: &[lab::Scenario], results: &Results) -> String {
    let lab = lab.shown();
    let timing = Timing::new(scenarios, results);
    let starts = estimate::stage(lab, scenarios, results);
    let mut text = format!("{}\n\n", lab::progress(lab, scenarios, results));
    let mut trials: Vec<&Trial> = Vec::new();
    for start in &starts {
        if !trials.iter().any(|trial| trial.id == start.trial.id) {
            trials.push(&start.trial);
        }
    }
    for trial in trials {
        let own = starts.iter().filter(|start| start.trial.id == trial.id);
        let left = estimate::left(own, &timing);
        let time = left.seconds.map_or("unknown time".to_owned(), roughly);
        let model = match lab.models[trial.model].name.as_str() {
            "" => String::new(),
            model => format!("{model}: "),
        };
        let (label, starts, runs) = (lab.label(trial), left.starts, left.runs);
        text.push_str(&format!("{model}{label}\n  {starts} starts, {runs} runs, {time}\n"));
        text.push_str(&format!("  {}\n", trial.recorded(&lab.engines[trial.engine])));
    }
    text.push_str(
        "The next runs depend on these figures: an option that helps is tried with the others.\n",
    );
    clean::text(&text).into_owned()
}

/// Writes the page from the lab's folder: the lab file as it was, its scenarios, and the journal.
fn draw_again(folder: &Path) -> Result<(ExitCode, String), Failure> {
    let (saved, lab, results) = opened(folder)?;
    write_page(folder, &lab, &saved, &results)?;
    tell(format_args!("page: {}", folder.join(PAGE).display()));
    Ok((ExitCode::SUCCESS, String::new()))
}

fn found(lab: &Lab, kept: &SavedLab, results: &Results) -> LabReport {
    // The shown lab has no secrets.
    lab::findings::lab_report(lab.shown(), &kept.scenarios, results)
}

fn write_page(folder: &Path, lab: &Lab, kept: &SavedLab, results: &Results) -> Result<(), Failure> {
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
    for study in &mut report.studies {
        let trial =
            study.trials.iter().find(|own| study.conclusion.trial.as_ref() == Some(&own.id));
        let first = report.scenarios.first().map(|scenario| &scenario.name);
        let own = trial.iter().flat_map(|trial| trial.runs.iter().rev());
        let own = own.filter(|run| run.verdict.is_some() && Some(&run.scenario) == first);
        study.conclusion.block = block(folder, own.map(|run| &*run.folder));
    }
    let page = lab::page::page(&report);
    replace(&folder.join(REPORT), json(&report)?.as_bytes())?;
    replace(&folder.join(MARKDOWN), page.markdown().as_bytes())?;
    replace(&folder.join(PAGE), page.html().as_bytes())
}

impl From<experiment::Error> for Failure {
    fn from(error: experiment::Error) -> Self {
        let exit = match error {
            experiment::Error::Faults(faults) => return faults.into(),
            experiment::Error::NoScenario(_) | experiment::Error::Runtime(_) => Exit::Bug,
            _ => Exit::Input,
        };
        Failure::new(exit, error)
    }
}

/// The place of a lab file, from which its paths start.
enum Home {
    Folder(PathBuf),
    /// In the program, by this name.
    Shipped(String),
}

impl Home {
    fn read(name: &str) -> Result<(String, Self), Failure> {
        let path = Path::new(name);
        match (reader::read_text(path), shipped::lab(name)) {
            (Ok(text), _) => {
                let folder = path.parent().unwrap_or(Path::new("")).to_owned();
                Ok((text, Home::Folder(folder)))
            }
            (Err(cause), _) if cause.kind() != ErrorKind::NotFound => {
                Err(Failure::input(format!("cannot read the lab `{name}`: {cause}")))
            }
            (Err(_), Some(text)) => Ok((text.to_owned(), Home::Shipped(name.to_owned()))),
            (Err(_), None) => Err(Failure::input(format!(
                "no lab `{name}`: there is no such file; the built-in ones are {}",
                shipped::labs().collect::<Vec<_>>().join(", ")
            ))),
        }
    }

    fn folder(&self) -> Option<&Path> {
        match self {
            Home::Folder(folder) => Some(folder),
            Home::Shipped(_) => None,
        }
    }

    /// The place where a scenario of the lab is: beside the lab, or built in.
    fn scenario(&self, name: &str) -> String {
        match self {
            Home::Folder(folder) => match folder.join(name) {
                path if path.exists() => path.display().to_string(),
                _ => name.to_owned(),
            },
            Home::Shipped(lab) => {
                let mut parts: Vec<&str> = lab.split('/').collect();
                parts.pop();
                for part in name.split('/') {
                    match part {
                        "." => {}
                        ".." => drop(parts.pop()),
                        part => parts.push(part),
                    }
                }
                let beside = parts.join("/");
                let below = format!("{beside}/");
                let known = |known: &str| known == beside || known.starts_with(&below);
                if shipped::scenarios().any(known) { beside } else { name.to_owned() }
            }
        }
    }
}

//! `runner judge`: has a model judge the answers of a saved run.
//!
//! Owns the flags, the order of the steps and the places of the files. The judging is a run:
//! `measure::measured` makes it. `session::judging` makes prompts of answers and joins the verdicts
//! to them, and `runs::judged` computes the result.

mod before;
mod found;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::FalseyValueParser;

use self::before::{Before, JudgingFolder};
use self::found::found;
use super::artifacts::Artifacts;
use super::conclude::answered;
use super::failure::{Exit, Failure};
use super::flags::{JudgeKeys, backends};
use super::interrupt::Interrupt;
use super::measure::{Place, measured};
use super::output::Within;
use super::print::{json, tell, write_stdout};
use super::watch::Watch;
use reader::Located;
use runs::folder::RunFolder;
use runs::judged::TokenPrice;
use scenario::Scenario;
use session::judging::rubric::{Kind, Scale};
use session::parts::RunError;
use session::{Faults, Measured, Source, Variables, resolve};

/// Have a model judge the answers of a saved run
///
/// Asks the model at --base-url to grade each answer by a rubric, or with --baseline which of two
/// runs answered better. Each pair is shown in both orders, and a win counts only if both verdicts
/// agree. The judging is a run of its own, made of the same plugins: its folder has every prompt,
/// every answer of the judge and every failure. Questions are drawn again from the run's dataset,
/// so that must still be there.
///
/// Grades are saved as the score judge.grade, so thresholds, `runner report` and `runner compare`
/// know them. An answer without a verdict is counted as not judged, and never as a bad one.
///
/// Answers can try to steer the judge: they are put between marks and the rubrics that ship say to
/// take no notice of instructions in them, but no rubric prevents it.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner judge runs/qa --base-url http://127.0.0.1:8001                grades from 1 to 10\n  \
        runner judge runs/fp8 --baseline runs/bf16 --base-url http://judge:8000   which is better?\n  \
        runner judge runs/qa --base-url https://api.example --model large --sample 200 --repeat 3\n  \
        runner judge runs/qa --base-url http://judge:8000 --rubric tone.txt --scale 0-5\n\n\
        A rubric is a text with places in braces. For grades: {question}, {answer}, {reference},\n\
        {lowest}, {highest}. For pairs: {question}, {answer_a}, {answer_b}, {reference}. {nonce} makes\n\
        marks that no answer can close. It has to ask for the verdict as [[7]], or as [[A]], [[B]]\n\
        or [[C]] for a tie.\n\n\
        Exit codes: 0 done, 2 command line, 3 a run or the rubric cannot be used, 4 plugin,\n  \
        5 the judge is not reachable or every request failed,\n  \
        7 no answer of the judge held a verdict, 130 interrupted (the verdicts so far are saved)")]
pub struct Args {
    /// The run's folder
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Compare with the answers of this run to the same samples, instead of grading
    #[arg(long, value_name = "RUN", env = "RUNNER_JUDGE_BASELINE", help_heading = "Judging")]
    baseline: Option<PathBuf>,
    /// The judge's prompt, with places for question and answers [default: in the shape of
    /// MT-Bench's]
    #[arg(long, value_name = "FILE", env = "RUNNER_RUBRIC", help_heading = "Judging")]
    rubric: Option<PathBuf>,
    /// The worst and the best grade
    #[arg(
        long,
        value_name = "LOW-HIGH",
        env = "RUNNER_SCALE",
        default_value = "1-10",
        conflicts_with = "baseline",
        help_heading = "Judging"
    )]
    scale: Scale,
    /// Judge at most N answers; --seed decides which, the same samples in every run with that seed
    /// [default: all]
    #[arg(long, value_name = "N", env = "RUNNER_SAMPLE", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Judging")]
    sample: Option<u64>,
    /// Judge everything N times, and show how far the judge agrees with itself
    #[arg(long, alias = "repeats", value_name = "N", env = "RUNNER_JUDGE_REPEAT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = "Judging")]
    repeat: u32,
    /// Price of a million input and output tokens of the judge, to report what the verdicts cost
    #[arg(long, value_name = "IN,OUT", env = "RUNNER_PRICE_PER_MILLION", help_heading = "Judging")]
    price_per_million: Option<TokenPrice>,
    /// The backend that asks the judge, by its chat route: a name as in `runner run`, or a
    /// component [default: openai]
    #[arg(long, value_name = "NAME", env = "RUNNER_JUDGE_BACKEND", help_heading = "Plugins")]
    backend: Option<String>,
    /// Folders to search for plugins, separated as in PATH
    #[arg(long, value_name = "FOLDERS", env = "RUNNER_PLUGIN_PATH", help_heading = "Plugins")]
    plugin_path: Option<OsString>,
    #[command(flatten)]
    keys: JudgeKeys,
    /// Set any key of the judging's scenario, such as load.rate=2 or timeouts.request=10m;
    /// repeatable
    #[arg(
        long,
        value_name = "KEY=VALUE",
        env = "RUNNER_JUDGE_SET",
        hide_env_values = true,
        help_heading = "Scenario"
    )]
    set: Vec<String>,
    #[command(flatten)]
    within: Within,
    /// Print the result as JSON instead of text
    ///
    /// The JSON follows `runner schema judgement`.
    #[arg(long, env = "RUNNER_JSON", value_parser = FalseyValueParser::new(), help_heading = "Result")]
    json: bool,
    #[command(flatten)]
    watch: Watch,
    #[command(flatten)]
    artifacts: Artifacts,
}

/// Runs the subcommand.
///
/// # Errors
/// If a run or the rubric cannot be used, or the judge cannot be asked.
pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    args.artifacts.apply();
    let interrupt = Interrupt::listen()?;
    let over = args.said()?;
    let before = Before::look(args, over.load.seed())?;
    let watching = args.watch.begin()?;
    let bench = JudgingFolder::set_up(args, &before)?;
    let source = Source {
        scenario: Scenario {
            name: Some(Located::flag("runner judge", "judge".to_owned())),
            ..bench.scenario.clone().overlay(over)
        },
        variables: Variables::Process,
        ..args.source()
    };
    let place = Place { within: bench.folder.path(), repeat: None, overseer: None };
    let made = resolve(&source).map_err(Failure::from).and_then(|run| {
        run.remarks.iter().for_each(tell);
        measured(run, place, &watching, &interrupt)
    });
    let made = made.inspect_err(|_| bench.clear())?;
    let judged = found(args, &before, &bench, &made, interrupt.came())?;
    interrupt.done();
    write_stdout(&if args.json { json(&judged)? } else { report::judged::text(&judged) })?;
    tell(format_args!("judgement: {}", bench.folder.path().display()));
    let Measured { ended, kept, unjudged, summary, folder, .. } = made;
    match ended {
        Err(RunError::Panicked(panicked)) => {
            let words = format!("{panicked}. What was judged until then is saved");
            return Err(Failure::new(Exit::Bug, words));
        }
        ended => ended?,
    }
    if interrupt.came() {
        return Ok(ExitCode::from(Exit::Interrupted as u8));
    }
    answered(&summary)?;
    if let Some(unjudged) = unjudged {
        let (failures, first) = (unjudged.failures, unjudged.first);
        let words = format!("{failures} verdicts could not be read; the first error: {first}");
        return Err(Failure::new(Exit::Plugin, words));
    }
    kept?;
    match judged.requests.with_verdict {
        0 => Err(Failure::new(
            Exit::Invalid,
            format!(
                "no answer of the judge held a verdict; see what it said with `runner report {}`",
                folder.path().display()
            ),
        )),
        _ => Ok(ExitCode::SUCCESS),
    }
}

impl Args {
    /// Returns the kind of judging: answers are graded, or compared with others.
    fn kind(&self) -> Kind {
        match self.baseline {
            None => Kind::Single,
            Some(_) => Kind::Pair,
        }
    }

    /// The place where plugins are searched for.
    fn source(&self) -> Source {
        let paths = self.plugin_path.as_ref();
        Source {
            plugin_path: paths
                .map(|paths| std::env::split_paths(paths).collect())
                .unwrap_or_default(),
            shipped: shipped::PLUGINS,
            ..Source::default()
        }
    }

    /// The effect that flags say of the judging's scenario.
    fn said(&self) -> Result<Scenario, Failure> {
        let mut scenario = self.keys.scenario()?;
        if let Some(name) = &self.backend {
            let alias = backends::alias(name);
            let plugin = match (alias, name.ends_with(".wasm")) {
                (Some(alias), _) => backends::file(alias.plugin),
                (None, true) => name.clone(),
                (None, false) => backends::file(name),
            };
            scenario.backend.plugin = Some(Located::flag("--backend", plugin));
            // A judge is asked in conversations, whatever a benchmark of its engine would ask.
            let route = match alias {
                Some(alias) => alias.route,
                None => backends::chat_route(name),
            };
            if let Some(route) = route {
                let route = Located::flag("--backend", route.into());
                scenario.backend.config.set("route", route);
            }
        }
        let (assigned, problems) = Scenario::assigned(&self.set);
        if !problems.is_empty() {
            let faults = Faults { scenario: problems, ..Faults::default() };
            return Err(faults.into());
        }
        Ok(scenario.overlay(assigned))
    }

    /// The folder of the baseline.
    fn baseline(&self) -> Option<RunFolder> {
        self.baseline.as_deref().map(RunFolder::at)
    }
}

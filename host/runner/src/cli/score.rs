//! `runner score`: judges the answers of a saved run with further scorers.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::artifacts::Artifacts;
use super::failure::Failure;
use super::plugin::{Folders, meant};
use super::print::{json, tell, write_stdout};
use super::round::unscored;
use model::clean;
use model::exchange::Phase;
use model::simulation::simulated_acceptance;
use reader::Located;
use report::text::scores_alone;
use runs::assessment::Later;
use runs::folder::RunFolder;
use scenario::Scenario;
use session::assess::judge_again;
use session::{Judges, Source, judges};

/// Judge the answers of a saved run with further scorers
///
/// The run's folder has its answers and their references, so nothing is sent again. The new scores
/// are saved beside the run's scores, in scores.json; the measurements do not change. A score whose
/// name the run has already gets a number, such as exact-match.2. `runner report` and `runner
/// compare` know them all.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner score runs/20260102-030405-qa --scorer exact-match            a scorer that ships\n  \
        runner score runs/20260102-030405-qa --scorer ./my-scorer.wasm       one of your own\n  \
        runner score runs/20260102-030405-qa --scorer scorers.toml           all [[scorers]] of a scenario file, with \
        their configuration\n\n\
        Exit codes: 0 done, 3 the run or a scorer's configuration cannot be read, 4 a scorer did not load, or failed on answers")]
pub struct Args {
    /// The run's folder
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// A scorer's component or its name, or a scenario file (.toml) with [[scorers]]; repeatable
    #[arg(long = "scorer", value_name = "FILE", env = "RUNNER_SCORER", value_delimiter = ',')]
    #[arg(required = true)]
    scorers: Vec<String>,
    /// Print the result as JSON instead of text
    #[arg(long, env = "RUNNER_JSON")]
    json: bool,
    #[command(flatten)]
    folders: Folders,
    #[command(flatten)]
    artifacts: Artifacts,
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    args.artifacts.apply();
    let folder = RunFolder::at(&args.run);
    // Fails if this is no run's folder, before anything is compiled.
    let plan = folder.plan()?;
    let launch = plan.about.launch_command.as_deref();
    if let Some(setting) = launch.and_then(simulated_acceptance) {
        return Err(Failure::input(format!(
            "`{}` has no answers of the model to judge: the launch command of its engine sets `{}`, with which {} simulates the acceptance of drafts",
            args.run.display(),
            setting.name,
            setting.engine
        )));
    }
    let all = args.scorers.iter().map(|named| resolved(named, args.folders.paths()));
    let all: Vec<Judges> = all.collect::<Result<_, _>>()?;
    let mut has_answer = false;
    let read = folder.read()?.inspect(|exchange| {
        let exchange = exchange.as_ref();
        has_answer |= exchange.is_ok_and(|own| own.phase == Phase::Measure && own.is_ok());
    });
    let counted = folder.assessment()?.retokenized;
    let scorers: Vec<_> = all.iter().flat_map(|judges| judges.scorers.clone()).collect();
    let judged = judge_again(read, counted, &scorers)?;
    for line in all.iter().flat_map(|judges| judges.log.drain()) {
        tell(format_args!("{}", clean::line(&line)));
    }
    if !has_answer {
        return Err(no_answer(&args.run));
    }
    let (count, first) = (judged.error_count(), judged.errors.first().cloned());
    let facts = folder.facts()?;
    let names = facts.scores.keys().chain(facts.run_scores.keys());
    let taken: BTreeSet<String> = names.cloned().collect();
    let planned = all.into_iter().flat_map(|judges| judges.planned).collect();
    let at = jiff::Timestamp::now().to_string();
    let (later, renamed) = Later::new(at, planned, judged, &taken);
    for (old, new) in renamed {
        tell(format_args!("note: the run has a score `{old}` already; the new one is `{new}`"));
    }
    folder.add_later(later)?;
    let summary = folder.summarize(&folder.facts()?)?;
    folder.write(&summary)?;
    write_stdout(&if args.json { json(&summary.scores)? } else { scores_alone(&summary) })?;
    match first {
        Some(first) => Err(unscored(count, &first)),
        None => Ok(ExitCode::SUCCESS),
    }
}

pub(super) fn no_answer(run: &Path) -> Failure {
    let run = run.display();
    Failure::input(format!("`{run}` has no answer to judge: no measured request was answered"))
}

/// The scorers that a word on the command line stands for.
fn resolved(named: &str, plugin_path: Vec<PathBuf>) -> Result<Judges, Failure> {
    let mut source = Source { plugin_path, shipped: shipped::PLUGINS, ..Source::default() };
    if named.ends_with(".toml") {
        let path = Path::new(named);
        let text = fs::read_to_string(path).map_err(Failure::read("", path))?;
        let scenario = Scenario::parse(named, &text)?;
        source.scenario.scorers = scenario.scorers;
        source.scenario.sandbox = scenario.sandbox;
        source.folder = path.parent().map(Path::to_owned);
        if source.scenario.scorers.as_ref().is_none_or(Vec::is_empty) {
            return Err(Failure::input(format!(
                "`{named}` names no scorer; put one under [[scorers]]"
            )));
        }
    } else {
        source.plugins.push(Located::flag("--scorer", meant(named)?))
    }
    let judges = judges(&source)?;
    for remark in &judges.remarks {
        tell(format_args!("note: {remark}"));
    }
    Ok(judges)
}

//! `runner trend`: figures over time from the index of runs, and the confirmation of steps.
//!
//! `trend` judges, `report` draws, `store` has the runs. This module chooses runs, measures both
//! versions of a suspected step again by a lab, and prints.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::failure::{Exit, Failure};
use super::print::{json, tell, write_stdout};
use super::{lab, store as index};
use model::number::plural;
use report::over_time;
use result::figure::Figure;
use result::finding::Verdict;
use runs::folder::RunFolder;
use store::{Entry, Mode, Row, Store, Stored};
use trend::{Class, Confirmed, Key, Method, Run, Series, Step, Trends, confirm, judge};

/// The figures of a trend, unless others are chosen.
const FIGURES: [&str; 6] = [
    "ttft.median",
    "ttft.p99",
    "tpot.mean",
    "e2e.median",
    "throughput.output-tokens-per-s",
    "requests.success-share",
];

/// Runs of each version for a confirmation; ten find a step of twice the variation in 90 %.
const LEAST_RUNS: usize = 5;

/// Show figures over time, from the index of runs, and find steps between versions
///
/// Runs of one model, engine, hardware and scenario are a series. Runs of one version are a point:
/// the version is the tag `version`, else the engine's version, else the day. A step that history
/// alone shows is suspected: days differ, so it may be chance. --confirm measures both versions
/// again in turns, and only a confirmed step for the worse fails. No point is compared across a
/// change of the plan, the plugins, the program or the machine.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner store add runs --tag version=0.11.0          add the runs of a version\n  \
        runner trend                                        judge the newest version of each series\n  \
        runner trend --format html > trend.html             the same with charts\n  \
        runner trend --confirm versions.toml                measure both versions again, with a lab whose engines are named by the versions\n  \
        runner trend --confirm runs/versions-lab            confirm by a finished lab\n\n\
        Exit codes: 0 done, 3 the index or a lab cannot be read, 6 a step for the worse is confirmed")]
pub struct Args {
    /// Figures to follow [default: ttft.median,ttft.p99,tpot.mean,e2e.median,
    /// throughput.output-tokens-per-s,requests.success-share]
    #[arg(long = "metric", value_name = "FIGURE", env = "RUNNER_TREND_METRIC")]
    #[arg(value_delimiter = ',')]
    metrics: Vec<Figure>,
    /// Tag that names the version of a run
    #[arg(long, value_name = "TAG", env = "RUNNER_TREND_BY", default_value = "version")]
    by: String,
    /// Measure both versions of each suspected step again, with this lab, or read a finished one
    ///
    /// A lab file, or a lab's folder. The lab has an engine for each version, named by it: launched
    /// by the lab, or running at a `base-url`. Ten rounds (`repeats = 10`) decide most steps.
    #[arg(long, value_name = "LAB", env = "RUNNER_TREND_CONFIRM")]
    confirm: Option<PathBuf>,
    /// Class of steps for the worse that exit with 6
    #[arg(long, value_name = "CLASS", env = "RUNNER_TREND_FAIL_ON", value_enum, default_value_t = FailOn::Confirmed)]
    fail_on: FailOn,
    /// Output format
    #[arg(long, env = "RUNNER_TREND_FORMAT", value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    filters: index::Filters,
    #[command(flatten)]
    place: index::Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum FailOn {
    /// Confirmed steps
    Confirmed,
    /// Suspected steps too
    Suspected,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A table for the terminal
    Text,
    /// JSON that follows `runner schema trend`
    Json,
    /// A few lines for a comment on a change
    Markdown,
    /// A page for a browser, with a chart of each series
    Html,
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let mode = if args.confirm.is_some() { Mode::Write } else { Mode::Read };
    let mut store = args.place.open(mode)?;
    let mut trends = judged(&store, args)?;
    if let Some(path) = &args.confirm {
        let code = confirm_steps(&mut store, &trends, path)?;
        if code != ExitCode::SUCCESS {
            return Ok(code);
        }
        trends = judged(&store, args)?;
    }
    write_stdout(&match args.format {
        Format::Text => over_time::page(&trends).text(),
        Format::Json => json(&trends)?,
        Format::Markdown => over_time::comment(&trends),
        Format::Html => over_time::page(&trends).html(),
    })?;
    let failing = trends.series.iter().filter(|series| {
        let is_worse = series.step.as_ref().is_some_and(|step| step.is_worse == Some(true));
        let counts = match series.class {
            Class::Confirmed => true,
            Class::Suspected => args.fail_on == FailOn::Suspected,
            _ => false,
        };
        is_worse && counts
    });
    let failing = failing.map(|series| {
        let (class, key) = (series.class.name(), series.key.label());
        format!("{class} step for the worse: {}, {key}: {}", series.figure, series.reason())
    });
    Failure::of_any(Exit::Threshold, failing).map(|()| ExitCode::SUCCESS)
}

/// The series of the chosen runs, judged.
fn judged(store: &Store, args: &Args) -> Result<Trends, Failure> {
    let mut rows = store.runs(&args.filters.filter(None))?;
    let all = rows.len();
    rows.retain(|row| row.verdict.as_deref() != Some(Verdict::Invalid.name()));
    if rows.len() < all {
        let left_out = plural((all - rows.len()) as u64, "invalid run");
        tell(format_args!("note: {left_out} left out"));
    }
    let names: Vec<String> = match args.metrics.as_slice() {
        [] => FIGURES.map(str::to_owned).to_vec(),
        chosen => chosen.iter().map(ToString::to_string).collect(),
    };
    let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let by_id: BTreeMap<i64, &Row> = rows.iter().map(|row| (row.id, row)).collect();
    let mut series: BTreeMap<(&Key, String), (String, Vec<Run>)> = BTreeMap::new();
    for (id, figure) in store.figures(&ids, &names)? {
        let Some(row) = by_id.get(&id) else { continue };
        let Stored { name, value, low, high, unit } = figure;
        let (_, runs) = series.entry((&row.key, name)).or_insert_with(|| (unit, Vec::new()));
        runs.push(Run {
            started: row.started.clone(),
            version: row.tags.get(&args.by).or(row.engine_version.as_ref()).cloned(),
            method: Method {
                plan: row.plan.clone(),
                plugins: row.plugins.clone(),
                program: row.program.clone(),
            },
            machine: row.machine.clone(),
            value,
            interval: low.zip(high).map(|(low, high)| [low, high]),
        });
    }
    if series.is_empty() {
        return Err(Failure::input(
            "the index has no valid run that fits; add runs with `runner store add`, or change the filters",
        ));
    }
    let confirmed = store.confirmations()?;
    let judged = series
        .into_iter()
        .map(|((key, figure), (unit, runs))| judge(key.clone(), &figure, &unit, &runs, &confirmed));
    Ok(Trends { series: judged.collect() })
}

/// Confirms or refutes suspected steps by a lab's runs. Returns the lab's code if it is not 0.
fn confirm_steps(store: &mut Store, trends: &Trends, path: &Path) -> Result<ExitCode, Failure> {
    let suspected = trends.series.iter().filter_map(|series| {
        let step = series.step.as_ref().filter(|_| series.class == Class::Suspected)?;
        Some((series, step))
    });
    let suspected: Vec<(&Series, &Step)> = suspected.collect();
    if suspected.is_empty() {
        tell("no step is suspected, so nothing is measured again");
        return Ok(ExitCode::SUCCESS);
    }
    let engines = lab::engines(path)?;
    check_engines(&suspected, &engines, path)?;
    let (folder, code) = lab::finished(path)?;
    if code != ExitCode::SUCCESS {
        return Ok(code);
    }
    let runs = measured(&folder)?;
    let mut missing = Vec::new();
    for (series, step) in suspected {
        let values = |version: &String| -> Vec<f64> {
            let own = runs
                .iter()
                .filter(|(engine, entry)| engine == version && entry.row.key == series.key);
            own.filter_map(|(_, entry)| {
                let figure = entry.figures.iter().find(|figure| figure.name == series.figure);
                figure.map(|figure| figure.value)
            })
            .collect()
        };
        let (old, new) = (values(&step.last_good), values(&step.first_bad));
        if old.len().min(new.len()) < LEAST_RUNS {
            missing.push(format!(
                "{}, {}: the lab has {} of {} and {} of {} with this model, engine, hardware and scenario; at least {LEAST_RUNS} of each are needed, and `repeats = 10` is advised",
                series.figure,
                series.key.label(),
                plural(old.len() as u64, "run"),
                step.last_good,
                plural(new.len() as u64, "run"),
                step.first_bad,
            ));
            continue;
        }
        let found = confirm(&old, &new);
        store.confirm(&Confirmed {
            key: series.key.clone(),
            figure: series.figure.clone(),
            old_version: step.last_good.clone(),
            new_version: step.first_bad.clone(),
            verdict: found.verdict,
            p: found.p,
            time: jiff::Timestamp::now().to_string(),
        })?;
        tell(format_args!(
            "{}, {}: {} by {} and {} runs, p {}",
            series.figure,
            series.key.label(),
            found.verdict.name(),
            old.len(),
            new.len(),
            trend::probability(found.p)
        ));
    }
    Failure::of_any(Exit::Input, missing).map(|()| ExitCode::SUCCESS)
}

/// Checks that the lab has an engine for each version, before anything is measured.
fn check_engines(
    suspected: &[(&Series, &Step)],
    engines: &[String],
    path: &Path,
) -> Result<(), Failure> {
    let versions = suspected.iter().flat_map(|(_, step)| [&step.last_good, &step.first_bad]);
    let mut missing: Vec<&String> = versions.filter(|version| !engines.contains(version)).collect();
    missing.sort();
    missing.dedup();
    Failure::of_any(
        Exit::Input,
        missing.into_iter().map(|version| {
            format!(
                "`{}` has no engine named `{version}`; a suspected step lies between versions, and the lab's engines are named by them",
                path.display()
            )
        }),
    )
}

/// The runs of a lab that are not invalid, with the names of their engines.
fn measured(folder: &Path) -> Result<Vec<(String, Entry)>, Failure> {
    let mut runs = Vec::new();
    for (engine, run) in lab::runs(folder)? {
        if let Some(entry) = Entry::read(&RunFolder::at(&folder.join(run)))? {
            runs.push((engine, entry));
        }
    }
    Ok(runs)
}

//! `runner sweep`: one scenario at a list of loads.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::artifacts::Artifacts;
use super::failure::{Exit, Failure};
use super::flags::Flags;
use super::interrupt::Interrupt;
use super::loads::{self, Amount};
use super::machines::{Machines, OnFleet, ordered};
use super::measure::Place;
use super::print::{json, tell, write_stdout};
use super::saved::Keep;
use super::sources::Text;
use super::watch::Watch;
use super::{resume, rules};
use report::sweep::{Sweep, SweptRun, page, text};
use result::figure::Figure;
use result::finding::Verdict;
use search::Load;
use search::sweep::{At, order, series};
use session::Source;

/// Measure a scenario at several loads, and show throughput against latency
///
/// Measures a run at each load, from the lowest to the highest, and then again for each repeat. The
/// result is a table, the knee of the curve, and the Pareto front. Beyond the knee, more load
/// brings latency and little throughput. The front has the loads that no other load beats in both.
/// Runs that are not valid take no part in either. The sweep's folder has a page with the curve,
/// `sweep.html`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner sweep chat.toml --rates 1,2,4,8,inf\n  \
        runner sweep chat.toml --rates 1:16:1 --duration 60s --repeat 3\n  \
        runner sweep --concurrencies 1..256x2 --backend vllm --base-url http://127.0.0.1:8000\n  \
        runner sweep --resume runs/20260102-030405-chat-sweep\n\n\
        Lists: 1,2,4 are loads; 1:16:3 goes from 1 to 16 in steps of 3; 1..64x2 doubles from 1 to 64.\n\n\
        Exit codes: 0 done, 2 command line, 3 wrong scenario or input, 4 plugin, 5 target not reachable, 7 every run \
        is invalid, 130 interrupted (--resume continues)")]
#[command(next_help_heading = "Sweep")]
pub struct Args {
    /// A scenario: a file, a built-in one, or `-` for stdin
    #[arg(value_name = "SCENARIO", help_heading = None)]
    scenarios: Vec<String>,
    /// Requests per second, such as 1,2,4 or 1:16:1 or 1..64x2; `inf` sends all at once
    #[arg(long, value_name = "LIST", env = "RUNNER_RATES")]
    #[arg(required_unless_present_any = ["concurrencies", "session_counts", "resume"])]
    rates: Option<String>,
    /// Requests in flight, such as 1..256x2
    #[arg(long, value_name = "LIST", env = "RUNNER_CONCURRENCIES", conflicts_with = "rates")]
    concurrencies: Option<String>,
    /// Sessions under way, such as 1..64x2
    #[arg(long, value_name = "LIST", env = "RUNNER_SESSION_COUNTS")]
    #[arg(conflicts_with_all = ["rates", "concurrencies"])]
    session_counts: Option<String>,
    /// The rules of a published benchmark whose result is a curve, such as agentx
    #[arg(long, value_name = "NAME", env = "RUNNER_SWEEP_PRESET")]
    preset: Option<String>,
    /// Measure although the scenario contradicts rules of the preset; the runs are invalid
    #[arg(long, env = "RUNNER_SWEEP_LOOSEN_RULES", requires = "preset")]
    loosen_rules: bool,
    /// Measure every load N times, with a seed of its own for each time
    #[arg(long, value_name = "N", env = "RUNNER_SWEEP_REPEAT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// The figure to maximise, for the knee and the Pareto front
    #[arg(long, value_name = "FIGURE", env = "RUNNER_THROUGHPUT")]
    #[arg(default_value = "throughput.output-tokens-per-s")]
    throughput: Figure,
    /// The figure to minimise, for the Pareto front
    #[arg(long, value_name = "FIGURE", env = "RUNNER_LATENCY", default_value = "e2e.p99")]
    latency: Figure,
    #[command(flatten)]
    on_fleet: OnFleet,
    #[command(flatten)]
    flags: Flags,
    /// Resume the sweep in this folder, with its saved scenario and flags
    ///
    /// Further flags override the saved ones. Secrets are not kept: keys are read from the
    /// environment again, and headers have to be given again.
    #[arg(long, value_name = "FOLDER", env = "RUNNER_SWEEP_RESUME", help_heading = "Result")]
    resume: Option<PathBuf>,
    #[command(flatten)]
    pub(super) keep: Keep,
    #[command(flatten)]
    watch: Watch,
    #[command(flatten)]
    artifacts: Artifacts,
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let words = resume::words(super::command);
    args.artifacts.apply();
    let interrupt = Interrupt::listen()?;
    let (load, loads) = args.loads()?;
    let (source, named) = args.keep.source(&args.scenarios, &args.flags)?;
    let source = args.ruled(source, load)?;
    let machines = args.on_fleet.machines(args.keep.output_dir())?;
    let ordered = |order: &str| ordered(&source, order);
    machines.conduct(ordered, &interrupt, || {
        sweep(args, (load, &loads), (&source, named.as_ref()), words, &machines, &interrupt)
    })
}

/// Makes the runs of the sweep.
fn sweep(
    args: &Args,
    (load, loads): (Load, &[At]),
    (source, named): (&Source, Option<&Text>),
    words: Vec<String>,
    machines: &Machines,
    interrupt: &Interrupt,
) -> Result<ExitCode, Failure> {
    let runs = order(loads, args.repeat, source.scenario.load.seed());
    let fresh = Sweep {
        load,
        throughput: args.throughput.to_string(),
        latency: args.latency.to_string(),
        planned: runs.iter().map(|run| run.at).collect(),
        runs: Vec::new(),
    };
    let (saved, kept) =
        args.keep.open::<Sweep>("sweep", args.resume.as_deref(), source, words, named)?;
    let mut sweep = kept.unwrap_or_else(|| fresh.clone());
    let same = Sweep { runs: Vec::new(), ..sweep.clone() };
    if same != fresh {
        return Err(saved.differs("loads, repeats or figures"));
    }
    saved.write(&sweep)?;
    saved.tell();
    let displays = args.watch.begin()?;
    interrupt.between_runs(Some("ending the sweep"));
    let count = runs.len();
    for run in runs.iter().skip(sweep.runs.len()) {
        tell(report::sweep::begins(load, run, count));
        let amount = Amount { load, at: run.at, requests: None, seed: Some(run.seed) };
        let place = Place { within: saved.folder(), repeat: None, overseer: None };
        let source = loads::with(source, amount);
        let measured = machines.measured(&source, &amount, place, &displays, interrupt);
        interrupt.done();
        if interrupt.came() {
            return Ok(saved.interrupted());
        }
        let measured = measured?;
        measured.ended?;
        let folder = measured.folder.path().file_name().unwrap_or_default();
        let figures = [&args.throughput, &args.latency];
        let swept = SweptRun::new(run, &folder.to_string_lossy(), &measured.summary, figures);
        tell(report::sweep::ended(load, &swept));
        sweep.runs.push(swept);
        saved.write(&sweep)?;
        saved.draw(sweep.folders(), |name, workload| page(&sweep, name, workload))?;
    }
    saved.draw(sweep.folders(), |name, workload| page(&sweep, name, workload))?;
    let shown = if args.keep.json { json(&sweep.result())? } else { text(&sweep) };
    write_stdout(&shown)?;
    saved.tell();
    let any = (sweep.runs.iter()).any(|run| run.verdict != Verdict::Invalid);
    Ok(if any { ExitCode::SUCCESS } else { Exit::Invalid.into() })
}

impl Args {
    /// The folder to resume, if it is the only instruction.
    pub(super) fn resumes(&self) -> Option<&Path> {
        let has_others = !self.scenarios.is_empty()
            || [&self.rates, &self.concurrencies, &self.session_counts]
                .iter()
                .any(|list| list.is_some());
        self.resume.as_deref().filter(|_| !has_others)
    }

    /// The scenario, under the rules of the benchmark if one is named.
    fn ruled(&self, source: Source, load: Load) -> Result<Source, Failure> {
        let Some(name) = &self.preset else { return Ok(source) };
        let preset = rules::named(name)?;
        match (preset.tiers.is_empty(), preset.load == load) {
            (false, _) => Err(rules::preset_of("search", name)),
            (true, false) => {
                let message =
                    format!("`{name}` varies the number of sessions: give --session-counts");
                Err(Failure::command_line(message))
            }
            (true, true) => rules::applied(preset, source, self.loosen_rules),
        }
    }

    fn loads(&self) -> Result<(Load, Vec<At>), Failure> {
        let (load, list) = match (&self.rates, &self.concurrencies, &self.session_counts) {
            (_, Some(list), _) => (Load::Concurrency, list),
            (_, _, Some(list)) => (Load::Sessions, list),
            (Some(list), ..) => (Load::Rate, list),
            (None, None, None) => {
                return Err(Failure::command_line("give loads with --rates"));
            }
        };
        let loads =
            series(load, list).map_err(|mistakes| Failure::several(Exit::CommandLine, mistakes))?;
        Ok((load, loads))
    }
}

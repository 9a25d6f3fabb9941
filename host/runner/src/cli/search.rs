//! `runner search`: makes the runs that a search asks for, until it has its answer.

mod probes;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use self::probes::Probes;
use super::artifacts::Artifacts;
use super::failure::{Exit, Failure};
use super::flags::Flags;
use super::interrupt::Interrupt;
use super::machines::{Machines, OnFleet, ordered};
use super::needs::refused;
use super::print::{json, tell, write_stdout};
use super::saved::Keep;
use super::sources::Text;
use super::watch::Watch;
use super::{resume, rules};
use model::number::share;
use report::search::{Searched, page, text};
use search::slo::tiers;
use search::{Answer, Config, Load, Search, Step};
use session::Source;

const MOST: u64 = 100_000_000;

/// Requests of a search without a limit: this multiple of the likely number, or full loads.
const OF_LIKELY: u64 = 8;
const FULL_LOADS: u64 = 4;

/// Find the highest load at which the engine keeps its service level objectives
///
/// Runs at one load after the other. The results of earlier runs choose each load: first the load
/// is doubled (or halved) until one load seems to hold and one does not; then loads are placed
/// about the crossing, until a regression over all loads gives an interval that is narrow enough.
/// The lower end of the interval is measured once more. The answer is the interval: the highest
/// load that was shown to hold, and the lowest load that was shown not to hold.
///
/// An objective such as `ttft.p99 < 500ms` holds if at most 1 % of the requests that are due miss
/// it; failed and unsent requests miss it. Times to the first token and to the end count from the
/// due time (`ttft-from-due`), so that a client that is held back does not make the engine look
/// fast. An interval of 20 % takes about 15,000 requests, and an interval of 5 % about 20,000,
/// where a simulation explains the misses; 50,000 and 235,000 to 400,000 where none does. A search
/// ends earlier with `--within` or `--requests-in-all`, and always has a best estimate. The
/// search's folder has a page with every load and its decision, `search.html`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner search --slo 'ttft.p99<500ms' --slo 'tpot.p99<50ms' --start 4 \\\n           \
            --backend vllm --base-url http://127.0.0.1:8000 --random-input-len 512\n  \
        runner search chat.toml --slo 'chat: ttft.p99<1s; tpot.p99<50ms' --slo 'batch: e2e.p95<60s'\n  \
        runner search chat.toml --load concurrency --slo 'tpot.p99<30ms'\n  \
        runner search chat.toml --slo 'ttft.p99<500ms' --start 4 --within 10m\n  \
        runner search --resume runs/20260102-030405-chat-search\n\n\
        The scenario's own arrival keeps its shape (poisson, unless it says constant or gamma); its rate, concurrency, \
        number of requests and seed are the search's.\n\n\
        Exit codes: 0 a load holds for every tier, 2 command line, 3 wrong scenario or input, 4 plugin, 5 target not \
        reachable, 6 for some tier no load was shown to hold, 130 interrupted (--resume continues)")]
#[command(next_help_heading = "Search")]
pub struct Args {
    /// A scenario: a file, a built-in one, or `-` for stdin
    #[arg(value_name = "SCENARIO", help_heading = None)]
    scenarios: Vec<String>,
    /// An objective, or a tier of several with a name; repeatable
    ///
    /// `ttft.p99<500ms`: a metric that each request has one of, a percentile, a time. Objectives
    /// without a name hold together. `chat: ttft.p99<1s; tpot.p99<50ms` is a tier of its own with
    /// an answer of its own.
    #[arg(long, value_name = "SLO", env = "RUNNER_SLO")]
    #[arg(required_unless_present_any = ["preset", "resume"])]
    slo: Vec<String>,
    /// The objectives and run lengths of a published benchmark, such as mlperf-server
    #[arg(long, value_name = "NAME", env = "RUNNER_SEARCH_PRESET", conflicts_with = "slo")]
    preset: Option<String>,
    /// Load to vary: requests per second, requests in flight, or sessions under way
    #[arg(long = "load", value_name = "WHAT", env = "RUNNER_LOAD", default_value = "rate", value_parser = ["rate", "concurrency", "sessions"])]
    load: String,
    /// The first load to try
    #[arg(long, value_name = "LOAD", env = "RUNNER_START", default_value_t = 1.0)]
    start: f64,
    /// The lowest load to try [default: a 1024th of the first one, or 1]
    #[arg(long, value_name = "LOAD", env = "RUNNER_LEAST")]
    least: Option<f64>,
    /// The highest load to try [default: 1024 times the first one]
    #[arg(long, value_name = "LOAD", env = "RUNNER_MOST")]
    most: Option<f64>,
    /// Width of the interval to reach, as a share of its lower end
    #[arg(long, value_name = "SHARE", env = "RUNNER_WIDTH", default_value = "20%")]
    #[arg(value_parser = share)]
    width: f64,
    /// The probability that the interval misses the highest load that holds, half of it on either
    /// side
    #[arg(long, value_name = "SHARE", env = "RUNNER_ALPHA", default_value = "5%")]
    #[arg(value_parser = share)]
    alpha: f64,
    /// Requests to spend on one load, at most
    #[arg(long, value_name = "N", env = "RUNNER_REQUESTS_EACH", default_value_t = 100_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=MOST))]
    requests_each: u64,
    /// Requests to spend on the search, at most [default: 400000, more for a narrow --width or a
    /// high --start; with --within or --preset no limit]
    #[arg(long, value_name = "N", env = "RUNNER_REQUESTS_IN_ALL")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    requests_in_all: Option<u64>,
    /// Time of the whole search, at most
    ///
    /// The search plans its loads for this time, and then states its best estimate. It prints the
    /// likely time before its first request.
    #[arg(long, value_name = "TIME", env = "RUNNER_WITHIN")]
    within: Option<model::duration::Span>,
    /// Loads to try, at most
    #[arg(long, value_name = "N", env = "RUNNER_LOADS", default_value_t = 40)]
    #[arg(value_parser = clap::value_parser!(u32).range(2..=200))]
    loads: u32,
    /// Send requests for at least this long in each run at a rate
    #[arg(long, value_name = "TIME", env = "RUNNER_RUN_FOR", default_value = "10s")]
    run_for: model::duration::Span,
    /// Do not measure the lower end of the interval once more with a run of its own
    #[arg(long, env = "RUNNER_NO_CONFIRM")]
    no_confirm: bool,
    #[command(flatten)]
    on_fleet: OnFleet,
    #[command(flatten)]
    flags: Flags,
    /// Resume the search in this folder, with its saved scenario and flags
    ///
    /// Given flags override the saved flags. Secrets are not saved: keys are read from the
    /// environment again, and headers have to be given again.
    #[arg(long, value_name = "FOLDER", env = "RUNNER_SEARCH_RESUME", help_heading = "Result")]
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
    let (source, named) = args.keep.source(&args.scenarios, &args.flags)?;
    let source = args.ruled(source)?;
    let machines = args.on_fleet.machines(args.keep.output_dir())?;
    let ordered = |order: &str| ordered(&source, order);
    machines.conduct(ordered, &interrupt, || {
        search(args, &source, named.as_ref(), words, &machines, &interrupt)
    })
}

/// Makes runs until the search has its answer.
fn search(
    args: &Args,
    source: &Source,
    named: Option<&Text>,
    words: Vec<String>,
    machines: &Machines,
    interrupt: &Interrupt,
) -> Result<ExitCode, Failure> {
    let begun = Search::new(args.config(source)?)
        .map_err(|mistakes| Failure::several(Exit::CommandLine, mistakes.lines()))?;
    let (saved, kept) =
        args.keep.open::<Searched>("search", args.resume.as_deref(), source, words, named)?;
    let mut state =
        kept.unwrap_or_else(|| Searched { runs: Vec::new(), search: begun.clone(), answer: None });
    if state.search.config() != begun.config() {
        return Err(saved.differs("objectives or bounds"));
    }
    saved.write(&state)?;
    saved.tell();
    for line in report::search::forecast(&state.search) {
        tell(line);
    }
    let displays = args.watch.begin()?;
    let within = saved.folder();
    let probes = Probes { source, within, machines, displays: &displays, interrupt };
    interrupt.between_runs(Some("ending the search"));
    let answer = loop {
        let probe = match state.search.next() {
            Step::Done(answer) => break answer,
            Step::Probe(probe) => probe,
        };
        tell(report::search::begins(&probe));
        let left = state.search.seconds_left();
        let left = left.and_then(|left| Duration::try_from_secs_f64(left).ok());
        let made = probes.make(&probe, &state.search.config().tiers, left);
        // A search that ends early has its answer too.
        if (interrupt.came() || made.is_err()) && !state.runs.is_empty() {
            write_stdout(&args.shown(&state.search.answer())?)?;
        }
        if interrupt.came() {
            return Ok(saved.interrupted());
        }
        let (report, run) = made?;
        let number = report.probe.number;
        state.search.report(report).map_err(|error| {
            Failure::new(Exit::Bug, format!("the search took no report: {error}"))
        })?;
        state.runs.push((number, run));
        saved.write(&state)?;
        saved.draw(state.folders(), |name, of| page(&state, name, of))?;
        for line in report::search::ended(&state.search, number) {
            tell(line);
        }
    };
    state.answer = Some((*answer).clone());
    saved.write(&state)?;
    saved.draw(state.folders(), |name, of| page(&state, name, of))?;
    write_stdout(&args.shown(&answer)?)?;
    saved.tell();
    let holds = answer.tiers.iter().all(|found| found.passed.is_some());
    Ok(if holds { ExitCode::SUCCESS } else { Exit::Threshold.into() })
}

impl Args {
    fn shown(&self, answer: &Answer) -> Result<String, Failure> {
        if self.keep.json { json(answer) } else { Ok(text(answer)) }
    }

    /// The folder to resume, if it says everything.
    pub(super) fn resumes(&self) -> Option<&Path> {
        let has_others =
            !self.scenarios.is_empty() || !self.slo.is_empty() || self.preset.is_some();
        self.resume.as_deref().filter(|_| !has_others)
    }

    /// The scenario, under the rules of the benchmark if one is named.
    fn ruled(&self, source: Source) -> Result<Source, Failure> {
        match &self.preset {
            Some(name) => rules::applied(rules::named(name)?, source, false),
            None => Ok(source),
        }
    }

    fn config(&self, source: &Source) -> Result<Config, Failure> {
        let mut config = match &self.preset {
            Some(name) => rules::named(name)?
                .config(self.start)
                .ok_or_else(|| rules::preset_of("sweep", name))?,
            None => self.own()?,
        };
        config.least = self.least.unwrap_or(config.least);
        config.most = self.most.unwrap_or(config.most);
        config.width = self.width;
        config.alpha = self.alpha;
        config.requests_each = self.requests_each.max(16 * config.requests_least);
        let is_open_ended = self.preset.is_none() && self.within.is_none();
        let full = FULL_LOADS * config.requests_at(config.start);
        let usual = full.max(OF_LIKELY * config.likely_requests());
        config.requests_in_all = self.requests_in_all.or(is_open_ended.then_some(usual));
        config.seconds_in_all = self.within.map(|most| most.0.as_secs_f64());
        config.loads = self.loads;
        config.seconds_least = config.seconds_least.max(self.run_for.0.as_secs_f64());
        config.confirm = !self.no_confirm;
        config.seed = source.scenario.load.seed();
        Ok(config)
    }

    fn own(&self) -> Result<Config, Failure> {
        let tiers = tiers(self.slo.iter().map(String::as_str))
            .map_err(|mistakes| refused("--slo", mistakes))?;
        let load = match &*self.load {
            "concurrency" => Load::Concurrency,
            "sessions" => Load::Sessions,
            _ => Load::Rate,
        };
        Ok(Config::new(load, tiers, self.start))
    }
}

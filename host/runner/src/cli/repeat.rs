//! `runner run --repeat N` and `--until`: measures every scenario N times, or until a figure is
//! certain enough, alternating, and shows the spread of the repeats.
//!
//! Scenarios alternate (A B A B), so that slow changes, such as a machine that warms up, affect all
//! of them alike. Each run has a folder of its own, which records the repeats that it belongs to.

use std::process::ExitCode;
use std::time::Instant;

use super::failure::Failure;
use super::interrupt::Interrupt;
use super::output::Output;
use super::print::{json, tell, write_stdout};
use super::round::{Round, failed, measure};
use super::watch::Watch;
use compare::until::{Ended, Known, Stopped, Until};
use compare::variation::repeats;
use result::figure::{Figure, Statistic};
use result::finding::Verdict;
use result::summary::Summary;
use runs::Repeat;
use scenario::Scenario;
use scenario::plan::Plan;
use session::{ResolvedRun, Source, resolve};

/// The number of repeats, and their requests.
#[derive(Clone, Copy)]
pub(super) struct Repetition<'a> {
    /// The figures whose precision ends the repeats; empty for a fixed number.
    pub until: &'a [Until],
    /// The number of repeats, at most if they stop themselves.
    pub of: u32,
    /// All repeats send the same requests; else each draws its own with the next seed.
    pub same_requests: bool,
}

/// A scenario and the results of its repeats.
struct Repeated {
    source: Source,
    group: String,
    draft: Plan,
    /// Resolved only to find mistakes, and not yet measured.
    ready: Option<ResolvedRun>,
    summaries: Vec<Summary>,
    /// The time that its runs took, all together.
    seconds: f64,
}

/// Measures every scenario that many times, or until the figures are certain enough. The exit code
/// is the first failed run's. Fails if the first run cannot begin.
pub(super) fn exec(
    sources: Vec<Source>,
    repetition: Repetition<'_>,
    output: &Output,
    watch: &Watch,
    interrupt: &Interrupt,
) -> Result<ExitCode, Failure> {
    let Repetition { until, of, same_requests } = repetition;
    let mut scenarios = Vec::new();
    let began = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
    for (number, source) in (1..).zip(sources) {
        let resolved = with_figures(resolve(&source)?, until);
        resolved.remarks.iter().for_each(tell);
        scenarios.push(Repeated {
            source,
            group: format!("{began}-{}-{number}", std::process::id()),
            draft: resolved.draft.clone(),
            ready: Some(resolved),
            summaries: Vec::new(),
            seconds: 0.0,
        });
    }
    let may_be_cached =
        |scenario: &Repeated| !scenario.draft.control.flush_cache && !scenario.draft.load.salted;
    if same_requests && scenarios.iter().any(may_be_cached) {
        tell(
            "note: repeats send the same prompts; a server with a prefix cache answers them faster from the second repeat on, unless --cache flush clears it, or --cache salt makes the prompts of each repeat new",
        );
    }
    for until in until {
        tell(until.forecast(of));
    }
    let watching = watch.begin()?;
    let mut first_failure: Option<ExitCode> = None;
    let mut ended = Ended::Most;
    let at_most = if until.is_empty() { "" } else { "at most " };
    'rounds: for number in 1..=of {
        for scenario in &mut scenarios {
            if interrupt.came() {
                ended = Ended::Interrupted;
                break 'rounds;
            }
            tell(format_args!("== {}, {number} of {at_most}{of} ==", scenario.draft.name));
            let mut round = Round {
                repeat: Some(Repeat { group: scenario.group.clone(), number, of }),
                ..Round::default()
            };
            let began = Instant::now();
            let code = scenario
                .again(repetition, number)
                .and_then(|resolved| measure(resolved, output, &watching, interrupt, &mut round));
            scenario.seconds += began.elapsed().as_secs_f64();
            scenario.summaries.extend(round.summary);
            if let Some(code) = failed(code) {
                first_failure.get_or_insert(code);
            }
        }
        if !until.is_empty() && is_over(&scenarios, until, number)? {
            ended = Ended::Reached;
            break;
        }
    }
    if interrupt.came() && ended == Ended::Most {
        ended = Ended::Interrupted;
    }
    for scenario in &scenarios {
        let stopped = (!until.is_empty()).then(|| Stopped {
            because: ended,
            most: of,
            known: scenario.known(until),
        });
        print(scenario, stopped, repetition, output.json)?;
    }
    Ok(first_failure.unwrap_or(ExitCode::SUCCESS))
}

/// Prints each figure's certainty, and returns true if all suffice. A missing figure fails.
fn is_over(scenarios: &[Repeated], until: &[Until], rounds: u32) -> Result<bool, Failure> {
    let mut is_over = true;
    for scenario in scenarios {
        for known in scenario.known(until) {
            is_over &= known.is_reached;
            let is_valid = |summary: &Summary| summary.verdict != Verdict::Invalid;
            if known.runs == 0 && scenario.summaries.iter().any(is_valid) {
                return Err(Failure::input(format!(
                    "--until: the run of {} has no {}, so no number of repeats makes it certain; name a figure that the run reports",
                    scenario.draft.name, known.figure
                )));
            }
            let each = scenario.seconds / f64::from(rounds);
            let name = match scenarios.len() {
                1 => String::new(),
                _ => format!("{}: ", scenario.draft.name),
            };
            let time = |more: usize| model::duration::roughly(each * more as f64);
            tell(format_args!("{name}{}", known.progress(time)));
        }
    }
    Ok(is_over)
}

/// A run that reports the percentiles of --until.
fn with_figures(mut resolved: ResolvedRun, until: &[Until]) -> ResolvedRun {
    let percentiles = &mut resolved.draft.percentiles;
    for until in until {
        if let Figure::Of(_, Statistic::Percentile(percent)) = until.figure
            && !percentiles.contains(&percent)
        {
            percentiles.push(percent);
        }
    }
    resolved
}

impl Repeated {
    /// Returns the precision of each figure.
    fn known(&self, until: &[Until]) -> Vec<Known> {
        until.iter().map(|until| until.known(&self.summaries)).collect()
    }

    /// The run to measure again: plugins, tokenizer and files must not have changed.
    fn again(&mut self, repetition: Repetition<'_>, number: u32) -> Result<ResolvedRun, Failure> {
        if let Some(ready) = self.ready.take() {
            return Ok(ready);
        }
        let (mut source, mut expected) = (self.source.clone(), self.draft.clone());
        if !repetition.same_requests {
            let seed = self.draft.load.seed.wrapping_add(u64::from(number - 1));
            expected.load.seed = seed;
            let mut over = Scenario::default();
            over.say("load.seed", "--repeat", &[seed.to_string()])
                .map_err(Failure::command_line)?;
            source.scenario = source.scenario.overlay(over);
        }
        let resolved = with_figures(resolve(&source)?, repetition.until);
        if resolved.draft != expected {
            return Err(Failure::input(format!(
                "{}: a plugin, the tokenizer or a file changed since the first repeat; do not change them while repeats run",
                self.draft.name
            )));
        }
        Ok(resolved)
    }
}

fn print(
    scenario: &Repeated,
    stopped: Option<Stopped>,
    repetition: Repetition<'_>,
    as_json: bool,
) -> Result<(), Failure> {
    let figures: Vec<Figure> = repetition.until.iter().map(|until| until.figure.clone()).collect();
    let stopped = stopped.map(|stopped| (stopped, figures.as_slice()));
    let mut repeats = repeats(&scenario.draft.name, &scenario.summaries, stopped);
    repeats.new_requests = !repetition.same_requests;
    let shown = if as_json {
        json(&repeats)?
    } else {
        format!("\n{}", report::repeats::page(&repeats).text())
    };
    write_stdout(&shown)
}

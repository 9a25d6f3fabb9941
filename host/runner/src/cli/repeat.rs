//! `runner run --repeat N`: measures every scenario N times, alternating, and shows how far the repeats differ.
//!
//! Scenarios alternate (A B A B), so that slow changes, such as a machine that warms up, affect all of
//! them alike. Each run has a folder of its own, which records what the run is a repeat of.

use std::process::ExitCode;

use super::failure::{Exit, Failure};
use super::interrupt::Interrupt;
use super::print::{json, tell, write_stdout};
use super::run::{Args, Round, failed, measure};
use super::sources::sources;
use report::repeat::{Repeat, repeats};
use result::summary::Summary;
use session::{Draft, Resolved, Source, resolve};

/// A scenario and the results of its repeats.
struct Repeated {
    source: Source,
    group: String,
    draft: Draft,
    /// Resolved only to find mistakes, and not yet measured.
    ready: Option<Resolved>,
    summaries: Vec<Summary>,
}

/// Measures every scenario that many times. The exit code is that of the first run that failed.
///
/// # Errors
/// If the first run cannot begin.
pub(super) fn exec(args: &Args, of: u32, interrupt: &Interrupt) -> Result<ExitCode, Failure> {
    let mut scenarios = Vec::new();
    let began = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
    for (number, source) in (1..).zip(sources(&args.scenarios, &args.flags)?) {
        let resolved = resolve(&source)?;
        resolved.remarks.iter().for_each(tell);
        scenarios.push(Repeated {
            source,
            group: format!("{began}-{}-{number}", std::process::id()),
            draft: resolved.draft.clone(),
            ready: Some(resolved),
            summaries: Vec::new(),
        });
    }
    if scenarios
        .iter()
        .any(|scenario| !scenario.draft.control.flush_cache && !scenario.draft.load.salted)
    {
        tell(
            "note: repeats send the same prompts; a server with a prefix cache answers them faster from the second repeat on, unless --cache flush clears it, or --cache salt makes the prompts of each repeat new",
        );
    }
    let watching = args.watch.begin()?;
    let mut first_failure: Option<ExitCode> = None;
    'rounds: for number in 1..=of {
        for scenario in &mut scenarios {
            if interrupt.came() {
                break 'rounds;
            }
            tell(format_args!(
                "== {}, {number} of {of} ==",
                scenario.draft.name
            ));
            let mut round = Round {
                repeat: Some(Repeat {
                    group: scenario.group.clone(),
                    number,
                    of,
                }),
                ..Round::default()
            };
            let code = scenario.again().and_then(|resolved| {
                measure(resolved, &args.output, &watching, interrupt, &mut round)
            });
            scenario.summaries.extend(round.summary);
            if let Some(code) = failed(code) {
                first_failure.get_or_insert(code);
            }
        }
    }
    for scenario in &scenarios {
        print(scenario, args.output.json)?;
    }
    Ok(first_failure.unwrap_or(ExitCode::SUCCESS))
}

impl Repeated {
    /// The run, to be measured again: plugins, tokenizer and files are read again, and must not have changed.
    fn again(&mut self) -> Result<Resolved, Failure> {
        if let Some(ready) = self.ready.take() {
            return Ok(ready);
        }
        let resolved = resolve(&self.source)?;
        if resolved.draft != self.draft {
            let words = format!(
                "{}: a plugin, the tokenizer or a file changed since the first repeat; do not change them while repeats run",
                self.draft.name
            );
            return Err(Failure::new(Exit::Input, words));
        }
        Ok(resolved)
    }
}

fn print(scenario: &Repeated, as_json: bool) -> Result<(), Failure> {
    let repeats = repeats(&scenario.draft.name, &scenario.summaries);
    let shown = match as_json {
        false => format!("\n{}", report::repeats::text(&repeats)),
        true => json(&repeats)?,
    };
    write_stdout(&shown)
}

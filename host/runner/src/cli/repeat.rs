//! `runner run --repeat N`: every scenario N times, in turns, and how far the repeats are apart.
//!
//! Scenarios take turns (A B A B), so that what changes slowly, as a machine that warms up, falls on
//! all of them alike. Each run has a folder of its own; what they are repeats of is written there.

use std::process::ExitCode;

use super::failure::{Exit, Failure, tell};
use super::interrupt::Interrupt;
use super::run::{Args, Round, measure, write_stdout};
use super::sources::sources;
use report::repeat::{Repeat, repeats};
use result::summary::Summary;
use session::{Draft, Resolved, Source, resolve};

/// A scenario, and what came of its repeats.
struct Repeated {
    source: Source,
    group: String,
    draft: Draft,
    /// Resolved to see what is wrong with it, and not yet measured.
    ready: Option<Resolved>,
    summaries: Vec<Summary>,
}

/// Measures every scenario so many times. The exit code is that of the first run that was not well.
///
/// # Errors
/// What keeps the first run from beginning.
pub(super) fn exec(args: &Args, of: u32) -> Result<ExitCode, Failure> {
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
        .any(|scenario| !scenario.draft.control.flush_cache)
    {
        tell(
            "note: repeats ask the same prompts; a server that remembers prefixes answers them sooner from the second time on, unless --flush-cache has it forget",
        );
    }
    let watching = args.watch.begin()?;
    let interrupt = Interrupt::listen()
        .map_err(|cause| Failure::new(Exit::Bug, format!("cannot listen for signals: {cause}")))?;
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
                summary: None,
            };
            let code = scenario.again().and_then(|resolved| {
                measure(resolved, &args.output, &watching, &interrupt, &mut round)
            });
            scenario.summaries.extend(round.summary);
            let code = match code {
                Ok(0) => continue,
                Ok(code) => ExitCode::from(code),
                Err(failure) => failure.report(),
            };
            first_failure.get_or_insert(code);
        }
    }
    for scenario in &scenarios {
        print(scenario, args.output.json)?;
    }
    Ok(first_failure.unwrap_or(ExitCode::SUCCESS))
}

impl Repeated {
    /// The run, to be measured again: plugins, tokenizer and files are read anew, and must be what they were.
    fn again(&mut self) -> Result<Resolved, Failure> {
        if let Some(ready) = self.ready.take() {
            return Ok(ready);
        }
        let resolved = resolve(&self.source)?;
        if resolved.draft != self.draft {
            let words = format!(
                "{}: a plugin, the tokenizer or a file of it is another than it was for the first repeat; leave them as they are while repeats are made",
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
        true => serde_json::to_string_pretty(&repeats)
            .map(|text| text + "\n")
            .map_err(|cause| Failure::new(Exit::Bug, format!("cannot write JSON: {cause}")))?,
    };
    write_stdout(&shown)
}

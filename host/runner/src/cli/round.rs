//! Runs that are measured, printed and concluded, one after the other.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use super::conclude::conclude;
use super::failure::Failure;
use super::interrupt::Interrupt;
use super::measure::{Place, measured};
use super::output::{Output, print};
use super::print::tell;
use super::watch::{Displays, Watch};
use result::summary::Summary;
use runs::Repeat;
use session::ResolvedRun;

/// Measures one run after the other. The exit code is the first failed run's.
pub(crate) fn measure_all(
    runs: Vec<ResolvedRun>,
    output: &Output,
    watch: &Watch,
    interrupt: &Interrupt,
) -> Result<ExitCode, Failure> {
    let displays = watch.begin()?;
    let several = runs.len() > 1;
    // Runs of one target have the same remarks.
    let mut printed = BTreeSet::new();
    let remarks = runs.iter().flat_map(|run| &run.remarks);
    remarks.filter(|line| printed.insert(*line)).for_each(tell);
    let mut first_failure: Option<ExitCode> = None;
    for resolved in runs {
        if several {
            tell(format_args!("== {} ==", resolved.draft.name));
        }
        let code = measure(resolved, output, &displays, interrupt, &mut Round::default());
        let Some(code) = failed(code) else { continue };
        first_failure.get_or_insert(code);
        if interrupt.came() {
            break;
        }
    }
    Ok(first_failure.unwrap_or(ExitCode::SUCCESS))
}

/// Reports why a run failed; its code, if it did.
pub(super) fn failed(code: Result<u8, Failure>) -> Option<ExitCode> {
    match code {
        Ok(0) => None,
        Ok(code) => Some(ExitCode::from(code)),
        Err(failure) => Some(failure.report()),
    }
}

/// One of several repeats, or a run by itself.
#[derive(Default)]
pub(super) struct Round {
    /// Its number among the repeats.
    pub repeat: Option<Repeat>,
    /// The summary, as soon as it is known.
    pub summary: Option<Summary>,
    /// The run's folder, as soon as there is a result in it.
    pub folder: Option<PathBuf>,
}

/// Measures one run, from preflight to result, and prints the result.
pub(super) fn measure(
    resolved: ResolvedRun,
    output: &Output,
    displays: &Displays,
    interrupt: &Interrupt,
    round: &mut Round,
) -> Result<u8, Failure> {
    let lines = output.lines()?;
    let place =
        Place { within: &output.within.output_dir, repeat: round.repeat.clone(), overseer: None };
    let measured = measured(resolved, place, displays, interrupt);
    let printed = measured.and_then(|measured| {
        round.summary = Some(measured.summary.clone());
        round.folder = Some(measured.folder.path().to_owned());
        print(&measured.summary, output, lines, &measured.folder)?;
        Ok(measured)
    });
    interrupt.done();
    conclude(printed?, interrupt, output)
}

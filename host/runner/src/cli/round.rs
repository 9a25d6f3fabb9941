//! Runs that are measured, printed and concluded, one after the other.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use super::failure::{Exit, Failure};
use super::interrupt::Interrupt;
use super::measure::{Place, measured};
use super::output::{Output, print};
use super::print::tell;
use super::watch::{Displays, Watch};
use report::build::invalid;
use result::summary::Summary;
use runs::Repeat;
use session::parts::RunError;
use session::{MeasuredRun, ResolvedRun, Unjudged};

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

// The exit code of a reported run: it depends on the run's end, on the measured requests, and on
// the thresholds.

pub(super) fn conclude(
    measured: MeasuredRun,
    interrupt: &Interrupt,
    output: &Output,
) -> Result<u8, Failure> {
    let MeasuredRun { ended, summary, unjudged, kept, folder, .. } = measured;
    match ended {
        Err(RunError::Panicked(panicked)) => {
            let folder = folder.path().display();
            let message = format!("{panicked}; the measurements so far are in {folder}");
            return Err(Failure::new(Exit::Bug, message));
        }
        ended => ended?,
    }
    let code = if interrupt.came() {
        Exit::Interrupted as u8
    } else {
        answered(&summary)?;
        if let Some(Unjudged { failures: count, first }) = unjudged {
            return Err(unscored(count, &first));
        }
        judge(&summary, output.allows_invalid())?
    };
    kept?;
    Ok(code)
}

pub(super) fn unscored(count: u64, first: &str) -> Failure {
    let message = format!("{count} answers could not be scored; the first error: {first}");
    Failure::new(Exit::Plugin, message)
}

/// Makes sure that a run has an answer.
pub(super) fn answered(summary: &Summary) -> Result<(), Failure> {
    let requests = &summary.requests;
    if requests.total == 0 {
        return Err(Failure::input("no request was made: the dataset produced no sample"));
    }
    if requests.successful == 0 && requests.failed > 0 {
        let first = requests.failures.iter().min_by_key(|(_, failures)| failures.first);
        let first = first.map(|(class, failures)| {
            let message = failures.messages.first().map_or("", |message| &message.text);
            format!("{}: {message}", class.name())
        });
        let message =
            format!("every request failed; the first failure: {}", first.unwrap_or_default());
        return Err(Failure::new(Exit::Target, message));
    }
    Ok(())
}

/// The exit code of the measurements. No threshold holds for an invalid measurement.
fn judge(summary: &Summary, invalid_is_allowed: bool) -> Result<u8, Failure> {
    let matters = !invalid_is_allowed || !summary.thresholds.is_empty();
    if let (Some(why), true) = (invalid(summary), matters) {
        let allow = match summary.thresholds.as_slice() {
            [] => " (--allow-invalid makes this exit with 0)",
            _ => "",
        };
        let message = format!("the measurement is invalid: {why}{allow}");
        return Err(Failure::new(Exit::Invalid, message));
    }
    let broken = summary.thresholds.iter().filter(|checked| !checked.held);
    let broken = broken.map(|checked| {
        format!("threshold `{}` does not hold: {}", checked.threshold, checked.outcome())
    });
    Failure::of_any(Exit::Threshold, broken).map(|()| 0)
}

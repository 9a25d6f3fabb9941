//! The exit code of a reported run: it depends on the run's end, on the measured requests, and on
//! the thresholds.

use super::failure::{Exit, Failure};
use super::interrupt::Interrupt;
use super::output::Output;
use report::build::invalid;
use result::summary::Summary;
use session::parts::RunError;
use session::{MeasuredRun, Unjudged};

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

//! Limits of a script's values.

use std::time::Duration;

use model::duration::{self, Span};

/// The longest time that a script may set: a deadline must fit every clock.
pub(super) const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

pub(super) fn possible_number(number: f64, most: f64) -> Result<(), String> {
    if !(0.0..=most).contains(&number) {
        return Err(format!("expected a number from 0 to {most}, found {number}"));
    }
    Ok(())
}

pub(super) fn possible_span(span: Span) -> Result<(), String> {
    if span.0 > LONGEST {
        return Err(format!("at most {} is possible", duration::format(LONGEST)));
    }
    Ok(())
}

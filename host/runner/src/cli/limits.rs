//! Limits on figures in flags: all mistakes are reported at once, each with its flag.

use std::fmt::Display;
use std::str::FromStr;

use super::failure::{Exit, Failure};
use result::limit::{self, LimitError};

/// The limits that a repeated flag states, or the mistakes in each.
pub(super) fn limits<T>(flag: &str, texts: &[String]) -> Result<Vec<T>, Failure>
where
    T: FromStr<Err = LimitError>,
{
    limit::all(texts.iter().map(String::as_str)).map_err(|errors| refused(flag, errors))
}

pub(super) fn refused<E: Display>(flag: &str, errors: Vec<E>) -> Failure {
    let errors = errors.iter().map(|error| format!("{flag}: {error}"));
    Failure::several(Exit::CommandLine, errors)
}

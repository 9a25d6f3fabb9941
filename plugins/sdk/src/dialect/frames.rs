//! Frames of JSON: their reading, and the error for a frame that is not of the API, with the
//! frame's beginning.

use std::fmt::Display;

use serde::Deserialize;

use super::explain;
use crate::Error;

/// Most bytes of a frame in a message.
const SHOWN: usize = 120;

/// Reads a frame; `expected` names it, such as `an event of the Messages API`. One check of the
/// whole text costs less than a check of every string in it.
///
/// # Errors
/// [`Error::Protocol`] if it is something else.
pub fn json<'a, T: Deserialize<'a>>(data: &'a [u8], expected: &str) -> Result<T, Error> {
    let text = str::from_utf8(data).map_err(|error| unexpected(data, expected, &error))?;
    serde_json::from_str(text).map_err(|error| unexpected(data, expected, &error))
}

/// The error for an unexpected frame.
pub fn unexpected(data: &[u8], expected: &str, why: &dyn Display) -> Error {
    Error::Protocol(format!("expected {expected}, got `{}`: {why}", explain::excerpt(data, SHOWN)))
}

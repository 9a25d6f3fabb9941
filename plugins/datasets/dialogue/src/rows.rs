//! The lines of a file, and errors that name them.

pub use runner_plugin::json::parse;

use runner_plugin::json::Lines;
use runner_plugin::{Error, Files};
use serde_json::{Map, Value};

use crate::messages::shortened;
use crate::{FILE, LONGEST_WAIT};

/// Lines of the file `data`, one by one; each can be put back.
pub struct Rows {
    lines: Lines,
    kept: Option<(u64, Vec<u8>)>,
}

impl Rows {
    /// Reads from the beginning of the file; `None` if the scenario names none.
    pub fn open(files: &dyn Files) -> Option<Self> {
        let lines = Lines::new(files.open(FILE)?);
        Some(Self { lines, kept: None })
    }

    /// The next line that is not blank, with its number from 1.
    pub fn line(&mut self) -> Result<Option<(u64, Vec<u8>)>, Error> {
        match self.kept.take() {
            Some(kept) => Ok(Some(kept)),
            None => self.lines.line(),
        }
    }

    pub fn put_back(&mut self, number: u64, line: Vec<u8>) {
        self.kept = Some((number, line));
    }
}

/// The error for a line of the file `data`.
pub fn wrong(number: u64, cause: &str) -> Error {
    Error::InvalidInput(format!("file `{FILE}`, line {number}: {cause}"))
}

/// The error for a first line of no known format; `expected` names their keys.
pub fn unknown(number: u64, expected: &str, fields: &Map<String, Value>) -> Error {
    let keys: Vec<String> = fields.keys().take(6).map(|key| shortened(key)).collect();
    let found =
        if keys.is_empty() { "no key".to_owned() } else { format!("`{}`", keys.join("`, `")) };
    wrong(number, &format!("expected a line with {expected}; found {found}"))
}

/// Seconds as nanoseconds. Errors: the message, with the expected range; `field` is the name.
pub fn nanoseconds(field: &str, seconds: f64) -> Result<u64, String> {
    if (0.0..=LONGEST_WAIT).contains(&seconds) {
        return Ok((seconds * 1e9).round() as u64);
    }
    Err(format!("`{field}` is {seconds} seconds; expected from 0 to {LONGEST_WAIT}, 30 days"))
}

#[cfg(test)]
mod tests {
    use runner_plugin_testing::files::Named;

    use super::*;

    #[test]
    fn a_line_that_was_put_back_comes_again() {
        assert!(Rows::open(&Named::default()).is_none());
        let files = Named::default().with_bytes(FILE, "a\n\nb\n");
        let mut rows = Rows::open(&files).expect("a file");
        let first = rows.line().expect("readable").expect("a line");
        assert_eq!(first, (1, b"a".to_vec()));
        rows.put_back(first.0, first.1.clone());
        assert_eq!(rows.line(), Ok(Some(first)));
        assert_eq!(rows.line(), Ok(Some((3, b"b".to_vec()))));
        assert_eq!(rows.line(), Ok(None));
    }

    #[test]
    fn waits_have_bounds() {
        assert_eq!(nanoseconds("delay", 0.5), Ok(500_000_000));
        for seconds in [-1.0, f64::NAN, f64::INFINITY, 3e6] {
            let message = nanoseconds("delay", seconds).expect_err("a mistake");
            assert!(message.starts_with("`delay` is "), "{message}");
        }
    }
}

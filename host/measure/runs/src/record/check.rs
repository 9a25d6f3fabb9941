//! The check that a file of records holds all records of the run.

use std::path::Path;

use sha2::{Digest, Sha256};

use super::lines::Lines;
use super::{MOST_UNREADABLE, Parser, RecordError, Written};
use result::summary::Damage;

/// The end of a run, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd<'a> {
    Wrote(&'a Written),
    /// It came to its end, but a version of the runner that did not count wrote it.
    Uncounted,
    /// It was killed, continues, or could not write any more: its file may end anywhere.
    Anywhere,
}

/// Finds the damage of a run's records; none if the file holds exactly the written records.
pub fn check(folder: &Path, ended: RunEnd<'_>) -> Result<Option<Damage>, RecordError> {
    if let RunEnd::Wrote(written) = ended
        && is_what_was_written(folder, written)?
    {
        return Ok(None);
    }
    let mut lines = Lines::open(folder)?;
    let (mut number, mut readable, mut in_a_row) = (0u64, 0u64, 0u64);
    let mut first = None;
    let mut parser = Parser::default();
    let end = loop {
        number += 1;
        let line = match lines.next_line() {
            Ok(Some(line)) => line,
            Ok(None) => break None,
            Err(cause) => break Some(format!("it breaks off in line {number}: {cause}")),
        };
        match parser.parsed(line) {
            Ok(_) => {
                readable += 1;
                in_a_row = 0;
            }
            Err(cause) => {
                first.get_or_insert_with(|| format!("line {number} is not a record: {cause}"));
                in_a_row += 1;
            }
        }
        if in_a_row >= MOST_UNREADABLE {
            break Some(format!(
                "the {MOST_UNREADABLE} lines up to line {number} are not records, so the rest was not read"
            ));
        }
    };
    // The end of a file is no damage where the run ended there.
    let end = end.filter(|_| ended != RunEnd::Anywhere || in_a_row >= MOST_UNREADABLE);
    let found = first.or(end);
    let (written, found) = match ended {
        RunEnd::Anywhere | RunEnd::Uncounted => match found {
            None => return Ok(None),
            Some(found) => (None, found),
        },
        RunEnd::Wrote(Written { count, .. }) => {
            let found = found.unwrap_or_else(|| match readable.cmp(count) {
                std::cmp::Ordering::Less => "lines were taken out of it".to_owned(),
                std::cmp::Ordering::Equal => "lines of it were changed".to_owned(),
                std::cmp::Ordering::Greater => "lines were added to it".to_owned(),
            });
            (Some(*count), found)
        }
    };
    Ok(Some(Damage { written, readable, found }))
}

/// True if the lines are exactly the written lines.
fn is_what_was_written(folder: &Path, written: &Written) -> Result<bool, RecordError> {
    let mut lines = Lines::open(folder)?;
    let mut digest = Sha256::new();
    let mut count = 0;
    while let Ok(Some(line)) = lines.next_line() {
        digest.update(line);
        count += 1;
        if count > written.count {
            return Ok(false);
        }
    }
    Ok(count == written.count && model::hex(&digest.finalize()) == written.sha256)
}

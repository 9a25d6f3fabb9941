//! Expectations: files of a case that define a plugin's expected output. They are compared with the
//! actual output, and rewritten on request.

use similar::TextDiff;

use super::report::{Failure, Written};
use super::store::Store;

/// Lines of context around a difference.
const CONTEXT: usize = 3;

/// Compares the output with the files of a case; with `bless`, writes them instead. `None`
/// means that there was no output, so the file must not exist.
pub fn compare(
    store: &mut Store,
    found: &[(&'static str, Option<String>)],
    bless: bool,
) -> (Vec<Failure>, Vec<Written>) {
    let mut failures = Vec::new();
    let mut written = Vec::new();
    for (file, found) in found {
        let expected = store.read(file).ok();
        let expected = expected.map(|bytes| String::from_utf8_lossy(&bytes).replace("\r\n", "\n"));
        if is_same(expected.as_deref(), found.as_deref()) {
            continue;
        }
        if bless {
            match store.write(file, found.as_deref()) {
                Ok(()) => {
                    written.push(Written { file: (*file).to_owned(), removed: found.is_none() })
                }
                Err(cause) => failures.push(Failure::Unwritable {
                    file: (*file).to_owned(),
                    cause: cause.to_string(),
                }),
            }
            continue;
        }
        failures.push(Failure::Differs {
            file: (*file).to_owned(),
            expected: expected.is_some(),
            found: found.is_some(),
            diff: diff(
                expected.as_deref().unwrap_or_default(),
                found.as_deref().unwrap_or_default(),
            ),
        });
    }
    (failures, written)
}

/// Editors add a final newline, or remove it; that is not a difference.
fn is_same(expected: Option<&str>, found: Option<&str>) -> bool {
    match (expected, found) {
        (Some(expected), Some(found)) => {
            expected == found || Some(expected) == found.strip_suffix('\n')
        }
        (None, None) => true,
        _ => false,
    }
}

pub fn diff(expected: &str, found: &str) -> String {
    TextDiff::from_lines(expected, found)
        .unified_diff()
        .context_radius(CONTEXT)
        .header("expected", "found")
        .to_string()
}

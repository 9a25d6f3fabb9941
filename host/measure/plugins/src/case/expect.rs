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
        // Editors add a final newline, or remove it; that is not a difference.
        let open = found.as_deref().and_then(|found| found.strip_suffix('\n'));
        if expected == *found || expected.is_some() && expected.as_deref() == open {
            continue;
        }
        let file = (*file).to_owned();
        if bless {
            match store.write(&file, found.as_deref()) {
                Ok(()) => written.push(Written { file, removed: found.is_none() }),
                Err(cause) => {
                    failures.push(Failure::Unwritable { file, cause: cause.to_string() });
                }
            }
            continue;
        }
        let [before, after] = [&expected, found].map(|text| text.as_deref().unwrap_or_default());
        let diff = diff(before, after);
        let (expected, found) = (expected.is_some(), found.is_some());
        failures.push(Failure::Differs { file, expected, found, diff });
    }
    (failures, written)
}

pub fn diff(expected: &str, found: &str) -> String {
    TextDiff::from_lines(expected, found)
        .unified_diff()
        .context_radius(CONTEXT)
        .header("expected", "found")
        .to_string()
}

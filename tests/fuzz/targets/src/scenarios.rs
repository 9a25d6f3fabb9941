//! Scenarios.

use miette::Diagnostic;
use reader::ScenarioError;
use scenario::Scenario;

/// A scenario's text. Mistakes have messages with places within the text. A correct scenario can be
/// shown, repeated as flags, and laid over itself, and stays the same.
pub fn scenario(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let scenario = match Scenario::parse("scenario.toml", text) {
        Ok(scenario) => scenario,
        Err(error) => return check_message(&error, text),
    };
    if let Err(error) = scenario.validate() {
        check_message(&error, text);
    }
    let entries = scenario.entries();
    let entries_of = |scenario: &Scenario| -> Vec<(String, String)> {
        scenario.entries().into_iter().map(|entry| (entry.path, entry.value)).collect()
    };
    let same = scenario.clone().overlay(scenario.clone());
    assert_eq!(entries_of(&scenario), entries_of(&same), "laid over itself");
    // Entries of lists have places, which an assignment cannot name.
    if entries.iter().all(|entry| !entry.path.contains('[')) {
        let assignments: Vec<String> =
            entries.iter().map(|entry| format!("{}={}", entry.path, entry.value)).collect();
        let (again, problems) = Scenario::assigned(&assignments);
        assert!(problems.is_empty(), "{assignments:?}: {}", ScenarioError::new(problems));
        assert_eq!(entries_of(&scenario), entries_of(&again), "with --set");
    }
}

/// Mistakes that can be shown: each has words, and a place within the text.
pub(crate) fn check_message(error: &ScenarioError, text: &str) {
    assert!(!error.problems().is_empty());
    assert!(!error.to_string().is_empty());
    for problem in error.problems() {
        assert!(!problem.message().is_empty());
        for label in problem.labels().into_iter().flatten() {
            let end = label.offset() + label.len();
            assert!(end <= text.len(), "{problem}: a place behind the end");
            if let Some(source) = problem.source_code() {
                source.read_span(label.inner(), 1, 1).expect("its lines can be shown");
            }
        }
    }
}

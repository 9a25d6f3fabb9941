//! Reading a scenario: TOML in, [`Scenario`] and problems out. The tables declare the keys, and
//! [`check`](super::check) judges the values.

use reader::{Place, Problem, parse_assignment, parse_table};

use crate::field::{Field, Table};
use crate::keys::aliases;
use crate::scenario::Scenario;

/// Reads the whole text. If its syntax is broken, only that is reported, since the intent is
/// unknown.
pub fn read(name: &str, text: &str) -> (Scenario, Vec<Problem>) {
    let (read, problems) = parse_table(name, text, &aliases(), |root, _| Scenario::read_keys(root));
    (read.unwrap_or_default(), problems)
}

/// Reads assignments such as `load.requests=50`, as `--set` takes them; of several of one key the
/// last counts.
pub fn assignments(texts: &[String]) -> (Scenario, Vec<Problem>) {
    let (mut scenario, mut problems) = (Scenario::default(), Vec::new());
    for text in texts {
        let Some((key, value)) = text.split_once('=') else {
            let problem = Problem::new(format!("--set takes KEY=VALUE, found `{text}`"));
            problems.push(problem.at(Place::Flag("--set".to_owned()), "here"));
            continue;
        };
        let key = key.trim();
        let (read, wrong) = assignment(&format!("--set {key}"), [key, value.trim()]);
        problems.extend(wrong);
        scenario = scenario.merged(read.unwrap_or_default());
    }
    (scenario, problems)
}

/// Reads a key and its value, whose place is a flag of that name.
pub fn assignment(flag: &str, assignment: [&str; 2]) -> (Option<Scenario>, Vec<Problem>) {
    parse_assignment(flag, assignment, &aliases(), |root, _| Scenario::read_keys(root))
}

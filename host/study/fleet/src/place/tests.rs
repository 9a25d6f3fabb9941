//! Environments as starters set them, with their places or errors: `cases.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    environment: BTreeMap<String, String>,
    /// `rank/size host:port starter`.
    place: Option<String>,
    /// All errors, in order.
    errors: Option<Vec<String>>,
}

#[test]
fn environments_have_their_places() {
    let cases: Cases = toml::from_str(include_str!("cases.toml")).unwrap();
    assert!(cases.case.len() > 30);
    for case in cases.case {
        let found = read(&case.environment);
        match (case.place, case.errors) {
            (Some(expected), None) => {
                let Place { rank, size, host, port, starter } =
                    found.unwrap_or_else(|error| panic!("{}: {error}", case.name));
                let shown = format!("{rank}/{size} {host}:{port} {}", starter.name());
                assert_eq!(shown, expected, "{}", case.name);
            }
            (None, Some(expected)) => {
                assert_eq!(found.expect_err(&case.name).0, expected, "{}", case.name);
            }
            _ => panic!("{}: a case has a place or errors", case.name),
        }
    }
}

//! Misdeeds of plugins of each kind in whole runs: the end, the records, readable measurements.

use model::exchange::{Class, Exchange};
use runs::assessment::Assessment;
use runs::folder::Status;

use super::fixture::{BACKEND, DATASET, SCORER};
use super::runs::{mock, run};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cost {
    Nothing,
    /// One part of the run: a backend's one exchange, a dataset's run, a scorer's one score.
    Part,
    /// The same, and the exchange breaks the protocol: the plugin returned that error in order.
    Protocol,
}

use Cost::{Nothing, Part, Protocol};

/// A misdeed, its configuration, the kinds that can do it, its cost, and its message.
type Row = (&'static str, &'static str, &'static [&'static str], Cost, &'static str);

const EVERY: &[&str] = &["backend", "dataset", "scorer"];
const MISDEEDS: [Row; 15] = [
    (
        "trap",
        "misbehave = 'out-of-bounds'",
        EVERY,
        Part,
        "it trapped: wasm trap: out of bounds memory access",
    ),
    ("abort", "misbehave = 'abort'", EVERY, Part, "it aborted without a message"),
    ("panic", "misbehave = 'panic'", EVERY, Part, "a panic on purpose"),
    (
        "endless loop",
        "misbehave = 'loop'",
        EVERY,
        Part,
        "it ran longer than the 3000 ms allowed for a call",
    ),
    (
        "memory bomb",
        "misbehave = 'memory'",
        EVERY,
        Part,
        "it asked for more memory than the 200 MiB allowed",
    ),
    (
        "deep recursion",
        "misbehave = 'recursion'",
        EVERY,
        Part,
        "its stack overflowed (endless recursion)",
    ),
    ("many host calls", "misbehave = 'flood-log'", EVERY, Nothing, ""),
    (
        "huge output",
        "answer = 'huge'",
        EVERY,
        Part,
        "it returned more data than the 8 MiB allowed in one call",
    ),
    (
        "many outputs",
        "answer = 'million'",
        EVERY,
        Part,
        "it returned more data than the 8 MiB allowed in one call",
    ),
    ("huge state", "answer = 'large-state'", &["backend"], Part, "65537 bytes of state"),
    ("not UTF-8", "answer = 'no-text'", &["backend"], Part, "invalid utf-8"),
    ("control characters", "answer = 'shout'", &["backend"], Protocol, "shout"),
    ("wrong order", "answer = 'frame-outside'", &["backend"], Part, "an event names frame"),
    ("no JSON", "answer = 'bad-reference'", &["dataset"], Part, "is not JSON"),
    ("no number", "answer = 'nan'", &["scorer"], Part, "scores have a name and a finite value"),
];

/// Limits that only a misdeed reaches: other calls take microseconds on a quiet machine.
fn sandbox(deed: &str) -> String {
    let call = if deed == "endless loop" { "3s" } else { "60s" };
    let memory = if deed == "memory bomb" { "200MiB" } else { "1GiB" };
    format!(
        "[sandbox]\nmemory = '{memory}'\nreturned = '8MiB'\n\
         backend-call = '{call}'\ndataset-call = '{call}'\nscorer-call = '{call}'\n"
    )
}

#[test]
fn each_kind_of_plugin_may_do_anything() {
    let mock = mock(&[]);
    for (deed, config, kinds, cost, says) in MISDEEDS {
        for kind in kinds {
            let what = format!("{deed} by a {kind}");
            let ran = match *kind {
                "backend" => {
                    let backend = format!("call = 'decode', only-on = '!', {config}");
                    run(&mock.url, &backend, "mark = 3", 12, &sandbox(deed))
                }
                "dataset" => {
                    let dataset = format!("call = 'next', only-at = 70, {config}");
                    run(&mock.url, "", &dataset, 120, &sandbox(deed))
                }
                _ => {
                    let scorer = format!(
                        "{}[[scorers]]\nplugin = '{SCORER}'\nconfig = {{ call = 'score', only-on = '!', {config} }}\n",
                        sandbox(deed)
                    );
                    run(&mock.url, "", "mark = 3", 12, &scorer)
                }
            };
            let text = match (*kind, cost) {
                (_, Nothing) => {
                    assert_eq!(ran.code, 0, "{what}: {}", ran.stderr);
                    assert!(ran.exchanges().iter().all(Exchange::is_ok), "{what}");
                    String::new()
                }
                ("backend", _) => {
                    assert_eq!(ran.code, 0, "{what}: {}", ran.stderr);
                    let exchanges = ran.exchanges();
                    assert_eq!(exchanges.len(), 12, "{what}");
                    let (spoilt, others): (Vec<_>, Vec<_>) =
                        exchanges.iter().partition(|exchange| exchange.index == 3);
                    assert!(others.iter().all(|exchange| exchange.is_ok()), "{what}");
                    let (class, message) = super::runs::failure(spoilt[0]);
                    let expected = if cost == Protocol { Class::Protocol } else { Class::Plugin };
                    assert_eq!(class, expected, "{what}: {message}");
                    assert!(message.contains(BACKEND), "{what}: {message}");
                    message.to_owned()
                }
                ("dataset", _) => {
                    assert_eq!(ran.code, 4, "{what}: {}", ran.stderr);
                    // Earlier requests are on record, and nothing else.
                    let exchanges = ran.exchanges();
                    assert!(exchanges.len() <= 70, "{what}: {}", exchanges.len());
                    assert!(ran.stderr.contains(DATASET), "{what}: {}", ran.stderr);
                    ran.file::<Status>("status.json").error.unwrap()
                }
                _ => {
                    assert_eq!(ran.code, 4, "{what}: {}", ran.stderr);
                    assert!(ran.exchanges().iter().all(Exchange::is_ok), "{what}");
                    let assessment: Assessment = ran.file("assessment.json");
                    assert_eq!(assessment.means["length"].count, 11, "{what}");
                    let [error] = &assessment.errors[..] else {
                        panic!("{what}: {:?}", assessment.errors);
                    };
                    assert!(error.contains(SCORER), "{what}: {error}");
                    error.clone()
                }
            };
            assert!(text.contains(says), "{what}: {text}");
            // Nothing that it says steers a terminal; all that is left can be read.
            let everything = ran.everything();
            let steers = |c: char| c.is_control() && c != '\n' && c != '\t';
            assert!(!everything.contains(steers), "{what}");
            if deed == "endless loop" && *kind == "backend" {
                let client: serde_json::Value = ran.file("client.json");
                assert_eq!(
                    client["plugin-overruns"][BACKEND],
                    serde_json::json!({"calls": 1, "seconds": 3.0}),
                    "{client}"
                );
                assert!(ran.everything().contains("plugin-overruns"));
            }
        }
    }
}

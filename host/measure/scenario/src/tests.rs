//! The scenario's tests: invalid input with its messages, the scenarios that ship, and rules for
//! any text. `BLESS=1` rewrites the expectations.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme};
use model::txtar;
use proptest::prelude::*;
use reader::Problem;
use serde_json::{Value, json};

use super::*;

mod configs;
mod keys;
mod overlays;
mod reference;
mod slices;

const FULL: &str = include_str!("full.toml");

/// The crate's folder of such tests.
fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(name)
}

fn folders(within: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(within).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// Compares with a file, or writes it where `BLESS` is set. An error has both texts.
fn compare(expected: &Path, actual: &str) -> Result<(), String> {
    if std::env::var_os("BLESS").is_some() {
        fs::create_dir_all(expected.parent().unwrap()).unwrap();
        fs::write(expected, actual).unwrap();
        return Ok(());
    }
    let text =
        fs::read_to_string(expected).map_err(|error| format!("{}: {error}", expected.display()))?;
    if text == actual {
        return Ok(());
    }
    Err(format!("{} holds:\n{text}\nbut this came:\n{actual}", expected.display()))
}

/// Problems as reports with the lines of the scenario.
fn rendered(problems: Vec<Problem>) -> String {
    let mut message = String::new();
    let shown =
        GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor()).with_width(100);
    for problem in ScenarioError::new(problems).problems() {
        shown.render_report(&mut message, problem as &dyn Diagnostic).unwrap();
    }
    let lines: Vec<_> = message.lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}

/// The comment of `cases.txt`, and its names and texts.
fn cases() -> (String, Vec<(String, String)>) {
    txtar::read(&fs::read_to_string(folder("cases.txt")).unwrap())
}

#[test]
fn invalid_scenarios_get_their_messages() {
    let (comment, mut cases) = cases();
    assert!(cases.len() > 150, "the cases are gone");
    let mut messages = String::new();
    for (name, text) in &mut cases {
        if name.ends_with("/scenario.toml") {
            let found = Scenario::parse("scenario.toml", text).and_then(|it| it.validate());
            let error = found.expect_err(name);
            messages = rendered(error.problems().to_vec());
        } else if name.ends_with("/error.txt") {
            *text = std::mem::take(&mut messages);
        }
    }
    let texts = cases.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    let actual = txtar::write(&comment, texts);
    let expected = fs::read_to_string(folder("cases.txt")).unwrap();
    let differing =
        expected.lines().zip(actual.lines()).find(|(expected, actual)| expected != actual);
    if compare(&folder("cases.txt"), &actual).is_err() {
        panic!(
            "cases.txt and these messages differ, first here (BLESS=1 writes them): {differing:?}"
        );
    }
}

#[test]
fn three_mistakes_are_three_problems() {
    let (_, cases) = cases();
    let (_, text) = cases.iter().find(|(name, _)| name == "three-mistakes/scenario.toml").unwrap();
    let error = Scenario::parse("scenario.toml", text).unwrap_err();
    assert_eq!(
        error.to_string(),
        "scenario.toml:3:1: unknown key `reqests`; did you mean `requests`?\n\
         scenario.toml:5:8: `load.rate`: expected from 0.000001 to 1000000 requests per second, or inf, found 0\n\
         scenario.toml:8:1: unknown key `idle`\n    \
         the keys in [timeouts] are `connect`, `first-token`, `token-gap` and `request`"
    );
    assert_eq!(error.related().unwrap().count(), 3);
}

/// Returns a scenario as JSON, without empty tables.
fn json(scenario: &Scenario) -> Value {
    let mut value = serde_json::to_value(scenario).unwrap();
    value.as_object_mut().unwrap().retain(|_, part| *part != json!({}));
    value
}

#[test]
fn reads_the_shipped_scenarios() {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scenarios");
    // Lab files, and cases to verify clients with, are read by other crates.
    let mut texts: Vec<_> = folders(&shipped)
        .into_iter()
        .filter(|folder| !folder.ends_with("labs") && !folder.ends_with("conformance"))
        .chain([shipped.clone()])
        .flat_map(|folder| fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    texts.sort();
    assert!(!texts.is_empty(), "no scenario ships");
    let mut failures = Vec::new();
    for path in texts {
        let name = path.strip_prefix(&shipped).unwrap().with_extension("");
        let text = fs::read_to_string(&path).unwrap();
        let scenario = Scenario::parse(&path.to_string_lossy(), &text);
        let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
        scenario.validate().unwrap_or_else(|error| panic!("{error}"));
        let golden = name.to_string_lossy().replace(['/', '\\'], "-") + ".json";
        let read = serde_json::to_string_pretty(&json(&scenario)).unwrap() + "\n";
        failures.extend(compare(&folder("shipped").join(golden), &read).err());
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn reads_every_key() {
    let scenario = Scenario::parse("full.toml", FULL).unwrap_or_else(|error| panic!("{error}"));
    let read = serde_json::to_string_pretty(&json(&scenario)).unwrap() + "\n";
    compare(&folder("full.json"), &read).unwrap();
}

/// Loads that [`FULL`] cannot hold beside the rest of its load, key by key.
const OTHER_LOADS: [&str; 6] = [
    "[load]\narrival = \"constant\"\nramp = { shape = \"exponential\", from = 1.0, to = 9.5, over = \"1m\" }\n",
    "[load]\narrival = \"poisson\"\n[[load.stages]]\nrate = 5.0\nfor = \"30s\"\n\
     [[load.stages]]\nfrom = 1.0\nto = 20.5\nshape = \"linear\"\nfor = \"1m30s\"\n",
    "[load]\narrival = \"trace\"\n[load.trace]\nfile = \"a.jsonl\"\ntime-scale = 2.0\n",
    "[load]\narrival = \"dataset\"\n[load.trace]\ntime-scale = 2.0\n",
    "[load]\narrival = \"closed\"\nconcurrency = 8\nthink-time = \"2s\"\nthink-spread = \"exponential\"\n",
    "[load]\narrival = \"closed\"\nconcurrency = 8\nduration = \"30m\"\n\
     [load.lanes]\nstart-at = [0.25, 0.75]\nwarmup = 10\nwarmup-grace = \"20m\"\nidle-most = \"10s\"\nsalt = \"session\"\n",
];

#[test]
fn reads_every_kind_of_load() {
    for text in OTHER_LOADS {
        let scenario = Scenario::parse("load.toml", text).unwrap_or_else(|error| panic!("{error}"));
        scenario.validate().unwrap_or_else(|error| panic!("{error}"));
        let written: toml::Table = text.parse().unwrap();
        let written = serde_json::to_value(&written["load"]).unwrap();
        let read = serde_json::to_value(&scenario.load).unwrap();
        assert_eq!(read, written);
    }
}

#[test]
fn entries_have_their_path_and_place() {
    let scenario = Scenario::parse("full.toml", FULL).unwrap();
    let entries = scenario.entries();
    for entry in &entries {
        let span = entry.place.span().unwrap();
        let found = &FULL[span.offset()..span.offset() + span.len()];
        // Lists of tables, times with units, and tables without a header of their own stand there
        // in another way.
        let other = ["scorers", "sides", "request.extra-body.chat_template_kwargs"];
        if other.contains(&&*entry.path) || entry.path.starts_with("goodput.") {
            continue;
        }
        let read = |text: &str| -> toml::Table { format!("x = {text}").parse().unwrap() };
        // Numbers and dates keep their value, not their type.
        let plain = |text: &str| read(text)["x"].to_string().replace(".0", "").replace('"', "");
        assert_eq!(plain(found), plain(&entry.value), "{}", entry.path);
    }
    // Keys that the text cannot state beside its gamma-distributed load.
    let elsewhere = ["about.", "load.", "scorers[]", "sides[]", "thresholds."];
    for key in keys() {
        let table = key.path.trim_end_matches(|c: char| c.is_ascii_uppercase());
        let stated = entries.iter().any(|entry| entry.path.starts_with(table));
        let excused = elsewhere.iter().any(|path| key.path.starts_with(path));
        assert!(stated || excused, "`{}` is not in full.toml", key.path);
    }
}

fn survives(text: &str) {
    match Scenario::parse("any.toml", text) {
        Ok(scenario) => {
            let both = scenario.clone().overlay(scenario);
            if let Err(error) = both.validate() {
                rendered(error.problems().to_vec());
            }
            let mut out = String::new();
            write!(out, "{}", json(&both)).unwrap();
        }
        Err(error) => {
            assert!(!error.problems().is_empty());
            rendered(error.problems().to_vec());
        }
    }
}

proptest! {
    #[test]
    fn any_text_never_panics(text in any::<String>()) {
        survives(&text);
    }

    #[test]
    fn text_like_toml_never_panics(
        text in r#"([a-z\[\]="'{}.,0-9einf#\\+-]|\n|load|rate|"|\[\[scorers\]\]|config|é){0,60}"#
    ) {
        survives(&text);
    }

    #[test]
    fn typing_mistakes_never_panic(
        at in 0..FULL.len(),
        length in 0..20_usize,
        typed in r#"[ -~\n]{0,4}"#,
    ) {
        let boundary = |at: usize| (at.min(FULL.len())..).find(|at| FULL.is_char_boundary(*at)).unwrap();
        let (from, to) = (boundary(at), boundary(at + length));
        survives(&format!("{}{typed}{}", &FULL[..from], &FULL[to..]));
    }
}

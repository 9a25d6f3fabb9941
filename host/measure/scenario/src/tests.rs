//! The scenario's tests: invalid input with its messages, the scenarios that ship, and rules for
//! any text. `BLESS=1` rewrites the expectations.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme};
use model::txtar;
use proptest::prelude::*;
use reader::Problem;
use serde_json::{Value, json};

use super::*;
use crate::Fate;

mod configs;
mod overlays;
mod slices;

const FULL: &str = include_str!("full.toml");

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

/// The purposes of the tables. Keys without a table come first.
const TABLES: [(&str, &str); 21] = [
    ("", "At the top"),
    ("about", "Purpose of the run, for readers of its result. None of it is checked."),
    ("target", "The server under test."),
    ("sides[]", "Further servers of a paired run, each under `[[sides]]`."),
    ("paired", "How the sides of a paired run are measured."),
    ("tokenizer", "The model's tokenizer."),
    ("backend", "The backend, which speaks the server's dialect."),
    ("dataset", "The contents of requests."),
    (
        "load",
        "Number and times of requests. `[load.ramp]`, `[[load.stages]]` and `[load.trace]` vary the rate.",
    ),
    ("request", "Options for every request."),
    ("connection", "Connections to the server."),
    ("timeouts", "Time limits."),
    ("scorers[]", "The scorers that judge the answers, each under `[[scorers]]`."),
    ("run", "Figures to watch while the run goes on."),
    ("cost", "The cost of a million tokens."),
    ("machines", "The machines that serve, for figures of agents."),
    ("report", "Contents of the report."),
    ("expect", "Figures that the run is expected to have. A finding names a figure that differs."),
    ("goodput", "SLOs, the upper limits of request metrics."),
    ("thresholds", "Conditions that must hold of the run."),
    ("sandbox", "The resource limits of plugins."),
];

fn page() -> String {
    let mut page = "# Scenario keys\n\n\
         This page is generated from the declarations of the keys; do not edit it. `runner scenario keys` prints the \
         same.\n\n\
         Each key can be set in a scenario file, by its flag or variable if it has one, and by `--set KEY=VALUE`. \
         `--set` overrides flags, and flags override the file. Durations are written as `250ms`, `1.5s` or `1h30m`, \
         sizes as `64MiB`.\n\n\
         `runner compare` only compares runs that agree in the keys that shape the measurement. A key that must agree names \
         its kind, which `--allow` takes.\n"
        .to_owned();
    for (table, about) in TABLES {
        let heading = match table {
            "" => about.to_owned(),
            table if table.ends_with("[]") => format!("`[[{}]]`", table.trim_end_matches("[]")),
            table => format!("`[{table}]`"),
        };
        let _ = write!(page, "\n## {heading}\n");
        if !table.is_empty() {
            let _ = write!(page, "\n{about}\n");
        }
        for key in keys().iter().filter(|key| key.table() == table) {
            page.push_str(&entry(key));
        }
    }
    page
}

fn entry(key: &Key) -> String {
    let mut entry = format!("\n### `{}`\n\n", key.path);
    for paragraph in &key.about {
        let _ = write!(entry, "{}\n\n", escaped(paragraph));
    }
    let mut item = |name: &str, what: String| _ = writeln!(entry, "- **{name}:** {what}");
    match key.words.as_slice() {
        [] => item("Type", key.expected.clone()),
        words => {
            let mut list = String::from("one of");
            for (name, about) in words {
                let about = escaped(about.trim_end_matches('.'));
                let _ = write!(list, "\n  - `\"{name}\"`: {about}");
            }
            item("Type", list);
        }
    }
    match (&key.default, key.otherwise) {
        (_, Some(words)) => item("Default", words.to_owned()),
        (Some(value), None) => item("Default", format!("`{value}`")),
        (None, None) => {}
    }
    if let Some(flag) = &key.flag {
        let means = flag.inverted.map_or("", |_| ", which sets it to `false`");
        item("Flag", format!("`--{}`{means}", flag.long));
        item("Variable", format!("`{}`", flag.variable()));
    }
    item(
        "Comparisons",
        match key.plan {
            Some((_, Fate::Must(kind))) => format!("must agree (`{kind}`)"),
            Some((_, Fate::May)) => "show both values".to_owned(),
            Some((_, Fate::Silent)) | None => "not affected".to_owned(),
        },
    );
    entry
}

/// Text that Markdown leaves as it is.
fn escaped(text: &str) -> String {
    text.replace('<', "\\<").replace('*', "\\*")
}

#[test]
fn the_guide_lists_the_keys() {
    let tables: Vec<&str> = TABLES.iter().map(|(table, _)| *table).collect();
    for key in keys() {
        assert!(tables.contains(&key.table()), "`{}` is in no table", key.path);
    }
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guide/src/reference");
    compare(&guide.join("scenario-keys.md"), &page()).unwrap();
}

// Tests of the declarations of keys together.

#[test]
fn every_key_has_its_facts() {
    let (mut flags, mut paths) = (BTreeSet::new(), BTreeSet::new());
    for key in keys() {
        let path = &key.path;
        assert!(paths.insert(path), "`{path}` is declared twice");
        assert!(!key.about.is_empty(), "`{path}` has no documentation");
        assert!(!key.expected.is_empty(), "`{path}` has no type");
        let somewhere = key.plan.is_some() != key.unplanned;
        assert!(somewhere, "`{path}` does not say where it goes in the plan");
        if let Some(flag) = &key.flag {
            assert!(flags.insert(flag.long), "--{} is there twice", flag.long);
            let valued = key.switch == flag.value_name.is_empty();
            assert!(valued, "--{} takes a value, or none", flag.long);
            let wanted = key.switch && key.default.as_deref() == Some("true");
            assert_eq!(flag.inverted.is_some(), wanted);
        }
    }
    assert!(paths.len() > 60);
}

/// Keys with the same place in the plan would decide on comparisons by chance if they disagreed.
#[test]
fn keys_agree_on_their_places_in_the_plan() {
    let fates: Vec<(&str, Fate)> = keys().iter().filter_map(|key| key.plan).collect();
    for (place, fate) in &fates {
        for (other, others) in &fates {
            assert!(place != other || fate == others, "{place}");
        }
    }
}

#[test]
fn absent_keys_have_their_defaults() {
    for key in keys() {
        let Some(default) = &key.default else { continue };
        let (scenario, problems) = Scenario::assigned(&[format!("{}={default}", key.path)]);
        if key.path.contains("[]") {
            continue;
        }
        assert!(problems.is_empty(), "{} = {default}: {problems:?}", key.path);
        assert_eq!(scenario.entries()[0].value, *default, "{}", key.path);
    }
    let empty = Scenario::default();
    assert_eq!(empty.timeouts.connect().to_string(), "10s");
    assert_eq!(empty.load.requests(), 1000);
    assert!(empty.request.stream());
}

#[test]
fn flags_set_the_same_entries_as_files() {
    for key in keys().iter().filter(|key| key.flag.is_some()) {
        let flag = key.flag.as_ref().unwrap();
        let texts = ["7", "7s", "7MiB", "{\"a\": 1}", "ttft:7", "a=b", "true", "nvml"];
        let words = key.words.iter().map(|(name, _)| *name);
        let text = words.chain(texts).find(|text| key.check(text).is_ok()).unwrap();
        let mut scenario = Scenario::default();
        let name = format!("--{}", flag.long);
        // Tables of the user's names take NAME=VALUE.
        let text = if key.path.ends_with(".NAME") { "a=b" } else { text };
        scenario
            .say(&key.path, &name, &[text.to_owned()])
            .unwrap_or_else(|error| panic!("{name} {text}: {error}"));
        let entries = scenario.entries();
        assert_eq!(entries.len(), 1, "{name}");
        assert_eq!(entries[0].place.to_string(), name);
        let table = key.path.trim_end_matches(|c: char| c.is_ascii_uppercase());
        assert!(entries[0].path.starts_with(table), "{name} says {}", entries[0].path);
    }
}

/// Reads assignments: returns the scenario, or their faults.
fn assigned(texts: &[&str]) -> Value {
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    let (scenario, problems) = Scenario::assigned(&texts);
    if problems.is_empty() {
        json(&scenario)
    } else {
        Value::String(ScenarioError::new(problems).to_string())
    }
}

#[test]
fn assignments_set_any_key() {
    let cases = [
        (
            vec!["load.requests=50", "load.arrival = poisson", "load.rate=inf"],
            json!({"load": {"requests": 50, "arrival": "poisson", "rate": "inf"}}),
        ),
        (
            vec!["backend.config.route=chat", "backend.config.deep.list=[1, \"a\"]"],
            json!({"backend": {"config": {"route": "chat", "deep": {"list": [1, "a"]}}}}),
        ),
        (
            vec!["dataset.files.data=a b.json", "target.headers.X-Team=a=b"],
            json!({"dataset": {"files": {"data": "a b.json"}}, "target": {"headers": {"x-team": "a=b"}}}),
        ),
        // A number for TOML, but the key takes a string.
        (vec!["target.model=7"], json!({"target": {"model": "7"}})),
        (vec!["connection.http=2"], json!({"connection": {"http": "2"}})),
        (vec!["target.model=\"7 = 8\""], json!({"target": {"model": "7 = 8"}})),
        (vec!["timeouts.request=1h30m"], json!({"timeouts": {"request": "1h30m"}})),
        (vec!["load.seed=1", "load.seed=2"], json!({"load": {"seed": 2}})),
        (
            vec!["scorers=[{plugin='scorers/exact-match.wasm'}]"],
            json!({"scorers": [{"plugin": "scorers/exact-match.wasm"}]}),
        ),
        (vec!["thresholds.ttft.p99=<= 200ms"], json!({"thresholds": ["ttft.p99 <= 200ms"]})),
        (vec!["goodput.ttft=200"], json!({"goodput": {"ttft": 200.0}})),
    ];
    for (texts, expected) in cases {
        assert_eq!(assigned(&texts), expected, "{texts:?}");
    }
}

#[test]
fn every_wrong_assignment_is_reported() {
    let wrong = assigned(&[
        "load.reqests=50",
        "load.rate=fast",
        "num-prompts=50",
        "requests",
        "a b=1",
        "x\n[load]\nseed=1",
        "load.seed=1\nx=2",
    ]);
    let wrong = wrong.as_str().unwrap();
    for expected in [
        "--set load.reqests: unknown key `reqests`; did you mean `requests`?",
        "--set load.rate: `load.rate`: expected a number of requests per second, found the string \"fast\"",
        "--set num-prompts: unknown key `num-prompts`; did you mean `requests` in [load]?",
        "--set: --set takes KEY=VALUE, found `requests`",
        "--set a b: `a b` is not the name of a key",
        "is not the name of a key",
        "--set load.seed: `load.seed`: expected a whole number of at least 0, found the string",
    ] {
        assert!(wrong.contains(expected), "{expected}\nis not in\n{wrong}");
    }
}

#[test]
fn defaults_are_filled_in_where_they_fit() {
    let text = "[load]\nconcurrency = 4\nseed = 7\n";
    let settled = Scenario::parse("file.toml", text).unwrap().settled();
    settled.validate().unwrap();
    let entries = settled.entries();
    let at = |path: &str| {
        let found = entries.iter().find(|entry| entry.path == path);
        found.map(|entry| (entry.value.clone(), entry.place.to_string()))
    };
    let entry = |value: &str, place: &str| Some((value.to_owned(), place.to_owned()));
    assert_eq!(at("load.seed"), entry("7", "file.toml:3:8"));
    assert_eq!(at("load.warmup"), entry("1", "default"));
    assert_eq!(at("timeouts.connect"), entry("\"10s\"", "default"));
    // Users make a closed loop, which has no ramp.
    assert_eq!(at("load.arrival"), entry("\"closed\"", "file.toml:2:15"));
    assert_eq!(at("load.ramp.shape"), None);
}

//! Tests of the declarations of keys together.

use std::collections::BTreeSet;

use super::*;
use crate::comparability::Fate;

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
            assert_eq!(
                flag.inverted.is_some(),
                key.switch && key.default.as_deref() == Some("true")
            );
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

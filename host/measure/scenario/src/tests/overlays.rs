//! Effects of flags on a file.

use std::path::PathBuf;

use model::session::Warming;

use super::*;

fn file(text: &str) -> Scenario {
    Scenario::parse("file.toml", text).unwrap_or_else(|error| panic!("{error}"))
}

fn flags(load: Load) -> Scenario {
    Scenario { load, ..Scenario::default() }
}

/// Returns `[load]` once `over` is laid over the text, or its faults.
fn load_over(text: &str, over: Load) -> Value {
    let both = file(text).overlay(flags(over));
    match both.validate() {
        Ok(()) => serde_json::to_value(&both.load).unwrap(),
        Err(error) => Value::String(error.to_string()),
    }
}

/// `[load]` with a key that a flag set.
fn by_flag(key: &str, flag: &str, value: impl ToString) -> Load {
    let mut scenario = Scenario::default();
    scenario.say(&format!("load.{key}"), flag, &[value.to_string()]).unwrap();
    scenario.load
}

fn requests(n: u64) -> Load {
    by_flag("requests", "--num-prompts", n)
}

fn rate(rate: f64) -> Load {
    by_flag("rate", "--request-rate", rate)
}

fn concurrency(n: u64) -> Load {
    by_flag("concurrency", "--concurrency", n)
}

fn cap(n: u64) -> Load {
    by_flag("max-in-flight", "--max-concurrency", n)
}

fn arrival(arrival: Arrival) -> Load {
    by_flag("arrival", "--arrival", arrival)
}

fn burstiness(shape: f64) -> Load {
    by_flag("burstiness", "--burstiness", shape)
}

fn ramp(from: Option<f64>, to: Option<f64>) -> Load {
    let end = |flag: &str, rate: Option<f64>| rate.map(|rate| Located::flag(flag, rate));
    let (from, to) = (end("--ramp-up-start-rps", from), end("--ramp-up-end-rps", to));
    Load { ramp: Ramp { from, to, ..Ramp::default() }, ..Load::default() }
}

fn trace(file: &str) -> Load {
    by_flag("trace.file", "--trace", file)
}

fn think(time: &str) -> Load {
    by_flag("think-time", "--think-time", time)
}

#[test]
fn a_rate_flag_replaces_the_rate_of_the_file() {
    let gamma = "[load]\nrate = 2.0\nburstiness = 0.5\nnormalise = true\n";
    let ramped = "[load]\narrival = \"constant\"\nramp = { from = 1.0, to = 9.0, over = \"1m\" }\n";
    let staged = "[load]\narrival = \"poisson\"\nstages = [{ rate = 2.0, for = \"30s\" }]\n";
    let traced = "[load]\ntrace = { file = \"a\", time-scale = 2.0 }\nmax-in-flight = 4\n";
    let thinking = "[load]\nconcurrency = 8\nthink-time = \"2s\"\n";
    let constant = "[load]\narrival = \"constant\"\nrate = 2.0\n";
    let cases = [
        (gamma, rate(3.0), json!({"rate": 3.0, "burstiness": 0.5, "normalise": true})),
        (
            gamma,
            arrival(Arrival::Poisson),
            json!({"arrival": "poisson", "rate": 2.0, "normalise": true}),
        ),
        (gamma, arrival(Arrival::Constant), json!({"arrival": "constant", "rate": 2.0})),
        (gamma, concurrency(8), json!({"concurrency": 8})),
        (
            gamma,
            ramp(Some(1.0), Some(9.0)),
            json!({"burstiness": 0.5, "ramp": {"from": 1.0, "to": 9.0}}),
        ),
        (gamma, trace("b"), json!({"trace": {"file": "b"}})),
        (constant, burstiness(0.5), json!({"rate": 2.0, "burstiness": 0.5})),
        (
            ramped,
            burstiness(0.5),
            json!({"burstiness": 0.5, "ramp": {"from": 1.0, "to": 9.0, "over": "1m"}}),
        ),
        (
            ramped,
            ramp(None, Some(5.0)),
            json!({"arrival": "constant", "ramp": {"from": 1.0, "to": 5.0, "over": "1m"}}),
        ),
        (ramped, rate(3.0), json!({"arrival": "constant", "rate": 3.0})),
        (ramped, rate(f64::INFINITY), json!({"rate": "inf"})),
        (staged, rate(3.0), json!({"arrival": "poisson", "rate": 3.0})),
        (
            staged,
            ramp(Some(1.0), Some(9.0)),
            json!({"arrival": "poisson", "ramp": {"from": 1.0, "to": 9.0}}),
        ),
        (
            staged,
            arrival(Arrival::Constant),
            json!({"arrival": "constant", "stages": [{"rate": 2.0, "for": "30s"}]}),
        ),
        (
            traced,
            trace("b"),
            json!({"trace": {"file": "b", "time-scale": 2.0}, "max-in-flight": 4}),
        ),
        (traced, rate(3.0), json!({"rate": 3.0, "max-in-flight": 4})),
        (traced, concurrency(8), json!({"concurrency": 8})),
        (thinking, think("1s"), json!({"concurrency": 8, "think-time": "1s"})),
        (thinking, concurrency(9), json!({"concurrency": 9, "think-time": "2s"})),
        (thinking, rate(3.0), json!({"rate": 3.0})),
        (thinking, trace("b"), json!({"trace": {"file": "b"}})),
        ("", ramp(Some(1.0), Some(9.0)), json!({"ramp": {"from": 1.0, "to": 9.0}})),
    ];
    for (text, over, expected) in cases {
        let label = format!("{text}{over:?}");
        assert_eq!(load_over(text, over), expected, "{label}");
    }
}

#[test]
fn a_flag_removes_keys_that_contradict_it() {
    let duration = by_flag("duration", "--duration", "1m");
    let warmup = by_flag("warmup", "--warmup-requests", 5);
    let stable = by_flag("warming", "--warmup", Warming::UntilStable);
    let closed = "[load]\narrival = \"closed\"\nconcurrency = 8\n";
    let constant = "[load]\narrival = \"constant\"\nrate = 2.0\nmax-in-flight = 4\n";
    let cases = [
        ("[load]\nduration = \"1m\"\n", requests(5), json!({"requests": 5})),
        ("[load]\nrequests = 5\n", duration, json!({"duration": "1m"})),
        ("[load]\nwarming = \"like-load\"\n", warmup, json!({"warmup": 5})),
        ("[load]\nwarmup = 0\n", stable, json!({"warming": "until-stable"})),
        (closed, requests(5), json!({"requests": 5, "arrival": "closed", "concurrency": 8})),
        (closed, rate(3.0), json!({"rate": 3.0})),
        (closed, rate(f64::INFINITY), json!({"rate": "inf"})),
        (closed, concurrency(9), json!({"arrival": "closed", "concurrency": 9})),
        (constant, rate(3.0), json!({"arrival": "constant", "rate": 3.0, "max-in-flight": 4})),
        (constant, rate(f64::INFINITY), json!({"rate": "inf", "max-in-flight": 4})),
        (constant, arrival(Arrival::Inf), json!({"arrival": "inf", "max-in-flight": 4})),
        (
            constant,
            arrival(Arrival::Poisson),
            json!({"arrival": "poisson", "rate": 2.0, "max-in-flight": 4}),
        ),
        (constant, concurrency(9), json!({"concurrency": 9})),
        (constant, cap(9), json!({"arrival": "constant", "rate": 2.0, "max-in-flight": 9})),
        ("[load]\nrate = inf\n", rate(3.0), json!({"rate": 3.0})),
        ("[load]\nrate = inf\n", concurrency(9), json!({"concurrency": 9})),
    ];
    for (text, over, expected) in cases {
        let what = format!("{text}{over:?}");
        assert_eq!(load_over(text, over), expected, "{what}");
    }
}

#[test]
fn remaining_contradictions_name_both_places() {
    let cases = [
        (
            "[load]\narrival = \"closed\"\nconcurrency = 8\n",
            cap(9),
            "--max-concurrency: `load.max-in-flight` contradicts `load.arrival` = \"closed\"",
        ),
        (
            "[load]\nconcurrency = 8\n",
            arrival(Arrival::Poisson),
            "--arrival: `load.arrival` = \"poisson\" needs a `rate`",
        ),
        (
            "[load]\nduration = \"1m\"\n",
            arrival(Arrival::Inf),
            "file.toml:2:12: `load.duration` contradicts `load.arrival` = \"inf\"",
        ),
        (
            "",
            rate(-1.0),
            "--request-rate: `load.rate`: expected from 0.000001 to 1000000 requests per second, or inf, found -1",
        ),
    ];
    for (text, over, expected) in cases {
        let message = load_over(text, over);
        let message =
            message.as_str().unwrap_or_else(|| panic!("nothing is found wrong: {message}"));
        assert!(message.starts_with(expected), "{message}");
    }
}

#[test]
fn a_contradiction_with_a_flag_still_shows_the_file() {
    let both = file("[load]\nduration = \"1m\"\n").overlay(flags(arrival(Arrival::Inf)));
    let error = both.validate().unwrap_err();
    let [problem] = error.problems() else { panic!("{error}") };
    assert_eq!(problem.labels().unwrap().count(), 1);
    assert!(rendered(vec![problem.clone()]).contains("file.toml:2:12"));
}

#[test]
fn a_rate_by_flag_alone_is_enough() {
    assert_eq!(load_over("", rate(3.0)), json!({"rate": 3.0}));
}

#[test]
fn tables_are_merged_key_by_key() {
    let below = file(
        "[target]\nmodel = \"a\"\nheaders = { X-One = \"1\", x-two = \"2\" }\n\
         [dataset]\nplugin = \"datasets/random.wasm\"\n\
         config = { input-len = 64, output-len = 32 }\n\
         files = { data = \"a.json\", extra = \"b.json\" }\n\
         [request]\nextra-body = { deep = { a = 1, b = 2 } }\n\
         [[scorers]]\nplugin = \"scorers/output-length.wasm\"\n",
    );
    let mut over = Scenario::default();
    over.target.headers.insert("X-ONE", Located::flag("--header", "9".to_owned()));
    over.dataset.config.set("input-len", Located::flag("--random-input-len", json!(1024)));
    let path = Located::flag("--dataset-path", PathBuf::from("c.json"));
    over.dataset.files.insert("data".to_owned(), path);
    over.request.extra_body.set("deep", Located::flag("--extra-body", json!({"b": 3})));
    let both = below.clone().overlay(over);
    assert_eq!(
        json(&both),
        json!({
            "target": {"model": "a", "headers": {"x-one": "9", "x-two": "2"}},
            "dataset": {
                "plugin": "datasets/random.wasm",
                "config": {"input-len": 1024, "output-len": 32},
                "files": {"data": "c.json", "extra": "b.json"},
            },
            "request": {"extra-body": {"deep": {"a": 1, "b": 3}}},
            "scorers": [{"plugin": "scorers/output-length.wasm"}],
        })
    );
    let place_of = |path: &str| {
        let entries = both.entries().into_iter();
        let mut found = entries.filter(|entry| entry.path == path);
        found.next().unwrap().place
    };
    let flag = place_of("dataset.config.input-len");
    assert_eq!(flag.to_string(), "--random-input-len");
    assert!(place_of("dataset.config.output-len").span().is_some());

    let nobody = Scenario { scorers: Some(Vec::new()), ..Scenario::default() };
    assert_eq!(below.overlay(nobody).scorers.unwrap().len(), 0);
}

#[test]
fn an_empty_overlay_changes_nothing() {
    let full = Scenario::parse("full.toml", FULL).unwrap();
    assert_eq!(json(&full.clone().overlay(Scenario::default())), json(&full));
    assert_eq!(json(&Scenario::default().overlay(full.clone())), json(&full));
    assert_eq!(json(&full.clone().overlay(full.clone())), json(&full));
}

#[test]
fn a_time_scale_fits_a_trace_and_a_dataset() {
    let faster = || by_flag("trace.time-scale", "--time-scale", 2);
    let (dataset, traced) = ("[load]\narrival = \"dataset\"", "[load.trace]\nfile = \"a\"\n");
    for (text, over, expected) in [
        (dataset, faster(), json!({"arrival": "dataset", "trace": {"time-scale": 2.0}})),
        (traced, faster(), json!({"trace": {"file": "a", "time-scale": 2.0}})),
        // A trace takes the place of the dataset's own times, and the other way round.
        (dataset, trace("a"), json!({"trace": {"file": "a"}})),
        (traced, arrival(Arrival::Dataset), json!({"arrival": "dataset"})),
    ] {
        assert_eq!(load_over(text, over), expected, "{text}");
    }
}

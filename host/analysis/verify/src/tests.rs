//! Judgements over logs that are written here: every verdict, by name.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Value, json};

use crate::card::{Card, CaseCard, Client};
use crate::meaning::Meaning;
use crate::sources::Sources;
use crate::{Case, Check, Log, Outcome, Profile, Run, Verdict, judge, schema, text};

/// A token is a byte. The tokenizer also puts one special token before a text.
fn count(text: &str) -> Option<u64> {
    Some(text.len() as u64)
}

const CASE: &str = r#"
title = "a role, reasoning, text"
why = "names differ"
[asks]
requests = 4
concurrency = 1
input-len = 5
output-len = 4
[judges]
figures = ["ttft", "e2e", "tpot", "itl", "requests.successful", "requests.failed",
    "tokens.output", "tokens.input", "throughput.output", "throughput.requests", "duration"]
load = ["requests", "in-flight", "prompts"]
"#;

const PROFILE: &str = r#"
name = "client"
title = "Client"
command = ["client", "--url={base-url}", "{{}}"]
[[source]]
name = "result"
file = "{folder}/*.json"
reader = "json"
[figures.ttft]
definition = "first-text"
at = "/ttft/{statistic}"
statistics = ["mean"]
[figures.e2e]
definition = "last-text"
at = "/e2e/*"
unit = "s"
statistics = ["mean"]
[figures.tpot]
definition = "over-n-1"
at = "/tpot"
statistics = ["mean"]
[figures.itl]
definition = "chunks"
at = "/itl"
statistics = ["mean"]
error = "10%"
[figures."requests.successful"]
definition = "complete"
at = "/good"
[figures."requests.failed"]
definition = "complete"
at = "/bad"
[figures."tokens.output"]
definition = ["usage", "text"]
at = "/out"
[figures."tokens.input"]
definition = "text"
at = "/in"
[figures."throughput.output"]
definition = "to-last-end"
at = "/rate"
[figures.duration]
definition = "to-last-end"
at = "/seconds"
"#;

/// A log of four requests, one after the other, a second each. A role comes after 50 ms, reasoning
/// after 150, text after 300 and 400, usage (4 tokens) after 500, the end marker after 600. The
/// third is cut before the end marker.
fn log() -> Log {
    let event = |text: String| json!({ "text": format!("data: {text}\n\n") });
    let chunk = |delta: Value| event(json!({ "choices": [{ "delta": delta }] }).to_string());
    let mut lines = String::new();
    for number in 0_u64..4 {
        let start = number * 1_000_000_000;
        let mut written = vec![
            chunk(json!({ "role": "assistant", "content": "" })),
            chunk(json!({ "reasoning": "hm" })),
            chunk(json!({ "content": "abc" })),
            event(
                json!({ "choices": [{ "delta": { "content": "de" }, "finish_reason": "stop" }] })
                    .to_string(),
            ),
            event(
                json!({ "choices": [], "usage": { "completion_tokens": 4, "prompt_tokens": 9 } })
                    .to_string(),
            ),
            event("[DONE]".to_owned()),
        ];
        let mut at = vec![50, 150, 300, 400, 500, 600];
        if number == 2 {
            written.truncate(4);
            at.truncate(4);
        }
        let chunks: Vec<Value> = (at.iter())
            .map(|at| json!({ "at": start + at * 1_000_000, "tokens": 1, "bytes": 1 }))
            .collect();
        let body = json!({ "messages": [{ "content": format!("{number}{number}{number}xx") }] });
        let line = json!({
            "received": start, "status": 200, "chunks": chunks, "written": written,
            "ended": start + 600_000_000, "end": if number == 2 { "broken" } else { "whole" },
            "asked": body.to_string(),
        });
        let _ = writeln!(lines, "{line}");
    }
    Log::read(&lines).unwrap()
}

/// The figures of a client that is right in everything: three good requests.
fn right() -> Value {
    json!({
        "ttft": { "mean": 150.0 }, "e2e": [0.4, 0.4, 0.4], "tpot": 250.0 / 3.0, "itl": 125.0,
        "good": 3, "bad": 1, "out": 12, "in": 15, "rate": 12.0 / 3.6, "seconds": 3.6,
    })
}

fn judged(case: &str, profile: &str, figures: &Value) -> (Outcome, Vec<Check>) {
    let case = Case::read("cases/stream-test.toml", case).unwrap();
    let profile = Profile::read("client.toml", profile).unwrap();
    let contents = BTreeMap::from([("result".to_owned(), Ok(figures.to_string().into_bytes()))]);
    let sources = Sources::read(&profile, &contents);
    let run = Run { log: log(), sources };
    judge(&case, &profile, &[run], &count, 1)
}

fn with(key: &str, value: Value) -> Value {
    let mut figures = right();
    figures[key] = value;
    figures
}

/// The check that is not exact, if there is one.
fn off(figures: &Value) -> Option<Check> {
    let (_, checks) = judged(CASE, PROFILE, figures);
    let mut off = checks.into_iter().filter(|check| check.verdict != Verdict::Exact);
    let found = off.next();
    assert_eq!(off.next(), None, "{found:?}");
    found
}

#[test]
fn a_client_that_is_right_is_exact() {
    let (outcome, checks) = judged(CASE, PROFILE, &right());
    let off: Vec<&Check> = checks.iter().filter(|check| check.verdict != Verdict::Exact).collect();
    assert_eq!(off, Vec::<&Check>::new());
    assert_eq!(outcome, Outcome::Judged(Verdict::Exact));
    assert_eq!(checks.len(), 13);
}

#[test]
fn another_definition_is_named() {
    for (key, value, figure, fits) in [
        ("ttft", json!({ "mean": 50.0 }), "ttft.mean", "first-chunk"),
        ("ttft", json!({ "mean": 300.0 }), "ttft.mean", "first-answer"),
        ("e2e", json!([0.5, 0.5, 0.5]), "e2e.mean", "last-chunk"),
        ("e2e", json!([0.6]), "e2e.mean", "end"),
        ("tpot", json!(62.5), "tpot.mean", "over-n"),
        ("tpot", json!(100.0), "tpot.mean", "with-first"),
        ("itl", json!(250.0 / 6.0), "itl.mean", "gaps between tokens-at-once"),
        ("good", json!(4), "requests.successful", "successes by finish"),
        ("bad", json!(0), "requests.failed", "successes by finish"),
        ("out", json!(9), "tokens.output", "tokens by chunks"),
        ("out", json!(21), "tokens.output", "tokens by text"),
        ("out", json!(15), "tokens.output", "tokens by answer"),
        ("out", json!(30), "tokens.output", "tokens by chunk-texts"),
        (
            "itl",
            json!(250.0 / 9.0),
            "itl.mean",
            "gaps between tokens-at-once, tokens by chunk-texts",
        ),
        ("in", json!(27), "tokens.input", "prompt tokens by usage"),
        ("rate", json!(9.0 / 3.6), "throughput.output", "tokens by chunks"),
        ("seconds", json!(3.4), "duration", "to-last-text"),
    ] {
        let check = off(&with(key, value.clone())).unwrap_or_else(|| panic!("{key} {value}"));
        assert_eq!(check.figure, figure);
        assert_eq!(check.verdict, Verdict::AnotherDefinition, "{check:?}");
        assert_eq!(check.fits.as_deref(), Some(fits), "{key} {value}");
        assert!(check.words.contains(fits), "{}", check.words);
    }
}

#[test]
fn a_figure_without_a_fitting_definition_is_wrong() {
    for (key, value, message) in [
        (
            "ttft",
            json!({ "mean": 77.0 }),
            "fits no definition; the nearest is `first-chunk`, 27.00 ms away",
        ),
        ("out", json!(13), "fits no definition"),
        ("good", json!(null), "states no successful requests"),
        ("tpot", json!("none"), "states no mean TPOT"),
    ] {
        let check = off(&with(key, value)).unwrap();
        assert_eq!(check.verdict, Verdict::Wrong);
        assert!(check.words.contains(message), "{}", check.words);
    }
}

#[test]
fn an_omitted_zero_is_zero() {
    let profile = PROFILE.replace(
        "[figures.\"requests.successful\"]",
        "[figures.\"requests.successful\"]\nzero-is-left-out = true",
    );
    let (_, checks) = judged(CASE, &profile, &with("good", json!(null)));
    let named = |check: &&Check| check.figure == "requests.successful";
    let check = checks.iter().find(named).unwrap();
    assert_eq!((check.verdict, check.said), (Verdict::Wrong, Some(0.0)));
}

#[test]
fn allows_a_stated_error() {
    let check = off(&with("itl", json!(115.0))).unwrap();
    assert_eq!(check.verdict, Verdict::WithinStatedError);
    let (outcome, _) = judged(CASE, PROFILE, &with("itl", json!(115.0)));
    assert_eq!(outcome, Outcome::Judged(Verdict::WithinStatedError));
    let further = off(&with("itl", json!(100.0))).unwrap();
    assert!(further.verdict > Verdict::WithinStatedError);
}

#[test]
fn names_the_warm_up_and_the_slowest() {
    let warm = CASE.replace("[judges]", "warm-up = 1\n[judges]");
    let warm = warm.replace("requests = 4", "requests = 3");
    let mut figures = right();
    figures["good"] = json!(3);
    let (_, checks) = judged(&warm, PROFILE, &figures);
    let good = checks.iter().find(|check| check.figure == "requests.successful").unwrap();
    assert_eq!((good.expected, good.verdict), (Some(2.0), Verdict::AnotherDefinition));
    assert_eq!(good.fits.as_deref(), Some("successes by finish"));
    figures["good"] = json!(4);
    let (_, checks) = judged(&warm, PROFILE, &figures);
    let good = checks.iter().find(|check| check.figure == "requests.successful").unwrap();
    assert_eq!(good.fits.as_deref(), Some("successes by finish, with the warm-up"));
}

#[test]
fn judges_the_load_by_the_server() {
    let more = CASE.replace("requests = 4", "requests = 5");
    let (_, checks) = judged(&more, PROFILE, &right());
    let requests = checks.iter().find(|check| check.figure == "load.requests").unwrap();
    assert_eq!(requests.fits.as_deref(), Some("1 fewer than requested"));
    let wide = CASE.replace("concurrency = 1", "concurrency = 2");
    let (_, checks) = judged(&wide, PROFILE, &right());
    let in_flight = checks.iter().find(|check| check.figure == "load.in-flight").unwrap();
    assert_eq!((in_flight.expected, in_flight.said), (Some(2.0), Some(1.0)));
    assert_eq!(in_flight.verdict, Verdict::Wrong);
    for (rate, arrivals, verdict) in [
        ("1.0", "constant", Verdict::Exact),
        ("2.0", "constant", Verdict::AnotherDefinition),
        ("1.0", "poisson", Verdict::Exact),
    ] {
        let open = CASE
            .replace("concurrency = 1", &format!("rate = {rate}\narrivals = '{arrivals}'"))
            .replace("\"in-flight\"", "\"arrivals\"");
        let (_, checks) = judged(&open, PROFILE, &right());
        let found = checks.iter().find(|check| check.figure == "load.arrivals").unwrap();
        assert_eq!(found.verdict, verdict, "{rate} {arrivals}: {found:?}");
    }
}

#[test]
fn a_missing_source_fails_the_case() {
    let case = Case::read("stream-test.toml", CASE).unwrap();
    let profile = Profile::read("client.toml", PROFILE).unwrap();
    for (content, message) in [
        (Err("the client left no file".to_owned()), "left no file"),
        (Ok(b"{".to_vec()), "no JSON"),
    ] {
        let contents = BTreeMap::from([("result".to_owned(), content)]);
        let run = Run { log: log(), sources: Sources::read(&profile, &contents) };
        let (outcome, _) = judge(&case, &profile, &[run], &count, 1);
        assert!(matches!(&outcome, Outcome::Failed(why) if why.contains(message)), "{outcome:?}");
    }
}

#[test]
fn figures_come_from_lines_text_and_audits() {
    let text = PROFILE.replace("reader = \"json\"", "reader = \"text\"");
    let error = Profile::read("x.toml", &text).unwrap_err().to_string();
    assert!(error.contains("x.toml: `figures.duration`: expected `pattern`"), "{error}");
    let profile = |reader: &str, figures: &str| {
        let text = format!(
            "name = 'c'\ntitle = 'C'\ncommand = ['c']\n\
             [[source]]\nname = 'stdout'\nreader = '{reader}'\n{figures}"
        );
        Profile::read("c.toml", &text).unwrap()
    };
    let figure = |profile: &Profile, content: &str, name: &str, statistic: Option<&str>| {
        let contents = BTreeMap::from([("stdout".to_owned(), Ok(content.as_bytes().to_vec()))]);
        let sources = Sources::read(profile, &contents);
        let statistic = statistic.map(|name| name.parse().unwrap());
        let reading = sources.figure(profile, name, statistic).unwrap();
        reading.map(|reading| (reading.value, reading.rounding))
    };
    let plain = profile(
        "text",
        "[figures.ttft]\ndefinition = 'first-chunk'\nstatistics = ['mean', 'p99']\n\
         names = { mean = 'Mean' }\nunit = 's'\npattern = '{statistic} TTFT: +([0-9.,]+)'",
    );
    let content = "Mean TTFT:  1,234.5\np99 TTFT: 2\n";
    assert_eq!(figure(&plain, content, "ttft", Some("mean")), Some((1_234_500.0, 50.0)));
    assert_eq!(figure(&plain, content, "ttft", Some("p99")), Some((2000.0, 0.0)));
    let lines = profile(
        "json-lines",
        "[figures.ttft]\ndefinition = 'first-chunk'\nstatistics = ['mean']\nat = '/t'\n\
         [figures.'requests.successful']\ndefinition = 'status'\nat = '/ok'\nfold = 'count'\n\
         [figures.'tokens.output']\ndefinition = 'usage'\nat = '/n'\nfold = 'sum'",
    );
    let content = "{\"t\":1,\"ok\":1,\"n\":4}\n{\"t\":3,\"n\":5}\n";
    assert_eq!(figure(&lines, content, "ttft", Some("mean")), Some((2.0, 0.0)));
    assert_eq!(figure(&lines, content, "requests.successful", None), Some((1.0, 0.0)));
    assert_eq!(figure(&lines, content, "tokens.output", None), Some((9.0, 0.0)));
    let audit = profile(
        "vllm",
        "[figures.ttft]\ndefinition = 'first-chunk'\nstatistics = ['mean']\n\
         [figures.duration]\ndefinition = 'to-last-end'",
    );
    let content = r#"{"model_id":"m","completed":2,"duration":1.5,"mean_ttft_ms":7.25}"#;
    assert_eq!(figure(&audit, content, "ttft", Some("mean")).unwrap().0, 7.25);
    assert_eq!(figure(&audit, content, "duration", None).unwrap().0, 1.5);
}

#[test]
fn reports_mistakes_of_files() {
    for (from, to, message) in [
        ("requests = 4", "requests = 0", "at least one request"),
        ("concurrency = 1", "concurrency = 1\nrate = 2.0", "either `concurrency` or `rate`"),
        ("concurrency = 1", "rate = 2.0", "`arrivals` belongs to `rate`"),
        (
            "concurrency = 1",
            "rate = 0.0\narrivals = 'poisson'",
            "`asks.rate`: expected a number above 0, found 0",
        ),
        (
            "output-len = 4",
            "output-len = 4000000000",
            "`asks.output-len`: expected at most 1000000000, found 4000000000",
        ),
        ("\"ttft\",", "\"tttft\",", "tttft"),
        ("[judges]", "[expected.ttft]\nfirst-bite = 1\n[judges]", "first-bite"),
    ] {
        let error = Case::read("c/stream-x.toml", &CASE.replacen(from, to, 1)).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("c/stream-x.toml") && error.contains(message), "{error}");
    }
    let error = Case::read("x.toml", CASE).unwrap_err().to_string();
    assert!(error.contains("begins with load-"), "{error}");
    for (from, to, message) in [
        ("first-text", "first-token", "first-token"),
        ("name = \"client\"", "nam = \"client\"", "nam"),
        ("[figures.ttft]", "[figures.ttft]\nfrom = \"x\"", "no source `x`"),
        ("file = \"{folder}/*.json\"", "", "expected `file`"),
        (
            "[figures.ttft]",
            "[load]\nprobes = 4000000000\n[figures.ttft]",
            "`load.probes`: expected at most 1000000000",
        ),
    ] {
        let error = Profile::read("p.toml", &PROFILE.replacen(from, to, 1)).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("p.toml") && error.contains(message), "{error}");
    }
}

#[test]
fn commands_are_filled() {
    let case = Case::read("stream-test.toml", CASE).unwrap();
    let profile = Profile::read("client.toml", PROFILE).unwrap();
    let mut values = crate::profile::Values::new(&case.asks, 7);
    let error = profile.command_for(&case.asks, &values).unwrap_err();
    assert!(error.contains("`{base-url}` has no value"), "{error}");
    values.set("base-url", "http://x/y");
    let command = profile.command_for(&case.asks, &values).unwrap();
    assert_eq!(command, ["client", "--url=http://x/y", "{}"]);
    assert!(values.fill("a}b").is_err() && values.fill("{a").is_err());
}

#[test]
fn the_card_is_text_and_json() {
    let (outcome, checks) = judged(CASE, PROFILE, &with("ttft", json!({ "mean": 50.0 })));
    let case = |name: &str, outcome: Outcome, checks: Vec<Check>| CaseCard {
        name: name.to_owned(),
        part: crate::types::Part::Streams,
        title: "a role, reasoning, text".to_owned(),
        why: "names differ".to_owned(),
        outcome,
        tries: 1,
        tolerance: "5ms + 2 %".to_owned(),
        checks,
        last_lines: vec!["gone".to_owned()],
        command: Vec::new(),
    };
    let cases = vec![
        case("stream-a", outcome, checks),
        case("stream-b", Outcome::Failed("it left nothing".to_owned()), Vec::new()),
        case("stream-c", Outcome::NotApplicable("it has no chat".to_owned()), Vec::new()),
        case("stream-d", Outcome::Judged(Verdict::Exact), Vec::new()),
    ];
    let client = Client {
        name: "client".to_owned(),
        title: "Client".to_owned(),
        version: Some("1.2".to_owned()),
    };
    let card = Card::new("0.1.0".to_owned(), client, "bytes".to_owned(), cases);
    let text = text::text(&card);
    for line in [
        "Client 1.2, judged by runner 0.1.0",
        "ttft.mean: the client states mean TTFT 50.00 ms; by its own definition `first-text` it is \
         150.00 ms; it fits: first-chunk",
        "| gone",
        "it has no chat",
        "1 exact, 1 by another definition than it claims, 1 failed, 1 not applicable",
    ] {
        assert!(text.contains(line), "{text}");
    }
    assert!(!card.totals.is_clean());
    let schema: Value = serde_json::from_str(&schema::schema("verify").unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let document = serde_json::to_value(&card).unwrap();
    let errors: Vec<String> = validator.iter_errors(&document).map(|e| e.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new());
}

#[test]
fn schemas_are_committed() {
    for name in schema::NAMES {
        let path = format!("{}/schemas/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
        let made = schema::schema(name).unwrap();
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &made).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(committed, made, "{path} is not that of the types; BLESS=1 writes it anew");
    }
}

/// Every shipped case and profile can be read. A case's expectations are apart by more than its
/// tolerance, so no definition passes for another.
#[test]
fn shipped_cases_and_profiles_are_sound() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scenarios/conformance");
    let read = |folder: &str| -> Vec<(String, String)> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let files = entries.filter(|path| path.extension().is_some_and(|own| own == "toml"));
        files
            .map(|path| {
                let text = std::fs::read_to_string(&path).unwrap();
                (path.file_name().unwrap().to_string_lossy().into_owned(), text)
            })
            .collect()
    };
    let cases = read(folder);
    assert!(cases.len() > 30, "{}", cases.len());
    let older = read(&format!("{folder}/clients/older/cases"));
    for (name, text) in cases.into_iter().chain(older) {
        let case = Case::read(&name, &text).unwrap_or_else(|error| panic!("{error}"));
        for (figure, by) in &case.expected {
            let mut values: Vec<f64> = by.values().copied().collect();
            values.sort_by(f64::total_cmp);
            values.dedup();
            for pair in values.windows(2) {
                let tolerance = case.tolerance.millis() + case.tolerance.share * pair[1];
                let is_time = !figure.contains('.');
                assert!(!is_time || pair[1] - pair[0] > tolerance, "{name}: {figure} {pair:?}");
            }
        }
    }
    for folder in ["clients", "clients/older"].map(|below| format!("{folder}/{below}")) {
        let profiles = read(&folder);
        assert!(profiles.len() > 4, "{folder}");
        for (name, text) in profiles {
            let profile = Profile::read(&name, &text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(format!("{}.toml", profile.name), name);
        }
    }
    assert_eq!(Meaning::default().word(crate::meaning::Quantity::Ttft), "first-text");
}

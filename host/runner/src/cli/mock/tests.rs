//! The effect of the flags of `runner mock` on its script, and the refused flags.

use std::time::Duration;

use clap::Parser;

use super::*;

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

fn script(flags: &[&str]) -> Result<Script, String> {
    let line =
        Line::try_parse_from([&["mock"], flags].concat()).map_err(|error| error.to_string())?;
    line.args.script().map_err(|failure| failure.message())
}

#[test]
fn without_flags_the_script_is_the_default_one() {
    assert_eq!(script(&[]), Ok(Script::default()));
}

#[test]
fn flags_override_the_file() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let text = "ttft = '1s'\nitl = '5ms'\n[[fault]]\nkind = 'crlf'";
    std::fs::write(file.path(), text).unwrap();
    let path = file.path().to_str().unwrap();
    let cut = "kind = 'cut', after-tokens = 5, every = 10";
    let two = format!("{cut}; kind = 'ping'");
    let flags = ["--script", path, "--itl", "1.5ms", "--echo", "--model", "a,b", "--fault", &two];
    let script = script(&flags).unwrap();
    assert_eq!(script.ttft, Span(Duration::from_secs(1)));
    assert_eq!(script.itl, Span(Duration::from_micros(1500)));
    assert_eq!(script.answer, AnswerText::Echo);
    assert_eq!(script.models, ["a", "b"]);
    assert_eq!(
        script.faults,
        ["kind = 'crlf'", cut, "kind = 'ping'"].map(|fault| fault.parse().unwrap())
    );
}

/// Flags that set times, with their usual values where they have one.
const TIMED: [&str; 4] = ["--ttft=100ms", "--itl=10ms", "--spread=0", "--max-concurrency=4"];

/// Returns the refusal of a command line that its own rules allow.
fn refused(flags: &[&str]) -> String {
    let line = Line::try_parse_from([&["mock"], flags].concat()).unwrap();
    let error = line.args.script().unwrap_err();
    assert_eq!(error.exit, Exit::CommandLine, "{error:?}");
    error.message()
}

#[test]
fn parameters_of_a_batch_can_be_given_as_a_model() {
    let as_model = script(&["--model", "m,slots=4,jitter=0", "--model", "base=v2"]).unwrap();
    assert_eq!(as_model.batching, Some("slots=4,jitter=0".parse().unwrap()));
    assert_eq!(as_model.models, ["m", "base=v2"]);
    // Only names of parameters count.
    for name in ["base=v2", "slot=4", "=", "=4", "slots", "Slots=4"] {
        let script = script(&["--model", name]).unwrap();
        assert_eq!((&script.models[..], script.batching), (&[name.to_owned()][..], None));
    }
    // Mistakes have the same words as in `--batching`, wherever they stand.
    for wrong in ["slots=0", "slots=1,slots=1", "step=5,kv=x"] {
        let as_batching = script(&["--batching", wrong]).unwrap_err();
        let why = wrong.parse::<Parameters>().unwrap_err();
        assert!(as_batching.contains(&why), "{as_batching}");
        let each = wrong.split(',').flat_map(|value| ["--model", value]);
        for flags in [vec!["--model", wrong], each.collect()] {
            let wanted = format!("invalid value '{wrong}' for '--model': {why}");
            assert_eq!(refused(&flags), wanted);
        }
    }
    for flag in TIMED.into_iter().chain(["--batching=slots=4"]) {
        let error = refused(&["--model", "m,slots=4", "--model", "kv=9", flag]);
        let (name, _) = flag.split_once('=').unwrap();
        let wanted = format!("the argument '{name}' cannot be used with '--model slots=4,kv=9'");
        assert_eq!(error, wanted);
    }
    // It replaces the table of a file.
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "models = 'a'\n[batching]\nslots = 4").unwrap();
    let path = file.path().to_str().unwrap();
    let replaced = script(&["--script", path, "--model", "kv=9"]).unwrap();
    assert_eq!(replaced.batching, Some("kv=9".parse().unwrap()));
    assert_eq!(replaced.models, ["a"]);
}

#[test]
fn a_batch_has_its_parameters() {
    let batching = |flags: &[&str]| script(flags).unwrap().batching;
    let wanted: Parameters = "slots=4,jitter=0".parse().unwrap();
    let flag = ["--batching", "slots=4,jitter=0", "--seed", "3"];
    assert_eq!(batching(&flag), Some(wanted.clone()));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "[batching]\nslots = 4\njitter = 0").unwrap();
    let path = file.path().to_str().unwrap();
    assert_eq!(batching(&["--script", path]), Some(wanted));
    // A flag replaces the whole table, and is checked against it even if it states the usual value.
    let wanted: Parameters = "kv=9".parse().unwrap();
    assert_eq!(batching(&["--script", path, "--batching", "kv=9"]), Some(wanted));
    for flag in TIMED {
        let error = refused(&["--script", path, flag]);
        let (name, _) = flag.split_once('=').unwrap();
        let wanted = format!("the argument '{name}' cannot be used with `batching` in the script");
        assert_eq!(error, wanted);
    }
    // Help states every parameter with its default.
    let help = batching_help();
    for (name, about) in PARAMETERS {
        let line = help.lines().find(|line| line.ends_with(about)).unwrap();
        assert!(line.starts_with(&format!("- {name}=")), "{line}");
    }
}

#[test]
fn mistakes_are_named() {
    for (flags, message) in [
        (["--ttft", "5"], "a unit is missing; write `5ms`"),
        (["--fault", "kind = 'cut'"], "needs `after-tokens`"),
        (["--script", "no-such-file.toml"], "no-such-file.toml"),
        (["--usage", "sometimes"], "last-chunk"),
        (["--batching", "slot=1,kv=x"], "did you mean `slots`?; there are slots, step"),
        (["--batching", "slot=1,kv=x"], "`kv=x`: expected"),
        (
            ["--batching=slots=2", "--itl=1ms"],
            "'--batching <NAME=VALUE,...>' cannot be used with '--itl <TIME>'",
        ),
    ] {
        let error = script(&flags).unwrap_err();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn every_number_is_taken_or_refused() {
    let flags = "ttft itl spread seed tokens-per-chunk max-concurrency output-tokens stop-after context-limit";
    let values = "0 1 -1 4294967295 18446744073709551615 1e300 1e-300 nan inf 9999999999h 1ns";
    for flag in flags.split(' ') {
        for value in values.split(' ') {
            let word = format!("--{flag}={value}");
            let Ok(line) = Line::try_parse_from(["mock", &word]) else { continue };
            let script = line.args.script().unwrap();
            let spans = [script.ttft.0, script.itl.0];
            let fits = spans.iter().all(|span| *span < Duration::from_secs(1 << 26))
                && (0.0..=2.0).contains(&script.spread)
                && script.context_limit.get() <= 1 << 24;
            assert_eq!(script.check().is_ok(), fits, "{word}");
        }
    }
}

#[test]
fn names_an_unavailable_address() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let line = Line::try_parse_from(["mock", "--port", &port]).unwrap();
    let error = exec(&line.args).unwrap_err();
    assert_eq!(error.exit, Exit::CommandLine);
    assert!(error.message().contains(&format!("127.0.0.1:{port}")), "{error:?}");
}

//! Access of a component that imports WASI: to nothing, the same every time.

use plugins::PluginError;
use plugins::scorer::Judge;
use serde_json::{Value, json};

use super::fixture::{CURIOUS, curious, exchange, fails, grants, trapped};

fn judge(config: &Value) -> Judge {
    curious(config, grants(config)).open().unwrap()
}

#[track_caller]
fn gets(config: &Value) -> String {
    let mut scores = judge(config).score(&exchange("")).unwrap();
    assert_eq!(scores.len(), 1);
    scores.remove(0).0
}

#[track_caller]
fn traps(config: &Value) -> PluginError {
    let mut judge = judge(config);
    let error = fails(judge.score(&exchange("")));
    // The next call has a fresh instance, which does the same.
    assert_eq!(fails(judge.score(&exchange(""))).to_string(), error.to_string());
    error
}

#[test]
fn there_is_nothing_to_be_had() {
    for (ask, got) in [
        ("environment", "[] [] None"),
        ("clocks", "0 [0] 0 0.0 true"),
        ("files", "0"),
        ("input", "true"),
        ("terminal", "true"),
    ] {
        assert_eq!(gets(&json!({"ask": ask})), got, "{ask}");
    }
}

#[test]
fn random_numbers_follow_from_the_seed() {
    let config = json!({"ask": "random"});
    let of_seed = |seed: u64| {
        let mut grants = grants(&config);
        grants.seed = seed;
        let mut judge = curious(&config, grants).open().unwrap();
        [(); 2].map(|()| judge.score(&exchange("")).unwrap().remove(0).0)
    };
    let [first, second] = of_seed(7);
    assert_ne!(first, second);
    assert_eq!(of_seed(7), [first.clone(), second]);
    assert_ne!(of_seed(8)[0], first);
    // SplitMix64's first of seed 1.
    assert!(gets(&config).starts_with("10451216379200822465 ("));
}

#[test]
fn random_bytes_are_bounded() {
    let of = |bytes: u64| json!({"ask": "random-bytes", "bytes": bytes});
    assert_eq!(gets(&of(0)), "0 []");
    assert!(gets(&of(3)).starts_with("3 [193, "));
    assert!(gets(&of(65_536)).starts_with("65536 [193, "));
    for bytes in [65_537, u64::MAX] {
        trapped(
            &traps(&of(bytes)),
            CURIOUS,
            "score",
            &format!("it asked for {bytes} random bytes at once, at most 65536 are allowed"),
        );
    }
}

#[test]
fn a_missing_function_ends_the_call_by_name() {
    for (ask, cause) in [
        (
            "network",
            "it called `wasi:sockets/instance-network#instance-network`: a plugin has no network",
        ),
        (
            "socket",
            "it called `wasi:sockets/tcp-create-socket#create-tcp-socket`: a plugin has no network",
        ),
        ("exit", "it called `exit`; a plugin must return a result or an error"),
        ("handles", "it holds more handles than any plugin needs (a leak)"),
    ] {
        trapped(&traps(&json!({"ask": ask})), CURIOUS, "score", cause);
    }
}

#[test]
fn output_goes_to_the_log() {
    let config = json!({"ask": "print", "print": "one\ntwo \u{1b}[2J\n\nthree"});
    let grants = grants(&config);
    let log = grants.log.clone();
    let mut judge = curious(&config, grants).open().unwrap();
    assert_eq!(judge.score(&exchange("")).unwrap()[0].0, "65536 true");
    judge.score(&exchange("")).unwrap();
    drop(judge);
    let line = |text: &str| format!("info {CURIOUS}: {text}");
    let lines = ["one", "two  [2J", "three", "one", "two  [2J", "three"];
    assert_eq!(log.drain(), lines.map(line));
}

#[test]
fn a_line_without_end_is_cut() {
    let config = json!({"ask": "print", "print": "x".repeat(100_000)});
    let grants = grants(&config);
    let log = grants.log.clone();
    let mut judge = curious(&config, grants).open().unwrap();
    for _ in 0..50 {
        judge.score(&exchange("")).unwrap();
    }
    drop(judge);
    let lines = log.drain();
    assert_eq!(lines.len(), 50);
    assert!(lines.iter().all(|line| line.len() < 4_200 && line.ends_with("x…")));
}

#[test]
fn the_last_output_is_the_reason_of_an_abort() {
    let config = json!({"ask": "print-and-abort", "print": "Traceback:\n  ValueError: no"});
    trapped(&traps(&config), CURIOUS, "score", "it panicked: Traceback: |   ValueError: no");
}

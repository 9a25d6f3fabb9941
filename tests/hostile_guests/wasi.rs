//! Access of components that import WASI 0.2, and 0.3 beside it: to nothing, the same every time.

use plugins::PluginError;
use plugins::sandbox::Grants;
use plugins::scorer::{Judge, Scorer};
use serde_json::{Value, json};

use super::fixture::{CURIOUS, THIRD, curious, exchange, fails, grants, third, trapped};

/// Loads a guest with a configuration and grants.
type Load = fn(&Value, Grants) -> Scorer;

/// The guests and their names: of WASI 0.2, and of 0.3.
const GUESTS: [(Load, &str); 2] = [(curious, CURIOUS), (third, THIRD)];

/// A judge of WASI 0.3 whose calls are short.
fn hasty(ask: &str) -> Judge {
    let config = json!({"ask": ask});
    let mut grants = grants(&config);
    grants.limits.scorer_call_ms = 200;
    third(&config, grants).open().unwrap()
}

#[track_caller]
fn gets(load: Load, config: &Value) -> String {
    let mut scores = load(config, grants(config)).open().unwrap().score(&exchange("")).unwrap();
    assert_eq!(scores.len(), 1);
    scores.remove(0).0
}

#[track_caller]
fn traps(load: Load, config: &Value) -> PluginError {
    let mut judge = load(config, grants(config)).open().unwrap();
    let error = fails(judge.score(&exchange("")));
    // The next call has a fresh instance, which does the same.
    assert_eq!(fails(judge.score(&exchange(""))).to_string(), error.to_string());
    error
}

#[test]
fn there_is_nothing_to_be_had() {
    for (ask, second, third) in [
        ("environment", "[] [] None", "[] [] None 0"),
        ("clocks", "0 [0] 0 0.0 true", "0 0 0.0 1 1"),
        ("files", "0", "0"),
        ("input", "true", "true 0 Ok(())"),
        ("terminal", "true", "true"),
    ] {
        for ((load, name), expected) in GUESTS.into_iter().zip([second, third]) {
            assert_eq!(gets(load, &json!({"ask": ask})), expected, "{name}: {ask}");
        }
    }
}

#[test]
fn random_numbers_follow_from_the_seed() {
    let config = json!({"ask": "random"});
    for (load, name) in GUESTS {
        let of_seed = |seed: u64| {
            let mut grants = grants(&config);
            grants.seed = seed;
            let mut judge = load(&config, grants).open().unwrap();
            [(); 2].map(|()| judge.score(&exchange("")).unwrap().remove(0).0)
        };
        let [first, second] = of_seed(7);
        assert_ne!(first, second, "{name}");
        assert_eq!(of_seed(7), [first.clone(), second], "{name}");
        assert_ne!(of_seed(8)[0], first, "{name}");
    }
    // SplitMix64's first of seed 1.
    assert!(gets(curious, &config).starts_with("10451216379200822465 ("));
}

#[test]
fn random_bytes_are_bounded() {
    let of = |bytes: u64| json!({"ask": "random-bytes", "bytes": bytes});
    assert_eq!(gets(curious, &of(0)), "0 []");
    assert!(gets(curious, &of(3)).starts_with("3 [193, "));
    assert!(gets(curious, &of(65_536)).starts_with("65536 [193, "));
    assert!(gets(third, &of(65_536)).starts_with("65536 ["));
    let bounded = |bytes: u64, load: Load, name: &str| {
        let cause = format!("it asked for {bytes} random bytes at once, at most 65536 are allowed");
        trapped(&traps(load, &of(bytes)), name, "score", &cause);
    };
    for (load, name) in GUESTS {
        bounded(65_537, load, name);
    }
    bounded(u64::MAX, curious, CURIOUS);
}

#[test]
fn a_missing_function_ends_the_call_by_name() {
    let [second, third] = GUESTS;
    let exit = "it called `exit`; a plugin must return a result or an error";
    for ((load, name), ask, cause) in [
        (
            second,
            "network",
            "it called `wasi:sockets/instance-network#instance-network`: a plugin has no network",
        ),
        (
            second,
            "socket",
            "it called `wasi:sockets/tcp-create-socket#create-tcp-socket`: a plugin has no network",
        ),
        (second, "exit", exit),
        (second, "handles", "it holds more handles than any plugin needs (a leak)"),
        (
            third,
            "socket",
            "it called `wasi:sockets/types#[static]tcp-socket.create`: a plugin has no network",
        ),
        (third, "exit", exit),
        (third, "wait-forever", "it waits for something that never happens in the sandbox"),
    ] {
        trapped(&traps(load, &json!({"ask": ask})), name, "score", cause);
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
fn output_of_many_calls_goes_to_the_log() {
    let config = json!({"ask": "print", "print": "one\ntwo"});
    let grants = grants(&config);
    let log = grants.log.clone();
    let mut judge = third(&config, grants).open().unwrap();
    for _ in 0..100 {
        assert_eq!(judge.score(&exchange("")).unwrap()[0].0, "0 Ok(())");
    }
    drop(judge);
    let lines = log.drain();
    assert_eq!(lines.len(), 200);
    for (number, line) in lines.iter().enumerate() {
        let text = ["one", "two"][number % 2];
        assert_eq!(*line, format!("info {THIRD}: {text}"));
    }
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
    for (load, name) in GUESTS {
        let error = traps(load, &config);
        trapped(&error, name, "score", "it panicked: Traceback: |   ValueError: no");
    }
}

#[test]
fn an_endless_call_is_stopped() {
    let limits = "it ran longer than the 200 ms allowed for a call (fix the endless loop, or raise the limit under [sandbox])";
    trapped(&fails(hasty("loop").score(&exchange(""))), THIRD, "score", limits);
    for (ask, cause) in [
        (
            "memory",
            "it asked for more memory than the 32 MiB allowed (raise `memory` under [sandbox] if it really needs more)",
        ),
        ("streams", "it holds more handles than any plugin needs (a leak)"),
    ] {
        trapped(&traps(third, &json!({"ask": ask})), THIRD, "score", cause);
    }
}

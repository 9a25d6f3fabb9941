//! Access of a component that imports WASI 0.3 beside 0.2: to nothing, the same every time.

use plugins::PluginError;
use plugins::scorer::Judge;
use serde_json::{Value, json};

use super::fixture::{THIRD, exchange, fails, grants, third, trapped};

/// A judge whose calls are short.
fn hasty(ask: &str) -> Judge {
    let config = json!({"ask": ask});
    let mut grants = grants(&config);
    grants.limits.scorer_call_ms = 200;
    third(&config, grants).open().unwrap()
}

fn judge(config: &Value) -> Judge {
    third(config, grants(config)).open().unwrap()
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
        ("environment", "[] [] None 0"),
        ("clocks", "0 0 0.0 1 1"),
        ("files", "0"),
        ("input", "true 0 Ok(())"),
        ("terminal", "true"),
    ] {
        assert_eq!(gets(&json!({"ask": ask})), got, "{ask}");
    }
}

#[test]
fn random_numbers_follow_from_the_seed_and_are_bounded() {
    let config = json!({"ask": "random"});
    let of_seed = |seed: u64| {
        let mut grants = grants(&config);
        grants.seed = seed;
        let mut judge = third(&config, grants).open().unwrap();
        [(); 2].map(|()| judge.score(&exchange("")).unwrap().remove(0).0)
    };
    let [first, second] = of_seed(7);
    assert_ne!(first, second);
    assert_eq!(of_seed(7), [first.clone(), second]);
    assert_ne!(of_seed(8)[0], first);
    let of = |bytes: u64| json!({"ask": "random-bytes", "bytes": bytes});
    assert!(gets(&of(65_536)).starts_with("65536 ["));
    trapped(
        &traps(&of(65_537)),
        THIRD,
        "score",
        "it asked for 65537 random bytes at once, at most 65536 are allowed",
    );
}

#[test]
fn output_goes_to_the_log() {
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
fn a_missing_function_ends_the_call_by_name() {
    for (ask, cause) in [
        (
            "socket",
            "it called `wasi:sockets/types#[static]tcp-socket.create`: a plugin has no network",
        ),
        ("exit", "it called `exit`; a plugin must return a result or an error"),
        ("wait-forever", "it waits for something that never happens in the sandbox"),
    ] {
        trapped(&traps(&json!({"ask": ask})), THIRD, "score", cause);
    }
}

#[test]
fn the_last_output_is_the_reason_of_an_abort() {
    let config = json!({"ask": "print-and-abort", "print": "Traceback:\n  ValueError: no"});
    trapped(&traps(&config), THIRD, "score", "it panicked: Traceback: |   ValueError: no");
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
        trapped(&traps(&json!({"ask": ask})), THIRD, "score", cause);
    }
}

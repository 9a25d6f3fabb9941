//! Equal components and inputs give equal outputs, in every instance and in every process.

use std::process::Command;

use serde_json::json;

use super::fixture::{curious, exchange, grants};

/// Set where another process of this test is to print its output.
const PRINT: &str = "RUNNER_TEST_PRINT_OUTPUT";

/// Returns the results of a fresh instance for each of three calls.
fn three_calls() -> Vec<Vec<String>> {
    let config = json!({});
    let mut judge = curious(&config, grants(&config)).open().unwrap();
    let calls = (0..3).map(|_| judge.score(&exchange("")).unwrap());
    calls.map(|scores| scores.into_iter().map(|(name, _)| name).collect()).collect()
}

#[test]
fn instances_with_equal_input_give_equal_output() {
    let first = three_calls();
    for _ in 0..3 {
        assert_eq!(three_calls(), first);
    }
}

/// Everything that a plugin keeps and computes does not change with use. The order of a map that is
/// made anew in every call does: the hasher's seed counts the maps of an instance. `runner plugin
/// test` finds plugins whose output depends on it.
#[test]
fn a_used_instance_agrees_with_a_fresh_instance() {
    let calls = three_calls();
    for call in &calls[1..] {
        assert_eq!(call[0], calls[0][0], "the order of a map that is kept");
        assert_eq!(call[2], calls[0][2], "floats as text");
    }
    assert!(calls[0][2].starts_with("[0.30000000000000004, 1e21, 0.3333333333333333, "));
    let sorted = format!("{:?}", (0..64).collect::<Vec<u32>>());
    assert_ne!(calls[0][0], sorted, "there is an order to get wrong");
}

#[test]
fn another_process_gets_the_same() {
    let own = format!("output: {:?}", three_calls());
    if std::env::var_os(PRINT).is_some() {
        println!("{own}");
        return;
    }
    let program = std::env::current_exe().unwrap();
    let name = "hostile_guests::determinism::another_process_gets_the_same";
    for _ in 0..2 {
        let output = Command::new(&program)
            .args(["--exact", name, "--nocapture"])
            .env(PRINT, "1")
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.lines().any(|line| line == own), "{text}");
    }
}

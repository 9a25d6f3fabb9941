//! `runner explain`: its output for saved pairs, and its refusals.

use std::path::{Path, PathBuf};

use crate::support::process::{run, runner};
use crate::support::results::follows;

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/explain").join(name)
}

/// The command prints the output that the cases keep, as text and as JSON.
#[test]
fn a_run_and_another_tools_result_are_explained() {
    let folder = case("vllm");
    let explain = |flags: &[&str]| {
        let mut command = runner();
        command.args(["explain", "a", "b.json"]).args(flags);
        run(command.current_dir(&folder)).with_code(0).stdout
    };
    let kept = std::fs::read_to_string(folder.join("expected.txt")).unwrap();
    assert_eq!(explain(&[]), kept);
    let shown: serde_json::Value = serde_json::from_str(&explain(&["--format", "json"])).unwrap();
    follows("explain", &shown);
}

#[test]
fn refuses_no_result_and_several_results() {
    let folder = case("");
    let refused = |a: &str, b: &str| {
        run(runner().args(["explain", a, b]).current_dir(&folder)).with_code(3).stderr
    };
    let missing = refused("vllm/a", "missing.json");
    assert!(missing.contains("missing.json: cannot be read"), "{missing}");
    let several = refused("lengths", "vllm/b.json");
    assert!(
        several.contains("lengths: holds 2 runs") && several.contains("name the folder of one"),
        "{several}"
    );
}

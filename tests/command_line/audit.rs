//! Results of other tools, read and judged: from files, from a pipe, from the built-in ones.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::transcript;
use crate::support::process::{Exit, run, runner};

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/audit").join(name)
}

fn audit(folder: &str, flags: &[&str], code: i32) -> Exit {
    run(runner().arg("audit").args(flags).current_dir(case(folder))).with_code(code)
}

#[test]
fn a_page_is_judged_block_by_block() {
    let ended = audit("lmdeploy-page", &["input.md"], 0);
    assert_eq!(ended.stderr, "");
    transcript("audit-text", &ended.stdout);
    let kept = std::fs::read_to_string(case("lmdeploy-page").join("expected.txt")).unwrap();
    assert_eq!(ended.stdout, kept);
}

#[test]
fn strict_fails_on_invalid_results_only() {
    let suspect = audit("gpt-oss-page", &["--strict", "--format", "github", "input.md"], 0);
    transcript("audit-github", &suspect.stdout);
    let report = audit("gpustack-page", &["--strict", "--format", "json", "input.md"], 7).json();
    assert_eq!(report["totals"]["valid"], 0);
    assert!(report["headlines"].as_array().is_some_and(|headlines| !headlines.is_empty()));
    audit("gpustack-page", &["input.md"], 0);
}

/// They do not keep the others from being audited.
#[test]
fn all_unreadable_files_are_reported_at_once() {
    let files =
        ["broken-json/input.json", "no-result/input.txt", "lmdeploy-page/input.md", "missing.json"];
    let ended = audit(".", &files, 3);
    let alone = audit(".", &files[2..3], 0);
    assert_eq!(ended.stdout, alone.stdout);
    assert_eq!(audit(".", &files[..2], 3).stdout, "");
    transcript("wrong-audit-files", &ended.stderr);
}

#[test]
fn reads_the_output_of_another_tool_from_a_pipe() {
    let content = std::fs::read(case("vllm-log").join("input.txt")).unwrap();
    let mut command = runner();
    command.args(["audit", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(&content).unwrap();
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{message}");
    assert!(message.starts_with("-:10  valid\n"), "{message}");
}

#[test]
fn published_results_are_listed_with_their_audit() {
    let listed = run(runner().args(["published", "*sharegpt*"])).with_code(0);
    transcript("published", &listed.stdout);
    let one = "published:vllm-0.10.1/h800/gpt-oss-20b/long-input";
    let audited = run(runner().args(["audit", one])).with_code(0);
    transcript("audit-published", &audited.stdout);
    let wrong =
        run(runner().args(["published", "vllm-0.10.1/h800/gpt-oss-20b/long-inptu"])).with_code(3);
    transcript("wrong-published", &wrong.stderr);
}

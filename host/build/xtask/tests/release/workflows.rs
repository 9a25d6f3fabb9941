//! Rights of the workflows: least rights, pinned actions, and scripts without text from outside.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Value, json};

use super::workflow::{Workflow, expressions, list};
use super::{Scratch, read, root, xtask};

#[test]
fn each_job_has_the_least_rights() {
    let release = Workflow::read("release.yml");
    assert_eq!(release.contents["permissions"], json!({}));
    let reads = json!({"contents": "read"});
    let signs = json!({"id-token": "write"});
    let expected = json!({
        "check": reads,
        "test": reads,
        "package": reads,
        "site": reads,
        "gather": reads,
        "attest": {"id-token": "write", "attestations": "write"},
        "draft": {"contents": "write"},
        "pypi": signs,
        "npm": signs,
        "image": {"packages": "write", "id-token": "write", "attestations": "write"},
        "pages": {"pages": "write", "id-token": "write"},
        "publish": {"contents": "write"},
    });
    let rights: Value = (release.jobs())
        .map(|(name, job)| (name.clone(), job["permissions"].clone()))
        .collect::<serde_json::Map<_, _>>()
        .into();
    assert_eq!(rights, expected);
    let test = Workflow::read("test.yml");
    assert_eq!(test.contents["permissions"], reads);
    assert!(test.jobs().all(|(_, job)| job["permissions"].is_null()));
}

/// A job that may write, sign or publish runs no code of a commit, and waits for somebody.
#[test]
fn jobs_with_rights_run_no_code_of_the_repository() {
    let release = Workflow::read("release.yml");
    for (name, job) in release.jobs() {
        let may_write =
            job["permissions"].as_object().unwrap().values().any(|right| right == "write");
        let steps = job["steps"].as_array().unwrap();
        let is_of_tree = |step: &Value| {
            step["uses"].as_str().is_some_and(|uses| uses.starts_with("actions/checkout@"))
                || step["run"].as_str().is_some_and(|run| run.contains("cargo"))
        };
        assert!(!(may_write && steps.iter().any(is_of_tree)), "{name}");
        let publishes = may_write && name != "attest";
        assert_eq!(publishes, job["environment"].is_string(), "{name}");
        assert!(job["timeout-minutes"].is_u64(), "{name}");
    }
}

#[test]
fn actions_are_pinned_to_commits() {
    for workflow in Workflow::all() {
        let mut pinned = 0;
        for line in workflow.text.lines() {
            let line = line.trim_start().trim_start_matches("- ");
            let Some(uses) = line.strip_prefix("uses: ") else { continue };
            let (action, version) = uses.split_once(" # ").unwrap_or((uses, ""));
            let (_, commit) = action.split_once('@').unwrap_or((action, ""));
            assert!(
                commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()),
                "{}: `{uses}` is not pinned to a commit",
                workflow.name
            );
            let numbers = version.strip_prefix('v').unwrap_or("");
            assert!(
                numbers.split('.').count() == 3
                    && numbers.split('.').all(|number| number.parse::<u32>().is_ok()),
                "{}: `{uses}` does not say which version that is",
                workflow.name
            );
            pinned += 1;
        }
        // The lines must show every use that YAML finds.
        let steps = workflow.steps();
        let used = steps.iter().filter(|(_, step)| step["uses"].is_string());
        assert_eq!(used.count(), pinned, "{}", workflow.name);
        assert!(workflow.jobs().all(|(_, job)| job["uses"].is_null()));
    }
}

/// A script with an expression in it runs the text of the expression's value. Values come in by
/// variables, and none of them is a title, a branch or another text that strangers write.
#[test]
fn scripts_take_nothing_from_outside() {
    let known = [
        "github.token",
        "github.ref",
        "github.ref == 'refs/heads/main'",
        "github.repository",
        "!inputs.dry-run",
        "matrix.target",
        "matrix.machine",
        "needs.check.outputs.version",
        "steps.changes.outputs.code",
        "steps.version.outputs.version",
        "steps.push.outputs.image",
        "steps.push.outputs.digest",
    ];
    for workflow in Workflow::all() {
        for (job, step) in workflow.steps() {
            let script = step["run"].as_str().unwrap_or("");
            assert!(!script.contains("${{"), "{} {job}: {script}", workflow.name);
            if let Some(uses) = step["uses"].as_str()
                && uses.starts_with("actions/checkout@")
            {
                assert_eq!(step["with"]["persist-credentials"], false, "{job}");
            }
        }
        for expression in expressions(&workflow.text) {
            assert!(known.contains(&expression), "{}: {expression}", workflow.name);
        }
        assert_eq!(workflow.contents["defaults"]["run"]["shell"], "bash");
    }
}

/// Jobs share the steps of the README's command: none is forgotten, none is unknown.
#[test]
fn pull_requests_run_the_readmes_test() {
    let test = Workflow::read("test.yml");
    let steps = test.steps();
    let scripts = steps.iter().filter_map(|(_, step)| step["run"].as_str());
    let called: BTreeSet<&str> = (scripts.filter_map(|run| run.strip_prefix("cargo xtask test ")))
        .flat_map(str::split_whitespace)
        .collect();
    let refused = xtask(&root(), &["test", "unknown"]).badly().concat();
    let (_, known) = refused.split_once("the steps are ").expect("a list of all steps");
    assert_eq!(called, known.split(", ").collect());
    assert!(read(root().join("README.md")).contains("\ncargo xtask test\n"));
    let events = test.contents["on"].as_object().unwrap();
    // `pull_request_target` would run a stranger's change with the rights of the repository.
    assert_eq!(events.keys().collect::<Vec<_>>(), ["pull_request", "push"]);
    // The job that a branch rule requires depends on all others.
    let all: BTreeSet<String> = test.jobs().map(|(name, _)| name.clone()).collect();
    let mut required: BTreeSet<String> =
        list(&test.contents["jobs"]["test"]["needs"]).into_iter().collect();
    required.insert("test".to_owned());
    assert_eq!(required, all);
}

/// A change in any folder is tested, and only documents are spared the tests of code.
#[test]
fn changed_paths_choose_the_jobs() {
    let test = Workflow::read("test.yml");
    let plan = &test.contents["jobs"]["plan"]["steps"];
    let script = plan[1]["run"].as_str().unwrap();
    for job in ["unit", "whole"] {
        assert_eq!(test.contents["jobs"][job]["if"], "needs.plan.outputs.code == 'true'");
    }
    let folders = Command::new("git")
        .current_dir(root())
        .args(["ls-tree", "-d", "--name-only", "HEAD"])
        .output()
        .unwrap();
    let folders = String::from_utf8(folders.stdout).unwrap();
    assert!(folders.lines().count() > 5, "{folders}");
    let documents =
        ["README.md", ".github/STYLE.md", "host/ARCHITECTURE.md", "host/guide/src/start.md"];
    let changes = (folders.lines())
        .map(|folder| (format!("{folder}/new.rs"), "pull_request", true))
        .chain([("host/guide/src/reference/new.md".to_owned(), "pull_request", true)])
        .chain(documents.map(|document| (document.to_owned(), "pull_request", false)))
        .chain([("README.md".to_owned(), "push", true)]);
    let scratch = Scratch::new("");
    let output = scratch.path().join(".git/output");
    for (path, event, code) in changes {
        scratch.write(&path, event);
        scratch.commit();
        let status = Command::new("bash")
            .args(["-eo", "pipefail", "-c", script])
            .current_dir(scratch.path())
            .env("GITHUB_EVENT_NAME", event)
            .env("GITHUB_OUTPUT", &output)
            .status()
            .unwrap();
        assert!(status.success(), "{path}");
        assert_eq!(read(&output), format!("code={code}\n"), "{event} of {path}");
        std::fs::remove_file(&output).unwrap();
    }
}

/// Only a tag publishes by itself, and only one release runs at a time.
#[test]
fn a_release_starts_with_a_tag_or_a_dry_run() {
    let release = Workflow::read("release.yml");
    let events = release.contents["on"].as_object().unwrap();
    assert_eq!(events.keys().collect::<Vec<_>>(), ["push", "workflow_dispatch"]);
    assert_eq!(events["push"], json!({"tags": ["v*"]}));
    let dry_run = &events["workflow_dispatch"]["inputs"]["dry-run"];
    assert_eq!((&dry_run["type"], &dry_run["default"]), (&json!("boolean"), &json!(true)));
    assert_eq!(
        release.contents["concurrency"],
        json!({"group": "release", "cancel-in-progress": false})
    );
}

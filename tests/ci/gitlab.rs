//! The template for GitLab, run as GitLab's runner does. The template and the user's file make the
//! job, its rules give variables, and the items of `script` are lines of one shell.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::api::Api;
use super::{Checkout, TOKEN, copy, failing, is_equipped, ours, shell, text, yaml};
use crate::support::process::run;

/// A project on GitLab, with its caches.
struct Project {
    api: Api,
    home: tempfile::TempDir,
}

struct Job {
    code: Option<i32>,
    log: String,
}

impl Project {
    fn new() -> Self {
        Project { api: Api::start(), home: tempfile::tempdir().unwrap() }
    }

    /// The example's job, on the default branch or for a merge request.
    fn job(&self, checkout: &Checkout, is_merge_request: bool) -> Job {
        let file = yaml(&checkout.path().join(".gitlab-ci.yml"));
        let template = yaml(&ours("gitlab/benchmark.yml"));
        let (job, base) = (&file["benchmark"], &template[".runner-benchmark"]);
        assert_eq!(job["extends"], ".runner-benchmark");
        let source = if is_merge_request { "merge_request_event" } else { "push" };
        let mut variables: BTreeMap<String, String> = BTreeMap::new();
        let mut set = |of: &Value| {
            for (name, value) in of.as_object().into_iter().flatten() {
                variables.insert(name.clone(), text(value));
            }
        };
        set(&base["variables"]);
        set(&job["variables"]);
        // The rules are these two.
        let rules = base["rules"].as_array().unwrap();
        assert_eq!(rules[0]["if"], r#"$CI_PIPELINE_SOURCE == "merge_request_event""#);
        assert_eq!(rules[1]["if"], "$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH");
        set(&rules[usize::from(!is_merge_request)]["variables"]);
        set(&json!({
            "CI": "true", "GITLAB_CI": "true",
            "CI_PIPELINE_SOURCE": source,
            "CI_DEFAULT_BRANCH": "main",
            "CI_API_V4_URL": format!("{}/api/v4", self.api.url),
            "CI_PROJECT_ID": "12",
            "CI_COMMIT_REF_NAME": "x\"; touch pwned; $(touch pwned)",
            "CI_JOB_TOKEN": "unused",
            "CI_COMMIT_SHA": if is_merge_request { "b".repeat(40) } else { "a".repeat(40) },
            "CI_RUNNER_DESCRIPTION": "a machine",
            "BENCHMARK_TOKEN": TOKEN,
            // Nothing is published, so the binary is a built one.
            "BENCHMARK_BINARY": env!("CARGO_BIN_EXE_runner"),
        }));
        if is_merge_request {
            set(&json!({
                "CI_MERGE_REQUEST_IID": "7", "CI_MERGE_REQUEST_PROJECT_ID": "12",
                "CI_MERGE_REQUEST_TITLE": "$(touch pwned)",
            }));
        } else {
            set(&json!({"CI_COMMIT_BRANCH": "main"}));
        }
        let cache = &base["cache"];
        assert_eq!((&cache["unprotect"], &cache["when"]), (&json!(true), &json!("always")));
        assert_eq!(cache["policy"], "$BENCHMARK_CACHE_POLICY");
        let path = checkout.path().join(text(&cache["paths"][0]));
        let stored = self.home.path().join("cache");
        if stored.exists() {
            copy(&stored, &path);
        }
        let items = base["script"].as_array().unwrap().iter().map(text);
        let script =
            format!("set -eo pipefail\nset +o noclobber\n{}", items.collect::<Vec<_>>().join("\n"));
        let mut shell = shell(&[], &[]);
        shell.arg("-c").arg(script).current_dir(checkout.path());
        shell.envs(&variables).env("TMPDIR", self.home.path());
        let ended = run(&mut shell);
        if variables["BENCHMARK_CACHE_POLICY"] == "pull-push" && path.exists() {
            let _ = std::fs::remove_dir_all(&stored);
            copy(&path, &stored);
        }
        for kept in base["artifacts"]["paths"].as_array().unwrap() {
            let kept = checkout.path().join(text(kept));
            assert!(kept.exists(), "{kept:?} is missing:\n{}{}", ended.stdout, ended.stderr);
        }
        assert_eq!(base["artifacts"]["reports"]["junit"], "benchmark-results/junit.xml");
        let log = ended.stdout + &ended.stderr;
        assert!(!log.contains(TOKEN), "{log}");
        assert_eq!(checkout.holding(TOKEN), Vec::<PathBuf>::new());
        assert!(!checkout.path().join("pwned").exists());
        Job { code: ended.code, log }
    }
}

#[test]
fn a_slower_commit_fails_its_merge_request() {
    if !is_equipped() {
        return;
    }
    let project = Project::new();
    let mark = "<!-- runner-benchmark: chat -->";
    // Someone else's note with our mark.
    project.api.comment(json!({"id": 9}), mark);
    let main = Checkout::new("60ms", "20ms");
    main.change("engine.sh", "exec ", "env\nexec ");
    let job = project.job(&main, false);
    assert_eq!(job.code, Some(0), "{}", job.log);
    assert!(main.result("engine.log").contains("BENCHMARK_NAME=chat\n"));
    assert!(main.result("summary.md").contains("There is no baseline yet"));
    assert!(project.api.requests().is_empty());

    let slower = Checkout::new("63ms", "21ms");
    for _ in 0..2 {
        let job = project.job(&slower, true);
        assert_eq!(job.code, Some(6), "{}", job.log);
        assert_eq!(failing(&slower.result("junit.xml")), ["ttft.p10 +3%", "tpot.median +3%"]);
        // The second pipeline changes the note of the first.
        let notes = project.api.comments();
        assert_eq!((notes.len(), notes[0].as_str()), (2, mark));
        assert_eq!(notes[1], format!("{mark}\n{}", slower.result("summary.md")));
        // The default branch's commit and this one: too few for a judgement.
        assert!(notes[1].contains("Results over time"), "{}", notes[1]);
        assert!(notes[1].contains("6 series: 6 not enough data."), "{}", notes[1]);
        std::fs::remove_dir_all(slower.path().join("benchmark-results")).unwrap();
    }
    for request in project.api.requests() {
        let token = format!("private-token: {}", TOKEN.to_lowercase());
        assert!(request.head.contains(&token), "{request:?}");
        let is_known = request.path == "/api/v4/user"
            || request.path.starts_with("/api/v4/projects/12/merge_requests/7/notes");
        assert!(is_known, "{request:?}");
    }
}

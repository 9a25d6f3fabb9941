//! The step for GitHub Actions, run as the system's runner does: `action.yml` is read, expressions
//! are filled, and each step has the files and variables that the system gives it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::api::Api;
use super::expression::{filled, holds};
use super::{Checkout, TOKEN, copy, failing, is_equipped, ours, shell, text, yaml};
use crate::support::process::run;

struct Job {
    passed: bool,
    log: String,
    summary: String,
    artifacts: PathBuf,
    outputs: BTreeMap<String, String>,
}

/// A repository on GitHub, with the caches of its default branch.
struct Repository {
    api: Api,
    home: tempfile::TempDir,
    jobs: u32,
}

enum Event {
    /// A push to the default branch.
    Push,
    /// A pull request, from that repository.
    Pull(&'static str),
}

impl Repository {
    fn new() -> Self {
        Repository { api: Api::start(), home: tempfile::tempdir().unwrap(), jobs: 0 }
    }

    /// The job of the example's workflow on a checkout, with some inputs replaced.
    fn job(&mut self, checkout: &Checkout, event: &Event, inputs: &[(&str, &str)]) -> Job {
        self.jobs += 1;
        let home = self.home.path().join(self.jobs.to_string());
        std::fs::create_dir_all(home.join("temp")).unwrap();
        let workflow = yaml(&checkout.path().join(".github/workflows/benchmark.yml"));
        let permissions = json!({"contents": "read", "pull-requests": "write"});
        assert_eq!(workflow["permissions"], permissions);
        let steps = workflow["jobs"]["benchmark"]["steps"].as_array().unwrap();
        let pinned = |step: &Value| {
            let (_, commit) = step["uses"].as_str()?.split_once('@')?;
            Some(commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()))
        };
        assert!(steps.iter().filter_map(pinned).all(|is_pinned| is_pinned));
        let with = steps.iter().find(|step| text(&step["uses"]).contains("runner/ci/github"));
        let mut given: BTreeMap<String, String> = (with.unwrap()["with"].as_object().unwrap())
            .iter()
            .map(|(name, value)| (name.clone(), text(value)))
            .collect();
        // Nothing is published, so the binary is a built one.
        given.insert("binary".into(), env!("CARGO_BIN_EXE_runner").into());
        given.extend(inputs.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        let (name, payload, branch) = match event {
            Event::Push => ("push", json!({}), "main"),
            Event::Pull(from) => (
                "pull_request",
                json!({"number": 7, "title": HOSTILE, "head": {"ref": HOSTILE, "repo": {"full_name": from}}}),
                "7/merge",
            ),
        };
        let event = json!({
            "repository": {"default_branch": "main", "full_name": "them/theirs"},
            "pull_request": payload,
        });
        std::fs::write(home.join("event.json"), event.to_string()).unwrap();
        let base = |name: &str| home.join(name).display().to_string();
        let kind = if branch == "main" { "heads" } else { "pull" };
        let variables = BTreeMap::from([
            ("GITHUB_ACTIONS", "true".into()),
            ("CI", "true".into()),
            ("GITHUB_EVENT_NAME", name.into()),
            ("GITHUB_EVENT_PATH", base("event.json")),
            ("GITHUB_ACTION_PATH", ours("github").display().to_string()),
            ("GITHUB_API_URL", self.api.url.clone()),
            ("GITHUB_SERVER_URL", self.api.url.clone()),
            ("GITHUB_REPOSITORY", "them/theirs".into()),
            ("GITHUB_REF", format!("refs/{kind}/{branch}")),
            ("GITHUB_REF_NAME", branch.into()),
            ("GITHUB_HEAD_REF", HOSTILE.into()),
            ("GITHUB_RUN_ID", self.jobs.to_string()),
            ("GITHUB_RUN_ATTEMPT", "1".into()),
            ("GITHUB_SHA", format!("{:040x}", self.jobs)),
            ("GITHUB_STEP_SUMMARY", base("summary")),
            ("GITHUB_ENV", base("env")),
            ("GITHUB_PATH", base("path")),
            ("GITHUB_WORKSPACE", checkout.path().display().to_string()),
            // Names that the system gives its own variables, and that must not be ours.
            ("RUNNER_TEMP", base("temp")),
            ("RUNNER_OS", "Linux".into()),
            ("RUNNER_ARCH", "X64".into()),
            ("RUNNER_NAME", "a machine".into()),
            ("RUNNER_ENVIRONMENT", "github-hosted".into()),
            ("RUNNER_TOOL_CACHE", base("tools")),
            ("RUNNER_DEBUG", "1".into()),
        ]);
        for file in ["summary", "env", "path"] {
            std::fs::write(home.join(file), "").unwrap();
        }
        let mut running = Running {
            checkout,
            home: &home,
            caches: &self.home.path().join("caches"),
            variables,
            inputs: given,
            outputs: BTreeMap::new(),
            log: String::new(),
        };
        let passed = running.action(&yaml(&ours("github/action.yml")));
        let Running { log, outputs, .. } = running;
        Job {
            passed,
            log,
            summary: std::fs::read_to_string(home.join("summary")).unwrap(),
            artifacts: home.join("artifacts"),
            outputs,
        }
    }
}

/// A name that a stranger gives a branch, a title or anything else.
const HOSTILE: &str =
    "x\"; touch pwned; `touch pwned` $(touch pwned) '${{ github.token }}' ::error::";

struct Running<'j> {
    checkout: &'j Checkout,
    home: &'j Path,
    caches: &'j Path,
    variables: BTreeMap<&'static str, String>,
    inputs: BTreeMap<String, String>,
    /// The outputs of steps, as `STEP.NAME`.
    outputs: BTreeMap<String, String>,
    log: String,
}

impl Running<'_> {
    /// Runs the steps; true if all pass.
    fn action(&mut self, action: &Value) -> bool {
        for name in self.inputs.keys() {
            assert!(action["inputs"].get(name).is_some(), "there is no input {name}");
        }
        for (name, input) in action["inputs"].as_object().unwrap() {
            if !self.inputs.contains_key(name) {
                assert_ne!(input["required"], true, "the input {name} is missing");
                let default = filled(&text(&input["default"]), &|name| self.look(name));
                self.inputs.insert(name.clone(), default);
            }
        }
        assert_eq!(action["runs"]["using"], "composite");
        let steps = action["runs"]["steps"].as_array().unwrap();
        steps.iter().all(|step| self.step(step))
    }

    fn step(&mut self, step: &Value) -> bool {
        let condition = text(&step["if"]);
        if !condition.is_empty() && !holds(&condition, &|name| self.look(name)) {
            return true;
        }
        let of = |map: &Value| -> BTreeMap<String, String> {
            let map = map.as_object().into_iter().flatten();
            map.map(|(name, value)| (name.clone(), filled(&text(value), &|name| self.look(name))))
                .collect()
        };
        if step["run"].is_string() {
            let variables = of(&step["env"]);
            return self.script(step, &variables);
        }
        let with = of(&step["with"]);
        self.foreign(&text(&step["uses"]), &with);
        true
    }

    fn look(&self, name: &str) -> String {
        let of = |map: &BTreeMap<String, String>, key: &str| map.get(key).cloned();
        if let Some(input) = name.strip_prefix("inputs.") {
            return of(&self.inputs, input).unwrap_or_else(|| panic!("no input {input}"));
        }
        if let Some(output) = name.strip_prefix("steps.") {
            return of(&self.outputs, &output.replace(".outputs.", ".")).unwrap_or_default();
        }
        match name {
            "github.token" => TOKEN.to_owned(),
            "github.action_repository" => "OWNER/runner".to_owned(),
            "github.server_url" => self.variables["GITHUB_SERVER_URL"].clone(),
            other => panic!("unknown name {other}"),
        }
    }

    fn script(&mut self, step: &Value, variables: &BTreeMap<String, String>) -> bool {
        let script = text(&step["run"]);
        // A value written into a script can be a script itself.
        assert!(!script.contains("${{"), "{script}");
        assert_eq!(step["shell"], "bash");
        let file = self.home.join("script.sh");
        let written = self.home.join("output");
        std::fs::write(&file, script).unwrap();
        std::fs::write(&written, "").unwrap();
        let added = std::fs::read_to_string(self.home.join("path")).unwrap();
        let added: Vec<PathBuf> = added.lines().rev().map(PathBuf::from).collect();
        let mut shell = shell(&["--noprofile", "--norc", "-eo", "pipefail"], &added);
        shell.arg(&file).current_dir(self.checkout.path());
        shell.envs(&self.variables).envs(variables);
        shell.env("GITHUB_OUTPUT", &written);
        let ended = run(&mut shell);
        self.log += &ended.stdout;
        self.log += &ended.stderr;
        let text_of = std::fs::read_to_string(&written).unwrap();
        let mut lines = text_of.lines();
        while let Some(line) = lines.next() {
            let (name, value) = match line.split_once("<<") {
                Some((name, end)) => {
                    let value = lines.by_ref().take_while(|line| *line != end);
                    (name, value.collect::<Vec<_>>().join("\n"))
                }
                None => line.split_once('=').map(|(name, value)| (name, value.to_owned())).unwrap(),
            };
            let id = text(&step["id"]);
            self.outputs.insert(format!("{id}.{name}"), value);
        }
        ended.code == Some(0)
    }

    /// Imitates a foreign action, between folders.
    fn foreign(&mut self, uses: &str, with: &BTreeMap<String, String>) {
        let (name, commit) = uses.split_once('@').unwrap();
        assert_eq!(commit.len(), 40, "{uses} is not pinned to a commit");
        let entry = |key: &str| self.caches.join(key.replace('/', "~"));
        match name {
            "actions/cache/restore" => {
                let prefixes = with["restore-keys"].lines().map(|key| key.replace('/', "~"));
                let mut entries: Vec<String> = std::fs::read_dir(self.caches)
                    .into_iter()
                    .flatten()
                    .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                    .collect();
                entries.sort();
                let found = std::iter::once(with["key"].replace('/', "~"))
                    .chain(prefixes)
                    .find_map(|key| entries.iter().rev().find(|entry| entry.starts_with(&key)));
                if let Some(found) = found {
                    copy(&self.caches.join(found), &self.checkout.path().join(&with["path"]));
                }
            }
            "actions/cache/save" => {
                copy(&self.checkout.path().join(&with["path"]), &entry(&with["key"]))
            }
            "actions/upload-artifact" => {
                let kept = self.home.join("artifacts");
                for path in with["path"].lines() {
                    let from = self.checkout.path().join(path);
                    if from.exists() {
                        copy(&from, &kept.join(from.file_name().unwrap()));
                    }
                }
            }
            other => panic!("nothing stands for {other}"),
        }
    }
}

/// The token went to the API alone, and no step took a name for a script.
fn assert_safe(repository: &Repository, checkout: &Checkout, job: &Job) {
    assert!(!job.log.contains(TOKEN) && !job.summary.contains(TOKEN), "{}", job.log);
    assert_eq!(checkout.holding(TOKEN), Vec::<PathBuf>::new());
    assert!(!checkout.path().join("pwned").exists());
    for request in repository.api.requests() {
        let authorization = format!("authorization: bearer {}", TOKEN.to_lowercase());
        assert!(request.path.starts_with("/repos/them/theirs/issues/"), "{request:?}");
        assert!(request.head.contains(&authorization), "{request:?}");
    }
}

#[test]
fn a_slower_commit_fails_and_an_equal_one_passes() {
    if !is_equipped() {
        return;
    }
    let mut repository = Repository::new();
    // Someone else's comment with our mark.
    let mark = "<!-- runner-benchmark: chat -->";
    repository.api.comment(json!({"login": "stranger"}), mark);
    let main = Checkout::new("60ms", "20ms");
    let job = repository.job(&main, &Event::Push, &[]);
    assert!(job.passed, "{}", job.log);
    assert!(job.summary.contains("There is no baseline yet"), "{}", job.summary);
    assert!(job.log.contains("::notice title=Chat%3A there is a baseline::"), "{}", job.log);
    assert_eq!(job.outputs["measure.stores"], "true");
    assert_safe(&repository, &main, &job);
    for file in ["report.html", "junit.xml", "summary.md", "engine.log", "runs"] {
        assert!(job.artifacts.join(file).exists(), "{file}");
    }
    assert_eq!(repository.api.comments(), [mark]);

    let equal = Checkout::new("60ms", "20ms");
    let job = repository.job(&equal, &Event::Pull("them/theirs"), &[]);
    assert!(job.passed, "{}\n{}", job.log, job.summary);
    assert_eq!(job.outputs["measure.stores"], "false");
    let comments = repository.api.comments();
    assert_eq!((comments.len(), comments[0].as_str()), (2, mark));
    assert!(comments[1].starts_with(mark), "{}", comments[1]);
    assert!(
        comments[1].contains("Compared with the baseline: 5 runs against 5."),
        "{}",
        comments[1]
    );
    assert_safe(&repository, &equal, &job);

    let slower = Checkout::new("63ms", "21ms");
    let job = repository.job(&slower, &Event::Pull("them/theirs"), &[]);
    assert!(!job.passed, "{}\n{}", job.log, job.summary);
    assert_eq!(job.outputs["measure.exit-code"], "6");
    for figure in ["ttft.p10", "tpot.median"] {
        let line = format!("::error title=Chat%3A {figure} +3%25::+");
        assert!(job.log.contains(&line), "{line}\n{}", job.log);
    }
    let comments = repository.api.comments();
    assert_eq!((comments.len(), comments[0].as_str()), (2, mark));
    assert!(comments[1].contains("❌ Chat: fails"), "{}", comments[1]);
    assert_eq!(comments[1], format!("{mark}\n{}", slower.result("summary.md")));
    assert_eq!(failing(&slower.result("junit.xml")), ["ttft.p10 +3%", "tpot.median +3%"]);
    assert_safe(&repository, &slower, &job);
}

#[test]
fn an_engine_that_ends_is_reported_and_a_fork_gets_no_comment() {
    if !is_equipped() {
        return;
    }
    let mut repository = Repository::new();
    let checkout = Checkout::new("60ms", "20ms");
    std::fs::write(
        checkout.path().join("engine.sh"),
        "#!/bin/sh\necho '::error title=x::no such model'\nexit 3\n",
    )
    .unwrap();
    let job = repository.job(&checkout, &Event::Pull("stranger/theirs"), &[]);
    assert!(!job.passed, "{}", job.log);
    assert_eq!(job.outputs["measure.exit-code"], "5");
    assert!(job.log.contains("the engine ended with exit code 3"), "{}", job.log);
    assert!(job.log.contains("a pull request from a fork has no token"), "{}", job.log);
    assert!(job.summary.contains("not measured"), "{}", job.summary);
    assert!(repository.api.requests().is_empty());
    // The engine's output is no command.
    let (before, after) = job.log.split_once("::error title=x::no such model").unwrap();
    let (_, word) = before.split_once("::stop-commands::").unwrap();
    let word = word.lines().next().unwrap();
    assert!(after.contains(&format!("\n::{word}::\n")), "{}", job.log);
    assert_safe(&repository, &checkout, &job);
}

#[test]
fn an_engine_whose_first_process_ends_holds_no_build_up() {
    if !is_equipped() {
        return;
    }
    let mut repository = Repository::new();
    let checkout = Checkout::new("60ms", "20ms");
    // A process of its own holds the connections, and never ends a reply.
    checkout.change("engine.sh", "exec ", "");
    checkout.change(
        "engine.sh",
        "--itl 20ms",
        "--itl 20ms --fault 'kind = \"stall\", after-tokens = 2, for = \"1h\"' &\nsleep 4\nexit 3\n#",
    );
    let job = repository.job(&checkout, &Event::Pull("them/theirs"), &[]);
    assert!(!job.passed, "{}", job.log);
    assert!(job.log.contains("the engine ended with exit code 3"), "{}", job.log);
    assert_safe(&repository, &checkout, &job);
}

#[test]
fn wrong_inputs_are_named() {
    if !is_equipped() {
        return;
    }
    let mut repository = Repository::new();
    let checkout = Checkout::new("60ms", "20ms");
    for (input, value, words) in [
        ("name", "$(touch pwned)", "name: expected letters"),
        ("results", "a b", "results: expected a path"),
        ("update-baseline", "maybe", "update-baseline: expected auto"),
        ("binary", "nowhere", "nowhere is not a program that runs here"),
    ] {
        let job = repository.job(&checkout, &Event::Push, &[(input, value)]);
        assert!(!job.passed && job.log.contains(words), "{}", job.log);
        assert_safe(&repository, &checkout, &job);
    }
}

/// The guide's counts: `cargo test -p runner --test main -- --ignored --nocapture twenty`.
#[test]
#[ignore = "takes some minutes"]
fn twenty_slower_commits_fail_and_twenty_equal_ones_pass() {
    assert!(is_equipped());
    let mut repository = Repository::new();
    let main = repository.job(&Checkout::new("60ms", "20ms"), &Event::Push, &[]);
    assert!(main.passed, "{}", main.log);
    let mut passed = [0; 3];
    for round in 1..=20 {
        let engines = [("60ms", "20ms"), ("63ms", "20ms"), ("60ms", "21ms")];
        for (count, (ttft, itl)) in passed.iter_mut().zip(engines) {
            let job = repository.job(&Checkout::new(ttft, itl), &Event::Pull("them/theirs"), &[]);
            *count += u32::from(job.passed);
            let rows = job.summary.lines().filter(|line| line.contains(" +3%"));
            let rows: Vec<&str> = rows.collect();
            println!("{round}: ttft {ttft}, itl {itl}: {}", rows.join("\n    "));
        }
    }
    println!("passed of 20: {passed:?} (equal, slower first tokens, slower further tokens)");
    assert_eq!(passed, [20, 0, 0]);
}

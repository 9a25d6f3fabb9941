//! GitHub's machines in a folder: jobs in the order of their needs, each in an empty workspace,
//! with the runner's files and variables. Scripts are executed; actions are small equivalents that
//! move the same files and note their inputs; every other tool is `recorder.sh`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::workflow::{Workflow, expressions, list};
use super::{Scratch, read};

/// Tools that are recorded. Tools that no workflow calls are refused.
const TOOLS: [&str; 14] = [
    "cargo", "rustup", "python3", "gh", "npm", "cosign", "podman", "docker", "skopeo", "curl",
    "wget", "pip", "twine", "git",
];

const TOKEN: &str = "a-token-of-the-job";

/// The start of a workflow, and its faults.
#[derive(Default)]
pub struct Event<'e> {
    /// The full name of the branch or the tag.
    pub git_ref: &'e str,
    /// Set if somebody starts it by hand.
    pub dry_run: Option<bool>,
    /// A pattern of `JOB: CALL` that fails.
    pub breaks: &'e str,
    /// A package that is not made.
    pub forgets: &'e str,
    /// A package that is changed after its digest was written.
    pub spoils: &'e str,
    /// Packages that the npm registry has, with their versions.
    pub published: &'e str,
}

/// The end of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Done,
    Failed,
    Skipped,
}

pub struct Run {
    /// Calls and uses of actions, in their order, as `JOB: CALL`.
    pub log: Vec<String>,
    pub ends: BTreeMap<String, End>,
    /// Output of the steps that failed.
    pub said: String,
}

impl Run {
    /// Names of the jobs that ended so.
    pub fn with(&self, end: End) -> Vec<&str> {
        let jobs = self.ends.iter().filter(|(_, its)| **its == end);
        jobs.map(|(name, _)| name.as_str()).collect()
    }

    /// The calls of a job.
    pub fn of(&self, job: &str) -> Vec<&str> {
        let start = format!("{job}: ");
        (self.log.iter()).filter_map(|line| line.strip_prefix(&start)).collect()
    }
}

/// The state of a run.
struct Machines<'m> {
    folder: TempDir,
    tree: &'m Scratch,
    event: &'m Event<'m>,
    ends: BTreeMap<String, End>,
    /// Outputs of jobs that are done.
    outputs: BTreeMap<String, BTreeMap<String, String>>,
    said: String,
}

/// Runs a workflow on a tree.
pub fn run(workflow: &Workflow, tree: &Scratch, event: &Event) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let tools = folder.path().join("tools");
    fs::create_dir_all(&tools).unwrap();
    fs::create_dir_all(folder.path().join("artifacts")).unwrap();
    fs::write(folder.path().join("log"), "").unwrap();
    let recorder = folder.path().join("recorder.sh");
    fs::write(&recorder, include_str!("recorder.sh")).unwrap();
    fs::set_permissions(&recorder, fs::Permissions::from_mode(0o755)).unwrap();
    for tool in TOOLS {
        symlink(&recorder, tools.join(tool)).unwrap();
    }
    let mut machines = Machines {
        folder,
        tree,
        event,
        ends: BTreeMap::new(),
        outputs: BTreeMap::new(),
        said: String::new(),
    };
    let jobs: Vec<(&String, &Value)> = workflow.jobs().collect();
    while machines.ends.len() < jobs.len() {
        let next = jobs.iter().find(|(name, job)| {
            let is_ready = |need: &String| machines.ends.contains_key(need);
            !machines.ends.contains_key(*name) && list(&job["needs"]).iter().all(is_ready)
        });
        let (name, job) = next.expect("needs go round in a circle");
        let end = machines.job(name, job);
        machines.ends.insert((*name).clone(), end);
    }
    let log = read(machines.folder.path().join("log"));
    Run { log: log.lines().map(str::to_owned).collect(), ends: machines.ends, said: machines.said }
}

impl Machines<'_> {
    fn job(&mut self, name: &str, job: &Value) -> End {
        let needs = list(&job["needs"]);
        if needs.iter().any(|need| self.ends[need] != End::Done) {
            return End::Skipped;
        }
        let no_matrix = [Value::Null];
        let matrix = job["strategy"]["matrix"]["include"].as_array();
        let mut end = End::Done;
        for values in matrix.map_or(no_matrix.as_slice(), Vec::as_slice) {
            let mut machine = Machine {
                all: self,
                name,
                needs: &needs,
                matrix: values,
                rights: rights(job),
                workspace: tempfile::tempdir().unwrap(),
                environment: BTreeMap::new(),
                outputs: BTreeMap::new(),
            };
            if !machine.wanted(job) {
                return End::Skipped;
            }
            machine.take(&job["env"]);
            let steps = job["steps"].as_array().unwrap();
            // The rest of the matrix is cancelled, or goes on and changes nothing.
            if !steps.iter().all(|step| machine.step(step)) {
                end = End::Failed;
                continue;
            }
            let outputs = job["outputs"].as_object().into_iter().flatten();
            let outputs = outputs.map(|(key, value)| (key.clone(), machine.filled(value)));
            let outputs = outputs.collect();
            self.outputs.insert(name.to_owned(), outputs);
        }
        end
    }
}

/// Rights of a job as `NAME=write`.
fn rights(job: &Value) -> BTreeSet<String> {
    let rights = job["permissions"].as_object().unwrap().iter();
    rights.map(|(name, right)| format!("{name}={}", right.as_str().unwrap())).collect()
}

/// One machine with its job.
struct Machine<'j, 'm> {
    all: &'j mut Machines<'m>,
    name: &'j str,
    needs: &'j [String],
    matrix: &'j Value,
    rights: BTreeSet<String>,
    workspace: TempDir,
    environment: BTreeMap<String, String>,
    /// Outputs of steps, as `STEP.outputs.NAME`.
    outputs: BTreeMap<String, String>,
}

impl Machine<'_, '_> {
    fn value(&self, expression: &str) -> String {
        let event = self.all.event;
        let parts: Vec<&str> = expression.split('.').collect();
        match parts.as_slice() {
            // Nothing, where a tag was pushed, and nothing is false.
            ["!inputs", "dry-run"] => (!event.dry_run.unwrap_or(false)).to_string(),
            ["github", "token"] => TOKEN.to_owned(),
            ["github", "repository"] => "Owner/Runner".to_owned(),
            ["matrix", key] => self.matrix[*key].as_str().unwrap().to_owned(),
            ["needs", job, "outputs", key] => {
                assert!(
                    self.needs.iter().any(|need| need == job),
                    "{} does not wait for {job}",
                    self.name
                );
                self.all.outputs[*job][*key].clone()
            }
            ["steps", rest @ ..] => self.outputs[&rest.join(".")].clone(),
            _ => panic!("{expression} means nothing here"),
        }
    }

    /// A value of YAML with its expressions worked out.
    fn filled(&self, value: &Value) -> String {
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let mut filled = text.clone();
        for expression in expressions(&text) {
            filled = filled.replace(&format!("${{{{ {expression} }}}}"), &self.value(expression));
        }
        assert!(!filled.contains("${{"), "{filled}");
        filled
    }

    /// True unless a condition says no.
    fn wanted(&self, of: &Value) -> bool {
        match &of["if"] {
            Value::Null => true,
            condition => match self.filled(condition).as_str() {
                "true" => true,
                "false" => false,
                other => panic!("a condition is {other}"),
            },
        }
    }

    fn take(&mut self, environment: &Value) {
        for (key, value) in environment.as_object().into_iter().flatten() {
            let value = self.filled(value);
            self.environment.insert(key.clone(), value);
        }
    }

    /// Runs a step; true if it went well.
    fn step(&mut self, step: &Value) -> bool {
        if !self.wanted(step) {
            return true;
        }
        match (&step["run"], &step["uses"]) {
            (Value::String(script), Value::Null) => self.script(script, step),
            (Value::Null, Value::String(uses)) => {
                let none = serde_json::Map::new();
                let with = step["with"].as_object().unwrap_or(&none);
                let with =
                    (with.iter()).map(|(key, value)| (key.clone(), self.filled(value))).collect();
                let action = uses.split('@').next().unwrap();
                let done = self.action(action, &With(with));
                done.map_err(|why| self.all.said += &format!("{}: {action}: {why}\n", self.name))
                    .is_ok()
            }
            _ => panic!("{}: a step runs a script or uses an action", self.name),
        }
    }

    /// Runs a script as GitHub's runner does.
    fn script(&mut self, script: &str, step: &Value) -> bool {
        let all = self.all.folder.path();
        let temporary = tempfile::tempdir().unwrap();
        let file = temporary.path().join("script.sh");
        fs::write(&file, script).unwrap();
        let output = temporary.path().join("output");
        fs::write(&output, "").unwrap();
        let event = self.all.event;
        let name = event.git_ref.splitn(3, '/').nth(2).unwrap();
        let tools = all.join("tools");
        let workspace = self.workspace.path();
        let folder = step["working-directory"].as_str().unwrap_or(".");
        let rights: Vec<&str> = self.rights.iter().map(String::as_str).collect();
        let mut command = Command::new("bash");
        command
            .args(["--noprofile", "--norc", "-eo", "pipefail"])
            .arg(&file)
            .current_dir(workspace.join(folder))
            .env_clear()
            .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", tools.display()))
            .env("HOME", temporary.path())
            .env("RUNNER_TEMP", temporary.path())
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_ACTOR", "somebody")
            .env("GITHUB_OUTPUT", &output)
            .env("GITHUB_REF", event.git_ref)
            .env("GITHUB_REF_NAME", name)
            .env("GITHUB_REPOSITORY", "Owner/Runner")
            .env("GITHUB_SERVER_URL", "https://github.example")
            .env("GITHUB_WORKSPACE", workspace)
            .env("LOG", all.join("log"))
            .env("JOB", self.name)
            .env("RIGHTS", rights.join(" "))
            .env("XTASK", env!("CARGO_BIN_EXE_xtask"))
            .env("EXPECTED_TOKEN", TOKEN)
            .env("BREAK", event.breaks)
            .env("FORGET", event.forgets)
            .env("SPOIL", event.spoils)
            .env("PUBLISHED", event.published)
            .envs(&self.environment);
        for (key, value) in step["env"].as_object().into_iter().flatten() {
            command.env(key, self.filled(value));
        }
        let ended = command.output().unwrap();
        if !ended.status.success() {
            self.all.said += &String::from_utf8_lossy(&ended.stderr);
            return false;
        }
        let id = step["id"].as_str().unwrap_or("");
        for line in read(&output).lines() {
            let (key, value) = line.split_once('=').unwrap();
            assert!(!value.is_empty(), "{} gives no {key}", self.name);
            self.outputs.insert(format!("{id}.outputs.{key}"), value.to_owned());
        }
        true
    }

    /// Moves files as an action does, and notes the action's effects elsewhere.
    fn action(&mut self, action: &str, with: &With) -> Result<(), String> {
        let artifacts = self.all.folder.path().join("artifacts");
        let workspace = self.workspace.path().to_owned();
        match action {
            "actions/checkout" => {
                self.right("contents=read")?;
                copy(self.all.tree.path(), &workspace);
            }
            "actions/upload-artifact" => {
                assert_eq!(with.get("if-no-files-found"), "error");
                let path = workspace.join(with.get("path"));
                let to = artifacts.join(with.get("name"));
                assert!(!to.exists(), "an artifact's name is taken");
                if !path.exists() {
                    return Err(format!("no files in {}", with.get("path")));
                }
                copy(&path, &to);
            }
            "actions/upload-pages-artifact" => {
                copy(&workspace.join(with.get("path")), &artifacts.join("github-pages"));
            }
            "actions/download-artifact" => {
                let to = workspace.join(with.get("path"));
                if with.has("pattern") {
                    let end = with.get("pattern").strip_prefix('*').unwrap();
                    for artifact in fs::read_dir(&artifacts).unwrap() {
                        let artifact = artifact.unwrap();
                        let name = artifact.file_name().into_string().unwrap();
                        if name.ends_with(end) {
                            copy(&artifact.path(), &to.join(name));
                        }
                    }
                } else {
                    copy(&artifacts.join(with.get("name")), &to)
                }
            }
            "actions/attest" => self.attest(with)?,
            "pypa/gh-action-pypi-publish" => {
                self.right("id-token=write")?;
                let wheels = names(&workspace.join(with.get("packages-dir")));
                assert_eq!(with.get("attestations"), "true");
                self.note(&format!("pypi-publish {}", wheels.join(" ")))?;
            }
            "actions/deploy-pages" => {
                self.right("pages=write")?;
                self.right("id-token=write")?;
                let pages = names(&artifacts.join("github-pages"));
                self.note(&format!("deploy-pages {}", pages.join(" ")))?;
            }
            "actions/setup-node" | "sigstore/cosign-installer" => {}
            other => panic!("{other} has no equivalent here"),
        }
        Ok(())
    }

    /// Checks that the subjects and their parts lists are there.
    fn attest(&self, with: &With) -> Result<(), String> {
        self.right("id-token=write")?;
        self.right("attestations=write")?;
        let workspace = self.workspace.path();
        let of = if with.has("sbom-path") {
            let parts = with.get("sbom-path");
            if !workspace.join(parts).is_file() {
                return Err(format!("no file {parts}"));
            }
            format!("parts {}", file_name(parts))
        } else {
            "origin".to_owned()
        };
        let mut subjects = Vec::new();
        if with.has("subject-checksums") {
            let sums = read(workspace.join(with.get("subject-checksums")));
            subjects.extend((sums.lines()).map(|line| line.split_once("  ").unwrap().1.to_owned()));
        } else if with.has("subject-path") {
            for pattern in with.get("subject-path").lines() {
                let (folder, pattern) = pattern.rsplit_once('/').unwrap();
                let mut found = names(&workspace.join(folder));
                found.retain(|name| is_like(name, pattern));
                assert_eq!(found.len(), 1, "{pattern}: {found:?}");
                subjects.extend(found);
            }
        } else {
            assert_eq!(with.get("push-to-registry"), "true");
            self.right("packages=write")?;
            subjects.push(format!("{}@{}", with.get("subject-name"), with.get("subject-digest")));
        }
        subjects.sort();
        self.note(&format!("attest {of}: {}", subjects.join(" ")))
    }

    fn right(&self, right: &str) -> Result<(), String> {
        if self.rights.contains(right) {
            Ok(())
        } else {
            Err(format!("{} has no right `{right}`", self.name))
        }
    }

    /// Notes a call; fails if the test wants it to.
    fn note(&self, call: &str) -> Result<(), String> {
        let line = format!("{}: {call}", self.name);
        let path = self.all.folder.path().join("log");
        fs::write(&path, format!("{}{line}\n", read(&path))).unwrap();
        let breaks = self.all.event.breaks;
        if !breaks.is_empty() && is_like(&line, breaks) {
            Err("broken, as the test wants".to_owned())
        } else {
            Ok(())
        }
    }
}

/// Inputs of an action.
struct With(BTreeMap<String, String>);

impl With {
    fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    #[track_caller]
    fn get(&self, key: &str) -> &str {
        self.0[key].as_str()
    }
}

/// True if a name is the pattern's, whose stars stand for any text.
fn is_like(name: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => name == pattern,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|after| {
            (0..=after.len()).any(|at| after.is_char_boundary(at) && is_like(&after[at..], rest))
        }),
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap()
}

/// Names of the files in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Copies a file into a folder, or a folder's contents.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    let files: Vec<PathBuf> = if from.is_dir() {
        names(from).iter().map(|name| from.join(name)).collect()
    } else {
        vec![from.to_owned()]
    };
    for file in files {
        let target = to.join(file.file_name().unwrap());
        if file.is_dir() {
            copy(&file, &target);
        } else {
            fs::copy(&file, &target).unwrap();
        }
    }
}

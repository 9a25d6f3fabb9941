//! `cargo xtask test`: the checks that a change must pass, as a table of steps.
//!
//! Owns the order of the steps, their concurrency, and the summary. The work of a step is in the
//! module that is named after it, or here if it is one call of another program.
//!
//! One compilation serves lints and tests: clippy's compiler stands in for rustc in each call of
//! cargo, for the workspace's own crates. Dependencies are the same as in every other build.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::component::{self, GuestSet};
use crate::left_out::{self, Lack};
use crate::steps::{DEMO, cargo_command, is_there, printed, run, runner};
use crate::{documents, examples, site};

pub enum StepEnd {
    Done,
    /// Skipped, because an optional tool is missing.
    LeftOut,
    Failed,
}

/// A check, or a preparation for checks.
struct Step {
    name: &'static str,
    run: fn(&Path) -> Result<StepEnd>,
    /// Steps that must have run before.
    needs: &'static [&'static str],
}

impl Step {
    const fn new(
        name: &'static str,
        needs: &'static [&'static str],
        run: fn(&Path) -> Result<StepEnd>,
    ) -> Self {
        Step { name, run, needs }
    }
}

/// All steps, in rounds. The steps of a round run at the same time: the first in front, whose
/// output is shown as it comes, the others beside it.
const ROUNDS: &[&[Step]] = &[
    &[Step::new("tools", &[], tools)],
    &[Step::new("format", &[], |root| cargo(root, &["fmt", "--all", "--check"]))],
    &[Step::new("features", &[], features)],
    &[
        Step::new("weight", &[], |root| script(root, "host/benches/weight.py")),
        Step::new("words", &[], |root| script(root, "host/benches/words.py")),
    ],
    &[
        // Before the steps that compile the host, which embeds them.
        Step::new("plugins", &[], |root| {
            component::build(root, GuestSet::All).map(|()| StepEnd::Done)
        }),
        Step::new("languages", &[], |root| examples::install(root).map(|()| StepEnd::Done)),
        Step::new("deny", &[], deny),
    ],
    &[Step::new("demo", &["plugins"], demo)],
    &[Step::new("build", &["plugins"], |root| {
        cargo(root, &["build", "--workspace", "--all-targets"])
    })],
    &[
        Step::new("unit", &["plugins"], unit),
        Step::new("examples", &["plugins", "languages"], |root| {
            built(root, |root| examples::test(root, &runner(root)).map(|()| StepEnd::Done))
        }),
        Step::new("site", &["plugins"], |root| built(root, site::test)),
    ],
    // Alone: commands of documents wait for engines by the clock.
    &[Step::new("documents", &["plugins"], |root| {
        built(root, |root| documents::test(root).map(|()| StepEnd::Done))
    })],
    &[Step::new("whole", &["plugins", "languages"], whole)],
];

/// The program with the tests of the whole runner. Most of them wait for processes or timers.
const WHOLE: &str = "main";

const CARGO_DENY: Lack =
    Lack { key: "cargo-deny", name: "cargo-deny", remedy: "cargo install cargo-deny --locked" };
const ADVISORIES: Lack = Lack {
    key: "advisories",
    name: "a way to the database of advisories",
    remedy: "run the step on a machine that reaches it",
};

/// All steps, in their order.
fn steps() -> impl Iterator<Item = &'static Step> {
    ROUNDS.iter().copied().flatten()
}

/// The step of this name. Fails if there is none: the names of all steps.
fn step(name: &str) -> Result<&'static Step> {
    steps().find(|step| step.name == name).with_context(|| {
        let known: Vec<_> = steps().map(|step| step.name).collect();
        format!("no step {name:?}; the steps are {}", known.join(", "))
    })
}

/// Runs one step, as a process beside another does it.
pub fn alone(root: &Path, name: &str) -> Result<ExitCode> {
    Ok(ExitCode::from(match (step(name)?.run)(root)? {
        StepEnd::Done => 0,
        StepEnd::LeftOut => LEFT_OUT,
        StepEnd::Failed => 1,
    }))
}

/// The exit code of a process that left its step out.
const LEFT_OUT: u8 = 77;

/// Runs the named steps and the steps that they need, or all steps, until one fails.
pub fn test(root: &Path, names: &[String]) -> Result<ExitCode> {
    let chosen: Vec<_> = names.iter().map(|name| step(name)).collect::<Result<_>>()?;
    let wanted = |step: &Step| {
        let needed = |by: &&Step| by.name == step.name || by.needs.contains(&step.name);
        chosen.is_empty() || chosen.iter().any(needed)
    };
    let left_out = left_out_list(root);
    if left_out.exists() {
        fs::remove_file(&left_out)?;
    }
    // Now, because the step `build` replaces the file.
    let program = std::env::current_exe()?;
    let mut summary = String::new();
    let mut failed = false;
    for round in ROUNDS {
        let steps: Vec<_> = round.iter().filter(|step| wanted(step)).collect();
        if failed {
            for step in steps {
                summary += &format!("  {:<9} not run\n", step.name);
            }
            continue;
        }
        for (name, done, seconds) in at_once(root, &program, &steps)? {
            let word = match done {
                StepEnd::Done => "ok",
                StepEnd::LeftOut => "left out",
                StepEnd::Failed => "FAILED",
            };
            summary += &format!("  {name:<9} {word:<8} {seconds:>6.1} s\n");
            failed |= matches!(done, StepEnd::Failed);
        }
    }
    eprint!("==> summary\n{summary}");
    let left_out = left_out::summary(&left_out)?;
    if !left_out.is_empty() {
        eprint!("==> left out, because this machine lacks\n{left_out}");
    }
    Ok(ExitCode::from(u8::from(failed)))
}

/// A step's name, its end and its seconds.
type StepResult = (&'static str, StepEnd, f64);

/// Runs steps at the same time, the first in this process. The output of each other step is shown
/// whole after its end.
fn at_once(root: &Path, program: &Path, steps: &[&Step]) -> Result<Vec<StepResult>> {
    let Some((first, others)) = steps.split_first() else { return Ok(Vec::new()) };
    let started = Instant::now();
    let beside: Vec<_> = others
        .iter()
        .map(|step| BackgroundStep::start(root, program, step.name))
        .collect::<Result<_>>()?;
    eprintln!("==> {}", first.name);
    let done = (first.run)(root).unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        StepEnd::Failed
    });
    let mut ended = vec![(first.name, done, started.elapsed().as_secs_f64())];
    for beside in beside {
        ended.push(beside.end()?);
    }
    Ok(ended)
}

/// A step in a process of its own.
struct BackgroundStep {
    name: &'static str,
    process: Child,
    output: PathBuf,
    started: Instant,
}

impl BackgroundStep {
    fn start(root: &Path, program: &Path, name: &'static str) -> Result<Self> {
        let folder = root.join("target/steps");
        fs::create_dir_all(&folder)?;
        let output = folder.join(format!("{name}.log"));
        let file = File::create(&output)?;
        let process = Command::new(program)
            .args(["test", "--alone", name])
            .current_dir(root)
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()?;
        eprintln!("==> {name} beside, to {}", output.display());
        Ok(BackgroundStep { name, process, output, started: Instant::now() })
    }

    fn end(mut self) -> Result<StepResult> {
        let status = self.process.wait()?;
        let seconds = self.started.elapsed().as_secs_f64();
        eprint!("==> {}\n{}", self.name, String::from_utf8_lossy(&fs::read(&self.output)?));
        let done = match status.code() {
            Some(0) => StepEnd::Done,
            Some(code) if code == i32::from(LEFT_OUT) => StepEnd::LeftOut,
            _ => StepEnd::Failed,
        };
        Ok((self.name, done, seconds))
    }
}

/// The list of checks that this machine could not run.
fn left_out_list(root: &Path) -> PathBuf {
    root.join("target/left-out.tsv")
}

/// Notes that a part of a step is skipped, if `RUNNER_LEAVE_OUT` allows it.
pub fn leave_out(root: &Path, lack: &Lack, who: &str) -> Result<()> {
    left_out::leave_out(lack, who, Some(&left_out_list(root))).map_err(anyhow::Error::msg)
}

/// A call of cargo whose compiler is clippy's and denies warnings.
///
/// `cargo clippy` checks all dependencies by itself, and a checked dependency is another artifact
/// than a built one: that would compile the sandbox a second time.
fn linting(root: &Path) -> Command {
    let mut cargo = cargo_command(root);
    cargo
        // Not as a variable: tests that call cargo would inherit it.
        .args(["--config", "build.rustc-workspace-wrapper='clippy-driver'"])
        // How `cargo clippy` passes on the arguments after its `--`.
        .env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings")
        .env(left_out::LIST, left_out_list(root));
    cargo
}

fn cargo(root: &Path, arguments: &[&str]) -> Result<StepEnd> {
    run(linting(root).args(arguments)).map(|()| StepEnd::Done)
}

fn script(root: &Path, path: &str) -> Result<StepEnd> {
    run(Command::new(root.join(path)).current_dir(root)).map(|()| StepEnd::Done)
}

/// Builds the runner as the tests have it, then runs a step with it.
fn built(root: &Path, step: fn(&Path) -> Result<StepEnd>) -> Result<StepEnd> {
    // Tests turn on features of the workspace's crates; the same call makes the same program.
    cargo(root, &["build", "--workspace", "--bin", "runner", "--test", WHOLE])?;
    step(root)
}

/// Builds the runner of the demo, and asks it for a command that it is built without.
fn demo(root: &Path) -> Result<StepEnd> {
    cargo(root, &DEMO)?;
    let output = Command::new(runner(root)).args(["lab", "any.toml", "--dry-run"]).output()?;
    let message = String::from_utf8_lossy(&output.stderr);
    let names_the_build = message.contains("without `runner lab`; `cargo build --workspace");
    ensure!(output.status.code() == Some(2) && names_the_build, "runner lab: {message}");
    Ok(StepEnd::Done)
}

/// Runs every test but the program [`WHOLE`]. Plugins run their cases here too, natively.
fn unit(root: &Path) -> Result<StepEnd> {
    let arguments = ["metadata", "--no-deps", "--locked", "--format-version", "1"];
    let metadata: Value = serde_json::from_str(&printed(cargo_command(root).args(arguments))?)?;
    let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let targets: Vec<_> =
        list(&metadata, "packages").into_iter().flat_map(|own| list(&own, "targets")).collect();
    for target in targets.iter().filter(|target| target["test"] == false) {
        let file = Path::new(target["src_path"].as_str().unwrap_or_default());
        if fs::read_to_string(file)?.contains("#[test]") {
            bail!("{}: its tests never run, as its manifest has `test = false`", file.display());
        }
    }
    let names: BTreeSet<String> = targets
        .iter()
        .filter(|target| target["kind"][0] == "test" && target["name"] != WHOLE)
        .filter_map(|target| target["name"].as_str().map(str::to_owned))
        .collect();
    let tests = names.iter().flat_map(|name| ["--test", name]);
    run(linting(root).args(["test", "--workspace", "--lib", "--bins"]).args(tests))?;
    cargo(root, &["test", "--workspace", "--doc"])
}

/// Runs the program [`WHOLE`], with three tests for each processor, as most tests wait.
fn whole(root: &Path) -> Result<StepEnd> {
    const THREADS: &str = "RUST_TEST_THREADS";
    let mut tests = linting(root);
    if std::env::var_os(THREADS).is_none() {
        let processors = std::thread::available_parallelism()?.get();
        tests.env(THREADS, (3 * processors).to_string());
    }
    run(tests.args(["test", "--workspace", "--test", WHOLE])).map(|()| StepEnd::Done)
}

/// Checks licences, sources, duplicate versions and advisories with cargo-deny, if it is installed.
fn deny(root: &Path) -> Result<StepEnd> {
    if !is_there("cargo-deny") {
        leave_out(root, &CARGO_DENY, "step `deny`")?;
        return Ok(StepEnd::LeftOut);
    }
    let deny = |arguments: &[&str]| run(cargo_command(root).arg("deny").args(arguments));
    // Code for other systems is checked too, and a build here has not downloaded its dependencies.
    run(cargo_command(root).args(["fetch", "--locked"]))?;
    deny(&["--offline", "check", "bans", "licenses", "sources"])?;
    // The database of advisories is a repository of its own, and not every machine reaches it.
    if deny(&["fetch", "db"]).is_err() {
        leave_out(root, &ADVISORIES, "the check of advisories")?;
        return Ok(StepEnd::Done);
    }
    deny(&["check", "--disable-fetch", "advisories"]).map(|()| StepEnd::Done)
}

/// Checks that each dependency has one set of features, and is compiled once. This holds in
/// programs as in macros and build scripts, in the demo, in the runner alone, and in the whole
/// workspace with its tests.
fn features(root: &Path) -> Result<StepEnd> {
    let whole = features_of(root, "--workspace --edges normal,build,dev")?;
    let mut differing = Vec::new();
    for (package, builds) in &whole {
        if builds.len() > 1 && !COMPILED_TWICE.contains(&name(package)) {
            differing.push(format!("{package}: programs and macros build it with {builds:?}"));
        }
    }
    for (by, selection) in [
        ("the demo", "--workspace --no-default-features --edges normal,build"),
        ("the runner alone", "--package runner --edges normal,build,dev"),
    ] {
        for (package, builds) in features_of(root, selection)? {
            let in_whole = whole.get(&package);
            if in_whole.is_none_or(|whole| !builds.is_subset(whole)) {
                differing.push(format!(
                    "{package}: {by} builds it with {builds:?}, the workspace with {in_whole:?}"
                ));
            }
        }
    }
    ensure!(
        differing.is_empty(),
        "{}\nname these features in host/build/componentize/Cargo.toml",
        differing.join("\n")
    );
    Ok(StepEnd::Done)
}

/// Dependencies whose features differ in macros and build scripts, which one could not use.
const COMPILED_TWICE: [&str; 3] =
    ["cranelift-bitset", "pulley-interpreter", "wasmtime-internal-core"];

/// The name of a package that cargo prints as `NAME vVERSION`.
fn name(package: &str) -> &str {
    package.split(' ').next().unwrap_or(package)
}

/// The sets of features that a build turns on in each of its foreign dependencies.
fn features_of(root: &Path, selection: &str) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let tree = ["tree", "--locked", "--prefix", "none", "--format", "{p}|{f}"];
    let tree = printed(cargo_command(root).args(tree).args(selection.split(' ')))?;
    let mut builds: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in tree.lines() {
        if let Some((package, features)) = line.trim_end_matches(" (*)").split_once('|') {
            // Cargo prints the folder of our own crates.
            if !package.ends_with(')') {
                builds.entry(package.to_owned()).or_default().insert(features.to_owned());
            }
        }
    }
    Ok(builds)
}

/// Prints the versions of the other steps' tools, and fails if one is missing.
fn tools(_: &Path) -> Result<StepEnd> {
    for tool in ["rustc", "cargo", "cargo-fmt", "clippy-driver"] {
        run(Command::new(tool).arg("--version")).context(
            "a tool is missing: `rustup component add clippy rustfmt`, or the distribution's packages",
        )?;
    }
    Ok(StepEnd::Done)
}

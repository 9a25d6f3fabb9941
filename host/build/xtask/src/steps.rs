//! Commands that run several other commands: `demo`, and `test`, which runs all checks that a
//! change must pass.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::component::{self, Which};
use crate::left_out::{self, Lack};
use crate::{documents, examples, site};

/// Builds a program of the workspace; the exit code.
///
/// Cargo unifies the features of dependencies over the packages that a command selects. With every
/// package selected, each call compiles the same dependencies once.
pub fn build_binary(root: &Path, name: &str) -> Result<i32> {
    cargo(root, &["build", "--workspace", "--bin", name])
}

/// Builds the plugins and the runner, and runs its demo.
pub fn demo(root: &Path, arguments: &[OsString]) -> Result<ExitCode> {
    component::build(root, Which::Shipping)?;
    let code = build_binary(root, "runner")?;
    if code != 0 {
        return Ok(exit_code(code));
    }
    let code = run(Command::new(runner(root)).arg("demo").args(arguments))?;
    Ok(exit_code(code))
}

/// Has the program `package` make packages. It is a program of its own, so that nobody compiles what
/// it needs without packaging.
pub fn package(root: &Path, arguments: &[OsString]) -> Result<ExitCode> {
    let code = build_binary(root, "package")?;
    if code != 0 {
        return Ok(exit_code(code));
    }
    let code = run(Command::new(binary(root, "package")).args(arguments))?;
    Ok(exit_code(code))
}

const CARGO_DENY: Lack =
    Lack { key: "cargo-deny", what: "cargo-deny", remedy: "cargo install cargo-deny --locked" };
const ADVISORIES: Lack = Lack {
    key: "advisories",
    what: "a way to the database of advisories",
    remedy: "run the step on a machine that reaches it",
};

/// The end of a step.
pub enum Done {
    /// With this exit code.
    Exit(i32),
    /// Not run, because a tool is missing that the step can do without.
    LeftOut,
}

/// Runs every step until one fails; the rest is then listed as not run.
pub fn test(root: &Path) -> Result<ExitCode> {
    type Step = (&'static str, fn(&Path) -> Result<Done>);
    let steps: [Step; 10] = [
        ("tools", |root| tools(root).map(Done::Exit)),
        // Before what compiles the host, because the host embeds them.
        ("plugins", |root| component::build(root, Which::All).map(|()| Done::Exit(0))),
        ("format", |root| cargo(root, &["fmt", "--all", "--check"]).map(Done::Exit)),
        ("features", |root| features(root).map(Done::Exit)),
        ("deny", deny),
        ("clippy", |root| clippy(root).map(Done::Exit)),
        // Before the tests, which use the tools of other languages that it installs.
        ("examples", |root| test_examples(root).map(Done::Exit)),
        // Plugins run their unit tests and cases here too, natively.
        ("tests", |root| {
            run(cargo_command(root)
                .args(["test", "--workspace"])
                .env(left_out::LIST, left_out_list(root)))
            .map(Done::Exit)
        }),
        ("documents", |root| documents::test(root).map(Done::Exit)),
        ("site", site::test),
    ];
    let left_out = left_out_list(root);
    if left_out.exists() {
        std::fs::remove_file(&left_out)?;
    }
    let mut summary = String::new();
    let mut failed = None;
    for (name, step) in steps {
        if failed.is_some() {
            summary += &format!("  {name:<9} not run\n");
            continue;
        }
        eprintln!("==> {name}");
        let started = Instant::now();
        let done = step(root).unwrap_or_else(|error| {
            eprintln!("xtask: {error:#}");
            Done::Exit(1)
        });
        let (word, code) = match done {
            Done::Exit(0) => ("ok", 0),
            Done::Exit(code) => ("FAILED", code),
            Done::LeftOut => ("left out", 0),
        };
        summary += &format!("  {name:<9} {word:<8} {:>6.1} s\n", started.elapsed().as_secs_f64());
        failed = (code != 0).then_some(code);
    }
    eprint!("==> summary\n{summary}");
    let left_out = left_out::summary(&left_out)?;
    if !left_out.is_empty() {
        eprint!("==> left out, because this machine lacks\n{left_out}");
    }
    Ok(exit_code(failed.unwrap_or(0)))
}

/// The list of what this machine could not run.
fn left_out_list(root: &Path) -> PathBuf {
    root.join("target/left-out.tsv")
}

/// Notes that a part of a step is left out, if that is allowed.
pub fn leave_out(root: &Path, lack: &Lack, who: &str) -> Result<()> {
    left_out::leave_out(lack, who, Some(&left_out_list(root))).map_err(anyhow::Error::msg)
}

/// Builds the runner and tests the examples with it.
pub fn examples(root: &Path) -> Result<ExitCode> {
    component::build(root, Which::All)?;
    test_examples(root).map(exit_code)
}

fn test_examples(root: &Path) -> Result<i32> {
    let code = build_binary(root, "runner")?;
    if code != 0 {
        return Ok(code);
    }
    examples::test(root, &runner(root))
}

/// Runs clippy and denies its warnings.
///
/// `cargo clippy` checks all dependencies by itself, and a checked dependency is another artifact
/// than a built one: that would compile the sandbox a second time. So clippy stands in for the
/// compiler of our own packages, in a build of the same dependencies as the tests'; what that
/// leaves is thrown away, and therefore not optimized.
fn clippy(root: &Path) -> Result<i32> {
    run(cargo_command(root)
        .args(["build", "--workspace", "--all-targets"])
        .env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver")
        // How `cargo clippy` passes on the arguments after its `--`.
        .env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings")
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0")
        .env("CARGO_PROFILE_DEV_DEBUG", "0"))
}

/// Checks licences, sources, duplicate versions and advisories with cargo-deny, if it is installed.
fn deny(root: &Path) -> Result<Done> {
    let there = Command::new("cargo-deny").arg("--version").output();
    if !there.is_ok_and(|output| output.status.success()) {
        leave_out(root, &CARGO_DENY, "step `deny`")?;
        return Ok(Done::LeftOut);
    }
    let deny = |arguments: &[&str]| -> Result<i32> {
        run(cargo_command(root).arg("deny").args(arguments))
    };
    // Also what only other systems compile is checked, and a build here has not brought it.
    let code = cargo(root, &["fetch", "--locked"])?;
    if code != 0 {
        return Ok(Done::Exit(code));
    }
    let code = deny(&["--offline", "check", "bans", "licenses", "sources"])?;
    if code != 0 {
        return Ok(Done::Exit(code));
    }
    // The database of advisories is a repository of its own, and not every machine reaches it.
    if deny(&["fetch", "db"])? != 0 {
        leave_out(root, &ADVISORIES, "the check of advisories")?;
        return Ok(Done::Exit(0));
    }
    deny(&["check", "--disable-fetch", "advisories"]).map(Done::Exit)
}

/// Checks that a build of the runner with its tests and one of the whole workspace turn on the same
/// features of the dependencies they share. Where they differ, each switch between the two compiles
/// dependencies again.
fn features(root: &Path) -> Result<i32> {
    // A package that programs and procedural macros use is compiled for each, with features of its
    // own.
    let of = |selection: &str| -> Result<BTreeMap<String, BTreeSet<String>>> {
        let output = cargo_command(root)
            .args(["tree", "--locked", "--prefix", "none", "--format", "{p}|{f}"])
            .args(["--edges", "normal,build,dev"])
            .args(selection.split(' '))
            .output()?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr).trim_end());
        }
        let mut builds: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for line in String::from_utf8(output.stdout)?.lines() {
            if let Some((package, features)) = line.trim_end_matches(" (*)").split_once('|') {
                let known = builds.entry(package.to_owned()).or_default();
                known.insert(features.to_owned());
            }
        }
        Ok(builds)
    };
    let alone = of("--package runner")?;
    let whole = of("--workspace")?;
    let mut code = 0;
    for (package, builds) in &alone {
        let in_whole = &whole[package];
        if !builds.is_subset(in_whole) {
            eprintln!(
                "{package}: the workspace builds it with {in_whole:?}, the runner alone with {builds:?}; \
                 name these features in host/build/componentize/Cargo.toml"
            );
            code = 1;
        }
    }
    Ok(code)
}

/// Prints the versions of the tools that the other steps use, so that a log records them, and fails
/// at once if a tool is missing.
fn tools(_: &Path) -> Result<i32> {
    let missing =
        "is missing: `rustup component add clippy rustfmt`, or the distribution's packages";
    run(Command::new("rustc").arg("--version"))?;
    for tool in ["cargo", "cargo-fmt", "clippy-driver"] {
        let there = Command::new(tool).arg("--version").status();
        if !there.is_ok_and(|status| status.success()) {
            bail!("`{tool}` {missing}");
        }
    }
    Ok(0)
}

fn cargo(root: &Path, arguments: &[&str]) -> Result<i32> {
    run(cargo_command(root).args(arguments))
}

fn cargo_command(root: &Path) -> Command {
    let mut cargo = Command::new("cargo");
    // Where the rest of this program looks for what was built.
    cargo.current_dir(root).env("CARGO_TARGET_DIR", root.join("target"));
    cargo
}

/// The runner that was built.
pub fn runner(root: &Path) -> PathBuf {
    binary(root, "runner")
}

/// A program that was built.
pub fn binary(root: &Path, name: &str) -> PathBuf {
    built(root).join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

/// Returns the folder where cargo puts binaries.
pub fn built(root: &Path) -> PathBuf {
    root.join("target/debug")
}

/// Runs a command; its exit code.
pub fn run(command: &mut Command) -> Result<i32> {
    let status = command
        .status()
        .with_context(|| format!("{} does not start", command.get_program().display()))?;
    Ok(status.code().unwrap_or(1))
}

pub fn exit_code(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

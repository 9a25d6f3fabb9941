//! Commands that run several other commands: `demo`, and `test`, which runs all checks that a change must pass.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::{component, examples};

/// Builds the runner, from the same artifacts as `cargo test --workspace`.
///
/// Cargo unifies the features of dependencies over the packages and the kinds of target that a command
/// selects. `--package runner` would therefore compile a second variant of the sandbox, the tokenizer
/// and much else, for minutes. With every package selected and any one integration test among the
/// targets, so that development dependencies count, the features are those of the tests; the README's
/// test is named because it has no heavy dependencies.
const BUILD_RUNNER: [&str; 6] = [
    "build",
    "--workspace",
    "--bin",
    "runner",
    "--test",
    "readme",
];

/// Builds the plugins and the runner, and runs its demo.
pub fn demo(root: &Path, arguments: &[OsString]) -> Result<ExitCode> {
    component::build_all(root)?;
    let code = cargo(root, &BUILD_RUNNER)?;
    if code != 0 {
        return Ok(exit_code(code));
    }
    let code = run(Command::new(runner(root)).arg("demo").args(arguments))?;
    Ok(exit_code(code))
}

/// Runs every step until one fails; the rest is then listed as not run.
pub fn test(root: &Path) -> Result<ExitCode> {
    type Step = (&'static str, fn(&Path) -> Result<i32>);
    let steps: [Step; 7] = [
        ("tools", tools),
        // Before what compiles the host, because the host embeds them.
        ("plugins", |root| component::build_all(root).map(|()| 0)),
        ("format", |root| cargo(root, &["fmt", "--all", "--check"])),
        ("clippy", clippy),
        // Plugins run their unit tests and cases here too, natively.
        ("tests", |root| cargo(root, &["test", "--workspace"])),
        ("README", readme),
        ("examples", test_examples),
    ];
    let mut summary = String::new();
    let mut failed = None;
    for (name, step) in steps {
        if failed.is_some() {
            summary += &format!("  {name:<9} not run\n");
            continue;
        }
        eprintln!("==> {name}");
        let started = Instant::now();
        let code = step(root).unwrap_or_else(|error| {
            eprintln!("xtask: {error:#}");
            1
        });
        let word = if code == 0 { "ok" } else { "FAILED" };
        summary += &format!(
            "  {name:<9} {word:<6} {:>6.1} s\n",
            started.elapsed().as_secs_f64()
        );
        failed = (code != 0).then_some(code);
    }
    eprint!("==> summary\n{summary}");
    Ok(exit_code(failed.unwrap_or(0)))
}

/// Builds the runner and tests the examples with it.
pub fn examples(root: &Path) -> Result<ExitCode> {
    component::build_all(root)?;
    test_examples(root).map(exit_code)
}

fn test_examples(root: &Path) -> Result<i32> {
    let code = cargo(root, &BUILD_RUNNER)?;
    if code != 0 {
        return Ok(code);
    }
    examples::test(root, &runner(root))
}

/// Runs clippy and denies its warnings.
///
/// `cargo clippy` checks all dependencies by itself, and a checked dependency is another artifact than a built one:
/// that would compile the sandbox a second time. So clippy stands in for the compiler of our own packages, in a
/// build of the same dependencies as the tests'; what that leaves is thrown away, and therefore not optimized.
fn clippy(root: &Path) -> Result<i32> {
    run(cargo_command(root)
        .args(["build", "--workspace", "--all-targets"])
        .env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver")
        // How `cargo clippy` passes on the arguments after its `--`.
        .env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings")
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0")
        .env("CARGO_PROFILE_DEV_DEBUG", "0"))
}

/// Prints the versions of the tools that the other steps use, so that a log records them, and fails at
/// once if a tool is missing.
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
    cargo
        .current_dir(root)
        .env("CARGO_TARGET_DIR", root.join("target"));
    cargo
}

/// The runner that was built.
fn runner(root: &Path) -> PathBuf {
    built(root).join(format!("runner{}", std::env::consts::EXE_SUFFIX))
}

/// Where cargo puts binaries.
fn built(root: &Path) -> PathBuf {
    root.join("target/debug")
}

/// Runs every block of the README that is fenced as `sh tested`, one after the other in an empty folder,
/// with the runner just built in the path.
fn readme(root: &Path) -> Result<i32> {
    let text = fs::read_to_string(root.join("README.md")).context("reading README.md")?;
    let blocks = tested_blocks(&text);
    if blocks.is_empty() {
        bail!("README.md has no block fenced as `sh tested`");
    }
    let code = cargo(root, &BUILD_RUNNER)?;
    if code != 0 {
        return Ok(code);
    }
    let folder = root.join("target/readme");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let mut search: Vec<PathBuf> = vec![built(root)];
    search.extend(std::env::split_paths(
        &std::env::var_os("PATH").unwrap_or_default(),
    ));
    let search = std::env::join_paths(search)?;
    for block in blocks {
        eprintln!("{}", block.trim_end());
        // Background processes of a block end with it, even if the block fails.
        let script = format!("trap '[ -z \"$!\" ] || kill $! 2>/dev/null || :' EXIT\n{block}");
        let code = run(Command::new("sh")
            .current_dir(&folder)
            .args(["-e", "-c", &script])
            .env("PATH", &search))?;
        if code != 0 {
            return Ok(code);
        }
    }
    Ok(0)
}

/// The contents of the blocks fenced as `sh tested`.
fn tested_blocks(markdown: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<String> = None;
    for line in markdown.lines() {
        match (&mut open, line.trim()) {
            (Some(_), "```") => blocks.extend(open.take()),
            (Some(block), _) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, "```sh tested") => open = Some(String::new()),
            (None, _) => {}
        }
    }
    blocks
}

fn run(command: &mut Command) -> Result<i32> {
    let status = command
        .status()
        .with_context(|| format!("{} does not start", command.get_program().display()))?;
    Ok(status.code().unwrap_or(1))
}

fn exit_code(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::tested_blocks;

    #[test]
    fn only_blocks_that_say_so_are_run() {
        let text = "a\n```sh\nno\n```\n```sh tested\nrunner help\nrunner list\n```\n";
        assert_eq!(tested_blocks(text), ["runner help\nrunner list\n"]);
    }
}

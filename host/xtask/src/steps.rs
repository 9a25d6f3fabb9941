//! Commands that are a few other commands in a row: `demo`, and `test`, which is what must hold before a
//! change goes in.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result};

use crate::component;

/// Builds the plugins and the runner, and runs its demo.
pub fn demo(root: &Path, arguments: &[OsString]) -> Result<ExitCode> {
    component::build_all(root)?;
    let status = Command::new("cargo")
        .current_dir(root)
        .args(["run", "--quiet", "--package", "runner", "--", "demo"])
        .args(arguments)
        .status()
        .context("cargo does not start")?;
    Ok(exit_code(status.code().unwrap_or(1)))
}

/// Runs every step until one fails; then the rest is named as not run.
pub fn test(root: &Path) -> Result<ExitCode> {
    type Step = (&'static str, fn(&Path) -> Result<i32>);
    let steps: [Step; 5] = [
        ("format", |root| cargo(root, &["fmt", "--all", "--check"])),
        // Before what compiles the host, because the host embeds them.
        ("plugins", |root| component::build_all(root).map(|()| 0)),
        ("clippy", |root| {
            let arguments = [
                "clippy",
                "--workspace",
                "--all-targets",
                "--",
                "-D",
                "warnings",
            ];
            cargo(root, &arguments)
        }),
        ("tests", |root| cargo(root, &["test", "--workspace"])),
        ("README", readme),
    ];
    let mut summary = String::new();
    let mut failed = None;
    for (name, step) in steps {
        if failed.is_some() {
            summary += &format!("  {name:<8} not run\n");
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
            "  {name:<8} {word:<6} {:>6.1} s\n",
            started.elapsed().as_secs_f64()
        );
        failed = (code != 0).then_some(code);
    }
    eprint!("==> summary\n{summary}");
    Ok(exit_code(failed.unwrap_or(0)))
}

fn cargo(root: &Path, arguments: &[&str]) -> Result<i32> {
    run(Command::new("cargo").current_dir(root).args(arguments))
}

/// Runs, with the runner just built, every line of the README's blocks that are fenced as `sh tested`.
fn readme(root: &Path) -> Result<i32> {
    let path = root.join("README.md");
    if !path.is_file() {
        eprintln!("no README.md");
        return Ok(0);
    }
    let text = fs::read_to_string(&path)?;
    let code = cargo(root, &["build", "--package", "runner"])?;
    if code != 0 {
        return Ok(code);
    }
    let mut search: Vec<PathBuf> = vec![root.join("target/debug")];
    search.extend(std::env::split_paths(
        &std::env::var_os("PATH").unwrap_or_default(),
    ));
    let search = std::env::join_paths(search)?;
    for block in tested_blocks(&text) {
        eprintln!("{}", block.trim_end());
        let code = run(Command::new("sh")
            .current_dir(root)
            .args(["-e", "-c", &block])
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

//! Programs of the workspace that commands build and run: the runner and its demo, packages.
//! [`gate`](crate::gate) runs the checks of a change.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::component::{self, GuestSet};

/// Builds a program of the workspace.
///
/// Cargo unifies the features of dependencies over the packages that a command selects. With every
/// package selected, each call compiles the same dependencies once.
pub fn build_binary(root: &Path, name: &str) -> Result<()> {
    run(cargo_command(root).args(["build", "--workspace", "--bin", name]))
}

/// The same as it ships; returns its path.
pub fn build_release_binary(root: &Path, name: &str) -> Result<PathBuf> {
    run(cargo_command(root).args(["build", "--release", "--workspace", "--bin", name]))?;
    Ok(root.join("target/release").join(format!("{name}{}", std::env::consts::EXE_SUFFIX)))
}

/// The arguments of cargo for the demo's runner, without features that few users need.
pub const DEMO: [&str; 5] = ["build", "--workspace", "--no-default-features", "--bin", "runner"];

/// Builds the plugins and the runner, and runs its demo.
pub fn demo(root: &Path, arguments: &[OsString]) -> Result<()> {
    component::build(root, GuestSet::Demo)?;
    run(cargo_command(root).args(DEMO))?;
    run(Command::new(runner(root)).arg("demo").args(arguments))
}

/// Makes packages with `package.py`.
pub fn package(root: &Path, arguments: &[OsString]) -> Result<()> {
    let mut script = Command::new("python3");
    script.arg(root.join("host/build/package/package.py")).args(arguments);
    run(without_own_variables(&mut script))
}

/// A call of cargo in this checkout.
pub fn cargo_command(root: &Path) -> Command {
    let mut cargo = Command::new("cargo");
    // The rest of this program looks for build results there.
    cargo.current_dir(root).env("CARGO_TARGET_DIR", root.join("target"));
    without_own_variables(&mut cargo);
    cargo
}

/// Removes the variables by which `cargo run` describes this package to this program. A build
/// script that watches them, such as `ring`'s, would run again: half of the workspace with it.
fn without_own_variables(command: &mut Command) -> &mut Command {
    let own = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(own)) {
        command.env_remove(name);
    }
    command
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

/// Runs a command to its end. Fails if the command does.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status();
    let program = command.get_program().display();
    let status = status.with_context(|| format!("{program} does not start"))?;
    ensure!(status.success(), "{program}: {status}");
    Ok(())
}

/// Runs a command; its standard output. Fails with its standard error if the command fails.
pub fn printed(command: &mut Command) -> Result<String> {
    let output = command.output();
    let program = command.get_program().display();
    let output = output.with_context(|| format!("{program} does not start"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program}: {}", errors.trim_end());
    Ok(String::from_utf8(output.stdout)?)
}

/// True if a program is installed and works.
pub fn is_there(program: &str) -> bool {
    let output = Command::new(program).arg("--version").output();
    output.is_ok_and(|output| output.status.success())
}

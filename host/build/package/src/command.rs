//! Other programs that packages are made with: their output, or why there is none.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// The target that plugins are compiled for.
pub(crate) const GUEST: &str = "wasm32-unknown-unknown";

/// Runs a command, and returns its output.
///
/// # Errors
/// If the command does not start, or fails; the error then has the command's own message.
pub(crate) fn said(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.output().with_context(|| format!("{command:?} does not start"))?;
    ensure!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(output.stdout)
}

/// The crates of the workspace and all that they use on these targets, as `cargo metadata` lists
/// them.
///
/// # Errors
/// If cargo cannot resolve the workspace as `Cargo.lock` has it.
pub(crate) fn metadata(root: &Path, targets: &[&str]) -> Result<Value> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root);
    cargo.args(["metadata", "--locked", "--format-version", "1"]);
    for target in targets {
        cargo.args(["--filter-platform", target]);
    }
    serde_json::from_slice(&said(&mut cargo)?).context("`cargo metadata` does not print JSON")
}

//! Rust: cargo compiles the crate to a module, or with `wasm32-wasip2` to a component.

use std::env;
use std::path::PathBuf;

use toolchain::{Build, Choice, Target, Toolchain};

use super::AuthorError;
use super::project::Project;
use super::tool::{self, Shell, ShowOutput};

pub fn compile(
    project: &Project,
    module: &str,
    target: Target,
    shell: Shell<'_>,
) -> Result<(PathBuf, Choice), AuthorError> {
    let target_dir = env::var_os("CARGO_TARGET_DIR").filter(|folder| !folder.is_empty());
    let target_dir = target_dir.map_or_else(|| project.folder.join("target"), PathBuf::from);
    let target_dir = std::path::absolute(&target_dir).unwrap_or(target_dir);
    let build = Build {
        root: &project.folder,
        target,
        profile: "release",
        target_dir: &target_dir,
        // Cargo names a workspace's own files from the workspace, so none of the author's paths is
        // in the component.
        names: &[],
    };
    let chosen = Toolchain::find(&project.folder, target, Toolchain::requested()?)?;
    let mut cargo = chosen.toolchain.cargo_build(&build);
    tool::call(shell, "cargo", cargo.arg("--lib"), ShowOutput::Always)?;
    let module = build.modules().join(module);
    if module.is_file() {
        Ok((module, chosen))
    } else {
        Err(AuthorError::Nothing { tool: "cargo", path: module })
    }
}

//! Compilers installed on this machine: finding and calling them.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::{env, io};

use super::project::Project;
use super::{AuthorError, template};

/// The condition to show a compiler's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShowOutput {
    /// Always: progress, warnings.
    Always,
    OnFailure,
}

/// Runs a program to its end. Its output does not go to stdout, which carries the result.
pub type Shell<'a> = &'a dyn Fn(&mut Command, ShowOutput) -> io::Result<ExitStatus>;

/// Variables that would make a compiler read modules from outside the project.
const MISLEADING: [&str; 3] = ["PYTHONPATH", "PYTHONHOME", "NODE_OPTIONS"];

pub fn command(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder);
    for name in MISLEADING {
        command.env_remove(name);
    }
    command
}

pub fn call(
    shell: Shell<'_>,
    tool: &'static str,
    command: &mut Command,
    talk: ShowOutput,
) -> Result<(), AuthorError> {
    let status = shell(command, talk).map_err(|cause| AuthorError::System {
        operation: "start",
        path: command.get_program().into(),
        cause,
    })?;
    if status.success() { Ok(()) } else { Err(AuthorError::Tool { tool, how: status.to_string() }) }
}

/// Finds a program: the variable's value, else the project's, else on the search path.
pub fn find(variable: &str, folder: &Path, local: &str, name: &str) -> Option<PathBuf> {
    if let Some(named) = env::var_os(variable).filter(|named| !named.is_empty()) {
        return Some(named.into());
    }
    // It is started in the project's folder, so a relative path would be resolved from there.
    let local = std::path::absolute(folder.join(local)).ok();
    local.filter(|path| path.is_file()).or_else(|| on_path(name))
}

pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let name = format!("{name}{}", env::consts::EXE_SUFFIX);
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(&name))
        .find(|path| path.is_file())
}

pub(super) fn absolute(path: PathBuf) -> Result<PathBuf, AuthorError> {
    std::path::absolute(&path).map_err(AuthorError::system("find", &path))
}

pub(super) fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), AuthorError> {
    std::fs::write(path, content).map_err(AuthorError::system("write", path))
}

pub(crate) fn make_folder(folder: &Path) -> Result<(), AuthorError> {
    std::fs::create_dir_all(folder).map_err(AuthorError::system("make", folder))
}

/// The folder with the project's contract, or a copy of this runner's.
pub fn contract(project: &Project) -> Result<PathBuf, AuthorError> {
    let own = absolute(project.folder.join("wit"))?;
    if own.is_dir() {
        return Ok(own);
    }
    let folder = absolute(project.work().join("wit"))?;
    make_folder(&folder)?;
    for (name, text) in template::contract("") {
        write(&folder.join(name.trim_start_matches('/')), text)?;
    }
    Ok(folder)
}

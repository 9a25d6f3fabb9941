//! Python: componentize-py bundles the interpreter and the project's modules into a component.

use std::path::Path;
use std::process::Command;

use super::AuthorError;
use super::fresh;
use super::project::Project;
use super::tool::{self, Shell, ShowOutput};
use model::plugin::Kind;

/// The compiler's name.
const TOOL: &str = "componentize-py";

const MISSING: &str = "componentize-py, which turns Python into components, is not installed. Install it: \
    `python3 -m venv .venv && .venv/bin/pip install componentize-py==0.25.1` in the project's folder (or `pip \
    install -r requirements.txt` in an environment of yours), or set COMPONENTIZE_PY to its path";

/// Writes the component.
pub fn compile(
    project: &Project,
    kind: Kind,
    entry: &str,
    component: &Path,
    shell: Shell<'_>,
) -> Result<(), AuthorError> {
    let module = entry.strip_suffix(".py").unwrap_or(entry).replace('/', ".");
    let mut command = called(project, kind)?;
    command
        // With WASI, which the sandbox provides empty. Stubs would trap instead, so output, clocks
        // and exceptions would all end a call without a word, and the random numbers would be those
        // of the build.
        .args(["componentize", "-p", ".", "-o"])
        .arg(component)
        .arg(module)
        .current_dir(fresh::without_links(project)?);
    tool::call(shell, TOOL, &mut command, ShowOutput::Always)
}

/// Writes the contract's types for editors.
pub fn bindings(
    project: &Project,
    kind: Kind,
    folder: &Path,
    shell: Shell<'_>,
) -> Result<(), AuthorError> {
    let absolute = std::path::absolute(folder).map_err(AuthorError::system("find", folder))?;
    let mut command = called(project, kind)?;
    command.arg("bindings").arg(absolute);
    tool::call(shell, TOOL, &mut command, ShowOutput::OnFailure)
}

/// A call of the compiler for the world of a kind.
fn called(project: &Project, kind: Kind) -> Result<Command, AuthorError> {
    let local = if cfg!(windows) {
        ".venv/Scripts/componentize-py.exe"
    } else {
        ".venv/bin/componentize-py"
    };
    let program = tool::find("COMPONENTIZE_PY", &project.folder, local, TOOL)
        .ok_or_else(|| AuthorError::Missing(MISSING.to_owned()))?;
    let mut command = tool::command(&program, &project.folder);
    command
        .args(["-q", "-d"])
        .arg(tool::contract(project)?)
        .args(["-w", &format!("{}-plugin", kind.name())]);
    Ok(command)
}

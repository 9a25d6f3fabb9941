//! Python: componentize-py bundles the interpreter and the project's modules into a component.

use std::env::consts::EXE_SUFFIX;
use std::path::Path;
use std::process::Command;

use super::project::Project;
use super::tool::{self, Shell, ShowOutput};
use super::{AuthorError, fresh};
use model::plugin::Kind;

const TOOL: &str = "componentize-py";

const MISSING: &str = "componentize-py, which turns Python into components, is not installed. Install it: \
    `python3 -m venv .venv && .venv/bin/pip install componentize-py==0.25.1` in the project's folder (or `pip \
    install -r requirements.txt` in an environment of yours), or set COMPONENTIZE_PY to its path";

pub fn compile(
    project: &Project,
    kind: Kind,
    entry: &str,
    component: &Path,
    shell: Shell<'_>,
) -> Result<(), AuthorError> {
    let module = entry.strip_suffix(".py").unwrap_or(entry).replace('/', ".");
    let mut command = called(project, kind)?;
    let folder = fresh::without_links(project)?;
    check_syntax(Path::new(command.get_program()), &folder, shell)?;
    command
        // With WASI, which the sandbox provides empty. Stubs would trap instead, so output, clocks
        // and exceptions would end a call silently, and the build's random numbers would repeat.
        .args(["componentize", "-p", ".", "-o"])
        .arg(component)
        .arg(module)
        .current_dir(folder);
    tool::call(shell, TOOL, &mut command, ShowOutput::Always)
}

/// Compiles the modules with the interpreter beside the compiler, for Python's own messages.
fn check_syntax(compiler: &Path, folder: &Path, shell: Shell<'_>) -> Result<(), AuthorError> {
    const CHECK: &str = "import sys\nfor name in sys.argv[1:]:\n try: compile(open(name, 'rb').read(), name, 'exec')\n \
        except SyntaxError as wrong: sys.excepthook(SyntaxError, wrong, None); sys.exit(1)";
    let beside = |name: &str| compiler.with_file_name(format!("{name}{}", EXE_SUFFIX));
    let Some(python) = ["python3", "python"].map(beside).into_iter().find(|it| it.is_file()) else {
        return Ok(());
    };
    let entries = std::fs::read_dir(folder).map_err(AuthorError::system("read", folder))?;
    let names = entries.flatten().map(|entry| entry.file_name());
    let modules = names.filter(|name| Path::new(name).extension().is_some_and(|it| it == "py"));
    let mut command = tool::command(&python, folder);
    command.args(["-I", "-c", CHECK]).args(modules);
    tool::call(shell, "python", &mut command, ShowOutput::OnFailure)
}

/// Writes the contract's types for editors.
pub fn bindings(
    project: &Project,
    kind: Kind,
    folder: &Path,
    shell: Shell<'_>,
) -> Result<(), AuthorError> {
    let absolute = tool::absolute(folder.to_owned())?;
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

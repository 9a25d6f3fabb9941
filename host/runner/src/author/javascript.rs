//! JavaScript: componentize-qjs bundles a JavaScript engine and the project's modules into a
//! component.

use std::path::Path;

use super::project::Project;
use super::tool::{self, Shell, ShowOutput};
use super::{AuthorError, fresh};
use model::plugin::Kind;

const TOOL: &str = "componentize-qjs";

const MISSING: &str = "componentize-qjs, which turns JavaScript into components, is not installed. Install it: `npm \
    install` in the project's folder (it is in package.json), or `npm install --global componentize-qjs@0.4.5`, or \
    set COMPONENTIZE_QJS to its path";

pub fn compile(
    project: &Project,
    kind: Kind,
    entry: &str,
    component: &Path,
    shell: Shell<'_>,
) -> Result<(), AuthorError> {
    let local = format!("node_modules/.bin/{TOOL}");
    let program = tool::find("COMPONENTIZE_QJS", &project.folder, &local, TOOL)
        .ok_or_else(|| AuthorError::Missing(MISSING.to_owned()))?;
    if tool::on_path("node").is_none() {
        let missing = "componentize-qjs runs on Node.js 18 or newer, which is not on the PATH";
        return Err(AuthorError::Missing(missing.to_owned()));
    }
    let mut command = tool::command(&program, &project.folder);
    command
        .arg("--wit")
        .arg(tool::contract(project)?)
        .args(["--js", entry, "--module-root", "."])
        .args(["-n", &format!("{}-plugin", kind.name())])
        // Synchronous, because the runner calls plugins from separate threads. With WASI, which the
        // sandbox provides empty: stubs would trap, so exceptions would end a call silently.
        .args(["--sync", "-o"])
        .arg(component)
        .current_dir(fresh::without_links(project)?);
    tool::call(shell, TOOL, &mut command, ShowOutput::OnFailure)
}

//! Files that editors need to complete and check a project's code: the contract's types in its
//! language, where they look.
//!
//! | language | files |
//! | --- | --- |
//! | Rust | none: the SDK has them |
//! | Python | `typings/`, once componentize-py is installed; `pyrightconfig.json` names it |
//! | JavaScript | `runner_plugin/contract.d.ts` and `modules.d.ts`; `jsconfig.json` names them |
//! | C | `target/plugin/work/plugin.h`; `compile_flags.txt` names its folder |

use std::path::Path;

use sha2::{Digest, Sha256};

use super::declarations::{Declarations, declarations};
use super::project::{Project, Sources};
use super::tool::{self, Shell};
use super::{AuthorError, Language, c, python};
use model::hex;
use model::plugin::Kind;

/// Writes the files that a project's language needs. Without a shell, no compiler is called.
pub fn prepare(project: &Project, shell: Option<Shell<'_>>) -> Result<(), AuthorError> {
    let Sources::Files { language, kind, .. } = &project.sources else { return Ok(()) };
    match language {
        Language::C => c::bindings(project, *kind).map(drop),
        Language::Javascript => javascript(project, *kind),
        Language::Python => match shell {
            Some(shell) => typings(project, *kind, shell),
            None => Ok(()),
        },
        Language::Rust => Ok(()),
    }
}

fn javascript(project: &Project, kind: Kind) -> Result<(), AuthorError> {
    let wit = tool::contract(project)?;
    let Declarations { contract, modules } = declarations(&wit, kind)
        .map_err(|mistake| AuthorError::Bindings { folder: wit, mistake })?;
    let folder = project.folder.join("runner_plugin");
    // A project without the package has no types.
    if !folder.is_dir() {
        return Ok(());
    }
    for (name, text) in [("contract.d.ts", contract), ("modules.d.ts", modules)] {
        let path = folder.join(name);
        if std::fs::read_to_string(&path).is_ok_and(|known| known == text) {
            continue;
        }
        tool::write(&path, text)?;
    }
    Ok(())
}

/// componentize-py takes a second for its bindings, so they are made once for each contract.
fn typings(project: &Project, kind: Kind, shell: Shell<'_>) -> Result<(), AuthorError> {
    let folder = project.folder.join("typings");
    let stamp = folder.join(".contract");
    let contract = digest(&tool::contract(project)?, kind);
    if std::fs::read_to_string(&stamp).is_ok_and(|known| known == contract) {
        return Ok(());
    }
    // componentize-py overwrites no files, and other stubs may stand beside its own.
    let fresh = folder.join(".new");
    let _ = std::fs::remove_dir_all(&fresh);
    std::fs::create_dir_all(&folder).map_err(AuthorError::system("create", &folder))?;
    python::bindings(project, kind, &fresh, shell)?;
    replace(&fresh, &folder).map_err(AuthorError::system("write", &folder))?;
    tool::write(&stamp, contract)
}

/// Moves a folder's contents into another one, where they replace contents of the same names.
fn replace(from: &Path, to: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let there = to.join(entry.file_name());
        if there.is_dir() {
            std::fs::remove_dir_all(&there)?;
        }
        std::fs::rename(entry.path(), there)?;
    }
    std::fs::remove_dir(from)
}

fn digest(wit: &Path, kind: Kind) -> String {
    let mut files: Vec<_> = std::fs::read_dir(wit).into_iter().flatten().flatten().collect();
    files.sort_by_key(std::fs::DirEntry::file_name);
    let mut all = Sha256::new();
    all.update(kind.name());
    for file in files {
        all.update(std::fs::read(file.path()).unwrap_or_default());
    }
    hex(&all.finalize())
}

#[cfg(test)]
mod tests {
    use super::replace;

    #[test]
    fn new_files_replace_only_files_of_the_same_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        for (path, text) in [
            ("new/world/a.pyi", "new"),
            ("new/b.py", "new"),
            ("old/world/gone.pyi", "old"),
            ("old/b.py", "old"),
            ("old/own.pyi", "mine"),
        ] {
            std::fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            std::fs::write(at(path), text).unwrap();
        }
        replace(&at("new"), &at("old")).unwrap();
        assert!(!at("new").exists() && !at("old/world/gone.pyi").exists());
        let text = |path: &str| std::fs::read_to_string(at(path)).unwrap();
        let now = ["old/world/a.pyi", "old/b.py", "old/own.pyi"].map(text);
        assert_eq!(now, ["new", "new", "mine"]);
    }
}

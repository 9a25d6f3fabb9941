//! From a folder given by the user to the cases in it, and to the component that they test.

use std::path::{Path, PathBuf};

use super::store::EXTENSION;

/// The folder of a plugin project that contains its cases.
const CASES: &str = "cases";

/// The path of a plugin project's component after building.
const BUILT: &str = "target/plugin";

#[derive(Debug, PartialEq, Eq)]
pub struct CaseSet {
    /// The folders and files of cases, by name.
    pub cases: Vec<PathBuf>,
    /// The plugin project that they belong to, if their location shows it.
    pub project: Option<PathBuf>,
}

/// Finds cases: in `cases/` if `dir` is a plugin project, otherwise in `dir`, which may itself be a
/// case.
pub fn cases(dir: &Path) -> Result<CaseSet, String> {
    if is_file(dir) {
        let project = above(dir).and_then(|cases| project_of(&cases));
        return Ok(CaseSet { cases: vec![dir.to_owned()], project });
    }
    if !dir.is_dir() {
        return Err(format!(
            "`{}` is not a folder; give a plugin project, a folder of cases or one case",
            dir.display()
        ));
    }
    let project = dir.join(CASES);
    let found = if project.is_dir() {
        CaseSet { cases: within(&project)?, project: Some(dir.to_owned()) }
    } else if is_case(dir)? {
        CaseSet {
            cases: vec![dir.to_owned()],
            project: above(dir).and_then(|cases| project_of(&cases)),
        }
    } else {
        CaseSet { cases: within(dir)?, project: project_of(dir) }
    };
    if found.cases.is_empty() {
        let place = if project.is_dir() { &project } else { dir };
        return Err(format!(
            "`{}` has no cases; a case is a file such as {CASES}/first.case, or a folder, with a sample.json, a case.toml or an exchanges.json",
            place.display()
        ));
    }
    Ok(found)
}

/// The project whose cases are in this folder.
fn project_of(cases: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(cases).ok()?;
    (absolute.file_name()? == CASES).then(|| above(cases))?
}

/// The parent folder; the current folder for a relative path with a single component.
pub(super) fn above(folder: &Path) -> Option<PathBuf> {
    match folder.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Some(PathBuf::from(".")),
        Some(parent) if folder.file_name().is_some() => Some(parent.to_owned()),
        _ => Some(std::path::absolute(folder).ok()?.parent()?.to_owned()),
    }
}

pub(super) fn within(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let is_case = |path: &PathBuf| (path.is_dir() || is_file(path)) && !is_hidden(path);
    let mut cases: Vec<PathBuf> = entries(dir)?.into_iter().filter(is_case).collect();
    cases.sort();
    Ok(cases)
}

/// True if a path is a case in one file.
fn is_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == EXTENSION) && path.is_file()
}

/// True if a folder contains a file that only cases have.
fn is_case(dir: &Path) -> Result<bool, String> {
    const TELLING: [&str; 6] = [
        "config.toml",
        "sample.json",
        "control.txt",
        "case.toml",
        "exchanges.json",
        "exchanges.jsonl",
    ];
    let tells = |path: &PathBuf| TELLING.iter().any(|name| path.ends_with(name));
    Ok(entries(dir)?.iter().any(|path| path.is_file() && tells(path)))
}

pub(super) fn entries(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let unreadable = |cause| format!("cannot read the folder `{}`: {cause}", dir.display());
    let entries = std::fs::read_dir(dir).map_err(unreadable)?;
    entries.map(|entry| Ok(entry.map_err(unreadable)?.path())).collect()
}

/// True if it is one of the files that operating systems and editors create.
pub(super) fn is_hidden(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with('.') || name.ends_with('~')
}

/// The built component of a plugin project.
pub fn component(project: &Path) -> Result<PathBuf, String> {
    let built = project.join(BUILT);
    let mut components: Vec<PathBuf> = entries(&built)
        .unwrap_or_default()
        .into_iter()
        .filter(|path| path.extension().is_some_and(|ending| ending == "wasm"))
        .collect();
    components.sort();
    match components.as_slice() {
        [component] => Ok(component.clone()),
        [] => Err(format!(
            "no component in `{}`; run `runner plugin build {}`, or name one with --plugin",
            built.display(),
            project.display()
        )),
        several => Err(format!(
            "`{}` contains several components ({}); name one with --plugin",
            built.display(),
            several
                .iter()
                .filter_map(|path| path.file_name())
                .map(|name| name.to_string_lossy())
                .collect::<Vec<_>>()
                .join(", ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        folder
    }

    fn names(found: &CaseSet, below: &Path) -> Vec<String> {
        let name = |path: &PathBuf| path.strip_prefix(below).unwrap().display().to_string();
        found.cases.iter().map(name).collect()
    }

    #[test]
    fn projects_folders_and_cases_are_distinguished() {
        let folder = made(&[
            "cases/b/sample.json",
            "cases/a/sample.json",
            "cases/shared.json",
            "cases/c.case",
            "cases/.git/x",
        ]);
        let root = folder.path();
        let project = cases(root).unwrap();
        assert_eq!(names(&project, root), ["cases/a", "cases/b", "cases/c.case"]);
        assert_eq!(project.project.as_deref(), Some(root));
        let folder_of_cases = cases(&root.join("cases")).unwrap();
        assert_eq!(folder_of_cases.cases, project.cases);
        assert_eq!(folder_of_cases.project.as_deref(), Some(root));
        let one = cases(&root.join("cases/b")).unwrap();
        assert_eq!(names(&one, root), ["cases/b"]);
        assert_eq!(one.project.as_deref(), Some(root));
        let file = cases(&root.join("cases/c.case")).unwrap();
        assert_eq!(names(&file, root), ["cases/c.case"]);
        assert_eq!(file.project.as_deref(), Some(root));
    }

    #[test]
    fn cases_elsewhere_belong_to_no_project() {
        let folder = made(&["some/a/case.toml"]);
        let found = cases(&folder.path().join("some")).unwrap();
        assert_eq!((found.cases.len(), found.project), (1, None));
    }

    #[test]
    fn missing_folder_and_missing_cases_are_errors() {
        let folder = made(&["cases/notes.txt"]);
        let none = cases(folder.path()).unwrap_err();
        assert!(none.contains("cases` has no cases"), "{none}");
        let absent = cases(&folder.path().join("x")).unwrap_err();
        assert!(absent.contains("is not a folder"), "{absent}");
    }

    #[test]
    fn project_has_one_component() {
        let folder = made(&["a/target/plugin/a.wasm", "b/target/plugin/b.wasm"]);
        let component = |name: &str| component(&folder.path().join(name));
        assert!(component("a").unwrap().ends_with("target/plugin/a.wasm"));
        let none = component("c").unwrap_err();
        assert!(none.contains("run `runner plugin build "), "{none}");
        std::fs::write(folder.path().join("b/target/plugin/c.wasm"), "").unwrap();
        let several = component("b").unwrap_err();
        assert!(several.contains("(b.wasm, c.wasm)"), "{several}");
    }
}

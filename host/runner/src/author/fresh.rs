//! Checks if a project's component was built from the current sources. `build` leaves a record of
//! the sources' digests beside the component; without a record, the files' times decide.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::project::Project;
use super::{AuthorError, template, tool};
use model::hex;

/// Folders of a project that hold no sources: build results, installed packages, and the cases.
const OTHER_FOLDERS: [&str; 5] = ["target", "node_modules", "cases", "typings", "__pycache__"];
const WRITTEN: [&str; 2] = ["Cargo.lock", "package-lock.json"];
/// The most files to examine; a folder with more is hardly a plugin's.
const MOST_FILES: usize = 20_000;

/// The inputs that a component was built from.
#[derive(Debug, Deserialize, Serialize)]
struct Record {
    component: String,
    /// The SHA-256 of each source file, by its path below the project's folder.
    sources: BTreeMap<String, String>,
    /// The SHA-256 of the contract of the build, where the project has no contract of its own.
    #[serde(default)]
    contract: String,
}

pub fn sources(project: &Project) -> BTreeMap<String, String> {
    let files = files(&project.folder);
    let digests = files.into_iter().filter_map(|file| {
        let bytes = std::fs::read(project.folder.join(&file)).ok()?;
        Some((named(&file), hex(&Sha256::digest(&bytes))))
    });
    digests.collect()
}

/// The folder that holds the sources for compilers that read nothing outside of it: the project's
/// own, or, if some of its files are links, a copy with the links' targets.
pub fn without_links(project: &Project) -> Result<PathBuf, AuthorError> {
    let files = files(&project.folder);
    if !files.iter().any(|file| project.folder.join(file).is_symlink()) {
        return Ok(project.folder.clone());
    }
    let copy = project.work().join("sources");
    if copy.exists() {
        std::fs::remove_dir_all(&copy).map_err(AuthorError::system("empty", &copy))?;
    }
    for file in files {
        let (from, to) = (project.folder.join(&file), copy.join(&file));
        if let Some(folder) = to.parent() {
            tool::make_folder(folder)?;
        }
        std::fs::copy(&from, &to).map_err(AuthorError::system("copy", &from))?;
    }
    Ok(copy)
}

/// Records the sources of a component, as they were before the build.
pub fn record(
    project: &Project,
    mut before: BTreeMap<String, String>,
    component: &str,
) -> Result<(), AuthorError> {
    for (path, digest) in sources(project) {
        let is_written = WRITTEN.iter().any(|name| path.ends_with(name));
        if is_written || !before.contains_key(&path) {
            before.insert(path, digest);
        }
    }
    let record = Record { component: component.to_owned(), sources: before, contract: contract() };
    let text = serde_json::to_string_pretty(&record).unwrap_or_default() + "\n";
    tool::write(&place(project), text)
}

/// True if a build recorded that it made the component from the present sources and contract.
pub fn is_current(project: &Project) -> bool {
    let Ok(bytes) = std::fs::read(project.component()) else { return false };
    recorded(project, &bytes).is_some_and(|record| {
        record.contract == contract() && changed(&record.sources, &sources(project)).is_none()
    })
}

/// The change of the sources since the build, as a sentence's end; absent without a component.
pub fn stale(project: &Project) -> Option<String> {
    let component = project.component();
    let bytes = std::fs::read(&component).ok()?;
    match recorded(project, &bytes) {
        Some(record) => changed(&record.sources, &sources(project)),
        None => newer(project, &component),
    }
}

pub fn project_of(component: &Path) -> Option<Project> {
    let component = std::path::absolute(component).ok()?;
    let folder = component.ancestors().nth(3)?;
    let project = Project::open(folder).ok()?;
    (project.component() == component).then_some(project)
}

pub fn remedy(project: &Project) -> String {
    format!("run `runner plugin build {}`", project.folder.display())
}

/// The record of a component with these bytes.
fn recorded(project: &Project, component: &[u8]) -> Option<Record> {
    let text = std::fs::read(place(project)).ok()?;
    let record: Record = serde_json::from_slice(&text).ok()?;
    (record.component == hex(&Sha256::digest(component))).then_some(record)
}

fn contract() -> String {
    let mut digest = Sha256::new();
    for (name, text) in template::contract("") {
        digest.update(name);
        digest.update([0]);
        digest.update(text);
    }
    hex(&digest.finalize())
}

fn place(project: &Project) -> PathBuf {
    let name = format!("{}.sources.json", project.name);
    project.component().with_file_name(name)
}

fn changed(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Option<String> {
    for (path, digest) in now {
        match before.get(path) {
            None => return Some(format!("`{path}` was added since")),
            Some(known) if known != digest => return Some(format!("`{path}` has changed since")),
            Some(_) => {}
        }
    }
    let gone = before.keys().find(|path| !now.contains_key(*path))?;
    Some(format!("`{gone}` was removed since"))
}

fn newer(project: &Project, component: &Path) -> Option<String> {
    let time = |path: &Path| std::fs::metadata(path).and_then(|file| file.modified()).ok();
    let built = time(component)?;
    let files = files(&project.folder);
    let newer = files.into_iter().find(|file| {
        let written = WRITTEN.iter().any(|name| file.ends_with(name));
        !written && time(&project.folder.join(file)).is_some_and(|changed| changed > built)
    })?;
    Some(format!("`{}` is newer", named(&newer)))
}

fn named(path: &Path) -> String {
    path.to_string_lossy().replace('\\', "/")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(folder.join(&below)) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let path = below.join(&*name);
            let Ok(kind) = entry.file_type() else { continue };
            // A link to a folder could lead in a circle; a link to a file is a source like any
            // other.
            let is_file = kind.is_file() || kind.is_symlink() && entry.path().is_file();
            if name.starts_with('.') || name.ends_with('~') || found.len() >= MOST_FILES {
                continue;
            }
            let is_other =
                OTHER_FOLDERS.contains(&&*name) || entry.path().join("pyvenv.cfg").is_file();
            if kind.is_dir() && !is_other {
                folders.push(path);
            } else if is_file && !name.ends_with(".md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> (tempfile::TempDir, Project) {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("runner-plugin.toml", "name = 'mine'\nkind = 'scorer'\nlanguage = 'c'");
        write("plugin.c", "int a;");
        write("lib/more.h", "int b;");
        write("target/plugin/mine.wasm", "component");
        let project = Project::open(folder.path()).unwrap();
        let digest = hex(&Sha256::digest("component"));
        record(&project, sources(&project), &digest).unwrap();
        (folder, project)
    }

    #[test]
    fn files_that_no_compiler_reads_make_nothing_stale() {
        let (folder, project) = made();
        for name in ["README.md", ".git/index", "cases/a/scores.json", "target/x", "a.c~"] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "new").unwrap();
        }
        assert_eq!(stale(&project), None);
        // Saved without a change.
        std::fs::write(folder.path().join("plugin.c"), "int a;").unwrap();
        assert_eq!(stale(&project), None);
    }

    #[test]
    fn a_change_is_named_by_its_file() {
        for (name, text, message) in [
            ("plugin.c", Some("int c;"), "`plugin.c` has changed since"),
            ("lib/more.h", None, "`lib/more.h` was removed since"),
            ("other.c", Some(""), "`other.c` was added since"),
        ] {
            let (folder, project) = made();
            let path = folder.path().join(name);
            match text {
                Some(text) => std::fs::write(path, text).unwrap(),
                None => std::fs::remove_file(path).unwrap(),
            }
            assert_eq!(stale(&project).as_deref(), Some(message));
        }
    }

    #[test]
    fn only_a_build_of_the_present_sources_is_current() {
        let (folder, project) = made();
        assert!(is_current(&project));
        std::fs::write(folder.path().join("plugin.c"), "int c;").unwrap();
        assert!(!is_current(&project));
        let (_folder, project) = made();
        std::fs::write(project.component(), "of another tool").unwrap();
        assert!(!is_current(&project));
        // Times decide nothing here.
        std::fs::remove_file(place(&project)).unwrap();
        assert!(!is_current(&project));
    }

    #[cfg(unix)]
    #[test]
    fn the_target_of_a_link_is_a_source() {
        let (folder, project) = made();
        assert_eq!(without_links(&project).unwrap(), project.folder);
        let elsewhere = tempfile::tempdir().unwrap();
        let helper = elsewhere.path().join("helper.h");
        std::fs::write(&helper, "int a;").unwrap();
        std::os::unix::fs::symlink(&helper, folder.path().join("lib/helper.h")).unwrap();
        let before = sources(&project);
        assert!(before.contains_key("lib/helper.h"));
        std::fs::write(&helper, "int b;").unwrap();
        assert_ne!(sources(&project), before);
        let copy = without_links(&project).unwrap();
        let copied = std::fs::read_to_string(copy.join("lib/helper.h")).unwrap();
        assert_eq!(copied, "int b;");
        assert!(copy.join("plugin.c").is_file());
    }

    #[test]
    fn times_decide_without_a_record() {
        let (folder, project) = made();
        let component = folder.path().join("target/plugin/mine.wasm");
        std::fs::write(&component, "of another tool").unwrap();
        let open = |name: &str| {
            let file = std::fs::File::options().append(true).open(folder.path().join(name));
            file.unwrap()
        };
        let now = std::fs::metadata(&component).unwrap().modified().unwrap();
        let hour = std::time::Duration::from_secs(3600);
        open("target/plugin/mine.wasm").set_modified(now + hour).unwrap();
        assert_eq!(stale(&project), None);
        open("lib/more.h").set_modified(now + hour * 2).unwrap();
        assert_eq!(stale(&project).as_deref(), Some("`lib/more.h` is newer"));
    }

    #[test]
    fn a_component_shows_its_project_by_its_place() {
        let (folder, project) = made();
        let found = project_of(&project.component()).unwrap();
        assert_eq!((found.name, found.folder), (project.name, folder.path().to_owned()));
        assert!(project_of(&folder.path().join("mine.wasm")).is_none());
    }
}

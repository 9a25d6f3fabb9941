//! The local cache that all tools of the hub share: its folder, and its files of a repository.
//!
//! ```text
//! models--ORG--NAME/refs/main                        the commit that the branch had
//! models--ORG--NAME/snapshots/COMMIT/tokenizer.json  a link to the contents
//! models--ORG--NAME/blobs/TAG                        contents, by the hub's tag for them
//! ```
//!
//! <https://huggingface.co/docs/huggingface_hub/guides/manage-cache> describes it.

use std::path::{Path, PathBuf};

use crate::files::holds_tokenizer;
use crate::name::{Repository, is_component};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    root: PathBuf,
}

/// Everything that the cache holds of a repository at one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub folder: PathBuf,
    pub commit: String,
}

/// The folder of all that the hub's tools keep: `HF_HOME`, else `huggingface` in the user's caches.
pub(crate) fn home(variable: &impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let value_of = |name: &str| variable(name).filter(|value| !value.is_empty());
    if let Some(home) = value_of("HF_HOME") {
        return Some(expanded(&home, value_of("HOME")));
    }
    let caches = match value_of("XDG_CACHE_HOME") {
        Some(caches) => expanded(&caches, value_of("HOME")),
        None => PathBuf::from(value_of("HOME")?).join(".cache"),
    };
    Some(caches.join("huggingface"))
}

/// A path whose `~` is the user's home, as the hub's tools read it.
fn expanded(path: &str, home: Option<String>) -> PathBuf {
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => PathBuf::from(path),
    }
}

impl Cache {
    /// The folder that these variables name: `HF_HUB_CACHE`, else `hub` in `HF_HOME`, else
    /// `huggingface/hub` in `XDG_CACHE_HOME`, else in `~/.cache`. None where there is no home.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let value = variable("HF_HUB_CACHE").filter(|value| !value.is_empty());
        match value {
            Some(root) => Some(Cache::at(expanded(&root, variable("HOME")))),
            None => Some(Cache::at(home(&variable)?.join("hub"))),
        }
    }

    pub fn at(root: impl Into<PathBuf>) -> Self {
        Cache { root: root.into() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The place where it keeps a repository.
    pub fn folder(&self, repository: &Repository) -> PathBuf {
        self.root.join(repository.folder())
    }

    /// Finds the files of a repository at the revision given. Where none is given, the main branch
    /// as it was last downloaded; or the only commit that there is.
    pub fn find(&self, repository: &Repository) -> Option<Snapshot> {
        let folder = self.folder(repository);
        let snapshots = folder.join("snapshots");
        let revision = repository.revision();
        let commit = std::fs::read_to_string(folder.join("refs").join(revision))
            .map(|text| text.trim().to_owned())
            .ok()
            .or_else(|| is_component(revision).then(|| revision.to_owned()));
        let there = commit
            .filter(|commit| is_component(commit) && snapshots.join(commit).is_dir())
            .or_else(|| {
                let only = || only(&snapshots);
                (!repository.has_revision()).then(only).flatten()
            });
        there.map(|commit| Snapshot { folder: snapshots.join(&commit), commit })
    }
}

/// The only commit in a folder of snapshots.
fn only(snapshots: &Path) -> Option<String> {
    let mut entries = std::fs::read_dir(snapshots).ok()?;
    let first = entries.next()?.ok()?.file_name().into_string().ok()?;
    (entries.next().is_none() && is_component(&first)).then_some(first)
}

impl Snapshot {
    pub fn file(&self, path: &str) -> Option<PathBuf> {
        let path = self.folder.join(path);
        path.is_file().then_some(path)
    }

    /// True if a tokenizer is among its files.
    pub fn has_tokenizer(&self) -> bool {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten();
        entries.flatten().any(|entry| {
            let name = entry.file_name();
            name.to_str().is_some_and(holds_tokenizer) && entry.path().is_file()
        })
    }
}

//! The files that hold the version: Cargo.toml, the lock files, and the metadata of the Python
//! package. A version is replaced where the parser found it, so everything else stays as it was
//! written. The plugin interface in `wit/` has versions of its own, which are not here.

use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use semver::Version;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The manifest whose version all packages of the workspace have.
const MANIFEST: &str = "Cargo.toml";
/// The lock files: of the workspace, of the fuzzer, and of the fixture with a library of WASI of its own.
const LOCKS: [&str; 3] = ["Cargo.lock", "tests/fuzz/Cargo.lock", "tests/wasi3/Cargo.lock"];
/// The metadata of the Python package, which may take its version from elsewhere.
const PYTHON: &str = "host/python/pyproject.toml";

/// A file with the places of the version in it.
struct File {
    path: &'static str,
    text: String,
    places: Vec<Range<usize>>,
}

impl File {
    /// The text with another version in all places.
    fn with(&self, version: &str) -> String {
        let mut text = self.text.clone();
        for place in self.places.iter().rev() {
            // A quote stands at each end.
            text.replace_range(place.start + 1..place.end - 1, version);
        }
        text
    }
}

/// The version of the tree, and everywhere it stands.
pub struct Versions {
    pub current: Version,
    files: Vec<File>,
    mistakes: Vec<String>,
}

impl Versions {
    /// Finds the version in every file that holds it.
    ///
    /// # Errors
    /// If a file cannot be read, or has another form than cargo's.
    pub fn read(root: &Path) -> Result<Self> {
        let (current, file) = manifest(root)?;
        let mut versions = Self { current, files: vec![file], mistakes: Vec::new() };
        let mut ours = Vec::new();
        for path in LOCKS {
            versions.lock(root, path, &mut ours)?;
        }
        if root.join(PYTHON).exists() {
            versions.python(root)?;
        }
        Ok(versions)
    }

    /// Adds a lock file. The first names our packages, which are the packages without a source;
    /// each of the others also has a package of its own.
    fn lock(&mut self, root: &Path, path: &'static str, ours: &mut Vec<String>) -> Result<()> {
        let text = super::read(root, path)?;
        let table = parsed(path, &text)?;
        let packages = table.get("package");
        let packages = packages.and_then(|packages| packages.get_ref().as_array());
        let is_first = path == LOCKS[0];
        let mut places = Vec::new();
        for package in packages.into_iter().flat_map(|packages| packages.iter()) {
            let get = |key: &str| package.get_ref().get(key).and_then(string);
            let (Some((name, _)), Some((version, place))) = (get("name"), get("version")) else {
                continue;
            };
            if get("source").is_some() || !(is_first || ours.contains(&name)) {
                continue;
            }
            if version != self.current.to_string() {
                self.mistakes.push(format!(
                    "{path}: {name} {version}: expected {}, the version in Cargo.toml; write \
                     `version.workspace = true` in its Cargo.toml, and let cargo update the lock file",
                    self.current
                ));
            }
            if is_first {
                ours.push(name);
            }
            places.push(place);
        }
        if places.is_empty() {
            self.mistakes.push(format!("{path} names no package of the workspace"));
        }
        drop(table);
        self.files.push(File { path, text, places });
        Ok(())
    }

    /// Adds the Python package's metadata, unless its version is dynamic.
    fn python(&mut self, root: &Path) -> Result<()> {
        let text = super::read(root, PYTHON)?;
        let table = parsed(PYTHON, &text)?;
        let project = table.get("project").map(Spanned::get_ref);
        let found = project.and_then(|project| project.get("version"));
        let Some((version, place)) = found.and_then(string) else {
            return Ok(());
        };
        if version != self.current.to_string() {
            self.mistakes.push(format!(
                "{PYTHON}: version {version}: expected {}, the version in Cargo.toml",
                self.current
            ));
        }
        drop(table);
        self.files.push(File { path: PYTHON, text, places: vec![place] });
        Ok(())
    }

    /// Files whose version differs from Cargo.toml's.
    pub fn mistakes(&self) -> Vec<String> {
        self.mistakes.clone()
    }

    /// The files with another version, as they are to be written.
    pub fn raised(&self, version: &Version) -> Vec<(PathBuf, String)> {
        let version = version.to_string();
        let new = self.files.iter().map(|file| (PathBuf::from(file.path), file.with(&version)));
        let changed = new.zip(&self.files).filter(|(new, old)| new.1 != old.text);
        changed.map(|(new, _)| new).collect()
    }
}

/// The version in Cargo.toml.
///
/// # Errors
/// If the file cannot be read, or has none.
pub fn current(root: &Path) -> Result<Version> {
    Ok(manifest(root)?.0)
}

fn manifest(root: &Path) -> Result<(Version, File)> {
    let text = super::read(root, MANIFEST)?;
    let table = parsed(MANIFEST, &text)?;
    let found = ["workspace", "package", "version"]
        .iter()
        .try_fold(None, |at: Option<&Spanned<DeValue>>, key| {
            let next = match at {
                None => table.get(*key),
                Some(value) => value.get_ref().as_table().and_then(|t| t.get(*key)),
            };
            next.map(Some)
        })
        .flatten();
    let (version, place) =
        found.and_then(string).context("Cargo.toml has no `workspace.package.version`")?;
    let current: Version =
        version.parse().with_context(|| format!("Cargo.toml: version `{version}`"))?;
    drop(table);
    let file = File { path: MANIFEST, text, places: vec![place] };
    Ok((current, file))
}

fn parsed<'t>(path: &str, text: &'t str) -> Result<DeTable<'t>> {
    let table = DeTable::parse(text).with_context(|| format!("reading {path}"))?;
    Ok(table.into_inner())
}

/// A string and its place, with its quotes.
fn string(value: &Spanned<DeValue>) -> Option<(String, Range<usize>)> {
    let text = value.get_ref().as_str()?;
    Some((text.to_owned(), value.span()))
}

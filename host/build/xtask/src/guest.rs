//! Discovers guest crates: folders below one of the plugin folders whose crate builds a `cdylib`.
//! `component` builds them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Folders of guests, and the folder under `target/components` for their components. Guests that do
/// not ship are examples and guests for the tests, some of them hostile on purpose.
const FOLDERS: [Folder; 5] = [
    Folder::new("plugins/backends", "backends", true),
    Folder::new("plugins/datasets", "datasets", true),
    Folder::new("plugins/scorers", "scorers", true),
    Folder::new("plugins/examples", "examples", false),
    Folder::new("tests/guests", "guests", false),
];

struct Folder {
    path: &'static str,
    kind: &'static str,
    ships: bool,
}

impl Folder {
    const fn new(path: &'static str, kind: &'static str, ships: bool) -> Self {
        Folder { path, kind, ships }
    }
}

/// A crate that becomes a component.
pub struct Guest {
    /// The package's name, for cargo.
    pub package: String,
    /// The file's name below the profile's folder, as cargo writes it.
    pub module: String,
    /// `KIND/NAME.wasm`, below `target/components`.
    pub component: PathBuf,
    pub ships: bool,
}

/// Every guest, in the order of their components' names.
pub fn find(root: &Path) -> Result<Vec<Guest>> {
    let mut guests = Vec::new();
    for folder in &FOLDERS {
        let path = root.join(folder.path);
        if !path.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&path).with_context(|| format!("reading {}", folder.path))? {
            let entry = entry?;
            let manifest = entry.path().join("Cargo.toml");
            if !manifest.is_file() {
                continue;
            }
            if let Some((package, module)) = read_manifest(&manifest)
                .with_context(|| format!("reading {}", manifest.display()))?
            {
                let mut name = entry.file_name();
                name.push(".wasm");
                guests.push(Guest {
                    package,
                    module,
                    component: Path::new(folder.kind).join(name),
                    ships: folder.ships,
                });
            }
        }
    }
    guests.sort_by(|a, b| a.component.cmp(&b.component));
    Ok(guests)
}

/// The kinds of folder below `target/components`.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    FOLDERS.iter().map(|folder| folder.kind)
}

/// Package and module name of a crate that builds a `cdylib`; `None` for another crate.
fn read_manifest(path: &Path) -> Result<Option<(String, String)>> {
    let manifest: toml::Table = fs::read_to_string(path)?.parse()?;
    let package = manifest
        .get("package")
        .and_then(|package| package.get("name"))
        .and_then(|name| name.as_str())
        .context("it has no package.name")?;
    let library = manifest.get("lib");
    let is_guest = library
        .and_then(|library| library.get("crate-type"))
        .and_then(|kinds| kinds.as_array())
        .is_some_and(|kinds| kinds.iter().any(|kind| kind.as_str() == Some("cdylib")));
    let module = library
        .and_then(|library| library.get("name"))
        .and_then(|name| name.as_str())
        .unwrap_or(package)
        .replace('-', "_");
    Ok(is_guest.then(|| (package.to_owned(), format!("{module}.wasm"))))
}

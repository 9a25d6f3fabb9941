//! Discovers guest crates: folders below one of the plugin folders whose crate builds a `cdylib`.
//! `component` builds them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Folders of guests, the folder under `target/components` for their components, and true if they
/// ship. Others are examples and guests for the tests, some of them hostile on purpose.
const FOLDERS: [(&str, &str, bool); 5] = [
    ("plugins/backends", "backends", true),
    ("plugins/datasets", "datasets", true),
    ("plugins/scorers", "scorers", true),
    ("plugins/examples", "examples", false),
    ("tests/guests", "guests", false),
];

pub struct Guest {
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
    for (folder, kind, ships) in FOLDERS {
        let path = root.join(folder);
        if !path.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&path).with_context(|| format!("reading {folder}"))? {
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
                    component: Path::new(kind).join(name),
                    ships,
                });
            }
        }
    }
    guests.sort_by(|a, b| a.component.cmp(&b.component));
    Ok(guests)
}

pub fn kinds() -> impl Iterator<Item = &'static str> {
    FOLDERS.iter().map(|(_, kind, _)| *kind)
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

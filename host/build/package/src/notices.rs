//! The notices of the code inside the program: the licences of its crates ask that whoever gets a
//! copy of their code gets their text too.
//!
//! Which crates these are, the bill of materials says. Their texts are in their sources, which cargo
//! has fetched to compile them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::command::{GUEST, metadata};
use crate::project::read;

/// The beginnings of the names of files that have such texts.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"];
/// Depth of the search in a crate: code in C has its own beside it.
const DEPTH: usize = 2;

/// A crate by name and version.
type Crate = (String, String);

/// The notices of the crates in a bill of materials, each text once with the crates that it is of.
///
/// # Errors
/// If the bill cannot be read, or cargo does not know a crate that it lists.
pub fn notices(root: &Path, target: &str, sbom: &[u8]) -> Result<Vec<u8>> {
    let sbom: Value = serde_json::from_slice(sbom).context("the bill of materials")?;
    let components = sbom["components"].as_array();
    let components = components.context("the bill of materials lists no components")?;
    let sources = sources(root, target)?;
    let mut texts: BTreeMap<String, BTreeSet<Crate>> = BTreeMap::new();
    let mut without = BTreeMap::new();
    for component in components {
        let name = named(component).context("a component has no name or no version")?;
        let source = sources.get(&name).with_context(|| {
            format!("cargo does not know {} {} of the bill of materials", name.0, name.1)
        })?;
        // The project's own licence stands beside this file.
        if source.is_own {
            continue;
        }
        let mut found = BTreeSet::new();
        gather(&source.folder, DEPTH, &mut found)?;
        if found.is_empty() {
            without.insert(name, source.license.clone());
            continue;
        }
        for text in found {
            texts.entry(text).or_default().insert(name.clone());
        }
    }
    Ok(document(texts, &without).into_bytes())
}

/// The document, with the texts in the order of the crates that they are of.
fn document(texts: BTreeMap<String, BTreeSet<Crate>>, without: &BTreeMap<Crate, String>) -> String {
    let mut document =
        "This program contains code of the crates below, under these licences.\n".to_owned();
    let mut texts: Vec<(BTreeSet<Crate>, String)> =
        texts.into_iter().map(|(text, crates)| (crates, text)).collect();
    texts.sort();
    for (crates, text) in texts {
        let names: Vec<String> =
            crates.iter().map(|(name, version)| format!("{name} {version}")).collect();
        let line = "=".repeat(80);
        let _ = write!(document, "\n{line}\n{}\n{line}\n\n{text}\n", names.join(", "));
    }
    for ((name, version), license) in without {
        let _ = write!(
            document,
            "\n{name} {version}: {license}; its package has no text of a licence\n"
        );
    }
    document
}

struct Source {
    folder: std::path::PathBuf,
    license: String,
    /// True if it is a part of this project.
    is_own: bool,
}

/// The sources of all crates that the workspace may use in a program for a target and in plugins.
fn sources(root: &Path, target: &str) -> Result<BTreeMap<Crate, Source>> {
    let metadata = metadata(root, &[target, GUEST])?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    let source = |package: &Value| {
        let manifest = Path::new(package["manifest_path"].as_str()?);
        let source = Source {
            folder: manifest.parent()?.to_owned(),
            license: package["license"].as_str().unwrap_or("no licence").to_owned(),
            is_own: package["source"].is_null(),
        };
        Some((named(package)?, source))
    };
    let sources = packages.iter().map(source).collect::<Option<_>>();
    sources.context("cargo metadata: a package without a name")
}

fn named(package: &Value) -> Option<Crate> {
    let text = |key: &str| package[key].as_str().map(str::to_owned);
    Some((text("name")?, text("version")?))
}

/// Adds the texts in a folder and below it.
fn gather(folder: &Path, depth: usize, texts: &mut BTreeSet<String>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        let is_notice = NAMES.iter().any(|start| name.starts_with(start));
        if entry.file_type()?.is_dir() {
            if depth > 0 {
                gather(&entry.path(), depth - 1, texts)?;
            }
        } else if is_notice && !name.ends_with(".RS") {
            let text = read(&entry.path())?;
            let text = String::from_utf8_lossy(&text).replace("\r\n", "\n");
            texts.insert(text.trim_end().to_owned());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::notices;
    use std::path::Path;

    const TARGET: &str = "x86_64-unknown-linux-musl";

    fn root() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).unwrap().to_owned()
    }

    /// A bill of materials of these crates, by the versions that `Cargo.lock` has.
    fn bill(names: &[&str]) -> Vec<u8> {
        let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
        let lock: toml::Table = toml::from_str(&lock).unwrap();
        let packages = lock["package"].as_array().unwrap();
        let components: Vec<_> = packages
            .iter()
            .filter(|package| names.contains(&package["name"].as_str().unwrap()))
            .map(|package| serde_json::json!({ "name": package["name"], "version": package["version"] }))
            .collect();
        assert_eq!(components.len(), names.len());
        serde_json::to_vec(&serde_json::json!({ "components": components })).unwrap()
    }

    #[test]
    fn every_crate_has_its_text_and_texts_that_are_the_same_stand_once() {
        let bill = bill(&["anyhow", "serde", "zstd-sys", "package"]);
        let bytes = notices(&root(), TARGET, &bill).unwrap();
        assert_eq!(bytes, notices(&root(), TARGET, &bill).unwrap());
        let text = String::from_utf8(bytes).unwrap();
        // Texts of the same author are the same.
        assert_eq!(text.matches("\nPermission is hereby granted").count(), 1, "{text}");
        let together = text.lines().any(|line| line.contains("anyhow") && line.contains("serde"));
        assert!(together, "{text}");
        // The library in C has its own, below the crate that binds it.
        assert!(text.contains("Copyright (c) Meta Platforms"), "{text}");
        assert!(!text.contains("package 0"), "{text}");
        assert!(!text.contains(env!("CARGO_MANIFEST_DIR")));
    }

    #[test]
    fn a_crate_that_cargo_does_not_know_is_named() {
        let bill = br#"{ "components": [{ "name": "nothing", "version": "1.0.0" }] }"#;
        let error = notices(&root(), TARGET, bill).unwrap_err().to_string();
        assert!(error.contains("nothing 1.0.0"), "{error}");
    }
}

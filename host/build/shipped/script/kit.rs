//! The kit of a plugin's author: the templates, the contract, and the Rust SDK as a package that
//! stands on its own. Where its manifest inherits a dependency from the workspace, the author gets
//! the workspace's version as the start of a range. So it does not clash with the author's other
//! dependencies. The lock file keeps the first build at the exact versions.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::path::Path;

use toml::{Table, Value};

use crate::files;

/// The packages of the SDK: where they lie in the repository, and in the kit.
const PACKAGES: [(&str, &str); 3] = [
    ("plugins/sdk", ""),
    ("plugins/sdk/exposition", "exposition"),
    ("plugins/sdk/testing", "testing"),
];

/// Paths at which one of these packages finds another, in the kit.
const SIBLINGS: [(&str, &str); 2] = [("runner-plugin", ".."), ("exposition", "exposition")];

/// Paths at which the SDK finds the contract, in the repository and in the kit.
const CONTRACT: (&str, &str) = ("\"../../wit", "\"wit");

/// The kit's texts by name: `template/...`, `wit/...`, `sdk/...` and `sdk.lock`.
pub fn texts(root: &Path) -> Result<Vec<(String, String)>, Box<dyn Error>> {
    let mut texts = Vec::new();
    for (name, path) in files(&root.join("plugins/template"), "template", None)? {
        texts.push((name, fs::read_to_string(path)?));
    }
    // Frozen versions are for hosts; an author writes against the current one.
    for (name, path) in files(&root.join("wit"), "", Some("wit"))? {
        if !name.contains('/') {
            texts.push((format!("wit/{name}"), fs::read_to_string(path)?));
        }
    }
    let workspace = root.join("Cargo.toml");
    println!("cargo::rerun-if-changed={}", workspace.display());
    let workspace: Table = fs::read_to_string(workspace)?.parse()?;
    let mut wanted = BTreeSet::new();
    for (package, place) in PACKAGES {
        let source = root.join(package);
        let manifest = source.join("Cargo.toml");
        println!("cargo::rerun-if-changed={}", manifest.display());
        let manifest = expanded(fs::read_to_string(manifest)?.parse()?, &workspace)?;
        wanted.extend(dependencies(&manifest));
        let place = Path::new("sdk").join(place);
        let mut add = |name: &str, text: String| {
            texts.push((place.join(name).display().to_string(), text));
        };
        for (name, path) in files(&source.join("src"), "src", Some("rs"))? {
            let text = fs::read_to_string(path)?.replace(CONTRACT.0, CONTRACT.1);
            add(&name, text);
        }
        add("Cargo.toml", toml::to_string(&manifest)?);
    }
    let lock = root.join("Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    let lock = pruned(&fs::read_to_string(lock)?, wanted)?;
    texts.push(("sdk.lock".to_owned(), lock));
    Ok(texts)
}

/// A manifest with the workspace's values written out, without the parts for tests.
fn expanded(mut manifest: Table, workspace: &Table) -> Result<Table, Box<dyn Error>> {
    let shared = |section: &str, key: &str| -> Result<Value, Box<dyn Error>> {
        let table = workspace.get("workspace").and_then(|all| all.get(section));
        let value = table.and_then(|table| table.get(key)).cloned();
        Ok(value.ok_or_else(|| format!("Cargo.toml has no workspace.{section}.{key}"))?)
    };
    manifest.remove("dev-dependencies");
    manifest.remove("lints");
    for (key, value) in section(&mut manifest, "package") {
        if inherits(value) {
            *value = shared("package", key)?;
        }
    }
    for (key, value) in section(&mut manifest, "dependencies") {
        if !inherits(value) {
            continue;
        }
        if let Some((_, path)) = SIBLINGS.iter().find(|(sibling, _)| sibling == key) {
            let place = Table::from_iter([("path".to_owned(), Value::from(*path))]);
            *value = Value::Table(place);
            continue;
        }
        let mut whole = match shared("dependencies", key)? {
            Value::Table(table) => table,
            version => Table::from_iter([("version".to_owned(), version)]),
        };
        for (setting, own) in value.as_table().into_iter().flatten() {
            match (setting.as_str(), whole.get_mut(setting), own) {
                ("workspace", ..) => {}
                ("features", Some(Value::Array(known)), Value::Array(more)) => {
                    known.extend(more.iter().cloned());
                }
                _ => drop(whole.insert(setting.clone(), own.clone())),
            }
        }
        if let Some(Value::String(version)) = whole.get_mut("version") {
            *version = range(version).to_owned();
        }
        *value = Value::Table(whole);
    }
    Ok(manifest)
}

/// The range of compatible versions that starts at the version of an exact requirement: `1.0.229`
/// for `=1.0.229`. Cargo takes a version without an operator as `^`. Any other requirement stays as
/// it is.
fn range(requirement: &str) -> &str {
    requirement.strip_prefix('=').map_or(requirement, str::trim)
}

fn section<'m>(
    manifest: &'m mut Table,
    name: &str,
) -> impl Iterator<Item = (&'m String, &'m mut Value)> + use<'m> {
    let table = manifest.get_mut(name).and_then(Value::as_table_mut);
    table.into_iter().flat_map(toml::Table::iter_mut)
}

fn inherits(value: &Value) -> bool {
    value.get("workspace").and_then(Value::as_bool) == Some(true)
}

/// The names of the packages from elsewhere that a manifest depends on.
fn dependencies(manifest: &Table) -> Vec<String> {
    let table = manifest.get("dependencies").and_then(Value::as_table);
    let names = table
        .into_iter()
        .flatten()
        .filter(|(_, value)| value.get("path").is_none())
        .map(|(name, _)| name.clone());
    names.collect()
}

/// The lock file's entries for these packages and all that they need, so that an author's build has
/// the versions that this runner's own plugins were built with. Cargo adds the entries of packages
/// that lie in folders.
fn pruned(lock: &str, wanted: BTreeSet<String>) -> Result<String, Box<dyn Error>> {
    let mut lock: Table = lock.parse()?;
    let all = match lock.remove("package") {
        Some(Value::Array(all)) => all,
        _ => return Err("Cargo.lock has no packages".into()),
    };
    let text = |package: &Value, key: &str| -> String {
        package.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let mut by_name: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for package in all {
        by_name.entry(text(&package, "name")).or_default().push(package);
    }
    let mut kept: BTreeMap<(String, String), Value> = BTreeMap::new();
    let mut open: Vec<String> = wanted.into_iter().collect();
    while let Some(entry) = open.pop() {
        // `NAME`, or `NAME VERSION` where there are several.
        let mut words = entry.split(' ');
        let name = words.next().unwrap_or_default();
        let version = words.next();
        for package in by_name.get(name).into_iter().flatten() {
            let own = text(package, "version");
            if version.is_some_and(|version| version != own) {
                continue;
            }
            if kept.insert((name.to_owned(), own), package.clone()).is_none() {
                let needs = package.get("dependencies").and_then(Value::as_array);
                open.extend(
                    needs.into_iter().flatten().filter_map(|need| need.as_str().map(str::to_owned)),
                );
            }
        }
    }
    lock.insert("package".to_owned(), Value::Array(kept.into_values().collect()));
    Ok(toml::to_string(&lock)?)
}

//! The bill of materials: every crate whose code is in the program or in a plugin inside it, as
//! CycloneDX 1.6.
//!
//! It follows cargo's resolution for the target, along normal dependencies: code that only runs
//! during compilation (build scripts, procedural macros) is not in the program, and not listed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::PACKAGE_NAME;
use crate::command::{GUEST, metadata};
use crate::project::read_table;
use crate::sums::hex;

/// Folder of the plugins that ship, below the root.
const PLUGINS: [&str; 3] = ["plugins/backends", "plugins/datasets", "plugins/scorers"];

/// The packages of a workspace and the dependencies of each, for one target.
struct Graph {
    /// Cargo's metadata of each package, by its id.
    packages: BTreeMap<String, Value>,
    /// The ids that a package's code is linked with.
    needs: BTreeMap<String, Vec<String>>,
}

/// The bill of materials of the program for this target, as JSON.
///
/// # Errors
/// If cargo cannot resolve the workspace.
pub fn sbom(root: &Path, target: &str) -> Result<Vec<u8>> {
    let program = Graph::of(root, target)?;
    let guests = Graph::of(root, GUEST)?;
    let checksums = checksums(root)?;
    let main = program.named("runner")?;
    let plugins = guests.plugins(root);
    let mut components = BTreeMap::new();
    let mut dependencies = BTreeMap::new();
    for (graph, roots) in [(&program, vec![main.clone()]), (&guests, plugins.clone())] {
        for id in graph.reached(roots) {
            let package = &graph.packages[&id];
            components.insert(reference(package), component(package, &checksums));
            let needs = graph.references(&graph.needs[&id]);
            dependencies.entry(reference(package)).or_insert_with(BTreeSet::new).extend(needs);
        }
    }
    let itself = reference(&program.packages[&main]);
    let mut subject = components.remove(&itself).context("the program is a part of itself")?;
    subject["type"] = json!("application");
    subject["name"] = json!(PACKAGE_NAME);
    let version = subject["version"].as_str().unwrap_or_default();
    subject["purl"] = json!(format!("pkg:generic/{PACKAGE_NAME}@{version}"));
    // The components of plugins are bytes inside the program.
    (dependencies.entry(itself).or_default()).extend(guests.references(&plugins));
    let dependencies: Vec<Value> = dependencies
        .into_iter()
        .map(|(reference, needs)| json!({ "ref": reference, "dependsOn": needs }))
        .collect();
    let mut document = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": subject,
            "properties": [{ "name": "cdx:rustc:sbom:target:triple", "value": target }],
        },
        "components": components.into_values().collect::<Vec<_>>(),
        "dependencies": dependencies,
    });
    document["serialNumber"] = json!(serial_number(&serde_json::to_vec(&document)?));
    let mut bytes = serde_json::to_vec_pretty(&document)?;
    bytes.push(b'\n');
    Ok(bytes)
}

impl Graph {
    fn of(root: &Path, target: &str) -> Result<Self> {
        let metadata = metadata(root, &[target])?;
        let mut packages = BTreeMap::new();
        for package in list(&metadata["packages"]) {
            packages.insert(text(&package["id"])?, package.clone());
        }
        let mut needs = BTreeMap::new();
        for node in list(&metadata["resolve"]["nodes"]) {
            let mut linked = Vec::new();
            for dependency in list(&node["deps"]) {
                let is_normal = |kind: &Value| kind["kind"].is_null();
                let id = text(&dependency["pkg"])?;
                if list(&dependency["dep_kinds"]).iter().any(is_normal) && !is_macro(&packages[&id])
                {
                    linked.push(id);
                }
            }
            needs.insert(text(&node["id"])?, linked);
        }
        Ok(Graph { packages, needs })
    }

    fn named(&self, name: &str) -> Result<String> {
        let has_name = |(_, package): &(&String, &Value)| package["name"] == name;
        let found = self.packages.iter().find(has_name);
        let (id, _) = found.with_context(|| format!("the workspace has no package `{name}`"))?;
        Ok(id.clone())
    }

    /// The plugins of the workspace that become components.
    fn plugins(&self, root: &Path) -> Vec<String> {
        let is_plugin = |package: &Value| {
            let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
            let is_component = list(&package["targets"])
                .iter()
                .any(|target| list(&target["crate_types"]).contains(&json!("cdylib")));
            is_component && PLUGINS.iter().any(|folder| manifest.starts_with(root.join(folder)))
        };
        let packages = self.packages.iter();
        packages.filter(|(_, package)| is_plugin(package)).map(|(id, _)| id.clone()).collect()
    }

    /// The packages that these are linked with, and they themselves.
    fn reached(&self, mut from: Vec<String>) -> BTreeSet<String> {
        let mut reached = BTreeSet::new();
        while let Some(id) = from.pop() {
            if reached.insert(id.clone()) {
                from.extend(self.needs[&id].iter().cloned());
            }
        }
        reached
    }

    fn references(&self, ids: &[String]) -> BTreeSet<String> {
        (ids.iter()).map(|id| reference(&self.packages[id])).collect()
    }
}

/// A crate as a component.
fn component(package: &Value, checksums: &BTreeMap<(String, String), String>) -> Value {
    let [name, version] = ["name", "version"].map(|key| package[key].as_str().unwrap_or_default());
    let mut component = json!({
        "type": "library",
        "bom-ref": reference(package),
        "name": name,
        "version": version,
        "scope": "required",
    });
    if !package["source"].is_null() {
        component["purl"] = json!(reference(package));
    }
    if let Some(license) = package["license"].as_str() {
        // Old manifests write a slash for "or", which is no SPDX expression.
        let expression = license.replace('/', " OR ").replace("  ", " ");
        component["licenses"] = json!([{ "expression": expression }]);
    }
    if let Some(checksum) = checksums.get(&(name.to_owned(), version.to_owned())) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    if let Some(repository) = package["repository"].as_str() {
        component["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
    }
    component
}

/// The name of a crate in the document: its package URL where a registry has it.
fn reference(package: &Value) -> String {
    let [name, version] = ["name", "version"].map(|key| package[key].as_str().unwrap_or_default());
    if package["source"].is_null() {
        format!("{PACKAGE_NAME}/{name}@{version}")
    } else {
        format!("pkg:cargo/{name}@{version}")
    }
}

fn is_macro(package: &Value) -> bool {
    (list(&package["targets"]).iter())
        .any(|target| list(&target["kind"]).contains(&json!("proc-macro")))
}

/// The SHA-256 of each downloaded crate, by name and version.
fn checksums(root: &Path) -> Result<BTreeMap<(String, String), String>> {
    let lock = read_table(&root.join("Cargo.lock"))?;
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let of = |package: &toml::Value| {
        let text = |key| Some(package.get(key)?.as_str()?.to_owned());
        Some(((text("name")?, text("version")?), text("checksum")?))
    };
    Ok(packages.into_iter().flatten().filter_map(of).collect())
}

/// A UUID (RFC 9562, version 8) that is the same for the same document.
fn serial_number(document: &[u8]) -> String {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&Sha256::digest(document)[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let [a, b, c, d, e] = [0..4, 4..6, 6..8, 8..10, 10..16].map(|range| hex(&bytes[range]));
    format!("urn:uuid:{a}-{b}-{c}-{d}-{e}")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> Result<String> {
    let text = value.as_str().context("`cargo metadata` has another form")?;
    Ok(text.to_owned())
}

//! The bill of materials of this workspace, against cargo's own tree.
#![allow(clippy::disallowed_methods, reason = "a test of a program that has no part in a run")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const TARGET: &str = "x86_64-unknown-linux-musl";

/// Packages that `cargo tree` shows below one along normal dependencies, as `NAME@VERSION`.
fn tree(root: &Path, package: &str, target: &str) -> BTreeSet<String> {
    let output = Command::new("cargo")
        .current_dir(root)
        .args(["tree", "--locked", "--package", package, "--target", target])
        .args(["--edges", "normal,no-proc-macro", "--prefix", "none"])
        .args(["--format", "{p}", "--no-dedupe"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let named = lines.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
        Some(format!("{name}@{version}"))
    });
    named.collect()
}

#[test]
fn it_has_what_cargo_links() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = root.ancestors().nth(3).unwrap();
    let bytes = package::sbom::sbom(root, TARGET).unwrap();
    assert_eq!(bytes, package::sbom::sbom(root, TARGET).unwrap());
    let document: Value = serde_json::from_slice(&bytes).unwrap();
    let listed: BTreeSet<String> = (document["components"].as_array().unwrap().iter())
        .map(|component| {
            let [name, version] = ["name", "version"].map(|key| component[key].as_str().unwrap());
            format!("{name}@{version}")
        })
        .collect();
    let mut linked = tree(root, "runner", TARGET);
    linked.retain(|package| !package.starts_with("runner@"));
    let missing: Vec<_> = linked.difference(&listed).collect();
    assert!(missing.is_empty(), "{missing:?}");
    // A plugin and a dependency that only plugins need.
    let guest = tree(root, "dataset-images", "wasm32-unknown-unknown");
    let missing: Vec<_> = guest.difference(&listed).collect();
    assert!(missing.is_empty(), "{missing:?}");
    // Crates that only compile, or only test, are in no program.
    for absent in ["clap_derive", "proptest", "insta", "xtask", "cc"] {
        let is_listed = listed.iter().any(|it| it.starts_with(&format!("{absent}@")));
        assert!(!is_listed, "{absent}");
    }
    let references: BTreeSet<&str> = (document["components"].as_array().unwrap().iter())
        .map(|component| component["bom-ref"].as_str().unwrap())
        .collect();
    let own = document["metadata"]["component"]["bom-ref"].as_str().unwrap();
    for dependency in document["dependencies"].as_array().unwrap() {
        let from = dependency["ref"].as_str().unwrap();
        assert!(from == own || references.contains(from), "{from}");
        for to in dependency["dependsOn"].as_array().unwrap() {
            assert!(references.contains(to.as_str().unwrap()), "{to}");
        }
    }
}

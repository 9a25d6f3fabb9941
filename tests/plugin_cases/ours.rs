//! The cases of our own plugins, which are also the documentation of the wire formats.

use std::path::{Path, PathBuf};

use super::component;
use crate::support::process::{run, runner};

/// Folders of plugins with cases, as `KIND/NAME`. The examples' tests cover other languages.
fn plugins() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins");
    let folders = |path: PathBuf| -> Vec<PathBuf> {
        std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let mut names: Vec<String> = ["backends", "datasets", "scorers", "examples"]
        .iter()
        .flat_map(|kind| folders(root.join(kind)))
        .filter(|folder| folder.join("cases").is_dir())
        .filter(|folder| !folder.join("runner-plugin.toml").is_file())
        .map(|folder| folder.strip_prefix(&root).unwrap().display().to_string())
        .collect();
    names.sort();
    names
}

#[test]
fn every_case_holds() {
    let plugins = plugins();
    assert!(plugins.len() >= 8, "{plugins:?}");
    for name in plugins {
        let mut command = runner();
        command
            .args(["plugin", "test", "--json"])
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins").join(&name))
            .arg("--plugin")
            .arg(component(&format!("{name}.wasm")));
        let ended = run(&mut command);
        assert_eq!(
            ended.code,
            Some(0),
            "{name}: run `runner plugin test plugins/{name} --plugin target/components/{name}.wasm`\n{}{}",
            ended.stdout,
            ended.stderr
        );
        let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        assert!(report["held"].as_u64() >= Some(2), "{report:#}");
        assert_eq!(report["cases"].as_array().unwrap().len() as u64, report["held"]);
    }
}

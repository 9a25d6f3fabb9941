//! The floors of `host`: a crate uses only crates of its own floor and of lower ones.

use std::process::Command;

use serde_json::Value;

/// The folders below `host`, from the ground up.
const FLOORS: [&str; 6] = ["base", "measure", "analysis", "show", "study", "runner"];

/// The floor of a crate's path; absent for crates that stand beside the floors.
fn floor(path: &Value) -> Option<usize> {
    let (_, below) = path.as_str()?.rsplit_once("/host/")?;
    let folder = below.split('/').next()?;
    FLOORS.iter().position(|floor| *floor == folder)
}

#[test]
fn no_crate_uses_a_floor_above_it() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--format-version", "1", "--offline"]);
    let printed = cargo.output().unwrap().stdout;
    let metadata: Value = serde_json::from_slice(&printed).unwrap();
    let mut seen = 0;
    for package in metadata["packages"].as_array().unwrap() {
        let Some(own) = floor(&package["manifest_path"]) else { continue };
        seen += 1;
        for dependency in package["dependencies"].as_array().unwrap() {
            let other = floor(&dependency["path"]);
            let (name, other_name) = (&package["name"], &dependency["name"]);
            assert!(other.is_none_or(|other| other <= own), "{name} uses {other_name}");
        }
    }
    assert!(seen > 25, "{seen} crates on the floors");
}

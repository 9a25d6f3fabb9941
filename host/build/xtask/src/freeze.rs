//! The components of a version of the contract, kept as they were built once. Components that a
//! later compiler or SDK rebuilds do not prove that existing plugins keep working.
//!
//! A version is frozen when it is released, before `wit/` changes to the next one. This copies its
//! definition to `wit/frozen`, and keeps a plugin of each kind that ships, as it is then.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::component::{self, GuestSet};

const KEPT: [(&str, &str); 3] = [
    ("backend", "backends/openai"),
    ("dataset", "datasets/random"),
    ("scorer", "scorers/output-length"),
];

/// Keeps the shipped plugins in `tests/versions`, and the contract in `wit/frozen`.
pub fn keep(root: &Path) -> Result<()> {
    let version = version(root)?;
    let folder = root.join("tests/versions").join(&version);
    if let Some((kind, _)) =
        KEPT.iter().find(|(kind, _)| folder.join(format!("{kind}.wasm")).exists())
    {
        bail!(
            "tests/versions/{version}/{kind}.wasm exists already; a frozen component is never rebuilt"
        );
    }
    component::build(root, GuestSet::Shipping)?;
    let definition = root.join("wit/frozen").join(&version);
    fs::create_dir_all(&definition)?;
    for file in fs::read_dir(root.join("wit"))? {
        let path = file?.path();
        if let (true, Some(name)) = (path.is_file(), path.file_name()) {
            fs::copy(&path, definition.join(name))?;
        }
    }
    fs::create_dir_all(&folder)?;
    for (kind, name) in KEPT {
        let built = root.join(format!("target/components/{name}.wasm"));
        let kept = folder.join(format!("{kind}.wasm"));
        fs::copy(&built, &kept).with_context(|| format!("keeping {}", built.display()))?;
        println!("{}", kept.strip_prefix(root).unwrap_or(&kept).display());
    }
    Ok(())
}

fn version(root: &Path) -> Result<String> {
    let text = fs::read_to_string(root.join("wit/worlds.wit")).context("reading wit/worlds.wit")?;
    let version = text
        .lines()
        .find_map(|line| line.strip_prefix("package runner:plugin@")?.strip_suffix(';'));
    Ok(version
        .context("wit/worlds.wit does not begin with `package runner:plugin@VERSION;`")?
        .to_owned())
}

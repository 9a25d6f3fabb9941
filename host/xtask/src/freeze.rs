//! The components of a frozen version of the contract, kept as they were built once: if a later compiler or SDK
//! rebuilt them from the same sources, they would not prove that existing plugins keep working.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::component::{self, Which};

/// The version of the contract that `tests/guests/frozen-*` are built for.
const VERSION: &str = "0.1.0";

/// Builds the guests of the frozen version and copies those that are missing to `tests/versions`.
pub fn keep(root: &Path) -> Result<()> {
    component::build(root, Which::All)?;
    let folder = root.join("tests/versions").join(VERSION);
    fs::create_dir_all(&folder)?;
    for kind in ["backend", "dataset", "scorer"] {
        let kept = folder.join(format!("{kind}.wasm"));
        if kept.exists() {
            bail!(
                "{} exists already; a frozen component is never rebuilt",
                kept.display()
            );
        }
        let built = root.join(format!("target/components/guests/frozen-{kind}.wasm"));
        fs::copy(&built, &kept).with_context(|| format!("keeping {}", built.display()))?;
        println!("{}", kept.strip_prefix(root).unwrap_or(&kept).display());
    }
    Ok(())
}

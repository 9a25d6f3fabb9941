//! The components of a frozen version of the contract, kept as they were built once: what a later compiler or
//! kit would make of the same sources is no proof that yesterday's plugins go on running.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::component::{self, Which};

/// The version of the contract that `tests/guests/frozen-*` are built for.
const VERSION: &str = "0.1.0";

/// Builds the guests of the frozen version and keeps those that are not kept yet in `tests/versions`.
pub fn keep(root: &Path) -> Result<()> {
    component::build(root, Which::All)?;
    let folder = root.join("tests/versions").join(VERSION);
    fs::create_dir_all(&folder)?;
    for kind in ["backend", "dataset", "scorer"] {
        let kept = folder.join(format!("{kind}.wasm"));
        if kept.exists() {
            bail!(
                "{} is kept already; what was built once is not built again",
                kept.display()
            );
        }
        let built = root.join(format!("target/components/guests/frozen-{kind}.wasm"));
        fs::copy(&built, &kept).with_context(|| format!("keeping {}", built.display()))?;
        println!("{}", kept.strip_prefix(root).unwrap_or(&kept).display());
    }
    Ok(())
}

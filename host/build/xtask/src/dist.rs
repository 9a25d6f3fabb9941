//! The runner for distribution: one file, with the plugins embedded. `install.sh` knows the places
//! of an installed one.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::component::{self, GuestSet};
use crate::steps::{build_release_binary, run};

/// Builds it to `target/dist/runner` and prints its size and digest. Returns its path.
pub fn build(root: &Path) -> Result<PathBuf> {
    component::build(root, GuestSet::Shipping)?;
    let from = build_release_binary(root, "runner")?;
    let folder = root.join("target/dist");
    fs::create_dir_all(&folder)?;
    let to = folder.join(format!("runner{}", std::env::consts::EXE_SUFFIX));
    fs::copy(&from, &to).with_context(|| format!("copying {}", from.display()))?;
    let bytes = fs::read(&to)?;
    println!(
        "{}  {:.1} MiB  sha256:{}",
        to.strip_prefix(root).unwrap_or(&to).display(),
        bytes.len() as f64 / f64::from(1 << 20),
        sha256(&bytes)
    );
    Ok(to)
}

/// Builds the program for distribution and installs it below a prefix.
pub fn install(root: &Path, arguments: &[OsString]) -> Result<()> {
    let mut script = Command::new("sh");
    script.arg(root.join("install.sh"));
    match arguments {
        [] => {}
        [flag, prefix] if flag == "--prefix" => {
            script.env("PREFIX", prefix);
        }
        _ => bail!("`install`: expected nothing or `--prefix DIR`, found {arguments:?}"),
    }
    let program = build(root)?;
    run(script.env("INSTALL_PROGRAM", program))
}

pub fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

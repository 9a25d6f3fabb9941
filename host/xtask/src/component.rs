//! From guest crates to components, all in one run of cargo, and the check that shipped plugins import
//! only the plugin interfaces.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use componentize::{Build, Target, encode, imports};

use crate::guest::{self, Guest};
use crate::toolchain;

/// Builds every guest to `target/components`, and removes components whose guest is gone.
pub fn build_all(root: &Path) -> Result<()> {
    let guests = guest::find(root)?;
    let modules = compile(root, &guests)?;
    let components = root.join("target/components");
    for guest in &guests {
        let module = fs::read(modules.join(&guest.module))
            .with_context(|| format!("reading the module of {}", guest.package))?;
        let component = encode(&module)
            .with_context(|| format!("{} cannot be turned into a component", guest.package))?;
        let imports = imports(&component)
            .with_context(|| format!("reading back the component of {}", guest.package))?;
        if guest.ships {
            check_imports(guest, &imports)?;
        }
        let changed = write_if_changed(&components.join(&guest.component), &component)?;
        println!(
            "{:<28} {:>5} KiB  {}{}",
            guest.component.display(),
            component.len().div_ceil(1024),
            if imports.is_empty() {
                "imports nothing".to_owned()
            } else {
                short(&imports)
            },
            if changed { "" } else { "  (unchanged)" },
        );
    }
    remove_orphans(&components, &guests)
}

/// Compiles the guests; returns the folder with their modules.
fn compile(root: &Path, guests: &[Guest]) -> Result<PathBuf> {
    let target_dir = root.join("target/guests");
    let build = Build {
        root,
        target: Target::Unknown,
        profile: "guest",
        target_dir: &target_dir,
        names: &[(root, "runner")],
    };
    if guests.is_empty() {
        return Ok(build.modules());
    }
    let mut cargo = toolchain::choose(root)?.cargo_build(&build);
    for guest in guests {
        cargo.args(["--package", &guest.package]);
    }
    let status = cargo
        .arg("--lib")
        .status()
        .context("cargo does not start")?;
    if !status.success() {
        bail!("the plugins do not compile; see cargo's output above");
    }
    Ok(build.modules())
}

/// A shipped plugin may import only plugin interfaces, so that it needs no WASI to run.
fn check_imports(guest: &Guest, imports: &BTreeSet<String>) -> Result<()> {
    match imports
        .iter()
        .find(|name| !name.starts_with("runner:plugin/"))
    {
        None => Ok(()),
        Some(name) => bail!(
            "{} imports `{name}`; a shipped plugin may import only runner:plugin interfaces: \
             look for a dependency that needs a clock, files or random numbers",
            guest.package
        ),
    }
}

fn short(imports: &BTreeSet<String>) -> String {
    let names = imports.iter().map(|name| {
        let name = name.strip_prefix("runner:plugin/").unwrap_or(name);
        name.split('@').next().unwrap_or(name)
    });
    format!("imports {}", names.collect::<Vec<_>>().join(", "))
}

/// Leaves an identical file alone, so that what embeds it is not rebuilt. Returns whether it wrote.
fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<bool> {
    if fs::read(path).is_ok_and(|known| known == bytes) {
        return Ok(false);
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, bytes).with_context(|| format!("writing {}", path.display()))?;
    Ok(true)
}

fn remove_orphans(components: &Path, guests: &[Guest]) -> Result<()> {
    for kind in guest::kinds() {
        let Ok(entries) = fs::read_dir(components.join(kind)) else {
            continue;
        };
        for entry in entries {
            let path = entry?.path();
            let known = guests.iter().any(|guest| path.ends_with(&guest.component));
            if !known
                && path
                    .extension()
                    .is_some_and(|extension| extension == "wasm")
            {
                fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
            }
        }
    }
    Ok(())
}

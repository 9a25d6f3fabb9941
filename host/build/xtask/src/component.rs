//! From guest crates to components, all in one run of cargo, and the check that shipped plugins
//! import only the plugin interfaces.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ::toolchain::{Build, Target};
use anyhow::{Context, Result, bail};

use crate::guest::{self, Guest};
use crate::{steps, toolchain};

/// The guests that a command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestSet {
    /// The plugins of the demo's scenario; quick to compile, as for the tests.
    Demo,
    /// As they ship: small.
    Shipping,
    /// For development and the tests: quick to compile rather than small.
    All,
}

impl GuestSet {
    fn profile(self) -> &'static str {
        match self {
            GuestSet::Shipping => "guest",
            GuestSet::Demo | GuestSet::All => "guest-test",
        }
    }

    /// The guests of the set.
    fn guests<'a>(self, root: &Path, all: &'a [Guest]) -> Result<Vec<&'a Guest>> {
        let scenario = match self {
            GuestSet::Demo => {
                fs::read_to_string(root.join(DEMO)).with_context(|| format!("reading {DEMO}"))?
            }
            GuestSet::Shipping | GuestSet::All => String::new(),
        };
        let needed = |guest: &&Guest| match self {
            // The scenario names a component in quotes.
            GuestSet::Demo => scenario.contains(&format!("\"{}\"", guest.component.display())),
            GuestSet::Shipping => guest.ships,
            GuestSet::All => true,
        };
        Ok(all.iter().filter(needed).collect())
    }
}

/// The scenario of `runner demo`.
const DEMO: &str = "scenarios/quickstart.toml";

/// Builds guests to `target/components`, and removes components whose guest is gone.
pub fn build(root: &Path, set: GuestSet) -> Result<()> {
    let all = guest::find(root)?;
    let guests = set.guests(root, &all)?;
    let modules = compile(root, &guests, set.profile())?;
    let encoder = Encoder::build(root, set)?;
    let components = root.join("target/components");
    for guest in &guests {
        let (component, imports) = encoder.encode(&modules.join(&guest.module))?;
        if guest.ships {
            check_imports(guest, &imports)?;
        }
        let changed = write_if_changed(&components.join(&guest.component), &component)?;
        println!(
            "{:<28} {:>5} KiB  {}{}",
            guest.component.display(),
            component.len().div_ceil(1024),
            if imports.is_empty() { "imports nothing".to_owned() } else { short(&imports) },
            if changed { "" } else { "  (unchanged)" },
        );
    }
    remove_orphans(&components, &all)
}

/// The program `componentize`. It is a process of its own because its dependencies are the
/// runner's, and take minutes to compile: built with the whole workspace's features, they are
/// compiled once.
struct Encoder {
    program: PathBuf,
    component: PathBuf,
}

impl Encoder {
    /// Builds it in the profile of the runner that follows, which then has its dependencies.
    fn build(root: &Path, set: GuestSet) -> Result<Self> {
        let program = match set {
            GuestSet::Shipping => steps::build_release_binary(root, "componentize")?,
            GuestSet::Demo | GuestSet::All => {
                steps::build_binary(root, "componentize")?;
                steps::binary(root, "componentize")
            }
        };
        Ok(Encoder { program, component: root.join("target/guests/component.wasm") })
    }

    /// A module's component, and the names of its imports.
    fn encode(&self, module: &Path) -> Result<(Vec<u8>, BTreeSet<String>)> {
        let mut program = Command::new(&self.program);
        let imports = steps::printed(program.args([module, &self.component]))?;
        let component = fs::read(&self.component)?;
        Ok((component, imports.lines().map(str::to_owned).collect()))
    }
}

/// Compiles the guests; returns the folder with their modules.
fn compile(root: &Path, guests: &[&Guest], profile: &str) -> Result<PathBuf> {
    let target_dir = root.join("target/guests");
    let build = Build {
        root,
        target: Target::Unknown,
        profile,
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
    steps::run(cargo.arg("--lib")).context("the plugins do not compile")?;
    Ok(build.modules())
}

/// A shipped plugin may import only plugin interfaces, so that it needs no WASI to run.
fn check_imports(guest: &Guest, imports: &BTreeSet<String>) -> Result<()> {
    match imports.iter().find(|name| !name.starts_with("runner:plugin/")) {
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

/// Returns true if it wrote. An identical file stays, so crates that embed it are not rebuilt.
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
        let Ok(entries) = fs::read_dir(components.join(kind)) else { continue };
        for entry in entries {
            let path = entry?.path();
            let known = guests.iter().any(|guest| path.ends_with(&guest.component));
            if !known && path.extension().is_some_and(|extension| extension == "wasm") {
                fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
            }
        }
    }
    Ok(())
}

//! The program as packages carry it: static, small, and without the paths of the machine that
//! compiled it.
//!
//! A static program runs on every Linux of its processor. It is linked with musl, which rustup
//! brings with the target's standard library; zig compiles the few parts in C.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command::said;
use crate::target::{Machine, Target};

/// The profile of the workspace's manifest.
const PROFILE: &str = "packaged";
/// Separates flags in `CARGO_ENCODED_RUSTFLAGS`.
const UNIT_SEPARATOR: &str = "\x1f";

/// Compiles the program, with the plugins inside, for the target of this name or else for this
/// machine's processor.
///
/// # Errors
/// If a tool is missing, with what brings it, or if it does not compile.
pub fn build(root: &Path, named: Option<&str>) -> Result<PathBuf> {
    let (machine, target) = target(named)?;
    let target = target.as_str();
    let sysroot = String::from_utf8(said(Command::new("rustc").args(["--print", "sysroot"]))?)?;
    let sysroot = Path::new(sysroot.trim());
    let library = sysroot.join("lib/rustlib").join(target);
    if !library.is_dir() {
        bail!(
            "the Rust in use has no standard library for {target}: `rustup target add {target}` \
             brings it"
        );
    }
    let folder = root.join("target");
    let tools = zig_tools(&folder.join("package-tools"), machine)?;
    let mut plugins = Command::new("cargo");
    plugins
        .current_dir(root)
        .args(["xtask", "plugins", "--shipping"]);
    if !plugins.status().context("cargo does not start")?.success() {
        bail!("the plugins do not compile");
    }
    let variable = target.replace('-', "_");
    let status = Command::new("cargo")
        .current_dir(root)
        .args(["build", "--locked", "--workspace", "--bin", "runner"])
        .args(["--profile", PROFILE, "--target", target])
        .arg("--target-dir")
        .arg(&folder)
        .env(
            format!("CARGO_TARGET_{}_LINKER", variable.to_uppercase()),
            "rust-lld",
        )
        .env(format!("CC_{variable}"), &tools.compiler)
        .env(format!("AR_{variable}"), &tools.archiver)
        .env(
            "CARGO_ENCODED_RUSTFLAGS",
            flags(root, sysroot)?.join(UNIT_SEPARATOR),
        )
        .status()
        .context("cargo does not start")?;
    if !status.success() {
        bail!("the program does not compile for {target}");
    }
    Ok(folder.join(target).join(PROFILE).join("runner"))
}

/// The processor and the name of the target.
fn target(named: Option<&str>) -> Result<(Machine, String)> {
    let of = |machine| Target {
        machine,
        is_static: true,
    };
    let known = Machine::ALL.map(|machine| (machine, of(machine).to_string()));
    let names = known.each_ref().map(|(_, name)| name.clone());
    let found = known.into_iter().find(|(machine, name)| match named {
        Some(named) => name == named,
        None => machine.name() == env::consts::ARCH,
    });
    found.with_context(|| {
        format!(
            "packages are made for {}, not for `{}`",
            names.join(" and "),
            named.unwrap_or(env::consts::ARCH)
        )
    })
}

/// Flags of the compiler: how it links, and names for the folders of this machine.
fn flags(root: &Path, sysroot: &Path) -> Result<Vec<String>> {
    let mut flags: Vec<String> = [
        "-Clinker-flavor=ld.lld",
        "-Clink-self-contained=yes",
        // Without relocations, the file is a megabyte smaller.
        "-Crelocation-model=static",
        "-Ctarget-feature=+crt-static",
    ]
    .map(str::to_owned)
    .to_vec();
    let mut rename = |from: &Path, to: &str| {
        flags.push(format!("--remap-path-prefix={}={to}", from.display()));
    };
    let home = match env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => Path::new(&env::var_os("HOME").context("HOME is not set")?).join(".cargo"),
    };
    let sources = home.join("registry/src");
    let registries = fs::read_dir(&sources).with_context(|| sources.display().to_string())?;
    let mut registries: Vec<PathBuf> = (registries)
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    registries.sort();
    for registry in registries {
        rename(&registry, "/deps");
    }
    rename(root, "/runner");
    let toolchains = sysroot.parent().and_then(Path::parent);
    rename(toolchains.unwrap_or(sysroot), "/rustup");
    Ok(flags)
}

/// The tools for the parts in C.
struct Tools {
    compiler: PathBuf,
    archiver: PathBuf,
}

/// Writes scripts that call zig, which has a C library's headers for every target. The build
/// scripts of crates say the target in Rust's words, which zig does not understand.
fn zig_tools(folder: &Path, machine: Machine) -> Result<Tools> {
    let zig = zig()?;
    let architecture = machine.name();
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let compiler = script(
        &folder.join(format!("cc-{architecture}")),
        &format!(
            "arguments=()\n\
             for argument in \"$@\"; do\n    \
                 case $argument in --target=*) ;; *) arguments+=(\"$argument\") ;; esac\n\
             done\n\
             exec {zig} cc -target {architecture}-linux-musl \"${{arguments[@]}}\"\n"
        ),
    )?;
    let archiver = script(&folder.join("ar"), &format!("exec {zig} ar \"$@\"\n"))?;
    Ok(Tools { compiler, archiver })
}

/// The command that starts zig: its own, or that of its Python package.
fn zig() -> Result<&'static str> {
    if said(Command::new("zig").arg("version")).is_ok() {
        return Ok("zig");
    }
    if said(Command::new("python3").args(["-m", "ziglang", "version"])).is_ok() {
        return Ok("python3 -m ziglang");
    }
    bail!("zig is missing, which compiles the parts in C: `pip install ziglang` brings it")
}

fn script(path: &Path, content: &str) -> Result<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let failed = || path.display().to_string();
    fs::write(path, format!("#!/usr/bin/env bash\n{content}")).with_context(failed)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).with_context(failed)?;
    Ok(path.to_owned())
}

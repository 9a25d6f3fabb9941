//! The program as packages carry it: small, and without the paths of the machine that compiled it.
//!
//! A static program runs on every Linux of its processor. It is linked with musl, which rustup
//! brings with the target's standard library; zig compiles the few parts in C. The other kind can
//! load libraries, such as NVML. It needs glibc, and zig links it with one so old that every Linux
//! in use has it or a newer one.

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
/// The oldest glibc that Rust's standard library runs on.
const GLIBC: &str = "2.17";

/// Compiles the program, with the plugins inside, for the target of this name or else a static one
/// for this machine's processor.
///
/// # Errors
/// If a tool is missing (the error says how to install it), or if it does not compile.
pub fn build(root: &Path, named: Option<&str>) -> Result<PathBuf> {
    let target = target(named)?;
    let name = target.to_string();
    let sysroot = String::from_utf8(said(Command::new("rustc").args(["--print", "sysroot"]))?)?;
    let sysroot = Path::new(sysroot.trim());
    let library = sysroot.join("lib/rustlib").join(&name);
    if !library.is_dir() {
        bail!(
            "the Rust in use has no standard library for {name}: `rustup target add {name}` \
             brings it"
        );
    }
    let folder = root.join("target");
    let tools = zig_tools(&folder.join("package-tools"), target)?;
    let mut plugins = Command::new("cargo");
    plugins.current_dir(root).args(["xtask", "plugins", "--shipping"]);
    if !plugins.status().context("cargo does not start")?.success() {
        bail!("the plugins do not compile");
    }
    let variable = name.replace('-', "_");
    let mut flags = linking(target, &tools);
    flags.extend(renaming(root, sysroot)?);
    let status = Command::new("cargo")
        .current_dir(root)
        .args(["build", "--locked", "--workspace", "--bin", "runner"])
        .args(["--profile", PROFILE, "--target", &name])
        .arg("--target-dir")
        .arg(&folder)
        .env(format!("CC_{variable}"), &tools.compiler)
        .env(format!("AR_{variable}"), &tools.archiver)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join(UNIT_SEPARATOR))
        .status()
        .context("cargo does not start")?;
    if !status.success() {
        bail!("the program does not compile for {name}");
    }
    Ok(folder.join(name).join(PROFILE).join("runner"))
}

/// The target of this name, or else a static one for this machine's processor.
fn target(named: Option<&str>) -> Result<Target> {
    let known = [true, false].into_iter().flat_map(|is_static| {
        let of = move |machine| Target { machine, is_static };
        Machine::ALL.map(of)
    });
    let mut all = known.clone();
    let found = all.find(|target| match named {
        Some(named) => target.to_string() == named,
        None => target.is_static && target.machine.name() == env::consts::ARCH,
    });
    found.with_context(|| {
        let names: Vec<String> = known.map(|target| target.to_string()).collect();
        format!(
            "packages are made for {}, not for `{}`",
            names.join(", "),
            named.unwrap_or(env::consts::ARCH)
        )
    })
}

/// Linker flags for the compiler. They stand here and not in the linker's variable, which also
/// holds for build scripts where their target is the same.
fn linking(target: Target, tools: &Tools) -> Vec<String> {
    let linker = tools.linker.display();
    let flags: &[&str] = if target.is_static {
        &[
            "-Clinker=rust-lld",
            "-Clinker-flavor=ld.lld",
            "-Clink-self-contained=yes",
            "-Ctarget-feature=+crt-static",
        ]
    } else {
        &[&format!("-Clinker={linker}"), "-Clinker-flavor=gcc"]
    };
    let mut flags: Vec<String> = flags.iter().copied().map(str::to_owned).collect();
    // Without relocations, the file is a megabyte smaller.
    flags.push("-Crelocation-model=static".to_owned());
    flags
}

/// Flags of the compiler that give the folders of this machine other names.
fn renaming(root: &Path, sysroot: &Path) -> Result<Vec<String>> {
    let mut flags = Vec::new();
    let mut rename = |from: &Path, to: &str| {
        flags.push(format!("--remap-path-prefix={}={to}", from.display()));
    };
    let home = match env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => Path::new(&env::var_os("HOME").context("HOME is not set")?).join(".cargo"),
    };
    let sources = home.join("registry/src");
    let registries = fs::read_dir(&sources).with_context(|| sources.display().to_string())?;
    let mut registries: Vec<PathBuf> =
        (registries).map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<_>>()?;
    registries.sort();
    for registry in registries {
        rename(&registry, "/deps");
    }
    rename(root, "/runner");
    let toolchains = sysroot.parent().and_then(Path::parent);
    rename(toolchains.unwrap_or(sysroot), "/rustup");
    Ok(flags)
}

/// The tools for the parts in C, and the linker of a program that needs glibc.
struct Tools {
    compiler: PathBuf,
    archiver: PathBuf,
    linker: PathBuf,
}

/// Writes scripts that call zig, which has a C library's headers for every target, and glibc's
/// functions of every version to link with. Rust and the build scripts of crates pass some
/// arguments that zig does not understand, or reads in another meaning.
fn zig_tools(folder: &Path, target: Target) -> Result<Tools> {
    let zig = zig()?;
    let architecture = target.machine.name();
    let library = if target.is_static { "musl".to_owned() } else { format!("gnu.{GLIBC}") };
    let named = |tool: &str| folder.join(format!("{tool}-{architecture}-{library}"));
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    // Checks for undefined behaviour, which zig adds to code that is not optimized, want zig as the
    // linker too.
    let cc = format!("{zig} cc -target {architecture}-linux-{library} -fno-sanitize=undefined");
    let compiler = script(
        &named("cc"),
        &format!(
            "arguments=()\n\
             for argument in \"$@\"; do\n    \
                 case $argument in --target=*) ;; *) arguments+=(\"$argument\") ;; esac\n\
             done\n\
             exec {cc} \"${{arguments[@]}}\"\n"
        ),
    )?;
    // zig has its own linker, and the unwinder as a part of the program.
    let linker = script(
        &named("link"),
        &format!(
            "arguments=()\n\
             for argument in \"$@\"; do\n    \
                 case $argument in\n        \
                     -lgcc_s) arguments+=(-lunwind) ;;\n        \
                     -fuse-ld=* | -B* | -m64 | -Wl,--no-undefined-version) ;;\n        \
                     *) arguments+=(\"$argument\") ;;\n    \
                 esac\n\
             done\n\
             exec {cc} \"${{arguments[@]}}\"\n"
        ),
    )?;
    let archiver = script(&folder.join("ar"), &format!("exec {zig} ar \"$@\"\n"))?;
    Ok(Tools { compiler, archiver, linker })
}

/// The command that starts zig: zig's own command, or the command of its Python package.
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

#[cfg(test)]
mod tests {
    use super::target;

    #[test]
    fn a_target_is_static_unless_its_name_says_otherwise() {
        let of = |named| target(named).map(|target| target.to_string());
        let machine = std::env::consts::ARCH;
        assert_eq!(of(None).unwrap(), format!("{machine}-unknown-linux-musl"));
        for named in ["aarch64-unknown-linux-musl", "x86_64-unknown-linux-gnu"] {
            assert_eq!(of(Some(named)).unwrap(), named);
        }
        let error = of(Some("riscv64gc-unknown-linux-gnu")).unwrap_err();
        let expected = "packages are made for x86_64-unknown-linux-musl, \
                        aarch64-unknown-linux-musl, x86_64-unknown-linux-gnu, \
                        aarch64-unknown-linux-gnu, not for `riscv64gc-unknown-linux-gnu`";
        assert_eq!(error.to_string(), expected);
    }
}

//! The Rust of this machine that compiles plugins to WebAssembly, and the command for it.
//!
//! There are two: the active toolchain with the target installed, and the distribution's, which
//! compiles the standard library from its sources. This crate owns finding and describing them. It
//! leaves turning their output into components to `componentize`. The caller prints the choice.
#![forbid(unsafe_code)]

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

const VARIABLE: &str = "RUNNER_WASM_TOOLCHAIN";

/// The compilation target of guests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// `wasm32-unknown-unknown`: a module without a system interface.
    #[default]
    Unknown,
    /// `wasm32-wasip2`: a component that imports WASI.
    Wasip2,
}

impl Target {
    pub fn name(self) -> &'static str {
        match self {
            Target::Unknown => "wasm32-unknown-unknown",
            Target::Wasip2 => "wasm32-wasip2",
        }
    }
}

/// A Rust that can compile for WebAssembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toolchain {
    /// The active one, with the target installed.
    Active,
    /// The distribution's, which compiles the standard library from its sources.
    Distribution,
}

/// A toolchain, and the reason for its choice.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    pub toolchain: Toolchain,
    /// The reason, as text for parentheses.
    pub why: &'static str,
}

/// The reason why no Rust can compile.
#[derive(Debug, thiserror::Error)]
pub enum ToolchainError {
    #[error("{VARIABLE}={0}: expected `rustup` or `distribution`")]
    Variable(String),
    #[error(
        "Rust is not installed: install it with rustup, then run `rustup target add {target}`{packages}"
    )]
    NoRust { target: &'static str, packages: &'static str },
    #[error("no installed Rust compiles for {target}: run `rustup target add {target}`{packages}")]
    NoTarget { target: &'static str, packages: &'static str },
    #[error(
        "the distribution's {part} is not installed (no {path}); Debian and Ubuntu have it in the packages \
         rustc-web cargo-web rust-web-src rust-web-llvm lld"
    )]
    Distribution { part: &'static str, path: &'static str },
    #[error(
        "the distribution's Rust compiles only for wasm32-unknown-unknown, not for {0}; run `rustup target add {0}`"
    )]
    DistributionTarget(&'static str),
}

/// The alternative way to install a compiler, for the targets that it supports.
const PACKAGES: &str = ", or install the distribution's packages (Debian and Ubuntu: rustc-web cargo-web \
    rust-web-src rust-web-llvm lld)";

/// A compilation of guests, for any toolchain.
#[derive(Clone, Copy, Debug)]
pub struct Build<'a> {
    /// The workspace's or the package's folder.
    pub root: &'a Path,
    pub target: Target,
    pub profile: &'a str,
    pub target_dir: &'a Path,
    /// Replacements for absolute paths in panic messages, so that components do not reveal where
    /// the sources are, and the same sources give the same component.
    pub names: &'a [(&'a Path, &'a str)],
}

impl Build<'_> {
    pub fn modules(&self) -> PathBuf {
        let folder = match self.profile {
            "dev" => "debug",
            other => other,
        };
        self.target_dir.join(self.target.name()).join(folder)
    }
}

impl Toolchain {
    /// The toolchain that the environment requests, if any.
    pub fn requested() -> Result<Option<Self>, ToolchainError> {
        match env::var(VARIABLE).ok().as_deref() {
            None | Some("") => Ok(None),
            Some("rustup") => Ok(Some(Toolchain::Active)),
            Some("distribution") => Ok(Some(Toolchain::Distribution)),
            Some(other) => Err(ToolchainError::Variable(other.to_owned())),
        }
    }

    /// Finds a toolchain for the project in `root`. The error names the part to install.
    pub fn find(
        root: &Path,
        target: Target,
        requested: Option<Self>,
    ) -> Result<Choice, ToolchainError> {
        let chosen = |toolchain, why| Ok(Choice { toolchain, why });
        match requested {
            Some(Toolchain::Distribution) if target != Target::Unknown => {
                Err(ToolchainError::DistributionTarget(target.name()))
            }
            Some(Toolchain::Distribution) => {
                distribution()?;
                chosen(Toolchain::Distribution, "requested")
            }
            Some(Toolchain::Active) if has_target(root, target) => {
                chosen(Toolchain::Active, "requested")
            }
            None if has_target(root, target) => chosen(Toolchain::Active, "it has the target"),
            None if target == Target::Unknown && distribution().is_ok() => {
                chosen(Toolchain::Distribution, "the active toolchain lacks the target")
            }
            Some(Toolchain::Active) | None => {
                let packages = match target {
                    Target::Unknown => PACKAGES,
                    Target::Wasip2 => "",
                };
                let target = target.name();
                Err(if sysroot(root).is_none() {
                    ToolchainError::NoRust { target, packages }
                } else {
                    ToolchainError::NoTarget { target, packages }
                })
            }
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Toolchain::Active => "the active Rust toolchain",
            Toolchain::Distribution => "the distribution's Rust and its sources",
        }
    }

    /// A `cargo build` without the settings of the surrounding build, which are for the host.
    pub fn cargo_build(self, build: &Build<'_>) -> Command {
        let mut command = match self {
            Toolchain::Active => Command::new("cargo"),
            Toolchain::Distribution => Command::new("/usr/bin/cargo"),
        };
        for (name, _) in env::vars_os() {
            if name.to_str().is_some_and(is_build_setting) {
                command.env_remove(name);
            }
        }
        command.current_dir(build.root);
        command.args(["build", "--profile", build.profile]);
        command.args(["--target", build.target.name()]);
        command.arg("--target-dir").arg(build.target_dir);
        let mut flags = vec!["-C".to_owned(), "target-feature=+simd128".to_owned()];
        let home = cargo_home();
        let names = build.names.iter().copied();
        for (path, name) in names.chain(home.iter().map(|home| (home.as_path(), "cargo"))) {
            flags.push(format!("--remap-path-prefix={}={name}", path.display()));
        }
        command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
        if let Toolchain::Distribution = self {
            let mut path = OsString::from("/usr/bin:/bin:");
            path.push(env::var_os("PATH").unwrap_or_default());
            command
                .env("PATH", path)
                .env("RUSTC", "/usr/bin/rustc")
                .env("RUSTC_BOOTSTRAP", "1")
                .env_remove("RUSTUP_TOOLCHAIN")
                .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", LINKER)
                .args(["-Z", "build-std=std,panic_abort"]);
        }
        command
    }
}

/// True if an environment variable would change how cargo or rustc builds.
fn is_build_setting(name: &str) -> bool {
    #[rustfmt::skip]
    let kept = [
        "CARGO_HOME", "CARGO_HTTP_", "CARGO_NET_", "CARGO_REGISTR", "CARGO_TERM_", "CARGO_SOURCE_",
        "RUSTUP_", "RUST_BACKTRACE",
    ];
    (name.starts_with("CARGO") || name.starts_with("RUST"))
        && !kept.iter().any(|kept| name.starts_with(kept))
}

fn cargo_home() -> Option<PathBuf> {
    env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")))
}

/// True if the toolchain that is active in a folder can compile for the target as it is.
pub fn has_target(root: &Path, target: Target) -> bool {
    sysroot(root).is_some_and(|sysroot| sysroot.join("lib/rustlib").join(target.name()).is_dir())
}

fn sysroot(root: &Path) -> Option<PathBuf> {
    let mut rustc = Command::new("rustc");
    let output = rustc.current_dir(root).args(["--print", "sysroot"]).output().ok()?;
    let sysroot = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    Some(PathBuf::from(sysroot.trim()))
}

const LINKER: &str = "/usr/bin/wasm-ld";

/// Checks that everything that the distribution's Rust needs for the target is installed.
fn distribution() -> Result<(), ToolchainError> {
    let needed = [
        ("/usr/bin/cargo", "cargo"),
        ("/usr/bin/rustc", "rustc"),
        ("/usr/lib/rustlib/src/rust/library", "copy of the standard library's sources"),
        (LINKER, "wasm-ld"),
    ];
    for (path, part) in needed {
        if !Path::new(path).exists() {
            return Err(ToolchainError::Distribution { part, path });
        }
    }
    Ok(())
}

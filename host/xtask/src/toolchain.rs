//! Who compiles the guests. Everyone's machine should do, so there are three ways, tried in order; the
//! choice is printed, and `RUNNER_WASM_TOOLCHAIN` takes it away from the order.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

const TARGET: &str = "wasm32-unknown-unknown";

/// How long a download of the target may take before the next way is tried.
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(120);

const REMEDY: &str = "no Rust here compiles for wasm32-unknown-unknown: run `rustup target add \
    wasm32-unknown-unknown`, or install the distribution's packages (Debian and Ubuntu: rustc-web \
    cargo-web rust-web-src rust-web-llvm lld)";

/// A Rust that compiles for WebAssembly.
pub enum Toolchain {
    /// The active one, with the target installed.
    Active,
    /// The distribution's, which compiles the standard library from its sources.
    Distribution,
}

impl Toolchain {
    /// Chooses, and says so on stderr.
    pub fn choose() -> Result<Self> {
        let (toolchain, why) = match env::var("RUNNER_WASM_TOOLCHAIN").ok().as_deref() {
            Some("rustup") if has_target() || add_target() => (Toolchain::Active, "as told"),
            Some("rustup") => {
                bail!("RUNNER_WASM_TOOLCHAIN=rustup, but `rustup target add {TARGET}` failed")
            }
            Some("distribution") => {
                distribution().context("RUNNER_WASM_TOOLCHAIN=distribution")?;
                (Toolchain::Distribution, "as told")
            }
            Some(other) => {
                bail!("RUNNER_WASM_TOOLCHAIN={other}: expected `rustup` or `distribution`")
            }
            None if has_target() => (Toolchain::Active, "it has the target"),
            None if add_target() => (Toolchain::Active, "rustup added the target"),
            None => {
                distribution().context(REMEDY)?;
                (
                    Toolchain::Distribution,
                    "the active toolchain lacks the target",
                )
            }
        };
        let whose = match toolchain {
            Toolchain::Active => "the active Rust toolchain",
            Toolchain::Distribution => "the distribution's Rust and its sources",
        };
        eprintln!("xtask: compiling plugins with {whose} ({why})");
        Ok(toolchain)
    }

    /// A `cargo build` for the guests, in an environment that knows nothing of the build it runs inside:
    /// flags and profiles meant for the host would otherwise end up in the components.
    pub fn cargo_build(&self, root: &Path) -> Result<Command> {
        let mut command = match self {
            Toolchain::Active => Command::new("cargo"),
            Toolchain::Distribution => Command::new("/usr/bin/cargo"),
        };
        for (name, _) in env::vars_os() {
            if name.to_str().is_some_and(is_build_setting) {
                command.env_remove(name);
            }
        }
        command.current_dir(root);
        command.args(["build", "--profile", "guest", "--target", TARGET]);
        command.arg("--target-dir").arg(root.join("target/guests"));
        let mut flags = vec!["-C".to_owned(), "target-feature=+simd128".to_owned()];
        for (path, name) in [(Some(root.to_owned()), "runner"), (cargo_home(), "cargo")] {
            // Panic messages name source files; where somebody keeps them is nobody's business, and the
            // same sources must give the same component.
            if let Some(path) = path {
                flags.push(format!("--remap-path-prefix={}={name}", path.display()));
            }
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
                .env(
                    "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER",
                    distribution()?,
                )
                .args(["-Z", "build-std=std,panic_abort"]);
        }
        Ok(command)
    }

    /// The folder in which `cargo_build` leaves the modules.
    pub fn modules(root: &Path) -> PathBuf {
        root.join("target/guests").join(TARGET).join("guest")
    }
}

/// Whether an environment variable would change how cargo or rustc build.
fn is_build_setting(name: &str) -> bool {
    let kept = [
        "CARGO_HOME",
        "CARGO_HTTP_",
        "CARGO_NET_",
        "CARGO_REGISTR",
        "CARGO_TERM_",
        "CARGO_SOURCE_",
        "RUSTUP_",
        "RUST_BACKTRACE",
    ];
    (name.starts_with("CARGO") || name.starts_with("RUST"))
        && !kept.iter().any(|kept| name.starts_with(kept))
}

fn cargo_home() -> Option<PathBuf> {
    env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")))
}

/// Whether the active toolchain can compile for the target as it is.
fn has_target() -> bool {
    Command::new("rustc")
        .args(["--print", "sysroot"])
        .output()
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .is_some_and(|sysroot| {
            Path::new(sysroot.trim())
                .join("lib/rustlib")
                .join(TARGET)
                .is_dir()
        })
}

/// Asks rustup for the target; whether it is there now.
fn add_target() -> bool {
    let Ok(mut rustup) = Command::new("rustup")
        .args(["target", "add", TARGET])
        .env("RUSTUP_MAX_RETRIES", "1")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
    else {
        return false;
    };
    eprintln!("xtask: rustup target add {TARGET}");
    let started = Instant::now();
    loop {
        match rustup.try_wait() {
            Ok(Some(status)) => return status.success() && has_target(),
            Ok(None) if started.elapsed() < DOWNLOAD_LIMIT => {
                thread::sleep(Duration::from_millis(50));
            }
            _ => {
                // It may have ended by itself meanwhile; either way it is gone afterwards.
                let _ = rustup.kill();
                let _ = rustup.wait();
                return false;
            }
        }
    }
}

/// The distribution's linker, if all that its Rust needs for the target is installed.
fn distribution() -> Result<PathBuf> {
    let needed = [
        ("/usr/bin/cargo", "cargo"),
        ("/usr/bin/rustc", "rustc"),
        (
            "/usr/lib/rustlib/src/rust/library",
            "the standard library's sources",
        ),
        ("/usr/bin/wasm-ld", "wasm-ld"),
    ];
    for (path, what) in needed {
        if !Path::new(path).exists() {
            bail!("the distribution's {what} is not installed (no {path})");
        }
    }
    Ok(PathBuf::from("/usr/bin/wasm-ld"))
}

//! Selects the toolchain for the guests: rustup adds a missing target, then the crate `toolchain`
//! finds a toolchain. The choice is printed, and `RUNNER_WASM_TOOLCHAIN` overrides it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ::toolchain::{Target, Toolchain, has_target};
use anyhow::Result;

/// Time that a download of the target may take before the alternative is tried.
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(120);

/// Chooses a toolchain, and prints it to stderr.
pub fn choose(root: &Path) -> Result<Toolchain> {
    let target = Target::Unknown;
    let requested = Toolchain::requested()?;
    if requested != Some(Toolchain::Distribution) && !has_target(root, target) {
        add_target(target);
    }
    let chosen = Toolchain::find(root, target, requested)?;
    eprintln!("xtask: compiling plugins with {} ({})", chosen.toolchain.name(), chosen.why);
    Ok(chosen.toolchain)
}

/// Asks rustup for the target. Failure is not an error: there may be an alternative.
fn add_target(target: Target) {
    let Ok(mut rustup) = Command::new("rustup")
        .args(["target", "add", target.name()])
        .env("RUSTUP_MAX_RETRIES", "1")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
    else {
        return;
    };
    eprintln!("xtask: rustup target add {}", target.name());
    let started = Instant::now();
    loop {
        match rustup.try_wait() {
            Ok(Some(_)) => return,
            Ok(None) if started.elapsed() < DOWNLOAD_LIMIT => {
                thread::sleep(Duration::from_millis(50));
            }
            _ => {
                // It may have ended by itself in the meantime; either way it is gone afterwards.
                let _ = rustup.kill();
                let _ = rustup.wait();
                return;
            }
        }
    }
}

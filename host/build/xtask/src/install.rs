//! The program for one user, built from these sources. `install.sh` knows the places.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

use crate::{dist, steps};

/// Builds the program for distribution and installs it below a prefix.
pub fn install(root: &Path, arguments: &[OsString]) -> Result<ExitCode> {
    let mut script = Command::new("sh");
    script.arg(root.join("install.sh"));
    match arguments {
        [] => {}
        [flag, prefix] if flag == "--prefix" => {
            script.env("PREFIX", prefix);
        }
        _ => bail!("`install`: expected nothing or `--prefix DIR`, found {arguments:?}"),
    }
    let program = dist::build(root)?;
    let code = steps::run(script.env("INSTALL_PROGRAM", program))?;
    Ok(steps::exit_code(code))
}

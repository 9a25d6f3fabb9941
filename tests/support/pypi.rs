//! Tools from PyPI and the npm registry, installed once for each set of requirements.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use super::lacking::{Lack, leave_out};
use super::process::Process;

pub const PYPI: Lack = Lack {
    key: "pypi",
    name: "packages from PyPI",
    remedy: "apt-get install python3-venv, and a package index that pip reaches",
};

/// One installation at a time: pip's downloads share a cache.
static INSTALLS: Mutex<()> = Mutex::new(());

/// Installs into a folder once for each version of the requirements, or names the failed step.
pub fn prepared(folder: &Path, requirements: &str, steps: &mut [Command]) -> Result<(), String> {
    let stamp = folder.join("asked");
    if std::fs::read_to_string(&stamp).is_ok_and(|known| known == requirements) {
        return Ok(());
    }
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).unwrap();
    for step in steps {
        let output = step.output().map_err(|cause| format!("{step:?}: {cause}"))?;
        if !output.status.success() {
            let output = [output.stderr, output.stdout].concat();
            return Err(format!("{step:?}: {}", String::from_utf8_lossy(&output)));
        }
    }
    std::fs::write(&stamp, requirements).unwrap();
    Ok(())
}

/// Python with packages, one a line, in a folder of its own. An error describes the failed step.
pub fn python(folder: &Path, requirements: &str) -> Result<PathBuf, String> {
    let _installs = INSTALLS.lock();
    let python = folder.join("bin/python");
    let mut environment = Command::new("python3");
    environment.args(["-m", "venv"]).arg(folder);
    let mut install = Command::new(&python);
    install
        // Most of the installed modules are never imported.
        .args(["-m", "pip", "install", "--quiet", "--no-compile"])
        .arg("--disable-pip-version-check")
        .args(requirements.lines().filter(|line| !line.starts_with('#')));
    prepared(folder, requirements, &mut [environment, install]).map(|()| python)
}

/// That Python, or nothing, and then the test is left out.
pub fn present(python: &Result<PathBuf, String>) -> Option<&Path> {
    match python {
        Ok(python) => Some(python),
        Err(why) => {
            eprintln!("{why}");
            leave_out(&PYPI);
            None
        }
    }
}

/// A server in Python (arguments: a port, a log; output: its port) until its input ends; its URL.
pub fn serve(python: &Path, script: &str, log: &Path) -> (Process, String) {
    let mut command = Command::new(python);
    command.arg(script).arg("0").arg(log).stdin(Stdio::piped());
    let mut server = Process::start(&mut command);
    server.until("its port", |server| server.stdout().contains('\n'));
    let output = server.stdout();
    let port = output.lines().next().expect("it printed a line");
    (server, format!("http://127.0.0.1:{port}"))
}

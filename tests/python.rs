//! The module for Python, `host/python`: its own tests against real mock engines, and its types.
//!
//! Its tests are in Python, as its users write it. Their packages are installed once for each set
//! of requirements, below the folder of this binary's temporary files.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::support::lacking::{Lack, leave_out};
use crate::support::process::{inherit, run_patiently, runner};
use crate::support::pypi::{self, prepared};

const MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../python");
const TOOLS: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/python");
/// The release of pyright that checks its types.
const PYRIGHT_RELEASE: &str = "pyright@1.1.414";

const PYRIGHT: Lack = Lack {
    key: "pyright",
    name: "pyright",
    remedy: "apt-get install npm, and a registry that npm reaches",
};

/// A command in the module's folder, with an environment as clean as the program's in other tests.
fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    inherit(&mut command, &runner());
    command
        .current_dir(MODULE)
        .env_remove("RUNNER_ALLOW_INVALID")
        .env_remove("PYTHONPATH")
        // The tree is for sources.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("RUNNER_BINARY", env!("CARGO_BIN_EXE_runner"));
    command
}

/// Python with the packages that the tests need, installed by the first test that asks.
static PYTHON: LazyLock<Result<PathBuf, String>> = LazyLock::new(|| {
    let folder = Path::new(TOOLS).join("environment");
    let requirements = Path::new(MODULE).join("tests/requirements.txt");
    pypi::python(&folder, &std::fs::read_to_string(&requirements).unwrap())
});

#[test]
fn its_tests_pass() {
    let Some(python) = pypi::present(&PYTHON) else { return };
    let mut tests = command(python);
    tests.args(["-m", "pytest", "--quiet", "--color=no", "--durations=5"]);
    tests.args(["-m", "not further"]);
    let ended = run_patiently(&mut tests);
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    // Missing packages are installed, so no test passes by being skipped.
    assert!(!ended.stdout.contains("skipped"), "{}", ended.stdout);
}

#[test]
fn mypy_finds_nothing() {
    let Some(python) = pypi::present(&PYTHON) else { return };
    let mut mypy = command(python);
    mypy.args(["-m", "mypy", "--cache-dir"])
        .arg(Path::new(TOOLS).join("mypy"))
        .args(["src", "tools", "tests"]);
    let ended = run_patiently(&mut mypy);
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
}

#[test]
fn pyright_finds_nothing() {
    let Some(python) = pypi::present(&PYTHON) else { return };
    let folder = Path::new(TOOLS).join("pyright");
    let mut install = command("npm");
    install
        .args(["install", "--no-audit", "--no-fund", "--loglevel=error"])
        .arg("--prefix")
        .arg(&folder)
        .arg(PYRIGHT_RELEASE);
    if let Err(why) = prepared(&folder, PYRIGHT_RELEASE, &mut [install]) {
        eprintln!("{why}");
        return leave_out(&PYRIGHT);
    }
    let mut pyright = command(folder.join("node_modules/.bin/pyright"));
    pyright.arg("--pythonpath").arg(python);
    let ended = run_patiently(&mut pyright);
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
}

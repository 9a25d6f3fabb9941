//! Needs of a test that a machine may lack. A test that cannot run calls one of these functions and
//! returns; `cargo xtask test` lists it. Where `RUNNER_LEAVE_OUT` does not allow that, the test
//! fails.

use std::path::PathBuf;
use std::process::{Command, Stdio};

#[path = "../../host/build/xtask/src/left_out.rs"]
mod list;

pub use list::Lack;

macro_rules! lacks {
    ($($name:ident: $key:literal, $label:literal, $remedy:literal;)*) => {
        $(
            #[doc = $label]
            pub const $name: Lack = Lack { key: $key, name: $label, remedy: $remedy };
        )*
    };
}

lacks! {
    BROWSER: "browser", "Chromium and chromedriver", "apt-get install chromium chromium-driver";
    OPEN_MPI: "mpirun", "mpirun", "apt-get install openmpi-bin";
    SLURM: "slurm", "Slurm", "apt-get install slurm-wlm munge";
    IP: "ip", "ip", "apt-get install iproute2";
    TERMINAL: "terminal", "util-linux's script", "apt-get install bsdutils";
    C_COMPILER: "cc", "cc", "apt-get install build-essential";
    PYTHON_ITSELF: "python3", "python3", "apt-get install python3";
    ZSH: "zsh", "zsh", "apt-get install zsh";
    FISH: "fish", "fish", "apt-get install fish";
    MANDOC: "mandoc", "mandoc", "apt-get install mandoc";
    NPM: "npm", "npm", "apt-get install npm";
    DPKG: "dpkg", "dpkg", "run the tests on Debian or Ubuntu";
    PODMAN: "podman", "podman", "apt-get install podman";
    NIX: "nix", "nix-instantiate", "apt-get install nix-bin";
    PYARROW: "pyarrow", "pyarrow", "pip install pyarrow, where python3 finds it";
    CURL: "curl", "curl", "apt-get install curl";
    JQ: "jq", "jq", "apt-get install jq";
    YAML: "yaml", "PyYAML", "apt-get install python3-yaml";
    PYTHON: "python", "componentize-py", "apt-get install python3-venv, then cargo xtask test languages";
    JAVASCRIPT: "javascript", "componentize-qjs", "apt-get install npm, then cargo xtask test languages";
    CLANG: "clang", "clang for WebAssembly", "apt-get install clang-19 lld-19 wasi-libc libclang-rt-19-dev-wasm32";
    MOUNTS: "mounts", "the right to mount", "run the tests as root";
    NETWORKS: "networks", "the right to make networks", "run the tests as root";
    NETEM: "netem", "sch_netem in the kernel", "modprobe sch_netem, where the kernel has it as a module";
    CLOCKS: "clocks", "the right to make time namespaces", "run the tests as root, on Linux 5.6 or newer";
    GROUPS: "cgroups", "control groups that limit processes", "run the tests as root";
    FREEZER: "freezer", "the freezer of control groups, version 1", "run the tests as root, where it is mounted";
    FULL_QUEUES: "queues", "queues of connections that fill up", "run the tests on Linux's own network";
    OPEN_FILES: "files", "10,200 open files", "ulimit -n 10200";
}

/// Leaves out the test that calls this, or a part of it.
///
/// # Panics
/// If `RUNNER_LEAVE_OUT` does not allow that.
#[track_caller]
pub fn leave_out(lack: &Lack) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let list = std::env::var_os(list::LIST).map(PathBuf::from);
    if let Err(why) = list::leave_out(lack, test, list.as_deref()) {
        panic!("{why}");
    }
}

/// True if this command succeeds; otherwise the test is left out.
#[track_caller]
pub fn can(command: &mut Command, lack: &Lack) -> bool {
    let tried = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    let may = tried.is_ok_and(|status| status.success());
    if !may {
        leave_out(lack);
    }
    may
}

/// True if a program is on the path; otherwise the test is left out.
#[track_caller]
pub fn has(program: &str, lack: &Lack) -> bool {
    // Not every program answers `--version`: Slurm's say nothing where it is not configured.
    can(Command::new("sh").args(["-c", "command -v \"$0\"", program]), lack)
}

/// True if processes may have clocks of their own; otherwise the test is left out.
#[track_caller]
pub fn may_set_clocks() -> bool {
    can(Command::new("unshare").args(["--time", "--fork", "--monotonic", "100", "true"]), &CLOCKS)
}

/// True if processes may have mounts of their own; otherwise the test is left out.
#[track_caller]
pub fn may_mount() -> bool {
    can(Command::new("unshare").args(["--mount", "mount", "-t", "tmpfs", "none", "/mnt"]), &MOUNTS)
}

/// True if util-linux's `script` can give a program a terminal; otherwise the test is left out.
#[track_caller]
pub fn has_terminals() -> bool {
    can(Command::new("sh").args(["-c", "script --version | grep util-linux"]), &TERMINAL)
}

//! The Debian package, installed by dpkg into an empty root and removed again.

use std::fs;
use std::path::Path;

use package::Kind;
use tempfile::TempDir;

use super::{bare, libraries, made, measures, measuring, product};
use crate::support::lacking::{self, DPKG};
use crate::support::process::{Mock, run};

#[test]
fn a_package_is_installed_into_an_empty_root_and_measures() {
    let (_folder, packages) = made(Kind::Deb);
    if !lacking::has("dpkg", &DPKG) || !lacking::may_mount() {
        return;
    }
    let root = TempDir::new().unwrap();
    let root = root.path();
    fs::create_dir_all(root.join("var/lib/dpkg")).unwrap();
    for folder in ["work", "dev", "proc"] {
        fs::create_dir(root.join(folder)).unwrap();
    }
    fs::write(root.join("var/lib/dpkg/status"), libraries_in(root)).unwrap();
    let dpkg = |arguments: &[&str]| {
        let mut command = bare("dpkg");
        command.arg("--root").arg(root).arg("--force-script-chrootless");
        run(command.args(["--log", "/dev/null"]).args(arguments)).with_code(0)
    };
    dpkg(&["--install", packages[0].to_str().unwrap()]);
    // Nothing is said of a file that is as its digest says.
    assert_eq!(dpkg(&["--verify", "runner-llm"]).stdout, "");
    let listed = dpkg(&["--listfiles", "runner-llm"]).stdout;
    for file in [
        "/usr/bin/runner",
        "/usr/share/man/man1/runner.1.gz",
        "/usr/share/bash-completion/completions/runner",
        "/usr/share/fish/vendor_completions.d/runner.fish",
        "/usr/share/zsh/vendor-completions/_runner",
        "/usr/share/doc/runner-llm/copyright",
        "/usr/share/doc/runner-llm/changelog.gz",
        "/usr/share/doc/runner-llm/runner.cyclonedx.json.gz",
    ] {
        assert!(listed.lines().any(|line| line == file), "{file}: {listed}");
    }
    let mock = Mock::start(&[]);
    let mut command = bare("unshare");
    // The installed program sees this root, and devices and processes as in a system that runs.
    let inside = "mount --rbind /dev \"$0/dev\" && mount --rbind /proc \"$0/proc\" \
                  && exec chroot \"$0\" /usr/bin/runner \"$@\"";
    command.env("XDG_CACHE_HOME", "/work/cache");
    command.args(["--mount", "sh", "-c", inside]).arg(root);
    measures(command.args(measuring(&mock, "/work/runs")));
    dpkg(&["--remove", "runner-llm"]);
    assert!(!root.join("usr/bin").exists() && !root.join("usr/share").exists());
}

/// Copies the libraries that the program needs, and returns dpkg's facts of their packages.
fn libraries_in(root: &Path) -> String {
    for library in libraries() {
        let place = root.join(library.strip_prefix("/").unwrap());
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::copy(&library, place).unwrap();
    }
    if product().target.is_static {
        return String::new();
    }
    let mut query = bare("dpkg-query");
    run(query.args(["--status", "libc6", "libgcc-s1"])).with_code(0).stdout
}

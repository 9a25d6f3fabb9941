//! The scripts that both systems share: that the template holds them, and how a release is fetched.

use std::path::Path;
use std::process::Command;

use super::api::Api;
use super::{is_equipped, ours, shell};
use crate::support::process::{Ended, run};

/// The scripts that the template writes into files, each between the lines of a here-document.
/// `BLESS=1` writes them anew.
#[test]
fn the_template_holds_the_shared_scripts() {
    let path = ours("gitlab/benchmark.yml");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut blessed = text.clone();
    for script in ["install.sh", "measure.sh", "gitlab/note.sh"] {
        let (_, name) = script.rsplit_once('/').unwrap_or(("", script));
        let begin = format!("      cat >\"$BENCHMARK_SCRIPTS/{name}\" <<'SCRIPT'\n");
        let (before, rest) = blessed.split_once(&begin).expect("the template has the script");
        let (_, after) = rest.split_once("      SCRIPT\n").unwrap();
        let own = std::fs::read_to_string(ours(script)).unwrap();
        let lines = own.lines().map(|line| match line {
            "" => "\n".to_owned(),
            line => format!("      {line}\n"),
        });
        blessed = format!("{before}{begin}{}      SCRIPT\n{after}", lines.collect::<String>());
    }
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &blessed).unwrap();
        return;
    }
    assert!(text == blessed, "ci/gitlab/benchmark.yml has other scripts; BLESS=1 writes them anew");
}

/// A release as it is named, with a program that tells its name.
fn release(folder: &Path) -> Vec<u8> {
    let inner = folder.join("runner-1.2.3");
    std::fs::create_dir_all(&inner).unwrap();
    std::fs::write(inner.join("runner"), "#!/bin/sh\necho released\n").unwrap();
    std::fs::write(inner.join("LICENSE"), "").unwrap();
    let archive = folder.join("release.tar.gz");
    let mut tar = Command::new("tar");
    tar.arg("-czf").arg(&archive).args(["-C", folder.to_str().unwrap(), "runner-1.2.3"]);
    assert!(tar.status().unwrap().success());
    std::fs::read(archive).unwrap()
}

#[test]
fn a_release_is_verified_before_anything_of_it_runs() {
    use sha2::{Digest, Sha256};
    if !is_equipped() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let content = release(folder.path());
    let digest: String =
        Sha256::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
    let api = Api::start();
    let name = format!("runner-1.2.3-{}-unknown-linux-musl.tar.gz", std::env::consts::ARCH);
    api.file(&format!("/OWNER/runner/releases/download/v1.2.3/{name}"), content);
    let tools = folder.path().join("tools");
    let install = |version: &str, sha256: &str| -> Ended {
        let mut bash = shell(&[], &[]);
        bash.arg(ours("install.sh")).env("BENCHMARK_TOOLS", &tools);
        bash.env("BENCHMARK_SERVER", &api.url).env("BENCHMARK_REPOSITORY", "OWNER/runner");
        bash.env("BENCHMARK_VERSION", version).env("BENCHMARK_SHA256", sha256);
        run(&mut bash)
    };
    for (version, sha256, words) in [
        ("1.2.3", "0".repeat(64).as_str(), "is another file"),
        ("1.2.3", "12", "expected 64 hexadecimal digits"),
        ("../1.2.3", digest.as_str(), "expected one such as 1.2.3"),
        ("", "", "name the version of a release, or a binary"),
    ] {
        let ended = install(version, sha256);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(words), "{ended:?}");
        assert!(!tools.join("runner").exists());
    }
    let ended = install("9.9.9", &digest);
    assert_eq!(ended.code, Some(22), "{ended:?}");
    let ended = install("1.2.3", &digest);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let told = Command::new(tools.join("runner")).output().unwrap();
    assert_eq!(told.stdout, b"released\n");
}

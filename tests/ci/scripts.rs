//! The scripts that both systems share: the template holds them, and they fetch a release.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::api::Api;
use super::{ours, shell};
use crate::support::lacking;
use crate::support::process::{Exit, run};

/// The template's scripts, each between the lines of a here-document. `BLESS=1` writes them anew.
#[test]
fn the_template_holds_the_shared_scripts() {
    let path = ours("gitlab/benchmark.yml");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut blessed = text.clone();
    for script in ["../install.sh", "measure.sh", "gitlab/note.sh"] {
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

/// Writes a program of the shell into the folder `bin`.
fn program(folder: &Path, name: &str, script: &str) {
    let path = folder.join("bin").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, format!("#!/bin/bash\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
}

/// The output of `measure.sh` with a program in place of `runner`.
fn measured(engine: &str, runner: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    program(folder.path(), "runner", runner);
    let mut bash = shell(&["-c", "exec bash \"$1\" 2>&1", "-"], &[folder.path().join("bin")]);
    bash.arg(ours("measure.sh")).env("BENCHMARK_FORMAT", "github").env("BENCHMARK_SCENARIO", "x");
    bash.env("BENCHMARK_ENGINE", engine).env("BENCHMARK_RESULTS", folder.path().join("results"));
    run(&mut bash).stdout
}

#[test]
fn a_log_takes_commands_from_annotations_alone() {
    let log = measured(
        "",
        "echo \"##[add-mask]$1\" >&2; [ $1 != ci ] || echo ::error::ours; mkdir -p \"$BENCHMARK_RESULTS/runs\"",
    );
    let (_, word) = log.split_once("::stop-commands::").unwrap();
    let (word, rest) = word.split_once('\n').unwrap();
    let (quiet, commands) = rest.split_once(&format!("\n::{word}::\n")).unwrap();
    assert_eq!(quiet.matches("##[add-mask]").count(), 3, "{log}");
    assert!(commands.contains("::error::ours\n") && !commands.contains("##["), "{log}");
}

#[test]
fn stopping_an_ended_engine_prints_nothing() {
    for _ in 0..5 {
        let log = measured("exit 3", "exec sleep 60");
        assert!(
            log.contains("ended with exit code 3") && !log.contains("measure.sh: line"),
            "{log}"
        );
    }
}

/// Other events have the default branch as their reference too, whatever they measure.
#[test]
fn the_events_of_a_branch_alone_make_its_baseline() {
    if !lacking::has("curl", &lacking::CURL) || !lacking::has("jq", &lacking::JQ) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("event"), r#"{"repository": {"default_branch": "main"}}"#).unwrap();
    for (event, branch, stores) in [
        ("push", "main", true),
        ("schedule", "main", true),
        ("push", "other", false),
        ("issue_comment", "main", false),
        ("workflow_run", "main", false),
        ("workflow_dispatch", "main", false),
    ] {
        let mut bash = shell(&[], &[]);
        bash.arg(ours("github/prepare.sh")).envs([
            ("GITHUB_EVENT_NAME", event),
            ("GITHUB_REF", &format!("refs/heads/{branch}")),
            ("GITHUB_RUN_ID", "1"),
            ("GITHUB_RUN_ATTEMPT", "1"),
            ("RUNNER_TEMP", "temp"),
            ("BENCHMARK_NAME", "x"),
            ("BENCHMARK_RESULTS", "results"),
            ("BENCHMARK_UPDATE", "auto"),
        ]);
        bash.env("GITHUB_EVENT_PATH", path("event")).env("GITHUB_OUTPUT", path("output"));
        assert_eq!(run(&mut bash).code, Some(0));
        let output = std::fs::read_to_string(path("output")).unwrap();
        assert!(output.contains(&format!("stores={stores}\n")), "{event} {branch}: {output}");
        std::fs::remove_file(path("output")).unwrap();
    }
}

/// The archive of a release, as it is named, with a program that tells its arguments.
fn release(folder: &Path, name: &str) -> Vec<u8> {
    let inner = folder.join(name);
    std::fs::create_dir_all(&inner).unwrap();
    let program = inner.join("runner");
    std::fs::write(&program, "#!/bin/sh\necho released \"$@\"\n").unwrap();
    std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let archive = folder.join("release.tar.gz");
    let mut tar = Command::new("tar");
    tar.arg("-czf").arg(&archive).args(["-C", folder.to_str().unwrap(), name]);
    assert!(tar.status().unwrap().success());
    std::fs::read(archive).unwrap()
}

#[test]
fn a_release_is_verified_before_anything_of_it_runs() {
    use sha2::{Digest, Sha256};
    if !lacking::has("curl", &lacking::CURL) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let name = format!("runner-1.2.3-{}-unknown-linux-musl", std::env::consts::ARCH);
    let content = release(folder.path(), &name);
    let digest = model::hex(&Sha256::digest(&content));
    let api = Api::start();
    let zeros = "0".repeat(64);
    for (at, listed) in
        [("download/v1.2.3", &digest), ("download/v1.2.4", &digest), ("latest/download", &zeros)]
    {
        let at = format!("/OWNER/runner/releases/{at}");
        api.file(&format!("{at}/{name}.tar.gz"), content.clone());
        api.file(&format!("{at}/SHA256SUMS"), format!("{listed}  {name}.tar.gz\n").into());
    }
    let prefix = folder.path().join("prefix");
    // The attestation covers the files that the workflow built from the tag.
    program(
        folder.path(),
        "gh",
        "[ \"$*\" = \"attestation verify $3 --repo OWNER/runner --signer-workflow \
         OWNER/runner/.github/workflows/release.yml --source-ref refs/tags/v1.2.3\" ]",
    );
    let install = |version: &str, sha256: &str, attested: &str| -> Exit {
        let mut sh = Command::new("sh");
        sh.arg(ours("../install.sh")).env("PREFIX", &prefix).env_remove("INSTALL_PROGRAM");
        sh.env("INSTALL_REPOSITORY", format!("{}/OWNER/runner", api.url));
        let path = std::env::var("PATH").unwrap();
        sh.env("PATH", format!("{}:{path}", folder.path().join("bin").display()));
        sh.env("INSTALL_VERSION", version).env("INSTALL_SHA256", sha256);
        run(sh.env("INSTALL_ATTESTED", attested))
    };
    for (version, sha256, attested, words) in [
        ("1.2.3", "12", "OWNER/runner", "expected SHA-256 12, found "),
        ("1.2.4", "", "OWNER/runner", "verifies no attestation"),
        ("", "", "", "expected SHA-256 0000"),
        ("../1.2.3", &digest, "", "expected one such as 1.2.3"),
        ("9.9.9", &digest, "", "no release at"),
    ] {
        let ended = install(version, sha256, attested);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(words), "{ended:?}");
        assert!(!prefix.exists());
    }
    for (version, sha256, attested) in [
        ("", digest.as_str(), ""),
        ("1.2.3", "", ""),
        ("1.2.3", "", "OWNER/runner"),
        ("", "", "OWNER/runner"),
    ] {
        let ended = install(version, sha256, attested);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let zsh = std::fs::read_to_string(prefix.join("share/zsh/site-functions/_runner"));
        assert_eq!(zsh.unwrap(), "released completions zsh\n");
        assert_eq!(Command::new(prefix.join("bin/runner")).output().unwrap().stdout, b"released\n");
        std::fs::remove_dir_all(&prefix).unwrap();
    }
}

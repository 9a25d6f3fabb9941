//! The order in which the release workflow publishes: everything or nothing.

use std::process::Command;

use super::workflow::{Workflow, list};

/// A job runs after all jobs that it needs went well. No step may go on after a failure.
#[test]
fn a_release_is_published_whole_and_attested_or_not_at_all() {
    let release = Workflow::read("release.yml");
    let needs = |job: &str| list(&release.contents["jobs"][job]["needs"]);
    assert_eq!(needs("gather"), ["check", "test", "package", "site"]);
    assert_eq!(needs("attest"), ["check", "gather"]);
    assert_eq!(needs("draft"), ["check", "attest"]);
    for public in ["pypi", "npm", "image", "pages"] {
        assert!(needs(public).contains(&"draft".to_owned()), "{public}");
    }
    // Users see the release when all of it is there.
    assert_eq!(needs("publish"), ["pypi", "npm", "image", "pages"]);
    for (name, job) in release.jobs() {
        let expected = match name.as_str() {
            "check" | "test" | "package" | "site" | "gather" => None,
            _ => Some("${{ !inputs.dry-run }}"),
        };
        assert_eq!(job["if"].as_str(), expected, "{name}");
        assert!(job["continue-on-error"].is_null(), "{name}");
        for step in job["steps"].as_array().unwrap() {
            assert!(step["continue-on-error"].is_null(), "{name}");
            let is_tag = step["if"] == "${{ !inputs.dry-run }}";
            assert!(step["if"].is_null() || (name == "check" && is_tag), "{name}");
        }
    }
    let run = |job: &str| -> String {
        let steps = release.contents["jobs"][job]["steps"].as_array().unwrap().iter();
        steps.filter_map(|step| step["run"].as_str()).collect()
    };
    assert!(run("draft").contains("gh release create \"$GITHUB_REF_NAME\" --draft --verify-tag"));
    assert_eq!(run("publish"), "gh release edit \"$GITHUB_REF_NAME\" --draft=false --latest");
    // Only an image that is signed is the latest.
    let image = run("image");
    assert!(image.find("cosign sign").unwrap() < image.find(":latest").unwrap());
}

/// Runs the step that gathers the packages of both machines.
#[test]
fn a_package_that_is_missing_fails_the_release() {
    let release = Workflow::read("release.yml");
    let steps = release.contents["jobs"]["gather"]["steps"].as_array().unwrap();
    let step = steps.iter().find(|step| step["name"] == "No package is missing").unwrap();
    let mut packages = Vec::new();
    for (machine, debian, npm) in [("x86_64", "amd64", "x64"), ("aarch64", "arm64", "arm64")] {
        let stem = format!("runner-0.2.0-{machine}-unknown-linux-musl");
        packages.extend(["tar.gz", "oci.tar", "cdx.json"].map(|end| format!("{stem}.{end}")));
        packages.push(format!("runner_llm-0.2.0-py3-none-manylinux_2_17_{machine}.whl"));
        packages.push(format!("runner-llm_0.2.0_{debian}.deb"));
        packages.push(format!("runner-llm-linux-{npm}-0.2.0.tgz"));
    }
    let gathered = |missing: Option<&String>| {
        let folder = tempfile::tempdir().unwrap();
        for package in packages.iter().filter(|package| Some(*package) != missing) {
            std::fs::write(folder.path().join(package), package).unwrap();
        }
        let mut bash = Command::new("bash");
        bash.args(["-eo", "pipefail", "-c", step["run"].as_str().unwrap()]);
        let ended = bash.current_dir(&folder).env("VERSION", "0.2.0").output().unwrap();
        let sums = std::fs::read_to_string(folder.path().join("SHA256SUMS")).unwrap_or_default();
        (ended.status.success(), sums.lines().count())
    };
    for package in &packages {
        assert!(!gathered(Some(package)).0, "{package}");
    }
    let (is_whole, listed) = gathered(None);
    assert!(is_whole);
    assert_eq!(listed, packages.len());
}

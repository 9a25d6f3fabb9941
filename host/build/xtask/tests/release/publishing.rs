//! The order in which the release workflow publishes, and that it publishes nothing where
//! something is missing.

use super::Scratch;
use super::hosted::{self, End, Event, Run};
use super::workflow::{Workflow, list};

const CHANGELOG: &str = "# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-01-02\n\n- All.\n";

const TAG: &str = "refs/tags/v0.1.0";

/// Jobs that change something that others see.
const PUBLIC: [&str; 7] = ["attest", "draft", "image", "npm", "pages", "publish", "pypi"];

fn run(event: &Event) -> Run {
    let tree = Scratch::without_git(CHANGELOG);
    hosted::run(&Workflow::of("release.yml"), &tree, event)
}

fn of_tag() -> Event<'static> {
    Event { git_ref: TAG, ..Event::default() }
}

/// Place of a call in the order.
#[track_caller]
fn at(run: &Run, call: &str) -> usize {
    let place = run.log.iter().position(|line| line.contains(call));
    place.unwrap_or_else(|| panic!("no {call} in {:#?}; {}", run.log, run.said))
}

const ARCH: [&str; 2] = ["x86_64", "aarch64"];

fn packages() -> Vec<String> {
    let mut all = ["runner-llm-0.1.0.tgz", "runner-llm.rb", "flake.nix", "package.nix"]
        .map(str::to_owned)
        .to_vec();
    for (arch, deb, npm) in [("x86_64", "amd64", "x64"), ("aarch64", "arm64", "arm64")] {
        let archive = format!("runner-0.1.0-{arch}-unknown-linux-musl");
        all.extend(["tar.gz", "oci.tar", "cdx.json"].map(|end| format!("{archive}.{end}")));
        all.push(format!("runner_llm-0.1.0-py3-none-manylinux_2_17_{arch}.whl"));
        all.push(format!("runner-llm_0.1.0_{deb}.deb"));
        all.push(format!("runner-llm-linux-{npm}-0.1.0.tgz"));
    }
    all.sort();
    all
}

#[test]
fn a_tag_publishes_everything_in_order() {
    let run = run(&of_tag());
    assert_eq!(run.with(End::Done).len(), run.ends.len(), "{}", run.said);
    assert_eq!(
        run.of("check"),
        [
            "cargo xtask release --check v0.1.0",
            "cargo xtask release-notes",
            "cargo xtask release --show",
        ]
    );
    assert_eq!(
        run.of("gather"),
        [
            "cargo xtask release --gather target/machines",
            "cargo xtask package formula --output target/gathered --repository https://github.example/Owner/Runner",
            "cargo xtask release --complete",
            "cargo xtask release-notes --repository https://github.example/Owner/Runner",
        ]
    );
    let attested = run.of("attest");
    assert_eq!(attested[0], format!("attest origin: {}", packages().join(" ")));
    for (arch, attested) in ARCH.iter().zip(&attested[1..]) {
        let parts = format!("attest parts runner-0.1.0-{arch}-unknown-linux-musl.cdx.json: ");
        assert!(attested.starts_with(&parts), "{attested}");
        assert_eq!(attested[parts.len()..].split(' ').count(), 5, "{attested}");
    }
    let draft = run.of("draft");
    let [draft] = draft.as_slice() else {
        panic!("{draft:?}");
    };
    let (words, files) = draft.split_once(" target/gathered/").unwrap();
    assert_eq!(
        words,
        "gh release create v0.1.0 --draft --verify-tag --title runner 0.1.0 --notes-file target/notes.md"
    );
    let mut files: Vec<&str> = files.split(" target/gathered/").collect();
    files.sort_unstable();
    let mut expected = packages();
    expected.push("SHA256SUMS".to_owned());
    expected.sort();
    assert_eq!(files, expected);
    assert_eq!(
        run.of("pypi"),
        ["pypi-publish runner_llm-0.1.0-py3-none-manylinux_2_17_aarch64.whl \
          runner_llm-0.1.0-py3-none-manylinux_2_17_x86_64.whl"]
    );
    assert_eq!(
        run.of("npm"),
        [
            "npm view runner-llm-linux-x64@0.1.0 version",
            "npm publish ./target/gathered/runner-llm-linux-x64-0.1.0.tgz --provenance --access public",
            "npm view runner-llm-linux-arm64@0.1.0 version",
            "npm publish ./target/gathered/runner-llm-linux-arm64-0.1.0.tgz --provenance --access public",
            "npm view runner-llm@0.1.0 version",
            "npm publish ./target/gathered/runner-llm-0.1.0.tgz --provenance --access public",
        ]
    );
    let digest = format!("sha256:{:064}", 7);
    assert_eq!(
        run.of("image"),
        [
            "cosign login ghcr.io --username somebody --password-stdin",
            "podman manifest create runner",
            "podman manifest add runner \
             oci-archive:target/gathered/runner-0.1.0-aarch64-unknown-linux-musl.oci.tar",
            "podman manifest add runner \
             oci-archive:target/gathered/runner-0.1.0-x86_64-unknown-linux-musl.oci.tar",
            "podman manifest push --all --digestfile digest runner docker://ghcr.io/owner/runner:0.1.0",
            &format!("cosign sign --yes --recursive ghcr.io/owner/runner@{digest}"),
            &format!("attest origin: ghcr.io/owner/runner@{digest}"),
            "podman manifest push --all runner docker://ghcr.io/owner/runner:latest",
        ]
    );
    assert_eq!(run.of("pages"), ["deploy-pages index.html"]);
    assert_eq!(run.of("publish"), ["gh release edit v0.1.0 --draft=false --latest"]);
    // Built, tested and attested before anything is public; shown when everything is up.
    for arch in ARCH {
        let built = format!("cargo xtask package all --target {arch}-unknown-linux-musl");
        assert!(at(&run, &built) < at(&run, "--gather"));
    }
    assert!(at(&run, "test: cargo xtask test") < at(&run, "--gather"));
    assert!(at(&run, "attest parts runner-0.1.0-aarch64") < at(&run, "gh release create"));
    let last = run.log.len() - 1;
    assert_eq!(at(&run, "gh release edit"), last);
}

#[track_caller]
fn publishes_nothing(run: &Run, failed: &[&str]) {
    assert_eq!(run.with(End::Failed), failed, "{:#?} {}", run.log, run.said);
    let ended = run.with(End::Skipped);
    for job in PUBLIC {
        assert!(ended.contains(&job), "{job} ran: {:#?}", run.log);
        assert!(run.of(job).is_empty());
    }
}

#[test]
fn a_dry_run_does_everything_but_publish() {
    let run =
        run(&Event { git_ref: "refs/heads/a-branch", dry_run: Some(true), ..Event::default() });
    publishes_nothing(&run, &[]);
    let done = ["check", "gather", "package", "site", "test"];
    assert_eq!(run.with(End::Done), done, "{}", run.said);
    assert!(!run.log.iter().any(|line| line.contains("--check")));
}

/// A release by hand is of a tag, also where a branch has the tag's name.
#[test]
fn a_branch_publishes_nothing() {
    for git_ref in ["refs/heads/main", "refs/heads/v0.1.0"] {
        let run = run(&Event { git_ref, dry_run: Some(false), ..Event::default() });
        publishes_nothing(&run, &["check"]);
        assert!(run.said.contains("expected `v0.1.0`"), "{}", run.said);
    }
}

#[test]
fn a_tag_of_another_version_publishes_nothing() {
    let run = run(&Event { git_ref: "refs/tags/v0.2.0", ..Event::default() });
    publishes_nothing(&run, &["check"]);
    assert_eq!(run.log.len(), 1, "nothing is built");
}

#[test]
fn a_failed_test_or_package_publishes_nothing() {
    for (breaks, failed) in [
        ("test: cargo xtask test", "test"),
        ("package: cargo xtask package all --target aarch64*", "package"),
        ("site: cargo xtask guide", "site"),
        ("gather: cargo xtask package formula *", "gather"),
    ] {
        publishes_nothing(&run(&Event { breaks, ..of_tag() }), &[failed]);
    }
}

#[test]
fn a_package_that_is_missing_or_changed_publishes_nothing() {
    let forgets = "runner-llm_0.1.0_arm64.deb";
    let ended = run(&Event { forgets, ..of_tag() });
    publishes_nothing(&ended, &["gather"]);
    let wanted = "aarch64-unknown-linux-musl/runner-llm_0.1.0_arm64.deb is missing";
    assert!(ended.said.contains(wanted), "{}", ended.said);
    let spoils = "runner-llm-linux-x64-0.1.0.tgz";
    let ended = run(&Event { spoils, ..of_tag() });
    publishes_nothing(&ended, &["gather"]);
    let wanted = "runner-llm-linux-x64-0.1.0.tgz is not the file whose digest SHA256SUMS has";
    assert!(ended.said.contains(wanted), "{}", ended.said);
}

#[test]
fn what_is_not_attested_is_not_published() {
    let breaks = "attest: attest parts runner-0.1.0-aarch64*";
    let run = run(&Event { breaks, ..of_tag() });
    assert_eq!(run.with(End::Failed), ["attest"]);
    for job in PUBLIC {
        assert!(job == "attest" || run.of(job).is_empty(), "{job}");
    }
}

/// Users see a release when all of it is there.
#[test]
fn a_release_stays_a_draft_until_everything_is_up() {
    let workflow = Workflow::of("release.yml");
    let (_, publish) = workflow.jobs().find(|(name, _)| *name == "publish").unwrap();
    assert_eq!(list(&publish["needs"]), ["pypi", "npm", "image", "pages"]);
    for (breaks, failed) in [
        ("npm: npm publish ./target/gathered/runner-llm-0*", "npm"),
        ("image: cosign sign *", "image"),
    ] {
        let run = run(&Event { breaks, ..of_tag() });
        assert_eq!(run.with(End::Failed), [failed], "{}", run.said);
        assert_eq!(run.with(End::Skipped), ["publish"]);
        assert!(!run.log.iter().any(|line| line.contains("gh release edit")));
        // An unsigned image does not become the latest.
        assert!(failed != "image" || !run.log.iter().any(|line| line.ends_with(":latest")));
    }
}

/// A second try, by hand and of the tag, goes on where the first one failed.
#[test]
fn a_second_try_publishes_the_rest() {
    let published = "runner-llm-linux-x64@0.1.0 runner-llm-linux-arm64@0.1.0";
    let run = run(&Event { dry_run: Some(false), published, ..of_tag() });
    assert_eq!(run.with(End::Done).len(), run.ends.len(), "{}", run.said);
    let calls = run.of("npm");
    let put: Vec<&&str> = calls.iter().filter(|call| call.starts_with("npm publish")).collect();
    assert_eq!(
        put,
        [&"npm publish ./target/gathered/runner-llm-0.1.0.tgz --provenance --access public"]
    );
}

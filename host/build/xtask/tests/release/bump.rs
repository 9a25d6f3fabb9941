//! The version is raised everywhere or nowhere.

use std::collections::BTreeSet;
use std::process::Command;

use super::{FILES, Scratch, read, root, xtask};

const CHANGELOG: &str = "# Changelog\n\n## [Unreleased]\n\n### Reports\n\n- A page.\n\n## [0.1.0] - 2026-01-02\n\n- All.\n";

/// Lines that two texts have in one place and that differ.
fn changed(old: &str, new: &str) -> BTreeSet<(String, String)> {
    assert_eq!(old.lines().count(), new.lines().count());
    let lines = old.lines().zip(new.lines()).filter(|(old, new)| old != new);
    lines.map(|(old, new)| (old.to_owned(), new.to_owned())).collect()
}

#[test]
fn a_version_is_raised_everywhere() {
    let scratch = Scratch::new(CHANGELOG);
    let old = FILES.map(|file| scratch.read(file));
    let printed = scratch.xtask(&["release", "0.2.0"]).well();
    assert!(printed.contains("git tag --annotate v0.2.0 --message 'runner 0.2.0'\n"), "{printed}");
    let raised =
        BTreeSet::from([("version = \"0.1.0\"".to_owned(), "version = \"0.2.0\"".to_owned())]);
    for (file, old) in FILES.iter().zip(&old).take(4) {
        assert_eq!(changed(old, &scratch.read(file)), raised, "{file}");
    }
    let changelog = scratch.read("CHANGELOG.md");
    let (_, dated) = changelog.split_once("## [Unreleased]\n\n## [0.2.0] - ").unwrap();
    assert_eq!(&dated[10..], "\n\n### Reports\n\n- A page.\n\n## [0.1.0] - 2026-01-02\n\n- All.\n");
    let status = scratch.git(&["status", "--porcelain"]);
    assert_eq!(status.lines().count(), FILES.len(), "nothing else is written");
    scratch.commit();
    scratch.xtask(&["release", "--check", "v0.2.0"]).well();
    assert_eq!(scratch.xtask(&["release-notes"]).well(), "### Reports\n\n- A page.\n");
    // Nothing new stands in the open section.
    assert_eq!(scratch.xtask(&["release", "0.3.0"]).badly().len(), 1);
}

/// Our own packages have the old version before, and packages of others stay as they are.
#[test]
fn lock_files_match_the_workspace() {
    let members = Command::new("cargo")
        .current_dir(root())
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .output()
        .unwrap();
    let members: serde_json::Value = serde_json::from_slice(&members.stdout).unwrap();
    let members: BTreeSet<String> = (members["packages"].as_array().unwrap().iter())
        .map(|package| package["name"].as_str().unwrap().to_owned())
        .collect();
    let scratch = Scratch::new(CHANGELOG);
    scratch.xtask(&["release", "0.2.0"]).well();
    let raised = |file: &str| -> BTreeSet<String> {
        let text = scratch.read(file);
        let packages = text.split("[[package]]\nname = \"").skip(1).filter(|package| {
            package.contains("\"\nversion = \"0.2.0\"\n") && !package.contains("\nsource = ")
        });
        packages.map(|package| package.split('"').next().unwrap().to_owned()).collect()
    };
    assert_eq!(raised("Cargo.lock"), members);
    for lock in ["tests/fuzz/Cargo.lock", "tests/wasi3/Cargo.lock"] {
        let raised = raised(lock);
        assert!(!raised.is_empty() && raised.is_subset(&members), "{lock}: {raised:?}");
    }
    let locks = Command::new("git").current_dir(root()).args(["ls-files", "*Cargo.lock"]).output();
    let locks = String::from_utf8(locks.unwrap().stdout).unwrap();
    assert!(locks.lines().all(|lock| FILES.contains(&lock)), "{locks}");
}

#[test]
fn the_first_release_keeps_its_number() {
    let scratch = Scratch::new("# Changelog\n\n## [0.1.0] - not released yet\n\n- All.\n");
    let refused = scratch.xtask(&["release", "--check", "v0.1.0"]).badly().concat();
    assert!(refused.contains("no section of 0.1.0 with a date"), "{refused}");
    scratch.xtask(&["release", "0.1.0"]).well();
    assert_eq!(scratch.git(&["status", "--porcelain"]), " M CHANGELOG.md\n");
    scratch.xtask(&["release", "--check", "v0.1.0"]).well();
}

#[test]
fn mistakes_are_listed_at_once_and_nothing_is_written() {
    let scratch = Scratch::new(&CHANGELOG.replace("- A page.\n", ""));
    scratch.write("notes.txt", "");
    let before = FILES.map(|file| scratch.read(file));
    assert_eq!(
        scratch.xtask(&["release", "0.0.9"]).badly(),
        [
            "the tree is not committed:",
            "?? notes.txt",
            "0.0.9 is not above 0.1.0, the version in Cargo.toml",
            "CHANGELOG.md: expected `## [Unreleased]` as the first section, with entries",
        ]
    );
    for wrong in ["0.1.0", "v0.2", "0.2", "0.2.0-rc.1", "0.2.0+5", ""] {
        let mistakes = scratch.xtask(&["release", wrong]).badly();
        let is_named = |mistake: &String| {
            mistake.contains("0.1.0 is not above 0.1.0") || mistake.contains("MAJOR.MINOR.PATCH")
        };
        assert!(mistakes.iter().any(is_named), "{wrong}: {mistakes:?}");
    }
    assert_eq!(FILES.map(|file| scratch.read(file)), before);
}

#[test]
fn a_tag_that_is_not_the_version_is_refused() {
    let scratch = Scratch::new(CHANGELOG);
    scratch.xtask(&["release", "--check", "v0.1.0"]).well();
    for tag in ["v0.2.0", "0.1.0", "refs/heads/v0.1.0", "v0.1.0-rc.1", ""] {
        assert_eq!(
            scratch.xtask(&["release", "--check", tag]).badly(),
            [format!("tag `{tag}`: expected `v0.1.0`, the version in Cargo.toml")]
        );
    }
}

/// This tree can be released: its changelog has the form that a release reads.
#[test]
fn this_tree_has_notes() {
    xtask(&root(), &["release-notes", &super::version(&root())]).well();
    let refused = xtask(&root(), &["release-notes", "99.0.0"]).badly();
    assert_eq!(refused, ["CHANGELOG.md has no section of `99.0.0`"]);
}

/// Documents that name the version would be wrong after the next release.
#[test]
fn documents_name_no_version() {
    let version = super::version(&root());
    let entries = std::fs::read_dir(root().join("host/guide/src")).unwrap();
    let pages = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    for page in pages.chain([root().join("README.md")]) {
        let text = read(&page);
        for before in ["runner ", "runner-", "llm-", "llm_", "v", "=="] {
            let word = format!("{before}{version}");
            let ends =
                text.match_indices(&word).map(|(at, _)| text[at + word.len()..].chars().next());
            let mut ends = ends.filter(|next| next.is_none_or(|next| !next.is_alphanumeric()));
            assert_eq!(ends.next(), None, "{} names {word}", page.display());
        }
    }
}

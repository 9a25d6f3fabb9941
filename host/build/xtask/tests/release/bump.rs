//! The version is raised everywhere or nowhere.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use super::{FILES, PYTHON, Scratch, read, root, xtask};

const CHANGELOG: &str = "# Changelog\n\n## [Unreleased]\n\n### Reports\n\n- A page.\n\n## [0.1.0] - 2026-01-02\n\n- All.\n";

/// Lines that two texts have in one place and that differ.
fn changed(old: &str, new: &str) -> BTreeSet<(String, String)> {
    assert_eq!(old.lines().count(), new.lines().count());
    let lines = old.lines().zip(new.lines());
    lines
        .filter(|(old, new)| old != new)
        .map(|(old, new)| (old.to_owned(), new.to_owned()))
        .collect()
}

#[test]
fn a_version_is_raised_everywhere() {
    let scratch = Scratch::new(CHANGELOG);
    let old: Vec<String> = FILES.iter().map(|file| scratch.read(file)).collect();
    let told = scratch.xtask(&["release", "0.2.0", "--date", "2026-03-04"]).well();
    assert!(told.contains("git tag --annotate v0.2.0 --message 'runner 0.2.0'\n"), "{told}");
    let raised =
        BTreeSet::from([("version = \"0.1.0\"".to_owned(), "version = \"0.2.0\"".to_owned())]);
    for (file, old) in FILES.iter().zip(&old).take(4) {
        assert!(told.contains(&format!("wrote {file}\n")), "{told}");
        assert_eq!(changed(old, &scratch.read(file)), raised, "{file}");
    }
    assert_eq!(
        scratch.read("CHANGELOG.md"),
        "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-03-04\n\n### Reports\n\n- A page.\n\n\
         ## [0.1.0] - 2026-01-02\n\n- All.\n"
    );
    let status = scratch.git(&["status", "--porcelain"]);
    let mut left: Vec<&str> = status.lines().map(|line| &line[3..]).collect();
    left.retain(|file| *file != PYTHON);
    left.sort_unstable();
    let mut files = FILES.to_vec();
    files.sort_unstable();
    assert_eq!(left, files, "nothing else is written");
    scratch.commit();
    assert_eq!(
        scratch.xtask(&["release", "--check", "v0.2.0"]).well(),
        "v0.2.0 is the version of this tree\n"
    );
    assert_eq!(scratch.xtask(&["release-notes"]).well(), "### Reports\n\n- A page.\n");
}

/// A package of ours that did not have the old version would stay behind, and one of somebody else
/// that has it must not be touched.
#[test]
fn lock_files_name_what_the_workspace_has() {
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
        let packages = text.split("[[package]]\nname = \"").skip(1);
        packages
            .filter(|package| {
                package.contains("\"\nversion = \"0.2.0\"\n") && !package.contains("\nsource = ")
            })
            .map(|package| package.split('"').next().unwrap().to_owned())
            .collect()
    };
    assert_eq!(raised("Cargo.lock"), members);
    let of_fuzzer = raised("tests/fuzz/Cargo.lock");
    assert!(of_fuzzer.contains("fuzz-targets") && !of_fuzzer.contains("fuzz"));
    assert!(of_fuzzer.is_subset(&members));
}

#[test]
fn the_first_release_keeps_its_number() {
    let scratch = Scratch::new("# Changelog\n\n## [0.1.0] - not released yet\n\n- All.\n");
    assert_eq!(
        scratch.xtask(&["release", "--check", "v0.1.0"]).badly(),
        [
            "CHANGELOG.md:3: the section of 0.1.0 has no date; `cargo xtask release 0.1.0` gives it one"
        ]
    );
    scratch.xtask(&["release", "0.1.0", "--date", "2026-03-04"]).well();
    assert_eq!(scratch.git(&["status", "--porcelain"]), " M CHANGELOG.md\n");
    assert_eq!(
        scratch.read("CHANGELOG.md"),
        "# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-03-04\n\n- All.\n"
    );
    scratch.xtask(&["release", "--check", "v0.1.0"]).well();
}

/// All mistakes of one try, and a tree as it was.
#[test]
fn mistakes_are_told_at_once_and_nothing_is_written() {
    let scratch = Scratch::new(&CHANGELOG.replace("- A page.\n", ""));
    scratch.write("notes.txt", "");
    let before: Vec<String> = FILES.iter().map(|file| scratch.read(file)).collect();
    assert_eq!(
        scratch.xtask(&["release", "0.0.9", "--date", "today"]).badly(),
        [
            "the tree has 1 files that are not committed: notes.txt; commit or stash them",
            "--date today: expected YYYY-MM-DD",
            "CHANGELOG.md:3: the section is empty; list what users see of this version",
            "0.0.9 is not above 0.1.0, the version in Cargo.toml",
        ]
    );
    let told = scratch.xtask(&["release", "0.1.0"]).badly();
    assert!(
        told.contains(&"0.1.0 is not above 0.1.0, the version in Cargo.toml".to_owned()),
        "{told:?}"
    );
    let told = scratch.xtask(&["release", "v0.2"]).badly();
    assert!(
        told[1].starts_with("version `v0.2`: expected MAJOR.MINOR.PATCH, such as 0.2.0: "),
        "{told:?}"
    );
    let after: Vec<String> = FILES.iter().map(|file| scratch.read(file)).collect();
    assert_eq!(after, before);
    assert_eq!(scratch.git(&["status", "--porcelain"]), "?? notes.txt\n");
}

#[test]
fn files_of_another_version_are_named() {
    let scratch = Scratch::new(CHANGELOG);
    let lock = scratch.read("Cargo.lock");
    let old = "name = \"xtask\"\nversion = \"0.1.0\"";
    assert!(lock.contains(old));
    scratch.write("Cargo.lock", &lock.replace(old, "name = \"xtask\"\nversion = \"0.0.1\""));
    scratch.write(PYTHON, "[project]\nname = \"runner-llm\"\nversion = \"0.0.2\"\n");
    scratch.commit();
    let behind = [
        "Cargo.lock: xtask 0.0.1: expected 0.1.0, the version in Cargo.toml; write \
         `version.workspace = true` in its Cargo.toml, and let cargo update the lock file",
        "host/python/pyproject.toml: version 0.0.2: expected 0.1.0, the version in Cargo.toml",
    ];
    assert_eq!(scratch.xtask(&["release", "0.2.0"]).badly(), behind);
    assert_eq!(scratch.xtask(&["release", "--check", "v0.1.0"]).badly(), behind);
    // One that takes its version from elsewhere has none to raise.
    scratch.write("Cargo.lock", &lock);
    scratch.write(PYTHON, "[project]\nname = \"runner-llm\"\ndynamic = [\"version\"]\n");
    scratch.commit();
    scratch.xtask(&["release", "0.2.0"]).well();
    assert!(scratch.read(PYTHON).contains("dynamic"));
}

#[test]
fn a_python_package_with_a_version_is_raised_too() {
    let scratch = Scratch::new(CHANGELOG);
    scratch.write(PYTHON, "[project]\nversion = '0.1.0' # ours\n");
    scratch.commit();
    scratch.xtask(&["release", "1.0.0"]).well();
    assert_eq!(scratch.read(PYTHON), "[project]\nversion = '1.0.0' # ours\n");
}

#[test]
fn a_tag_that_is_not_the_version_is_refused() {
    let scratch = Scratch::new(CHANGELOG);
    scratch.xtask(&["release", "--check", "v0.1.0"]).well();
    for tag in ["v0.2.0", "0.1.0", "refs/heads/v0.1.0", "v0.1.0-rc.1", ""] {
        assert_eq!(
            scratch.xtask(&["release", "--check", tag]).badly(),
            [format!("tag `{tag}`: expected `v0.1.0`, from the version in Cargo.toml")]
        );
    }
}

#[test]
fn notes_are_a_section_of_the_changelog() {
    let scratch = Scratch::new(CHANGELOG);
    let notes = |version: &str| scratch.xtask(&["release-notes", version]);
    assert_eq!(notes("0.1.0").well(), "- All.\n");
    assert_eq!(notes("unreleased").well(), "### Reports\n\n- A page.\n");
    assert_eq!(
        notes("0.3.0").badly(),
        ["CHANGELOG.md has no section of `0.3.0`; it has Unreleased, 0.1.0"]
    );
}

/// This tree can be released: its changelog and its versions have the forms that a release reads.
#[test]
fn this_tree_has_one_version() {
    let version = super::version(&root());
    xtask(&root(), &["release-notes", &version]).well();
    let told = xtask(&root(), &["release", "--check", "none"]).badly();
    let not_yet = |mistake: &String| {
        mistake.starts_with("tag `none`: ")
            || mistake.contains(&format!("cargo xtask release {version}"))
    };
    assert!(told.iter().all(not_yet), "{told:?}");
}

/// Documents that name the version would be wrong after the next release.
#[test]
fn documents_name_no_version() {
    let version = super::version(&root());
    let guide = root().join("host/guide/src");
    let mut pages = vec![root().join("README.md")];
    let entries = std::fs::read_dir(&guide).unwrap();
    pages.extend(entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()));
    for page in pages {
        let text = read(&page);
        for word in [
            format!("runner {version}"),
            format!("runner-{version}"),
            format!("llm-{version}"),
            format!("llm_{version}"),
            format!("v{version}"),
            format!("=={version}"),
        ] {
            assert!(!names(&text, &word), "{} names {word}", page.display());
        }
    }
}

/// True if a text has a word that no further number or letter ends.
fn names(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let next = text[at + word.len()..].chars().next();
        next.is_none_or(|next| !next.is_alphanumeric())
    })
}

/// Paths of the real tree, so that the list above does not fall behind it.
#[test]
fn every_lock_file_is_raised() {
    let output =
        Command::new("git").current_dir(root()).args(["ls-files", "*Cargo.lock"]).output().unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    for lock in listed.lines() {
        assert!(FILES.contains(&lock), "{lock} is not raised");
    }
    assert!(FILES.iter().all(|file| Path::new(&root()).join(file).exists()));
}

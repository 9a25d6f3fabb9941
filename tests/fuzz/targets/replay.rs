//! Replays the committed inputs of every target, a case for each former finding, without a fuzzer.

#![allow(clippy::disallowed_macros, reason = "a program of its own")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fuzz_targets::TARGETS;

/// Most bytes of a committed input.
const BYTES: u64 = 4 << 10;
/// Most inputs in a target's corpus.
const INPUTS: usize = 48;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Every committed input keeps its target's promises. A failure names the file first.
#[test]
fn inputs_keep_their_promises() {
    for (name, target) in TARGETS {
        for kind in ["corpus", "cases"] {
            let folder = fuzz().join(kind).join(name);
            if kind == "cases" && !folder.exists() {
                continue;
            }
            for input in names(&folder) {
                let path = folder.join(input);
                eprintln!("{kind}: {name}: {}", path.display());
                target(&std::fs::read(&path).unwrap());
            }
        }
        // Bytes that no corpus begins with.
        target(b"");
    }
}

/// Corpora are small, so that replaying them takes no time.
#[test]
fn inputs_are_few_and_small() {
    for (name, _) in TARGETS {
        let folder = fuzz().join("corpus").join(name);
        let inputs = names(&folder);
        assert!((1..=INPUTS).contains(&inputs.len()), "{name}: {} inputs", inputs.len());
        for input in inputs {
            let path = folder.join(input);
            let length = path.metadata().unwrap().len();
            assert!(length <= BYTES, "{}: {length} bytes", path.display());
        }
    }
}

/// Each target has a binary for the fuzzer, and there is nothing else.
#[test]
fn every_target_has_a_binary_and_every_folder_a_target() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let manifest = std::fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    for name in &targets {
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name}");
        let binary = std::fs::read_to_string(fuzz().join(format!("fuzz_targets/{name}.rs")));
        assert!(binary.unwrap().contains(&format!("fuzz_targets::{name}(")), "{name}");
    }
    let binaries: BTreeSet<String> = names(&fuzz().join("fuzz_targets"))
        .into_iter()
        .map(|name| name.trim_end_matches(".rs").to_owned())
        .collect();
    assert_eq!(binaries, targets);
    assert_eq!(names(&fuzz().join("corpus")), targets);
    assert!(names(&fuzz().join("cases")).is_subset(&targets));
}

/// The fuzzer builds the versions of dependencies that ship.
#[test]
fn the_fuzzers_lock_file_follows_the_repositorys() {
    let packages = |path: PathBuf| -> BTreeSet<(String, String)> {
        let text = std::fs::read_to_string(path).unwrap();
        let value =
            |line: &str, key: &str| Some(line.strip_prefix(key)?.trim_matches('"').to_owned());
        let lines: Vec<&str> = text.lines().collect();
        lines
            .windows(2)
            .filter_map(|pair| Some((value(pair[0], "name = ")?, value(pair[1], "version = ")?)))
            .collect()
    };
    let ours = packages(fuzz().join("../../Cargo.lock"));
    let its_own = ["fuzz", "libfuzzer-sys"];
    let other: Vec<_> = packages(fuzz().join("Cargo.lock"))
        .difference(&ours)
        .filter(|(name, _)| !its_own.contains(&name.as_str()))
        .cloned()
        .collect();
    assert!(
        other.is_empty(),
        "copy Cargo.lock to tests/fuzz and run `cargo xtask fuzz`, which puts the fuzzer's own packages back: {other:?}"
    );
}

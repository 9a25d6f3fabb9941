//! The rules between crates: who depends on whom, which crates use wasmtime, tokio and clap, who
//! prints, and who reads a clock.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Every crate below `host/`, and the crates there that it may depend on. Each crate comes after
/// those it depends on, so the graph has no cycle.
const GRAPH: [(&str, &[&str]); 25] = [
    ("model", &[]),
    ("prefetch", &[]),
    ("tokenizer", &["prefetch"]),
    ("shipped", &[]),
    ("componentize", &[]),
    ("toolchain", &[]),
    ("xtask", &["toolchain"]),
    ("devices", &["model"]),
    ("fleet", &["model"]),
    ("hub", &["model"]),
    ("launch", &["model"]),
    ("shelf", &["model"]),
    ("result", &["devices", "model"]),
    ("reader", &["model"]),
    ("simulator", &["model"]),
    ("load", &["model", "prefetch", "result"]),
    ("mock", &["model", "reader", "simulator"]),
    ("plugins", &["model", "shelf", "tokenizer"]),
    ("audit", &["model", "result"]),
    ("search", &["model", "result"]),
    ("scenario", &["model", "reader", "result"]),
    (
        "report",
        &["audit", "devices", "model", "result", "scenario", "search"],
    ),
    ("lab", &["model", "reader", "report", "result", "search"]),
    (
        "session",
        &[
            "devices",
            "hub",
            "load",
            "model",
            "plugins",
            "reader",
            "report",
            "result",
            "scenario",
            "shelf",
            "tokenizer",
        ],
    ),
    (
        "runner",
        &[
            "audit",
            "componentize",
            "devices",
            "fleet",
            "hub",
            "lab",
            "launch",
            "load",
            "mock",
            "model",
            "plugins",
            "reader",
            "report",
            "result",
            "scenario",
            "search",
            "session",
            "shelf",
            "shipped",
            "toolchain",
        ],
    ),
];

/// Crates of others that only these may use.
const RESERVED: [(&str, &[&str]); 6] = [
    // A program that reads results or scenarios links no sandbox.
    ("wasmtime", &["plugins"]),
    // `model` has it for its clock alone: on a runtime whose time is paused, the clock gives
    // virtual time.
    (
        "tokio",
        &[
            "fleet", "launch", "load", "mock", "model", "runner", "session",
        ],
    ),
    ("hyper", &["load", "mock", "session"]),
    // Nothing but `runner fetch` downloads.
    ("ureq", &["hub"]),
    ("clap", &["runner"]),
    ("clap_complete", &["runner"]),
];

/// The folder that holds the crates.
fn host() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What a crate's `Cargo.toml` lists in a table of dependencies.
fn dependencies(manifest: &toml::Table, table: &str) -> BTreeSet<String> {
    let listed = manifest.get(table).and_then(toml::Value::as_table);
    listed
        .into_iter()
        .flatten()
        .map(|(name, _)| name.clone())
        .collect()
}

/// Every crate below `host/` by its name, with its manifest.
fn manifests() -> BTreeMap<String, toml::Table> {
    let mut manifests = BTreeMap::new();
    for entry in std::fs::read_dir(host()).unwrap() {
        let path = entry.unwrap().path();
        let Ok(text) = std::fs::read_to_string(path.join("Cargo.toml")) else {
            continue;
        };
        let manifest: toml::Table = text.parse().unwrap();
        let name = manifest["package"]["name"].as_str().unwrap().to_owned();
        assert_eq!(Some(name.as_str()), path.file_name().unwrap().to_str());
        manifests.insert(name, manifest);
    }
    manifests
}

/// The Rust files of the crates, as `crate/path.rs`: the path below the crate's `src`.
pub fn sources() -> BTreeMap<String, String> {
    let mut sources = BTreeMap::new();
    for name in manifests().into_keys() {
        let root = host().join(&name).join("src");
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    let below = path.strip_prefix(&root).unwrap().to_str().unwrap();
                    let below = below.replace('\\', "/");
                    let text = std::fs::read_to_string(&path).unwrap();
                    sources.insert(format!("{name}/{below}"), text);
                }
            }
        }
    }
    assert!(sources.len() > 300, "{} sources", sources.len());
    sources
}

/// The code of a file without its comments.
pub fn without_comments(text: &str) -> String {
    let code = text.lines().map(|line| {
        let at = line.find("//").filter(|at| !line[..*at].ends_with(':'));
        &line[..at.unwrap_or(line.len())]
    });
    code.collect::<Vec<_>>().join("\n")
}

/// The files, but for those excepted, whose code holds one of the words.
fn holding(words: &[&str], excepted: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for (name, text) in sources() {
        let code = without_comments(&text);
        for word in words {
            if !excepted(&name) && code.contains(word) {
                found.push(format!("{name}: {word}"));
            }
        }
    }
    found
}

/// Each crate depends on those that the table names, neither more nor fewer, and the table has no
/// cycle.
#[test]
fn crates_depend_on_each_other_as_declared() {
    let manifests = manifests();
    let mut declared: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, allowed) in GRAPH {
        for other in allowed {
            assert!(
                declared.contains_key(other),
                "{name} stands before {other}, which it depends on"
            );
        }
        declared.insert(name, allowed.iter().copied().collect());
    }
    let of_host = |name: &String| manifests.contains_key(name);
    let found: BTreeMap<&str, BTreeSet<String>> = (manifests.iter())
        .map(|(name, manifest)| {
            let mut uses = dependencies(manifest, "dependencies");
            uses.extend(dependencies(manifest, "build-dependencies"));
            uses.retain(of_host);
            (name.as_str(), uses)
        })
        .collect();
    let found: BTreeMap<&str, BTreeSet<&str>> = (found.iter())
        .map(|(name, uses)| (*name, uses.iter().map(String::as_str).collect()))
        .collect();
    assert_eq!(found, declared);
}

/// A test may use what its crate may not: the `runner`'s tests call every crate, and tests of
/// statistics draw runs from the simulator. No other crate has such a need.
#[test]
fn few_crates_have_tests_that_depend_on_more_crates() {
    let manifests = manifests();
    for (name, manifest) in &manifests {
        let mut extra = dependencies(manifest, "dev-dependencies");
        extra.retain(|name| manifests.contains_key(name));
        let allowed: &[&str] = match name.as_str() {
            "runner" => &["tokenizer"],
            "report" | "result" | "search" => &["simulator"],
            _ => &[],
        };
        assert_eq!(
            extra,
            allowed.iter().map(|name| (*name).to_owned()).collect(),
            "{name}"
        );
    }
}

/// The mock engine checks how replies are read, so it must not share the code that reads them.
#[test]
fn the_mock_engine_shares_no_code_with_the_load() {
    let (_, of_mock) = GRAPH.iter().find(|(name, _)| *name == "mock").unwrap();
    for used in of_mock.iter() {
        assert!(
            !["load", "session", "plugins", "runner"].contains(used),
            "mock uses {used}"
        );
    }
    let found = holding(
        &["model::frame", "load::", "session::", "plugins::"],
        |name| !name.starts_with("mock/"),
    );
    assert_eq!(found, [""; 0]);
}

#[test]
fn only_some_crates_use_the_large_dependencies() {
    for (dependency, allowed) in RESERVED {
        let manifests = manifests();
        let users: Vec<&str> = (manifests.iter())
            .filter(|(_, manifest)| dependencies(manifest, "dependencies").contains(dependency))
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(users, allowed, "who depends on {dependency}");
        let testers: Vec<&str> = (manifests.iter())
            .filter(|(_, manifest)| dependencies(manifest, "dev-dependencies").contains(dependency))
            .map(|(name, _)| name.as_str())
            .collect();
        let tested: &[&str] = match dependency {
            "wasmtime" => &["runner"],
            _ => &[],
        };
        assert_eq!(testers, tested, "whose tests depend on {dependency}");
        let words = [format!("{dependency}::"), format!("use {dependency}")];
        let words = words.each_ref().map(String::as_str);
        let found = holding(&words, |name| {
            allowed
                .iter()
                .any(|user| name.starts_with(&format!("{user}/")))
        });
        assert_eq!(found, [""; 0]);
    }
}

/// (11) stdout carries the result, stderr everything else: only `cli` prints. `xtask` and
/// `componentize` are programs of their own.
#[test]
fn only_the_command_line_prints() {
    let words = ["println!", "print!", "dbg!", "stdout()", "stderr()"];
    let found = holding(&words, |name| {
        ["runner/main.rs", "componentize/main.rs"].contains(&name)
            || name.starts_with("runner/cli/")
            || name.starts_with("xtask/")
    });
    assert_eq!(found, [""; 0]);
}

/// What the runner writes by itself is its user's alone, because `model::private` writes it.
/// Elsewhere go what the user names, as a page or a new plugin's project, and what everybody may
/// download.
#[test]
fn only_one_place_makes_private_files() {
    let words = [
        "fs::write(",
        "File::create",
        "File::options()",
        "OpenOptions::new",
        "fs::create_dir",
        "DirBuilder::new",
    ];
    let elsewhere = [
        "model/private.rs",
        // The folder above all runs, which people share.
        "report/folder.rs",
        "runner/cli/mock.rs",
        "runner/cli/plugin/record.rs",
        "runner/cli/report/drawn.rs",
        "runner/cli/report/output.rs",
        "runner/cli/run.rs",
        // A module of tests alone.
        "audit/cases.rs",
    ];
    let folders = [
        "runner/author/",
        "plugins/case/",
        "hub/",
        "componentize/",
        "xtask/",
    ];
    let mut found = Vec::new();
    for (name, text) in sources() {
        let is_elsewhere = elsewhere.contains(&name.as_str())
            || folders.iter().any(|folder| name.starts_with(folder));
        let is_of_tests = name.contains("/tests/") || name.ends_with("/tests.rs");
        if is_elsewhere || is_of_tests {
            continue;
        }
        // A file's own tests stand at its end.
        let code = without_comments(text.split("#[cfg(test)]").next().unwrap_or_default());
        let held = words.iter().filter(|word| code.contains(**word));
        found.extend(held.map(|word| format!("{name}: {word}")));
    }
    assert_eq!(found, [""; 0]);
}

/// Instants of a run come from `model::clock` alone. Others have their own: the mock engine is a
/// server of its own, the recorder flushes by the wall, progress is drawn by the wall, a run's date
/// is asked of the system, and `xtask` measures no engine.
#[test]
fn only_the_clock_reads_a_clock() {
    let words = ["Instant::now", "SystemTime", "Timestamp::now", ".elapsed()"];
    let found = holding(&words, |name| {
        ["model/clock.rs", "report/record.rs"].contains(&name)
            || ["mock/", "runner/cli/", "xtask/"]
                .iter()
                .any(|folder| name.starts_with(folder))
    });
    assert_eq!(found, [""; 0]);
}

/// The root of every library says what the crate owns and what it leaves to others.
#[test]
fn every_crate_says_what_it_owns_and_what_it_leaves() {
    let mut libraries = 0;
    for (name, text) in sources() {
        if !name.ends_with("/lib.rs") {
            continue;
        }
        libraries += 1;
        let doc: Vec<&str> = text
            .lines()
            .map_while(|line| line.strip_prefix("//!"))
            .collect();
        let doc = doc.join("\n");
        for word in ["This crate owns", "It leaves"] {
            assert!(
                doc.contains(word),
                "{name} begins without a `//!` that has `{word}`"
            );
        }
    }
    assert_eq!(libraries, GRAPH.len() - 1, "all but xtask are libraries");
}

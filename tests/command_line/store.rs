//! The index of runs, from measuring to deleting.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::process::{Exit, Mock, run, runner, words};
use crate::support::results::random;

/// Runs a command of `runner store` in a folder, with the index there.
fn store(folder: &Path, line: &str) -> Exit {
    let mut command = runner();
    command.arg("store").args(words(line)).args(["--store", "data/runs.db"]);
    run(command.current_dir(folder))
}

/// The result of such a command in JSON.
#[track_caller]
fn result(folder: &Path, line: &str) -> Value {
    store(folder, &format!("{line} --format json")).with_code(0).json()
}

/// A folder with three runs: two that differ in their seeds, and one of another load.
fn measured() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mock = Mock::start(&["--ttft", "1ms", "--itl", "1ms"]);
    for (within, seed, users) in [("runs/lab", 1, 2), ("runs/lab", 2, 2), ("runs", 1, 3)] {
        let flags = format!(
            "--num-prompts 25 --random-output-len 3 --allow-invalid --output-dir {within} \
            --max-concurrency {users} --seed {seed} --set about.engine=vllm"
        );
        run(&mut random(&mock.url, folder.path(), &flags)).with_code(0);
    }
    folder
}

fn paths(rows: &Value) -> Vec<PathBuf> {
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| PathBuf::from(row["path"].as_str().unwrap())).collect()
}

#[test]
fn runs_are_added_listed_and_shown() {
    let folder = measured();
    let nothing = store(folder.path(), "list").with_code(3);
    assert!(nothing.stderr.contains("`runner store add runs`"), "{nothing:#?}");
    let added = store(folder.path(), "add runs --tag version=abc,node=n1").with_code(0);
    assert_eq!(added.stdout, "3 added, 0 updated\n");
    assert_eq!(added.stderr, "store: data/runs.db\n");
    let again = store(folder.path(), "add runs/lab nowhere --tag version=abd").with_code(3);
    assert_eq!(again.stdout, "0 added, 2 updated\n");
    assert!(again.stderr.contains("`nowhere` is not the folder of a run"), "{again:#?}");

    let rows = result(folder.path(), "list --engine v*");
    assert_eq!(rows.as_array().unwrap().len(), 3, "{rows:#}");
    assert_eq!(rows[1]["tags"], serde_json::json!({ "version": "abd", "node": "n1" }));
    let same = |key: &str| [rows[0][key] == rows[1][key], rows[1][key] == rows[2][key]];
    assert_eq!((same("scenario"), same("plan")), ([false, true], [false, true]), "{rows:#}");
    assert_eq!((same("plugins"), same("machine")), ([true; 2], [true; 2]), "{rows:#}");
    let started = |row: usize| rows[row]["started"].as_str().unwrap();
    assert!(started(0) >= started(1) && started(1) >= started(2), "{rows:#}");
    let text = store(folder.path(), "list --limit 1").with_code(0).stdout;
    assert!(text.lines().count() == 2 && text.contains("node=n1, version=abc"), "{text}");

    // Every figure is the summary's, with its interval.
    let shown = result(folder.path(), &format!("show {}", rows[0]["id"]));
    let summary = std::fs::read(paths(&rows)[0].join("summary.json")).unwrap();
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    let figure = |name: &str| {
        let figures = shown["figures"].as_array().unwrap().iter();
        let mut figures = figures.filter(|figure| figure["name"] == name);
        figures.next().unwrap_or_else(|| panic!("{name}: {shown:#}")).clone()
    };
    let rates = &summary["throughput"];
    let rate = figure("throughput.requests-per-s");
    assert_eq!(rate["value"], rates["requests-per-s"]);
    let interval = &rates["confidence"]["other-requests"]["requests-per-s"];
    assert_eq!([&rate["low"], &rate["high"]], [&interval["low"], &interval["high"]]);
    let figures = shown["figures"].as_array().unwrap();
    assert!(figures.iter().any(|figure| figure["low"].is_number()), "{shown:#}");
    assert_eq!(figure("ttft.p99")["value"], summary["metrics"]["ttft"]["percentiles"]["p99"]);
    assert_eq!(figure("ttft.mean")["unit"], "ms");
    let nobody = store(folder.path(), "show 77").with_code(3).stderr;
    assert!(nobody.contains("the index has no run 77"), "{nobody}");

    let mut query = runner();
    query.args(["store", "query", "SELECT count(*) AS runs FROM runs", "--format", "json"]);
    query.args(["--store", "data/runs.db"]);
    let answer = run(query.current_dir(folder.path())).with_code(0).json();
    assert_eq!((&answer["columns"][0], &answer["rows"][0][0]), (&"runs".into(), &3.into()));
    let mut drop = runner();
    drop.args(["store", "query", "DROP TABLE runs", "--store", "data/runs.db"]);
    let refused = run(drop.current_dir(folder.path())).with_code(2).stderr;
    assert!(refused.contains("expected one SELECT"), "{refused}");
    for tag in ["api-key=abc", "at=http://user:hush-hush@host", "x=sk-0123456789abcdef"] {
        let refused = store(folder.path(), &format!("add runs --tag {tag}")).with_code(2).stderr;
        assert!(refused.contains("the value seems to be a secret"), "{refused}");
        assert!(!refused.contains(tag), "{refused}");
    }
}

#[test]
fn runs_leave_the_index_and_folders_stay_unless_told() {
    let folder = measured();
    store(folder.path(), "add runs").with_code(0);
    let listed = paths(&result(folder.path(), "list"));
    let [other, new, old] = listed.as_slice() else { panic!("{listed:?}") };
    let kept = result(folder.path(), "prune --keep 1 --older-than 1d");
    assert_eq!(kept["removed"], serde_json::json!([]), "{kept:#}");
    let refused = store(folder.path(), "prune --delete").with_code(2).stderr;
    assert!(refused.contains("--older-than or --keep"), "{refused}");
    let pruned = store(folder.path(), "prune --keep 1 --delete").with_code(0);
    assert!(pruned.stdout.starts_with(&format!("deleted {}\n", old.display())), "{pruned:#?}");
    assert!(!old.exists() && new.exists());
    let moved = folder.path().join("moved");
    std::fs::rename(other, &moved).unwrap();
    let pruned = result(folder.path(), "prune --keep 0");
    assert_eq!(paths_of(&pruned["gone"]), [other.as_path()], "{pruned:#}");
    assert_eq!(paths_of(&pruned["removed"]), [new.as_path()], "{pruned:#}");
    assert!(new.exists());
    assert_eq!(result(folder.path(), "list"), serde_json::json!([]));
}

fn paths_of(texts: &Value) -> Vec<PathBuf> {
    let texts = texts.as_array().unwrap().iter();
    texts.map(|text| PathBuf::from(text.as_str().unwrap())).collect()
}

#[test]
fn a_folder_with_another_run_is_not_deleted() {
    let folder = measured();
    store(folder.path(), "add runs").with_code(0);
    let listed = paths(&result(folder.path(), "list"));
    let status = listed[2].join("status.json");
    let text = std::fs::read_to_string(&status).unwrap();
    let mut json: Value = serde_json::from_str(&text).unwrap();
    json["started"] = "2020-01-01T00:00:00Z".into();
    std::fs::write(&status, json.to_string()).unwrap();
    // The folder of a run that cannot be read stays too.
    std::fs::write(listed[1].join("status.json"), "{").unwrap();
    let refused = store(folder.path(), "prune --keep 0 --delete").with_code(3);
    assert!(refused.stderr.contains("is not in the form"), "{refused:#?}");
    assert!(refused.stdout.contains("1 removed because their folder is gone, 1 removed by age"));
    assert_eq!(listed.iter().map(|run| run.exists()).collect::<Vec<_>>(), [false, true, true]);
    assert_eq!(paths(&result(folder.path(), "list")), listed[1..2]);
}

#[test]
fn a_damaged_index_is_made_again() {
    let folder = measured();
    store(folder.path(), "add runs --tag version=abc").with_code(0);
    let made = result(folder.path(), "rebuild");
    assert_eq!([&made["added"], &made["updated"]], [0, 3], "{made:#}");
    let before = result(folder.path(), "list");
    assert_eq!(before[0]["tags"]["version"], "abc", "{before:#}");
    let path = folder.path().join("data/runs.db");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[..100].fill(0);
    std::fs::write(&path, bytes).unwrap();
    let _ = std::fs::remove_file(path.with_extension("db-wal"));
    let damaged = store(folder.path(), "list").with_code(3).stderr;
    assert!(damaged.contains("damaged") && damaged.contains("`runner store rebuild`"), "{damaged}");
    // A run without an end is left out.
    std::fs::remove_file(paths(&before)[2].join("status.json")).unwrap();
    let made = store(folder.path(), "rebuild runs").with_code(0);
    assert_eq!(made.stdout, "2 added, 0 updated, 1 left out because they have not ended\n");
    assert!(made.stderr.contains("runs.db.damaged; 0 runs could be read"), "{made:#?}");
    assert_eq!(paths(&result(folder.path(), "list")), paths(&before)[..2]);
}

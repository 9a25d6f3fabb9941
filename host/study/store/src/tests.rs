//! Runs made up by hand, and an index in a folder of the test.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;
use scenario::plan::Plan;

const PLAN: &str = include_str!("../../../show/report/src/cases/plan.json");

fn entry(path: &str, started: &str) -> Entry {
    let figure = |number: u32| Stored {
        name: format!("figure.{number}"),
        value: f64::from(number),
        low: Some(0.5),
        high: None,
        unit: "ms".into(),
    };
    let row = Row { path: path.into(), started: started.into(), ..entry::described(&plan(&[])) };
    Entry { row, figures: (0..50).map(figure).collect() }
}

/// The plan of the tests with other values at these places.
fn plan(changes: &[(&str, serde_json::Value)]) -> Plan {
    let mut plan: serde_json::Value = serde_json::from_str(PLAN).unwrap();
    for (place, value) in changes {
        let (above, key) = place.rsplit_once('/').unwrap();
        plan.pointer_mut(above).unwrap()[key] = value.clone();
    }
    serde_json::from_value(plan).unwrap()
}

fn new(folder: &tempfile::TempDir) -> Store {
    Store::open(&folder.path().join("runs.db"), Mode::Write).unwrap()
}

fn no_tags() -> BTreeMap<String, String> {
    BTreeMap::new()
}

#[test]
fn rows_come_newest_first_with_their_tags_and_figures() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = new(&folder);
    let tags = BTreeMap::from([("version".to_owned(), "abc".to_owned())]);
    for (path, day) in [("/a", 1), ("/b", 3), ("/c", 2)] {
        let run = entry(path, &format!("2026-01-0{day}T00:00:00.000Z"));
        assert_eq!(store.add(&run, &tags).unwrap(), Added::New);
    }
    let more = BTreeMap::from([("node".to_owned(), "x".to_owned())]);
    let mut again = entry("/c", "2026-01-04T00:00:00.000Z");
    again.figures.truncate(1);
    assert_eq!(store.add(&again, &more).unwrap(), Added::Again);
    let listed = store.runs(&Filter::default()).unwrap();
    let paths: Vec<&str> = listed.iter().map(|row| row.path.as_str()).collect();
    assert_eq!(paths, ["/c", "/b", "/a"]);
    assert_eq!(listed[0].tags.len(), 2);
    assert_eq!(listed[1], Row { id: 2, tags, ..entry("/b", "2026-01-03T00:00:00.000Z").row });
    assert_eq!(store.run(2).unwrap().as_ref(), Some(&listed[1]));
    let ids: Vec<i64> = listed.iter().map(|row| row.id).collect();
    let named = store.figures(&ids, &["figure.7", "none"]).unwrap();
    assert_eq!(named, [1, 2].map(|id| (id, entry("", "").figures[7].clone())));
    assert_eq!(store.figures(&ids, &[]).unwrap().len(), 101);
    store.remove(&[1, 2]).unwrap();
    assert_eq!(store.figures(&ids, &[]).unwrap().len(), 1);
}

#[test]
fn files_are_their_users_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = new(&folder);
    store.add(&entry("/a", ""), &no_tags()).unwrap();
    let files: Vec<_> = fs::read_dir(folder.path()).unwrap().map(Result::unwrap).collect();
    assert_eq!(files.len(), 3, "the file, its log and the log's index: {files:?}");
    for file in files {
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file:?}");
    }
}

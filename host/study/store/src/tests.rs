//! Runs made up by hand, and an index in a folder of the test.

use std::collections::BTreeSet;
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

/// An index without runs, in a folder of its own.
fn made() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = new(&folder);
    (folder, store)
}

fn no_tags() -> BTreeMap<String, String> {
    BTreeMap::new()
}

#[test]
fn rows_come_newest_first_with_their_tags_and_figures() {
    let (_folder, mut store) = made();
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
    let (folder, mut store) = made();
    store.add(&entry("/a", ""), &no_tags()).unwrap();
    let files: Vec<_> = fs::read_dir(folder.path()).unwrap().map(Result::unwrap).collect();
    assert_eq!(files.len(), 3, "the file, its log and the log's index: {files:?}");
    for file in files {
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file:?}");
    }
}

#[test]
fn filters_take_patterns_and_beginnings_of_digests() {
    let (_folder, mut store) = made();
    for (number, model) in ["Qwen/Qwen3-8B", "Qwen[3]", "Llama"].into_iter().enumerate() {
        let mut run = entry(&format!("/{number}"), &format!("2026-01-0{}", 9 - number));
        run.row.key.model = Some(model.into());
        run.row.key.scenario = format!("{number}abc");
        store.add(&run, &no_tags()).unwrap();
    }
    let some = |text: &str| Some(text.to_owned());
    for (filter, expected) in [
        (Filter { model: some("Qwen*"), ..Filter::default() }, &[1, 2][..]),
        (Filter { model: some("Qwen[3]"), ..Filter::default() }, &[2]),
        (Filter { scenario: some("1ab"), ..Filter::default() }, &[2]),
        (Filter { scenario: some("Tri*"), limit: Some(2), ..Filter::default() }, &[1, 2]),
        (Filter { engine: some("*"), ..Filter::default() }, &[]),
    ] {
        let found: Vec<i64> = store.runs(&filter).unwrap().iter().map(|row| row.id).collect();
        assert_eq!(found, expected, "{filter:?}");
    }
}

#[test]
fn a_list_sorts_nothing() {
    let (_folder, store) = made();
    let sql = format!("EXPLAIN QUERY PLAN {}", listing());
    let mut statement = store.connection.prepare(&sql).unwrap();
    let steps = statement.query_map([None::<i64>; 6], |row| row.get::<_, String>(3)).unwrap();
    let steps: Vec<String> = steps.map(Result::unwrap).collect();
    assert_eq!(steps, ["SCAN runs USING INDEX runs_by_start"]);
}

#[test]
fn old_runs_beyond_the_newest_of_each_key_expire() {
    let (_folder, mut store) = made();
    for day in 1..=6 {
        let mut run = entry(&format!("/{day}"), &format!("2026-01-0{day}T00:00:00.000Z"));
        // A model that is not known is a key too.
        run.row.key.model = (day % 2 == 0).then(|| "even".to_owned());
        store.add(&run, &no_tags()).unwrap();
    }
    let before = |day: u32| Some(format!("2026-01-0{day}T00:00:00Z").parse().unwrap());
    for (before, beyond, expected) in [
        (None, None, &[][..]),
        (before(3), None, &[1, 2]),
        (None, Some(2), &[1, 2]),
        (None, Some(0), &[1, 2, 3, 4, 5, 6]),
        (before(4), Some(1), &[1, 2, 3]),
        (before(2), Some(1), &[1]),
    ] {
        let found = store.expired(&Expired { before, beyond }).unwrap();
        let found: Vec<i64> = found.iter().map(|row| row.id).collect();
        assert_eq!(found, expected, "{before:?} {beyond:?}");
    }
}

#[test]
fn digests_know_the_work_and_not_its_place() {
    let digests = |changes: &[(&str, serde_json::Value)]| {
        let row = entry::described(&plan(changes));
        (row.key.scenario, row.plan.unwrap())
    };
    let own = digests(&[]);
    assert!([&own.0, &own.1].iter().all(|digest| digest.len() == 64), "{own:?}");
    for (place, value) in [
        ("/load/seed", 7.into()),
        ("/request/sampling-seed", 7.into()),
        ("/dataset/config/seed", 7.into()),
        ("/dataset/version", "9.9.9".into()),
        ("/backend/digest", "00".into()),
        ("/target/base-urls", serde_json::json!(["http://user:hush-hush@10.0.0.1"])),
        ("/runner", "9.9.9".into()),
        ("/about", serde_json::json!({ "engine": "vllm", "engine-version": "1" })),
        ("/name", "another".into()),
        ("/percentiles", serde_json::json!([50.0])),
        ("/thresholds", serde_json::json!(["ttft.p99 <= 1s"])),
        ("/request/system-prompt", serde_json::Value::Null),
    ] {
        assert_eq!(digests(&[(place, value)]), own, "{place}");
    }
    for (place, value, of_both) in [
        ("/load/arrival", serde_json::json!({ "model": "closed", "concurrency": 5 }), true),
        ("/load/amount/requests", 61.into(), true),
        ("/dataset/config/input-len", 65.into(), true),
        ("/dataset/name", "another".into(), true),
        ("/request/temperature", 0.5.into(), true),
        ("/backend/config/route", "completions".into(), false),
        ("/connection/http", "2".into(), false),
    ] {
        let other = digests(&[(place, value)]);
        assert_ne!(other.1, own.1, "{place}");
        assert_eq!(other.0 != own.0, of_both, "{place}");
    }
    // A file is its contents, wherever it lies.
    let file = |path: &str, digest: &str| {
        let file = serde_json::json!({ "path": path, "bytes": 3, "digest": digest });
        digests(&[("/dataset/files", serde_json::json!({ "input": file }))]).0
    };
    assert_eq!(file("/home/a.json", "aa"), file("/mnt/b.json", "aa"));
    assert_ne!(file("/home/a.json", "aa"), file("/home/a.json", "bb"));
}

#[test]
fn the_file_has_no_url_and_no_secret() {
    let (folder, mut store) = made();
    let plan = plan(&[
        ("/target/base-urls", serde_json::json!(["http://user:hush-hush@gpu-host:8000"])),
        ("/request/extra-body", serde_json::json!({ "api_key": "hush-hush" })),
        ("/backend/config/token", "hush-hush".into()),
    ]);
    let row = Row { path: "/a".into(), ..entry::described(&plan) };
    store.add(&Entry { row, figures: Vec::new() }, &no_tags()).unwrap();
    for name in ["runs.db", "runs.db-wal"] {
        let bytes = fs::read(folder.path().join(name)).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("hush-hush") && !text.contains("gpu-host"), "{name}");
    }
}

#[test]
fn writers_at_once_lose_nothing() {
    const WRITERS: usize = 7;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/runs.db");
    let start = std::sync::Barrier::new(WRITERS);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (path, start) = (&path, &start);
            scope.spawn(move || {
                start.wait();
                for run in 0..20 {
                    // Each opens the file anew, as a program does.
                    let mut store = Store::open(path, Mode::Write).unwrap();
                    let run = entry(&format!("/{writer}/{run}"), "2026");
                    assert_eq!(store.add(&run, &no_tags()).unwrap(), Added::New);
                }
            });
        }
    });
    let store = Store::open(&path, Mode::Read).unwrap();
    let ids: Vec<i64> = store.runs(&Filter::default()).unwrap().iter().map(|row| row.id).collect();
    assert_eq!(ids.len(), 7 * 20);
    assert_eq!(store.figures(&ids, &[]).unwrap().len(), 7 * 20 * 50);
    let files: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().flatten().collect();
    assert!(files.iter().all(|file| file.file_name().to_string_lossy().starts_with("runs.db")));
    assert!(files.len() <= 3, "{files:?}");
}

const KILLED: &str = "STORE_KILLED";

/// The writer that [`a_killed_writer_leaves_whole_rows`] kills; alone, it does nothing.
#[test]
fn writer_to_kill() {
    let Some(path) = std::env::var_os(KILLED).map(PathBuf::from) else { return };
    let store = Store::open(&path, Mode::Write).unwrap();
    // Without room for changed pages, they go to the log before the commit.
    store.connection.execute_batch("PRAGMA cache_size = 1; BEGIN IMMEDIATE").unwrap();
    let sql = "INSERT INTO runs (path, started, name, scenario, source) \
        VALUES (?1, '2026', hex(zeroblob(2000)), '', 'run')";
    for number in 0..1000 {
        store.connection.execute(sql, [format!("/killed/{number}")]).unwrap();
    }
    fs::write(path.with_extension("ready"), "").unwrap();
    loop {
        std::thread::park();
    }
}

#[test]
fn a_killed_writer_leaves_whole_rows() {
    let (folder, mut store) = made();
    store.add(&entry("/a", "2026"), &no_tags()).unwrap();
    let log = || fs::metadata(folder.path().join("runs.db-wal")).unwrap().len();
    let before = log();
    let mut writer = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tests::writer_to_kill"])
        .env(KILLED, store.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while !store.path().with_extension("ready").exists() {
        assert_eq!(writer.try_wait().unwrap(), None, "it waits for its end");
        std::thread::yield_now();
    }
    assert!(log() > before + 1_000_000, "{} bytes without a commit", log() - before);
    writer.kill().unwrap();
    writer.wait().unwrap();
    store.add(&entry("/b", "2027"), &no_tags()).unwrap();
    drop(store);
    let store = new(&folder);
    let rows = store.runs(&Filter::default()).unwrap();
    let paths: Vec<&str> = rows.iter().map(|row| row.path.as_str()).collect();
    assert_eq!(paths, ["/b", "/a"]);
}

#[test]
fn a_full_disk_keeps_earlier_rows() {
    let (_folder, mut store) = made();
    store.add(&entry("/0", "2026"), &no_tags()).unwrap();
    let limit = "PRAGMA page_count";
    let pages: i64 = store.connection.query_row(limit, [], |row| row.get(0)).unwrap();
    store.connection.pragma_update(None, "max_page_count", pages + 4).unwrap();
    let mut kept = 1;
    let error = loop {
        match store.add(&entry(&format!("/{kept}"), "2026"), &no_tags()) {
            Ok(_) => kept += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert!(error.to_string().contains("free space"), "{error}");
    let rows = store.runs(&Filter::default()).unwrap();
    assert_eq!(rows.len(), kept);
    let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
    assert_eq!(store.figures(&ids, &[]).unwrap().len(), 50 * kept);
}

/// An index with many rows, whose bytes a function changes.
fn changed(folder: &tempfile::TempDir, change: impl FnOnce(&mut Vec<u8>)) -> PathBuf {
    let mut store = new(folder);
    let tags = BTreeMap::from([("version".to_owned(), "abc".to_owned())]);
    for number in 0..100 {
        store.add(&entry(&format!("/{number}"), "2026"), &tags).unwrap();
    }
    let confirmed = Confirmed {
        key: Key { scenario: "abc".into(), ..Key::default() },
        figure: "ttft.p99".into(),
        old_version: "1".into(),
        new_version: "2".into(),
        verdict: trend::Verdict::Confirmed,
        p: 0.001,
        time: "2026-01-02T03:04:05Z".into(),
    };
    store.confirm(&confirmed).unwrap();
    assert_eq!(store.confirmations().unwrap(), [confirmed]);
    let path = store.path().to_owned();
    drop(store);
    let mut bytes = fs::read(&path).unwrap();
    change(&mut bytes);
    fs::write(&path, bytes).unwrap();
    path
}

/// Reads all that an index has.
fn all(path: &Path) -> Result<usize, StoreError> {
    let store = Store::open(path, Mode::Read)?;
    let rows = store.runs(&Filter::default())?;
    let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
    Ok(store.figures(&ids, &[])?.len())
}

#[test]
fn damaged_files_are_named_and_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = changed(&folder, |_| ());
    let rebuilt = rebuild(&path).unwrap();
    assert_eq!((rebuilt.known.len(), rebuilt.aside), (100, None));
    assert_eq!(all(&path).unwrap(), 100 * 50);
    type Change = fn(&mut Vec<u8>);
    for (change, known) in [
        ((|bytes| bytes[..100].fill(0xff)) as Change, 0),
        (|bytes| bytes.clear(), 0),
        // Figures take most of the file.
        (
            |bytes| {
                let middle = bytes.len() / 2;
                bytes[middle..middle + 20_000].fill(0xff);
            },
            100,
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = changed(&folder, change);
        let error = all(&path).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains("`runner store rebuild`"), "{error}");
        let rebuilt = rebuild(&path).unwrap();
        assert_eq!(rebuilt.known.len(), known);
        assert!(rebuilt.known.values().all(|tags| tags["version"] == "abc"));
        assert_eq!(rebuilt.store.confirmations().unwrap().len(), known.min(1));
        let aside = rebuilt.aside.unwrap();
        assert!(aside.exists() && aside != path, "{aside:?}");
        drop(rebuilt.store);
        assert_eq!(all(&path).unwrap(), 0);
    }
}

#[test]
fn files_of_others_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let error = Store::open(&path, Mode::Read).unwrap_err().to_string();
    assert!(error.contains("runner store add runs"), "{error}");
    for (sql, words) in [
        (
            "PRAGMA user_version = 2",
            "has form 2 of the index of runs, and this program knows form 1",
        ),
        ("PRAGMA application_id = 7", "is a database, but no index of runs"),
    ] {
        new(&folder).connection.execute_batch(sql).unwrap();
        for refused in [Store::open(&path, Mode::Write).map(drop), rebuild(&path).map(drop)] {
            let error = refused.unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn queries_read_within_bounds() {
    let (_folder, mut store) = made();
    store.add(&entry("/a", "2026"), &no_tags()).unwrap();
    let mut ask = |sql: &str, milliseconds: u64| {
        let time = model::units::Nanos(milliseconds * 1_000_000);
        store.query(sql, Bounds { rows: 3, time })
    };
    let answer = ask("SELECT name, value, high, x'0aff' AS x FROM figures ORDER BY value", 60_000);
    let answer = answer.unwrap();
    assert_eq!(answer.columns, ["name", "value", "high", "x"]);
    let expected = ["figure.1".into(), 1.0.into(), serde_json::Value::Null, "0aff".into()];
    assert_eq!(answer.rows[1], expected);
    assert!(answer.is_cut && answer.rows.len() == 3, "{answer:?}");
    assert!(!ask("SELECT 1 UNION SELECT 2", 60_000).unwrap().is_cut);
    let forever = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) \
        SELECT max(x) FROM n";
    for (sql, time, words) in [
        (forever, 50, "longer than 0.05 s"),
        ("DELETE FROM runs", 60_000, "one SELECT"),
        ("ATTACH 'x' AS x", 60_000, "one SELECT"),
        ("VACUUM INTO 'x'", 60_000, "one SELECT"),
        ("PRAGMA cache_size", 60_000, "one SELECT"),
        ("SELECT 1; SELECT 2", 60_000, "Multiple"),
        ("SELECT zeroblob(10000000)", 60_000, "more than 1000000 bytes"),
        ("SELECT nought FROM runs", 60_000, "no such column"),
        ("", 60_000, "the query"),
    ] {
        let error = ask(sql, time).unwrap_err();
        assert!(matches!(error, StoreError::Query { .. }), "{sql}: {error}");
        assert!(error.to_string().contains(words), "{sql}: {error}");
    }
}

#[test]
fn results_of_other_tools_are_rows_with_equal_figures() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/audit");
    let read = |case: &str| -> Vec<Entry> {
        let results = read(&cases.join(case).join("input.json")).unwrap();
        results.map(|entry| entry.unwrap().unwrap()).collect()
    };
    for (case, tool) in
        [("vllm-json", "vllm"), ("guidellm", "guidellm"), ("aiperf-whole", "aiperf")]
    {
        let entries = read(case);
        assert!(!entries.is_empty());
        for (entry, number) in entries.iter().zip(1..) {
            let row = &entry.row;
            assert_eq!((row.origin, row.program.as_deref()), (Origin::Import, Some(tool)));
            assert!(row.verdict.is_some() && row.successful.is_some() && !row.is_gone(), "{row:?}");
            assert_eq!(row.path.ends_with(&format!("#{number}")), entries.len() > 1, "{row:?}");
            assert!(row.source().ends_with(format!("{case}/input.json")), "{row:?}");
            let has = |name: &str| entry.figures.iter().any(|figure| figure.name == name);
            assert!(has("throughput.output-tokens-per-s"), "{case}: {:?}", entry.figures);
            // The TTFT of `vllm bench serve` counts any first event.
            assert_eq!(has("ttft-any.mean"), tool == "vllm", "{case}");
        }
    }
    let dated = read("perf-eval");
    assert_eq!(dated[0].row.started, "2026-02-10T00:24:44.000Z");
    assert_eq!(dated[0].row.engine_version.as_deref(), Some("v0.13.0"));
    assert!(dated[0].figures.iter().any(|figure| figure.name == "tpot-last-token.p99"));
    let mut points = read("inferencex");
    points.extend(read("inferencex-agentic"));
    let scenarios: BTreeSet<_> = points.iter().map(|point| &point.row.key.scenario).collect();
    assert_eq!((points.len(), scenarios.len()), (3, 3));
    let unknown = cases.join("unknown-json/input.json");
    let error = super::read(&unknown).map(drop).unwrap_err().to_string();
    assert!(error.contains("unknown-json"), "{error}");
}

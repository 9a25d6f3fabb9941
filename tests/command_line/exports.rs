//! Tables of runs, read back by the libraries that wrote them and by another, and compared with the
//! run's records.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Cursor};
use std::path::{Path, PathBuf};
use std::process::Command;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{DataType, SchemaRef};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;

use crate::support::lacking::{self, PYARROW};
use crate::support::process::{Mock, run, runner, runner_behind, words};
use crate::support::results::{copy_files, random, report, run_folder};

/// A run with a warmup, a refusal and a reply that is cut off, with objectives and a cap.
fn a_run(folder: &Path) -> PathBuf {
    let faults = "kind = 'http-error', status = 503, requests = [4]; kind = 'cut', after-tokens = 2, requests = [7]";
    let mock = Mock::start(&["--ttft", "3ms", "--itl", "1ms", "--fault", faults]);
    let flags = "--num-prompts 30 --random-output-len 6 --max-concurrency 4 --goodput ttft:1000 \
                 --allow-invalid";
    run(&mut random(&mock.url, folder, flags)).with_code(0);
    run_folder(folder)
}

struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    /// A column's values as text, absent ones absent.
    fn column(&self, name: &str) -> Vec<Option<String>> {
        let columns = self
            .batches
            .iter()
            .map(|batch| batch.column_by_name(name).unwrap_or_else(|| panic!("no column {name}")));
        columns.flat_map(values).collect()
    }

    fn numbers(&self, name: &str) -> Vec<Option<f64>> {
        self.column(name).into_iter().map(|word| word.map(|word| word.parse().unwrap())).collect()
    }

    fn lists(&self, name: &str) -> Vec<Option<Vec<Option<i64>>>> {
        let lists = self.batches.iter().flat_map(|batch| {
            let lists = batch.column_by_name(name).unwrap().as_list::<i32>().clone();
            lists
                .iter()
                .map(|list| Some(list?.as_primitive::<Int64Type>().iter().collect()))
                .collect::<Vec<_>>()
        });
        lists.collect()
    }

    fn names(&self) -> Vec<&str> {
        self.schema.fields().iter().map(|field| field.name().as_str()).collect()
    }

    fn all(&self) -> BTreeMap<String, Vec<Option<String>>> {
        self.names().into_iter().map(|name| (name.to_owned(), self.column(name))).collect()
    }
}

fn values(column: &ArrayRef) -> Vec<Option<String>> {
    let value = |row: usize| match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().value(row).to_owned(),
        DataType::Boolean => column.as_boolean().value(row).to_string(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).to_string(),
        DataType::List(_) => format!("{:?}", column.as_list::<i32>().value(row)),
        other => panic!("{other}"),
    };
    (0..column.len()).map(|row| column.is_valid(row).then(|| value(row))).collect()
}

fn export(runs: &[&Path], table: &str, output: &Path) {
    let mut command = runner();
    command.arg("export").args(runs).args(["--table", table]);
    let ended = run(command.arg("--output").arg(output)).with_code(0);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""));
}

fn read(path: &Path) -> Table {
    let file = File::open(path).unwrap();
    let (schema, batches) = match path.extension().unwrap().to_str().unwrap() {
        "parquet" => {
            let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
            let schema = reader.schema().clone();
            (schema, reader.build().unwrap().collect::<Result<_, _>>())
        }
        "arrows" => {
            let reader = StreamReader::try_new(BufReader::new(file), None).unwrap();
            (reader.schema(), reader.collect())
        }
        _ => {
            let reader = FileReader::try_new(BufReader::new(file), None).unwrap();
            (reader.schema(), reader.collect())
        }
    };
    Table { schema, batches: batches.unwrap() }
}

fn json(run_folder: &Path, format: &str) -> String {
    report(run_folder, &format!("--format {format}")).stdout
}

fn lines(run_folder: &Path) -> Vec<Value> {
    let text = json(run_folder, "jsonl");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_form_holds_the_same_table() {
    let folder = tempfile::tempdir().unwrap();
    let run_folder = a_run(folder.path());
    for table in ["requests", "events", "summary", "series"] {
        let file = |ending: &str| folder.path().join(format!("{table}.{ending}"));
        let forms = ["parquet", "arrow", "arrows", "feather"].map(|ending| {
            export(&[&run_folder], table, &file(ending));
            read(&file(ending))
        });
        let first = &forms[0];
        for other in &forms[1..] {
            assert_eq!(first.schema, other.schema, "{table}");
            assert_eq!(first.all(), other.all(), "{table}");
        }
        assert!(!first.column("run").is_empty(), "{table}");
        for field in first.schema.fields() {
            let about = field.metadata();
            assert!(about.contains_key("unit"), "{field:?}");
            assert!(!about["description"].is_empty(), "{field:?}");
        }
        // On stdout it is the stream.
        let mut command = runner();
        command.arg("export").arg(&run_folder);
        let line = format!("--table {table} --format arrow");
        let out = command.args(words(&line)).output().unwrap();
        assert_eq!(out.stdout, std::fs::read(file("arrows")).unwrap(), "{table}");
        let stream = StreamReader::try_new(Cursor::new(out.stdout), None).unwrap();
        assert_eq!(stream.schema(), first.schema);

        export(&[&run_folder], table, &file("csv"));
        let text = std::fs::read_to_string(file("csv")).unwrap();
        let (header, rows) = text.split_once('\n').unwrap();
        let names: Vec<&str> = header.split(',').collect();
        let lists = ["event_ns", "event_tokens"];
        let wanted = first.names().into_iter();
        let wanted: Vec<&str> = wanted.filter(|name| !lists.contains(name)).collect();
        assert_eq!(names, wanted, "{table}");
        assert_eq!(rows.lines().count(), first.column("run").len(), "{table}");
        let piped =
            run(runner().arg("export").arg(&run_folder).args(["--table", table])).with_code(0);
        assert_eq!(piped.stdout, text, "csv is the default");
    }
}

#[test]
fn a_table_has_the_verdict_of_its_run() {
    let folder = tempfile::tempdir().unwrap();
    let run_folder = a_run(folder.path());
    let file = folder.path().join("requests.parquet");
    export(&[&run_folder], "requests", &file);
    let table = read(&file);
    let about = table.schema.metadata();
    assert_eq!(about["table"], "requests");
    assert_eq!(about["program"], format!("runner {}", env!("CARGO_PKG_VERSION")));
    let runs: Value = serde_json::from_str(&about["runs"]).unwrap();
    let summary: Value = serde_json::from_str(&json(&run_folder, "json")).unwrap();
    let name = run_folder.file_name().unwrap().to_str().unwrap();
    assert_eq!(runs[0]["run"], name);
    assert_eq!(runs[0]["verdict"], summary["verdict"]);
    assert_eq!(runs[0]["findings"], summary["findings"]);
    assert!(!summary["findings"].as_array().unwrap().is_empty());
    let unit = |name: &str| {
        let field = table.schema.field_with_name(name).unwrap();
        field.metadata()["unit"].clone()
    };
    for (column, expected) in [
        ("due_ns", "ns"),
        ("ttft_ms", "ms"),
        ("output_tokens", "tokens"),
        ("output_speed_tok_s", "tok/s"),
        ("request_bytes", "bytes"),
        ("event_ns", "ns"),
        ("id", ""),
    ] {
        assert_eq!(unit(column), expected, "{column}");
    }
}

fn at(record: &Value, key: &str) -> Option<f64> {
    record[key].as_f64()
}

/// Values of a record's row, by other means than the program's.
struct Expected {
    ttft_ms: Option<f64>,
    e2e_ms: Option<f64>,
    outputs: Vec<Option<i64>>,
    gaps: Vec<Option<f64>>,
}

fn follows(record: &Value) -> Expected {
    let events = &record["events"];
    let kinds = events["kind"].as_str().unwrap();
    let instants: Vec<i64> =
        events["at"].as_array().unwrap().iter().map(|at| at.as_i64().unwrap()).collect();
    let bytes = events["bytes"].as_array().unwrap();
    let is_complete = record["outcome"]["class"] == "complete";
    let (mut outputs, mut gaps, mut last, mut first) = (Vec::new(), Vec::new(), None, None);
    for ((at, kind), bytes) in instants.iter().zip(kinds.chars()).zip(bytes) {
        if !"trcvk".contains(kind) {
            continue;
        }
        outputs.push(Some(*at));
        let carries = bytes.as_u64().unwrap() > 0;
        let before = if carries { last.replace(*at) } else { None };
        gaps.push(before.filter(|_| is_complete).map(|before| (at - before) as f64 / 1e6));
        if carries {
            first.get_or_insert(*at);
        }
    }
    let sent = record["sent"].as_i64();
    let since_sent = |until: Option<i64>| {
        let span = until? - sent?;
        is_complete.then_some(span as f64 / 1e6)
    };
    Expected {
        ttft_ms: since_sent(first),
        e2e_ms: since_sent(instants.last().copied()),
        outputs,
        gaps,
    }
}

fn near(found: Option<f64>, expected: Option<f64>) -> bool {
    match (found, expected) {
        (Some(found), Some(expected)) => (found - expected).abs() < 1e-9,
        (None, None) => true,
        _ => false,
    }
}

#[test]
fn rows_equal_the_records() {
    let folder = tempfile::tempdir().unwrap();
    let run_folder = a_run(folder.path());
    let file = |name: &str| folder.path().join(format!("{name}.parquet"));
    for table in ["requests", "events", "summary"] {
        export(&[&run_folder], table, &file(table));
    }
    let records = lines(&run_folder);
    let table = read(&file("requests"));
    let outcomes = table.column("outcome");
    assert_eq!(records.len(), outcomes.len());
    for class in ["complete", "http-status", "truncated"] {
        assert!(outcomes.iter().flatten().any(|word| word == class), "{outcomes:?}");
    }
    let events = table.lists("event_ns");
    let tokens = table.lists("event_tokens");
    let (ttft, e2e) = (table.numbers("ttft_ms"), table.numbers("e2e_ms"));
    let (mut all_outputs, mut all_gaps) = (Vec::new(), Vec::new());
    for (row, record) in records.iter().enumerate() {
        let followed = follows(record);
        assert!(near(ttft[row], followed.ttft_ms), "{record}");
        assert!(near(e2e[row], followed.e2e_ms), "{record}");
        let class = record["outcome"]["class"].as_str();
        assert_eq!(outcomes[row].as_deref(), class);
        for (column, key) in [
            ("due_ns", "due"),
            ("granted_ns", "granted"),
            ("sent_ns", "sent"),
            ("headers_ns", "headers"),
            ("ended_ns", "ended"),
            ("status", "status"),
            ("index", "index"),
        ] {
            assert_eq!(table.numbers(column)[row], at(record, key), "{column}");
        }
        let has_reply = !record["events"]["at"].as_array().unwrap().is_empty();
        assert_eq!(events[row], has_reply.then(|| followed.outputs.clone()));
        assert_eq!(tokens[row].as_ref().map(Vec::len), has_reply.then_some(followed.outputs.len()));
        all_outputs.extend(followed.outputs);
        all_gaps.extend(followed.gaps);
    }
    // A failed request has no metrics of answers, but has this client's own.
    let failed = outcomes.iter().position(|word| word.as_deref() != Some("complete"));
    let failed = failed.unwrap();
    for column in
        ["ttft_ms", "tpot_ms", "e2e_ms", "itl_max_ms", "output_tokens", "output_speed_tok_s"]
    {
        assert_eq!(table.numbers(column)[failed], None, "{column}");
    }
    assert!(table.numbers("send_lag_ms")[failed].is_some());

    let long = read(&file("events"));
    let instants = long.numbers("at_ns").into_iter();
    let instants: Vec<Option<i64>> = instants.map(|at| at.map(|at| at as i64)).collect();
    assert_eq!(instants, all_outputs);
    let gaps = long.numbers("itl_ms");
    assert_eq!(gaps.len(), all_gaps.len());
    for (found, expected) in gaps.iter().zip(&all_gaps) {
        assert!(near(*found, *expected), "{found:?} {expected:?}");
    }

    // The mean over the measured requests equals the summary's.
    let summary: Value = serde_json::from_str(&json(&run_folder, "json")).unwrap();
    let phases = table.column("phase");
    let measured =
        ttft.iter().zip(&phases).filter(|(_, phase)| phase.as_deref() == Some("measure"));
    let measured: Vec<f64> = measured.filter_map(|(ttft, _)| *ttft).collect();
    let mean = measured.iter().sum::<f64>() / measured.len() as f64;
    assert!((mean - summary["metrics"]["ttft"]["mean"].as_f64().unwrap()).abs() < 1e-9);

    let figures = read(&file("summary"));
    let names = figures.column("name");
    let value = |name: &str, column: &str| {
        let row = names.iter().position(|own| own.as_deref() == Some(name));
        figures.numbers(column)[row.unwrap_or_else(|| panic!("no {name}: {names:?}"))]
    };
    for (name, pointer) in [
        ("requests.failed", "/requests/failed"),
        ("throughput.output-tokens-per-s", "/throughput/output-tokens-per-s"),
        ("ttft.mean", "/metrics/ttft/mean"),
        ("ttft.median", "/metrics/ttft/median"),
        ("itl.p99", "/metrics/itl/percentiles/p99"),
    ] {
        let expected = summary.pointer(pointer).and_then(Value::as_f64);
        assert!(expected.is_some(), "{pointer}");
        assert_eq!(value(name, "value"), expected, "{name}");
    }
    for (name, pointer) in [
        ("ttft.mean", "/metrics/ttft/confidence/mean"),
        ("throughput.requests-per-s", "/throughput/confidence/other-requests/requests-per-s"),
    ] {
        for (column, end) in [("lower", "low"), ("upper", "high")] {
            let expected = summary.pointer(&format!("{pointer}/{end}"));
            assert_eq!(value(name, column), expected.and_then(Value::as_f64), "{name}");
        }
    }
    assert_eq!(value("ttft.std", "lower"), None, "there is no interval of it");
}

#[test]
fn runs_stand_under_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let first = a_run(folder.path());
    // The same run in a folder of the same name, and in one of another name.
    let again = folder.path().join("again").join(first.file_name().unwrap());
    let other = folder.path().join("other");
    copy_files(&first, &again);
    copy_files(&first, &other);
    let file = folder.path().join("two.arrow");
    export(&[&first, &other], "requests", &file);
    let two = read(&file);
    let rows = lines(&first).len();
    let names = two.column("run");
    let name = first.file_name().unwrap().to_str().unwrap();
    assert_eq!(names.len(), 2 * rows);
    assert_eq!(names[0].as_deref(), Some(name));
    assert_eq!(names[rows].as_deref(), Some("other"));
    export(&[&first, &again], "summary", &file);
    let named: std::collections::BTreeSet<_> = read(&file).column("run").into_iter().collect();
    let paths = [&first, &again].map(|path| Some(path.display().to_string()));
    assert_eq!(named, std::collections::BTreeSet::from(paths));
}

#[test]
fn exports_that_are_impossible_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let run_folder = a_run(folder.path());
    let file = folder.path().join("table.parquet");
    std::fs::write(&file, "before").unwrap();
    let name = run_folder.to_str().unwrap().to_owned();
    for (line, code, part) in [
        (
            vec![&*name, "--output", "table.xlsx"],
            2,
            "expected a name that ends with .parquet, .arrow",
        ),
        (vec!["nowhere", "--output", "table.parquet"], 3, "is not the folder of a run"),
        (
            vec![&*name, "--output", "nowhere/table.parquet"],
            3,
            "give a writable file with --output",
        ),
        (vec![&*name, "--table", "rows"], 2, "requests, events, summary, series"),
        (vec![&*name, "--table", "events", "--format", "otlp"], 2, "--table requests (spans)"),
    ] {
        let ended = run(runner().arg("export").args(&line).current_dir(folder.path()));
        let ended = ended.with_code(code);
        assert!(ended.stderr.contains(part), "{line:?}: {ended:#?}");
        assert_eq!(std::fs::read(&file).unwrap(), b"before");
    }
    // A reader that goes away is no error.
    let shell = "(\"$@\"; echo $? >ended) | true; exit $(cat ended)";
    for format in ["parquet", "arrow", "csv", "otlp"] {
        let mut command = runner_behind(shell);
        command
            .arg("export")
            .arg(&run_folder)
            .args(["--format", format])
            .current_dir(folder.path());
        assert_eq!(run(&mut command).with_code(0).stderr, "", "{format}");
    }
    // Damaged records are used as far as they can be read, and the table says so.
    let records = run_folder.join("records.jsonl.zst");
    let text = zstd::decode_all(File::open(&records).unwrap()).unwrap();
    let text = String::from_utf8(text).unwrap();
    let kept: Vec<&str> = text.lines().skip(3).collect();
    let damaged = kept.join("\n") + "\nnonsense\n";
    std::fs::write(&records, zstd::encode_all(damaged.as_bytes(), 1).unwrap()).unwrap();
    let ended =
        run(runner().arg("export").arg(&run_folder).arg("--output").arg(&file)).with_code(0);
    assert!(ended.stderr.contains("are damaged"), "{ended:#?}");
    let table = read(&file);
    assert_eq!(table.column("run").len(), kept.len());
    let runs: Value = serde_json::from_str(&table.schema.metadata()["runs"]).unwrap();
    assert_eq!(runs[0]["verdict"], "invalid");
    assert!(runs[0]["findings"].to_string().contains("records-damaged"));
}

/// Apache's own implementation in C++ reads the tables, and its sums equal the records' sums.
#[test]
fn another_library_reads_the_tables() {
    let mut python = Command::new("python3");
    if !lacking::can(python.args(["-c", "import pyarrow.parquet, pyarrow.feather"]), &PYARROW) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let run_folder = a_run(folder.path());
    for table in ["requests", "events", "summary", "series"] {
        for ending in ["parquet", "arrow", "arrows"] {
            let file = folder.path().join(format!("{table}.{ending}"));
            export(&[&run_folder], table, &file);
        }
    }
    std::fs::write(folder.path().join("records.jsonl"), json(&run_folder, "jsonl")).unwrap();
    std::fs::write(folder.path().join("summary.json"), json(&run_folder, "json")).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/command_line/inputs/tables.py");
    let out = Command::new("python3").arg(script).current_dir(folder.path()).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(String::from_utf8_lossy(&out.stdout), "the same\n");
}

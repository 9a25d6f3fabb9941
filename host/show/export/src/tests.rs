use std::io::Cursor;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_ipc::reader::StreamReader;
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use runs::folder::RunFolder;
use runs::record::Recorder;

use super::{Form, Table, write};
use crate::exchanges::{failed, reply};
use model::exchange::Kind::{End, Role, Text};
use model::exchange::{Class, Exchange};
use model::units::Nanos;

fn a_run(folder: &Path, exchanges: impl IntoIterator<Item = Exchange>) -> RunFolder {
    let plan = include_str!("../../report/src/cases/plan.json");
    std::fs::write(folder.join("plan.json"), plan).unwrap();
    let (send, receive) = crossbeam_channel::unbounded();
    exchanges.into_iter().for_each(|exchange| send.send(Box::new(exchange)).unwrap());
    drop(send);
    let recorder = Recorder::create(folder).unwrap();
    recorder.run(&receive, |_| {}).unwrap();
    RunFolder::at(folder)
}

fn written(run: &RunFolder, form: Form, table: Table) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, form, table, std::slice::from_ref(run)).unwrap();
    out
}

fn batches(run: &RunFolder, table: Table) -> Vec<RecordBatch> {
    let stream = Cursor::new(written(run, Form::ArrowStream, table));
    let reader = StreamReader::try_new(stream, None).unwrap();
    reader.collect::<Result<_, _>>().unwrap()
}

fn wholes(batch: &RecordBatch, name: &str) -> Vec<Option<i64>> {
    let column = batch.column_by_name(name).unwrap();
    column.as_primitive::<Int64Type>().iter().collect()
}

fn numbers(batch: &RecordBatch, name: &str) -> Vec<Option<f64>> {
    let column = batch.column_by_name(name).unwrap();
    column.as_primitive::<Float64Type>().iter().collect()
}

/// A reply that begins with a role, and has three pieces, the second empty.
fn piecemeal(index: u64) -> Exchange {
    let events = [
        (1_005, Role, None, 0),
        (1_010, Text, Some(1), 4),
        (1_012, Text, Some(0), 0),
        (1_017, Text, Some(2), 9),
        (1_018, End, None, 0),
    ];
    reply(index, 1_000, &events)
}

#[test]
fn columns_have_unique_names_and_descriptions() {
    for table in [Table::Requests, Table::Events, Table::Summary, Table::Series] {
        let heads = table.heads(Form::Parquet);
        let mut names: Vec<&str> = heads.iter().map(|head| head.name.as_str()).collect();
        let plain =
            |name: &&str| name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'));
        assert!(names.iter().all(plain), "{names:?}");
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{table:?}");
    }
}

#[test]
fn events_have_the_gaps_of_the_metric() {
    let folder = tempfile::tempdir().unwrap();
    let cut = failed(piecemeal(1), Class::Truncated, "cut off");
    let run = a_run(folder.path(), [piecemeal(0), cut]);
    let batches = batches(&run, Table::Events);
    let [batch] = &batches[..] else { panic!("{} batches", batches.len()) };
    let of = |name: &str| wholes(batch, name);
    assert_eq!(of("index"), [0, 0, 0, 1, 1, 1].map(Some));
    assert_eq!(of("event"), [0, 1, 2, 0, 1, 2].map(Some));
    let instants = [1_010, 1_012, 1_017].map(|ms| Some(ms * 1_000_000));
    assert_eq!(of("at_ns")[..3], instants);
    assert_eq!(of("tokens")[..3], [Some(1), Some(0), Some(2)]);
    assert_eq!(of("bytes")[..3], [4, 0, 9].map(Some));
    let gaps = [None, None, Some(7.0), None, None, None];
    assert_eq!(numbers(batch, "itl_ms"), gaps);
}

#[test]
fn unmeasured_values_are_null() {
    let folder = tempfile::tempdir().unwrap();
    let refused = failed(reply(1, 1_000, &[]), Class::Refused, "refused");
    let cut = failed(piecemeal(2), Class::Truncated, "cut off");
    let run = a_run(folder.path(), [piecemeal(0), refused, cut]);
    let batch = &batches(&run, Table::Requests)[0];
    let first = 1_010_000_000;
    assert_eq!(wholes(batch, "first_token_ns"), [Some(first), None, Some(first)]);
    assert_eq!(numbers(batch, "ttft_ms"), [Some(10.0), None, None]);
    assert_eq!(wholes(batch, "output_tokens"), [Some(3), None, None]);
    let lists = batch.column_by_name("event_ns").unwrap().as_list::<i32>();
    assert_eq!(lists.value(0).len(), 3);
    assert!(lists.is_null(1) && lists.is_valid(2));
    for absent in ["finish", "good", "session", "granted_ns"] {
        let column = batch.column_by_name(absent).unwrap();
        assert_eq!(column.null_count(), 3, "{absent}");
    }
    let message = batch.column_by_name("message").unwrap().as_string::<i32>();
    assert!(message.is_null(0));
    assert_eq!(message.value(2), "cut off");
}

/// A record that somebody changed may have any number in it.
#[test]
fn a_number_that_does_not_fit_is_null() {
    let folder = tempfile::tempdir().unwrap();
    let mut odd = piecemeal(0);
    odd.due = Nanos(u64::MAX);
    let run = a_run(folder.path(), [odd]);
    let batch = &batches(&run, Table::Requests)[0];
    assert_eq!(wholes(batch, "due_ns"), [None]);
    assert_eq!(wholes(batch, "sent_ns"), [Some(1_000_000_000)]);
}

#[test]
fn batches_are_bounded_by_rows_and_by_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let run = a_run(folder.path(), (0..20_000).map(piecemeal));
    let rows = |run: &RunFolder| -> Vec<usize> {
        let batches = batches(run, Table::Requests);
        batches.iter().map(RecordBatch::num_rows).collect()
    };
    let many = rows(&run);
    assert_eq!(many.iter().sum::<usize>(), 20_000);
    assert!(many.len() > 2 && many.iter().all(|rows| *rows <= 8_192), "{many:?}");

    // A long one has a batch of its own, and the short ones share one.
    let folder = tempfile::tempdir().unwrap();
    let events: Vec<_> = (0..300_000).map(|ms| (ms, Text, None, 1)).collect();
    let long = [0, 1].map(|index| reply(index, 0, &events));
    let run = a_run(folder.path(), long.into_iter().chain((2..5).map(piecemeal)));
    assert_eq!(rows(&run), [1, 1, 3]);
}

#[test]
fn row_groups_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let events: Vec<_> = (0..2_000).map(|ms| (ms, Text, Some(1), 1)).collect();
    let run = a_run(folder.path(), (0..100).map(|index| reply(index, 0, &events)));
    let bytes = Bytes::from(written(&run, Form::Parquet, Table::Events));
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
    let groups = reader.metadata().row_groups().iter();
    let rows: Vec<i64> = groups.map(|group| group.num_rows()).collect();
    assert_eq!(rows, [131_072, 200_000 - 131_072]);
}

#[test]
fn a_run_without_records_has_tables_without_rows() {
    let folder = tempfile::tempdir().unwrap();
    let run = a_run(folder.path(), []);
    for form in [Form::Parquet, Form::ArrowStream, Form::ArrowFile, Form::Csv] {
        let out = written(&run, form, Table::Requests);
        assert!(!out.is_empty(), "{form:?}");
    }
    let bytes = Bytes::from(written(&run, Form::Parquet, Table::Requests));
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
    assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
    let csv = String::from_utf8(written(&run, Form::Csv, Table::Requests)).unwrap();
    assert_eq!(csv.lines().count(), 1);
}

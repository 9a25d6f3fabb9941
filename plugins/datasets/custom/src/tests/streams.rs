//! Files that are too large to be held, and the amount of them that is read.

use std::cell::Cell;
use std::rc::Rc;

use runner_plugin::{Amount, Dataset, Error, File, Files};
use runner_plugin_testing::datasets::{self, invalid_input};
use runner_plugin_testing::tokenizer::StandIn;

use super::{Custom, text};

/// A file of the same line over and over, which counts the bytes that are read.
#[derive(Clone)]
struct Endless {
    size: u64,
    line: &'static str,
    read: Rc<Cell<u64>>,
}

impl Files for Endless {
    fn open(&self, name: &str) -> Option<Box<dyn File>> {
        (name == "data").then(|| Box::new(self.clone()) as Box<dyn File>)
    }
}

impl File for Endless {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, offset: u64, length: u32) -> Result<Vec<u8>, String> {
        let end = self.size.min(offset + u64::from(length));
        self.read.set(self.read.get() + (end - offset));
        let line = self.line.as_bytes();
        let byte = |at: u64| line[(at % line.len() as u64) as usize];
        Ok((offset..end).map(byte).collect())
    }
}

fn open(config: &str, file: &Endless) -> Result<Custom, Error> {
    datasets::open(config, 1, Amount::Samples(20), file.clone(), StandIn)
}

#[test]
fn a_large_file_is_read_only_as_far_as_needed() {
    let file = Endless { size: 64 << 30, line: "{\"prompt\":\"hello\"}\n", read: Rc::default() };
    let mut dataset = open("{}", &file).unwrap();
    let samples = dataset.next(20).unwrap();
    assert!(samples.len() == 20 && samples.iter().all(|sample| text(sample) == "hello"));
    assert!(file.read.get() < 4 << 20, "{}", file.read.get());
}

#[test]
fn shuffled_rows_are_read_where_they_are() {
    let line = "{\"prompt\":\"hello\"}\n";
    let file = Endless { size: 200_000 * line.len() as u64, line, read: Rc::default() };
    let mut dataset = open(r#"{"shuffle": true}"#, &file).unwrap();
    let once = file.read.get();
    assert!(once < file.size + (4 << 20), "{once}");
    assert_eq!(dataset.next(20).unwrap().len(), 20);
    assert!(file.read.get() - once < 1 << 20);
}

#[test]
fn a_row_without_an_end_is_a_mistake() {
    let file = Endless { size: 64 << 30, line: "{\"prompt\": [", read: Rc::default() };
    let opened = open(r#"{"format": "jsonl"}"#, &file);
    let message = invalid_input(opened.and_then(|mut dataset| dataset.next(1)));
    assert!(message.contains("line 1: it is longer than 24 MiB"), "{message}");
}

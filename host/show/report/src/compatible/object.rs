//! An object of a result file, built field by field in the notation of Python's `json.dumps`. The
//! tokenizer's [`python`](tokenizer::python) formats the values.

use minijinja::value::{Serde, Value};
use serde::Serialize;

use tokenizer::python::{self, Style};

/// An object under way: names and values. A name that comes again has its value replaced, as in
/// Python.
#[derive(Default)]
pub(super) struct Object(Vec<(String, Value)>);

impl Object {
    pub(super) fn field(&mut self, name: &str, value: impl Serialize) {
        self.0.push((name.to_owned(), Serde(value).into()));
    }

    /// Adds a field if it was measured.
    pub(super) fn measured(&mut self, name: &str, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.field(name, value);
        }
    }

    /// The object, without a newline.
    pub(super) fn finish(self) -> String {
        let written = python::text(&Value::from_pairs(self.0), &Style::default(), usize::MAX);
        debug_assert!(written.is_ok(), "{written:?}");
        written.unwrap_or_default()
    }
}

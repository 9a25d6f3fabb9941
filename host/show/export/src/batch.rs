//! Rows under way, a column at a time.
//!
//! A batch is handed on at 8,192 rows or at 4 MiB of values, so a run of any length takes the same
//! memory. A row is never divided: one request with more than that in its lists makes a batch by
//! itself, as large as its record.

use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int64Builder, ListBuilder, StringBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;

use super::ExportError;
use super::schema::{Head, Type, item};
use super::sink::Sink;
use model::units::Nanos;

const ROWS: usize = 8_192;
/// Bytes of a batch after which it is full.
const BYTES: usize = 4 << 20;

enum Cells {
    Text(StringBuilder),
    Flag(BooleanBuilder),
    Whole(Int64Builder),
    Number(Float64Builder),
    Wholes(ListBuilder<Int64Builder>),
}

/// The rows that were not handed on yet. Cells are added from left to right.
pub(crate) struct Batch<'w> {
    sink: Sink<'w>,
    schema: SchemaRef,
    cells: Vec<Cells>,
    next: usize,
    rows: usize,
    bytes: usize,
}

/// A number that fits. None of a real run does not: as nanoseconds it is three hundred years. One
/// of a changed record that does not fit is absent rather than another number.
pub(crate) fn fitting(number: u64) -> Option<i64> {
    i64::try_from(number).ok()
}

impl<'w> Batch<'w> {
    pub(crate) fn new(sink: Sink<'w>, schema: SchemaRef, heads: &[Head]) -> Self {
        let cells = heads.iter().map(|head| match head.kind {
            Type::Text => Cells::Text(StringBuilder::new()),
            Type::Flag => Cells::Flag(BooleanBuilder::new()),
            Type::Whole => Cells::Whole(Int64Builder::new()),
            Type::Number => Cells::Number(Float64Builder::new()),
            Type::Wholes => Cells::Wholes(ListBuilder::new(Int64Builder::new()).with_field(item())),
        });
        Batch { sink, cells: cells.collect(), schema, next: 0, rows: 0, bytes: 0 }
    }

    fn next(&mut self) -> &mut Cells {
        self.next += 1;
        self.bytes += size_of::<u64>();
        &mut self.cells[self.next - 1]
    }

    pub(crate) fn null(&mut self) {
        match self.next() {
            Cells::Text(cells) => cells.append_null(),
            Cells::Flag(cells) => cells.append_null(),
            Cells::Whole(cells) => cells.append_null(),
            Cells::Number(cells) => cells.append_null(),
            Cells::Wholes(cells) => cells.append_null(),
        }
    }

    pub(crate) fn text(&mut self, words: Option<&str>) {
        self.bytes += words.map_or(0, str::len);
        match self.next() {
            Cells::Text(cells) => cells.append_option(words),
            _ => unreachable!("the column holds no text"),
        }
    }

    pub(crate) fn flag(&mut self, flag: Option<bool>) {
        match self.next() {
            Cells::Flag(cells) => cells.append_option(flag),
            _ => unreachable!("the column holds no flags"),
        }
    }

    pub(crate) fn whole(&mut self, number: Option<u64>) {
        match self.next() {
            Cells::Whole(cells) => cells.append_option(number.and_then(fitting)),
            _ => unreachable!("the column holds no whole numbers"),
        }
    }

    pub(crate) fn instant(&mut self, at: Option<Nanos>) {
        self.whole(at.map(|at| at.0));
    }

    pub(crate) fn number(&mut self, number: Option<f64>) {
        match self.next() {
            Cells::Number(cells) => cells.append_option(number),
            _ => unreachable!("the column holds no numbers"),
        }
    }

    pub(crate) fn wholes(&mut self, numbers: Option<impl Iterator<Item = Option<u64>>>) {
        let before = match self.next() {
            Cells::Wholes(cells) => {
                let before = cells.values_ref().values_slice().len();
                cells.append_option(numbers.map(|all| all.map(|number| number.and_then(fitting))));
                cells.values_ref().values_slice().len() - before
            }
            _ => unreachable!("the column holds no lists"),
        };
        self.bytes += before * size_of::<u64>();
    }

    /// Ends a row, and hands the batch on if it is full.
    pub(crate) fn end(&mut self) -> Result<(), ExportError> {
        debug_assert_eq!(self.next, self.cells.len(), "a row has a cell a column");
        self.next = 0;
        self.rows += 1;
        if self.rows >= ROWS || self.bytes >= BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), ExportError> {
        if self.rows == 0 {
            return Ok(());
        }
        let arrays = self.cells.iter_mut().map(|cells| -> ArrayRef {
            match cells {
                Cells::Text(cells) => Arc::new(cells.finish()),
                Cells::Flag(cells) => Arc::new(cells.finish()),
                Cells::Whole(cells) => Arc::new(cells.finish()),
                Cells::Number(cells) => Arc::new(cells.finish()),
                Cells::Wholes(cells) => Arc::new(cells.finish()),
            }
        });
        let batch = RecordBatch::try_new(self.schema.clone(), arrays.collect())?;
        (self.rows, self.bytes) = (0, 0);
        self.sink.write(&batch)
    }

    pub(crate) fn finish(mut self) -> Result<(), ExportError> {
        self.flush()?;
        self.sink.finish()
    }
}

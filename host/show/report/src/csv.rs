//! The exchanges as a table, one row and one line each, for spreadsheets and data frames (RFC 4180,
//! but for line ends, which are LF; control characters become spaces, and text that a spreadsheet
//! would take for a formula has an apostrophe before it). An absent value is an empty cell, never
//! 0. Instants are milliseconds since the run's origin, to the nanosecond. `row` has the columns.

use std::borrow::Borrow;
use std::fmt::Display;
use std::io::{self, Write};

use super::plain;
use super::row::{Kind, Row, Value, columns};
use model::exchange::Exchange;
use model::units::Nanos;
use result::metric::Unit;
use result::summary::RunFacts;

/// Writes the table: a header, then a row for each exchange in the order given. It is written row
/// by row, holding only the current exchange in memory.
///
/// Metrics with many samples per exchange (ITL) have no column. A failed exchange has the values
/// that were observed; no statistic includes them. Errors: the errors of `out`.
pub fn csv<E: Borrow<Exchange>>(
    out: &mut impl Write,
    facts: &RunFacts,
    exchanges: impl IntoIterator<Item = E>,
) -> io::Result<()> {
    header(out)?;
    for exchange in exchanges {
        row(out, facts, exchange.borrow())?;
    }
    Ok(())
}

/// Writes the table's header. Errors: the errors of `out`.
pub fn header(out: &mut impl Write) -> io::Result<()> {
    let mut line = Line::default();
    for column in columns() {
        let name = column.name;
        line.cell(Some(match column.kind {
            Kind::Instant | Kind::Metric(Unit::Milliseconds, _) => format!("{name}-ms"),
            Kind::Metric(Unit::TokensPerSecond, _) => format!("{name}-tok-s"),
            _ => name.to_owned(),
        }));
    }
    line.end(out)
}

/// Writes the row of an exchange. Errors: the errors of `out`.
pub fn row(out: &mut impl Write, facts: &RunFacts, exchange: &Exchange) -> io::Result<()> {
    let row = Row::new(facts, exchange);
    let mut line = Line::default();
    for column in columns() {
        let value = column.value(&row);
        line.cell(value.map(|value| match (value, column.kind) {
            (Value::Metric(value), Kind::Metric(Unit::Tokens | Unit::Requests, _)) => {
                format!("{value}")
            }
            (Value::Metric(value), _) => format!("{value:.6}"),
            (Value::Text(words), _) => words.into_owned(),
            (Value::Flag(flag), _) => flag.to_string(),
            (Value::Count(count), _) => count.to_string(),
            (Value::Instant(at), _) => instant(at),
            (Value::Requests(numbers), _) => {
                numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
            }
        }));
    }
    line.end(out)
}

/// Milliseconds with all their nanoseconds.
fn instant(at: Nanos) -> String {
    format!("{}.{:06}", at.0 / 1_000_000, at.0 % 1_000_000)
}

/// A line of a table under way, in the rules above.
#[derive(Default)]
pub struct Line {
    text: String,
    begun: bool,
}

impl Line {
    /// Adds a cell; an empty one for an absent value.
    pub fn cell(&mut self, value: Option<impl Display>) {
        if self.begun {
            self.text.push(',');
        }
        self.begun = true;
        let Some(value) = value else { return };
        let mut value = plain(&value.to_string());
        // A spreadsheet would take it for a formula.
        let begins = value.trim_start().starts_with(['=', '+', '-', '@']);
        if begins && value.parse::<f64>().is_err() {
            value.insert(0, '\'');
        }
        if value.contains([',', '"']) {
            self.text.push('"');
            self.text.push_str(&value.replace('"', "\"\""));
            self.text.push('"');
        } else {
            self.text.push_str(&value);
        }
    }

    /// Writes the line. Errors: the errors of `out`.
    pub fn end(self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{}", self.text)
    }
}

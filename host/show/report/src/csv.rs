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
    let names = columns().iter().map(|column| {
        let name = column.name;
        Some(match column.kind {
            Kind::Instant | Kind::Metric(Unit::Milliseconds, _) => format!("{name}-ms"),
            Kind::Metric(Unit::TokensPerSecond, _) => format!("{name}-tok-s"),
            _ => name.to_owned(),
        })
    });
    line(out, names)
}

/// Writes the row of an exchange. Errors: the errors of `out`.
pub fn row(out: &mut impl Write, facts: &RunFacts, exchange: &Exchange) -> io::Result<()> {
    let row = Row::new(facts, exchange);
    let values = columns().iter().map(|column| {
        Some(match (column.value(&row)?, column.kind) {
            (Value::Metric(value), Kind::Metric(Unit::Tokens | Unit::Requests, _)) => {
                format!("{value}")
            }
            (Value::Metric(value), _) => format!("{value:.6}"),
            (Value::Text(words), _) => words.into_owned(),
            (Value::Flag(flag), _) => flag.to_string(),
            (Value::Count(count), _) => count.to_string(),
            // Milliseconds with all their nanoseconds.
            (Value::Instant(Nanos(at)), _) => {
                format!("{}.{:06}", at / 1_000_000, at % 1_000_000)
            }
            (Value::Requests(numbers), _) => {
                numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
            }
        })
    });
    line(out, values)
}

/// Writes a line of a table, in the rules above. Errors: the errors of `out`.
pub fn line<V: Display>(
    out: &mut impl Write,
    values: impl Iterator<Item = Option<V>>,
) -> io::Result<()> {
    let cells = values.map(|value| value.map_or_else(String::new, |value| cell(&value)));
    writeln!(out, "{}", cells.collect::<Vec<_>>().join(","))
}

fn cell(value: &impl Display) -> String {
    let mut value = plain(&value.to_string());
    // A spreadsheet would take it for a formula.
    let begins = value.trim_start().starts_with(['=', '+', '-', '@']);
    if begins && value.parse::<f64>().is_err() {
        value.insert(0, '\'');
    }
    if value.contains([',', '"']) {
        value = format!("\"{}\"", value.replace('"', "\"\""));
    }
    value
}

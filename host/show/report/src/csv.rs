//! The exchanges as a table, one row and one line each, for spreadsheets and data frames (RFC 4180,
//! but for line ends, which are LF; control characters become spaces, and text that a spreadsheet
//! would take for a formula has an apostrophe before it). An absent value is an empty cell, never
//! 0. Instants are milliseconds since the run's origin, to the nanosecond.

use std::borrow::Borrow;
use std::io::{self, Write};

use super::plain;
use model::exchange::{Exchange, Outcome, Phase, Reason};
use model::units::Nanos;
use result::metric::objective::kept;
use result::metric::{self, Reading, Unit};
use result::summary::RunFacts;

/// The columns before the metrics.
const BEFORE: [&str; 12] = [
    "index",
    "phase",
    "id",
    "outcome",
    "status",
    "finish",
    "due-ms",
    "granted-ms",
    "sent-ms",
    "headers-ms",
    "ended-ms",
    "events",
];

/// The columns after the metrics.
const AFTER: [&str; 14] = [
    "good",
    "input-tokens-source",
    "output-tokens-source",
    "output-tokens-requested",
    "output-tokens-retokenized",
    "request-bytes",
    "output-bytes",
    "request-digest",
    "session",
    "turn",
    "class",
    "parents",
    "reason",
    "message",
];

/// Writes the table: a header, then a row for each exchange in the order given. It is written row
/// by row, holding only the current exchange in memory.
///
/// Metrics with many samples per exchange (ITL) have no column. A failed exchange has the values
/// that were observed; no statistic includes them.
///
/// # Errors
/// Those of `out`.
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

/// Writes the table's header.
///
/// # Errors
/// Those of `out`.
pub fn header(out: &mut impl Write) -> io::Result<()> {
    let metrics = metric::single().map(|(metric, _)| match metric.unit {
        Unit::Milliseconds => format!("{}-ms", metric.name),
        Unit::TokensPerSecond => format!("{}-tok-s", metric.name),
        _ => metric.name.to_owned(),
    });
    let names = BEFORE
        .map(str::to_owned)
        .into_iter()
        .chain(metrics)
        .chain(AFTER.map(str::to_owned));
    writeln!(out, "{}", names.collect::<Vec<_>>().join(","))
}

/// Writes the row of an exchange.
///
/// # Errors
/// Those of `out`.
pub fn row(out: &mut impl Write, facts: &RunFacts, exchange: &Exchange) -> io::Result<()> {
    let measured = exchange.phase == Phase::Measure;
    let retokenized = facts.retokenized.get(exchange.index).filter(|_| measured);
    let run = &facts.run;
    let reading = Reading::new(exchange, run.streamed, retokenized).at_pace(run.pace());
    let (outcome, reason, message) = match &exchange.outcome {
        Outcome::Ok => (exchange.outcome.class().name(), None, ""),
        Outcome::Incomplete {
            class,
            reason,
            message,
        } => (class.name(), *reason, message.as_str()),
    };
    let mut row = Row::default();
    row.cell(Some(exchange.index));
    row.cell(Some(match exchange.phase {
        Phase::Warmup => "warmup",
        Phase::Measure => "measure",
    }));
    row.cell(Some(&exchange.sample.id));
    row.cell(Some(outcome));
    row.cell(exchange.status);
    row.cell(exchange.finish.as_ref());
    row.cell(Some(instant(exchange.due)));
    row.cell(exchange.granted.map(instant));
    row.cell(exchange.sent.map(instant));
    row.cell(exchange.headers.map(instant));
    row.cell(exchange.ended.map(instant));
    row.cell(Some(exchange.events.at.len()));
    for (metric, measure) in metric::single() {
        row.cell(measure(&reading).map(|value| match metric.unit {
            Unit::Tokens | Unit::Requests => format!("{value}"),
            Unit::Milliseconds | Unit::TokensPerSecond | Unit::TokensPerEvent | Unit::Share => {
                format!("{value:.6}")
            }
        }));
    }
    row.cell(measured.then(|| good(facts, &reading)).flatten());
    row.cell(reading.input_tokens.map(|count| count.source.name()));
    row.cell(reading.output_tokens.map(|count| count.source.name()));
    row.cell(exchange.sample.output_tokens);
    row.cell(retokenized);
    row.cell(Some(exchange.sample.request_bytes));
    row.cell(Some(exchange.output.len()));
    row.cell(Some(&exchange.sample.request_digest));
    let sample = &exchange.sample;
    row.cell(sample.turn.as_ref().map(|turn| &turn.session));
    row.cell(sample.turn.as_ref().map(|turn| turn.index));
    row.cell(sample.class.as_ref());
    row.cell((!sample.parents.is_empty()).then(|| words(&sample.parents)));
    row.cell(reason.map(Reason::name));
    row.cell(Some(message));
    writeln!(out, "{}", row.text)
}

/// True if a request met all of the run's objectives; `None` if the run has none.
fn good(facts: &RunFacts, reading: &Reading<'_>) -> Option<bool> {
    let objectives = &facts.run.goodput;
    let keeps = |objective: &metric::Objective| {
        let measure = objective.measure();
        measure.is_some_and(|taken| kept(taken, objective.at_most_ms, reading) == Some(true))
    };
    (!objectives.is_empty()).then(|| reading.exchange.is_ok() && objectives.iter().all(keeps))
}

/// Numbers with spaces between them.
fn words(numbers: &[u64]) -> String {
    let words: Vec<String> = numbers.iter().map(u64::to_string).collect();
    words.join(" ")
}

/// Milliseconds with all their nanoseconds.
fn instant(at: Nanos) -> String {
    format!("{}.{:06}", at.0 / 1_000_000, at.0 % 1_000_000)
}

/// A line of the table under way.
#[derive(Default)]
struct Row {
    text: String,
    begun: bool,
}

impl Row {
    fn cell(&mut self, value: Option<impl std::fmt::Display>) {
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
}

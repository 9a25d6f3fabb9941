//! Figures by time slice, as a table of a page, as lines of the text block and as CSV. One list of
//! columns is behind all three; `result` defines which slice a figure belongs to.

use std::io::{self, Write};

use crate::csv::line;
use crate::document::{Fit, Table};
use model::number::{count, fixed};
use result::metric;
use result::summary::{TimeSlice, TimeSlices};

struct Column {
    name: &'static str,
    head: &'static str,
    /// Its head in the text block, and its width there; absent if the text leaves it out.
    text: Option<(&'static str, usize)>,
    value: fn(&TimeSlice) -> Option<Value>,
}

#[derive(Clone, Copy)]
enum Value {
    Count(u64),
    /// Seconds since the start of the measurement.
    At(f64),
    Figure(f64),
}

impl Value {
    fn label(self) -> String {
        match self {
            Value::Count(number) => count(number),
            Value::At(seconds) => seconds_of(seconds),
            Value::Figure(figure) => fixed(figure, 2),
        }
    }

    fn exact(self) -> String {
        match self {
            Value::Count(number) => number.to_string(),
            Value::At(seconds) => format!("{seconds}"),
            Value::Figure(figure) => format!("{figure:.6}"),
        }
    }
}

/// Seconds, to the microsecond and without zeros at the end.
fn seconds_of(seconds: f64) -> String {
    format!("{}", (seconds * 1e6).round() / 1e6)
}

const fn column(
    name: &'static str,
    head: &'static str,
    text: Option<(&'static str, usize)>,
    value: fn(&TimeSlice) -> Option<Value>,
) -> Column {
    Column { name, head, text, value }
}

const COLUMNS: [Column; 18] = [
    column("from-s", "From (s)", Some(("From (s)", 9)), |slice| Some(Value::At(slice.from_s))),
    column("to-s", "To (s)", None, |slice| Some(Value::At(slice.to_s))),
    column("due", "Due", None, |slice| Some(Value::Count(slice.due))),
    column("sent", "Sent", Some(("Sent", 7)), |slice| Some(Value::Count(slice.sent))),
    column("successful", "Successful", Some(("Done", 7)), |slice| {
        Some(Value::Count(slice.successful))
    }),
    column("failed", "Failed", Some(("Failed", 7)), |slice| Some(Value::Count(slice.failed))),
    column("cancelled", "Cancelled", None, |slice| Some(Value::Count(slice.cancelled))),
    column("mean-in-flight", "In flight, mean", Some(("In flight", 10)), |slice| {
        Some(Value::Figure(slice.mean_in_flight))
    }),
    column("requests-per-s", "Requests/s", None, |slice| Some(Value::Figure(slice.requests_per_s))),
    column("output-tokens", "Output tokens", None, |slice| slice.output_tokens.map(Value::Count)),
    column("output-tokens-per-s", "Output tok/s", Some(("Tok/s", 10)), |slice| {
        slice.output_tokens_per_s.map(Value::Figure)
    }),
    column("median-ttft-ms", "TTFT, median (ms)", Some(("TTFT P50", 10)), |slice| {
        median(slice, metric::TTFT)
    }),
    column("p99-ttft-ms", "TTFT, P99 (ms)", Some(("TTFT P99", 10)), |slice| {
        p99(slice, metric::TTFT)
    }),
    column("mean-tpot-ms", "TPOT, mean (ms)", Some(("TPOT", 8)), |slice| mean(slice, metric::TPOT)),
    column("mean-itl-ms", "ITL, mean (ms)", None, |slice| slice.mean_itl_ms.map(Value::Figure)),
    column("mean-e2e-ms", "E2E, mean (ms)", None, |slice| mean(slice, metric::E2E)),
    column("median-e2e-ms", "E2E, median (ms)", None, |slice| median(slice, metric::E2E)),
    column("p99-e2e-ms", "E2E, P99 (ms)", None, |slice| p99(slice, metric::E2E)),
];

fn mean(slice: &TimeSlice, metric: &str) -> Option<Value> {
    slice.metrics.get(metric).map(|of| Value::Figure(of.mean))
}

fn median(slice: &TimeSlice, metric: &str) -> Option<Value> {
    slice.metrics.get(metric).map(|of| Value::Figure(of.median))
}

fn p99(slice: &TimeSlice, metric: &str) -> Option<Value> {
    slice.metrics.get(metric)?.percentile(99.0).map(Value::Figure)
}

/// The table of a page. A column that no slice has a value of is left out.
pub(crate) fn table(slices: &TimeSlices) -> Table {
    let mut table = Table::new(COLUMNS.iter().map(|column| column.head));
    for slice in &slices.slices {
        table.row(COLUMNS.iter().map(|column| {
            let value = (column.value)(slice);
            value.map_or_else(String::new, Value::label)
        }));
    }
    let mut table = table.without_empty_columns();
    table.fit = Fit::Scrolled;
    table
}

/// The length of the slices as text, with the requested length where it is another.
pub(crate) fn length(slices: &TimeSlices) -> String {
    let length = seconds_of(slices.length_s);
    match slices.requested_s {
        None => format!("of {length} s"),
        Some(requested) => {
            format!("of {length} s, because there would be too many of {} s", seconds_of(requested))
        }
    }
}

/// The lines of the text block: a head, and a line for each slice; a dash is unmeasured.
pub(crate) fn lines(slices: &TimeSlices) -> Vec<String> {
    let columns: Vec<_> =
        (COLUMNS.iter()).filter_map(|column| Some((column.text?, column.value))).collect();
    let head = columns.iter().map(|((head, width), _)| cell(head, *width));
    let rows = slices.slices.iter().map(|slice| {
        let cells = columns.iter().map(|((_, width), value)| {
            let value = value(slice);
            cell(&value.map_or_else(|| "-".to_owned(), Value::label), *width)
        });
        cells.collect::<String>()
    });
    std::iter::once(head.collect()).chain(rows).collect()
}

fn cell(text: &str, width: usize) -> String {
    format!("{text:>width$} ")
}

/// Writes the slices as CSV: a header, then a row for each slice. A figure that was not measured is
/// an empty cell. Errors: the errors of `out`.
pub fn csv(out: &mut impl Write, slices: &TimeSlices) -> io::Result<()> {
    line(out, COLUMNS.iter().map(|column| Some(column.name)))?;
    slices.slices.iter().try_for_each(|slice| {
        line(out, COLUMNS.iter().map(|column| (column.value)(slice).map(Value::exact)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchanges::{facts, ms, reply};
    use model::exchange::Kind::{End, Text};
    use result::summary::Summary;

    /// One request is sent in each of the first two seconds. The last one ends in the third.
    fn sliced(streamed: bool) -> TimeSlices {
        let events = |first| {
            [
                (first, Text, Some(1), 3),
                (first + 500, Text, Some(1), 3),
                (first + 500, End, None, 0),
            ]
        };
        let run = [reply(0, 1000, &events(1200)), reply(1, 2000, &events(2750))];
        let mut facts = facts();
        facts.run.time_slice = Some(ms(1000));
        facts.run.streamed = streamed;
        Summary::new(&facts, &run).time_slices.unwrap()
    }

    #[test]
    fn every_form_has_each_slice_and_no_false_zero() {
        let mut out = Vec::new();
        csv(&mut out, &sliced(true)).unwrap();
        let text = String::from_utf8(out).unwrap();
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(rows.len(), 1 + 3);
        assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{text}");
        let column = |name: &str| {
            let at = rows[0].iter().position(|head| *head == name).unwrap();
            rows[1..].iter().map(|row| row[at]).collect::<Vec<_>>()
        };
        assert_eq!(column("from-s"), ["0", "1", "2"]);
        assert_eq!(column("to-s"), ["1", "2", "2.25"]);
        assert_eq!(column("output-tokens"), ["2", "1", "1"]);
        assert_eq!(column("median-ttft-ms"), ["200.000000", "750.000000", ""]);
        assert_eq!(column("mean-itl-ms"), ["500.000000", "", "500.000000"]);

        let lines = lines(&sliced(true));
        assert_eq!(lines.len(), 1 + 3);
        assert!(lines[3].contains(" - "), "{lines:?}");
        assert!(!lines[3].contains(" 0.00"), "{lines:?}");
        assert_eq!(table(&sliced(true)).rows.len(), 3);
        let whole = table(&sliced(false)).head;
        assert!(!whole.iter().any(|head| head.contains("TTFT")), "{whole:?}");
        assert!(!whole.iter().any(|head| head.contains("tok/s")), "{whole:?}");
    }

    #[test]
    fn states_a_changed_slice_length() {
        let mut slices = sliced(true);
        assert_eq!(length(&slices), "of 1 s");
        slices.requested_s = Some(0.0001);
        assert_eq!(length(&slices), "of 1 s, because there would be too many of 0.0001 s");
    }
}

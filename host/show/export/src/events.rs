//! The table of output events: a row for each piece of each answer.

use super::batch::Batch;
use super::requests::outputs;
use super::schema::{Head, Type};
use super::{ExportError, Run};
use model::exchange::Kind;
use model::units::Nanos;
use report::row::{Row, phase};
use result::metric::{self, Measure, Metric};

pub(crate) fn heads() -> Vec<Head> {
    let itl = metric::by_name(metric::ITL);
    vec![
        Head::run(),
        Head::new("index", Type::Whole, "", "the request, by its position in its phase"),
        Head::text("phase", "warmup, or measure: the part that figures cover"),
        Head::new(
            "event",
            Type::Whole,
            "",
            "position among the output events of its reply, from 0",
        ),
        Head::new("at_ns", Type::Whole, "ns", "the time at which its last bytes were read"),
        Head::text("kind", "text, reasoning, tool, vector or order"),
        Head::new("tokens", Type::Whole, "tokens", "tokens in it, where the server states them"),
        Head::new("bytes", Type::Whole, "bytes", "size of the added text"),
        Head::new(
            "itl_ms",
            Type::Number,
            itl.map_or("", |itl| itl.unit.symbol()),
            itl.map_or("", |itl| itl.definition),
        ),
    ]
}

pub(crate) fn write(run: &Run<'_>, batch: &mut Batch<'_>) -> Result<(), ExportError> {
    let itl = metric::by_name(metric::ITL);
    for exchange in run.folder.read()? {
        let exchange = exchange?;
        let row = Row::new(&run.facts, &exchange);
        let gaps = match itl {
            Some(itl) if exchange.is_ok() => gaps(itl, &row),
            _ => Vec::new(),
        };
        let mut gaps = gaps.into_iter().peekable();
        let mut pieces = 0u64;
        for (place, event) in outputs(&exchange).enumerate() {
            batch.text(Some(&run.label));
            batch.whole(Some(exchange.index));
            batch.text(Some(phase(exchange.phase)));
            batch.whole(Some(place as u64));
            batch.instant(Some(event.at));
            batch.text(Some(word(event.kind)));
            batch.whole(event.tokens.map(u64::from));
            batch.whole(Some(event.bytes.into()));
            // The metric has a sample for each event that carries bytes but the first.
            pieces += u64::from(event.bytes > 0);
            let is_sample = event.bytes > 0 && pieces > 1;
            let gap = gaps.next_if(|(at, _)| is_sample && *at == event.at);
            batch.number(gap.map(|(_, gap)| gap));
            batch.end()?;
        }
    }
    Ok(())
}

/// The metric's samples of a request, each with its instant, in its unit.
fn gaps(metric: &Metric, row: &Row<'_>) -> Vec<(Nanos, f64)> {
    let mut gaps = Vec::new();
    if let Measure::Pooled(show) = metric.measure {
        show(&row.reading, &mut |at, value, _| {
            gaps.push((at, value as f64 / metric.unit.scale()));
        });
    }
    gaps
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "text",
        Kind::Reasoning => "reasoning",
        Kind::Tool => "tool",
        Kind::Vector => "vector",
        Kind::Order => "order",
        Kind::Audio => "audio",
        other => unreachable!("{other:?} is no output"),
    }
}

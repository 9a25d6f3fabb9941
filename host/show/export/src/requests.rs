//! The table of requests: a row for each, warmup included, in the order in which they ended.

use super::batch::Batch;
use super::schema::{Head, Type};
use super::{ExportError, Form, Run};
use model::exchange::{Event, Exchange};
use report::row::{Column, Kind, Row, Value, columns};
use result::metric::Unit;

/// The column after which stands when the first token came.
const BEFORE_FIRST_TOKEN: &str = "headers";

pub(crate) fn heads(form: Form) -> Vec<Head> {
    let mut heads = vec![Head::run()];
    for column in columns() {
        heads.push(head(column));
        if column.name == BEFORE_FIRST_TOKEN {
            heads.push(Head::new(
                "first_token_ns",
                Type::Whole,
                "ns",
                "the time of the first output of a streamed reply: the end of ttft",
            ));
        }
    }
    if has_lists(form) {
        heads.push(Head::new(
            "event_ns",
            Type::Wholes,
            "ns",
            "the time at which each output event of the reply was complete",
        ));
        heads.push(Head::new(
            "event_tokens",
            Type::Wholes,
            "tokens",
            "the tokens of each output event, if the server states them",
        ));
    }
    heads
}

/// True if the form has room for each event's data.
fn has_lists(form: Form) -> bool {
    form != Form::Csv
}

/// The head of a column of requests: with an underscore where its name has a hyphen, because a
/// query need not quote that, and with its unit at the end.
fn head(column: &Column) -> Head {
    let name = column.name.replace('-', "_");
    let about = column.about;
    match column.kind {
        Kind::Text => Head::text(name, about),
        Kind::Flag => Head::new(name, Type::Flag, "", about),
        Kind::Count(unit) => Head::new(name, Type::Whole, unit, about),
        Kind::Instant => Head::new(format!("{name}_ns"), Type::Whole, "ns", about),
        Kind::Requests => Head::new(name, Type::Wholes, "", about),
        Kind::Metric(unit, _) => {
            let (name, kind) = match unit {
                Unit::Milliseconds => (format!("{name}_ms"), Type::Number),
                Unit::TokensPerSecond => (format!("{name}_tok_s"), Type::Number),
                Unit::Tokens | Unit::Requests => (name, Type::Whole),
                Unit::TokensPerEvent
                | Unit::TokensPerStep
                | Unit::Share
                | Unit::Ratio
                | Unit::Speedup => (name, Type::Number),
            };
            Head::new(name, kind, unit.symbol(), about)
        }
    }
}

pub(crate) fn outputs(exchange: &Exchange) -> impl Iterator<Item = Event> {
    exchange.events.iter().filter(|event| event.kind.is_output())
}

pub(crate) fn write(run: &Run<'_>, form: Form, batch: &mut Batch<'_>) -> Result<(), ExportError> {
    for exchange in run.folder.read()? {
        let exchange = exchange?;
        let row = Row::new(&run.facts, &exchange);
        batch.text(Some(&run.label));
        for column in columns() {
            cell(batch, column, &row);
            if column.name == BEFORE_FIRST_TOKEN {
                batch.instant(row.reading.began());
            }
        }
        if has_lists(form) {
            // Without a reply there is no list, which is not an empty one.
            let has_reply = !exchange.events.at.is_empty();
            batch.wholes(has_reply.then(|| outputs(&exchange).map(|event| Some(event.at.0))));
            let tokens = || outputs(&exchange).map(|event| event.tokens.map(u64::from));
            batch.wholes(has_reply.then(tokens));
        }
        batch.end()?;
    }
    Ok(())
}

fn cell(batch: &mut Batch<'_>, column: &Column, row: &Row<'_>) {
    let Some(value) = column.sample(row) else { return batch.null() };
    match (value, column.kind) {
        // An empty text has no meaning.
        (Value::Text(words), _) => batch.text(Some(&*words).filter(|words| !words.is_empty())),
        (Value::Flag(flag), _) => batch.flag(Some(flag)),
        (Value::Count(count), _) => batch.whole(Some(count)),
        (Value::Instant(at), _) => batch.instant(Some(at)),
        (Value::Requests(numbers), _) => batch.wholes(Some(numbers.iter().copied().map(Some))),
        (Value::Metric(value), Kind::Metric(Unit::Tokens | Unit::Requests, _)) => {
            batch.whole(Some(value as u64));
        }
        (Value::Metric(value), _) => batch.number(Some(value)),
    }
}

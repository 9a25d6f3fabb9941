//! The columns of a request: each with its name, its type, its meaning, and the source of its
//! value. Every table of requests is made of them, whatever its form, so a column means the same in
//! each.
//!
//! This module owns the list of columns. It leaves figures to `result::metric`, and the writing of
//! values to the forms: `csv`, and the columns of the crate `export`.

use std::borrow::Cow;
use std::sync::LazyLock;

use model::exchange::{Exchange, Outcome, Phase, Reason};
use model::units::Nanos;
use result::metric::objective::kept;
use result::metric::{self, Of, Reading, Single, Unit};
use result::summary::RunFacts;

/// A column of a table of requests.
pub struct Column {
    pub name: &'static str,
    pub kind: Kind,
    /// Its meaning; of a metric, the definition in the catalogue.
    pub about: &'static str,
    take: Take,
}

/// The kind of value that a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Flag,
    /// A whole number, with its unit or nothing.
    Count(&'static str),
    Instant,
    /// A metric of the catalogue: its unit, and the requests whose values are its samples.
    Metric(Unit, Of),
    Requests,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    Text(Cow<'a, str>),
    Flag(bool),
    Count(u64),
    Instant(Nanos),
    /// A metric, in its unit.
    Metric(f64),
    Requests(&'a [u64]),
}

/// The source of a column's values.
enum Take {
    Text(for<'a> fn(&Row<'a>) -> Option<Cow<'a, str>>),
    Flag(fn(&Row<'_>) -> Option<bool>),
    Count(fn(&Row<'_>) -> Option<u64>),
    Instant(fn(&Row<'_>) -> Option<Nanos>),
    Metric(Single),
    Requests(for<'a> fn(&Row<'a>) -> &'a [u64]),
}

/// A request with the data of its columns.
pub struct Row<'a> {
    facts: &'a RunFacts,
    exchange: &'a Exchange,
    /// The request as metrics look at it.
    pub reading: Reading<'a>,
    retokenized: Option<u32>,
}

impl<'a> Row<'a> {
    pub fn new(facts: &'a RunFacts, exchange: &'a Exchange) -> Self {
        let measured = exchange.phase == Phase::Measure;
        let retokenized = facts.retokenized.get(exchange.index).filter(|_| measured);
        let run = &facts.run;
        Row {
            facts,
            exchange,
            reading: Reading::new(exchange, run.streamed, retokenized).at_pace(run.pace()),
            retokenized,
        }
    }

    /// True if the request met all objectives; `None` without objectives, and in the warmup.
    fn is_good(&self) -> Option<bool> {
        let objectives = &self.facts.run.goodput;
        let keeps = |objective: &metric::Objective| {
            let measure = objective.measure();
            measure
                .is_some_and(|taken| kept(taken, objective.at_most_ms, &self.reading) == Some(true))
        };
        let is_judged = self.exchange.phase == Phase::Measure && !objectives.is_empty();
        is_judged.then(|| self.exchange.is_ok() && objectives.iter().all(keeps))
    }

    /// Reason why a request was not answered.
    fn failure(&self) -> Option<(Option<Reason>, &'a str)> {
        match &self.exchange.outcome {
            Outcome::Ok => None,
            Outcome::Incomplete { reason, message, .. } => Some((*reason, message)),
        }
    }
}

impl Column {
    /// The value of a request; absent if there is none. Metrics of a request that failed have the
    /// values that were observed; no statistic includes them.
    pub fn value<'a>(&self, row: &Row<'a>) -> Option<Value<'a>> {
        match self.take {
            Take::Text(take) => take(row).map(Value::Text),
            Take::Flag(take) => take(row).map(Value::Flag),
            Take::Count(take) => take(row).map(Value::Count),
            Take::Instant(take) => take(row).map(Value::Instant),
            Take::Metric(measure) => measure(&row.reading).map(Value::Metric),
            Take::Requests(take) => {
                Some(take(row)).filter(|requests| !requests.is_empty()).map(Value::Requests)
            }
        }
    }

    /// The value of a request where it is a sample of the metric: absent for a metric of answers
    /// where the request was not answered. The mean over the measured requests equals the
    /// summary's.
    pub fn sample<'a>(&self, row: &Row<'a>) -> Option<Value<'a>> {
        let is_left_out =
            matches!(self.kind, Kind::Metric(_, Of::Answered)) && !row.exchange.is_ok();
        if is_left_out { None } else { self.value(row) }
    }
}

/// Every column, in the order of tables: identity and times, metrics, other facts.
pub fn columns() -> &'static [Column] {
    static COLUMNS: LazyLock<Vec<Column>> = LazyLock::new(all);
    &COLUMNS
}

fn all() -> Vec<Column> {
    let metrics = metric::single().map(|(metric, measure)| Column {
        name: metric.name,
        kind: Kind::Metric(metric.unit, metric.of),
        about: metric.definition,
        take: Take::Metric(measure),
    });
    before().into_iter().chain(metrics).chain(after()).collect()
}

/// Lists columns, each with its name, its kind, its meaning, and its value.
macro_rules! columns {
    ($($name:literal: $kind:ident $(($unit:literal))?, $about:literal, $take:expr;)+) => {
        [$(Column {
            name: $name,
            kind: Kind::$kind $(($unit))?,
            about: $about,
            take: Take::$kind($take),
        }),+]
    };
}

fn before() -> [Column; 12] {
    columns! {
        "index": Count(""), "position in its phase's sequence of samples, from 0",
            |row| Some(row.exchange.index);
        "phase": Text, "warmup, or measure: the part that figures cover",
            |row| Some(phase(row.exchange.phase).into());
        "id": Text, "the sample, unique within the run",
            |row| Some(row.exchange.sample.id.as_str().into());
        "outcome": Text, "the class of the outcome: complete, or the kind of failure",
            |row| Some(row.exchange.outcome.class().name().into());
        "status": Count(""), "the HTTP status of the reply",
            |row| row.exchange.status.map(u64::from);
        "finish": Text, "the finish reason in the server's own words",
            |row| row.exchange.finish.as_deref().map(Cow::from);
        "due": Instant, "the time at which it was due", |row| Some(row.exchange.due);
        "granted": Instant,
            "the time at which the cap on requests in flight released it; absent without a cap",
            |row| row.exchange.granted;
        "sent": Instant, "the time at which its first byte was handed to the socket",
            |row| row.exchange.sent;
        "headers": Instant, "the time at which the headers of its reply were complete",
            |row| row.exchange.headers;
        "ended": Instant, "the time at which its reply ended, well or badly",
            |row| row.exchange.ended;
        "events": Count(""), "events of its reply, of every kind",
            |row| Some(row.exchange.events.at.len() as u64);
    }
}

fn after() -> [Column; 23] {
    columns! {
        "good": Flag, "true if it met all objectives of the run; absent if the run has none",
            |row| row.is_good();
        "input-tokens-source": Text, "the source of the number of its prompt's tokens",
            |row| Some(row.reading.input_tokens?.source.name().into());
        "output-tokens-source": Text, "the source of the number of its answer's tokens",
            |row| Some(row.reading.output_tokens?.source.name().into());
        "output-tokens-requested": Count("tokens"), "requested output tokens",
            |row| row.exchange.sample.output_tokens.map(u64::from);
        "output-tokens-retokenized": Count("tokens"),
            "tokens of its answer by this client's tokenizer",
            |row| row.retokenized.map(u64::from);
        "speculation-steps": Count("steps"),
            "steps of speculative decoding of its answer, as the server reports them",
            |row| Some(row.exchange.speculation.as_ref()?.steps.into());
        "counts": Text, "further counts of the server for it, each as `name=number`", |row| {
            let counts = row.exchange.counts.iter();
            let counts: Vec<String> =
                counts.map(|(name, count)| format!("{name}={count}")).collect();
            (!counts.is_empty()).then(|| counts.join(" ").into())
        };
        "steps": Count("requests"),
            "requests that led to its answer, if a reply can name a next request",
            |row| Some(row.exchange.steps.len() as u64).filter(|steps| *steps > 0);
        "request-bytes": Count("bytes"), "size of the request's body",
            |row| Some(row.exchange.sample.request_bytes);
        "output-bytes": Count("bytes"), "size of the answer's text",
            |row| Some(row.exchange.output.len() as u64);
        "request-digest": Text,
            "first 16 hexadecimal digits of the SHA-256 of method, path and body",
            |row| Some(row.exchange.sample.request_digest.as_str().into());
        "session": Text, "its conversation",
            |row| Some(row.exchange.sample.turn.as_ref()?.session.as_str().into());
        "turn": Count(""), "its place in its conversation, from 0",
            |row| Some(row.exchange.sample.turn.as_ref()?.index.into());
        "class": Text, "the kind of sample, in the dataset's own words",
            |row| row.exchange.sample.class.as_deref().map(Cow::from);
        "parents": Requests, "the requests that it depends on, by their index",
            |row| &row.exchange.sample.parents;
        "request-id": Text, "the id that it carried: a server's log may have it",
            |row| row.exchange.ids.as_ref()?.request.as_deref().map(Cow::from);
        "session-id": Text, "the id of its session that it carried",
            |row| row.exchange.ids.as_ref()?.session.as_deref().map(Cow::from);
        "parent-session-id": Text, "the id that it carried of the session that began its session",
            |row| row.exchange.ids.as_ref()?.parent.as_deref().map(Cow::from);
        "routing-key": Text, "the key that it carried for routers",
            |row| row.exchange.ids.as_ref()?.routing_key.as_deref().map(Cow::from);
        "trace-id": Text, "its trace, if it carried one",
            |row| Some(row.exchange.ids.as_ref()?.trace?.to_string().into());
        "span-id": Text, "its span in the trace",
            |row| Some(row.exchange.ids.as_ref()?.span?.to_string().into());
        "reason": Text, "the reason why the server did not answer, in terms that all engines share",
            |row| row.failure()?.0.map(|reason| reason.name().into());
        "message": Text, "the error message", |row| row.failure().map(|(_, text)| text.into());
    }
}

/// The part of a run, in tables and spans.
pub fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Warmup => "warmup",
        Phase::Measure => "measure",
        Phase::Tail => "tail",
    }
}

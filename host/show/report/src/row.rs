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
    /// Its name, without a unit.
    pub name: &'static str,
    /// Meaning of its values.
    pub kind: Kind,
    /// Its meaning; of a metric, the definition in the catalogue.
    pub about: &'static str,
    take: Take,
}

/// The kind of value that a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Words.
    Text,
    /// True or false.
    Flag,
    /// A whole number, with its unit or nothing.
    Count(&'static str),
    /// An instant since the run's origin.
    Instant,
    /// A metric of the catalogue: its unit, and the requests whose values are its samples.
    Metric(Unit, Of),
    /// The numbers of other requests.
    Requests,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// Words.
    Text(Cow<'a, str>),
    /// True or false.
    Flag(bool),
    /// A whole number.
    Count(u64),
    /// An instant since the run's origin.
    Instant(Nanos),
    /// A metric, in its unit.
    Metric(f64),
    /// The numbers of other requests.
    Requests(&'a [u64]),
}

enum Take {
    Of(for<'a> fn(&Row<'a>) -> Option<Value<'a>>),
    Metric(Single),
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
    /// Reads a request of a run.
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

    /// True if the request met all of the run's objectives; `None` if the run has none, and for a
    /// request of the warmup.
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
            Take::Of(take) => take(row),
            Take::Metric(measure) => measure(&row.reading).map(Value::Metric),
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

/// Every column, in the order of tables: a request's identity and times, its metrics in the order
/// of the catalogue, and its other facts.
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

/// The columns before the metrics.
fn before() -> [Column; 12] {
    [
        column(
            "index",
            Kind::Count(""),
            "position in its phase's sequence of samples, from 0",
            |row| Some(Value::Count(row.exchange.index)),
        ),
        column("phase", Kind::Text, "warmup, or measure: the part that figures cover", |row| {
            Some(text(match row.exchange.phase {
                Phase::Warmup => "warmup",
                Phase::Measure => "measure",
            }))
        }),
        column("id", Kind::Text, "the sample, unique within the run", |row| {
            Some(text(&row.exchange.sample.id))
        }),
        column(
            "outcome",
            Kind::Text,
            "the class of the outcome: complete, or the kind of failure",
            |row| Some(text(row.exchange.outcome.class().name())),
        ),
        column("status", Kind::Count(""), "the HTTP status of the reply", |row| {
            row.exchange.status.map(u64::from).map(Value::Count)
        }),
        column("finish", Kind::Text, "the finish reason in the server's own words", |row| {
            row.exchange.finish.as_deref().map(text)
        }),
        column("due", Kind::Instant, "the time at which it was due", |row| {
            Some(Value::Instant(row.exchange.due))
        }),
        column(
            "granted",
            Kind::Instant,
            "the time at which the cap on requests in flight released it; absent without a cap",
            |row| row.exchange.granted.map(Value::Instant),
        ),
        column(
            "sent",
            Kind::Instant,
            "the time at which its first byte was handed to the socket",
            |row| row.exchange.sent.map(Value::Instant),
        ),
        column(
            "headers",
            Kind::Instant,
            "the time at which the headers of its reply were complete",
            |row| row.exchange.headers.map(Value::Instant),
        ),
        column("ended", Kind::Instant, "the time at which its reply ended, well or badly", |row| {
            row.exchange.ended.map(Value::Instant)
        }),
        column("events", Kind::Count(""), "events of its reply, of every kind", |row| {
            Some(Value::Count(row.exchange.events.at.len() as u64))
        }),
    ]
}

/// The columns after the metrics.
fn after() -> [Column; 23] {
    [
        column(
            "good",
            Kind::Flag,
            "true if it met all objectives of the run; absent if the run has none",
            |row| row.is_good().map(Value::Flag),
        ),
        column(
            "input-tokens-source",
            Kind::Text,
            "the source of the number of its prompt's tokens",
            |row| Some(text(row.reading.input_tokens?.source.name())),
        ),
        column(
            "output-tokens-source",
            Kind::Text,
            "the source of the number of its answer's tokens",
            |row| Some(text(row.reading.output_tokens?.source.name())),
        ),
        column(
            "output-tokens-requested",
            Kind::Count("tokens"),
            "requested output tokens",
            |row| {
                let requested = row.exchange.sample.output_tokens;
                requested.map(u64::from).map(Value::Count)
            },
        ),
        column(
            "output-tokens-retokenized",
            Kind::Count("tokens"),
            "tokens of its answer by this client's tokenizer",
            |row| row.retokenized.map(u64::from).map(Value::Count),
        ),
        column(
            "speculation-steps",
            Kind::Count("steps"),
            "steps of speculative decoding of its answer, as the server reports them",
            |row| {
                let speculation = row.exchange.speculation.as_ref()?;
                Some(Value::Count(speculation.steps.into()))
            },
        ),
        column(
            "counts",
            Kind::Text,
            "further counts of the server for it, each as `name=number`",
            |row| {
                let counts = row.exchange.counts.iter();
                let counts: Vec<String> =
                    counts.map(|(name, count)| format!("{name}={count}")).collect();
                (!counts.is_empty()).then(|| Value::Text(counts.join(" ").into()))
            },
        ),
        column(
            "steps",
            Kind::Count("requests"),
            "requests that led to its answer, if a reply can name a next request",
            |row| {
                let steps = row.exchange.steps.len() as u64;
                (steps > 0).then_some(Value::Count(steps))
            },
        ),
        column("request-bytes", Kind::Count("bytes"), "size of the request's body", |row| {
            Some(Value::Count(row.exchange.sample.request_bytes))
        }),
        column("output-bytes", Kind::Count("bytes"), "size of the answer's text", |row| {
            Some(Value::Count(row.exchange.output.len() as u64))
        }),
        column(
            "request-digest",
            Kind::Text,
            "first 16 hexadecimal digits of the SHA-256 of method, path and body",
            |row| Some(text(&row.exchange.sample.request_digest)),
        ),
        column("session", Kind::Text, "its conversation", |row| {
            Some(text(&row.exchange.sample.turn.as_ref()?.session))
        }),
        column("turn", Kind::Count(""), "its place in its conversation, from 0", |row| {
            let turn = row.exchange.sample.turn.as_ref()?;
            Some(Value::Count(turn.index.into()))
        }),
        column("class", Kind::Text, "the kind of sample, in the dataset's own words", |row| {
            row.exchange.sample.class.as_deref().map(text)
        }),
        column(
            "parents",
            Kind::Requests,
            "the requests that it depends on, by their index",
            |row| {
                let parents = &row.exchange.sample.parents;
                (!parents.is_empty()).then_some(Value::Requests(parents))
            },
        ),
        column(
            "request-id",
            Kind::Text,
            "the id that it carried: a server's log may have it",
            |row| row.exchange.ids.as_ref()?.request.as_deref().map(text),
        ),
        column("session-id", Kind::Text, "the id of its session that it carried", |row| {
            row.exchange.ids.as_ref()?.session.as_deref().map(text)
        }),
        column(
            "parent-session-id",
            Kind::Text,
            "the id that it carried of the session that began its session",
            |row| row.exchange.ids.as_ref()?.parent.as_deref().map(text),
        ),
        column("routing-key", Kind::Text, "the key that it carried for routers", |row| {
            row.exchange.ids.as_ref()?.routing_key.as_deref().map(text)
        }),
        column("trace-id", Kind::Text, "its trace, if it carried one", |row| {
            let id = row.exchange.ids.as_ref()?.trace?;
            Some(Value::Text(Cow::Owned(id.to_string())))
        }),
        column("span-id", Kind::Text, "its span in the trace", |row| {
            let id = row.exchange.ids.as_ref()?.span?;
            Some(Value::Text(Cow::Owned(id.to_string())))
        }),
        column(
            "reason",
            Kind::Text,
            "the reason why the server did not answer, in terms that all engines share",
            |row| row.failure()?.0.map(|reason| text(reason.name())),
        ),
        column("message", Kind::Text, "the error message", |row| {
            row.failure().map(|(_, message)| text(message))
        }),
    ]
}

fn column(
    name: &'static str,
    kind: Kind,
    about: &'static str,
    take: for<'a> fn(&Row<'a>) -> Option<Value<'a>>,
) -> Column {
    Column { name, kind, about, take: Take::Of(take) }
}

fn text(words: &str) -> Value<'_> {
    Value::Text(Cow::Borrowed(words))
}

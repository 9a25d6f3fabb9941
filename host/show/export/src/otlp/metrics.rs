//! Histograms of the measured requests, under the names, units and bounds of OpenTelemetry's
//! semantic conventions for clients of generative AI.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::span::{common, failure};
use super::{About, int, text};
use crate::requests::outputs;
use model::exchange::{Class, Exchange, Phase};
use model::units::Nanos;

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u8 = 2;

/// Upper bounds of durations, in seconds (`gen_ai.client.operation.duration`).
const DURATIONS: &[f64] =
    &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/// Upper bounds of numbers of tokens (`gen_ai.client.token.usage`).
const TOKENS: &[f64] = &{
    let mut bounds = [1.0; 14];
    let mut at = 1;
    while at < bounds.len() {
        bounds[at] = bounds[at - 1] * 4.0;
        at += 1;
    }
    bounds
};
/// Upper bounds of times to the first chunk, in seconds (`gen_ai.server.time_to_first_token`).
const FIRST: &[f64] =
    &[0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];
/// Upper bounds of times per chunk, in seconds (`gen_ai.server.time_per_output_token`).
const EACH: &[f64] = &[0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5];

/// A metric: its name, its meaning, its unit and the bounds of its buckets.
type Kind = (&'static str, &'static str, &'static str, &'static [f64]);

const DURATION: usize = 0;
const USAGE: usize = 1;
const FIRST_CHUNK: usize = 2;
const EACH_CHUNK: usize = 3;

const KINDS: [Kind; 4] = [
    (
        "gen_ai.client.operation.duration",
        "From when a request was sent until it ended",
        "s",
        DURATIONS,
    ),
    (
        "gen_ai.client.token.usage",
        "Tokens of prompts and answers, as the server counts them",
        "{token}",
        TOKENS,
    ),
    (
        "gen_ai.client.operation.time_to_first_chunk",
        "From when a request was sent until the first chunk of its answer",
        "s",
        FIRST,
    ),
    (
        "gen_ai.client.operation.time_per_output_chunk",
        "Time per chunk of an answer after the first",
        "s",
        EACH,
    ),
];

/// The labels of a metric's point: the operation, and the type of tokens or of the error.
type Label = (&'static str, Option<(&'static str, &'static str)>);

#[derive(Default)]
pub(super) struct Metrics {
    /// The points of each of [`KINDS`].
    points: [BTreeMap<Label, Counts>; KINDS.len()],
    /// The first due time, and the last end.
    measured: Option<(Nanos, Nanos)>,
}

#[derive(Default)]
struct Counts {
    buckets: Vec<u64>,
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
}

impl Counts {
    fn add(&mut self, value: f64, bounds: &[f64]) {
        self.buckets.resize(bounds.len() + 1, 0);
        // A bound belongs to the bucket that it ends.
        let bucket = bounds.partition_point(|bound| *bound < value);
        if let Some(bucket) = self.buckets.get_mut(bucket) {
            *bucket += 1;
        }
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = if self.count == 0 { value } else { self.max.max(value) };
        self.count += 1;
        self.sum += value;
    }
}

impl Metrics {
    fn count(&mut self, kind: usize, label: Label, value: f64) {
        self.points[kind].entry(label).or_default().add(value, KINDS[kind].3);
    }

    /// Adds an exchange, unless it belongs to the warm-up or was never sent.
    pub(super) fn add(&mut self, about: &About, exchange: &Exchange) {
        let Some(sent) = exchange.sent.filter(|_| exchange.phase == Phase::Measure) else { return };
        let (due, end) = (exchange.due, super::span::end(exchange));
        let (from, to) = self.measured.unwrap_or((due, end));
        self.measured = Some((from.min(due), to.max(end)));
        let operation = about.operation_of(exchange);
        let failed = failure(exchange).map(|(class, _)| ("error.type", class));
        if let Some(ended) = exchange.ended {
            self.count(DURATION, (operation, failed), ended.since(sent).as_secs_f64());
        }
        let usage = exchange.usage.unwrap_or_default();
        for (kind, tokens) in [("input", usage.input_tokens), ("output", usage.output_tokens)] {
            if let Some(tokens) = tokens {
                let label = (operation, Some(("gen_ai.token.type", kind)));
                self.count(USAGE, label, f64::from(tokens));
            }
        }
        let is_answered = failed.is_none() && exchange.outcome.class() != Class::Cancelled;
        let mut outputs = outputs(exchange).filter(|_| is_answered).map(|event| event.at);
        if let Some(first) = outputs.next() {
            self.count(FIRST_CHUNK, (operation, None), first.since(sent).as_secs_f64());
            let (gaps, last) = outputs.fold((0_u32, first), |(gaps, _), at| (gaps + 1, at));
            if gaps > 0 {
                let each = last.since(first).as_secs_f64() / f64::from(gaps);
                self.count(EACH_CHUNK, (operation, None), each);
            }
        }
    }

    pub(super) fn all(&self, about: &About) -> Vec<Value> {
        let measured = self.measured.unwrap_or_default();
        let all = KINDS.iter().zip(&self.points).filter(|(_, points)| !points.is_empty());
        let metric =
            |((name, meaning, unit, bounds), points): (&Kind, &BTreeMap<Label, Counts>)| {
                let points = points.iter();
                let points =
                    points.map(|(label, counts)| point(about, label, counts, bounds, measured));
                json!({
                    "name": name,
                    "description": meaning,
                    "unit": unit,
                    "histogram": {
                        "dataPoints": points.collect::<Vec<_>>(),
                        "aggregationTemporality": CUMULATIVE,
                    },
                })
            };
        all.map(metric).collect()
    }
}

fn point(
    about: &About,
    (operation, further): &Label,
    counts: &Counts,
    bounds: &[f64],
    (from, to): (Nanos, Nanos),
) -> Value {
    let mut attributes = common(about, operation);
    if let Some((key, value)) = further {
        attributes.push(text(key, value));
    }
    // One server is the point's own; of several, none is.
    if let [(host, port)] = &*about.servers {
        attributes.push(text("server.address", host));
        attributes.push(int("server.port", u64::from(*port)));
    }
    json!({
        "startTimeUnixNano": about.unix(from),
        "timeUnixNano": about.unix(to),
        "count": counts.count.to_string(),
        "sum": counts.sum,
        "bucketCounts": counts.buckets.iter().map(u64::to_string).collect::<Vec<_>>(),
        "explicitBounds": bounds,
        "attributes": attributes,
        "min": counts.min,
        "max": counts.max,
    })
}

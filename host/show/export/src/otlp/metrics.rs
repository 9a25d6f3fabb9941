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
const TOKENS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
/// Upper bounds of times to the first chunk, in seconds (`gen_ai.server.time_to_first_token`).
const FIRST: &[f64] =
    &[0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];
/// Upper bounds of times per chunk, in seconds (`gen_ai.server.time_per_output_token`).
const EACH: &[f64] = &[0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5];

/// A metric: its name and the bounds of its buckets.
struct Kind {
    name: &'static str,
    about: &'static str,
    unit: &'static str,
    bounds: &'static [f64],
}

const DURATION: Kind = Kind {
    name: "gen_ai.client.operation.duration",
    about: "From when a request was sent until it ended",
    unit: "s",
    bounds: DURATIONS,
};
const USAGE: Kind = Kind {
    name: "gen_ai.client.token.usage",
    about: "Tokens of prompts and answers, as the server counts them",
    unit: "{token}",
    bounds: TOKENS,
};
const FIRST_CHUNK: Kind = Kind {
    name: "gen_ai.client.operation.time_to_first_chunk",
    about: "From when a request was sent until the first chunk of its answer",
    unit: "s",
    bounds: FIRST,
};
const EACH_CHUNK: Kind = Kind {
    name: "gen_ai.client.operation.time_per_output_chunk",
    about: "Time per chunk of an answer after the first",
    unit: "s",
    bounds: EACH,
};

/// The labels that tell the points of a metric apart: the operation, and the type of tokens or of
/// the error.
type Label = (&'static str, Option<(&'static str, &'static str)>);

/// The histograms of a run.
#[derive(Default)]
pub(super) struct Metrics {
    durations: BTreeMap<Label, Counts>,
    tokens: BTreeMap<Label, Counts>,
    first: BTreeMap<Label, Counts>,
    each: BTreeMap<Label, Counts>,
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
    /// Adds an exchange, unless it belongs to the warm-up or was never sent.
    pub(super) fn add(&mut self, about: &About, exchange: &Exchange) {
        let Some(sent) = exchange.sent.filter(|_| exchange.phase == Phase::Measure) else {
            return;
        };
        let (due, end) = (exchange.due, super::span::end(exchange));
        let (from, to) = self.measured.unwrap_or((due, end));
        self.measured = Some((from.min(due), to.max(end)));
        let operation = about.operation_of(exchange);
        let failed = failure(exchange).map(|(class, _)| ("error.type", class));
        if let Some(ended) = exchange.ended {
            let counts = self.durations.entry((operation, failed)).or_default();
            counts.add(ended.since(sent).as_secs_f64(), DURATION.bounds);
        }
        let usage = exchange.usage.unwrap_or_default();
        for (kind, tokens) in [("input", usage.input_tokens), ("output", usage.output_tokens)] {
            if let Some(tokens) = tokens {
                let label = (operation, Some(("gen_ai.token.type", kind)));
                self.tokens.entry(label).or_default().add(f64::from(tokens), USAGE.bounds);
            }
        }
        let is_answered = failed.is_none() && exchange.outcome.class() != Class::Cancelled;
        let mut outputs = outputs(exchange).filter(|_| is_answered).map(|event| event.at);
        if let Some(first) = outputs.next() {
            let counts = self.first.entry((operation, None)).or_default();
            counts.add(first.since(sent).as_secs_f64(), FIRST_CHUNK.bounds);
            let (gaps, last) = outputs.fold((0_u32, first), |(gaps, _), at| (gaps + 1, at));
            if gaps > 0 {
                let each = last.since(first).as_secs_f64() / f64::from(gaps);
                self.each.entry((operation, None)).or_default().add(each, EACH_CHUNK.bounds);
            }
        }
    }

    /// All metrics that have points.
    pub(super) fn all(&self, about: &About) -> Vec<Value> {
        let measured = self.measured.unwrap_or_default();
        let all = [
            (DURATION, &self.durations),
            (USAGE, &self.tokens),
            (FIRST_CHUNK, &self.first),
            (EACH_CHUNK, &self.each),
        ];
        let all = all.into_iter().filter(|(_, points)| !points.is_empty());
        let metric = |(kind, points): (Kind, &BTreeMap<Label, Counts>)| {
            let points = points.iter();
            let points =
                points.map(|(label, counts)| point(about, label, counts, kind.bounds, measured));
            json!({
                "name": kind.name,
                "description": kind.about,
                "unit": kind.unit,
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

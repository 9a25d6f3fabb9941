//! Histograms of the measured requests, under the names, units and bounds of OpenTelemetry's
//! semantic conventions for clients of generative AI. They are cumulative, so a point that is lost
//! costs nothing but its time.

use std::collections::BTreeMap;

use model::exchange::Phase;
use model::units::Nanos;

use crate::message::{Histogram, HistogramPoint, KeyValue, Metric, Temporality};
use crate::span::{common, error};
use crate::{About, Seen};

/// Upper bounds of durations, in seconds (semantic conventions, `gen_ai.client.operation.duration`).
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
type Label = (String, Option<(&'static str, String)>);

/// The histograms of a run.
#[derive(Default)]
pub(crate) struct Metrics {
    durations: BTreeMap<Label, Counts>,
    tokens: BTreeMap<Label, Counts>,
    first: BTreeMap<Label, Counts>,
    each: BTreeMap<Label, Counts>,
    /// The first due time.
    since: Option<Nanos>,
}

/// One histogram.
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
    pub(crate) fn add(&mut self, about: &About, seen: &Seen) {
        let Some(sent) = seen.sent.filter(|_| seen.phase == Phase::Measure) else {
            return;
        };
        self.since = Some(self.since.map_or(seen.due, |since| since.min(seen.due)));
        let operation = about.operation_of(seen);
        let label = |further| (operation.to_owned(), further);
        let failed = error(seen).map(|kind| ("error.type", kind));
        let is_answered = failed.is_none() && !seen.is_cancelled;
        if let Some(ended) = seen.ended {
            let duration = ended.since(sent).as_secs_f64();
            let counts = self.durations.entry(label(failed)).or_default();
            counts.add(duration, DURATION.bounds);
        }
        for (kind, tokens) in [("input", seen.input_tokens), ("output", seen.output_tokens)] {
            if let Some(tokens) = tokens {
                let label = label(Some(("gen_ai.token.type", kind.to_owned())));
                let counts = self.tokens.entry(label).or_default();
                counts.add(f64::from(tokens), USAGE.bounds);
            }
        }
        if let Some(first) = seen.first_output.filter(|_| is_answered) {
            let counts = self.first.entry(label(None)).or_default();
            counts.add(first.since(sent).as_secs_f64(), FIRST_CHUNK.bounds);
            if let Some(last) = seen.last_output.filter(|_| seen.outputs > 1) {
                let gaps = (seen.outputs - 1) as f64;
                let counts = self.each.entry(label(None)).or_default();
                counts.add(last.since(first).as_secs_f64() / gaps, EACH_CHUNK.bounds);
            }
        }
    }

    /// All metrics that have points, as they are at this instant.
    pub(crate) fn all(&self, about: &About, now: Nanos) -> Option<Vec<Metric>> {
        let since = self.since?;
        let all = [
            (DURATION, &self.durations),
            (USAGE, &self.tokens),
            (FIRST_CHUNK, &self.first),
            (EACH_CHUNK, &self.each),
        ];
        let all = all.into_iter().filter(|(_, points)| !points.is_empty());
        let metric = |(kind, points): (Kind, &BTreeMap<Label, Counts>)| Metric {
            name: kind.name.to_owned(),
            description: kind.about.to_owned(),
            unit: kind.unit.to_owned(),
            histogram: Some(Histogram {
                data_points: (points.iter())
                    .map(|(label, counts)| point(about, label, counts, kind.bounds, [since, now]))
                    .collect(),
                aggregation_temporality: Temporality::Cumulative.into(),
            }),
        };
        Some(all.map(metric).collect())
    }
}

fn point(
    about: &About,
    (operation, further): &Label,
    counts: &Counts,
    bounds: &[f64],
    [since, now]: [Nanos; 2],
) -> HistogramPoint {
    let mut attributes = common(about, operation);
    if let Some((key, value)) = further {
        attributes.push(KeyValue::text(key, value.clone()));
    }
    // One server is the point's own; of several, none is.
    if let [(host, port)] = &*about.servers {
        attributes.push(KeyValue::text("server.address", &**host));
        attributes.push(KeyValue::int("server.port", u64::from(*port)));
    }
    HistogramPoint {
        start_time_unix_nano: about.unix(since),
        time_unix_nano: about.unix(now.max(since)),
        count: counts.count,
        sum: Some(counts.sum),
        bucket_counts: counts.buckets.clone(),
        explicit_bounds: bounds.to_vec(),
        attributes,
        min: Some(counts.min),
        max: Some(counts.max),
    }
}

//! The figures of the server's own series, as lines with their labels: for the text and for pages.

use result::summary::Summary;
use series::{Figure, Name};

/// A figure of the server's series.
pub(crate) struct Served {
    /// Its label, with its unit.
    pub label: &'static str,
    pub value: f64,
}

/// The label, the series' name, its value, and the factor.
type Row = (&'static str, Name, fn(&Figure) -> Option<f64>, f64);

const ROWS: [Row; 21] = [
    ("Mean running requests", Name::Running, |it| it.mean, 1.0),
    ("Most running requests", Name::Running, |it| it.max, 1.0),
    ("Mean waiting requests", Name::Waiting, |it| it.mean, 1.0),
    ("Most waiting requests", Name::Waiting, |it| it.max, 1.0),
    ("Mean KV cache usage (%)", Name::KvUsage, |it| it.mean, 100.0),
    ("Highest KV cache usage (%)", Name::KvUsage, |it| it.max, 100.0),
    ("Prefix cache hit rate (%)", Name::CacheHitRate, |it| it.mean, 100.0),
    ("Preemptions", Name::Preemptions, |it| it.total, 1.0),
    ("Refused requests", Name::Refused, |it| it.total.filter(|it| *it > 0.0), 1.0),
    ("Mean tokens per engine step", Name::BatchTokens, |it| it.mean, 1.0),
    ("Drafted tokens accepted (%)", Name::Acceptance, |it| it.mean, 100.0),
    ("Input tokens (tok/s)", Name::InputTokens, |it| it.per_s, 1.0),
    ("Output tokens (tok/s)", Name::OutputTokens, |it| it.per_s, 1.0),
    ("Mean queue time (ms)", Name::QueueTime, |it| it.mean, 1.0),
    ("P99 queue time (ms)", Name::QueueTime, |it| it.p99, 1.0),
    ("Mean prefill time (ms)", Name::PrefillTime, |it| it.mean, 1.0),
    ("P99 prefill time (ms)", Name::PrefillTime, |it| it.p99, 1.0),
    ("Mean KV transfer time (ms)", Name::TransferTime, |it| it.mean, 1.0),
    ("Mean TTFT, by the server (ms)", Name::ServerTtft, |it| it.mean, 1.0),
    ("It may be off by (ms)", Name::ServerTtft, |it| it.mean_within, 1.0),
    ("Most KV caches under way", Name::Transferring, |it| it.max, 1.0),
];

/// The figures that are known.
pub(crate) fn served(summary: &Summary) -> Vec<Served> {
    let Some(series) = &summary.server_series else {
        return Vec::new();
    };
    let rows = ROWS.iter().filter_map(|(label, name, read, factor)| {
        let value = read(series.figures.get(name)?)? * factor;
        Some(Served { label, value })
    });
    let queued = series.queues.iter().map(|queue| queue.queued);
    let queued = queued
        .reduce(f64::max)
        .map(|share| Served { label: "Time with a queue (%)", value: share * 100.0 });
    let pages = Served { label: "Metrics pages read", value: series.pages as f64 };
    rows.chain(queued).chain([pages]).collect()
}

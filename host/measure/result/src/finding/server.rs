//! Rules on the server's own metrics: do its counts agree with ours, did it have the prompts in its
//! cache already, and was its cache large enough?

use super::{Finding, Id};
use crate::summary::server::Figure;
use crate::summary::{Counted, Summary};
use ::series::Name;

/// The most by which the server's count may differ from ours, as a share of ours.
const APART: f64 = 0.01;

/// Shares of cached prompt tokens beyond which it is reported, and beyond which it affects figures.
/// Chat templates begin all prompts alike, so a few tokens are always cached.
const WARM: [f64; 2] = [0.02, 0.1];

pub(super) fn warm_cache(summary: &Summary) -> Option<Finding> {
    // Where answers report their cached tokens, other rules compare these with the run's
    // repetitions.
    if (summary.cache.as_ref()).is_some_and(|cache| cache.reported.is_some()) {
        return None;
    }
    let share = |cached: f64, all: f64| (all > 0.0).then_some(cached / all);
    let found_share = found(summary);
    let counted = summary.tokens.input_cached.zip(summary.tokens.input.total);
    let counted = counted.and_then(|(cached, all)| share(cached as f64, all as f64));
    let (share, whose) = match (counted, found_share) {
        (Some(share), _) => (share, "according to its answers"),
        (None, Some(share)) => (share, "according to its metrics"),
        (None, None) => return None,
    };
    // The run's own repetitions are no surprise, where they are known.
    let own = (summary.cache.as_ref()).and_then(super::cache::explained);
    if own.is_some_and(|own| share <= own) {
        return None;
    }
    let [reported, shows] = WARM;
    (share > reported).then(|| Id::WarmCache.doubted(
        share > shows,
        format!(
            "{whose}, the server had {:.1} % of the prompts' tokens in its prefix cache",
            share * 100.0
        ),
        "the server does not compute cached tokens: time to first token and input throughput benefit from a cache that may be left over from another run, or from prompts that resemble each other",
        "unless prompts share a prefix on purpose, flush the cache before the measurement (--flush-cache) or use another --seed; otherwise publish this share together with the result",
    ))
}

/// The share of looked-up tokens that the server's own counters found in its prefix cache: between
/// its two readings, or in its series.
pub(super) fn found(summary: &Summary) -> Option<f64> {
    let counted = summary.server.as_ref().and_then(|server| {
        let hits = server.counted(Figure::PrefixCacheHits)?;
        let queries = server.counted(Figure::PrefixCacheQueries)?;
        (queries > 0.0).then_some(hits / queries)
    });
    counted.or_else(|| {
        let series = summary.server_series.as_ref()?;
        series.figures.get(&Name::CacheHitRate)?.mean
    })
}

pub(super) fn preempted(summary: &Summary) -> Option<Finding> {
    let counted = summary.server.as_ref();
    let counted = counted.and_then(|server| server.counted(Figure::Preemptions));
    let series = summary.server_series.as_ref();
    let series = series.and_then(|series| series.figures.get(&Name::Preemptions));
    // The two readings are exact; of the series, the ends are shared out between pages.
    let in_series = series.and_then(|figure| figure.total).map(f64::round);
    let preemptions = counted.or(in_series)?;
    let when = series.and_then(|figure| figure.first_s.zip(figure.last_s));
    let when = when.map_or(String::new(), |(first, last)| {
        format!(", between {first:.0} s and {last:.0} s after the measurement began")
    });
    let per_request = preemptions / summary.requests.successful.max(1) as f64;
    (preemptions > 0.0).then(|| Id::Preempted.note(
        format!(
            "the server preempted requests {preemptions} times, {per_request:.2} times per answered request{when}"
        ),
        "its KV cache was too small for the load: preempted requests are computed again or swapped, which costs throughput and makes long gaps between tokens",
        "lower the load, cap the requests that the server runs at once, or give its KV cache more memory; otherwise publish this number with the result",
    ))
}

pub(super) fn disagrees(summary: &Summary) -> Option<Finding> {
    let server = summary.server.as_ref()?;
    let known = |counted: &Counted| counted.total.filter(|_| counted.unknown == 0);
    let ours = [
        (Figure::FinishedRequests, "requests", Some(summary.requests.successful)),
        (Figure::InputTokens, "input tokens", known(&summary.tokens.input)),
        (Figure::OutputTokens, "output tokens", known(&summary.tokens.output)),
    ];
    let apart: Vec<String> = ours
        .into_iter()
        .filter_map(|(figure, unit, ours)| {
            let (theirs, ours) = (server.counted(figure)?, ours?);
            let is_apart = (theirs - ours as f64).abs() > APART * ours.max(1) as f64;
            is_apart.then(|| format!("{theirs} {unit} instead of {ours}"))
        })
        .collect();
    (!apart.is_empty()).then(|| Id::ServerCountsDisagree.suspect(
        format!("during the measurement, the server counted {}", apart.join(", ")),
        "most likely it served other clients at the same time, or kept working on requests that failed here; both took capacity that the figures do not show",
        "make sure that nothing else uses the server during a measurement, and check whether requests failed; if neither explains it, server and client count differently",
    ))
}

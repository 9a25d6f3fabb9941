//! Rules on the server's own metrics: its counts, the prompts in its cache, the cache's size.

use super::{Finding, Id};
use crate::summary::server::Figure;
use crate::summary::{Counted, ServerSeries, Summary};
use ::series::Name;
use series::Queue;

/// The most by which the server's count may differ from ours, as a share of ours.
const APART: f64 = 0.01;

/// Shares of cached prompt tokens beyond which it is reported, and beyond which it affects figures.
/// Chat templates begin all prompts alike, so a few tokens are always cached.
const WARM: [f64; 2] = [0.02, 0.1];

pub(super) fn warm_cache(summary: &Summary) -> Option<Finding> {
    // Where answers report cached tokens, other rules compare these with the repetitions.
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

/// The share of looked-up tokens that the server's counters found in its prefix cache.
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

/// Share of the time with requests in the server's queue beyond which it is reported.
const QUEUED: f64 = 0.1;

/// Pages with a queue on which a statement about it must rest.
const LEAST_PAGES: u64 = 5;

/// Share of the queued time at the most running requests from which a limit explains it.
const FLAT: f64 = 0.8;

/// The fewest running requests that a setting explains: with fewer, the work of a step does.
const SETTING: f64 = 8.0;

/// Share of a step's tokens, on average, from which the budget of tokens is the limit.
const BUDGET: f64 = 0.7;

/// Share of the KV cache in use from which the cache is the limit, and no setting.
const FULL: f64 = 0.9;

/// Share of the measurement between pages, and of pages that came, below which it is reported.
const COVERED: f64 = 0.9;

/// The target with the longest queue, if that is worth a word.
fn queue(summary: &Summary) -> Option<(&ServerSeries, &Queue)> {
    let series = summary.server_series.as_ref()?;
    let queues = series.queues.iter();
    let worst = queues
        .filter(|queue| queue.queued > QUEUED && queue.pages >= LEAST_PAGES)
        .max_by(|one, other| one.queued.total_cmp(&other.queued))?;
    Some((series, worst))
}

/// True if running requests are at a limit that is neither the KV cache nor the tokens of a step.
fn is_throttled((series, queue): (&ServerSeries, &Queue)) -> bool {
    let tokens = series.figures.get(&Name::BatchTokens);
    let tokens = tokens.and_then(|figure| figure.mean.zip(figure.p99));
    let ceiling = queue.ceiling.unwrap_or(0.0);
    // A batch that reads no prompt has a token of each request in every step.
    let budget = tokens.is_some_and(|(mean, p99)| mean >= BUDGET * p99 && mean > 2.0 * ceiling);
    let flat = queue.at_ceiling.is_some_and(|share| share >= FLAT);
    let full = queue.kv_usage.is_some_and(|usage| usage >= FULL);
    flat && !full && !budget && ceiling >= SETTING
}

fn waited(queue: &Queue) -> String {
    format!(
        "requests waited in the queue of {} for {:.0} % of the time, up to {:.0} at once",
        queue.url,
        queue.queued * 100.0,
        queue.max_waiting
    )
}

pub(super) fn server_queue(summary: &Summary) -> Option<Finding> {
    let (series, queue) = queue(summary)?;
    if is_throttled((series, queue)) {
        return None;
    }
    let mean = (series.figures.get(&Name::QueueTime)).and_then(|figure| figure.mean);
    let mean =
        mean.map_or(String::new(), |ms| format!("; the server states a mean wait of {ms:.1} ms"));
    let full = queue.kv_usage.map_or(String::new(), |usage| {
        format!("; meanwhile {:.0} % of its KV cache were in use", usage * 100.0)
    });
    Some(Id::ServerQueue.note(
        format!("{}{mean}{full}", waited(queue)),
        "time to first token includes that wait: it says how long the queue was, more than how fast prompts are computed",
        "lower the load to measure an engine that is not full; otherwise publish the queue together with the result",
    ))
}

pub(super) fn admission_throttled(summary: &Summary) -> Option<Finding> {
    let (series, queue) = queue(summary)?;
    let (ceiling, flat) = queue.ceiling.zip(queue.at_ceiling)?;
    is_throttled((series, queue)).then(|| {
        let room = queue.kv_usage.map_or(String::new(), |usage| {
            format!(", and only {:.0} % of its KV cache were in use", usage * 100.0)
        });
        Id::AdmissionThrottled.note(
            format!(
                "{}; at most {ceiling:.0} ran at once, for {:.0} % of that time{room}",
                waited(queue),
                flat * 100.0
            ),
            "a limit on running requests, and not the engine's speed or memory, made requests wait: throughput and time to first token describe this setting",
            "raise the limit (vLLM: --max-num-seqs, SGLang: --max-running-requests, TensorRT-LLM: --max_batch_size, llama.cpp: --parallel, TGI: --max-batch-size, LMDeploy: --max-batch-size) to measure the engine itself; otherwise publish the limit with the result",
        )
    })
}

pub(super) fn damaged(summary: &Summary) -> Option<Finding> {
    Some(Id::SeriesDamaged.suspect(
        summary.run.series_damage.clone()?,
        "the server's figures come from the lines that can be read, and findings on them may be missing",
        "restore the run's folder from a copy, or repeat the run; its `summary.json` has the figures from before the damage",
    ))
}

pub(super) fn gaps(summary: &Summary) -> Option<Finding> {
    let series = summary.server_series.as_ref()?;
    let failed = series.failed.zip(series.last_error.as_ref())?;
    let (count, error) = failed;
    let came = series.pages as f64 / (series.pages + count) as f64;
    (series.covered < COVERED || came < COVERED).then(|| {
        let times = if count == 1 { "once" } else { "several times" };
        Id::ServerGaps.note(
            format!(
                "the server's metrics page failed to come {times} ({count}), the last time with: {error}; pages cover {:.0} % of the measurement",
                series.covered * 100.0
            ),
            "the server's work in the gap is unknown: a queue or a preemption may be missing",
            "start the server with its metrics enabled, or leave its series out (--server-series none)",
        )
    })
}

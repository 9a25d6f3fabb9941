//! Rules on the server's own series: did requests wait in it, did its limit on running requests
//! make them wait, and did its pages come?

use super::{Finding, Id};
use crate::summary::{ServerSeries, Summary};
use ::series::{Name, Queue};

/// Share of the time with requests in the server's queue beyond which it is reported.
const QUEUED: f64 = 0.1;

/// Pages with a queue on which a statement about it must rest.
const LEAST_PAGES: u64 = 5;

/// Share of the queued time at the highest number of running requests, from which a limit explains
/// the queue.
const FLAT: f64 = 0.8;

/// The fewest running requests that a setting explains: with fewer, the work of a step does.
const SETTING: f64 = 8.0;

/// Share of a step's largest number of tokens, on average, from which the budget of tokens is the
/// limit.
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

/// True if the number of running requests is at its highest while others wait, and neither the KV
/// cache nor the tokens of a step are.
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

//! The intervals of a run's figures: over other requests of this kind, and over repeats of the same
//! requests.

use super::block::Block;
use result::metric;
use result::summary::{Bounds, SteadyState, Summary};

/// The metrics that have intervals, with the names that they have in the block.
const METRICS: [(&str, &str); 3] =
    [(metric::TTFT, "TTFT"), (metric::TPOT, "TPOT"), (metric::E2E, "E2E Latency")];

/// Repeats that are enough for an interval of every figure.
const REPEATS: f64 = 3.0;

/// Stands where one run shows no interval.
const NOT_SHOWN: &str = "not shown by one run";

/// Every interval, with each section's subject.
pub(super) fn all(block: &mut Block, summary: &Summary) {
    let mut all_shown = true;
    block.section("95% Confidence: Other Requests");
    if has_any(summary) {
        block.prose(
            "The average of many runs, each with other requests of this kind, lies between:",
        );
    }
    let rates = summary.throughput.confidence;
    for (label, bounds) in rates.iter().flat_map(|of| {
        [
            ("Request throughput (req/s):", of.other_requests.requests_per_s),
            ("Output token throughput (tok/s):", of.other_requests.output_tokens_per_s),
        ]
    }) {
        block.line(label, bounds.map(between));
    }
    for (name, label) in METRICS {
        let Some(metric) = summary.metric(name) else {
            continue;
        };
        let Some(of) = metric.confidence else {
            block.line(&format!("{label} (ms):"), Some(NOT_SHOWN));
            all_shown = false;
            continue;
        };
        for (which, bounds) in [("mean", of.mean), ("median", of.median), ("P99", of.p99)] {
            let of_start = which == "P99" && of.p99_of_fill;
            all_shown &= bounds.is_some() || of_start;
            let absent = || if of_start { beginning(summary, name) } else { NOT_SHOWN.to_owned() };
            let bounds = bounds.map_or_else(absent, between);
            block.line(&format!("{label}, {which} (ms):"), Some(bounds));
        }
    }
    if let Some(words) = (!all_shown).then(|| repeats(summary)).flatten() {
        block.prose(&words);
    }
    again(block, summary);
}

/// Intervals over repeats of the same requests.
fn again(block: &mut Block, summary: &Summary) {
    block.section("95% Confidence: These Requests Again");
    let same = |name: &str| summary.metric(name)?.confidence?.same_requests;
    let rates = summary.throughput.confidence.map(|of| of.same_requests);
    if rates.is_none() && METRICS.iter().all(|(name, _)| same(name).is_none()) {
        return;
    }
    block.prose("The average of many repeats of the same requests lies between:");
    if let Some(rates) = rates {
        block.line("Request throughput (req/s):", rates.requests_per_s.map(between));
        block.line("Output token throughput (tok/s):", rates.output_tokens_per_s.map(between));
    }
    for (name, label) in METRICS {
        let of = same(name);
        for (which, bounds) in
            [("mean", of.and_then(|of| of.mean)), ("median", of.and_then(|of| of.median))]
        {
            block.line(&format!("{label}, {which} (ms):"), bounds.map(between));
        }
    }
    block.prose("Neither contains what makes a whole run faster or slower, such as a restart.");
}

/// The intervals of the means and of the output throughput, in the lines that [`all`] has.
pub(super) fn short(block: &mut Block, summary: &Summary) {
    let of = |name: &str| summary.metric(name)?.confidence;
    let rates = summary.throughput.confidence;
    block.section("95% Confidence: Other Requests");
    block.line(
        "Output token throughput (tok/s):",
        rates.and_then(|of| of.other_requests.output_tokens_per_s.map(between)),
    );
    for (name, label) in METRICS {
        let mean = of(name).and_then(|of| of.mean);
        block.line(&format!("{label}, mean (ms):"), mean.map(between));
        let of_start = of(name).is_some_and(|of| of.p99_of_fill);
        let start = of_start.then(|| beginning(summary, name));
        block.line(&format!("{label}, P99 (ms):"), start);
    }
    let measured = |(name, _): &(&str, &str)| summary.metric(name).is_some();
    if !has_any(summary)
        && METRICS.iter().any(measured)
        && let Some(words) = repeats(summary)
    {
        block.prose(&words);
    }
    block.section("95% Confidence: These Requests Again");
    block.line(
        "Output token throughput (tok/s):",
        rates.and_then(|of| of.same_requests.output_tokens_per_s.map(between)),
    );
    for (name, label) in METRICS {
        let mean = of(name).and_then(|of| of.same_requests?.mean);
        block.line(&format!("{label}, mean (ms):"), mean.map(between));
    }
}

/// Words in place of the interval of a P99 whose samples are of the time in which the engine
/// filled.
fn beginning(summary: &Summary, metric: &str) -> String {
    let steady = match &summary.steady_state {
        Some(SteadyState::Window(window)) => window.metrics.get(metric),
        _ => None,
    };
    match steady.and_then(|of| of.percentile(99.0)) {
        Some(p99) => format!("of the start only; steady {p99:.2}"),
        None => "of the start only".to_owned(),
    }
}

fn has_any(summary: &Summary) -> bool {
    let has =
        |(name, _): &(&str, &str)| summary.metric(name).is_some_and(|of| of.confidence.is_some());
    summary.throughput.confidence.is_some() || METRICS.iter().any(has)
}

fn between(bounds: Bounds) -> String {
    bounds.words(" - ", |end| format!("{end:.2}"))
}

/// The way to the intervals that one run does not show, and the time that it takes.
fn repeats(summary: &Summary) -> Option<String> {
    let seconds = REPEATS * summary.throughput.duration_s?;
    Some(format!(
        "What one run of this load does not show, {REPEATS} repeats do, in about {}: --repeat {REPEATS}",
        span(seconds)
    ))
}

/// A time that is worth planning for, in the unit that one would say it in.
fn span(seconds: f64) -> String {
    let (amount, unit) = match seconds {
        ..1.0 => (1.0, "second"),
        ..90.0 => (seconds.round(), "second"),
        ..5400.0 => ((seconds / 60.0).round(), "minute"),
        _ => ((seconds / 3600.0).round(), "hour"),
    };
    let plural = if amount == 1.0 { "" } else { "s" };
    format!("{amount} {unit}{plural}")
}

#[cfg(test)]
mod tests {
    use super::span;

    #[test]
    fn a_time_is_said_in_the_unit_that_one_would_use() {
        for (seconds, words) in [
            (0.2, "1 second"),
            (42.4, "42 seconds"),
            (120.0, "2 minutes"),
            (315.0, "5 minutes"),
            (9000.0, "3 hours"),
        ] {
            assert_eq!(span(seconds), words);
        }
    }
}

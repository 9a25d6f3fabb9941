//! Rules on requests in flight: Little's law holds for every run, whatever its load.

use super::figures::{Figures, percent, shown};
use super::id::Id;
use super::spread::Range;
use super::{Finding, order};
use crate::claim::Tool;
use result::finding::Severity;

/// Duration and latencies are taken from clocks read a moment apart.
const MOMENT: f64 = 0.01;

/// Share of a full cap that may stay empty: a client takes a moment between two requests.
const BETWEEN: f64 = 0.05;

/// Mean number of requests in flight: the sum of latencies over the duration.
pub(super) fn mean(figures: &Figures<'_>) -> Option<Range> {
    if figures.claim.trimmed {
        return None;
    }
    let e2e = figures.positive("e2e.mean")? / Range::exact(1e3);
    Some(e2e * Range::exact(figures.answered()?) / figures.duration()?)
}

pub(super) fn cap(figures: &Figures<'_>) -> Option<Finding> {
    let cap = figures.claim.asked.max_concurrency.map(|cap| cap as f64)?;
    let limit = Range::exact(cap).wider(MOMENT);
    let mean = mean(figures).filter(|mean| limit.below(*mean))?;
    let seen = format!(
        "latencies over the duration give {mean} requests in flight on average, but the cap is {}",
        shown(cap)
    );
    // evalscope also states the cap of an open loop, which ignores it, and does not state the loop.
    let is_open = figures.claim.tool == Tool::Evalscope;
    let severity = if is_open { Severity::Note } else { Severity::Invalid };
    let formula = is_open.then(|| "an open loop, which states the cap and has none".to_owned());
    Some(Finding::new(Id::OverCap, severity, seen).by(formula))
}

pub(super) fn little(figures: &Figures<'_>) -> Option<Finding> {
    let (mean, stated) = (mean(figures)?, figures.positive("concurrency.mean")?);
    let apart = stated.apart(mean);
    if apart <= 2.0 * MOMENT {
        return None;
    }
    let seen = format!(
        "latencies over the duration give {mean} requests in flight on average, but {stated} is stated ({} apart)",
        percent(apart)
    );
    Some(Finding::new(Id::ConcurrencyDisagrees, Severity::Suspect, seen))
}

pub(super) fn peak_below_mean(figures: &Figures<'_>) -> Option<Finding> {
    let peak = figures.positive("concurrency.peak")?;
    let mean = mean(figures).filter(|mean| peak.wider(MOMENT).below(*mean))?;
    let seen = format!(
        "latencies over the duration give {mean} requests in flight on average, but the peak is {peak}"
    );
    Some(Finding::new(Id::ConcurrencyDisagrees, Severity::Invalid, seen))
}

pub(super) fn peak_over_cap(figures: &Figures<'_>) -> Option<Finding> {
    let peak = figures.positive("concurrency.peak")?;
    let cap = figures.claim.asked.max_concurrency.map(|cap| cap as f64);
    let cap = cap.filter(|cap| peak.low > *cap)?;
    let (most, cap) = (shown(peak.mid()), shown(cap));
    let seen = format!("{most} requests in flight at the peak, but the cap is {cap}");
    // These tools count every request that touches a second, even one after another.
    let by_second = matches!(figures.claim.tool, Tool::Vllm | Tool::Sglang);
    let severity = if by_second { Severity::Note } else { Severity::Suspect };
    let formula = "requests that touch the same second, also if they only follow one another";
    let formula = by_second.then(|| formula.to_owned());
    Some(Finding::new(Id::OverCap, severity, seen).by(formula))
}

/// Checks that the cap was kept full. Where requests wait for nothing but the cap C, all its slots
/// are in use until the last request is sent, at t. All in flight at t end within the longest
/// latency M, so the run takes T <= t + M. Until t alone the latencies add up to C * t >= C * (T -
/// M): N * mean E2E >= C * (T - M). It needs all N requests to be in the mean, as time in a slot
/// that failed requests took is not.
pub(super) fn kept_full(figures: &Figures<'_>) -> Option<Finding> {
    let claim = figures.claim;
    let cap = claim.asked.max_concurrency? as f64;
    let answered = figures.answered()?;
    let all = (claim.asked.requests.map(|requests| requests as f64))
        .or_else(|| claim.value("requests.total"))?;
    let failed = claim.value("requests.failed").unwrap_or(0.0);
    let waiting = all == answered && failed == 0.0 && answered > cap && at_once(figures);
    let latencies = figures.positive("e2e.mean")? * Range::exact(answered / 1e3);
    let before = figures.duration()? - longest(figures)? / Range::exact(1e3);
    if !waiting || before.low <= 0.0 {
        return None;
    }
    let used = latencies / before;
    if used.high >= cap * (1.0 - BETWEEN) {
        return None;
    }
    let seen = format!(
        "at most {} of {} slots were in use on average until the last request was sent",
        // "At most" stays true of the rounded figure.
        shown((used.high * 100.0).ceil() / 100.0),
        shown(cap)
    );
    Some(Finding::new(Id::CapNotFull, Severity::Note, seen))
}

/// True if requests waited only for the cap, as far as stated; AIPerf states no rate then.
fn at_once(figures: &Figures<'_>) -> bool {
    if figures.claim.paced {
        return false;
    }
    match figures.claim.asked.request_rate {
        Some(rate) => rate.is_infinite(),
        None => figures.claim.tool == Tool::Aiperf,
    }
}

/// The longest end-to-end latency in milliseconds: as stated, else of the listed requests.
fn longest(figures: &Figures<'_>) -> Option<Range> {
    let points = order::points(figures, "e2e");
    let stated = points.last().filter(|(percent, _)| *percent == 100.0);
    let all = figures.claim.values("e2e");
    let listed = (figures.answered() == Some(all.len() as f64))
        .then(|| Range::exact(all.into_iter().fold(0.0, f64::max)));
    stated.map(|(_, longest)| *longest).or(listed)
}

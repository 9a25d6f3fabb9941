//! Rules on requests in flight: Little's law holds for every run, whatever its load.

use super::figures::{Figures, percent, shown};
use super::finding::Finding;
use super::id::Id;
use super::order;
use super::range::Range;
use crate::claim::Tool;
use result::finding::Severity;

/// Duration and latencies are taken from clocks read a moment apart.
const MOMENT: f64 = 0.01;

/// Share of a full cap that may stay empty unremarked: a client takes a moment between two
/// requests.
const BETWEEN: f64 = 0.05;

/// Mean number of requests in flight: the sum of latencies over the duration.
pub(super) fn mean(figures: &Figures<'_>) -> Option<Range> {
    if figures.claim.trimmed {
        return None;
    }
    let e2e = figures.positive("e2e.mean")? / Range::exact(1e3);
    Some(e2e * Range::exact(figures.answered()?) / figures.duration()?)
}

pub(super) fn cap(figures: &Figures<'_>) -> Vec<Finding> {
    let Some(cap) = figures.claim.asked.max_concurrency.map(|cap| cap as f64) else {
        return Vec::new();
    };
    let limit = Range::exact(cap).wider(MOMENT);
    let Some(mean) = mean(figures).filter(|mean| limit.below(*mean)) else {
        return Vec::new();
    };
    let seen = format!(
        "latencies over the duration give {} requests in flight on average, but the cap is {}",
        shown(mean.mid()),
        shown(cap)
    );
    // evalscope also states the cap of an open loop, which ignores it, and does not state the loop.
    let (severity, formula) = match figures.claim.tool {
        Tool::Evalscope => {
            (Severity::Note, Some("an open loop, which states the cap and has none".to_owned()))
        }
        _ => (Severity::Invalid, None),
    };
    vec![Finding::new(Id::OverCap, severity, seen).by(formula)]
}

pub(super) fn little(figures: &Figures<'_>) -> Vec<Finding> {
    let (Some(mean), Some(stated)) = (mean(figures), figures.positive("concurrency.mean")) else {
        return Vec::new();
    };
    let apart = stated.apart(mean);
    if apart <= 2.0 * MOMENT {
        return Vec::new();
    }
    let seen = format!(
        "latencies over the duration give {} requests in flight on average, but {} is stated ({} apart)",
        shown(mean.mid()),
        shown(stated.mid()),
        percent(apart),
    );
    vec![Finding::new(Id::ConcurrencyDisagrees, Severity::Suspect, seen)]
}

pub(super) fn peak(figures: &Figures<'_>) -> Vec<Finding> {
    let Some(peak) = figures.positive("concurrency.peak") else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    if let Some(mean) = mean(figures)
        && peak.wider(MOMENT).below(mean)
    {
        let seen = format!(
            "latencies over the duration give {} requests in flight on average, but the peak is {}",
            shown(mean.mid()),
            shown(peak.mid())
        );
        findings.push(Finding::new(Id::ConcurrencyDisagrees, Severity::Invalid, seen));
    }
    let cap = figures.claim.asked.max_concurrency.map(|cap| cap as f64);
    if let Some(cap) = cap.filter(|cap| peak.low > *cap) {
        let seen = format!(
            "{} requests in flight at the peak, but the cap is {}",
            shown(peak.mid()),
            shown(cap)
        );
        // These tools count every request that touches a second, also requests that follow one
        // another.
        let (severity, formula) = match figures.claim.tool {
            Tool::Vllm | Tool::Sglang => (
                Severity::Note,
                Some(
                    "requests that touch the same second, also if they only follow one another"
                        .to_owned(),
                ),
            ),
            _ => (Severity::Suspect, None),
        };
        findings.push(Finding::new(Id::OverCap, severity, seen).by(formula));
    }
    findings
}

/// Checks that the cap was kept full. Where requests wait for nothing but the cap C, all its slots
/// are in use until the last request is sent, at t. All in flight at t end within the longest
/// latency M, so the run takes T <= t + M. Until t alone the latencies add up to C * t >= C * (T -
/// M): N * mean E2E >= C * (T - M). It needs all N requests to be in the mean, as time in a slot
/// that failed requests took is not.
pub(super) fn kept_full(figures: &Figures<'_>) -> Vec<Finding> {
    let claim = figures.claim;
    let parts = (|| {
        let cap = claim.asked.max_concurrency? as f64;
        let answered = figures.answered()?;
        let of = (claim.asked.requests.map(|requests| requests as f64))
            .or_else(|| claim.value("requests.total"))?;
        let failed = claim.value("requests.failed").unwrap_or(0.0);
        let waiting = of == answered && failed == 0.0 && answered > cap && at_once(figures);
        let latencies = figures.positive("e2e.mean")? * Range::exact(answered / 1e3);
        let before = figures.duration()? - longest(figures)? / Range::exact(1e3);
        (waiting && before.low > 0.0).then_some((cap, latencies / before))
    })();
    let Some((cap, used)) = parts else {
        return Vec::new();
    };
    if used.high >= cap * (1.0 - BETWEEN) {
        return Vec::new();
    }
    let seen = format!(
        "at most {} of {} slots were in use on average until the last request was sent",
        // "At most" stays true of the rounded figure.
        shown((used.high * 100.0).ceil() / 100.0),
        shown(cap)
    );
    vec![Finding::new(Id::CapNotFull, Severity::Note, seen)]
}

/// True if requests waited for nothing but the cap, as far as the source says. AIPerf states no
/// rate if there is none.
fn at_once(figures: &Figures<'_>) -> bool {
    if figures.claim.paced {
        return false;
    }
    match figures.claim.asked.request_rate {
        Some(rate) => rate.is_infinite(),
        None => figures.claim.tool == Tool::Aiperf,
    }
}

/// The longest end-to-end latency in milliseconds: as stated, else of the requests that the source
/// lists.
fn longest(figures: &Figures<'_>) -> Option<Range> {
    let points = order::points(figures, "e2e");
    let stated = points.last().filter(|(percent, _)| *percent == 100.0);
    let all = figures.claim.values("e2e");
    let listed = (figures.answered() == Some(all.len() as f64))
        .then(|| Range::exact(all.into_iter().fold(0.0, f64::max)));
    stated.map(|(_, longest)| *longest).or(listed)
}

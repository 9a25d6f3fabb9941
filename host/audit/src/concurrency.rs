//! Rules on requests in flight: Little's law holds for every run, whatever its load.

use super::figures::{Figures, percent, shown};
use super::range::Range;
use super::{Finding, Id};
use crate::claim::Tool;
use result::finding::Severity;

/// Duration and latencies are taken from clocks read a moment apart.
const MOMENT: f64 = 0.01;

/// Mean number of requests in flight: the sum of latencies over the duration.
pub(super) fn mean(figures: &Figures<'_>) -> Option<Range> {
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
    vec![Finding::new(Id::OverCap, Severity::Invalid, seen)]
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
    vec![Finding::new(
        Id::ConcurrencyDisagrees,
        Severity::Suspect,
        seen,
    )]
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
        findings.push(Finding::new(
            Id::ConcurrencyDisagrees,
            Severity::Invalid,
            seen,
        ));
    }
    let cap = figures.claim.asked.max_concurrency.map(|cap| cap as f64);
    if let Some(cap) = cap.filter(|cap| peak.low > *cap) {
        let seen = format!(
            "{} requests in flight at the peak, but the cap is {}",
            shown(peak.mid()),
            shown(cap)
        );
        // These count every request that touches a second, also those that follow one another.
        let (severity, formula) = match figures.claim.tool {
            Tool::Vllm | Tool::Sglang => (
                Severity::Note,
                Some("requests that touch the same second, including those that only follow one another".to_owned()),
            ),
            _ => (Severity::Suspect, None),
        };
        findings.push(Finding::new(Id::OverCap, severity, seen).by(formula));
    }
    findings
}

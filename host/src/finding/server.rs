//! The rule on what the server counted of itself.

use super::{Finding, Id, Severity};
use crate::summary::server::Figure;
use crate::summary::{Counted, Summary};

/// How far the server's count may be from ours, as a share of ours.
const APART: f64 = 0.01;

pub(super) fn disagrees(summary: &Summary) -> Option<Finding> {
    let server = summary.server.as_ref()?;
    let known = |counted: &Counted| counted.total.filter(|_| counted.unknown == 0);
    let ours = [
        (
            Figure::FinishedRequests,
            "requests",
            Some(summary.requests.successful),
        ),
        (
            Figure::InputTokens,
            "input tokens",
            known(&summary.tokens.input),
        ),
        (
            Figure::OutputTokens,
            "output tokens",
            known(&summary.tokens.output),
        ),
    ];
    let apart: Vec<String> = ours
        .into_iter()
        .filter_map(|(figure, what, ours)| {
            let (theirs, ours) = (server.counted(figure)?, ours?);
            let is_apart = (theirs - ours as f64).abs() > APART * ours.max(1) as f64;
            is_apart.then(|| format!("{theirs} {what} instead of {ours}"))
        })
        .collect();
    (!apart.is_empty()).then(|| Finding {
        id: Id::ServerCountsDisagree,
        severity: Severity::Suspect,
        seen: format!(
            "while it was measured, the server counted {}",
            apart.join(", ")
        ),
        why: "most likely it served somebody else at the same time, or went on with requests that failed here; either took capacity that the figures do not show".into(),
        advice: "see that nothing else uses the server while it is measured, and whether requests failed; where neither is so, the two count differently".into(),
    })
}

//! Rules on how figures changed over the run: is there a steady state, and is it really steady?

use super::{Finding, Id};
use crate::metric;
use crate::summary::course::{Drift, Swing, THROUGHPUT};
use crate::summary::{SteadyState, Summary, Window};

/// Change over the window below which a drift does not matter.
const SMALL: f64 = 0.1;

/// Mann and Kendall's Z beyond which a trend is not chance: one course in a thousand exceeds it by
/// chance.
const SURE: f64 = 3.3;

/// Share of the mean by which throughput must oscillate to be reported.
const WIDE: f64 = 0.1;

fn window(summary: &Summary) -> Option<&Window> {
    match summary.steady_state.as_ref()? {
        SteadyState::Window(window) => Some(window),
        SteadyState::Absent(_) => None,
    }
}

pub(super) fn not_steady(summary: &Summary) -> Option<Finding> {
    let Some(SteadyState::Absent(reason)) = &summary.steady_state else { return None };
    Some(Id::NotSteady.note(
        format!("there is no steady state: {reason}"),
        "the figures reflect filling and draining the server as much as the requested load, so they depend on the length of the run",
        "send more requests or run longer; at a fixed rate, measure for several times the duration of the longest answer",
    ))
}

/// The number of mean E2E latencies that the steady window must last. In a shorter one, the answers
/// under way together are a large part of the window, and their course is one path.
const LASTS: f64 = 10.0;

/// A figure that changed over the steady window.
pub(super) fn drift(summary: &Summary) -> Option<Finding> {
    let window = window(summary)?;
    if window.duration_s < LASTS * summary.metric(metric::E2E)?.mean / 1000.0 {
        return None;
    }
    // Waits at one rate come and go with the queue: they grew only if the queue did.
    let backlog = summary.concurrency.backlog;
    let comes_and_goes = |name: &str| name == metric::TTFT && backlog.is_some_and(|of| !of.grew());
    let shown = |drift: &Drift| drift.z.abs() > SURE && drift.change.abs() > SMALL;
    let drifted =
        (window.drift.iter()).filter(|(name, drift)| shown(drift) && !comes_and_goes(name));
    let drifted: Vec<String> = drifted
        .map(|(name, drift)| {
            let name = match name.as_str() {
                THROUGHPUT => "output throughput",
                metric => metric,
            };
            format!("{name} by {:+.0} %", drift.change * 100.0)
        })
        .collect();
    (!drifted.is_empty()).then(|| Id::Drift.suspect(
        format!(
            "during the {:.0} s in which requests in flight were steady, these drifted from beginning to end: {}",
            window.duration_s,
            drifted.join(", ")
        ),
        "the mean of a figure that changes depends on the length of the run; a longer run would have given a different mean",
        "run until the figure settles, and warm up for that long; check whether the server heats up, fills a cache, swaps or queues, and whether the prompts change",
    ))
}

pub(super) fn swing(summary: &Summary) -> Option<Finding> {
    let window = window(summary)?;
    let Swing { period_s, share, .. } = window.swing.filter(|swing| swing.share > WIDE)?;
    Some(Id::Swing.note(
        format!(
            "output throughput oscillated with a period of {period_s:.1} s, by {:.0} % of its mean (standard deviation)",
            share * 100.0
        ),
        "a mean over part of a period depends on which part it covers; users in lockstep, a scheduler or a garbage collector may be the cause",
        "measure over many periods; in a closed loop, vary lengths or add a random think time so that users fall out of step",
    ))
}

//! Rules on how figures changed over the run: is there a steady state, and is it really steady?

use super::{Finding, Id};
use crate::metric;
use crate::summary::cold::{ColdStart, Shown};
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
            "output throughput rose and fell every {period_s:.1} s (standard deviation {:.0} % of the mean)",
            share * 100.0
        ),
        "a mean over part of a period depends on which part it covers; users in lockstep, a scheduler or a garbage collector may be the cause",
        "measure over many periods; in a closed loop, vary lengths or add a random think time so that users fall out of step",
    ))
}

/// The change of a mean, as a share of it, from which a cold start puts the run in doubt.
const MATTERS: f64 = 0.05;

pub(super) fn cold_start(summary: &Summary) -> Option<Finding> {
    let cold = summary.cold_start.as_ref()?;
    let ColdStart { requests, first, last, until_s, times, .. } = *cold;
    let (wait, waited) = if summary.run.streamed {
        ("TTFT", "for their first token")
    } else {
        ("E2E latency", "for their answer")
    };
    let (figure, with, without) = match cold.shown {
        Shown::FirstWave => (wait, cold.wait_ms, cold.wait_without_ms),
        Shown::FirstSteps => ("E2E latency", cold.e2e_ms, cold.e2e_without_ms),
    };
    let who = match requests {
        1 => format!("request {first}"),
        _ => format!("{requests} requests, of numbers {first} to {last},"),
    };
    let evidence = match cold.shown {
        Shown::FirstWave => format!(
            "{who} sent before the first answer had ended waited up to {:.2} s {waited}, and later ones at most {:.2} s",
            cold.longest_wait_ms / 1000.0,
            cold.longest_later_wait_ms / 1000.0
        ),
        Shown::FirstSteps => format!(
            "for the first {until_s:.2} s, in which {who} came, the engine's steps took {times:.2} times as long as the same work took later"
        ),
    };
    let matters = (with - without).abs() > MATTERS * without;
    Some(Id::ColdStart.doubted(
        matters,
        format!("{evidence}; mean {figure} is {with:.2} ms, and {without:.2} ms without these requests"),
        "an engine that still compiles, captures graphs or fills its caches is slower than it is for everybody who comes later, and how much that changes the figures depends on the length of the run",
        "warm up with as many requests in flight as the measurement has, and of lengths like its own, until the engine no longer changes: `--warmup until-stable`",
    ))
}

pub(super) fn warmup_unstable(summary: &Summary) -> Option<Finding> {
    let warmup = summary.warmup.filter(|warmup| !warmup.stable)?;
    let waves = warmup.waves;
    let doubt = match waves {
        0 | 1 => "two are needed to see whether the engine still changes",
        _ => "the last two still differ, or had failures",
    };
    Some(Id::WarmupUnstable.note(
        format!("the warmup had {waves} waves of requests, and {doubt}"),
        "the measurement may have begun while the engine still compiled or filled its caches",
        "raise `load.warmup-limit`, give the dataset more prompts, or look at the engine's log for what changes from wave to wave",
    ))
}

//! Rules on the beginning of a run: did its requests meet an engine that was not ready, and did the
//! warm-up go on until it was?

use super::{Finding, Id};
use crate::summary::Summary;
use crate::summary::cold::{ColdStart, Shown};

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

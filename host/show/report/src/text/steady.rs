//! The section on the steady state.

use super::block::Block;
use result::metric;
use result::summary::{SteadyState, Summary, Window};

/// Writes the steady state: the reason why there is none, or its window and figures.
pub(super) fn state(block: &mut Block, summary: &Summary) {
    block.section("Steady State");
    let window = match &summary.steady_state {
        None => return,
        Some(SteadyState::Absent(reason)) => {
            return block.prose(&format!("none: {reason}"));
        }
        Some(SteadyState::Window(window)) => window,
    };
    let Window { at_least, plateau, .. } = **window;
    block.line("Steady with in flight:", Some(format!("{at_least} of {plateau} or more")));
    block.line("Steady from, to (s):", Some(format!("{:.2}, {:.2}", window.from_s, window.to_s)));
    block.line("Steady requests, ended:", Some(window.ended));
    block.line("Steady requests, sent:", Some(window.sent));
    block.figure("Steady concurrency:", Some(window.mean_in_flight));
    block.figure("Steady request throughput (req/s):", Some(window.requests_per_s));
    block.figure("Steady output throughput (tok/s):", window.output_tokens_per_s);
    for (name, label) in [(metric::TTFT, "TTFT"), (metric::TPOT, "TPOT"), (metric::ITL, "ITL")] {
        if let Some(distribution) = window.metrics.get(name) {
            block.figure(&format!("Steady mean {label} (ms):"), Some(distribution.mean));
            let p99 = distribution.percentile(99.0);
            block.figure(&format!("Steady P99 {label} (ms):"), p99);
        }
    }
}

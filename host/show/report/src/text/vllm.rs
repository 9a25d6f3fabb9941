//! The block of `vllm bench serve`, version 0.32, with vLLM's definitions: the section on
//! end-to-end latency, which vLLM prints on request, is always present.

use super::block::Block;
use crate::compatible::Compatible;

/// The block, with a newline at its end.
pub fn text(run: &Compatible<'_>) -> String {
    let Compatible { reported, figures, .. } = run;
    let summary = &reported.summary;
    let mut block = Block::padded();
    block.line("Successful requests:", Some(figures.completed));
    block.line("Failed requests:", Some(figures.total - figures.completed));
    block.line("Maximum request concurrency:", summary.run.max_in_flight);
    block.figure("Request rate configured (RPS):", summary.run.request_rate);
    block.figure("Benchmark duration (s):", figures.duration_s);
    block.line("Total input tokens:", figures.input);
    block.line("Total generated tokens:", figures.output);
    let per_s = |amount| figures.per_s(amount);
    block.figure("Request throughput (req/s):", per_s(Some(figures.completed)));
    let good = figures.good.as_ref().map(|good| good.all);
    block.figure("Request goodput (req/s):", per_s(good));
    block.figure("Output token throughput (tok/s):", per_s(figures.output));
    let peak = figures.peak_tokens.map(|tokens| tokens as f64);
    block.figure("Peak output token throughput (tok/s):", peak);
    let peak = figures.peak_requests.map(|requests| requests as f64);
    block.figure("Peak concurrent requests:", peak);
    block.figure("Total token throughput (tok/s):", per_s(figures.tokens()));
    let percentiles = &reported.plan.percentiles;
    for (title, label, of) in [
        ("Time to First Token", "TTFT", &figures.ttft),
        ("Time per Output Token (excl. 1st token)", "TPOT", &figures.tpot),
        ("Inter-token Latency", "ITL", &figures.itl),
        ("End-to-end Latency", "E2EL", &figures.e2e),
    ] {
        block.figures(title, label, of.as_ref(), percentiles);
    }
    block.end(&[])
}

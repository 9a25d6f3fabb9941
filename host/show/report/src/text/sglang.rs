//! The blocks of SGLang's `bench_serving`, version 0.5.23, and of LMDeploy's
//! `profile_restful_api.py`, version 0.9.2, which descends from it, with their definitions.

use super::block::Block;
use crate::compatible::sglang::PERCENTILES;
use crate::compatible::{Compatible, Good};
use statistics::Ranked;

/// SGLang's block, with a newline at its end.
pub fn sglang(run: &Compatible<'_>) -> String {
    let Compatible { reported, figures, .. } = run;
    let mut block = Block::padded();
    let cap = reported.summary.run.max_in_flight;
    let cap = cap.map_or("not set".to_owned(), |cap| cap.to_string());
    offered(&mut block, run);
    block.line("Max request concurrency:", Some(cap));
    served(&mut block, run);
    block.line("Total input text tokens:", run.text_tokens());
    generated(&mut block, run);
    let peak = figures.peak_tokens.map(|tokens| tokens as f64);
    block.figure("Peak output token throughput (tok/s):", peak);
    block.line("Peak concurrent requests:", figures.peak_requests);
    let total = figures.per_s(figures.tokens());
    block.figure("Total token throughput (tok/s):", total);
    block.figure("Concurrency:", figures.concurrency());
    if let Some(good) = &figures.good {
        goodput(&mut block, run, good);
    }
    for (title, label, of) in [
        ("End-to-End Latency", "E2E Latency", &figures.e2e),
        ("Time to First Token", "TTFT", &figures.ttft),
        ("Time per Output Token (excl. 1st token)", "TPOT", &figures.tpot),
        ("Inter-Token Latency", "ITL", &figures.itl),
    ] {
        block.figures(title, label, of.as_ref(), &PERCENTILES);
    }
    let longest = figures.itl.as_ref();
    block.figure("Max ITL (ms):", longest.map(|itl| itl.at(itl.count() - 1)));
    block.end(&[])
}

/// LMDeploy's block, with a newline at its end.
pub fn lmdeploy(run: &Compatible<'_>) -> String {
    let figures = &run.figures;
    let mut block = Block::padded();
    offered(&mut block, run);
    served(&mut block, run);
    generated(&mut block, run);
    let e2e = figures.e2e.as_ref();
    block.figures("End-to-End Latency", "E2E Latency", e2e, &[]);
    for (title, label, of) in [
        ("Time to First Token", "TTFT", &figures.ttft),
        ("Time per Output Token (excl. 1st token)", "TPOT", &figures.tpot),
        ("Inter-token Latency", "ITL", &figures.itl),
    ] {
        block.figures(title, label, of.as_ref(), &[99.0]);
    }
    block.end(&[])
}

fn offered(block: &mut Block, run: &Compatible<'_>) {
    block.line("Backend:", Some(run.sglang_backend()));
    // Python prints a float with its point, as `{:?}` does.
    let rate = run.reported.summary.run.request_rate;
    let rate = rate.map_or("inf".to_owned(), |rate| format!("{rate:?}"));
    block.line("Traffic request rate:", Some(rate));
}

fn served(block: &mut Block, run: &Compatible<'_>) {
    let figures = &run.figures;
    block.line("Successful requests:", Some(figures.completed));
    block.figure("Benchmark duration (s):", figures.duration_s);
    block.line("Total input tokens:", figures.input);
}

fn generated(block: &mut Block, run: &Compatible<'_>) {
    let figures = &run.figures;
    block.line("Total generated tokens:", figures.output);
    block.line("Total generated tokens (retokenized):", figures.retokenized);
    let per_s = |amount| figures.per_s(amount);
    block.figure("Request throughput (req/s):", per_s(Some(figures.completed)));
    block.figure("Input token throughput (tok/s):", per_s(figures.input));
    block.figure("Output token throughput (tok/s):", per_s(figures.output));
}

fn goodput(block: &mut Block, run: &Compatible<'_>, good: &Good) {
    let figures = &run.figures;
    let share = |part: u64| Some(part as f64 / figures.total as f64 * 100.0);
    let limits = good.each.iter();
    let limits: Vec<_> = limits.map(|(name, limit, _)| format!("{name}:{limit}")).collect();
    block.section("Goodput");
    block.line("SLOs (ms):", Some(limits.join(" ")));
    block.figure("Request goodput (req/s):", figures.per_s(Some(good.all)));
    block.figure("SLO attainment (%):", share(good.all));
    for (name, _, kept) in &good.each {
        let label = format!("{} SLO attainment (%):", name.to_uppercase());
        block.figure(&label, share(*kept));
    }
}

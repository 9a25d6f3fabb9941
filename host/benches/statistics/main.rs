//! Error rates of the statistics: `cargo bench -p report --bench statistics -- [PART...] [--runs N]
//! [--bless]`.
//!
//! Draws many runs of simulated engines (`simulator`), summarises and compares each as a real one,
//! and counts how often intervals hold the truth, how often findings are false and how often
//! comparisons are right. The parts are `intervals`, `again`, `findings` and `comparisons`. With
//! `--bless`, their tables are written to the guide.
//!
//! `cases` names engines and workloads, `load` draws runs, the parts count, `measured` writes.

#![allow(clippy::disallowed_macros, clippy::disallowed_methods, reason = "a program of its own")]
mod again;
mod cases;
mod comparisons;
mod findings;
mod intervals;
mod load;
#[path = "../measured.rs"]
mod measured;
mod tally;

use std::process::ExitCode;

use measured::{Benchmark, RULE, run};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guide/src/reference/statistics.md");

/// The bench. A comparison takes several runs, and much longer than their summaries.
const BENCH: Benchmark = Benchmark {
    page: PAGE,
    head,
    parts: &[
        ("intervals", 400, intervals::sections),
        ("again", 400, again::sections),
        ("findings", 400, findings::sections),
        ("comparisons", 80, comparisons::sections),
    ],
};

fn main() -> ExitCode {
    run(&BENCH)
}

fn head() -> String {
    format!(
        "# How often the statistics are right

Every number on this page is measured: `cargo bench -p report --bench statistics -- --bless` draws many runs of each case
from a simulated engine, whose truth is known, and summarises and compares them as it does real runs. Above each table
stands how many were drawn.

{RULE}. Of some hundred cells that just meet their target, a few are marked by chance.

**The engines.** The usual engine answers up to 32 requests in a batch; a step takes 10 ms, 0.2 ms for each request of the
batch and 0.02 ms for each prompt token that it reads, and varies by 5 %. *Free slots* stands for an engine that has room
for every request that comes: 1,024 slots, 8 ms, 0.01 ms for each request, 0.01 ms for each prompt token and 5 ns for each
token in the KV cache. *256 slots* stands for 10 ms, 0.05 ms and 0.01 ms. *Steps that grow with the context* take 0.5 µs
more for each token in the KV cache.

**The workloads.** Prompts have 500 tokens on average and answers 100, and both vary much, unless a case says otherwise.
*ShareGPT* stands for lognormal lengths of 220 and 190 tokens, with standard deviations of the logarithm of 1.2 and 1.0;
*reasoning* for answers of 1,500 tokens on average; *1k/1k* for 1,000 tokens each, all the same; *5 % prompts of 12k* for
chats, one in twenty with such a prompt; *prefix templates* for chats behind one of twenty prefixes of 2,000 tokens
on average, which the engine reads once. Requests of open loops come by chance; *in bursts of shape 0.25* means gaps of a
gamma distribution that vary twice as much.

[How sure a figure is](../uncertainty.md) explains what these figures mean for a run of yours."
    )
}

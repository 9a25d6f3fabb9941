//! Labs, searches and sweeps on real processes: the mock engine is what they start and measure.
//!
//! - `lab`: options that help, crash and lose requests; labs that are killed, interrupted and gone on with.
//! - `search`: the highest load under an objective, and sweeps; interrupted and gone on with.

mod lab;
mod search;

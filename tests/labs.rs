//! Labs, searches and sweeps on real processes, which start and measure the mock engine.
//!
//! - `lab`: options that help, crash and lose requests; labs that are killed, interrupted and gone
//!   on with.
//! - `pages`: their pages in a browser.
//! - `search`: the highest load under an objective, and sweeps; interrupted and gone on with.

mod lab;
mod pages;
mod search;

//! The figures that this program promises, measured side by side with the bare reader in one run:
//! `cargo bench --bench side_by_side [FIGURE...]`. README.md explains each figure and states the
//! measured values.
//!
//! The client under test and the bare reader are pinned to the first core, the mock engine to the
//! second; only `cores` gives them more. Ratios hold on a noisy machine; seconds are this
//! machine's.

#![allow(clippy::disallowed_macros, clippy::disallowed_methods, reason = "a program of its own")]
mod bare;
mod cores;
mod engine;
mod figures;
mod process;
mod truth;

use std::time::{Duration, Instant};

/// Rounds of each measurement; medians are told.
const ROUNDS: usize = 5;

/// A figure: its name, and what measures and tells it.
type Figure = (&'static str, fn(usize) -> anyhow::Result<()>);

const FIGURES: [Figure; 7] = [
    ("cpu", figures::cpu),
    ("cores", cores::cores),
    ("instants", figures::instants),
    ("send-lag", figures::send_lag),
    ("start", figures::start),
    ("memory", figures::memory),
    ("prompts", figures::prompts),
];

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["bare", address, streams, answers, tokens] => {
            let (streams, answers) = (streams.parse()?, answers.parse()?);
            return figures::bare(address.parse()?, (streams, answers), tokens.parse()?);
        }
        ["engine", threads, ttft, itl, tokens] => {
            let pace = engine::Pace {
                ttft: Duration::from_millis(ttft.parse()?),
                itl: Duration::from_millis(itl.parse()?),
                tokens: tokens.parse()?,
            };
            return engine::serve(threads.parse()?, pace);
        }
        ["busy", seconds] => {
            let until = Instant::now() + Duration::from_secs(seconds.parse()?);
            while Instant::now() < until {}
            return Ok(());
        }
        // What `cargo test` does with benches: see that they start.
        ["--test"] => return Ok(()),
        _ => {}
    }
    let rounds = std::env::var("ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    for (name, measure) in FIGURES {
        if arguments.is_empty() || arguments.iter().any(|wanted| wanted == name) {
            println!("== {name} ==");
            measure(rounds.unwrap_or(ROUNDS))?;
        }
    }
    Ok(())
}

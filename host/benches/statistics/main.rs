//! How honest the statistics are: `cargo bench -p report --bench statistics -- [PART...] [--runs N] [--bless]`.
//!
//! Draws many runs of simulated engines (`simulator`), summarises and compares each as a real one, and counts how
//! often intervals hold the truth, how often findings are false and how often comparisons are right. The parts are
//! `intervals`, `again`, `findings` and `comparisons`. With `--bless`, the tables of all parts are written to the guide.
//!
//! `cases` names engines and workloads, `load` draws the runs, the modules of the parts count, and `table` writes.

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "a program of its own"
)]
mod again;
mod cases;
mod comparisons;
mod findings;
mod intervals;
mod load;
mod table;

use std::process::ExitCode;

use table::Section;

/// The guide's page.
const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../guide/src/reference/statistics.md"
);

/// A part: its name, and what it finds in so many runs of each case.
type Part = (&'static str, fn(u64) -> Vec<Section>);

const PARTS: [Part; 4] = [
    ("intervals", intervals::sections),
    ("again", again::sections),
    ("findings", findings::sections),
    ("comparisons", comparisons::sections),
];

/// Runs of each case, unless asked for otherwise.
const RUNS: u64 = 400;

fn main() -> ExitCode {
    match exec() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn exec() -> Result<(), String> {
    let (mut wanted, mut runs, mut bless) = (Vec::new(), RUNS, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--bench" => {}
            // What `cargo test` does with benches: see that they start.
            "--test" => return Ok(()),
            "--bless" => bless = true,
            "--runs" => {
                let number = arguments.next().and_then(|number| number.parse().ok());
                runs = number.ok_or("--runs needs a number")?;
            }
            part if PARTS.iter().any(|(name, _)| *name == part) => wanted.push(part.to_owned()),
            other => {
                let names = PARTS.map(|(name, _)| name).join(", ");
                return Err(format!(
                    "`{other}` is no part; there are {names}, and the flags --runs N and --bless"
                ));
            }
        }
    }
    if bless && !wanted.is_empty() {
        return Err("--bless writes the tables of all parts; name none".into());
    }
    let mut page = Vec::new();
    for (name, sections) in PARTS {
        if wanted.is_empty() || wanted.iter().any(|part| part == name) {
            for section in sections(runs) {
                println!("{}", section.markdown());
                page.push(section);
            }
        }
    }
    if bless {
        std::fs::write(PAGE, table::page(runs, &page))
            .map_err(|error| format!("{PAGE}: {error}"))?;
    }
    Ok(())
}

//! How often labs are right: `cargo bench -p lab --bench labs [-- PART...] [--runs N] [--bless]`.
//!
//! Makes many labs of engines whose truth is known (`simulated`) and counts how often they recommend what is no better,
//! how often they find what is, and how far the gains are off that they state. The parts are `equal`, `better` and `drift`.
//! With `--bless`, the tables of all parts are written to the guide.

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "a program of its own"
)]
mod simulated;

use std::process::ExitCode;

use simulated::{Case, Ended, ONE_OPTION, STRATEGIES};

/// The guide's page.
const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../guide/src/reference/lab-statistics.md"
);

/// Labs of each case, unless asked for otherwise.
const LABS: u64 = 500;

/// So many times as many labs are made of cases in which nothing differs, because what is counted is rare.
const RARE: u64 = 4;

fn main() -> ExitCode {
    match exec() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// A part: its name, and what it finds in so many labs of each case.
type Part = (&'static str, fn(u64) -> Section);

const PARTS: [Part; 3] = [("equal", equal), ("better", better), ("drift", drift)];

fn exec() -> Result<(), String> {
    let (mut wanted, mut labs, mut bless) = (Vec::new(), LABS, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--bench" => {}
            // What `cargo test` does with benches: see that they start.
            "--test" => return Ok(()),
            "--bless" => bless = true,
            "--runs" => {
                let number = arguments.next().and_then(|number| number.parse().ok());
                labs = number
                    .filter(|number| *number > 0)
                    .ok_or("--runs needs a number above 0")?;
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
    let parts = PARTS.iter();
    let parts = parts.filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|own| own == name));
    let sections: Vec<Section> = parts.map(|(_, sections)| sections(labs)).collect();
    let page = page(labs, &sections);
    println!("{page}");
    if bless {
        std::fs::write(PAGE, page).map_err(|error| format!("{PAGE}: {error}"))?;
    }
    Ok(())
}

/// A table, and the cells that miss their target.
struct Section {
    title: &'static str,
    about: &'static str,
    heads: &'static [&'static str],
    rows: Vec<Vec<String>>,
    misses: Vec<String>,
    /// The reason for which a cell may miss.
    why: &'static str,
}

fn percent(part: usize, of: usize) -> String {
    format!("{:.1} %", 100.0 * part as f64 / of as f64)
}

/// Cases in which nothing differs.
fn equal(labs: u64) -> Section {
    let labs = RARE * labs;
    let mut section = Section {
        title: "Equal options that are recommended",
        about: "The share of labs in which no option makes any difference, and which recommend one all the same. The target is \
                one of 200 at most.",
        heads: &["case", "strategy", "recommended"],
        rows: Vec::new(),
        misses: Vec::new(),
        why: "The error is estimated from all trials, so an option that varies much more than the others is taken for surer than it \
              is.",
    };
    for (name, change) in equal_cases() {
        for strategy in STRATEGIES {
            let case = change(Case::equal(strategy));
            let wrong = case.labs(labs).filter(Ended::recommends).count();
            let share = percent(wrong, labs as usize);
            if wrong as u64 * 200 > labs {
                section.misses.push(format!("{name}, {strategy} ({share})"));
            }
            section
                .rows
                .push(vec![name.to_owned(), strategy.to_owned(), share]);
        }
    }
    section
}

type Change = fn(Case) -> Case;

fn equal_cases() -> [(&'static str, Change); 5] {
    [
        ("starts vary by 1 %", |case| case),
        ("and rounds by 2 %", |case| Case {
            rounds: 0.02,
            ..case
        }),
        ("one option with two values", |case| Case {
            options: ONE_OPTION,
            ..case
        }),
        ("one mode varies by 3 %", |case| Case {
            unsteady: 3.0,
            ..case
        }),
        ("P99 4 % below its limit, varies by 3 %", |case| Case {
            p99: Some((960.0, 0.03)),
            ..case
        }),
    ]
}

/// Cases in which one mode is 5 % better.
fn better(labs: u64) -> Section {
    let mut section = Section {
        title: "A gain of 5 % that is found",
        about: "The share of labs of three rounds that recommend the option that is 5 % better (the target is 95 % at least), how \
                far the gain that they state is off on average (0.5 points at most), and how often its 95 % interval holds the \
                truth.",
        heads: &[
            "case",
            "strategy",
            "found",
            "stated gain is off by",
            "interval holds 5 %",
        ],
        rows: Vec::new(),
        misses: Vec::new(),
        why: "With few trials and rounds, little is known of the error.",
    };
    for (name, change) in &equal_cases()[..3] {
        for strategy in STRATEGIES {
            let case = change(Case {
                fast: 0.05,
                ..Case::equal(strategy)
            });
            let found: Vec<(f64, [f64; 2])> = case.labs(labs).filter_map(|of| of.fast()).collect();
            let many = found.len().max(1);
            let off = found.iter().map(|(gain, _)| gain - 5.0).sum::<f64>() / many as f64;
            let held = found
                .iter()
                .filter(|(_, [low, high])| (*low..=*high).contains(&5.0));
            let share = percent(found.len(), labs as usize);
            if (found.len() as u64) * 100 < labs * 95 || off.abs() > 0.5 {
                section
                    .misses
                    .push(format!("{name}, {strategy} ({share}, {off:+.2} points)"));
            }
            section.rows.push(vec![
                (*name).to_owned(),
                strategy.to_owned(),
                share,
                format!("{off:+.2} points"),
                percent(held.count(), many),
            ]);
        }
    }
    section
}

/// Drift that is not there.
fn drift(labs: u64) -> Section {
    let mut section = Section {
        title: "Drift that is not there",
        about: "The share of labs with a p-value of 0.05 or less for a trend over rounds, on a machine that does not change, or whose \
                rounds differ without a trend. The target is 5 %.",
        heads: &["case", "strategy", "drift"],
        rows: Vec::new(),
        misses: Vec::new(),
        why: "Three rounds leave little to estimate from how much rounds scatter.",
    };
    for (name, change) in &equal_cases()[..2] {
        for strategy in STRATEGIES {
            let case = change(Case::equal(strategy));
            let found = case
                .labs(labs)
                .filter(|of| of.drift().is_some_and(|p| p <= 0.05));
            let found = found.count();
            let share = percent(found, labs as usize);
            // What 5 % can come out as by chance.
            let most = 0.05 + 2.6 * (0.05 * 0.95 / labs as f64).sqrt();
            if found as f64 > most * labs as f64 {
                section.misses.push(format!("{name}, {strategy} ({share})"));
            }
            section
                .rows
                .push(vec![(*name).to_owned(), strategy.to_owned(), share]);
        }
    }
    section
}

fn page(labs: u64, sections: &[Section]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let tables = sections.iter().map(|section| {
        let heads: Vec<String> = section
            .heads
            .iter()
            .map(|head| (*head).to_owned())
            .collect();
        let rule: Vec<String> = heads.iter().map(|_| "---".to_owned()).collect();
        let rows: String = section.rows.iter().map(|row| line(row)).collect();
        let misses = match section.misses.is_empty() {
            true => "Every cell meets its target.".to_owned(),
            false => format!(
                "These miss the target: {}. {}",
                section.misses.join("; "),
                section.why
            ),
        };
        format!(
            "## {}\n\n{}\n\n{}{}{rows}\n{misses}\n",
            section.title,
            section.about,
            line(&heads),
            line(&rule)
        )
    });
    let tables: Vec<String> = tables.collect();
    format!(
        "# How often labs are right

Every number on this page is measured: `cargo bench -p lab --bench labs -- --bless` makes {labs} labs of each case, {RARE}
times as many where nothing differs, of engines whose truth is known, and decides them as it does real ones. They have
three rounds and three fresh ones that confirm, and options with three, two and two values, unless a case says otherwise.

[Labs](../labs.md) explains what these mean for a lab of yours.

{}",
        tables.join("\n")
    )
}

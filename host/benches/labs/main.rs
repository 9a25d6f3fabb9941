//! Error rates of labs: `cargo bench -p lab --bench labs [-- PART...] [--runs N] [--bless]`.
//!
//! Makes many labs of engines whose truth is known (`simulated`) and counts how often they
//! recommend a change that is no better, how often they find one that is, and how far the gains
//! that they state are off. The parts are `equal`, `better` and `drift`. With `--bless`, the tables
//! of all parts are written to the guide.

#![allow(clippy::disallowed_macros, clippy::disallowed_methods, reason = "a program of its own")]
#[path = "../measured.rs"]
mod measured;
mod simulated;

use std::process::ExitCode;

use measured::{Benchmark, RULE, Section, cell, exceeds, falls_short, percent, run};
use simulated::{Case, ONE_OPTION, STRATEGIES, SimulatedLab};

const PAGE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../guide/src/reference/lab-statistics.md");

/// Labs of each case, unless asked for otherwise.
const LABS: u64 = 500;

/// Factor for the number of labs without any difference: their counted events are rare.
const RARE: u64 = 4;

const BENCH: Benchmark = Benchmark {
    page: PAGE,
    head,
    parts: &[("equal", LABS, equal), ("better", LABS, better), ("drift", LABS, drift)],
};

fn main() -> ExitCode {
    run(&BENCH)
}

fn head() -> String {
    format!(
        "# How often labs are right

Every number on this page is measured: `cargo bench -p lab --bench labs -- --bless` makes many labs of each case, {RARE}
times as many where nothing differs, of engines whose truth is known, and decides them as it does real ones. They have
three rounds and three fresh ones that confirm, and options with three, two and two values, unless a case says otherwise.

{RULE}.

[Labs](../labs.md) explains what these mean for a lab of yours."
    )
}

/// A row of a case and a strategy.
fn row<const N: usize>(name: &str, strategy: &str, cells: [String; N]) -> Vec<String> {
    let mut row = vec![name.to_owned(), strategy.to_owned()];
    row.extend(cells);
    row
}

/// The heads of the columns, after the columns that name the case.
fn heads(further: &[&str]) -> Vec<String> {
    ["case", "strategy"].iter().chain(further).map(|head| (*head).to_owned()).collect()
}

/// Cases in which nothing differs.
fn equal(labs: u64) -> Vec<Section> {
    let labs = RARE * labs;
    let mut rows = Vec::new();
    for (name, change) in equal_cases() {
        for strategy in STRATEGIES {
            let case = change(Case::equal(strategy));
            let wrong = case.labs(labs).filter(SimulatedLab::recommends).count();
            let share = percent(wrong, labs as usize);
            rows.push(row(name, strategy, [cell(share, exceeds(wrong, labs as usize, 0.005))]));
        }
    }
    vec![Section {
        title: "Equal options that are recommended".into(),
        about: format!(
            "The share of {labs} labs of each case in which no option makes any difference, and which recommend one all the same. \
             The target is one of 200 at most."
        ),
        heads: heads(&["recommended"]),
        rows,
        why: "The error is estimated from all trials, so an option that varies much more than the others is taken for surer than \
            it is."
            .into(),
    }]
}

type Change = fn(Case) -> Case;

fn equal_cases() -> [(&'static str, Change); 5] {
    [
        ("starts vary by 1 %", |case| case),
        ("and rounds by 2 %", |case| Case { rounds: 0.02, ..case }),
        ("one option with two values", |case| Case { options: ONE_OPTION, ..case }),
        ("one mode varies by 3 %", |case| Case { unsteady: 3.0, ..case }),
        ("P99 4 % below its limit, varies by 3 %", |case| Case {
            p99: Some((960.0, 0.03)),
            ..case
        }),
    ]
}

/// Cases in which one mode is 5 % better.
fn better(labs: u64) -> Vec<Section> {
    let mut rows = Vec::new();
    for (name, change) in &equal_cases()[..3] {
        for strategy in STRATEGIES {
            let case = change(Case { fast: 0.05, ..Case::equal(strategy) });
            let found: Vec<(f64, [f64; 2])> = case.labs(labs).filter_map(|of| of.fast()).collect();
            let many = found.len().max(1);
            let off = found.iter().map(|(gain, _)| gain - 5.0).sum::<f64>() / many as f64;
            let held = found.iter().filter(|(_, [low, high])| (*low..=*high).contains(&5.0));
            let seldom = falls_short(found.len(), labs as usize, 0.95);
            let cells = [
                cell(percent(found.len(), labs as usize), seldom),
                cell(format!("{off:+.2} points"), off.abs() > 0.5),
                percent(held.count(), many),
            ];
            rows.push(row(name, strategy, cells));
        }
    }
    vec![Section {
        title: "A gain of 5 % that is found".into(),
        about: format!(
            "The share of {labs} labs of three rounds that recommend the option that is 5 % better (the target is 95 % at least), \
             how far the gain that they state is off on average (0.5 points at most), and how often its 95 % interval holds the \
             truth."
        ),
        heads: heads(&["found", "stated gain is off by", "interval holds 5 %"]),
        rows,
        why: "With few trials and rounds, little is known of the error.".into(),
    }]
}

/// Drift that is not there.
fn drift(labs: u64) -> Vec<Section> {
    let mut rows = Vec::new();
    for (name, change) in &equal_cases()[..2] {
        for strategy in STRATEGIES {
            let case = change(Case::equal(strategy));
            let found = case.labs(labs).filter(|of| of.drift().is_some_and(|p| p <= 0.05)).count();
            let share = cell(percent(found, labs as usize), exceeds(found, labs as usize, 0.05));
            rows.push(row(name, strategy, [share]));
        }
    }
    vec![Section {
        title: "Drift that is not there".into(),
        about: format!(
            "The share of {labs} labs with a p-value of 0.05 or less for a trend over rounds, on a machine that does not change, \
             or whose rounds differ without a trend. The target is 5 %."
        ),
        heads: heads(&["drift"]),
        rows,
        why: "Three rounds leave little to estimate from how much rounds scatter.".into(),
    }]
}

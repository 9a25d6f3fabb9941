//! Quality of the search: `cargo bench -p search [-- watch|queue|engine...]`.
//!
//! `watch` counts how often the detector stops runs of healthy and of overloaded queues; `queue`
//! how close searches come to a truth that is known in closed form; `engine` the same of the engine
//! of `simulator`, whose truth comes from long runs. `engine` takes from the environment the number
//! of searches (`SEARCHES`), and the `ENGINES`, `LIMITS`, `WIDTHS` and `CONTROLS` that are wanted,
//! separated by commas.

#![allow(clippy::disallowed_macros, clippy::disallowed_methods, reason = "a program of its own")]
#[path = "../../analysis/search/src/laboratory.rs"]
mod laboratory;

use std::process::ExitCode;

use laboratory::{
    Kind, Tally, alarm, alarms, design_effect, engine_run, engine_searches, least_requests, median,
    searches,
};

const PARTS: [(&str, fn()); 3] = [("watch", watch), ("queue", queue), ("engine", engine)];

fn main() -> ExitCode {
    let mut wanted = Vec::new();
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--bench" => {}
            // What `cargo test` does with benches: see that they start.
            "--test" => return ExitCode::SUCCESS,
            part if PARTS.iter().any(|(name, _)| *name == part) => wanted.push(part.to_owned()),
            other => {
                let names = PARTS.map(|(name, _)| name).join(", ");
                eprintln!("`{other}` is no part; there are {names}");
                return ExitCode::FAILURE;
            }
        }
    }
    for (name, part) in PARTS {
        if wanted.is_empty() || wanted.iter().any(|part| part == name) {
            part();
        }
    }
    ExitCode::SUCCESS
}

fn watch() {
    for requests in [1000, 3000, 20_000] {
        println!("queues, {requests} requests");
        for loads in [[0.5, 0.95], [0.9, 0.95]] {
            let raised = alarms(1000, loads, requests);
            println!("  healthy, load {} to {}: {raised} of 1000 stopped", loads[0], loads[1]);
        }
        for load in [1.05, 1.1, 1.2, 1.3, 1.5, 2.0, 3.0] {
            let raised = alarms(200, [load, load], requests);
            println!("  overloaded, load {load}: {raised} of 200 stopped");
        }
    }
    println!("engine, 1000 requests");
    let of = |load: f64, run: u64| alarm(&engine_run(load, 1000, run), 400).is_some();
    let raised = (0..1000).filter(|run| of(0.5 + 0.45 * *run as f64 / 1000.0, *run));
    println!("  healthy, load 0.5 to 0.95: {} of 1000 stopped", raised.count());
    for load in [1.1, 1.2, 1.3, 1.5, 2.0, 3.0] {
        let raised = (0..200).filter(|run| of(load, *run));
        println!("  overloaded, load {load}: {} of 200 stopped", raised.count());
    }
}

/// Requests that an interval 5 % wide is to take at most.
const TARGET: f64 = 100_000.0;
/// The same with the controls of runs.
const CONTROLLED: f64 = 40_000.0;
/// The most requests of a search as a multiple of the fewest possible, where that is more.
const ABOVE: f64 = 1.5;

fn queue() {
    for limit in [15.0, 30.0, 60.0] {
        for width in [0.2, 0.1, 0.05] {
            let least = least_requests(limit, width);
            println!(
                "queue, limit {limit} s, width {width}: at least {least:.0} requests of any unbiased estimate from the misses; design effect {:.0}",
                design_effect(limit)
            );
            let most = TARGET * (0.05_f64.ln_1p() / width.ln_1p()).powi(2);
            print_tally(&searches(&[limit], 200, width), most.max(ABOVE * least));
        }
    }
}

/// Prints what searches found, the targets beside it.
fn print_tally(tally: &Tally, most: f64) {
    let middle = |values: &[u64]| median(values.iter().map(|own| *own as f64));
    let mark = |is_met: bool| if is_met { "✓" } else { "✗" };
    let (requests, held) = (middle(&tally.requests), 100.0 * tally.held as f64 / tally.runs as f64);
    println!(
        "  {} searches, {:.1} runs each, {} as narrow as asked for; width {:.2} % in the median; estimate off by at most {:.1} %",
        tally.runs,
        tally.probes as f64 / tally.runs as f64,
        tally.narrow,
        100.0 * median(tally.widths.iter().copied()),
        100.0 * tally.worst
    );
    println!(
        "  requests in the median {requests:.0}, target {most:.0} {}; {} at most; {} searches within the target; bracketing {:.0} beyond that",
        mark(requests <= most),
        tally.requests.iter().max().unwrap_or(&0),
        tally.requests.iter().filter(|own| **own as f64 <= most).count(),
        middle(&tally.bracketing)
    );
    println!(
        "  truth held in {held:.1} %, target 93 to 97 {}; too high in {}, too low in {}",
        mark((93.0..=97.0).contains(&held)),
        tally.too_high,
        tally.too_low
    );
}

/// The limits of the searches of engines under chats.
const LIMITS: [&str; 3] = ["e2e.p95 <= 5s", "ttft.p99 <= 2s", "tpot.p95 <= 25ms"];
/// The limit of the search of an engine under short answers.
const SHORT: [&str; 1] = ["e2e.p95 <= 1s"];

/// Searches of engines under chats, without and with the controls of their runs.
fn engine() {
    let wanted = |variable: &str, name: &str| {
        std::env::var(variable).map_or(true, |list| list.split(',').any(|own| own == name))
    };
    let searches = std::env::var("SEARCHES").map_or(60, |count| count.parse().unwrap());
    let mut kinds = vec![Kind::Usual, Kind::Cached, Kind::Padded, Kind::Speculative];
    kinds.extend([Kind::Replicas, Kind::Lopsided, Kind::Wandering, Kind::Cliff]);
    kinds.retain(|kind| wanted("ENGINES", &format!("{kind:?}")));
    for kind in kinds {
        let limits: &[&str] = if kind == Kind::Cliff { &SHORT } else { &LIMITS };
        let cells = limits.iter().flat_map(|limit| [(*limit, 0.2), (*limit, 0.05)]);
        let is_wanted = |(limit, width): &(&str, f64)| {
            wanted("LIMITS", limit) && wanted("WIDTHS", &width.to_string())
        };
        for (limit, width) in cells.filter(is_wanted) {
            for controls in [false, true] {
                if !wanted("CONTROLS", &controls.to_string()) {
                    continue;
                }
                let (truth, tally) =
                    engine_searches(kind, limit, width, searches, 400_000, controls);
                let with = if controls { "with" } else { "without" };
                println!(
                    "engine {kind:?}, {limit}, width {width}, {with} controls, truth {truth:.3} a second"
                );
                let most = if controls { CONTROLLED } else { TARGET };
                print_tally(&tally, most * (0.05_f64.ln_1p() / f64::ln_1p(width)).powi(2));
            }
        }
    }
}

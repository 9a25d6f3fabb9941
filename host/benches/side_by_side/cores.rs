//! Processor time of an event, events a second, and exactness of instants, by cores.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::Value;

use crate::engine::{Engine, Pace};
use crate::figures::{STREAMS, check, median, runner_on};
use crate::process::run;

/// Cores for the client, where the machine has them.
const COUNTS: [usize; 5] = [1, 2, 4, 8, 16];

/// The loads: their name, and the engine's pace.
const LOADS: [(&str, Pace); 2] = [
    (
        "one event a write, as fast as the engine can",
        Pace { ttft: Duration::ZERO, itl: Duration::ZERO, tokens: 500 },
    ),
    (
        "one event a write, every 20 ms a stream",
        Pace { ttft: Duration::from_millis(200), itl: Duration::from_millis(20), tokens: 300 },
    ),
];

/// The client on the first 1, 2, 4, 8 and 16 cores, the engine on the others, if there are any.
pub fn cores(rounds: usize) -> Result<()> {
    // Plugins are compiled once.
    let cache = tempfile::tempdir()?;
    let available = std::thread::available_parallelism()?.get();
    for count in COUNTS.into_iter().filter(|count| *count <= available) {
        let client = format!("0-{}", count - 1);
        let others = available - count;
        let (engine, threads, which) = match others {
            0 => (client.clone(), available, "the same ones".to_owned()),
            _ => (format!("{count}-{}", available - 1), others, format!("the other {others}")),
        };
        println!("client on {count} of {available} cores, engine on {which}");
        for (name, pace) in LOADS {
            // Each core has as much to do, however many there are.
            let streams = STREAMS * count;
            let tokens = pace.tokens;
            let mut rows: Vec<[f64; 6]> = Vec::new();
            let mut findings = BTreeSet::new();
            for _ in 0..rounds {
                let folder = tempfile::tempdir()?;
                let engine = Engine::start(&engine, threads, pace)?;
                // Over two seconds where there is time: of a thousand at once, TTFT is mostly the
                // engine's reading of them.
                let rate = if pace.itl.is_zero() {
                    "inf".to_owned()
                } else {
                    format!("{} --arrival constant", streams / 2)
                };
                let flags = format!(
                    "--model mock --num-prompts {streams} --random-output-len {tokens} --request-rate {rate} --allow-invalid"
                );
                let mut command = runner_on(&client, &engine.address, folder.path(), &flags);
                command.env("RUNNER_CACHE_DIR", cache.path());
                let began = Instant::now();
                let (result, cost) = run(command)?;
                let whole = began.elapsed().as_secs_f64();
                let result = check(&result, streams * tokens)?;
                let took = figure(&result["throughput"]["duration-s"]);
                let millions = (streams * tokens) as f64 / 1e6;
                let own = engine.end()?;
                let p99 = |metric: &str| figure(&result["metrics"][metric]["percentiles"]["p99"]);
                rows.push([
                    cost.cpu().as_secs_f64() / millions,
                    millions / took,
                    cost.cpu().as_secs_f64() / whole,
                    figure(&own["cpu"]) / whole,
                    p99("ttft") - figure(&own["ttft"][2]),
                    p99("itl") - figure(&own["gaps"][2]),
                ]);
                let grave = result["findings"].as_array().into_iter().flatten();
                let grave = grave.filter(|finding| finding["severity"] != "note");
                findings.extend(grave.map(|finding| finding["id"].to_string()));
            }
            let [cpu, rate, ours, theirs, ttft, gaps] = [0, 1, 2, 3, 4, 5].map(|at| {
                let mut column: Vec<f64> = rows.iter().map(|row| row[at]).collect();
                median(&mut column)
            });
            println!("  {name}, {streams} streams");
            println!("    {rate:.2} million events a second, {cpu:.2} CPU s per million");
            println!("    cores taken from start to end: client {ours:.1}, engine {theirs:.1}");
            if !pace.itl.is_zero() {
                println!("    P99 minus the engine's: TTFT {ttft:+.2} ms, gaps {gaps:+.2} ms");
            }
            if !findings.is_empty() {
                println!("    the result says: {findings:?}");
            }
        }
    }
    Ok(())
}

fn figure(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

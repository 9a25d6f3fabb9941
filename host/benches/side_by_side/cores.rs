//! Processor time of an event, events read in a second, and exactness of the instants, on more and
//! more cores.

use std::time::Instant;

use anyhow::Result;

use crate::figures::{LOADS, STREAMS, check, median, runner_on};
use crate::process::{Mock, run};
use crate::truth::difference;

/// Cores for the client, where the machine has them.
const COUNTS: [usize; 5] = [1, 2, 4, 8, 16];

/// The client on the first 1, 2, 4, 8 and 16 cores, the engine on the others. Where the client has
/// all, they share them.
pub fn cores(rounds: usize) -> Result<()> {
    let available = std::thread::available_parallelism()?.get();
    for count in COUNTS.into_iter().filter(|count| *count <= available) {
        let client = format!("0-{}", count - 1);
        let (engine, which) = match available - count {
            0 => (client.clone(), "the same ones".to_owned()),
            others => (
                format!("{count}-{}", available - 1),
                format!("the other {others}"),
            ),
        };
        println!("client on {count} of {available} cores, engine on {which}");
        for (load, is_paced) in LOADS.iter().zip([false, true]) {
            // Each core has as much to do, however many there are.
            let streams = STREAMS * count;
            let mut rows: Vec<[f64; 4]> = Vec::new();
            for _ in 0..rounds {
                let folder = tempfile::tempdir()?;
                let mock = Mock::with_truth(&engine, folder.path(), load.mock)?;
                let tokens = load.tokens;
                // Over two seconds where there is time: of a thousand at once, TTFT is mostly the
                // engine's reading of them.
                let rate = match is_paced {
                    true => format!("{} --arrival constant", streams / 2),
                    false => "inf".to_owned(),
                };
                let flags = format!(
                    "--num-prompts {streams} --random-output-len {tokens} --request-rate {rate}"
                );
                let began = Instant::now();
                let (result, cost) = run(runner_on(&client, &mock.address, folder.path(), &flags))?;
                let took = began.elapsed().as_secs_f64();
                let result = check(&result, streams * tokens)?;
                let millions = (streams * tokens) as f64 / 1e6;
                let [_, _, ttft, _, _, gaps] = difference(&result, &mock.end()?);
                rows.push([
                    cost.cpu().as_secs_f64() / millions,
                    millions / took,
                    ttft,
                    gaps,
                ]);
            }
            let [cpu, rate, ttft, gaps] = [0, 1, 2, 3].map(|at| {
                let mut column: Vec<f64> = rows.iter().map(|row| row[at]).collect();
                median(&mut column)
            });
            println!("  {}, {streams} streams", load.name);
            println!("    {cpu:.2} CPU s per million events");
            match is_paced {
                true => {
                    println!("    P99 minus the engine's: TTFT {ttft:+.2} ms, gaps {gaps:+.2} ms");
                }
                false => println!("    {rate:.2} million events a second, from start to end"),
            }
        }
    }
    Ok(())
}

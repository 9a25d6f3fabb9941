//! How often comparisons are right: trials on exchanges of an engine with a queue, each with chances of
//! its own. Requests wait for one another there, so neighbours are alike, as they are in real runs.

use super::fixture::{Engine, USUAL, exchanges, side};
use super::*;

fn compared(a: Engine, b: Engine, requests: u64, rate: f64) -> Compared {
    let sides = [
        side(&exchanges(a, requests, rate)),
        side(&exchanges(b, requests, rate)),
    ];
    let summary = &sides[0].measured()[0].reported.summary;
    let asked = Asked {
        figures: figures(&Choice::Headline, &[summary], &[]),
        conditions: Vec::new(),
        allowed: Vec::new(),
        blocks: blocks(requests),
    };
    compare(&sides, &asked).unwrap()
}

#[test]
#[ignore]
fn explore() {
    use std::collections::BTreeMap;
    for (requests, rate, places) in [
        (100, 20.0, 8),
        (300, 20.0, 8),
        (300, 35.0, 8),
        (1000, 20.0, 8),
        (1000, 37.0, 8),
        (300, 1e9, 8),
    ] {
        for ttft in [1.0, 1.03] {
            let mut found: BTreeMap<String, (u32, u32, u32)> = BTreeMap::new();
            let mut any = 0;
            let t = std::time::Instant::now();
            for trial in 0..200 {
                let a = Engine {
                    seed: 2 * trial,
                    places,
                    ..USUAL
                };
                let b = Engine {
                    seed: 2 * trial + 1,
                    ttft,
                    places,
                    ..USUAL
                };
                let compared = compared(a, b, requests, rate);
                let mut one = false;
                for row in &compared.pairs[0].figures {
                    let entry = found.entry(row.figure.clone()).or_default();
                    let shown = matches!(row.judgement, Some(Judgement::Better | Judgement::Worse));
                    entry.0 += u32::from(shown);
                    entry.1 += u32::from(row.interval.is_some_and(|i| i.low > 0.0 || i.high < 0.0));
                    entry.2 += u32::from(row.interval.is_some());
                    one |= shown;
                }
                any += u32::from(one);
            }
            println!(
                "n={requests} rate={rate} ttft x{ttft}: any {any}/200  {:?}",
                t.elapsed()
            );
            for (figure, n) in found {
                println!("   {figure}: shown {} interval {} has {}", n.0, n.1, n.2);
            }
        }
    }
}

//! Whole runs of scripts that are equal except for chance, or nearly so, compared with each other.

use compare::{
    Choice, Compared, Judgement, Measured, Options, Side, Variation, blocks, compare, figures,
};
use runs::folder::RunFolder;

use super::base;
use crate::support::trial::RunResult;

const REQUESTS: u64 = 200;

/// A run against a script whose times vary by a twentieth, with this random seed.
async fn run(ttft: &str, seed: u32) -> Side {
    let over = format!(
        "load.requests = {REQUESTS}\nload.arrival = 'poisson'\nload.rate = 20.0\ndataset.config.output-len = 4"
    );
    let script = format!("ttft = '{ttft}'\nitl = '20ms'\nspread = 0.05\nseed = {seed}");
    let ran: RunResult = base().with(&over).against(&script).run().await;
    let folder = RunFolder::at(ran.folder());
    let wanted = figures(&Choice::Headline, &[&ran.summary], &[]);
    let reported = folder.reported().unwrap();
    let read = folder.read().unwrap();
    let measured = Measured::read(reported, &ran.facts, &wanted, blocks(REQUESTS), None, read);
    Side::Runs(vec![measured.unwrap()])
}

fn compared(sides: &[Side]) -> Compared {
    let summary = &sides[0].measured()[0].reported.summary;
    let options = Options {
        // A script does not vary from run to run, and here that is known.
        variation: Some(Variation::Assumed { share: 0.0 }),
        ..Options::new(figures(&Choice::Headline, &[summary], &[]), blocks(REQUESTS))
    };
    compare(sides, &options).unwrap_or_else(|obstacles| panic!("{obstacles:?}"))
}

/// Fifteen runs of one script have 105 pairs; five have their like 3 % later to the first token.
#[tokio::test(start_paused = true)]
async fn equal_scripts_show_no_difference_and_three_percent_show() {
    let mut equal = Vec::new();
    for seed in 0..15 {
        equal.push(run("120ms", seed).await);
    }
    let (mut any, mut ttft) = (0, 0);
    for place in 0..equal.len() - 1 {
        for pair in compared(&equal[place..]).pairs {
            let called = pair
                .figures
                .iter()
                .filter(|row| matches!(row.judgement, Some(Judgement::Better | Judgement::Worse)));
            let called: Vec<&str> = called.map(|row| row.figure.as_str()).collect();
            any += usize::from(!called.is_empty());
            ttft += usize::from(called.iter().any(|figure| figure.starts_with("ttft.")));
        }
    }
    // A run that is off by chance is off in fourteen pairs, so the pairs are not 105 independent
    // trials.
    assert!(ttft <= 5 && any <= 5, "of 105 pairs of equal scripts: TTFT {ttft}, any figure {any}");

    let mut later = Vec::new();
    for seed in 100..105 {
        later.push(run("123.6ms", seed).await);
    }
    let mut seen = 0;
    for baseline in equal.drain(..5) {
        let mut sides = vec![baseline];
        sides.append(&mut later);
        let found = compared(&sides);
        for pair in &found.pairs {
            let ttft = found.row(&pair.side, "ttft.mean").unwrap();
            assert_ne!(ttft.judgement, Some(Judgement::Better));
            seen += usize::from(ttft.judgement == Some(Judgement::Worse));
        }
        later = sides.split_off(1);
    }
    assert!(seen >= 21, "{seen} of 25 pairs that are 3 % apart are found different");
}

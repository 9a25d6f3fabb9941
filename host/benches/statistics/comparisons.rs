//! Error rates of comparisons: equal engines called different, and differences found.

use std::collections::BTreeMap;
use std::convert::Infallible;

use crate::load::{each, facts, summary};
use crate::measured::{Section, cell, exceeds, falls_short, percent};
use compare::{Choice, Compared, Judgement, Measured, Options, Side, blocks, compare, figures};
use result::figure::Figure;
use runs::Reported;
use scenario::plan::Plan;
use serde_json::json;
use simulator::{Case, Load, Parameters, Random};
use statistics::anytime;
use statistics::bounded;
use statistics::clusters::{self, Cluster};

pub fn sections(comparisons: u64) -> Vec<Section> {
    vec![
        equal(comparisons),
        slower(comparisons),
        same(comparisons),
        // What needs no engine takes no time.
        until(4000),
        scores(4000),
    ]
}

/// Run-level standard deviations of an engine's pace.
const EFFECTS: [f64; 3] = [0.0, 0.01, 0.02];

const REQUESTS: usize = 1000;

const LOADS: [(Load, &str); 4] = [
    (Load::Open(0.5), "open loop, 0.5 of capacity"),
    (Load::Open(0.7), "open loop, 0.7 of capacity"),
    (Load::Open(0.8), "open loop, 0.8 of capacity"),
    (Load::Closed(32), "closed loop, 32 users"),
];

/// A plan; only what comparability looks at matters, and it is the same on both sides.
fn plan() -> Plan {
    let plugin = |name: &str| json!({"plugin": format!("{name}.wasm"), "name": name, "version": "1.0.0", "digest": "d0", "config": {}});
    let mut dataset = plugin("random");
    dataset["files"] = json!({});
    let plan = json!({
        "name": "chat",
        "runner": "0.1.0",
        "target": {"base-urls": ["http://a:8000"], "model": "m", "api-key": false, "headers": []},
        "backend": plugin("vllm"),
        "dataset": dataset,
        "scorers": [],
        "tokenizer": {"name": "bytes", "approximate": true},
        "load": {"amount": {"requests": REQUESTS}, "arrival": {"model": "constant", "rate": 10.0}, "warmup": 0, "seed": 1},
        "request": {"stream": true, "ignore-eos": true},
        "connection": {"http": "1.1", "reuse": "keep-alive", "trust": {}, "timestamps": "kernel"},
        "timeouts": {"connect": 1_000_000_000, "token-gap": 1_000_000_000, "request": 5_000_000_000_u64},
        "percentiles": [99.0],
        "sandbox": serde_json::to_value(model::plugin::Limits::default()).unwrap_or_default(),
    });
    serde_json::from_value(plan).unwrap_or_else(|error| panic!("{error}"))
}

fn wanted() -> Vec<Figure> {
    figures(&Choice::Headline, &[], &[])
}

fn measured(case: &Case, workload: u64, engine: u64) -> Measured {
    let exchanges = case.exchanges(workload, engine);
    let facts = facts(case);
    let reported = Reported {
        folder: "run".into(),
        plan: plan(),
        environment: None,
        status: None,
        summary: summary(case, &exchanges),
    };
    let read = exchanges.into_iter().map(Ok::<_, Infallible>);
    let blocks = blocks(REQUESTS as u64);
    let Ok(measured) = Measured::read(reported, &facts, &wanted(), blocks, None, read);
    measured
}

/// `repeats` runs of each case, all of the same requests, as repeats of one plan are.
fn sides(cases: [&Case; 2], repeats: u64, trial: u64) -> [Side; 2] {
    [0, 1].map(|side| {
        let runs = (0..repeats).map(|repeat| {
            let engine = (trial * 2 + side) * 16 + repeat;
            measured(cases[side as usize], trial, engine)
        });
        Side::Runs(runs.collect())
    })
}

fn compared(cases: [&Case; 2], repeats: u64, trial: u64) -> Compared {
    let sides = sides(cases, repeats, trial);
    let options = Options::new(wanted(), blocks(REQUESTS as u64));
    compare(&sides, &options).unwrap_or_else(|obstacles| panic!("{obstacles:?}"))
}

/// Tells for each figure if it was called better or worse.
fn called(found: &Compared) -> BTreeMap<String, bool> {
    let rows = found.pairs[0].figures.iter();
    rows.map(|row| {
        let is = matches!(row.judgement, Some(Judgement::Better | Judgement::Worse));
        (row.figure.clone(), is)
    })
    .collect()
}

/// True if the 95 % interval of a difference holds zero, the truth of equal engines.
fn holds_zero(found: &Compared, figure: &str) -> bool {
    let ends = found.row("B", figure).and_then(|row| row.interval);
    ends.is_none_or(|ends| ends.low <= 0.0 && ends.high >= 0.0)
}

/// An engine all of whose steps take `times` as long.
fn slowed(case: &Case, times: f64) -> Case {
    let own = &case.engine;
    Case {
        engine: Parameters {
            step: own.step * times,
            request: own.request * times,
            prompt_token: own.prompt_token * times,
            ..own.clone()
        },
        ..case.clone()
    }
}

fn with_effect(load: Load, effect: f64) -> Case {
    let mut case = Case::usual(load, REQUESTS);
    case.engine.run = effect;
    case
}

fn heads(shown: &[&str]) -> Vec<String> {
    let mut heads = vec!["case".to_owned(), "run to run".into(), "runs a side".into()];
    heads.extend(shown.iter().map(|head| (*head).to_owned()));
    heads
}

fn equal(runs: u64) -> Section {
    let mut rows = Vec::new();
    for (load, name) in LOADS {
        for effect in EFFECTS {
            for repeats in [1, 3, 5] {
                let case = with_effect(load, effect);
                let compared = each(runs, |trial| compared([&case; 2], repeats, trial));
                let found: Vec<_> = compared.iter().map(called).collect();
                let share = |is: &dyn Fn(&BTreeMap<String, bool>) -> bool| {
                    percent(found.iter().filter(|own| is(own)).count(), found.len())
                };
                let of = |figure: &str| share(&|own| own.get(figure) == Some(&true));
                let any = found.iter().filter(|own| own.values().any(|is| *is)).count();
                let any = cell(percent(any, found.len()), exceeds(any, found.len(), 0.05));
                let hold = |figure: &str| {
                    let held = compared.iter().filter(|found| holds_zero(found, figure));
                    percent(held.count(), compared.len())
                };
                rows.push(vec![
                    name.to_owned(),
                    format!("{:.1} %", 100.0 * effect),
                    repeats.to_string(),
                    any,
                    of("ttft.mean"),
                    of("tpot.mean"),
                    hold("ttft.mean"),
                    hold("tpot.mean"),
                ]);
            }
        }
    }
    Section {
        title: "Equal engines that are called different".into(),
        about: format!(
            "The share of comparisons of an engine with itself in which any of the headline figures is called better or worse (the \
             target is 5 % at most), and two of them. \"Run to run\" is the standard deviation of the engine's pace from one run to the next. Runs have \
             {REQUESTS} requests, the same on both sides; with one run a side, a pace that varies by the usual 2 % is assumed, and figures that follow the load are taken to vary by more. {runs} comparisons of each case were drawn."
        ),
        heads: heads(&[
            "any figure",
            "mean TTFT",
            "mean TPOT",
            "interval of mean TTFT holds 0",
            "of mean TPOT",
        ]),
        rows,
        why: "One run a side knows nothing of how runs vary, and rests on what is assumed.".into(),
    }
}

/// The difference up to which figures count as the same.
const SAME_WITHIN: f64 = 0.03;

fn same(runs: u64) -> Section {
    let mut rows = Vec::new();
    let (load, name) = LOADS[3];
    for effect in [0.0, 0.005, 0.01] {
        for times in [1.0, 1.015, 1.03] {
            for repeats in [1, 3, 5] {
                let case = with_effect(load, effect);
                let other = slowed(&case, times);
                let trials = if repeats == 1 { runs } else { (runs / 2).max(1) };
                let found = each(trials, |trial| {
                    let sides = sides([&case, &other], repeats, trial);
                    let options = Options {
                        same_within: Some(SAME_WITHIN),
                        ..Options::new(wanted(), blocks(REQUESTS as u64))
                    };
                    compare(&sides, &options).unwrap_or_else(|obstacles| panic!("{obstacles:?}"))
                });
                let of = |figure: &str| {
                    let is_same = |found: &&Compared| {
                        let row = found.row("B", figure);
                        row.and_then(|row| row.judgement) == Some(Judgement::Same)
                    };
                    let same = found.iter().filter(is_same).count();
                    let is_wrong = times >= 1.0 + SAME_WITHIN && exceeds(same, found.len(), 0.05);
                    cell(percent(same, found.len()), is_wrong)
                };
                rows.push(vec![
                    name.to_owned(),
                    format!("{:.1} %", 100.0 * effect),
                    repeats.to_string(),
                    format!("{:.1} %", 100.0 * (times - 1.0)),
                    of("tpot.mean"),
                    of("e2e.mean"),
                ]);
            }
        }
    }
    Section {
        title: "Engines that are called the same".into(),
        about: format!(
            "The share of comparisons with `--same-within 3%` that call a figure the same. An engine that is 3 % slower may be \
             called the same in 5 % at most. {runs} comparisons of each case were drawn, and half as many of repeats."
        ),
        heads: heads(&["slower by", "mean TPOT", "mean E2E"]),
        rows,
        why: "With three runs a side, little is known of how runs vary.".into(),
    }
}

fn slower(runs: u64) -> Section {
    let mut rows = Vec::new();
    for (load, name) in LOADS {
        for effect in EFFECTS {
            for (repeats, times) in [(1, 1.1), (3, 1.03), (4, 1.03), (5, 1.03)] {
                // Comparisons of repeats take several times longer.
                let trials = if repeats == 1 { runs } else { (runs / 2).max(1) };
                let case = with_effect(load, effect);
                let other = slowed(&case, times);
                let found = each(trials, |trial| {
                    let compared = compared([&case, &other], repeats, trial);
                    let alone = compared.row("B", "tpot.mean").and_then(|row| row.probability);
                    (called(&compared), alone.is_some_and(|p| p <= 0.05))
                });
                let alone = found.iter().filter(|(_, alone)| *alone).count();
                let found: Vec<_> = found.into_iter().map(|(own, _)| own).collect();
                // Of the figures that the target is about, with paces that vary by 1 % at most.
                let least = match repeats {
                    3 => 0.8,
                    5 => 0.9,
                    _ => 0.0,
                };
                let of = |figure: &str| {
                    let seen = found.iter().filter(|own| own.get(figure) == Some(&true)).count();
                    let seldom = effect <= 0.01 && falls_short(seen, found.len(), least);
                    cell(percent(seen, found.len()), seldom)
                };
                rows.push(vec![
                    name.to_owned(),
                    format!("{:.1} %", 100.0 * effect),
                    repeats.to_string(),
                    format!("{:.0} %", 100.0 * (times - 1.0)),
                    of("ttft.mean"),
                    of("tpot.mean"),
                    of("e2e.mean"),
                    percent(alone, found.len()),
                ]);
            }
        }
    }
    Section {
        title: "Differences that are found".into(),
        about: format!(
            "The share of comparisons that find an engine slower all of whose steps take so much longer. {runs} comparisons of \
             each case were drawn, and half as many of repeats. The target is that three repeats a side find 3 % in eight of ten \
             where runs vary by 1 %, and five in nine of ten. The last column is of the mean TPOT alone, as with `--metric \
             tpot.mean`; the others are judged together with all headline figures."
        ),
        heads: heads(&["slower by", "mean TTFT", "mean TPOT", "mean E2E", "mean TPOT alone"]),
        rows,
        why: "No test of three against three values that vary by 1 %, and of nothing else known, finds 3 % more often than in \
            77 % (Student's test, 5 %); judged together with figures that hardly change, it finds less. Runs of the same requests \
            differ by the pace alone, so pairing the requests adds nothing to that. Four runs a side, or one figure chosen with \
            `--metric`, find more."
            .into(),
    }
}

/// The largest error of the mean, as a share of it.
const BOUND: f64 = 0.05;

/// Repeats at most.
const MOST: usize = 20;

fn until(sequences: u64) -> Section {
    let mut rows = Vec::new();
    for variation in [0.01, 0.02, 0.05, 0.1] {
        let found = each(sequences, |seed| {
            let mut random = Random::new(7_000_000 + seed);
            let mut values = Vec::new();
            loop {
                values.push(1.0 + variation * random.normal());
                let many = values.len();
                let Some(found) = anytime::mean(&values) else { continue };
                let half = (found.high - found.low) / 2.0;
                let is_reached = half <= BOUND * f64::midpoint(found.low, found.high);
                if is_reached || many == MOST {
                    let holds = found.low <= 1.0 && found.high >= 1.0;
                    return (holds, is_reached, many);
                }
            }
        });
        let count = |is: &dyn Fn(&(bool, bool, usize)) -> bool| {
            percent(found.iter().filter(|own| is(own)).count(), found.len())
        };
        let held = found.iter().filter(|own| own.0).count();
        let seldom = falls_short(held, found.len(), 0.95);
        let runs: usize = found.iter().map(|own| own.2).sum();
        let expected = anytime::needed(variation, BOUND, 1000);
        rows.push(vec![
            format!("{:.0} %", 100.0 * variation),
            cell(percent(held, found.len()), seldom),
            count(&|own| own.1),
            format!("{:.1}", runs as f64 / found.len() as f64),
            expected.map_or("more than 1000".to_owned(), |runs| runs.to_string()),
        ]);
    }
    Section {
        title: "Repeats that stop themselves".into(),
        about: format!(
            "`--until 'FIGURE \u{b1}5%'` with at most {MOST} runs, whose figures are normal: the share of sequences whose interval holds the \
             truth when they stop (the target is at least 95 %), that stop before the bound on their number, how many runs they take, and \
             how many are said beforehand. {sequences} sequences of each case were drawn."
        ),
        heads: [
            "run to run",
            "interval holds the truth",
            "within 5 %",
            "runs, mean",
            "said beforehand",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows,
        why: "The runs at which a sequence may stop are looked at one after another.".into(),
    }
}

/// A kind of score: its name, a draw of it, its mean, and the ends of its scale.
type Scores = (&'static str, fn(&mut Random) -> f64, f64, Option<[f64; 2]>);

/// Draws a grade from 1 to 5 by these shares of the grades from 1 to 4.
fn grade(random: &mut Random, shares: [f64; 4]) -> f64 {
    let drawn = random.uniform();
    let mut sum = 0.0;
    let below = shares.iter().position(|share| {
        sum += share;
        drawn < sum
    });
    below.map_or(5.0, |place| place as f64 + 1.0)
}

const UNIT: Option<[f64; 2]> = Some([0.0, 1.0]);
const GRADES: Option<[f64; 2]> = Some([1.0, 5.0]);

const SCORES: [Scores; 8] = [
    ("grades: 85 % 5, others all", |random| grade(random, [0.05, 0.02, 0.03, 0.05]), 4.63, GRADES),
    ("grades: 90 % 5, else 1", |random| grade(random, [0.1, 0.0, 0.0, 0.0]), 4.6, GRADES),
    ("grades: 60 % 1, others all", |random| grade(random, [0.6, 0.25, 0.1, 0.03]), 1.62, GRADES),
    ("mostly right: beta (5, 1)", |random| random.uniform().powf(0.2), 5.0 / 6.0, UNIT),
    (
        "1, but for 15 % that are anything",
        |random| if random.uniform() < 0.85 { 1.0 } else { random.uniform() },
        0.925,
        UNIT,
    ),
    (
        "0, but for 30 % that are anything",
        |random| if random.uniform() < 0.7 { 0.0 } else { random.uniform() },
        0.15,
        UNIT,
    ),
    ("exponential", Random::exponential, 1.0, None),
    ("lognormal, \u{3c3} = 1", |random| random.normal().exp(), 1.648_721_270_700_128, None),
];

fn scores(runs: u64) -> Section {
    let mut rows = Vec::new();
    for (name, draw, mean, scale) in SCORES {
        let mut row = vec![name.to_owned()];
        for many in [5, 10, 20, 50] {
            let found = each(runs, |seed| {
                let mut random = Random::new(8_000_000 + seed);
                let values = (0..many).map(|_| Cluster { sum: draw(&mut random), count: 1 });
                let values: Vec<Cluster> = values.collect();
                let found = match scale {
                    Some(scale) => bounded::interval(&values, scale),
                    None => clusters::interval(&values),
                };
                found.map(|found| found.low <= mean && found.high >= mean)
            });
            let given: Vec<bool> = found.into_iter().flatten().collect();
            let held = given.iter().filter(|held| **held).count();
            let seldom = falls_short(held, given.len(), 0.92);
            let without = if given.len() as u64 == runs {
                String::new()
            } else {
                format!(" (given {})", percent(given.len(), runs as usize))
            };
            row.push(cell(format!("{}{without}", percent(held, given.len())), seldom));
        }
        rows.push(row);
    }
    Section {
        title: "Intervals of scores".into(),
        about: format!(
            "The share of intervals that hold the mean, of skewed scores that are no shares, by the number of answers. The target is 92 %. \
             Where all answers have the same score, there is no interval. {runs} samples of each case were drawn."
        ),
        heads: ["scores", "5 answers", "10", "20", "50"]
            .map(str::to_owned)
            .to_vec(),
        rows,
        why: "A few values of such a tail do not show how far it reaches. Scores within bounds have no such tail.".into(),
    }
}

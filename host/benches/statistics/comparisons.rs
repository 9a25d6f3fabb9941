//! How often comparisons call equal engines different, and how often they find a difference.

use std::collections::BTreeMap;
use std::convert::Infallible;

use crate::load::{each, facts, summary};
use crate::table::{Section, cell, percent};
use report::Reported;
use report::compare::{
    Asked, Choice, Compared, Judgement, Measured, Side, blocks, compare, figures,
};
use result::figure::Figure;
use scenario::plan::Plan;
use serde_json::json;
use simulator::{Case, Load, Parameters};

pub fn sections(runs: u64) -> Vec<Section> {
    // A comparison takes several runs, and much longer than their summaries.
    let comparisons = (runs / 5).max(1);
    vec![equal(comparisons), slower(comparisons), same(comparisons)]
}

/// Run-level standard deviations of an engine's pace.
const EFFECTS: [f64; 3] = [0.0, 0.01, 0.02];

/// Requests of each run.
const REQUESTS: usize = 1000;

const LOADS: [(Load, &str); 3] = [
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

/// A run of a case.
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

/// So many runs of each case, all of the same requests, as repeats of one plan are.
fn sides(cases: [&Case; 2], repeats: u64, trial: u64) -> [Side; 2] {
    [0, 1].map(|side| {
        let runs = (0..repeats).map(|repeat| {
            let engine = (trial * 2 + side) * 16 + repeat;
            measured(cases[side as usize], trial, engine)
        });
        Side::Runs(runs.collect())
    })
}

/// A comparison of such runs.
fn compared(cases: [&Case; 2], repeats: u64, trial: u64) -> Compared {
    let sides = sides(cases, repeats, trial);
    let asked = Asked::of(wanted(), blocks(REQUESTS as u64));
    compare(&sides, &asked).unwrap_or_else(|obstacles| panic!("{obstacles:?}"))
}

/// Whether each figure was called better or worse.
fn called(found: &Compared) -> BTreeMap<String, bool> {
    let rows = found.pairs[0].figures.iter();
    rows.map(|row| {
        let is = matches!(row.judgement, Some(Judgement::Better | Judgement::Worse));
        (row.figure.clone(), is)
    })
    .collect()
}

/// Whether the 95 % interval of a figure's difference holds zero, the truth of an engine compared with itself.
fn holds_zero(found: &Compared, figure: &str) -> bool {
    let ends = found.row("B", figure).and_then(|row| row.interval);
    ends.is_none_or(|ends| ends.low <= 0.0 && ends.high >= 0.0)
}

/// An engine all of whose steps take so many times as long.
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
                let any = found.iter().filter(|own| own.values().any(|is| *is));
                let any = any.count();
                let any = cell(percent(any, found.len()), any * 20 > found.len());
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
             {REQUESTS} requests, the same on both sides; with one run a side, the usual 2 % is assumed. {runs} comparisons of each case were drawn."
        ),
        heads: heads(&[
            "any figure",
            "mean TTFT",
            "mean TPOT",
            "interval of mean TTFT holds 0",
            "of mean TPOT",
        ]),
        rows,
        why: "Of so few comparisons, a share of 5 % can come out as 10 % by chance. With one run a side, an engine that varies by \
            more than is assumed is called different, and near capacity a pace that varies a little makes waits vary by far more."
            .into(),
    }
}

/// The difference up to which figures count as the same.
const SAME_WITHIN: f64 = 0.03;

fn same(runs: u64) -> Section {
    let mut rows = Vec::new();
    let (load, name) = LOADS[2];
    for effect in EFFECTS {
        for times in [1.0, 1.015, 1.03] {
            for repeats in [1, 3, 5] {
                let case = with_effect(load, effect);
                let other = slowed(&case, times);
                let trials = if repeats == 1 {
                    runs
                } else {
                    (runs / 2).max(1)
                };
                let found = each(trials, |trial| {
                    let sides = sides([&case, &other], repeats, trial);
                    let asked = Asked {
                        same_within: Some(SAME_WITHIN),
                        ..Asked::of(wanted(), blocks(REQUESTS as u64))
                    };
                    let found = compare(&sides, &asked);
                    found.unwrap_or_else(|obstacles| panic!("{obstacles:?}"))
                });
                let of = |figure: &str| {
                    let is_same = |found: &&Compared| {
                        let row = found.row("B", figure);
                        row.and_then(|row| row.judgement) == Some(Judgement::Same)
                    };
                    let same = found.iter().filter(is_same).count();
                    let is_wrong = times >= 1.0 + SAME_WITHIN && same * 20 > found.len();
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
        about: "The share of comparisons with `--same-within 3%` that call a figure the same. An engine that is 3 % slower may be \
            called the same in 5 % at most. Of comparisons of repeats, half as many were drawn."
            .into(),
        heads: heads(&["slower by", "mean TPOT", "mean E2E"]),
        rows,
        why: "Of so few comparisons, a share of 5 % can come out as 12 % by chance.".into(),
    }
}

fn slower(runs: u64) -> Section {
    let mut rows = Vec::new();
    for (load, name) in LOADS {
        for effect in EFFECTS {
            for (repeats, times) in [(1, 1.03), (1, 1.1), (3, 1.03), (5, 1.03)] {
                // Comparisons of repeats take several times longer.
                let trials = if repeats == 1 {
                    runs
                } else {
                    (runs / 2).max(1)
                };
                let case = with_effect(load, effect);
                let other = slowed(&case, times);
                let found = each(trials, |trial| {
                    called(&compared([&case, &other], repeats, trial))
                });
                let is_due = effect <= 0.01 && (repeats, times) == (3, 1.03);
                let of = |figure: &str| {
                    let seen = found.iter().filter(|own| own.get(figure) == Some(&true));
                    let seen = seen.count();
                    let seldom = is_due && seen * 5 < found.len() * 4;
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
                ]);
            }
        }
    }
    Section {
        title: "Differences that are found".into(),
        about: "The share of comparisons that find an engine slower all of whose steps take so much longer. Of comparisons of \
            repeats, half as many were drawn. The target is that three repeats a side find 3 % in 80 %, with paces that vary by 1 % \
            at most."
            .into(),
        heads: heads(&["slower by", "mean TTFT", "mean TPOT", "mean E2E"]),
        rows,
        why: "A pace that varies by 1 % makes the difference of two sides of three runs vary by 0.8 %, and TTFT varies by more."
            .into(),
    }
}

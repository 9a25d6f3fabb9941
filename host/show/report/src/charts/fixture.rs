//! Runs for tests of drawings: made-up exchanges with the rest of a page.

use std::convert::Infallible;

use super::RunView;
use crate::exchanges::{failed, ms, reply};
use crate::view::{View, grain};
use compare::{Choice, Measured, Options, Side};
use model::exchange::{Class, Exchange, Kind, Turn, Usage};
use result::summary::RunFacts;
use runs::Reported;
use runs::folder::facts;
use scenario::plan::Plan;

/// A plan with a cap, an objective and something said of the engine.
pub(crate) fn plan(name: &str) -> Plan {
    let plugin = |name: &str| {
        serde_json::json!({
            "plugin": format!("plugins/{name}.wasm"), "name": name, "version": "0.1.0",
            "digest": "ab".repeat(32), "config": {}
        })
    };
    let mut dataset = plugin("random");
    dataset["files"] = serde_json::json!({});
    serde_json::from_value(serde_json::json!({
        "name": name,
        "runner": "0.1.0",
        "about": { "engine": "vllm", "engine-version": "0.10.1", "hardware": "8x H800" },
        "target": { "base-urls": ["http://a:1"], "model": "m", "api-key": false, "headers": [] },
        "backend": plugin("vllm"),
        "dataset": dataset,
        "scorers": [],
        "tokenizer": { "name": "bytes", "approximate": true },
        "load": {
            "amount": { "requests": 60 },
            "arrival": { "model": "poisson", "rate": 10.0 },
            "max-in-flight": 4,
            "warmup": 0,
            "seed": 1
        },
        "request": { "stream": true, "ignore-eos": true },
        "connection": { "http": "1.1", "reuse": "keep-alive", "trust": {}, "timestamps": "kernel" },
        "timeouts": { "connect": 1, "token-gap": 1, "request": 1 },
        "percentiles": [90.0, 99.0],
        "goodput": [{ "metric": "ttft", "at-most-ms": 140.0 }],
        "sandbox": model::plugin::Limits::default(),
    }))
    .unwrap()
}

/// A request of every hundred milliseconds. It waits 0 to 40 ms for the cap, and 100 ms and more
/// for its first token: the longer its prompt, the more. Each of the next ten tokens takes 20 ms.
/// Every twentieth fails.
pub(crate) fn exchanges(count: u64, slower_by: u64) -> Vec<Exchange> {
    let exchange = |index: u64| {
        let due = 1000 + index * 100;
        let sent = due + index % 5 * 10;
        let first = sent + 100 + index % 7 * 10 + slower_by;
        let mut events: Vec<_> =
            (0..11).map(|n| (first + n * 20, Kind::Text, Some(1), 4)).collect();
        events.push((first + 200, Kind::End, None, 0));
        let mut exchange = reply(index, sent, &events);
        exchange.due = ms(due);
        exchange.granted = Some(ms(sent));
        exchange.usage = Some(Usage {
            input_tokens: Some(100 + (index % 7) as u32 * 50),
            output_tokens: Some(11),
            ..Usage::default()
        });
        exchange.sample.class = Some(["chat", "code"][(index % 2) as usize].to_owned());
        exchange.sample.turn =
            Some(Turn { session: format!("s{}", index / 2), index: (index % 2) as u32 });
        match index % 20 {
            19 => failed(exchange, Class::Truncated, "it broke <off>"),
            _ => exchange,
        }
    };
    (0..count).map(exchange).collect()
}

pub(crate) fn run_of(label: &str, exchanges: &[Exchange]) -> RunView {
    let facts = facts(&plan(label), Default::default(), false);
    run_with(label, exchanges, facts)
}

pub(crate) fn run_with(label: &str, exchanges: &[Exchange], facts: RunFacts) -> RunView {
    let mut reported = Reported {
        folder: format!("20260102-030405-{label}"),
        plan: plan(label),
        environment: None,
        ..crate::fixture::reported(&facts, exchanges)
    };
    if let Some(status) = &mut reported.status {
        status.started = "2026-01-02T03:04:05.6Z".to_owned();
    }
    let grain = grain(reported.summary.throughput.duration_s.unwrap_or(0.0));
    let records = exchanges.iter().map(Ok::<_, Infallible>);
    let Ok(view) = View::read(&facts, &reported, grain, records);
    RunView { label: label.to_owned(), reported, view }
}

/// The runs, each with its exchanges, as sides of a comparison of their headline figures.
pub(crate) fn sides_of(runs: &[RunView], exchanges: &[Vec<Exchange>]) -> (Vec<Side>, Options) {
    let figures = compare::figures(&Choice::Headline, &[], &[]);
    let fewest = exchanges.iter().map(|exchanges| exchanges.len() as u64);
    let blocks = fewest.min().and_then(compare::blocks);
    let sides = runs.iter().zip(exchanges).map(|(run, exchanges)| {
        let facts = facts(&run.reported.plan, Default::default(), false);
        let exchanges = exchanges.iter().cloned().map(Ok::<_, Infallible>);
        let Ok(measured) =
            Measured::read(run.reported.clone(), &facts, &figures, blocks, None, exchanges);
        Side::Runs(vec![measured])
    });
    (sides.collect(), Options::new(figures, blocks))
}

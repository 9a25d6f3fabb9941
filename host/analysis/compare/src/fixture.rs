//! Runs for tests: plans written by hand, and exchanges of an engine with places and a queue.

use std::collections::BTreeMap;
use std::convert::Infallible;

use rand_mt::Mt64;
use serde_json::{Value, json};

use crate::exchanges::{output_usage, reply};
use audit::claim::{Claim, Source, Tool};
use compare::{Choice, Measured, Options, Side, blocks, figures, percentiles};
use model::exchange::{Exchange, Kind};
use model::units::Nanos;
use result::figure::Figure;
use result::summary::{Column, RunFacts, Summary};
use runs::{Reported, folder};
use scenario::plan::Plan;

/// A plan of 300 random prompts, with some of its keys replaced: `load.seed` and a value.
pub(crate) fn plan(over: &[(&str, Value)]) -> Plan {
    let plugin = |name: &str, digest: &str| json!({"plugin": format!("{name}.wasm"), "name": name, "version": "1.0.0", "digest": digest, "config": {}});
    let mut dataset = plugin("random", "d0");
    dataset["config"] = json!({"input-len": 40, "output-len": 11});
    dataset["files"] = json!({});
    let mut plan = json!({
        "name": "chat",
        "runner": "0.1.0",
        "target": {"base-urls": ["http://a:8000"], "model": "qwen", "api-key": false, "headers": []},
        "backend": plugin("vllm", "b0"),
        "dataset": dataset,
        "scorers": [],
        "tokenizer": {"name": "bytes", "approximate": true},
        "load": {"amount": {"requests": 300}, "arrival": {"model": "constant", "rate": 10.0}, "warmup": 0, "seed": 1},
        "request": {"stream": true, "ignore-eos": true},
        "connection": {"http": "1.1", "reuse": "keep-alive", "trust": {}, "timestamps": "kernel"},
        "timeouts": {"connect": 1_000_000_000, "token-gap": 1_000_000_000, "request": 5_000_000_000_u64},
        "percentiles": [99.0],
        "sandbox": serde_json::to_value(model::plugin::Limits::default()).unwrap(),
    });
    for (key, value) in over {
        let mut place = &mut plan;
        for part in key.split('.') {
            place = &mut place[part];
        }
        *place = value.clone();
    }
    serde_json::from_value(plan).unwrap_or_else(|error| panic!("{error}"))
}

/// The behaviour of an engine of the trials.
#[derive(Clone, Copy)]
pub(crate) struct Engine {
    /// Times the usual time to the first token.
    pub ttft: f64,
    /// Times the usual gap.
    pub gap: f64,
    /// The variation of one request's times, as a standard deviation of their logarithm.
    pub spread: f64,
    /// Requests it answers at a time.
    pub places: usize,
    pub seed: u64,
}

pub(crate) const USUAL: Engine = Engine { ttft: 1.0, gap: 1.0, spread: 0.3, places: 8, seed: 1 };

/// Requests that come by chance, at this rate a second, to such an engine. Their content depends on
/// the number of the request alone, so that it is the same for every engine.
pub(crate) fn exchanges(engine: Engine, requests: u64, rate: f64) -> Vec<Exchange> {
    let (mut load, mut own) = (Mt64::new(7), Mt64::new(1000 + engine.seed));
    let mut free = vec![0.0_f64; engine.places];
    let mut due = 1.0;
    let mut replies = Vec::new();
    for index in 0..requests {
        // Long prompts take longer, and long answers too.
        let prompt = (0.8 * normal(&mut load)).exp();
        let tokens = 4 + (load.next_u64() % 9) as u32;
        let place = (0..free.len()).min_by(|a, b| free[*a].total_cmp(&free[*b])).unwrap();
        let start = free[place].max(due);
        let mut vary = || (engine.spread * normal(&mut own)).exp();
        let mut at = start + 0.060 * engine.ttft * (0.7 + 0.3 * prompt) * vary();
        let mut events = vec![(at, Kind::Text)];
        for _ in 1..tokens {
            at += 0.020 * engine.gap * vary();
            events.push((at, Kind::Text));
        }
        events.push((at, Kind::End));
        free[place] = at;
        replies.push(exchange(index, due, &events, tokens));
        due += -(1.0 - uniform(&mut load)).ln() / rate;
    }
    replies
}

fn exchange(index: u64, due: f64, events: &[(f64, Kind)], tokens: u32) -> Exchange {
    let mut exchange = reply(index, 0, &[]);
    exchange.due = Nanos::from_secs_f64(due);
    exchange.sent = Some(exchange.due);
    for (at, kind) in events {
        exchange.events.push(model::exchange::Event {
            at: Nanos::from_secs_f64(*at),
            kind: *kind,
            tokens: None,
            bytes: u32::from(kind.is_output()),
        });
    }
    exchange.ended = exchange.events.at.last().copied();
    exchange.usage = output_usage(tokens);
    exchange.sample.request_digest = format!("{index:016x}");
    exchange.sample.output_tokens = Some(tokens);
    exchange
}

/// A run of a plan with these exchanges.
pub(crate) fn measured(folder: &str, plan: Plan, exchanges: &[Exchange]) -> Measured {
    scored(folder, plan, exchanges, BTreeMap::new())
}

/// The same, whose answers have scores.
pub(crate) fn scored(
    folder: &str,
    plan: Plan,
    exchanges: &[Exchange],
    scores: BTreeMap<String, Column<f64>>,
) -> Measured {
    let facts = RunFacts {
        scores,
        run: result::summary::Run {
            measure_start: Some(Nanos(1_000_000_000)),
            ..folder::facts(&plan, Default::default(), false).run
        },
        ..folder::facts(&plan, Default::default(), false)
    };
    let summary = Summary::new(&facts, exchanges);
    let figures = figures(&Choice::Headline, &[&summary], &[]);
    assert_eq!(percentiles(&Choice::Headline), [50.0, 99.0]);
    let blocks = blocks(summary.requests.total);
    let reported =
        Reported { folder: folder.to_owned(), plan, environment: None, status: None, summary };
    let read = exchanges.iter().cloned().map(Ok::<_, Infallible>);
    let Ok(measured) = Measured::read(reported, &facts, &figures, blocks, None, read);
    measured
}

/// A side of one run of the usual plan.
pub(crate) fn side(exchanges: &[Exchange]) -> Side {
    Side::Runs(vec![measured("run", plan(&[]), exchanges)])
}

/// The figures of that name.
pub(crate) fn named(names: &[&str]) -> Vec<Figure> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

pub(crate) fn uniform(random: &mut Mt64) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

pub(crate) fn normal(random: &mut Mt64) -> f64 {
    let radius = (-2.0 * (1.0 - uniform(random)).ln()).sqrt();
    radius * (std::f64::consts::TAU * uniform(random)).cos()
}

/// Options to compare these figures of runs with this number of requests.
pub(crate) fn options(figures: Vec<Figure>, requests: u64) -> Options {
    Options::new(figures, blocks(requests))
}

pub(crate) const FIGURES: [&str; 6] = [
    "ttft.mean",
    "ttft.p99",
    "itl.mean",
    "ttft.max",
    "throughput.output-tokens-per-s",
    "concurrency.peak",
];

/// Two engines: the second takes half as long again to begin, and writes faster.
pub(crate) fn pair() -> [Vec<Exchange>; 2] {
    let other = Engine { ttft: 1.5, gap: 0.8, seed: 2, ..USUAL };
    [USUAL, other].map(|engine| exchanges(engine, 600, 10.0))
}

/// Makes the claim of LMDeploy's benchmark about the same requests.
pub(crate) fn claim() -> Claim {
    let source = Source { file: "page.md".into(), line: Some(12), ..Source::default() };
    let mut claim = Claim::new(Tool::Lmdeploy, source);
    claim.model = Some("qwen".into());
    claim.about.engine = Some("lmdeploy".into());
    for (figure, value) in [("ttft.mean", 80.0), ("itl.mean", 18.0), ("requests.successful", 600.0)]
    {
        claim.state(figure, value, 0.005);
    }
    claim
}

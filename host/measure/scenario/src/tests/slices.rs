//! Slices of a plan against a run of one process: due times, caps, and requests in flight.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use model::arrival::{Due, Trace};
use model::units::Nanos;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::plan::{Plan, Slice};

/// Duration of every reply, in nanoseconds.
const REPLY: u64 = 42_000_000;
const RECORDED: u64 = 120;
/// Number of replies of a load without an end that are checked.
const LOOKED_AT: usize = 300;

fn plan(load: &Value) -> Plan {
    let plugin =
        json!({"plugin": "p.wasm", "name": "p", "version": "1.0.0", "digest": "0", "config": {}});
    let mut dataset = plugin.clone();
    dataset["files"] = json!({});
    serde_json::from_value(json!({
        "name": "slices",
        "runner": "0",
        "target": {"base-urls": ["http://a:8000"], "model": "m", "api-key": false, "headers": []},
        "backend": plugin,
        "dataset": dataset,
        "scorers": [],
        "tokenizer": {"name": "bytes", "approximate": true},
        "load": load,
        "request": {"stream": true, "ignore-eos": true},
        "connection": {"http": "1.1", "reuse": "keep-alive", "trust": {}, "timestamps": "kernel"},
        "timeouts": {"connect": 1_000_000_000, "token-gap": 1_000_000_000, "request": 5_000_000_000_u64},
        "percentiles": [99.0],
        "sandbox": serde_json::to_value(model::plugin::Limits::default()).unwrap(),
    }))
    .unwrap()
}

/// A trace with times that come closer and closer.
fn recorded() -> Trace {
    let instants: Vec<Nanos> =
        (1..=RECORDED).map(|number| Nanos(5_000_000_000 - 5_000_000_000 / number)).collect();
    Trace::from_instants(&instants)
}

/// Each request's number, due time and send time, sent in turn as soon as a slot is free.
fn sent(plan: &Plan) -> Vec<(u64, u64, u64)> {
    // A search for a request that the plan does not hold never ends.
    let numbers = (0_u64..).filter(|number| plan.holds(*number));
    let due_times: Vec<Due> = plan.due_times(&recorded()).take(LOOKED_AT).collect();
    let mut free: Option<BinaryHeap<Reverse<u64>>> =
        (plan.slots()).map(|slots| (0..slots).map(|_| Reverse(0)).collect());
    let each = due_times.into_iter().zip(numbers).map(|(due, number)| {
        let slot = match &mut free {
            None => 0,
            Some(free) => free.pop().expect("whoever holds a request has a slot").0,
        };
        let due = match due {
            Due::At(Nanos(at)) => at,
            Due::WhenFree => slot,
        };
        let sent = due.max(slot);
        free.iter_mut().for_each(|free| free.push(Reverse(sent + REPLY)));
        (number, due, sent)
    });
    each.collect()
}

fn loads() -> impl Strategy<Value = Value> {
    let arrival = prop_oneof![
        (1_u32..=40).prop_map(|users| json!({"model": "closed", "concurrency": users})),
        Just(json!({"model": "inf"})),
        (1.0..300.0).prop_map(|rate| json!({"model": "constant", "rate": rate})),
        (1.0..300.0).prop_map(|rate| json!({"model": "poisson", "rate": rate})),
        (1.0..300.0, 0.2..4.0)
            .prop_map(|(rate, shape)| json!({"model": "gamma", "rate": rate, "burstiness": shape})),
        (1.0..100.0, 1.0..300.0).prop_map(|(from, to)| {
            let ramp = json!({"from": from, "to": to, "shape": "linear", "for": 2_000_000_000_u64});
            json!({"model": "ramp", "spread": "poisson", "ramp": ramp})
        }),
        prop::collection::vec(1.0..200.0, 1..4).prop_map(|rates| {
            let stage = |rate: &f64| {
                json!({"from": rate, "to": rate, "shape": "linear", "for": 500_000_000})
            };
            let stages: Vec<Value> = rates.iter().map(stage).collect();
            json!({"model": "stages", "spread": "constant", "stages": stages})
        }),
        (0.5..4.0).prop_map(|scale| {
            let file = json!({"path": "a.jsonl", "bytes": 1, "digest": "0"});
            json!({"model": "trace", "file": file, "time-scale": scale, "timestamps": RECORDED,
                "length": 5.0, "peak": 100.0})
        }),
    ];
    let amount = prop_oneof![
        (1_u64..200).prop_map(|requests| json!({"requests": requests})),
        (1_u64..200).prop_map(|sessions| json!({"sessions": sessions})),
        Just(json!({"duration": 1_000_000_000})),
    ];
    let cap = prop::option::of(1_u32..=40);
    (arrival, amount, cap, 0_u32..20).prop_map(|(arrival, amount, cap, warmup)| {
        let mut load = json!({"arrival": arrival, "amount": amount, "warmup": warmup, "seed": 5});
        if let Some(cap) = cap {
            load["max-in-flight"] = json!(cap);
        }
        load
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn slices_together_send_the_whole_plan(load in loads(), of in 1_u32..=9) {
        let whole = plan(&load);
        let slices: Vec<Plan> = (0..of)
            .map(|index| Plan { slice: Some(Slice { index, of }), ..whole.clone() })
            .collect();
        let held = |number: u64| slices.iter().filter(|slice| slice.holds(number)).count();
        // Exactly one slice holds each request, session and request of the warm-up.
        prop_assert!((0..400).all(|number| held(number) == 1));
        let slots = slices.iter().map(|slice| slice.slots().unwrap_or(0)).sum::<usize>();
        prop_assert_eq!(slots, whole.slots().unwrap_or(0));
        for slice in &slices {
            let mine = (0..400).filter(|number| slice.holds(*number)).count();
            prop_assert_eq!(mine == 0, slice.is_idle(), "without a slot there is nothing to send");
            if let Some(requests) = whole.requests() {
                let mine = (0..requests).filter(|number| slice.holds(*number)).count() as u64;
                prop_assert_eq!(slice.held_requests(), Some(mine));
            }
        }
        let alone = sent(&whole);
        let mut together: Vec<_> = slices.iter().flat_map(sent).collect();
        together.sort_unstable();
        // Of an endless load, the parts have more requests than the whole.
        together.truncate(alone.len());
        prop_assert_eq!(together, alone);
    }
}

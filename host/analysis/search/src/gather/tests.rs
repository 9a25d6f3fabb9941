//! Runs whose requests are known one by one.

use super::*;
use crate::slo::tiers;
use model::exchange::{Exchange, Outcome, Usage};
use simulator::{Random, ServedRequest, Work};

/// Waits that come and go in clusters of fifty, at a tenth of the limit: no request comes near it,
/// so each counts as one. Where they come within half of it, the clusters count.
#[test]
fn clusters_far_from_the_limit_do_not_count() {
    let tiers = tiers(["far: ttft.p99 < 1s", "near: ttft.p99 < 150ms"]).unwrap();
    let mut random = Random::new(8);
    let mut gather = Gather::new(&tiers);
    let mut waits = 10.0;
    for place in 0..8000_u64 {
        if place % 50 == 0 {
            waits = if random.uniform() < 0.08 { 100.0 } else { 10.0 };
        }
        let due = Nanos(place * 1_000_000);
        gather.add_seen(due, [None, Some(Nanos(due.0 + 1))], Some(&[Observation::Took(waits)]));
    }
    let shown = gather.finish(None, None);
    let [far, near] = [shown.tiers[0][0], shown.tiers[1][0]];
    assert_eq!((far.bad, far.near_effect), (0, 1.0));
    assert!(near.bad == 0 && near.near_effect > 30.0, "{near:?}");
    assert!(far.tail_effect > 30.0, "{far:?}");
}

#[test]
fn requests_are_counted_for_each_objective_in_any_order() {
    let tiers = tiers(["ttft.p99 < 10ms", "tpot.p90 <= 5ms", "loose: ttft.p50 < 20ms"]).unwrap();
    let measured = |turned: bool| {
        let mut gather = Gather::new(&tiers);
        let mut places: Vec<u64> = (0..100).collect();
        if turned {
            places.reverse();
        }
        for place in places {
            let due = Nanos(place * 1_000_000);
            let seen = [
                Observation::Took(if place % 10 == 0 { 15.0 } else { 5.0 }),
                if place < 3 { Observation::Unknown } else { Observation::Took(5.0) },
            ];
            let answered = place % 25 != 24;
            let ended = Nanos(due.0 + 2_000_000);
            gather.add_seen(due, [None, answered.then_some(ended)], answered.then_some(&seen));
        }
        gather.finish(None, None)
    };
    let straight = measured(false);
    let bad: Vec<Vec<(u64, u64)>> = (straight.tiers.iter())
        .map(|tier| tier.iter().map(|own| (own.bad, own.unknown)).collect())
        .collect();
    assert_eq!(bad, [vec![(14, 0), (7, 3)], vec![(4, 0)]]);
    assert_eq!(measured(true), straight);
    // Two milliseconds each, one a millisecond.
    let little = straight.little.unwrap();
    assert!((little.latency_s - 0.002).abs() < 1e-9 && little.agrees(), "{little:?}");
    let json = serde_json::to_string(&straight).unwrap();
    assert_eq!(serde_json::from_str::<Measured>(&json).unwrap(), straight);
}

#[test]
fn littles_law_is_broken_where_the_backlog_grows() {
    let mut gather = Gather::new(&tiers(["ttft.p99 < 10ms"]).unwrap());
    for place in 0..100_u64 {
        let due = Nanos(place * 1_000_000);
        let ended = Some(Nanos(due.0 * 3 + 1));
        gather.add_seen(due, [None, ended], Some(&[Observation::Took(1.0)]));
    }
    let little = gather.finish(None, None).little.unwrap();
    assert!(!little.agrees() && little.ratio().unwrap() < 0.8, "{little:?}");
}

/// A hundred exchanges, a second apart, each answered after 100 ms with its first token, and 10 ms
/// for each of ten tokens after it.
fn exchanges() -> Vec<Exchange> {
    let second = 1_000_000_000;
    let served: Vec<ServedRequest> = (0..100)
        .map(|place| ServedRequest {
            sent: Nanos(place * second),
            work: Work { prompt_tokens: 5, output_tokens: 11, ..Work::default() },
            tokens: (10..21).map(|step| Nanos(place * second + step * 10_000_000)).collect(),
        })
        .collect();
    simulator::exchanges(&served)
}

fn gathered(exchanges: &[Exchange]) -> Vec<(u64, u64, u64)> {
    let tiers = tiers(["ttft.p99 <= 100ms", "tpot.p99 <= 10ms", "e2e.p90 <= 200ms"]).unwrap();
    let mut gather = Gather::new(&tiers);
    for exchange in exchanges {
        gather.add(&Reading::new(exchange, true, None));
    }
    let measured = gather.finish(None, None);
    (measured.tiers[0].iter()).map(|own| (own.requests, own.bad, own.unknown)).collect()
}

#[test]
fn requests_that_failed_or_were_not_sent_are_bad_and_cancelled_ones_are_not_judged() {
    let mut all = exchanges();
    assert_eq!(gathered(&all), [(100, 0, 0); 3]);
    let ended_as = |exchange: &mut Exchange, class: Class| {
        exchange.outcome = Outcome::Incomplete { class, reason: None, message: String::new() };
    };
    for exchange in &mut all[..5] {
        ended_as(exchange, Class::HttpStatus);
    }
    for exchange in &mut all[5..8] {
        ended_as(exchange, Class::NotSent);
        (exchange.sent, exchange.ended) = (None, None);
    }
    for exchange in &mut all[8..10] {
        ended_as(exchange, Class::Cancelled);
    }
    all[99].phase = Phase::Warmup;
    assert_eq!(gathered(&all), [(97, 8, 0); 3]);
}

#[test]
fn latencies_begin_when_a_request_is_due() {
    let mut all = exchanges();
    // Sent a millisecond late; no later token is later for it.
    for exchange in &mut all[..7] {
        exchange.due = Nanos(exchange.due.0.saturating_sub(1_000_000));
    }
    all[0].due = all[0].sent.unwrap();
    assert_eq!(gathered(&all), [(100, 6, 0), (100, 0, 0), (100, 6, 0)]);
    // Without token counts, nothing is known of the time per token.
    for exchange in &mut all {
        exchange.usage = None;
    }
    assert_eq!(gathered(&all)[1], (100, 100, 100));
    // One token has no time per further token, and keeps the limit.
    for exchange in &mut all {
        exchange.usage = Some(Usage { output_tokens: Some(1), ..Usage::default() });
    }
    assert_eq!(gathered(&all)[1], (100, 0, 0));
}

//! A mock engine that answers many requests in one batch, as a process of its own. The times
//! compared here come from its model, and do not depend on how fast the machine is.

use std::collections::BTreeMap;

use mock::{End, Truth};
use model::exchange::Outcome;
use model::units::Nanos;
use tempfile::TempDir;

use crate::endings::{exchanges, line};
use crate::support::process::{Mock, run, runner};

const USERS: usize = 4;
const TOKENS: usize = 12;

fn generated(truth: &Truth) -> &[Nanos] {
    &truth.batched.as_ref().unwrap().generated
}

/// Four users: each step takes 5 ms, and a millisecond for each request that gets a further token
/// in it. So the time per output token of a request is 5 ms and a millisecond for each request in
/// the batch.
#[test]
fn the_tpot_of_a_closed_loop_agrees_with_the_batch_model() {
    let batching = "slots=8,step=5ms,request=1ms,prompt-token=0,jitter=0";
    let mock = Mock::logging(&["--batching", batching]);
    let folder = TempDir::new().unwrap();
    let flags = format!("--concurrency {USERS} --num-prompts 24 --random-output-len {TOKENS}");
    run(&mut line(runner(), &mock, folder.path(), &flags)).with_code(0);
    let exchanges = exchanges(folder.path());
    assert!(exchanges.iter().all(|own| own.outcome == Outcome::Ok));
    assert_eq!(exchanges.len(), 24);

    let log = mock.end();
    // Requests that got a further token when a step ended.
    let mut decoding: BTreeMap<Nanos, u64> = BTreeMap::new();
    for truth in &log {
        for at in &generated(truth)[1..] {
            *decoding.entry(*at).or_default() += 1;
        }
    }
    let mut together = 0;
    for truth in &log {
        assert_eq!((truth.end, generated(truth).len()), (End::Whole, TOKENS));
        let started = truth.started.unwrap();
        assert!(truth.received <= started);
        for pair in generated(truth).windows(2) {
            let batch = decoding[&pair[1]];
            assert!(batch <= USERS as u64);
            together = together.max(batch);
            assert_eq!(pair[1].since(pair[0]), Nanos((5 + batch) * 1_000_000));
        }
        // No token leaves before it is generated.
        let sent = truth.chunks.iter().filter(|chunk| chunk.tokens > 0);
        assert!(sent.zip(generated(truth)).all(|(sent, at)| sent.at >= *at));
    }
    assert!(together > 1, "the users are answered in one batch");
}

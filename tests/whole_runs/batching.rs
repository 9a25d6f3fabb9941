//! A mock engine that answers many requests in one batch: the figures equal its model's.

use model::exchange::{Exchange, Outcome};

use super::{assert_close, base};

/// A step takes 10 ms, a millisecond for each request that goes on, and 100 µs for each prompt
/// token.
const BATCH: &str =
    "[batching]\nslots = 4\nstep = '10ms'\nrequest = '1ms'\nprompt-token = '100us'\njitter = 0";

/// Four users send together and get their answers together. The batch reads four prompts of 40
/// tokens in a step of 26 ms, and generates the other ten tokens in steps of 14 ms.
#[tokio::test(start_paused = true)]
async fn a_closed_loop_has_the_tpot_of_a_full_batch() {
    let ran = base().with("load.concurrency = 4\nload.requests = 20").against(BATCH).run().await;
    assert!(ran.measured().all(|exchange| exchange.outcome == Outcome::Ok));
    assert_eq!(ran.everywhere("ttft"), (26.0, 20));
    let (tpot, requests) = ran.everywhere("tpot");
    assert_close(Some(tpot), 14.0);
    assert_eq!((requests, ran.everywhere("itl").1), (20, 200));
    assert_close(ran.summary.throughput.duration_s, 5.0 * 0.166);
}

/// More users than places: the others wait for as long as a batch takes.
#[tokio::test(start_paused = true)]
async fn requests_wait_while_the_batch_is_full() {
    let ran = base().with("load.concurrency = 8\nload.requests = 24").against(BATCH).run().await;
    let ttft = |exchange: &Exchange| {
        let first = exchange.events.iter().next().unwrap().at;
        first.since(exchange.sent.unwrap()).as_millis_f64()
    };
    let first: Vec<f64> = ran.measured().map(ttft).collect();
    assert_eq!(first[..4], [26.0; 4]);
    assert!(first[4..].iter().all(|ttft| *ttft == 166.0 + 26.0), "{first:?}");
    assert_close(Some(ran.metric("tpot").mean), 14.0);
}

/// Fewer requests in the batch get their tokens faster.
#[tokio::test(start_paused = true)]
async fn a_request_alone_is_faster() {
    let ran = base().with("load.concurrency = 1\nload.requests = 3").against(BATCH).run().await;
    assert_close(Some(ran.everywhere("ttft").0), 14.0);
    assert_close(Some(ran.everywhere("tpot").0), 11.0);
}

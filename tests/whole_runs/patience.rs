//! The timeouts, and when each of them starts.

use model::exchange::{Class, Kind};
use model::units::Nanos;

use super::base;
use crate::support::raw::{CHUNKED, Raw, chunk, say, text, wait};
use crate::support::trial::{RunResult, Trial};

/// Milliseconds from a request's sending to its end.
fn lasted(ran: &RunResult, index: usize) -> f64 {
    let exchange = &ran.exchanges[index];
    let since: Nanos = exchange.ended.unwrap().since(exchange.sent.unwrap());
    since.as_millis_f64()
}

/// A chat whose role arrives at once and whose tokens stop forever after this many.
fn stalled(after: u32, timeouts: &str) -> Trial {
    base()
        .with("backend.config.route = 'chat'")
        .with(&format!("timeouts = {{ {timeouts} }}"))
        .against("role-chunk = 'at-once'")
        .against(&format!("[[fault]]\nkind = 'stall'\nafter-tokens = {after}\nrequests = [1]"))
}

/// A role is no token: after it, the first-token timeout still runs, counted from the sending.
#[tokio::test(start_paused = true)]
async fn a_role_is_no_token() {
    for (first, gap) in [("400ms", "5s"), ("400ms", "100ms"), ("3s", "500ms")] {
        let timeouts = format!("first-token = '{first}', token-gap = '{gap}'");
        let ran = stalled(0, &timeouts).run().await;
        assert_eq!(ran.failures(), [(1, Class::FirstTokenTimeout)], "{timeouts}");
        let kinds = &ran.exchanges[1].events.kind;
        assert_eq!(kinds[..], [Kind::Role], "{timeouts}");
        let limit = if first == "3s" { 3_000.0 } else { 400.0 };
        assert_eq!(lasted(&ran, 1), limit, "{timeouts}");
    }
}

/// After the first token, its timeout no longer matters, whether it is shorter or longer.
#[tokio::test(start_paused = true)]
async fn the_gap_counts_from_the_last_token() {
    for (first, gap, limit) in
        [("150ms", "1s", 1_000.0), ("10s", "1s", 1_000.0), ("1s", "30ms", 30.0)]
    {
        let timeouts = format!("first-token = '{first}', token-gap = '{gap}'");
        let ran = stalled(3, &timeouts).run().await;
        assert_eq!(ran.failures(), [(1, Class::TokenGapTimeout)], "{timeouts}");
        // The last of three tokens came after 160 ms.
        assert_eq!(lasted(&ran, 1), 160.0 + limit, "{timeouts}");
    }
}

/// Without a timeout for the first token, only the whole request's timeout applies to it.
#[tokio::test(start_paused = true)]
async fn without_a_time_for_the_first_token_the_request_has_it() {
    let ran = stalled(0, "token-gap = '1s', request = '20s'").run().await;
    assert_eq!(ran.failures(), [(1, Class::RequestTimeout)]);
    assert_eq!(lasted(&ran, 1), 20_000.0);
    let ran = stalled(2, "token-gap = '1s', request = '20s'").run().await;
    assert_eq!(ran.failures(), [(1, Class::TokenGapTimeout)]);
}

/// A reply of any length gets no more than the request timeout.
#[tokio::test(start_paused = true)]
async fn a_reply_that_never_ends_is_ended() {
    let mut drip = vec![say(CHUNKED)];
    for _ in 0..100 {
        drip.extend([say(chunk(text("a"))), wait(100)]);
    }
    let raw = Raw::with([(1, drip)]);
    let timeouts = "timeouts = { first-token = '1s', token-gap = '1s', request = '3050ms' }";
    let ran = base().with(timeouts).against_raw(&raw).run().await;
    assert_eq!(ran.failures(), [(1, Class::RequestTimeout)]);
    assert_eq!(lasted(&ran, 1), 3_050.0);
    assert_eq!(ran.exchanges[1].output.len(), 31);
}

/// Replies that are not streamed have no tokens with timeouts.
#[tokio::test(start_paused = true)]
async fn a_whole_reply_is_waited_for_as_a_whole() {
    let timeouts = "timeouts = { first-token = '10ms', token-gap = '10ms' }";
    let ran = base().with("request.stream = false").with(timeouts).run().await;
    assert_eq!(ran.failures(), []);
    assert_eq!(ran.everywhere("e2e"), (320.0, 5));
}

//! Figures from a run's records: goodput, the steady state, intervals, and the sources of metrics.

use model::exchange::Class;
use result::summary::{Basis, SteadyState, Window};

use super::{assert_close, base};

/// Two in flight, one due every 100 ms: answers begin 120, 120, 240, 240 and 360 ms after their
/// requests were due. The last one is cut off.
#[tokio::test(start_paused = true)]
async fn goodput_counts_failed_requests_against_it() {
    let ran = base()
        .with("load.max-in-flight = 2")
        .with("goodput = { ttft-from-due = '250ms', e2el = 330 }")
        .against("[[fault]]\nkind = 'cut'\nafter-tokens = 3\nrequests = [4]")
        .run()
        .await;
    assert_eq!(ran.failures(), [(4, Class::Truncated)]);
    let goodput = ran.summary.goodput.as_ref().unwrap();
    assert_eq!((goodput.good, goodput.slo_attainment), (4, Some(0.8)));
    let duration = ran.summary.throughput.duration_s.unwrap();
    assert_eq!(goodput.requests_per_s, Some(4.0 / duration));
    assert_eq!(goodput.output_tokens_per_s, Some(44.0 / duration));
    assert_eq!(goodput.objectives["e2e"].kept, 4);
    for line in [
        "Good requests:                           4",
        "SLO attainment (%):                      80.00",
        "ttft-from-due <= 250 ms (%):             80.00",
    ] {
        assert!(ran.text.contains(line), "{line}\n{}", ran.text);
    }

    let strict = base().with("load.max-in-flight = 2\ngoodput.ttft-from-due = 150").run().await;
    let goodput = strict.summary.goodput.as_ref().unwrap();
    assert_eq!((goodput.good, goodput.slo_attainment), (2, Some(0.4)));
}

/// Four users for 40 rounds of 320 ms, and two of them for one more.
#[tokio::test(start_paused = true)]
async fn the_steady_state_of_a_closed_loop() {
    let ran = base()
        .with("load.requests = 162\nload.arrival = 'closed'\nload.concurrency = 4")
        .run()
        .await;
    assert_eq!(ran.failures(), []);
    let Some(SteadyState::Window(window)) = &ran.summary.steady_state else {
        panic!("{}", ran.text);
    };
    let Window { from_s, to_s, plateau, at_least, .. } = **window;
    assert_eq!((from_s, to_s), (0.0, 12.8));
    assert_eq!((plateau, at_least), (4, 4));
    // The first four met an engine that filled, so their latencies are not of its steady state.
    assert_eq!((window.ended, window.sent), (160, 156));
    assert_close(Some(window.requests_per_s), 12.5);
    assert_close(window.output_tokens_per_s, 137.5);
    assert_close(Some(window.mean_in_flight), 4.0);
    assert_eq!(window.metrics["ttft"].mean, 120.0);
    assert_eq!(window.metrics["itl"].count, 1560);
    assert_close(ran.summary.concurrency.mean_in_flight, 51.84 / 13.12);

    let short = base().run().await;
    assert!(matches!(&short.summary.steady_state, Some(SteadyState::Absent(_))), "{}", short.text);
    assert!(short.text.contains("\nnone: "), "{}", short.text);
}

/// Every figure states its source; figures of tokens are counted.
#[tokio::test(start_paused = true)]
async fn requests_are_sampled_and_tokens_are_counted() {
    let ran = base().run().await;
    for (name, from) in [
        ("ttft", Basis::Samples),
        ("tpot", Basis::Samples),
        ("itl", Basis::Histogram),
        ("itl-dealt", Basis::Histogram),
    ] {
        assert_eq!(ran.metric(name).from, from, "{name}");
    }
    assert_eq!(ran.everywhere("itl-dealt"), (20.0, 50));
    assert_eq!(ran.everywhere("itl-max"), (20.0, 5));
    assert_eq!(ran.everywhere("decode-speed"), (50.0, 5));
    assert_eq!(ran.everywhere("tokens-per-event"), (1.0, 5));
    // Five requests show nothing of the mean's variation; twenty similar ones do.
    assert_eq!(ran.metric("e2e").confidence, None);
    let ran = base().with("load.requests = 20").run().await;
    let confidence = ran.metric("e2e").confidence.unwrap();
    let mean = confidence.mean.unwrap();
    assert_eq!((mean.low, mean.high), (Some(320.0), Some(320.0)));
}

//! Times of requests, and the results: arrivals, caps, closed loops, durations, warmup.

use std::collections::BTreeSet;

use model::arrival::{Arrival, Due, Trace};
use model::exchange::{Class, Outcome};
use model::units::Nanos;
use result::finding::{Id, Verdict};
use result::summary::Treatment;
use result::summary::cold::Shown;
use runs::folder::RunFolder;

use super::{assert_close, base, has_finding};
use crate::support::sharegpt;
use crate::support::trial::{RunResult, Trial};

fn due(ran: &RunResult) -> Vec<f64> {
    ran.since_start(|exchange| Some(exchange.due))
}

fn sent(ran: &RunResult) -> Vec<f64> {
    ran.since_start(|exchange| exchange.sent)
}

/// Five requests, one every 100 ms, each answered in 320 ms: the last one ends at 720 ms.
#[tokio::test(start_paused = true)]
async fn constant_arrivals() {
    let ran = base().run().await;
    assert_eq!(due(&ran), [0.0, 100.0, 200.0, 300.0, 400.0]);
    assert_eq!(sent(&ran), due(&ran));
    assert_eq!(ran.since_start(|exchange| exchange.ended), [320.0, 420.0, 520.0, 620.0, 720.0]);
    for (name, value, count) in [
        ("ttft", 120.0, 5),
        ("ttft-any", 120.0, 5),
        ("ttft-answer", 120.0, 5),
        ("ttft-from-due", 120.0, 5),
        ("e2e", 320.0, 5),
        ("e2e-last-token", 320.0, 5),
        ("e2e-from-due", 320.0, 5),
        ("tpot", 20.0, 5),
        ("tpot-last-token", 20.0, 5),
        ("itl", 20.0, 50),
        ("send-lag", 0.0, 5),
        ("input-tokens", 40.0, 5),
        ("output-tokens", 11.0, 5),
    ] {
        let (got, samples) = ran.everywhere(name);
        assert!((got - value).abs() < 1e-12, "{name}: {got}, not {value}");
        assert_eq!(samples, count, "{name}");
    }
    assert_close(Some(ran.metric("tpot-with-first").mean), 320.0 / 11.0);
    assert!(ran.summary.metric("queue").is_none(), "there is no cap");
    let requests = &ran.summary.requests;
    assert_eq!((requests.total, requests.successful, requests.sent), (5, 5, 5));
    assert_eq!((requests.failed, requests.warmup), (0, 0));
    assert_eq!(requests.success_share, Some(1.0));
    assert_eq!(requests.held_back, None);
    assert_eq!(ran.summary.tokens.input.total, Some(200));
    assert_eq!(ran.summary.tokens.output.total, Some(55));
    assert_eq!(ran.summary.tokens.output_requested, Some(55));
    assert_eq!(ran.summary.tokens.output_retokenized, Some(55));
    assert_eq!(ran.summary.tokens.per_event, Some(1.0));
    let throughput = &ran.summary.throughput;
    assert_close(throughput.duration_s, 0.72);
    assert_close(throughput.requests_per_s, 5.0 / 0.72);
    assert_close(throughput.input_tokens_per_s, 200.0 / 0.72);
    assert_close(throughput.output_tokens_per_s, 55.0 / 0.72);
    assert_close(throughput.total_tokens_per_s, 255.0 / 0.72);
    assert_eq!(throughput.peak_output_tokens_per_s, None, "not a second");
    assert_close(throughput.sent_requests_per_s, 10.0);
    assert_close(throughput.due_requests_per_s, 10.0);
    let concurrency = &ran.summary.concurrency;
    assert_close(concurrency.mean, 5.0 * 0.32 / 0.72);
    assert_close(concurrency.mean_in_flight, 5.0 * 0.32 / 0.72);
    assert_eq!(concurrency.peak, Some(4));
}

/// The server's own account agrees with ours, request by request and token by token.
#[tokio::test(start_paused = true)]
async fn the_servers_own_account_agrees() {
    let ran = base().run().await;
    assert_eq!(ran.truths.len(), 5);
    // The engine's clock began earlier than the run's, by the same time for each.
    let apart = ran.truths[0].received.0 - ran.exchanges[0].sent.unwrap().0;
    for (truth, exchange) in ran.truths.iter().zip(ran.measured()) {
        assert_eq!(truth.received.0 - apart, exchange.sent.unwrap().0);
        assert_eq!(truth.prompt_tokens, exchange.sample.input_tokens);
        assert_eq!(truth.output_tokens, exchange.sample.output_tokens);
        let written: Vec<u64> = truth
            .chunks
            .iter()
            .filter(|chunk| chunk.tokens > 0)
            .map(|chunk| chunk.at.0 - apart)
            .collect();
        let read: Vec<u64> = exchange
            .events
            .iter()
            .filter(|event| event.kind.is_output() && event.bytes > 0)
            .map(|event| event.at.0)
            .collect();
        assert_eq!(read, written);
    }
}

/// In runs of a second and more, the busiest second is reported. Answers of 101 tokens take 2120
/// ms: in the second from 1 to 2 s the first and the second have 50 tokens each. The third, whose
/// first token comes at 1120 ms, has 44, and the fourth, at 1620 ms, has 19.
#[tokio::test(start_paused = true)]
async fn the_busiest_second() {
    let over = "dataset.config.output-len = 101\nload.requests = 4\n\
                load.rate = 2.0\nload.arrival = 'constant'";
    let ran = base().with(over).run().await;
    assert_close(ran.summary.throughput.duration_s, 1.5 + 2.12);
    assert_eq!(ran.summary.throughput.peak_output_tokens_per_s, Some(50.0 + 50.0 + 44.0 + 19.0));
}

/// Two at a time: the third request waits for the first to end, and so on.
#[tokio::test(start_paused = true)]
async fn a_cap_shows_as_queueing() {
    let ran = base().with("load.max-in-flight = 2").run().await;
    assert_eq!(due(&ran), [0.0, 100.0, 200.0, 300.0, 400.0]);
    let granted = ran.since_start(|exchange| exchange.granted);
    assert_eq!(granted, [0.0, 100.0, 320.0, 420.0, 640.0]);
    assert_eq!(sent(&ran), granted);
    let queue = ran.metric("queue");
    assert_eq!((queue.min, queue.median, queue.max), (0.0, 120.0, 240.0));
    assert_eq!(ran.everywhere("send-lag").0, 0.0);
    assert_eq!(ran.everywhere("e2e").0, 320.0);
    assert_eq!(ran.everywhere("ttft").0, 120.0);
    let from_due = ran.metric("e2e-from-due");
    assert_eq!((from_due.min, from_due.max), (320.0, 560.0));
    assert_close(Some(from_due.mean), (320.0 * 2.0 + 440.0 * 2.0 + 560.0) / 5.0);
    assert_eq!(ran.metric("ttft-from-due").max, 360.0);
    assert_eq!(ran.summary.requests.held_back, Some(3));
    assert_eq!(ran.summary.concurrency.peak, Some(2));
    assert_close(ran.summary.throughput.duration_s, 0.96);
    assert!(has_finding(&ran, Id::CapReached));
}

/// Here the server holds requests back, and the client does not: they are sent when due, and
/// their first tokens are late.
#[tokio::test(start_paused = true)]
async fn a_slow_server_shows_in_the_latencies() {
    let ran = base().against("max-concurrency = 2").run().await;
    assert_eq!(sent(&ran), [0.0, 100.0, 200.0, 300.0, 400.0]);
    let ttft: Vec<f64> =
        ran.measured().map(|e| e.events.at[0].since(e.sent.unwrap()).as_millis_f64()).collect();
    assert_eq!(ttft, [120.0, 120.0, 240.0, 240.0, 360.0]);
    assert_eq!(ran.metric("ttft").mean, 216.0);
    assert_eq!(ran.everywhere("tpot").0, 20.0);
    assert_eq!(ran.summary.concurrency.peak, Some(4));
    assert!(!has_finding(&ran, Id::CapReached));
}

/// Two users, each sending its next request when the last one is answered.
#[tokio::test(start_paused = true)]
async fn a_closed_loop() {
    let ran = base().with("load.concurrency = 2").run().await;
    assert_eq!(sent(&ran), [0.0, 0.0, 320.0, 320.0, 640.0]);
    assert_eq!(due(&ran), sent(&ran));
    assert!(ran.measured().all(|exchange| exchange.granted.is_none()));
    assert_eq!(ran.summary.concurrency.peak, Some(2));
    assert_close(ran.summary.concurrency.mean, 5.0 * 0.32 / 0.96);
    assert_close(ran.summary.throughput.duration_s, 0.96);
    assert_eq!(ran.summary.throughput.due_requests_per_s.unwrap(), 6.25);
    assert_eq!(ran.everywhere("ttft-from-due").0, 120.0);
    assert_eq!(ran.connections, 2, "a connection a user, kept alive");
}

/// NumPy's times. Timers of the runtime tick in milliseconds, so a request is sent at the next
/// whole one, and how late that is, is on record.
#[tokio::test(start_paused = true)]
async fn poisson_arrivals() {
    let over = "load.requests = 40\nload.arrival = 'poisson'\nload.seed = 1";
    let ran = base().with(over).run().await;
    let start = ran.start();
    let poisson = Arrival::Poisson { rate: 10.0, normalise: false };
    let planned: Vec<Nanos> = poisson
        .due_times(1, None, &Trace::default())
        .take(40)
        .map(|due| match due {
            Due::At(at) => at,
            Due::WhenFree => panic!("an open loop"),
        })
        .collect();
    let due: Vec<Nanos> = ran.measured().map(|e| e.due.since(start)).collect();
    assert_eq!(due, planned);
    assert_eq!(due[1].0, 53_960_584, "np.random.seed(1)");
    for exchange in ran.measured() {
        let tick = exchange.due.0.div_ceil(1_000_000) * 1_000_000;
        assert_eq!(exchange.sent, Some(Nanos(tick)));
    }
    assert_eq!(ran.everywhere("ttft").0, 120.0);
    let lag = ran.metric("send-lag");
    assert!(lag.min >= 0.0 && lag.max < 1.0);
    let late = ran.metric("ttft-from-due").mean - 120.0;
    assert!((late - lag.mean).abs() < 1e-9);
}

/// Ten requests are due within a second, the last of them at 900 ms; all are answered.
#[tokio::test(start_paused = true)]
async fn a_duration() {
    let ran = base().with("load.duration = '1s'").run().await;
    assert_eq!(due(&ran).len(), 10);
    assert_eq!(due(&ran).last(), Some(&900.0));
    assert_eq!(ran.summary.requests.successful, 10);
    assert_eq!(ran.summary.run.planned, None);
    assert_close(ran.summary.throughput.duration_s, 1.22);
    // 10 answers of 11 tokens; of the last, which ends at 1220 ms, none came in the first second;
    // of answers due at 800, 700, 600 ms: 4, 9 and all.
    assert_eq!(ran.summary.throughput.peak_output_tokens_per_s, Some(7.0 * 11.0 + 9.0 + 4.0));
}

/// One at a time for one second: whatever was due and found no slot is on record.
#[tokio::test(start_paused = true)]
async fn unsent_requests_are_on_record() {
    let ran = base().with("load.duration = '1s'\nload.max-in-flight = 1").run().await;
    assert_eq!(due(&ran).len(), 10);
    let requests = &ran.summary.requests;
    assert_eq!((requests.total, requests.successful), (10, 4));
    assert_eq!(requests.failures[&Class::NotSent].count, 6);
    let sent: Vec<f64> =
        ran.measured().filter_map(|e| Some(e.sent?.since(ran.start()).as_millis_f64())).collect();
    assert_eq!(sent, [0.0, 320.0, 640.0, 960.0]);
    assert_eq!(requests.held_back, Some(9), "three waited, six for nothing");
    assert!(has_finding(&ran, Id::NotSent));
}

#[tokio::test(start_paused = true)]
async fn a_closed_loop_of_a_duration() {
    let ran = base().with("load.concurrency = 3\nload.duration = '500ms'").run().await;
    assert_eq!(sent(&ran), [0.0, 0.0, 0.0, 320.0, 320.0, 320.0]);
    assert_eq!(ran.summary.requests.successful, 6);
}

/// Warm-up requests are sent and recorded before the measurement and counted in nothing. The
/// measured prompts equal the prompts of the run without it.
#[tokio::test(start_paused = true)]
async fn warm_up_counts_in_nothing() {
    let plain = base().run().await;
    let warmed = base().with("load.warmup = 3").run().await;
    assert_eq!(warmed.warmup().count(), 3);
    assert_eq!(warmed.summary.requests.warmup, 3);
    assert!(warmed.warmup().all(|e| e.outcome == Outcome::Ok));
    let over = warmed.warmup().map(|e| e.ended.unwrap()).max().unwrap();
    assert!(warmed.measured().all(|e| e.sent.unwrap() >= over));
    assert_eq!(warmed.summary.metrics, plain.summary.metrics);
    assert_eq!(warmed.summary.throughput, plain.summary.throughput);
    assert_eq!(warmed.summary.concurrency, plain.summary.concurrency);
    let digests = |ran: &RunResult| -> Vec<String> {
        ran.measured().map(|e| e.sample.request_digest.clone()).collect()
    };
    assert_eq!(digests(&warmed), digests(&plain));
    let all: BTreeSet<&str> =
        warmed.exchanges.iter().map(|e| e.sample.request_digest.as_str()).collect();
    assert_eq!(all.len(), 8, "no prompt is sent twice");
    assert_eq!(warmed.truths.len(), 8);
}

/// A file with fewer conversations than asked for ends the run early, and the run reports their
/// number.
#[tokio::test(start_paused = true)]
async fn a_dataset_may_be_shorter_than_requested() {
    let file = sharegpt::file(4);
    let scenario = r#"
        target.model = "mock"
        backend.plugin = "backends/vllm.wasm"
        dataset.plugin = "datasets/sharegpt.wasm"
        dataset.config.like = "lmdeploy"
        load.requests = 10
    "#;
    let ran = Trial::new(scenario).dataset_file(file.path()).run().await;
    assert_eq!(ran.warmup().count(), 0, "all four are measured");
    assert_eq!(ran.summary.requests.total, 4);
    assert_eq!(ran.summary.requests.successful, 4);
    assert_eq!(ran.summary.run.planned, Some(10));
}

/// A file that is used again says so, in the run's folder and in the result.
#[tokio::test(start_paused = true)]
async fn repeated_samples_are_reported() {
    let file = sharegpt::file(4);
    let scenario = r#"
        target.model = "mock"
        backend.plugin = "backends/vllm.wasm"
        dataset.plugin = "datasets/sharegpt.wasm"
        dataset.config.like = "vllm"
        load.requests = 10
    "#;
    let ran = Trial::new(scenario).dataset_file(file.path()).run().await;
    assert_eq!(ran.summary.requests.successful, 10);
    let dataset = ran.summary.dataset.as_ref().unwrap();
    assert_eq!(dataset.count(Treatment::Repeated), 6, "{dataset:?}");
    assert_eq!(ran.summary.verdict, Verdict::Suspect);
    assert!(has_finding(&ran, Id::DatasetAltered));
    assert!(ran.text.contains("repeated 6 × conversation"), "{}", ran.text);
    // Later reports come from the folder.
    assert!(ran.folder().join("dataset.json").is_file());
    let facts = RunFolder::at(ran.folder()).facts().unwrap();
    assert_eq!(facts.dataset.as_ref(), Some(dataset));
}

/// A dataset that did nothing to its input leaves no file.
#[tokio::test(start_paused = true)]
async fn a_dataset_that_alters_nothing_is_silent() {
    let ran = base().run().await;
    assert_eq!(ran.summary.dataset, None);
    assert!(!ran.folder().join("dataset.json").exists());
}

/// Eight users, whose requests and waits vary from seed to seed.
fn users(requests: u32, seed: u64, more: &str) -> Trial {
    base().with(&format!(
        "load.requests = {requests}\nload.seed = {seed}\nload.concurrency = 8\n{more}"
    ))
}

/// The first eight requests come while the engine compiles for 40 s.
const COMPILES: &str = "ttft = '900ms'\nspread = 0.2\ncold-requests = 8\ncold-delay = '40s'\n";

#[tokio::test(start_paused = true)]
async fn a_first_wave_that_waits_for_compiles_is_found() {
    for seed in 0..100 {
        let script = format!("{COMPILES}seed = {seed}");
        let ran = users(48, seed, "").against(&script).run().await;
        let cold = ran.summary.cold_start.as_ref().expect("it is found");
        assert_eq!(cold.shown, Shown::FirstWave);
        assert_eq!((cold.requests, cold.first, cold.last), (8, 0, 7));
        assert!(cold.wait_without_ms < 2000.0 && cold.wait_ms > 5000.0);
        assert!(has_finding(&ran, Id::ColdStart));
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_is_ready_has_no_cold_start() {
    let mut alarms = 0;
    for seed in 0..100 {
        let script = format!("ttft = '900ms'\nspread = 0.2\nseed = {seed}");
        let ran = users(48, seed, "").against(&script).run().await;
        alarms += u32::from(has_finding(&ran, Id::ColdStart));
    }
    assert!(alarms <= 1, "{alarms} of 100");
}

/// The first wave of the warm-up meets the compiles, the second one differs from it, and the third
/// one does not differ from the second.
#[tokio::test(start_paused = true)]
async fn a_warm_up_goes_on_until_the_engine_is_stable() {
    let script = COMPILES.replace("0.2", "0");
    let until_stable = "load.warming = 'until-stable'";
    let ran = users(48, 1, until_stable).against(&script).run().await;
    let warmup = ran.summary.warmup.expect("it was asked for");
    assert_eq!((warmup.waves, warmup.stable), (3, true));
    assert_eq!(ran.warmup().count(), 24);
    assert!(!has_finding(&ran, Id::ColdStart) && !has_finding(&ran, Id::WarmupUnstable));
    // Eight are in flight in each wave, and the next one begins when all have ended.
    let mut sent: Vec<Nanos> = ran.warmup().filter_map(|exchange| exchange.sent).collect();
    sent.dedup();
    assert_eq!(sent.len(), 3);
    let prompts: BTreeSet<&str> =
        (ran.exchanges.iter()).map(|exchange| exchange.sample.request_digest.as_str()).collect();
    assert_eq!(prompts.len(), 72, "no prompt of the warm-up is measured");

    let limited = format!("{until_stable}\nload.warmup-limit = '30s'");
    let ran = users(48, 1, &limited).against(&script).run().await;
    assert_eq!(ran.warmup().count(), 8);
    assert!(has_finding(&ran, Id::WarmupUnstable) && !has_finding(&ran, Id::ColdStart));
}

#[tokio::test(start_paused = true)]
async fn a_warm_up_has_the_loads_concurrency_or_rate() {
    let like_load = "load.warming = 'like-load'";
    let closed = users(48, 1, like_load).run().await;
    assert_eq!(closed.warmup().count(), 8);
    assert_eq!(closed.summary.warmup, None);
    let open = base().with(like_load).run().await;
    let sent: Vec<Nanos> = open.warmup().filter_map(|exchange| exchange.sent).collect();
    assert_eq!(sent.len(), 50, "ten a second for five seconds");
    let (first, last) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
    assert_eq!(last.since(*first), Nanos(4_900_000_000));
}

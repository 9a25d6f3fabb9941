//! The server's own timings and the steps of speculative decoding, from the engine's reply to the
//! figures of the run, compared with the engine's log.

use mock::Truth;
use model::exchange::Exchange;
use model::units::Nanos;
use result::summary::first_token::{Part, Split};

use super::{base, with_backend};
use crate::support::trial::{RunResult, Trial};

/// A quarter of 120 ms counts as queueing. With one slot, requests wait for each other as well.
const SCRIPT: &str = "server-timings = 0.25\nmax-concurrency = 1\n";

const NAMES: [&str; 4] = ["server-queue", "server-prefill", "server-ttft", "server-decode"];

const LLAMACPP: &str = include_str!("../../host/base/mock/engines/llamacpp.toml");
const OLLAMA: &str = include_str!("../../host/base/mock/engines/ollama.toml");

/// An engine with timings, and the metrics that it has.
fn engines() -> Vec<(&'static str, Trial, &'static [&'static str])> {
    let route = |plugin: &str, route: &str| {
        with_backend(plugin).with(&format!("backend.config.route = '{route}'"))
    };
    let llamacpp = with_backend("llamacpp").against(SCRIPT);
    let ollama = with_backend("ollama").against(SCRIPT);
    let ollama = ollama.with("request.ignore-eos = false\ntarget.model = 'mock:latest'");
    vec![
        ("vllm completions", route("vllm", "completions").against(SCRIPT), &NAMES),
        ("vllm chat", route("vllm", "chat").against(SCRIPT), &NAMES),
        ("sglang", route("sglang", "generate").against(SCRIPT), &NAMES),
        ("llamacpp", llamacpp.against(LLAMACPP), &["server-prefill", "server-decode"]),
        ("ollama", ollama.against(OLLAMA), &NAMES),
    ]
}

/// The request's times as the engine says in its own log, in milliseconds. Where the reply is not
/// streamed, the log does not say when its first token was there.
fn logged(truth: &Truth, streamed: bool) -> [f64; 4] {
    let started = truth.started.unwrap();
    let first = if streamed { truth.first_token().unwrap() } else { started + Nanos(120_000_000) };
    let last = truth.chunks.iter().rfind(|chunk| chunk.tokens > 0).unwrap().at;
    let model = first.since(started).as_millis_f64();
    let queue = started.since(truth.received).as_millis_f64() + 0.25 * model;
    [
        queue,
        0.75 * model,
        first.since(truth.received).as_millis_f64(),
        last.since(first).as_millis_f64(),
    ]
}

/// The four metrics of an exchange, as the columns of its row.
fn measured(ran: &RunResult, exchange: &Exchange) -> [Option<f64>; 4] {
    let row = report::row::Row::new(&ran.facts, exchange);
    NAMES.map(|name| {
        let mut columns = report::row::columns().iter();
        let column = columns.find(|column| column.name == name).unwrap();
        match column.value(&row)? {
            report::row::Value::Metric(value) => Some(value),
            other => panic!("{other:?}"),
        }
    })
}

#[tokio::test(start_paused = true)]
async fn figures_agree_with_the_engines_log() {
    for (about, trial, known) in engines() {
        for streamed in [true, false] {
            let ran = trial.clone().with(&format!("request.stream = {streamed}")).run().await;
            let about = format!("{about}, streamed: {streamed}\n{}", ran.text);
            assert_eq!(ran.failures(), [], "{about}");
            assert_eq!(ran.truths.len(), 5, "{about}");
            let mut means = [0.0; 4];
            for (exchange, truth) in ran.measured().zip(&ran.truths) {
                let logged = logged(truth, streamed);
                let measured = measured(&ran, exchange);
                for ((name, logged), (measured, mean)) in
                    NAMES.iter().zip(logged).zip(measured.iter().zip(&mut means))
                {
                    *mean += logged / 5.0;
                    assert_eq!(measured.is_some(), known.contains(name), "{name}: {about}");
                    let off = measured.map_or(0.0, |measured| (measured - logged).abs());
                    assert!(off <= 1.0, "{name}: {measured:?} is not {logged}; {about}");
                }
            }
            // The last of five requests, a tenth of a second apart, waited for four of 320 ms.
            assert!(means[0] > 400.0, "{means:?} {about}");
            for (name, mean) in NAMES.iter().zip(means) {
                let metric = ran.summary.metric(name);
                assert_eq!(metric.map(|of| of.count), known.contains(name).then_some(5));
                assert!(metric.is_none_or(|of| (of.mean - mean).abs() <= 1.0), "{about}");
            }
            let shown = ran.text.contains("Server's Own Timings");
            assert!(shown && ran.text.contains("Mean Server Prefill (ms):"), "{about}");
            let queues = known.contains(&"server-queue");
            assert_eq!(ran.text.contains("Mean Server Queue (ms):"), queues, "{about}");
        }
    }
}

/// The time in milliseconds for which the client held a request, by the engine's log of arrivals.
/// Requests are due a tenth of a second apart, and the first is sent at once.
fn held(truths: &[Truth], place: usize) -> f64 {
    let since_first = truths[place].received.since(truths[0].received);
    since_first.as_millis_f64() - 100.0 * place as f64
}

/// Every part of the time from due to first token is within a millisecond of the engine's log, and
/// together they are all of it.
#[tokio::test(start_paused = true)]
async fn parts_of_the_first_token_agree_with_the_engines_log() {
    for (about, trial, known) in engines() {
        let ran = trial.with("load.max-in-flight = 2").run().await;
        let about = format!("{about}\n{}", ran.text);
        assert_eq!(ran.failures(), [], "{about}");
        let tells_queue = known.contains(&"server-queue");
        let mut longest = 0.0_f64;
        let mut means = [0.0; Part::ALL.len()];
        for (place, (exchange, truth)) in ran.measured().zip(&ran.truths).enumerate() {
            let row = report::row::Row::new(&ran.facts, exchange);
            let split = Split::new(&row.reading).expect("the engine tells its timings");
            let [queue, prefill, ttft, _] = logged(truth, true);
            let client = held(&ran.truths, place);
            longest = longest.max(client);
            let is_close = |part: Option<f64>, known: f64| {
                assert!(
                    part.is_some_and(|part| (part - known).abs() <= 1.0),
                    "request {place}: {part:?} is not {known}; {split:?}; {about}"
                );
            };
            let part = |part: Part| split.part(part).map(Nanos::as_millis_f64);
            is_close(Some(split.whole.as_millis_f64()), client + ttft);
            is_close(part(Part::Client), client);
            is_close(part(Part::Connection), 0.0);
            is_close(part(Part::Prefill), prefill);
            // Nothing lies between client and engine here.
            for between in [Part::Network, Part::FrontEnd, Part::NetworkAndFrontEnd] {
                is_close(Some(part(between).unwrap_or(0.0)), 0.0);
            }
            let unexplained = split.unexplained as f64 / 1e6;
            if tells_queue {
                is_close(part(Part::Queue), queue);
                is_close(Some(unexplained), 0.0);
            } else {
                assert_eq!(part(Part::Queue), None, "{about}");
                is_close(Some(unexplained), queue);
            }
            let parts = Part::ALL.map(|part| split.part(part).unwrap_or_default());
            let sum: u64 = parts.iter().map(|part| part.0).sum();
            assert_eq!(sum as i64 + split.unexplained, split.whole.0 as i64);
            for (mean, part) in means.iter_mut().zip(parts) {
                *mean += part.as_millis_f64() / 5.0;
            }
        }
        assert!(longest > 200.0, "the cap held some back: {longest}; {about}");

        let parts = ran.summary.first_token.as_ref().unwrap();
        assert_eq!((parts.requests, parts.without_timings), (5, 0), "{about}");
        for (part, mean) in Part::ALL.into_iter().zip(means) {
            let figure = parts.mean.part(part).unwrap_or(0.0);
            assert!((figure - mean).abs() < 1e-6, "{part:?} {figure} {mean}");
        }
        let due = ran.metric("ttft-from-due").mean;
        assert!((parts.mean.whole_ms - due).abs() < 1e-6, "{due} {about}");
        let shares = parts.mean.shares();
        assert!(ran.text.contains(&shares), "{shares} {about}");
        assert_eq!(shares.contains("unexplained"), !tells_queue, "{about}");
    }
}

/// Five answers of three steps each: one accepted nothing, two accepted two tokens.
#[tokio::test(start_paused = true)]
async fn steps_of_speculative_decoding_are_summed() {
    for (plugin, route) in [("vllm", "completions"), ("vllm", "chat"), ("sglang", "generate")] {
        for streamed in [true, false] {
            let ran = with_backend(plugin)
                .with(&format!("backend.config.route = '{route}'\nrequest.stream = {streamed}"))
                .against("[counts]\nsteps-by-accepted = [1, 0, 2]")
                .run()
                .await;
            let about = format!("{plugin} {route} {streamed}\n{}", ran.text);
            assert_eq!(ran.failures(), [], "{about}");
            let steps = ran.summary.tokens.speculation.clone().unwrap();
            assert_eq!((steps.steps, steps.answers), (15, 5), "{about}");
            assert_eq!(steps.steps_by_accepted, [5, 0, 10], "{about}");
            assert_eq!(steps.acceptance_length, Some(1.0 + 4.0 / 3.0), "{about}");
            let (each, answers) = ran.everywhere("acceptance-length");
            assert!((each - 7.0 / 3.0).abs() < 1e-6 && answers == 5, "{about}");
            for line in [
                "Acceptance length (tok/step):            2.33",
                "Steps by accepted tokens:                0: 5 (33.3 %), 1: 0 (0.0 %), 2: 10 (66.7 %)",
                "Steps that accepted at position:         1: 66.7 %, 2: 66.7 %",
            ] {
                assert!(ran.text.contains(line), "{line}: {about}");
            }
            let figure: result::figure::Figure = "tokens.acceptance-length".parse().unwrap();
            assert_eq!(figure.read(&ran.summary), steps.acceptance_length);
        }
    }
}

/// An engine that reports neither leaves no trace of them, in text or in records.
#[tokio::test(start_paused = true)]
async fn unreported_timings_are_not_shown() {
    let ran = base().run().await;
    for name in NAMES.into_iter().chain(["acceptance-length"]) {
        assert!(ran.summary.metric(name).is_none(), "{name}");
    }
    for word in ["Server's Own", "Acceptance", "Steps"] {
        assert!(!ran.text.contains(word), "{word}: {}", ran.text);
    }
    let json = serde_json::to_string(&ran.summary).unwrap();
    let records = serde_json::to_string(&ran.exchanges).unwrap();
    for word in ["server-queue", "first-token\":", "speculation", "acceptance", "timings"] {
        assert!(!json.contains(word) && !records.contains(word), "{word}: {json}");
    }
}

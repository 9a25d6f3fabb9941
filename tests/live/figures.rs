//! Snapshots against the plan and the summary, on virtual time.

use std::time::Duration;

use devices::{Device, Facts, Reading};
use model::arrival::{Due, Trace};
use model::units::Nanos;
use session::live::cells::{ERROR, Quantiles};
use session::live::exposition::{self, Identity};
use session::live::{Phase, Snapshot};

use super::exposition::{Page, Sample};
use crate::support::trial::{RunResult, Trial};

const SCENARIO: &str = r#"
target.model = "mock"
backend.plugin = "backends/vllm.wasm"
dataset.plugin = "datasets/random.wasm"
dataset.config = { like = "vllm", input-len = 40, output-len = 11 }
load = { requests = 40, arrival = "constant", rate = 10.0, warmup = 3 }
timeouts = { first-token = '1s', token-gap = '1s' }
"#;

/// Answers, failures of several classes, a cap, a warm-up.
fn eventful() -> Trial {
    Trial::new(SCENARIO)
        .with("load.max-in-flight = 2")
        .against("[[fault]]\nkind = 'http-error'\nstatus = 429\nevery = 5")
        .against("[[fault]]\nkind = 'cut'\nafter-tokens = 3\nevery = 7")
}

fn page(ran: &RunResult) -> Page {
    let identity = Identity::new("20260102-030405-trial", &ran.plan);
    Page::read(&exposition::page(&identity, ran.live.snapshot()))
}

#[track_caller]
fn assert_near(seen: Quantiles, ran: &RunResult, name: &str) {
    let metric = ran.metric(name);
    let near = |seen: f64, exact: f64, error: f64| (seen - exact).abs() <= error * exact + 1e-6;
    assert_eq!(seen.count, metric.count, "{name}");
    assert!(near(seen.mean_ms, metric.mean, 1e-9), "{name}: {seen:?} {metric:?}");
    assert!(near(seen.max_ms, metric.max, 1e-9), "{name}: {seen:?} {metric:?}");
    assert!(near(seen.p50_ms, metric.median, ERROR), "{name}: {seen:?} {metric:?}");
}

#[tokio::test(start_paused = true)]
async fn the_last_figures_of_onlookers_equal_the_summary() {
    let ran = eventful().run().await;
    let (seen, requests) = (ran.live.snapshot(), &ran.summary.requests);
    assert_eq!(seen.counts.phase, Phase::Over);
    assert_eq!((seen.counts.answered, seen.counts.over()), (requests.successful, requests.total));
    assert_eq!((seen.counts.sent, seen.counts.warmup), (requests.sent, requests.warmup));
    assert_eq!((seen.counts.due, seen.counts.waiting), (Some(requests.total), Some(0)));
    assert_eq!((seen.counts.given_out, seen.counts.in_flight), (requests.sent, 0));
    assert!(requests.failures.len() > 1, "{}", ran.text);
    let seen_by_class = seen.counts.failed.iter().map(|(class, seen)| (*class, seen.count));
    let failures_by_class =
        requests.failures.iter().map(|(class, failures)| (*class, failures.count));
    assert!(seen_by_class.eq(failures_by_class), "{seen:?}");
    let tokens = &ran.summary.tokens;
    assert_eq!(Some(seen.counts.output_tokens), tokens.output.total);
    assert_eq!(Some(seen.counts.input_tokens), tokens.input.total);
    assert!(
        seen.counts.tokens_seen > seen.counts.output_tokens,
        "tokens of replies that were cut too"
    );
    assert_near(seen.ttft.whole.unwrap(), &ran, "ttft");
    assert_near(seen.itl.whole.unwrap(), &ran, "itl");
    assert_near(seen.tpot.whole.unwrap(), &ran, "tpot");
    assert_near(seen.e2e.whole.unwrap(), &ran, "e2e");
    assert_eq!(seen.send_lag.whole.unwrap().count, ran.metric("send-lag").count);
    assert_eq!(seen.load, None, "no core runs by virtual time");
}

#[tokio::test(start_paused = true)]
async fn the_last_page_equals_the_summary() {
    let ran = eventful().run().await;
    let (page, requests) = (page(&ran), &ran.summary.requests);
    assert_eq!(page.label("run"), "20260102-030405-trial");
    assert_eq!((page.label("name"), page.label("model")), ("trial", "mock"));
    assert_eq!(page.value("runner_run_info", &[]), 1.0);
    assert_eq!(page.value("runner_phase", &[("phase", "over")]), 1.0);
    assert_eq!(page.value("runner_phase", &[("phase", "measuring")]), 0.0);
    let answered = page.value("runner_requests_total", &[("outcome", "ok")]);
    assert_eq!(answered, requests.successful as f64);
    let failed = [("outcome", "failed")];
    assert_eq!(page.series("runner_requests_total", &failed).count(), requests.failures.len());
    for (class, failures) in &requests.failures {
        let labels = [("outcome", "failed"), ("class", class.name())];
        let value = page.value("runner_requests_total", &labels);
        assert_eq!(value, failures.count as f64, "{}", class.name());
    }
    assert_eq!(page.value("runner_requests_due_total", &[]), requests.total as f64);
    let tokens = ran.summary.tokens.output.total.unwrap();
    assert_eq!(page.value("runner_output_tokens_total", &[]), tokens as f64);
    for (family, name) in [
        ("runner_time_to_first_token_seconds", "ttft"),
        ("runner_inter_token_latency_seconds", "itl"),
        ("runner_time_per_output_token_seconds", "tpot"),
        ("runner_end_to_end_latency_seconds", "e2e"),
        ("runner_send_lag_seconds", "send-lag"),
    ] {
        let metric = ran.metric(name);
        let part = |end: &str| page.value(&format!("{family}{end}"), &[]);
        assert_eq!(part("_count"), metric.count as f64, "{name}");
        let sum = metric.mean * metric.count as f64 / 1e3;
        assert!((part("_sum") - sum).abs() <= 1e-9 * sum + 1e-9, "{name}");
    }
    // Every first token comes after 120 ms: a bucket's bounds are on either side.
    let upto = |le| page.value("runner_time_to_first_token_seconds_bucket", &[("le", le)]);
    assert_eq!((upto("0.1"), upto("0.15")), (0.0, answered));
    assert_eq!(page.series("runner_client_cpu_ratio", &[]).count(), 0);
}

/// A value that a device does not report has no series, and a device that reports nothing has none.
#[tokio::test(start_paused = true)]
async fn devices_have_series_while_they_are_read() {
    let ran = Trial::new(SCENARIO).run().await;
    let none = page(&ran);
    assert_eq!(none.series("runner_device_power_watts", &[]).count(), 0);
    let device = |index, uuid: &str| Device {
        index: Some(index),
        uuid: Some(uuid.to_owned()),
        ..Device::default()
    };
    let facts = Facts {
        devices: vec![device(0, "GPU-a"), device(3, "GPU-b"), device(4, "GPU-c")],
        ..Facts::default()
    };
    let reading =
        |power_w, sm_clock_mhz| Some(Reading { power_w, sm_clock_mhz, ..Reading::default() });
    let sample = devices::Sample {
        devices: vec![reading(Some(350.5), None), reading(Some(90.0), Some(1_980.0)), None],
        ..devices::Sample::default()
    };
    let snapshot = Snapshot { devices: Some((facts, sample)), ..ran.live.snapshot() };
    let identity = Identity::new("20260102-030405-trial", &ran.plan);
    let page = Page::read(&exposition::page(&identity, snapshot));
    let power = |device| page.value("runner_device_power_watts", &[("device", device)]);
    assert_eq!((power("0"), power("3")), (350.5, 90.0));
    assert_eq!(page.series("runner_device_power_watts", &[]).count(), 2);
    let clock = [("device", "3"), ("uuid", "GPU-b")];
    assert_eq!(page.value("runner_device_sm_clock_hertz", &clock), 1.98e9);
    assert_eq!(page.series("runner_device_sm_clock_hertz", &[]).count(), 1);
    assert_eq!(page.series("runner_device_temperature_celsius", &[]).count(), 0);
}

#[tokio::test(start_paused = true)]
async fn looking_changes_nothing() {
    let unseen = eventful().run().await;
    let seen = eventful().looked_at(Duration::from_millis(100)).run().await;
    assert!(seen.looks.len() > 40, "{} looks", seen.looks.len());
    assert_eq!(seen.exchanges, unseen.exchanges);
    assert_eq!(seen.summary, unseen.summary);
    assert_eq!(seen.text, unseen.text);

    let mut before = Vec::new();
    for look in &seen.looks {
        let identity = Identity::new("r", &seen.plan);
        let page = Page::read(&exposition::page(&identity, look.clone()));
        let counters: Vec<_> = page.counters().cloned().collect();
        for old in &before {
            let old: &Sample = old;
            let is_same = |new: &&Sample| (&new.name, &new.labels) == (&old.name, &old.labels);
            let new = counters.iter().find(is_same);
            assert!(new.is_some_and(|new| new.value >= old.value), "{old:?} {new:?}");
        }
        before = counters;
    }
}

#[tokio::test(start_paused = true)]
async fn the_plan_decides_the_due_and_waiting_requests() {
    // A reply takes 320 ms, so one at a time serves a third of the due requests.
    let trial = Trial::new(SCENARIO).with("load.max-in-flight = 1");
    let ran = trial.looked_at(Duration::from_millis(70)).run().await;
    let due: Vec<Nanos> = (ran.plan.due_times(&Trace::default()))
        .map(|due| match due {
            Due::At(at) => at,
            Due::WhenFree => unreachable!("an open loop"),
        })
        .collect();
    let phases: Vec<Phase> = ran.looks.iter().map(|look| look.counts.phase).collect();
    assert!(phases.is_sorted(), "{phases:?}");
    assert!(phases.contains(&Phase::WarmUp) && phases.contains(&Phase::Measuring));
    let measuring = ran.looks.iter().filter(|look| look.counts.phase == Phase::Measuring);
    let mut longest = 0;
    for look in measuring {
        let elapsed = look.counts.elapsed.unwrap();
        let planned = due.iter().filter(|due| **due <= elapsed).count() as u64;
        assert_eq!(look.counts.due, Some(planned), "{elapsed:?}");
        assert_eq!(look.counts.waiting, Some(planned - look.counts.given_out));
        assert!(look.counts.in_flight <= 1 && look.counts.over() <= look.counts.given_out);
        longest = longest.max(planned - look.counts.given_out);
    }
    assert!(longest > 20, "{longest}");
}

#[tokio::test(start_paused = true)]
async fn a_closed_loop_has_nothing_due_beforehand() {
    let open = r#"arrival = "constant", rate = 10.0"#;
    let scenario = SCENARIO.replace(open, r#"arrival = "closed", concurrency = 4"#);
    let ran = Trial::new(&scenario).looked_at(Duration::from_millis(70)).run().await;
    let knows = |look: &Snapshot| look.counts.due.is_some() || look.counts.waiting.is_some();
    assert!(!ran.looks.iter().any(knows));
    assert!(ran.looks.iter().any(|look| look.counts.in_flight == 4));
    assert_eq!(page(&ran).series("runner_requests_due_total", &[]).count(), 0);
}

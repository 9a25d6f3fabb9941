//! The plan determines the load: its due times, its requests, and its possible splits.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use load::pace::Signal;
use load::thread_group::ThreadGroup;
use load::transport::Dial;
use mock::Engine;
use model::arrival::{Due, Trace};
use model::clock::Clock;
use model::connection::{Timestamps, Version};
use model::exchange::{Class, Exchange, Phase};
use model::target::Target;
use model::units::Nanos;
use result::finding::{Id, Severity};
use result::summary::Summary;
use runs::folder::{self, RunFolder};
use scenario::plan::Slice;
use session::assess::assess;
use session::gate::{Gate, Stage};
use session::live::Live;
use session::run::{Control, Setup, on_threads};

use crate::support::trial::{RunResult, Trial};

const SCENARIO: &str = r#"
target.model = "mock"
backend.plugin = "backends/vllm.wasm"
dataset.plugin = "datasets/random.wasm"
dataset.config = { like = "vllm", input-len = 40, output-len = 11, range-ratio = 0.5 }
load = { requests = 30, arrival = "poisson", rate = 40.0, warmup = 0, seed = 7 }
"#;

/// Without ids, which differ from process to process on purpose.
fn trial() -> Trial {
    Trial::new(SCENARIO).with("request.ids.request = 'off'")
}

/// The time when the plan's requests are due, from the start of the measurement.
fn planned() -> Vec<Nanos> {
    let due_times = trial().resolve().plan.due_times(&Trace::default());
    due_times
        .map(|due| match due {
            Due::At(at) => at,
            Due::WhenFree => panic!("an open loop"),
        })
        .collect()
}

fn due(exchanges: &[Exchange]) -> Vec<Nanos> {
    let start = exchanges.iter().map(|e| e.due).min().unwrap();
    exchanges.iter().map(|e| e.due.since(start)).collect()
}

fn digests(exchanges: &[Exchange]) -> Vec<(u64, String)> {
    exchanges.iter().map(|e| (e.index, e.sample.request_digest.clone())).collect()
}

/// (3) Due times are a function of the plan alone. They do not depend on the server's speed, its
/// concurrency or its failures, or on the requests that the client may have in flight. (7) Nor do
/// the requests.
#[tokio::test(start_paused = true)]
async fn due_times_and_requests_are_the_plans() {
    let quiet = trial().run().await;
    assert_eq!(due(&quiet.exchanges), planned());
    for other in [
        trial().against("max-concurrency = 1"),
        trial().against("[[fault]]\nkind = 'slow-headers'\nfor = '3s'"),
        trial().against("[[fault]]\nkind = 'hang-up'\nevery = 2"),
        trial().against("tokens-per-chunk = 11\nrole-chunk = 'at-once'"),
        trial().with("load.max-in-flight = 1"),
        trial().with("load.warmup = 4"),
    ] {
        let ran = other.run().await;
        let measured: Vec<Exchange> = ran.measured().cloned().collect();
        assert_eq!(due(&measured), planned());
        assert_eq!(digests(&measured), digests(&quiet.exchanges));
    }
}

/// 3 and 7 on threads, in real time and over TCP: the same requests at the same due times.
#[test]
fn threads_and_real_time_change_neither() {
    let resolved = trial().resolve();
    let (address, stop) = serve("ttft = '2ms'\nitl = '1ms'");
    let temporary = tempfile::tempdir().unwrap();
    let signal = Signal::for_thread();
    let control = Control {
        group: ThreadGroup::new(&signal),
        signal,
        live: Arc::new(Live::default()),
        gate: None,
    };
    let target = Target::parse(&format!("http://{address}")).unwrap();
    let connect =
        Dial::new(&[target], &[], Version::Http1, &Default::default(), Timestamps::Kernel).unwrap();
    let (plan, parts) = (&resolved.plan, &resolved.parts);
    let setup = Setup { plan, parts, folder: temporary.path(), control: &control };
    on_threads(setup, &connect).unwrap();
    drop(stop);
    let client = control.live.client.get().expect("it was watched");
    if cfg!(target_os = "linux") {
        for role in ["pace", "read", "decode", "record"] {
            assert!(client.busiest(role).is_some(), "no {role} in {client:?}");
        }
    }
    let exchanges = RunFolder::at(temporary.path()).exchanges().unwrap();
    assert_eq!(due(&exchanges), planned());
    assert!(exchanges.iter().all(Exchange::is_ok));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    let virtually = runtime.block_on(trial().run());
    assert_eq!(virtually.summary.client, None, "no core runs by virtual time");
    assert_eq!(digests(&exchanges), digests(&virtually.exchanges));
    for (real, exact) in exchanges.iter().zip(&virtually.exchanges) {
        assert_eq!(real.output, exact.output);
        assert!(real.sent.unwrap() >= real.due, "never early");
    }
}

/// A mock engine on a thread of its own, until the sender is dropped.
fn serve(script: &str) -> (std::net::SocketAddr, tokio::sync::oneshot::Sender<()>) {
    let script = script.parse().unwrap();
    let (ready, address) = std::sync::mpsc::channel();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let engine = Engine::new(script).unwrap();
            let listener = mock::listen(([127, 0, 0, 1], 0).into()).unwrap();
            ready.send(listener.local_addr().unwrap()).unwrap();
            let shutdown = async {
                let _ = stopped.await;
            };
            mock::serve(listener, engine, shutdown).await;
        });
    });
    (address.recv().unwrap(), stop)
}

/// (4) Latency counts from due and from sent; between them are queueing and send lag.
#[tokio::test(start_paused = true)]
async fn own_lateness_is_reported() {
    let ran = trial().with("load.max-in-flight = 3").run().await;
    let parts = |exchange: &Exchange| {
        let (due, sent) = (exchange.due, exchange.sent.unwrap());
        let granted = exchange.granted.unwrap();
        assert!(due <= granted && granted <= sent);
        sent.since(due).as_millis_f64()
    };
    let late: Vec<f64> = ran.measured().map(parts).collect();
    let mean = late.iter().sum::<f64>() / late.len() as f64;
    assert!(mean > 100.0, "the cap held requests back");
    for (from_due, from_sent) in [("ttft-from-due", "ttft"), ("e2e-from-due", "e2e")] {
        let apart = ran.metric(from_due).mean - ran.metric(from_sent).mean;
        assert!((apart - mean).abs() < 1e-6, "{from_due}");
    }
    assert!((ran.metric("queue").mean + ran.metric("send-lag").mean - mean).abs() < 1e-6);

    let on_time = trial().run().await;
    let finding = |summary: &Summary| {
        let mut findings = summary.findings.iter();
        findings.find(|finding| finding.id == Id::SendLag).cloned()
    };
    assert_eq!(finding(&on_time.summary), None);
    // The same run, with every request sent half a second late.
    let mut late = on_time.exchanges.clone();
    for exchange in &mut late {
        let by = Nanos(500_000_000);
        exchange.sent = exchange.sent.map(|at| at + by);
        exchange.ended = exchange.ended.map(|at| at + by);
        exchange.events.at.iter_mut().for_each(|at| *at = *at + by);
    }
    let summary = Summary::new(&on_time.facts, &late);
    let found = finding(&summary).expect("half a second is a finding");
    assert!(found.severity > Severity::Note, "{found:?}");
    // The engine's work is the same; only the confidence depends on its times.
    let figures = |summary: &Summary| {
        let mut ttft = summary.metric("ttft").unwrap().clone();
        ttft.confidence = None;
        ttft
    };
    assert_eq!(figures(&summary), figures(&on_time.summary));
}

/// (5) Load that could not be offered is recorded: whatever is due has a record, sent or not.
#[tokio::test(start_paused = true)]
async fn nothing_due_is_without_a_record() {
    let ran = trial().with("load.duration = '2s'\nload.max-in-flight = 2").run().await;
    let arrival = &ran.plan.load.arrival;
    let due_within = arrival
        .due_times(7, None, &Trace::default())
        .take_while(|due| matches!(due, Due::At(at) if at.0 < 2_000_000_000))
        .count();
    assert_eq!(ran.measured().count(), due_within);
    let indexes: Vec<u64> = ran.measured().map(|e| e.index).collect();
    assert_eq!(indexes, (0..due_within as u64).collect::<Vec<_>>());
    let not_sent = ran.summary.requests.failures[&Class::NotSent].count;
    assert_eq!(not_sent as usize + ran.truths.len(), due_within);
    assert!(not_sent > 0);
}

/// (5) No hidden retries: the server sees every request once, answered or not.
#[tokio::test(start_paused = true)]
async fn nothing_is_tried_twice() {
    for fault in ["kind = 'hang-up'", "kind = 'http-error'\nstatus = 503"] {
        let fault = format!("[[fault]]\n{fault}\nevery = 3");
        let ran = trial().against(&fault).run().await;
        assert_eq!(ran.truths.len(), 30);
        assert_eq!(ran.summary.requests.failed, 10);
        assert_eq!(ran.summary.requests.sent, 30);
    }
}

/// (13) Slices have their own samples and due times; together they are the plan and its summary.
#[tokio::test(start_paused = true)]
async fn slices_make_the_whole() {
    let whole = trial().run().await;
    let mut merged: Vec<Exchange> = Vec::new();
    for index in 0..3 {
        let slice = trial().slice(index, 3).run().await;
        let expected = (0..30).filter(|number| number % 3 == u64::from(index));
        let held: Vec<u64> = slice.measured().map(|e| e.index).collect();
        assert_eq!(held, expected.collect::<Vec<_>>());
        merged.extend(on_the_clock_of(&whole, slice));
    }
    merged.sort_by_key(|exchange| exchange.index);
    assert_eq!(digests(&merged), digests(&whole.exchanges));
    assert_eq!(due(&merged), planned());
    assert_eq!(merged, whole.exchanges);

    let resolved = trial().resolve();
    let assessment = assess(&merged, &resolved.tokenizer, &resolved.scorers);
    let facts = folder::facts(&whole.plan, assessment, false);
    merged.reverse();
    assert_eq!(Summary::new(&facts, &merged), whole.summary);
}

/// (13) Slices that begin at one instant make the records of the whole, to the nanosecond.
#[tokio::test(start_paused = true)]
async fn slices_that_begin_together_are_the_whole_as_they_are() {
    let whole = trial().with("load.warmup = 2").run().await;
    let began = Clock::start();
    let gates: Vec<Gate> = (0..4).map(|_| Gate::new(began)).collect();
    let slice = |index: usize| {
        let slice = trial().with("load.warmup = 2").slice(index as u32, 4);
        let gate = gates[index].clone();
        async move { slice.behind(&gate).run().await }
    };
    let starter = async {
        for gate in &gates {
            let mut stages = gate.stages();
            drop(stages.wait_for(|stage| *stage == Stage::Ready).await.unwrap());
        }
        let start = whole.start();
        assert!(began.now() <= start, "warming up takes one reply, or two");
        gates.iter().for_each(|gate| gate.start_at(start));
    };
    let (first, second, third, fourth, ()) =
        tokio::join!(slice(0), slice(1), slice(2), slice(3), starter);
    let slices = [first, second, third, fourth];
    assert_eq!(slices.each_ref().map(|slice| slice.warmup().count()), [1, 1, 0, 0]);
    let mut merged: Vec<Exchange> =
        (slices.iter()).flat_map(|slice| slice.measured().cloned()).collect();
    merged.sort_by_key(|exchange| exchange.index);
    let mut measured: Vec<Exchange> = whole.measured().cloned().collect();
    // Each has connections of its own; the warm-up used others.
    for exchange in merged.iter_mut().chain(&mut measured) {
        assert!(exchange.connection.take().is_some());
    }
    assert_eq!(merged, measured);
    let resolved = trial().resolve();
    let assessment = assess(&merged, &resolved.tokenizer, &resolved.scorers);
    let facts = folder::facts(&whole.plan, assessment, false);
    let alone = Summary::new(&facts, &measured);
    merged.reverse();
    assert_eq!(Summary::new(&facts, &merged), alone);
    assert_eq!(alone.requests.successful, 30);
}

/// A slice's records by one clock for all: the plan has the due time of its first request.
fn on_the_clock_of(whole: &RunResult, slice: RunResult) -> Vec<Exchange> {
    let first = slice.measured().next().unwrap();
    let began = first.due.0 - planned()[first.index as usize].0;
    let whole_began = whole.start().0;
    let moved = |at: Nanos| Nanos(at.0 - began + whole_began);
    let mut exchanges = slice.exchanges;
    for exchange in &mut exchanges {
        exchange.due = moved(exchange.due);
        exchange.granted = exchange.granted.map(moved);
        exchange.sent = exchange.sent.map(moved);
        exchange.headers = exchange.headers.map(moved);
        exchange.ended = exchange.ended.map(moved);
        exchange.events.at.iter_mut().for_each(|at| *at = moved(*at));
    }
    exchanges
}

/// (13) Whatever the arrival, the slices' due times together equal the due times of the whole.
#[test]
fn slices_share_the_due_times() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let lines: String = (0..30).map(|i| format!("{}\n", i * i % 17)).collect();
    std::fs::write(file.path(), lines).unwrap();
    let trace = format!("[load.trace]\nfile = '{}'", file.path().display());
    for over in [
        "load.arrival = 'constant'",
        "load.burstiness = 0.5",
        "load.burstiness = 3.0\nload.normalise = true",
        "load.normalise = true",
        "[load]\narrival = 'constant'\nramp = { from = 1.0, to = 9.0 }",
        "[load]\narrival = 'poisson'\nstages = [{ rate = 3.0, for = '5s' }, { to = 40.0, for = '5s' }]",
        &trace,
    ] {
        let resolved = trial().with(over).resolve();
        let mut plan = resolved.plan;
        let mut due_times = |slice| -> Vec<(u64, Due)> {
            plan.slice = slice;
            let held = (0..).filter(|index| plan.holds(*index));
            held.zip(plan.due_times(&resolved.parts.trace)).collect()
        };
        let whole = due_times(None);
        assert_eq!(whole.len(), 30, "{over}");
        let mut merged: Vec<(u64, Due)> = Vec::new();
        for index in 0..4 {
            merged.extend(due_times(Some(Slice { index, of: 4 })));
        }
        merged.sort_by_key(|(index, _)| *index);
        assert_eq!(merged, whole, "{over}");
    }
}

/// (13) The same if the cap or the users of a closed loop are divided.
#[test]
fn slices_share_the_places() {
    for over in ["load.max-in-flight = 7", "load.concurrency = 7"] {
        let plan = |index| trial().with(over).slice(index, 3).resolve().plan;
        let places: Vec<_> = (0..3).map(|index| plan(index).slots()).collect();
        assert_eq!(places, [Some(3), Some(2), Some(2)]);
    }
}

/// (13) Users or slots that do not divide by the slices: the slices send exactly the requests of
/// the whole, at the same instants, if replies take equally long. A slice without a place takes
/// part and sends nothing.
#[tokio::test(start_paused = true)]
async fn any_number_of_slices_sends_the_whole_plan() {
    for (over, warmup, of, idle) in [
        ("arrival = 'closed'\nconcurrency = 7", 0, 4, 0),
        ("arrival = 'closed'\nconcurrency = 1", 0, 2, 1),
        ("arrival = 'closed'\nconcurrency = 3", 2, 4, 1),
        ("arrival = 'closed'\nconcurrency = 3", 9, 5, 2),
        ("arrival = 'inf'\nmax-in-flight = 7", 0, 4, 0),
        ("arrival = 'inf'\nmax-in-flight = 1", 1, 3, 2),
        ("arrival = 'poisson'\nrate = 40.0\nmax-in-flight = 7", 0, 4, 0),
        ("arrival = 'constant'\nrate = 40.0", 0, 4, 0),
    ] {
        let trial = || {
            let load = format!("[load]\nrequests = 30\nwarmup = {warmup}\nseed = 7\n{over}");
            Trial::new(&format!("{ALIKE}{load}"))
        };
        let whole = trial().run().await;
        let mut together = Vec::new();
        let (mut warm, mut nothing) = (0, 0);
        for index in 0..of {
            let slice = trial().slice(index, of).run().await;
            warm += slice.warmup().count();
            nothing += usize::from(slice.exchanges.is_empty());
            together.extend(from_the_start(&slice));
        }
        assert_eq!((warm, nothing), (whole.warmup().count(), idle), "{over}");
        together.sort_unstable();
        assert_eq!(together, from_the_start(&whole), "{over}");
    }
}

/// (13) The same by time, where nobody knows the number of requests beforehand.
#[tokio::test(start_paused = true)]
async fn slices_by_time_ask_as_much_as_the_whole() {
    for (users, of) in [(7, 4), (1, 3), (5, 5)] {
        let trial = || {
            let load = format!(
                "[load]\narrival = 'closed'\nconcurrency = {users}\nduration = '2s'\nwarmup = 0\n"
            );
            Trial::new(&format!("{ALIKE}{load}"))
        };
        let whole = trial().run().await;
        let mut together = Vec::new();
        for index in 0..of {
            together.extend(from_the_start(&trial().slice(index, of).run().await));
        }
        together.sort_unstable();
        assert_eq!(together, from_the_start(&whole), "{users} users");
    }
}

/// Requests whose replies take equally long.
const ALIKE: &str = r#"
target.model = "mock"
backend.plugin = "backends/vllm.wasm"
dataset.plugin = "datasets/random.wasm"
dataset.config = { like = "vllm", input-len = 40, output-len = 11 }
"#;

/// The measured requests by number: due, let go and sent since the measurement began.
fn from_the_start(ran: &RunResult) -> Vec<(u64, Nanos, Option<Nanos>, Option<Nanos>)> {
    let first = ran.measured().map(|exchange| exchange.due).min();
    let start = first.unwrap_or_default().since(ran.plan.first_due());
    let since = |at: Nanos| at.since(start);
    let each =
        ran.measured().map(|e| (e.index, since(e.due), e.granted.map(since), e.sent.map(since)));
    let mut each: Vec<_> = each.collect();
    each.sort_unstable();
    each
}

/// (7) The seed decides, and nothing else.
#[tokio::test(start_paused = true)]
async fn another_seed_is_another_load() {
    let (once, again) = (trial().run().await, trial().run().await);
    assert_eq!(once.exchanges, again.exchanges);
    assert_eq!(once.text, again.text);
    let other = trial().with("load.seed = 8").run().await;
    assert_ne!(due(&other.exchanges), due(&once.exchanges));
    let known: BTreeMap<_, _> = digests(&once.exchanges).into_iter().map(|(i, d)| (d, i)).collect();
    let same = digests(&other.exchanges).into_iter().filter(|(_, d)| known.contains_key(d));
    assert_eq!(same.count(), 0);
    assert!(once.exchanges.iter().all(|e| e.phase == Phase::Measure));
    assert!(Path::new(once.folder()).join("plan.json").exists());
}

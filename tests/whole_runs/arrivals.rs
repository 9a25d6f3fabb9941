//! Arrivals whose rate is not constant: bursts, ramps, stages, traces, and users who think.

use model::arrival::{Arrival, Trace};
use model::units::Nanos;
use result::finding::Id;

use super::{BASE, assert_close, base, has_finding};
use crate::support::trial::{RunResult, Trial};

/// Nanoseconds from the start of the measurement to when each request was due.
fn due(ran: &RunResult) -> Vec<u64> {
    let start = ran.start();
    ran.measured().map(|e| e.due.since(start).0).collect()
}

/// [`base`] without a number of requests.
fn open_ended() -> Trial {
    Trial::new(&BASE.replace("requests = 5\n", ""))
}

fn sent(ran: &RunResult) -> Vec<f64> {
    ran.since_start(|exchange| exchange.sent)
}

/// Timers of the runtime tick in milliseconds: a request is sent at the next whole one.
fn assert_sent_when_due(ran: &RunResult) {
    for exchange in ran.measured() {
        let tick = exchange.due.0.div_ceil(1_000_000) * 1_000_000;
        assert_eq!(exchange.sent, Some(Nanos(tick)));
    }
}

/// vLLM's schedule for `--burstiness 0.5 --request-rate 10 --seed 0` of eight requests; the numbers
/// are NumPy's, see `host/base/model/src/arrival/tests.rs`. The measurement begins a gap before
/// the first is due.
#[tokio::test(start_paused = true)]
async fn bursts() {
    let over = "load.burstiness = 0.5\nload.normalise = true\nload.seed = 0\nload.requests = 8";
    let ran = base().with(over).run().await;
    let wanted = [
        107_288_676,
        240_788_741,
        304_132_213,
        371_710_448,
        682_142_847,
        798_074_849,
        799_855_732,
        800_000_000,
    ];
    assert_eq!(due(&ran), wanted);
    assert_sent_when_due(&ran);
    assert_eq!(ran.everywhere("ttft").0, 120.0);
    assert_eq!(ran.summary.run.request_rate, Some(10.0));
    assert_eq!(ran.summary.run.arrival, "gamma of burstiness 0.5, 10/s, normalised");
    assert_close(ran.summary.throughput.duration_s, 0.8 + 0.32);
}

/// From 0 to 8/s in a second is 4t² requests until t; then 8/s.
#[tokio::test(start_paused = true)]
async fn a_ramp() {
    let over = "load.arrival = 'constant'\nload.requests = 7\nload.ramp = { from = 0.0, to = 8.0, over = '1s' }";
    let ran = base().with(over).run().await;
    let wanted =
        [0, 500_000_000, 707_106_781, 866_025_404, 1_000_000_000, 1_125_000_000, 1_250_000_000];
    assert_eq!(due(&ran), wanted);
    assert_sent_when_due(&ran);
    assert_eq!(ran.summary.run.request_rate, Some(4.0));
    assert!(ran.text.contains("constant, ramp from 0/s to 8/s in 1s"), "{}", ran.text);
}

/// Without a time, the ramp is over with the requests: 18 at 2/s to 16/s take two seconds.
#[tokio::test(start_paused = true)]
async fn a_ramp_over_the_whole_run() {
    let over =
        "load.arrival = 'constant'\nload.requests = 18\nload.ramp = { from = 2.0, to = 16.0 }";
    let ran = base().with(over).run().await;
    let Arrival::Ramp { ramp, .. } = ran.plan.load.arrival else {
        panic!("{}", ran.plan.load.arrival)
    };
    assert_eq!(ramp.length, Nanos(2_000_000_000));
    // 2t + 7t²/2 is 17 where t is (√242 − 2) / 7.
    let last = *due(&ran).last().unwrap();
    assert_eq!(last, 1_936_621_312);
    assert_eq!(ran.summary.requests.successful, 18);
    let over =
        "load.arrival = 'constant'\nload.duration = '2s'\nload.ramp = { from = 2.0, to = 16.0 }";
    let timed = base().with(over).run().await;
    assert_eq!(due(&timed), due(&ran), "and with the duration");
}

/// 4/s for half a second, nothing for a second, up to 4/s in another: 2, 0 and 2 requests. The
/// scenario gives no number of requests.
#[tokio::test(start_paused = true)]
async fn stages() {
    let over = "[load]
        arrival = 'constant'
        stages = [
            { rate = 4.0, for = '500ms' },
            { rate = 0.0, for = '1s' },
            { to = 4.0, for = '1s' },
        ]";
    let ran = base().with(over).with("load.duration = '2s'").run().await;
    assert_eq!(due(&ran), [0, 250_000_000, 1_500_000_000]);
    let ran = open_ended().with(over).run().await;
    assert_eq!(due(&ran), [0, 250_000_000, 1_500_000_000, 2_207_106_781]);
    assert_sent_when_due(&ran);
    assert_eq!(ran.summary.run.planned, None);
    assert_eq!(
        ran.summary.run.arrival,
        "constant, 3 stages: 4/s for 500ms; 0/s for 1s; from 0/s to 4/s in 1s"
    );
    assert_close(ran.summary.throughput.duration_s, 2.208 + 0.32);
}

#[tokio::test(start_paused = true)]
async fn poisson_stages_are_the_plans() {
    let over = "[load]
        arrival = 'poisson'
        seed = 3
        stages = [{ rate = 20.0, for = '1s' }, { from = 40.0, to = 5.0, shape = 'exponential', for = '2s' }]";
    let trial = open_ended().with(over);
    let plan = trial.resolve().plan;
    let ran = trial.run().await;
    let planned: Vec<u64> = plan
        .due_times(&Trace::default())
        .map(|due| match due {
            model::arrival::Due::At(at) => at.0,
            due => panic!("{due:?}"),
        })
        .collect();
    assert!(planned.len() > 20, "20 and some 34 are to be expected");
    assert_eq!(due(&ran), planned);
    assert_sent_when_due(&ran);
}

/// A trace of four instants, out of order, twice as fast; the scenario has ten requests.
#[tokio::test(start_paused = true)]
async fn a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mooncake.jsonl");
    let lines = "{\"timestamp\": 27000, \"input_length\": 6955}\n\
                 {\"timestamp\": 27000, \"input_length\": 6472}\n\
                 {\"timestamp\": 28300, \"input_length\": 12}\n\
                 {\"timestamp\": 27500, \"input_length\": 100}\n";
    std::fs::write(&path, lines).unwrap();
    let over =
        format!("load.requests = 10\n[load.trace]\nfile = '{}'\ntime-scale = 2.0", path.display());
    let ran = base().with(&over).run().await;
    assert_eq!(sent(&ran), [0.0, 0.0, 250.0, 650.0]);
    assert_eq!(due(&ran), [0, 0, 250_000_000, 650_000_000]);
    assert_eq!(ran.summary.requests.successful, 4);
    assert_eq!(ran.summary.run.planned, Some(4), "as many as there are");
    assert_eq!(ran.summary.run.arrival, "trace mooncake.jsonl, 4 timestamps, 2 times as fast");
    let Arrival::Trace { file, .. } = &ran.plan.load.arrival else {
        panic!("{}", ran.plan.load.arrival)
    };
    assert_eq!(file.bytes, lines.len() as u64);
    assert_eq!(file.digest, model::hex(&<sha2::Sha256 as sha2::Digest>::digest(lines)));
    let seconds = format!("[load.trace]\nfile = '{}'", path.display());
    std::fs::write(&path, "0.5\n0.75\n").unwrap();
    let ran = open_ended().with(&seconds).run().await;
    assert_eq!(sent(&ran), [0.0, 250.0]);
}

/// Two users who think for 180 ms after answers of 320 ms: each sends every half second.
#[tokio::test(start_paused = true)]
async fn users_who_think() {
    let ran = base().with("load.concurrency = 2\nload.think-time = '180ms'").run().await;
    assert_eq!(sent(&ran), [0.0, 0.0, 500.0, 500.0, 1000.0]);
    assert_eq!(ran.since_start(|e| Some(e.due)), sent(&ran));
    assert!(ran.measured().all(|exchange| exchange.granted.is_none()));
    assert_eq!(ran.everywhere("e2e-from-due").0, 320.0);
    assert_eq!(ran.summary.concurrency.peak, Some(2));
    assert_close(ran.summary.concurrency.mean, 5.0 * 0.32 / 1.32);
    assert_eq!(ran.summary.run.arrival, "closed loop of 2, thinking 180ms");
    let held = base()
        .with("load.concurrency = 2\nload.think-time = '180ms'\nload.duration = '600ms'")
        .run()
        .await;
    assert_eq!(sent(&held), [0.0, 0.0, 500.0, 500.0]);
}

/// Random, but determined by the seed: the same pauses again, others with another seed.
#[tokio::test(start_paused = true)]
async fn users_who_think_at_random() {
    let over = "load.concurrency = 2\nload.think-time = '180ms'\nload.think-spread = 'exponential'";
    let once = base().with(over).run().await;
    let again = base().with(over).run().await;
    assert_eq!(once.exchanges, again.exchanges);
    let other = base().with(over).with("load.seed = 2").run().await;
    assert_ne!(due(&other), due(&once));
    let Arrival::Closed { think: Some(think), .. } = once.plan.load.arrival else {
        panic!("{}", once.plan.load.arrival)
    };
    let mut second = [0, 1].map(|user| 320_000_000 + think.pause(1, user, 1).0);
    second.sort_unstable();
    assert_eq!(due(&once)[2], second[0]);
    assert_eq!(sent(&once)[2], second[0].div_ceil(1_000_000) as f64);
}

/// The cap holds for every open arrival, and load that found no slot is on record.
#[tokio::test(start_paused = true)]
async fn a_cap_holds_a_trace_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("burst.txt");
    std::fs::write(&path, "0\n0\n0\n1\n").unwrap();
    let over = format!(
        "load.max-in-flight = 1\nload.duration = '500ms'\n[load.trace]\nfile = '{}'",
        path.display()
    );
    let ran = base().with(&over).run().await;
    assert_eq!(due(&ran), [0, 0, 0]);
    assert_eq!(ran.summary.requests.successful, 2);
    assert!(has_finding(&ran, Id::NotSent));
}

/// A dataset that has its samples due at these milliseconds, and this many requests.
fn planned(arrivals: &[u64], requests: u64) -> Trial {
    let plugin = crate::hostile_guests::fixture::components().join("guests/hostile-dataset.wasm");
    Trial::new(&format!(
        "[target]\nmodel = 'mock'\n[backend]\nplugin = 'backends/vllm.wasm'\n\
         [dataset]\nplugin = '{}'\nconfig.arrivals = {arrivals:?}\n\
         [load]\narrival = 'dataset'\nrequests = {requests}\nwarmup = 0\n",
        plugin.display()
    ))
}

fn milliseconds(ran: &RunResult) -> Vec<u64> {
    due(ran).iter().map(|due| due / 1_000_000).collect()
}

#[tokio::test(start_paused = true)]
async fn a_dataset_plans_its_arrivals() {
    let arrivals = [50, 50, 300, 1000];
    let ran = planned(&arrivals, 4).run().await;
    assert_eq!(milliseconds(&ran), arrivals);
    assert_sent_when_due(&ran);
    assert_eq!(ran.summary.run.arrival, "as the dataset has it, 4 samples");
    assert_eq!(ran.summary.run.request_rate, Some(4.0));

    let ran = planned(&arrivals, 4).with("load.trace.time-scale = 2.0").run().await;
    assert_eq!(milliseconds(&ran), [25, 25, 150, 500]);

    let ran = planned(&arrivals, 4).with("load.duration = '500ms'").run().await;
    assert_eq!(milliseconds(&ran), [50, 50, 300]);

    // A sample for the warm-up takes no due time with it: here it is the first of the sequence.
    let ran = planned(&arrivals, 3).with("load.warmup = 1").run().await;
    assert_eq!(milliseconds(&ran), [50, 300, 1000]);

    let mut gaps = Vec::new();
    for index in 0..2 {
        let ran = planned(&arrivals, 4).slice(index, 2).run().await;
        let due = milliseconds(&ran);
        gaps.push(due[1] - due[0]);
    }
    assert_eq!(gaps, [250, 950], "each slice keeps the due times of its requests");
}

#[test]
fn arrivals_that_a_dataset_does_not_plan_are_its_fault() {
    for (arrivals, expected) in [
        (
            vec![0, 100],
            "sample `sample-2` has no arrival time, but `arrival` = \"dataset\" takes due times from the dataset",
        ),
        (
            vec![0, 100, 99],
            "sample `sample-2` is due after 0.099 s, earlier than the sample before it, which is due after 0.1 s",
        ),
    ] {
        let trial = planned(&arrivals, 3);
        let panic = std::panic::catch_unwind(|| trial.resolve()).err().unwrap();
        let faults = panic.downcast_ref::<String>().unwrap();
        let expected = expected.replace('"', "\\\"");
        assert!(faults.contains("hostile-dataset.wasm"), "{faults}");
        assert!(faults.contains(&expected), "{faults}");
    }
}

//! Any number, in any key or flag, gives an error that names the possible range, or a plan that
//! costs no more than its requests. There is no panic, no number that changes on its way, no memory
//! or time by a number alone.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use load::pace::{Newsfeed, Next, Pacing, Signal, Thinking, pace};
use model::arrival::{Arrival, Due};
use model::clock::Clock;
use model::units::Nanos;
use scenario::plan::{Amount, Plan};
use scenario::{Key, Scenario, keys};
use session::{Source, resolve};

/// Numbers that nobody means, with units and without, between bars.
const ABSURD: &str = "\
    0|1|-1|1000000000|4294967295|4294967296|9223372036854775807|18446744073709551615|\
    18446744073709551616|340282366920938463463374607431768211456|1e15|1e300|1e-300|-1e300|0.0|\
    -0.0|inf|-inf|nan|0s|1ns|-1s|9999999999h|18446744073709551615h|1e300s|0B|\
    18446744073709551615B|18446744073709551615GiB|[]|[0, 1e300, nan]|[1e-300]";

/// A year, the longest that a run may take.
const YEAR: Nanos = Nanos(365 * 24 * 3_600 * 1_000_000_000);

/// The text of no mistakes.
const NOTHING: &str = "Faults { scenario: [], plugins: [] }";

const SOME: usize = 1_000;

const COUNTED: usize = 10_000;

/// A run that says little.
const PLAIN: [&str; 5] = [
    "target.base-url=http://127.0.0.1:1",
    "target.model=m",
    "backend.plugin=backends/vllm.wasm",
    "dataset.plugin=datasets/random.wasm",
    "dataset.config.input-len=4",
];

/// True if a key takes numbers, lengths of time or sizes.
fn is_number(key: &Key) -> bool {
    let takes = |text: &str| key.check(text).is_ok();
    !key.switch && key.words.is_empty() && !takes("no number") && !takes("{\"a\": 1}")
}

/// The ways in which a key with this value means something.
fn written(path: &str, value: &str, times: &str) -> Vec<Vec<String>> {
    let poisson = "load.arrival=poisson";
    let one = format!("{path}={value}");
    let with = |others: &[&str]| -> Vec<String> {
        others.iter().map(|other| (*other).to_owned()).chain([one.clone()]).collect()
    };
    match path {
        "load.rate" => ["constant", "poisson", "gamma"]
            .iter()
            .flat_map(|arrival| {
                let arrival = format!("load.arrival={arrival}");
                [
                    with(&[&arrival]),
                    with(&[&arrival, "load.duration=1s"]),
                    with(&[&arrival, "load.requests=1000000000"]),
                ]
            })
            .chain([with(&[poisson, "load.normalise=true"])])
            .collect(),
        "load.requests" => vec![
            with(&[]),
            with(&[poisson, "load.rate=1000000"]),
            with(&[poisson, "load.rate=1000000", "load.normalise=true"]),
            with(&["load.concurrency=1000000"]),
            with(&["load.max-in-flight=1000000"]),
        ],
        "load.duration" => vec![
            with(&["load.arrival=constant", "load.rate=1000000"]),
            with(&["load.arrival=gamma", "load.rate=0.000001"]),
            with(&["load.concurrency=1000000"]),
        ],
        "load.burstiness" => vec![with(&["load.rate=2"]), with(&["load.rate=1000000"])],
        "load.think-time" => vec![with(&["load.concurrency=3", "load.think-spread=exponential"])],
        "load.trace.time-scale" => vec![with(&[&format!("load.trace.file={times}")])],
        path if path.starts_with("load.ramp.") => ["linear", "exponential"]
            .iter()
            .flat_map(|shape| {
                let shape = format!("load.ramp.shape={shape}");
                let ramp = [poisson, &shape, "load.ramp.from=1", "load.ramp.to=1000000"];
                [with(&ramp), with(&[&ramp[..], &["load.duration=8760h"]].concat())]
            })
            .collect(),
        path if path.starts_with("load.stages[].") => {
            let key = path.rsplit('.').next().unwrap();
            let quoted = if value.starts_with('[') || value.parse::<f64>().is_ok() {
                value.to_owned()
            } else {
                format!("'{value}'")
            };
            let stage = match key {
                "rate" => format!("{{rate={quoted}, for='9s'}}"),
                "from" => format!("{{from={quoted}, to=2, for='9s'}}"),
                "to" => format!("{{from=1, to={quoted}, for='9s'}}"),
                _ => format!("{{rate=2, for={quoted}}}"),
            };
            vec![vec![poisson.to_owned(), format!("load.stages=[{stage}, {stage}]")]]
        }
        _ => vec![with(&[])],
    }
}

/// Returns the plan of these numbers, or the messages about them.
fn plan_of(scenario: Scenario) -> Result<(Plan, model::arrival::Trace), String> {
    let source = Source {
        scenario,
        name: "numbers".to_owned(),
        shipped: shipped::PLUGINS,
        ..Source::default()
    };
    let resolved = resolve(&source).map_err(|faults| format!("{faults:?}"))?;
    Ok((resolved.draft, resolved.parts.trace))
}

/// Checks the cost of a plan before and beside its requests.
async fn is_bounded(what: &str, plan: &Plan, trace: &model::arrival::Trace) {
    let arrival = &plan.load.arrival;
    assert!(plan.slots().is_none_or(|slots| slots <= 1_000_000), "{what}");
    assert!(plan.load.warmup <= 100_000, "{what}");
    assert!(plan.requests().is_none_or(|requests| requests <= 1_000_000_000), "{what}");
    if let Amount::Duration(duration) = plan.load.amount {
        assert!(duration <= YEAR, "{what}: {duration:?}");
        let rate = arrival.peak_rate().unwrap_or(0.0);
        let most = rate * duration.as_secs_f64();
        assert!(matches!(arrival, Arrival::Stages { .. }) || most <= 1e9, "{what}: {most}");
    }
    assert!(plan.first_due() <= YEAR, "{what}");
    let mut before = Nanos::ZERO;
    for due in plan.due_times(trace).take(SOME) {
        if let Due::At(at) = due {
            assert!(at >= before && at < Nanos(u64::MAX), "{what}: {before:?} {at:?}");
            before = at;
        }
    }
    // The pacer's preparations: the signal stops it before its first request.
    let signal = Signal::for_task();
    signal.stop();
    let clock = Clock::start();
    let thinking = match arrival {
        Arrival::Closed { think, .. } => {
            think.map(|think| Thinking { think, seed: plan.load.seed, first: 0, step: 1 })
        }
        _ => None,
    };
    let pacing = Pacing {
        origin: clock.now(),
        duration: match plan.load.amount {
            Amount::Duration(duration) => Some(duration),
            Amount::Requests(_) | Amount::Sessions(_) => None,
        },
        slots: plan.slots(),
        by_session: true,
        capped: false,
        thinking,
        lanes: None,
    };
    let drawn = AtomicUsize::new(0);
    let next = || {
        drawn.fetch_add(1, Ordering::Relaxed);
        Next::<()>::None
    };
    // The pacer counts all requests that were due when it was stopped, which may be a billion.
    let due_times = plan.due_times(trace).take(COUNTED);
    pace(&clock, &signal, &pacing, due_times, &mut Newsfeed::none(), |_| next(), |(), _| 0.into())
        .await;
    assert!(drawn.load(Ordering::Relaxed) <= 1, "{what}");
    if let Some(thinking) = thinking {
        let _ = thinking.think.pause(plan.load.seed, u32::MAX, u32::MAX);
    }
    // The plan's own text, and its stored form.
    let text = serde_json::to_string(plan).unwrap();
    let read: Plan = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(&read, plan, "{what}");
    assert!(!arrival.to_string().is_empty());
}

#[tokio::test(start_paused = true)]
async fn every_key_and_flag_stands_every_number() {
    let folder = tempfile::tempdir().unwrap();
    let times = folder.path().join("times");
    std::fs::write(&times, "0\n0.5\n86400\n").unwrap();
    let times = times.to_str().unwrap();
    let mut driven = BTreeSet::new();
    let mut accepted = 0;
    for key in keys().iter().filter(|key| is_number(key)) {
        driven.insert(key.path.as_str());
        for value in ABSURD.split('|') {
            for way in written(&key.path, value, times) {
                let texts: Vec<String> =
                    PLAIN.iter().map(|text| (*text).to_owned()).chain(way.clone()).collect();
                let (scenario, problems) = Scenario::assigned(&texts);
                if !problems.is_empty() {
                    continue;
                }
                let what = way.join(" ");
                match plan_of(scenario) {
                    Ok((plan, trace)) => {
                        accepted += 1;
                        is_bounded(&what, &plan, &trace).await;
                    }
                    Err(faults) => assert_ne!(faults, NOTHING, "{what}"),
                }
            }
            by_flag(key, value, times).await;
        }
    }
    for path in ["load.requests", "load.stages[].for", "sandbox.memory", "report.percentiles"] {
        assert!(driven.contains(path), "{path} of {driven:?}");
    }
    assert!(driven.len() > 40 && accepted > 100, "{} {accepted}", driven.len());
}

/// The same by the key's flag.
async fn by_flag(key: &Key, value: &str, times: &str) {
    let Some(flag) = &key.flag else { return };
    let text = flag.spelled(value);
    if key.check(&text).is_err() {
        return;
    }
    for mut way in written(&key.path, "0", times) {
        way.pop();
        let texts: Vec<String> = PLAIN.iter().map(|text| (*text).to_owned()).chain(way).collect();
        let (below, problems) = Scenario::assigned(&texts);
        assert!(problems.is_empty(), "{problems:?}");
        let mut above = Scenario::default();
        let name = format!("--{}", flag.long);
        if above.say(&key.path, &name, std::slice::from_ref(&text)).is_err() {
            continue;
        }
        if let Ok((plan, trace)) = plan_of(below.overlay(above)) {
            is_bounded(&format!("{name} {text}"), &plan, &trace).await;
        }
    }
}

#[test]
fn objectives_and_thresholds_stand_every_number() {
    for value in ABSURD.split('|') {
        for text in [
            format!("goodput.ttft={value}"),
            format!("thresholds.ttft.p99=<= {value}"),
            format!("thresholds.ttft.p{value}=<= 1ms"),
            format!("thresholds.verdict=<= {value}"),
        ] {
            let (scenario, problems) = Scenario::assigned(std::slice::from_ref(&text));
            if problems.is_empty() {
                let _ = scenario.validate();
            }
        }
    }
}

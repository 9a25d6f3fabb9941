//! The share of a run's intervals that hold the truth, and of its findings that are false. The runs
//! are of a simulated engine whose truth is known. These tests draw few runs, and fail where
//! something is grossly wrong; `host/benches/statistics` draws many and writes the table.

use simulator::{CHAT, Case, Load, REASONING, SHAREGPT, THOUSAND, Workload};

use crate::finding::Id;
use crate::metric;
use crate::summary::cold::Shown;
use crate::summary::fixture::facts;
use crate::summary::{Bounds, ColdStart, Distribution, Loop, RunFacts, SteadyState, Summary};
use model::exchange::Exchange;

fn facts_of(case: &Case) -> RunFacts {
    let mut facts = facts();
    facts.run.measure_start = None;
    facts.run.request_rate = case.rate();
    facts.run.even_rate = case.rate().is_some();
    if let Load::Closed(users) = case.load {
        facts.run.max_in_flight = Some(users as u64);
        facts.run.r#loop = Loop::Closed;
    }
    facts
}

fn summaries(case: &Case, runs: u64) -> Vec<Summary> {
    let facts = facts_of(case);
    let draw = |run| Summary::new(&facts, &case.exchanges(run, run));
    (0..runs).map(draw).collect()
}

fn holds(bounds: Option<Bounds>, truth: f64) -> bool {
    let Some(Bounds { low, high }) = bounds else { return true };
    low.is_none_or(|low| low <= truth) && high.is_none_or(|high| truth <= high)
}

/// A 95 % interval that holds the truth in fewer than 51 of 60 runs is wrong with a certainty of
/// 99.9 %. The intervals of independent samples held it in 20.
#[test]
fn intervals_of_runs_under_load_hold_the_truth() {
    for (load, requests) in [(Load::Open(0.7), 500), (Load::Closed(32), 400)] {
        let drawn = summaries(&Case::usual(load, requests), 60);
        for name in [metric::TTFT, metric::TPOT, metric::E2E] {
            let each = drawn.iter().map(|summary| summary.metric(name).unwrap());
            let means: Vec<f64> = each.clone().map(|of| of.mean).collect();
            let truth = means.iter().sum::<f64>() / means.len() as f64;
            let held = each.clone().filter(|of| holds(of.confidence.and_then(|of| of.mean), truth));
            let given = each.filter(|of| of.confidence.is_some()).count();
            let held = held.count();
            assert!(held >= 51, "mean {name} of {requests} requests: {held} of 60");
            assert!(given >= 40, "mean {name} of {requests} requests: {given} given");
        }
    }
}

fn found(case: &Case, runs: u64, id: Id) -> usize {
    let drawn = summaries(case, runs);
    let has = |summary: &&Summary| summary.findings.iter().any(|finding| finding.id == id);
    drawn.iter().filter(has).count()
}

#[test]
fn overload_is_found_and_a_busy_engine_is_not_called_overloaded() {
    assert_eq!(found(&Case::usual(Load::Open(0.9), 600), 40, Id::Overloaded), 0);
    let caught = found(&Case::usual(Load::Open(1.5), 600), 20, Id::Overloaded);
    assert!(caught >= 19, "{caught} of 20");
}

/// An engine with room for every request fills for as long as its answers take.
#[test]
fn an_engine_that_never_queues_is_not_overloaded() {
    let engine = "slots=1024,step=8ms,request=10us,prompt-token=10us,context=5ns,chunk=8192";
    let overloaded = |workload: Workload, rate: f64, requests: usize| {
        let engine = engine.parse().unwrap();
        let case = Case::new("free slots", engine, workload, Load::Rate(rate), requests);
        found(&case, 4, Id::Overloaded)
    };
    assert_eq!(overloaded(REASONING, 10.0, 500), 0);
    assert_eq!(overloaded(THOUSAND, 20.0, 500), 0);
    assert_eq!(overloaded(SHAREGPT, 50.0, 1000), 0);
}

/// The slowest first tokens of a closed loop belong to its first requests, which all come at once.
#[test]
fn the_starting_tail_of_a_closed_loop_has_no_interval() {
    let engine = "slots=64".parse().unwrap();
    let case = Case::new("case", engine, SHAREGPT, Load::Closed(64), 1000);
    let summary = &summaries(&case, 1)[0];
    let ttft = summary.metric(metric::TTFT).unwrap();
    let confidence = ttft.confidence.unwrap();
    assert!(confidence.p99_of_fill && confidence.p99.is_none());
    assert!(confidence.mean.is_some());
    let Some(SteadyState::Window(window)) = &summary.steady_state else {
        panic!("64 are in flight for most of the run");
    };
    let steady = &window.metrics[metric::TTFT];
    assert_eq!(window.sent, steady.count);
    assert!(window.sent <= 1000 - 64);
    assert!(steady.percentile(99.0) < ttft.percentile(99.0));
}

/// Of ShareGPT's lengths, a run is short for its longest answers, and long for the others.
#[test]
fn a_longest_answer_does_not_hide_drift() {
    let case = Case::new("case", "slots=64".parse().unwrap(), SHAREGPT, Load::Closed(64), 1000);
    let facts = facts_of(&case);
    let drifts = |run: &u64| {
        let mut exchanges = case.exchanges(*run, *run);
        // Steps take 20 % longer at the end.
        simulator::delay(&mut exchanges, |at, length| 0.1 * at * at / length);
        let findings = Summary::new(&facts, &exchanges).findings;
        findings.iter().any(|finding| finding.id == Id::Drift)
    };
    let found = (0..8).filter(drifts).count();
    assert!(found >= 4, "{found} of 8");
}

#[test]
fn a_queue_that_comes_and_goes_is_no_drift() {
    let false_alarms = found(&Case::usual(Load::Open(0.9), 600), 60, Id::Drift);
    assert!(false_alarms <= 2, "{false_alarms} of 60");
}

/// The order in which records are read changes nothing.
#[test]
fn intervals_do_not_depend_on_the_order_of_records() {
    let case = Case::usual(Load::Open(0.7), 300);
    let exchanges = case.exchanges(1, 1);
    let mut turned: Vec<Exchange> = exchanges.iter().rev().cloned().collect();
    turned.rotate_left(100);
    let facts = facts_of(&case);
    assert_eq!(Summary::new(&facts, &exchanges), Summary::new(&facts, &turned));
}

/// Parts of a run, as several load machines keep them, have the intervals of their own requests.
/// Together they have the intervals of the whole.
#[test]
fn parts_of_a_run_have_the_intervals_of_the_whole() {
    let case = Case::usual(Load::Open(0.7), 600);
    let exchanges = case.exchanges(2, 2);
    let facts = facts_of(&case);
    let part = |own: u64| exchanges.iter().filter(move |exchange| exchange.index % 3 == own);
    let together: Vec<&Exchange> = (0..3).flat_map(part).collect();
    assert_eq!(Summary::new(&facts, together), Summary::new(&facts, &exchanges));
    let third: Vec<&Exchange> = part(1).collect();
    let summary = Summary::new(&facts, third);
    assert!(summary.metric(metric::TPOT).unwrap().confidence.is_some());
}

/// Requests that all come at once are one load, so blocks show nothing; the requested lengths do.
#[test]
fn a_burst_is_one_load() {
    let case = Case::usual(Load::AtOnce, 300);
    let summary = Summary::new(&facts_of(&case), &case.exchanges(1, 1));
    assert!(summary.concurrency.independent.unwrap() < 2.0);
    let ttft = summary.metric(metric::TTFT).unwrap().confidence.unwrap();
    assert!(ttft.mean.is_some() && ttft.median.is_some() && ttft.p99.is_none());
    let few = summary.findings.iter().find(|finding| finding.id == Id::FewLoads);
    assert!(few.unwrap().seen.contains("rose and fell once or twice"));
    let case = Case::usual(Load::Closed(32), 300);
    let summary = Summary::new(&facts_of(&case), &case.exchanges(1, 1));
    assert_eq!(summary.concurrency.independent, None);
    assert!(summary.metric(metric::TTFT).unwrap().confidence.is_some());
}

/// Each step of a burst reads as many prompt tokens as a step may, whichever prompts these are. The
/// sum of all prompts decides the first tokens, and differs from seed to seed.
#[test]
fn a_burst_of_uneven_prompts_knows_their_sum() {
    let mut held = Vec::new();
    for chunk in [512, 2048, 8192] {
        let engine = format!("slots=1024,step=5ms,request=20us,prompt-token=10us,chunk={chunk}");
        let case = Case::new("case", engine.parse().unwrap(), SHAREGPT, Load::AtOnce, 500);
        let drawn = summaries(&case, 60);
        let ttft = || drawn.iter().map(|summary| summary.metric(metric::TTFT).unwrap());
        let truth = |of: &dyn Fn(&Distribution) -> f64| ttft().map(of).sum::<f64>() / 60.0;
        let [mean, median] = [truth(&|of| of.mean), truth(&|of| of.median)];
        held.push(ttft().filter(|of| holds(of.confidence.unwrap().mean, mean)).count());
        held.push(ttft().filter(|of| holds(of.confidence.unwrap().median, median)).count());
    }
    assert!(held.iter().all(|held| *held >= 51), "{held:?} of 60");
}

/// A burst shows no noise. If all answers of a burst have one length and come at once, nothing
/// shows the engine's noise. An interval of no width is then wrong.
#[test]
fn a_burst_that_shows_no_noise_has_no_interval() {
    use crate::summary::fixture::reply;
    use model::exchange::Kind::{End, Text};
    let run: Vec<_> = (0..300)
        .map(|index| {
            let events = [(1050, Text, None, 3), (1070, Text, None, 3), (1070, End, None, 0)];
            reply(index, 1000, &events)
        })
        .collect();
    let summary = Summary::new(&facts(), &run);
    assert!(summary.throughput.requests_per_s.is_some());
    assert_eq!(summary.throughput.confidence, None);
}

/// Repeats: runs with one seed for requests and another for the engine. Every tenth has other
/// requests.
fn repeats(case: &Case) -> Vec<Vec<Summary>> {
    let facts = facts_of(case);
    let draw = |work: u64| {
        let again = (0..10).map(move |own| (work, 10 * work + own));
        again.map(|(work, engine)| Summary::new(&facts, &case.exchanges(work, engine)))
    };
    (0..6).map(|work| draw(work).collect()).collect()
}

/// Intervals over repeats of the same requests hold the average of these, and intervals over other
/// requests the average of all. Of 60, one that is right holds in at least 51 with a certainty of
/// 99.9 %. The average of the ten contains the run itself, so that its distance counts for more.
#[test]
fn repeats_lie_where_a_run_says_and_closer_than_other_requests() {
    for (load, requests) in [(Load::Open(0.5), 400), (Load::Closed(32), 400), (Load::AtOnce, 400)] {
        let case = Case::usual(load, requests);
        let drawn = repeats(&case);
        for name in [metric::TPOT, metric::E2E, metric::TTFT] {
            let (mut held, mut narrower) = (0, 0);
            for again in &drawn {
                let of = again.iter().map(|summary| summary.metric(name).unwrap());
                let truth = of.clone().map(|of| of.mean).sum::<f64>() / 10.0;
                for own in of {
                    let farther = own.mean + (truth - own.mean) * (10.0_f64 / 9.0).sqrt();
                    let confidence = own.confidence.unwrap();
                    let same = confidence.same_requests.unwrap().mean;
                    held += usize::from(holds(same, farther));
                    let width = |of: Option<Bounds>| of.and_then(|of| Some(of.high? - of.low?));
                    let other = confidence.mean_unless_full.or(confidence.mean);
                    narrower += usize::from(width(same) < width(other));
                }
            }
            assert!(held >= 51, "{} {name}: {held} of 60", case.name);
            assert!(narrower >= 57, "{} {name}: {narrower} of 60", case.name);
        }
    }
}

/// On an engine with room for every request, prompts of a burst are read in several steps each, and
/// the longest answer ends the run. The intervals are at most as many times as wide as the scatter
/// of the runs needs.
#[test]
fn intervals_of_bursts_are_as_wide_as_they_need_to_be() {
    let half = |of: Bounds| (of.high.unwrap() - of.low.unwrap()) / 2.0;
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let engine = "slots=1024,step=8ms,request=10us,prompt-token=10us,context=5ns";
    let case = Case::new("case", engine.parse().unwrap(), CHAT, Load::AtOnce, 500);
    let drawn = repeats(&case);
    for name in [metric::TTFT, metric::TPOT, metric::E2E] {
        let (mut held, mut squares, mut halves) = (0, 0.0, Vec::new());
        for again in &drawn {
            let of = again.iter().map(|summary| summary.metric(name).unwrap());
            let truth = of.clone().map(|of| of.mean).sum::<f64>() / 10.0;
            for own in of {
                let same = own.confidence.unwrap().same_requests.unwrap().mean.unwrap();
                held += usize::from(holds(Some(same), truth));
                squares += (own.mean - truth).powi(2) / 54.0;
                halves.push(half(same));
            }
        }
        let times = median(halves) / (1.96 * squares.sqrt());
        assert!(held >= 51 && times < 2.0, "{name}: {held} of 60, {times} times");
    }
    let case = Case::new("case", engine.parse().unwrap(), SHAREGPT, Load::AtOnce, 1000);
    let drawn = summaries(&case, 60);
    let check = |name: &str, figure: fn(&Summary) -> (f64, Bounds)| {
        let of = drawn.iter().map(figure);
        let truth = of.clone().map(|(figure, _)| figure).sum::<f64>() / 60.0;
        let scatter = of.clone().map(|(figure, _)| (figure - truth).powi(2) / 59.0).sum::<f64>();
        let held = of.clone().filter(|(_, own)| holds(Some(*own), truth)).count();
        let times = median(of.map(|(_, own)| half(own)).collect()) / (1.96 * scatter.sqrt());
        let is_needed = (0.85..1.6).contains(&times);
        assert!(held >= 54 && is_needed, "{name}: {held} of 60, {times} times");
    };
    check("requests per second", |summary| {
        let of = &summary.throughput;
        (of.requests_per_s.unwrap(), of.confidence.unwrap().other_requests.requests_per_s.unwrap())
    });
    check(metric::TPOT, |summary| {
        let of = summary.metric(metric::TPOT).unwrap();
        (of.mean, of.confidence.unwrap().mean.unwrap())
    });
}

/// A delay of a queue reaches the requests that come while it shrinks, whether or not one waits at
/// every instant.
#[test]
fn a_queue_near_capacity_keeps_a_delay() {
    let case = Case::usual(Load::Open(0.85), 1000);
    let mut held = 0;
    for again in repeats(&case) {
        let of = again.iter().map(|summary| summary.metric(metric::TTFT).unwrap());
        let truth = of.clone().map(|of| of.mean).sum::<f64>() / 10.0;
        held += of
            .filter(|of| holds(of.confidence.unwrap().same_requests.unwrap().mean, truth))
            .count();
    }
    assert!(held >= 54, "{held} of 60");
}

/// The throughput of every run has both intervals, and they hold the average as the latencies'
/// intervals do.
#[test]
fn throughput_has_intervals_however_requests_come() {
    for (load, requests) in [(Load::Open(0.7), 400), (Load::Closed(32), 400), (Load::AtOnce, 400)] {
        let case = Case::usual(load, requests);
        let drawn = summaries(&case, 60);
        let rates = drawn.iter().map(|summary| summary.throughput.output_tokens_per_s.unwrap());
        let truth = rates.sum::<f64>() / 60.0;
        let held = drawn.iter().filter(|summary| {
            let given = summary.throughput.confidence.unwrap();
            assert!(given.same_requests.requests_per_s.is_some());
            holds(Some(given.other_requests.output_tokens_per_s.unwrap()), truth)
        });
        let held = held.count();
        assert!(held >= 51, "{}: {held} of 60", case.name);
    }
}

/// The runs of a closed loop in which a cold start is found after it was spoilt.
fn cold(case: &Case, runs: u64, by: impl Fn(f64, f64) -> f64) -> Vec<ColdStart> {
    let facts = facts_of(case);
    let draw = |run| {
        let mut exchanges = case.exchanges(run, run);
        simulator::delay(&mut exchanges, &by);
        Summary::new(&facts, &exchanges).cold_start
    };
    (0..runs).filter_map(draw).collect()
}

/// Requests that all come at once are slower than later ones, and so are requests in a queue.
#[test]
fn an_engine_that_was_ready_has_no_cold_start() {
    for (load, requests) in [
        (Load::Closed(32), 600),
        (Load::Closed(64), 600),
        (Load::Open(0.7), 600),
        (Load::Open(0.95), 600),
    ] {
        let case = Case::usual(load, requests);
        let found = found(&case, 50, Id::ColdStart);
        assert!(found <= 2, "{}: {found} of 50", case.name);
    }
}

#[test]
fn a_first_wave_that_waits_for_compiles_is_found() {
    for load in [Load::Closed(32), Load::Closed(64)] {
        let case = Case::usual(load, 600);
        let found = cold(&case, 20, |at, _| if at > 0.0 { 40.0 } else { 0.0 });
        assert_eq!(found.len(), 20, "{}", case.name);
        for own in &found {
            assert_eq!(own.shown, Shown::FirstWave, "{own:?}");
            assert_eq!(own.first, 0, "{own:?}");
            assert!(own.requests >= 32 && own.longest_wait_ms > 40_000.0);
            assert!(own.wait_without_ms < own.wait_ms - 1000.0, "{own:?}");
        }
    }
}

/// Steps take half as long again for a tenth and for a quarter of the run.
#[test]
fn slow_steps_at_the_beginning_are_found() {
    for part in [0.1, 0.2] {
        let case = Case::usual(Load::Closed(32), 1500);
        let found = cold(&case, 20, |at, length| 0.5 * at.min(part * length));
        assert!(found.len() >= 18, "{} of 20", found.len());
        for own in &found {
            assert!((own.times - 1.5).abs() < 0.15, "{own:?}");
            assert!(own.e2e_without_ms < own.e2e_ms, "{own:?}");
        }
    }
}

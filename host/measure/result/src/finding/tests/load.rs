//! Findings on the offered load, on the causes of a lower one, and on its course.

use super::*;
use crate::summary::server::{Figure, TargetMetrics};
use crate::summary::{Loop, Server};

#[test]
fn a_rate_that_was_not_reached() {
    let late = |n: u64| {
        after(move |facts, run| {
            facts.run.request_rate = Some(1000.0 / 150.0);
            for exchange in run {
                // Due at the plan's rate; sent as fast as the cap lets go, which falls behind.
                exchange.due = ms(1000 + (150 - n) * exchange.index);
                exchange.granted = exchange.sent;
            }
        })
    };
    assert!(!late(7).contains(&(Id::RateNotReached, Severity::Suspect)));
    assert!(late(8).contains(&(Id::RateNotReached, Severity::Suspect)));
}

#[test]
fn a_server_slower_than_its_load() {
    let slow = |rate, slower: u64| {
        after(move |facts, run| {
            facts.run.request_rate = rate;
            for exchange in run {
                let late = ms(slower * exchange.index);
                delay(exchange, late);
                exchange.ended = exchange.ended.map(|at| at + late);
            }
        })
    };
    let found = (Id::Overloaded, Severity::Suspect);
    let rate = Some(1000.0 / 150.0);
    assert!(!slow(rate, 0).contains(&found));
    assert!(slow(rate, 300).contains(&found));
    // Without a rate there is none to fall behind.
    assert!(!slow(None, 300).contains(&found));
}

#[test]
fn limits_of_this_machine() {
    let refused = |n: usize, message: &'static str| {
        after(move |_, run| {
            for exchange in &mut run[..n] {
                *exchange = failed(exchange.clone(), Class::Refused, message);
            }
        })
    };
    let descriptors = "Too many open files (os error 24)";
    assert!(refused(1, descriptors).contains(&(Id::ClientLimits, Severity::Suspect)));
    assert!(refused(2, descriptors).contains(&(Id::ClientLimits, Severity::Invalid)));
    let ports = "Cannot assign requested address (os error 99)";
    assert!(refused(2, ports).contains(&(Id::ClientLimits, Severity::Invalid)));
    let elsewhere = refused(2, "Connection refused (os error 111)");
    assert!(!elsewhere.iter().any(|(id, _)| *id == Id::ClientLimits));
}

#[test]
fn plugins_that_failed() {
    let found = [(Id::PluginErrors, Severity::Suspect)];
    assert_eq!(after(|facts, _| facts.scorer_errors = 1), found);
    let backend = after(|_, run| fail(&mut run[0], Class::Plugin));
    assert!(backend.contains(&found[0]));
}

#[test]
fn prompts_that_the_server_knew() {
    let cached = |tokens| {
        after_each(|exchange| {
            let usage = exchange.usage.as_mut().unwrap();
            (usage.input_tokens, usage.cached_input_tokens) = (Some(1000), Some(tokens));
        })
    };
    assert_eq!(cached(16), [], "a chat template");
    assert_eq!(cached(32), [(Id::WarmCache, Severity::Note)]);
    assert_eq!(cached(900), [(Id::WarmCache, Severity::Suspect)]);
}

/// The findings on a run of ten users who each ask again at once, for 60 seconds. A first token
/// takes `latency` of the request's time, and the second the same again.
fn course(latency: impl Fn(u64) -> u64) -> Vec<(Id, Severity)> {
    let mut run = Vec::new();
    for user in 0..10 {
        let mut at = 1000 + 7 * user;
        while at < 61_000 {
            let took = latency(at - 1000);
            let index = run.len() as u64;
            let events = [
                (at + took, Text, None, 3),
                (at + 2 * took, Text, None, 3),
                (at + 2 * took, End, None, 0),
            ];
            let mut exchange = reply(index, at, &events);
            exchange.usage = output_usage(2);
            run.push(exchange);
            at += 2 * took + 1 + user % 3;
        }
    }
    let summary = Summary::new(&facts(), &run);
    summary.findings.iter().map(|finding| (finding.id, finding.severity)).collect()
}

#[test]
fn figures_that_drift_and_throughput_that_swings() {
    assert_eq!(course(|at| 40 + at / 1000 % 2), []);
    let half_more_over_a_minute = course(|at| 40 + at / 3000);
    assert_eq!(half_more_over_a_minute, [(Id::Drift, Severity::Suspect)]);
    let stalls = course(|at| if at % 10_000 < 2000 { 80 } else { 40 });
    assert_eq!(stalls, [(Id::Swing, Severity::Note)]);
}

#[test]
fn a_run_too_short_to_be_steady() {
    let short = after(|_, run| run.truncate(60));
    assert!(short.contains(&(Id::NotSteady, Severity::Note)));
}

/// The findings on 200 requests due every 15 ms; every other one is sent `late` ms later.
fn in_pairs(late: u64, rate: Option<f64>) -> Vec<Id> {
    let run = (0..200).map(|index| {
        let due = 1000 + 15 * index;
        let sent = due + index % 2 * late;
        let events =
            [(sent + 5, Text, None, 3), (sent + 9, Text, None, 3), (sent + 9, End, None, 0)];
        let mut exchange = reply(index, sent, &events);
        (exchange.due, exchange.usage) = (ms(due), output_usage(2));
        exchange
    });
    let mut facts = facts();
    facts.run.request_rate = rate;
    let findings = Summary::new(&facts, run.collect::<Vec<_>>()).findings;
    findings.iter().map(|finding| finding.id).collect()
}

#[test]
fn arrivals_that_were_changed() {
    let rate = Some(1000.0 / 15.0);
    // The gaps vary as much, but no request is later than a punctual client's.
    assert!(!in_pairs(10, rate).contains(&Id::ArrivalsChanged));
    assert!(in_pairs(11, rate).contains(&Id::ArrivalsChanged));
    assert!(!in_pairs(11, None).contains(&Id::ArrivalsChanged));
    // All are late by as much.
    let all_late = after(|facts, run| {
        facts.run.request_rate = Some(1000.0 / 150.0);
        run.iter_mut().for_each(|exchange| exchange.due = Nanos(exchange.due.0 - ms(100).0));
    });
    assert_eq!(all_late, [(Id::SendLag, Severity::Suspect)]);
}

#[test]
fn a_run_that_is_short_for_its_answers() {
    // Requests are sent for 14.85 s.
    let found = |rate, loops, took: u64| {
        let (mut facts, mut run) = sound();
        (facts.run.request_rate, facts.run.r#loop) = (rate, loops);
        for exchange in &mut run {
            exchange.events.at[2] = exchange.sent.unwrap() + ms(took);
            exchange.ended = Some(exchange.events.at[2]);
        }
        let findings = Summary::new(&facts, &run).findings;
        let found = |id: Id| findings.iter().filter(|finding| finding.id == id).count();
        // One line says both that the run is short and that it drains.
        assert!(found(Id::ShortRun) + found(Id::LongDrain) <= 1, "{findings:?}");
        findings.iter().any(|finding| finding.advice.contains("ten times"))
    };
    let rate = Some(1000.0 / 150.0);
    assert!(!found(rate, Loop::Open, 1480));
    assert!(found(rate, Loop::Open, 1490));
    assert!(found(None, Loop::Closed, 1490));
    assert!(!found(None, Loop::Open, 1490), "a burst takes as long as it takes");
}

#[test]
fn a_run_that_drains_for_long() {
    let found = |longest: u64| {
        let mut run: Vec<Exchange> = (0..80)
            .map(|index| {
                let sent = 1000 + index / 4 * 1000;
                // The last answer ends this many seconds after the others.
                let took = if index == 79 { 1000 * (1 + longest) } else { 1000 };
                let events = [(sent + 10, Text, None, 3), (sent + took, Text, None, 3)];
                reply(index, sent, &events)
            })
            .collect();
        run.iter_mut().for_each(|exchange| exchange.usage = output_usage(100));
        finding(&facts(), &run, Id::LongDrain).map(|(severity, seen, _)| (severity, seen))
    };
    assert_eq!(found(0), None);
    let (severity, seen) = found(5).unwrap();
    assert_eq!(severity, Severity::Note);
    let expected = "output throughput is 320.00 tokens per second over the run and 397.50 in its steady window; 24 % of the run passed after the last request was sent";
    assert_eq!(seen, expected);
}

#[test]
fn a_server_that_preempts() {
    let counted = |times: f64| {
        after(move |facts, _| {
            let mut metrics =
                TargetMetrics::since("http://a".into(), [(Figure::Preemptions, 2.0)].into());
            metrics.until([(Figure::Preemptions, 2.0 + times)].into());
            facts.server = Some(Server { targets: vec![metrics] });
        })
    };
    assert_eq!(counted(0.0), []);
    assert_eq!(counted(3.0), [(Id::Preempted, Severity::Note)]);
}

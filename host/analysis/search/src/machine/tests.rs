//! Searches over loads whose truth is known.

mod queues;

use super::*;
use crate::answer::{Again, Ended};
use crate::config::{Config, Load};
use crate::gather::{Counted, Measured};
use crate::laboratory::{drive, queued};
use crate::slo::tiers;
use crate::watch::{Alarm, Progress};
use model::units::Nanos;
use result::summary::Backlog;

fn config(load: Load, start: f64) -> Config {
    Config::new(load, tiers(["e2e.p99 < 1s"]).unwrap(), start)
}

fn conduct(config: Config, run: impl FnMut(&Probe) -> Outcome) -> Answer {
    drive(&mut Search::new(config).unwrap(), run)
}

fn invalid(why: &str) -> Outcome {
    Outcome::Invalid { why: why.into() }
}

/// Makes the outcome of a run in which this share of the requests is bad, of each tier.
fn shares(probe: &Probe, shares: &[f64]) -> Outcome {
    let counted = |share: &f64| {
        vec![Counted {
            requests: probe.requests,
            bad: (share * probe.requests as f64) as u64,
            unknown: 0,
            effect: 1.0,
            tail_effect: 1.0,
            near_effect: 1.0,
            batches: 160,
            control: None,
            overloads: false,
        }]
    };
    Outcome::Measured(Measured {
        requests: probe.requests,
        tiers: shares.iter().map(counted).collect(),
        loads: 100.0,
        backlog: Some(Backlog { second_quarter: 1.0, fourth_quarter: 1.0, chance: 3.0 }),
        little: None,
    })
}

/// Holds up to a load, and not beyond.
fn step(at: f64) -> impl Fn(&Probe) -> Outcome {
    move |probe| shares(probe, &[if probe.at <= at { 0.0 } else { 0.5 }])
}

#[test]
fn the_interval_holds_the_truth_wherever_the_search_starts() {
    for truth in [0.7, 3.3, 20.0, 317.0] {
        for start in [0.5, 4.0, 100.0] {
            let answer = conduct(config(Load::Rate, start), step(truth));
            let found = &answer.tiers[0];
            let (passed, failed) = (found.passed.unwrap(), found.failed.unwrap());
            assert!(passed <= truth && truth < failed, "{truth} {start}: {found:?}");
            assert!(found.width().unwrap() <= 0.02 && found.ended == Ended::Narrow);
            assert_eq!(found.again, Some(Again::Shown));
            assert!(answer.probes <= 30, "{} {answer:?}", answer.probes);
        }
    }
}

#[test]
fn whole_numbers_are_found_exactly() {
    for load in [Load::Concurrency, Load::Sessions] {
        for truth in [1.0, 2.0, 7.0, 40.0] {
            for start in [1.0, 5.0, 64.0] {
                let narrow = Config { width: 0.001, ..config(load, start) };
                let answer = conduct(narrow, step(truth));
                let found = &answer.tiers[0];
                assert_eq!((found.passed, found.failed), (Some(truth), Some(truth + 1.0)));
                assert!(answer.levels.iter().all(|level| level.at.fract() == 0.0));
            }
        }
    }
}

#[test]
fn loads_beyond_the_bounds_are_not_tried() {
    let bounded = Config { least: 2.0, most: 10.0, ..config(Load::Rate, 4.0) };
    let ends = |truth: f64| {
        let answer = conduct(bounded.clone(), step(truth));
        let found = answer.tiers[0].clone();
        (found.passed, found.failed, found.ended)
    };
    assert_eq!(ends(1.0), (None, Some(2.0), Ended::Lowest));
    assert_eq!(ends(50.0), (Some(10.0), None, Ended::Highest));
}

#[test]
fn a_run_that_is_not_valid_is_made_once_more() {
    let mut search = Search::new(config(Load::Rate, 4.0)).unwrap();
    let mut attempts = Vec::new();
    let answer = drive(&mut search, |probe| {
        attempts.push((probe.at, probe.attempt, probe.seed));
        // Once at the first load, and always at 8.
        if probe.number == 1 || probe.at == 8.0 { invalid("send-lag") } else { step(14.0)(probe) }
    });
    assert_eq!((attempts[0].0, attempts[0].1), (4.0, 1));
    assert_eq!((attempts[1].0, attempts[1].1), (4.0, 2));
    assert_eq!((attempts[2].0, attempts[3].0), (8.0, 8.0));
    assert_eq!(attempts.iter().filter(|own| own.0 == 8.0).count(), 2);
    let mut seeds: Vec<u64> = attempts.iter().map(|own| own.2).collect();
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), attempts.len(), "every run has a seed of its own");
    let found = &answer.tiers[0];
    // A load that could not be run is no obstacle above it.
    assert!(found.passed.unwrap() <= 14.0 && found.failed.unwrap() > 14.0);
    let at_8 = answer.levels.iter().find(|level| level.at == 8.0).unwrap();
    assert!(at_8.closed && at_8.invalid.len() == 2 && at_8.requests == 0);
    assert!(at_8.tiers[0].decision.is_undecided());
}

#[test]
fn loads_that_cannot_be_offered_end_the_way_up() {
    let answer = conduct(config(Load::Rate, 4.0), |probe| {
        if probe.at > 10.0 { invalid("send-lag") } else { shares(probe, &[0.0]) }
    });
    let found = &answer.tiers[0];
    assert!(found.failed.is_none() && found.ended == Ended::Undecided);
    assert!((9.8..=10.0).contains(&found.passed.unwrap()), "{found:?}");
    let highest = answer.levels.last().unwrap();
    assert!(highest.at <= 32.0 && highest.is_given_up(), "{highest:?}");
    // Nor is the way down long where nothing can be run at all.
    let answer = conduct(config(Load::Rate, 4.0), |_| invalid("no server"));
    assert_eq!((answer.probes, answer.levels.len()), (4, 2));
    assert_eq!((answer.tiers[0].passed, answer.tiers[0].failed), (None, None));
}

#[test]
fn runs_are_as_long_as_they_must_be() {
    let long = Config { seconds_least: 600.0, requests_least: 5000, ..config(Load::Rate, 4.0) };
    conduct(long, |probe| {
        assert!(probe.requests >= 5000 && probe.requests as f64 >= 600.0 * probe.at);
        step(900.0)(probe)
    });
    conduct(config(Load::Concurrency, 64.0), |probe| {
        assert!(probe.requests as f64 >= 20.0 * probe.at);
        step(900.0)(probe)
    });
}

/// LoadGen wants 459 requests if none of them is late.
#[test]
fn mlperfs_early_stopping_stands_beside_the_answer() {
    for (early_stopping, late, least) in [(false, 0.0, 0), (true, 0.0, 459), (true, 0.5, 0)] {
        let config = Config { loads: 1, early_stopping, ..config(Load::Rate, 4.0) };
        let answer = conduct(config, |probe| shares(probe, &[late]));
        let found = answer.tiers[0].early_stopping;
        let missing = found.map(|found| (found.missing, 459 - found.requests.min(459)));
        match least {
            0 => assert_eq!(missing, None),
            _ => assert!(missing.is_some_and(|(missing, wanted)| missing == wanted), "{found:?}"),
        }
    }
}

#[test]
fn a_rate_without_its_backlog_does_not_pass() {
    let answer = conduct(config(Load::Rate, 4.0), |probe| {
        let Outcome::Measured(own) = shares(probe, &[0.0]) else { unreachable!() };
        Outcome::Measured(Measured { backlog: None, ..own })
    });
    assert_eq!(answer.tiers[0].passed, None);
    assert!(answer.levels.iter().all(|level| level.invalid[0].contains("backlog")));
}

fn alarm(sent: u64) -> Alarm {
    Alarm {
        progress: Progress { at: Nanos(60_000_000_000), due: 1000, sent, ended: 400 },
        second_quarter: 100.0,
        fourth_quarter: 500.0,
        chance: 90.0,
    }
}

#[test]
fn over_saturated_runs_fail_unless_this_client_held_them_back() {
    let answer = |sent: u64| {
        conduct(config(Load::Rate, 4.0), |probe| {
            if probe.at > 9.0 { Outcome::Stopped(alarm(sent)) } else { shares(probe, &[0.0]) }
        })
    };
    let saturated = &answer(1000).tiers[0];
    assert!(saturated.failed.unwrap() > 9.0 && saturated.passed.unwrap() <= 9.0);
    let held_back = &answer(450).tiers[0];
    assert_eq!(held_back.failed, None);
    assert!(held_back.passed.unwrap() <= 9.0);
}

#[test]
fn a_pass_above_a_failure_is_flagged() {
    let once = Config { confirm: false, ..config(Load::Rate, 4.0) };
    // 5.7 fails, between 4 and 8 which pass; 16 fails.
    let answer = conduct(once.clone(), |probe| {
        let bad = probe.at > 12.0 || (10.0..11.5).contains(&probe.at);
        shares(probe, &[if bad { 0.5 } else { 0.0 }])
    });
    let found = &answer.tiers[0];
    assert!(found.passed.unwrap() <= 10.0 && found.failed.unwrap() >= 10.0);
    assert_eq!(found.violations, []);
    // The same loads, and a second tier for which a lower one fails after a higher one has passed.
    let tiers = tiers(["a: e2e.p99 < 1s", "b: e2e.p99 < 2s"]).unwrap();
    let answer = conduct(Config { tiers, ..once }, |probe| {
        let first = if probe.at > 6.0 { 0.5 } else { 0.0 };
        let second = if (5.0..6.0).contains(&probe.at) || probe.at > 14.0 { 0.5 } else { 0.0 };
        shares(probe, &[first, second])
    });
    let second = &answer.tiers[1];
    assert!(!second.violations.is_empty(), "{second:?}");
    let violation = second.violations[0];
    assert!(violation.failed < 6.0 && violation.passed > 6.0, "{violation:?}");
    assert!(second.passed.unwrap() < 5.0 && second.failed.unwrap() < 6.0, "the lower end counts");
}

#[test]
fn a_load_that_does_not_hold_again_is_no_answer() {
    let answer = conduct(config(Load::Rate, 4.0), |probe| {
        // Holds up to 10, and runs that confirm say 9.
        let truth = if probe.purpose == Purpose::Confirm { 9.0 } else { 10.0 };
        step(truth)(probe)
    });
    let found = &answer.tiers[0];
    let failed = (answer.levels.iter()).filter(|level| level.confirms);
    assert!(failed.clone().any(|level| level.tiers[0].decision.is_fail()));
    assert!(
        found.passed.is_none_or(|passed| passed <= 9.9) && found.failed.unwrap() <= 10.0,
        "{found:?}"
    );
    assert_ne!(found.again, Some(Again::Doubtful));
}

/// The share is the allowed one from 9 to 10, which no curve of the regression follows, as it takes
/// a rise for granted. So its interval lies among these loads, and need not reach both ends of
/// them.
#[test]
fn an_interval_lies_among_loads_whose_share_is_what_is_allowed() {
    let answer = conduct(Config { loads: 25, ..config(Load::Rate, 4.0) }, |probe| {
        let share = match probe.at {
            at if at < 9.0 => 0.0,
            at if at < 10.0 => 0.01,
            _ => 0.5,
        };
        shares(probe, &[share])
    });
    let found = &answer.tiers[0];
    let (passed, failed) = (found.passed.unwrap(), found.failed.unwrap());
    assert!(passed < 10.0 && failed > 9.0, "{found:?}");
    assert!((9.0..10.0).contains(&found.estimate.unwrap()), "{found:?}");
    let among = |level: &&Level| (9.0..10.0).contains(&level.at);
    assert!(answer.levels.iter().filter(among).count() >= 2, "{answer:?}");
}

#[test]
fn a_search_ends_when_its_budget_does() {
    let few = Config { loads: 5, ..config(Load::Rate, 4.0) };
    let answer = conduct(few, step(100.0));
    assert_eq!(answer.levels.len(), 5);
    assert_eq!(answer.tiers[0].ended, Ended::Budget);
    assert_eq!(answer.tiers[0].passed, Some(64.0));
}

/// Six hundred requests of a closed loop show no load, and the answer has an estimate. None is bad,
/// and some come near the limit together.
/// The backlog grows between loads at which it does not: short runs are as lucky as that.
#[test]
fn a_load_whose_backlog_grows_is_left_alone() {
    let config = Config { width: 0.05, confirm: false, ..config(Load::Rate, 1.0) };
    let answer = conduct(config, |probe| {
        let mut outcome = shares(probe, &[if probe.at < 16.5 { 0.005 } else { 0.4 }]);
        if let Outcome::Measured(measured) = &mut outcome
            && (16.5..17.5).contains(&probe.at)
        {
            let grown = Backlog { second_quarter: 1.0, fourth_quarter: 90.0, chance: 3.0 };
            measured.backlog = Some(grown);
        }
        outcome
    });
    let most = answer.levels.iter().map(|level| level.looks).max();
    assert!(most.unwrap() <= 4 && answer.requests < 40_000, "{answer:?}");
    assert_eq!(answer.tiers[0].ended, Ended::Narrow, "{answer:?}");
}

#[test]
fn a_search_that_shows_nothing_has_a_best_estimate() {
    let few = Config {
        tiers: tiers(["e2e.p90 < 400ms"]).unwrap(),
        requests_in_all: Some(600),
        ..config(Load::Concurrency, 1.0)
    };
    let answer = conduct(few, |probe| {
        let Outcome::Measured(mut own) = shares(probe, &[0.0]) else { unreachable!() };
        own.tiers[0][0].near_effect = 12.0;
        Outcome::Measured(own)
    });
    let found = &answer.tiers[0];
    assert_eq!((found.passed, found.failed, found.ended), (None, None, Ended::Budget));
    assert_eq!((found.estimate, found.seems_to_hold), (Some(2.0), Some(2.0)), "{answer:?}");
}

/// An answer has a best estimate after each report, with none of its ends shown, one or both.
#[test]
fn every_answer_has_a_best_estimate() {
    let mut search = Search::new(config(Load::Rate, 4.0)).unwrap();
    assert_eq!(search.answer().tiers[0].estimate, None);
    let mut seen = Vec::new();
    while let Step::Probe(probe) = search.next() {
        let outcome = shares(&probe, &[if probe.at <= 20.0 { 0.004 } else { 0.013 }]);
        search.report(Report { probe, outcome, seconds: 0.0 }).unwrap();
        let found = search.answer().tiers.remove(0);
        if seen.len() == 3 {
            // None of 4, 8, 16 and 32 is shown.
            assert_eq!((found.passed, found.failed), (None, None));
            assert_eq!((found.seems_to_hold, found.seems_to_fail), (Some(16.0), Some(32.0)));
            assert_eq!(found.ended, Ended::Open);
        }
        let is_last = matches!(search.next(), Step::Done(_));
        assert_eq!(found.ended == Ended::Open, !is_last, "{found:?}");
        seen.push(found.estimate.unwrap());
    }
    assert_eq!(seen[..3], [4.0, 8.0, 16.0]);
    assert!(seen[3..].iter().all(|own| (16.0..=32.0).contains(own)), "{seen:?}");
    // None holds.
    let low = Config { least: 2.0, ..config(Load::Rate, 4.0) };
    let answer = conduct(low, step(1.0));
    let found = &answer.tiers[0];
    assert_eq!((found.estimate, found.seems_to_fail), (None, Some(2.0)));
}

/// Runs whose outcome shows nothing are paid for too, so their planned requests count.
#[test]
fn a_search_never_takes_more_requests_than_it_may() {
    for most in [100, 600, 791, 2500, 3000] {
        for wrong in [0, 3] {
            let short = Config { requests_in_all: Some(most), ..config(Load::Rate, 4.0) };
            let mut sent = 0;
            let shares = step(100.0);
            let answer = conduct(short, |probe| {
                sent += probe.requests;
                if wrong > 0 && probe.number % wrong == 0 {
                    invalid("the client was busy")
                } else {
                    shares(probe)
                }
            });
            assert!(0 < sent && sent <= most, "{most}: {sent}");
            assert_eq!(answer.tiers[0].ended, Ended::Budget, "{most}");
        }
    }
}

#[test]
fn tiers_share_probes() {
    let with = |texts: &[&str]| {
        let tiers = tiers(texts.iter().copied()).unwrap();
        Config { tiers, ..config(Load::Rate, 4.0) }
    };
    let share = |at: f64, truth: f64| if at <= truth { 0.0 } else { 0.5 };
    let both = conduct(with(&["a: e2e.p99 < 1s", "b: e2e.p99 < 2s"]), |probe| {
        shares(probe, &[share(probe.at, 11.0), share(probe.at, 30.0)])
    });
    let alone =
        conduct(with(&["b: e2e.p99 < 2s"]), |probe| shares(probe, &[share(probe.at, 30.0)]));
    for (found, truth) in both.tiers.iter().zip([11.0, 30.0]) {
        assert!(found.passed.unwrap() <= truth && truth < found.failed.unwrap());
        assert_eq!((found.ended, found.again), (Ended::Narrow, Some(Again::Shown)));
    }
    assert!(both.probes < 2 * alone.probes, "{} {}", both.probes, alone.probes);
}

/// Stopped after any report and read back, a search goes on as if it had not been stopped.
#[test]
fn an_interrupted_search_goes_on_where_it_was() {
    let mut whole = Search::new(Config {
        tiers: tiers(["a: e2e.p99 < 20s", "b: e2e.p95 < 8s"]).unwrap(),
        requests_each: 20_000,
        width: 0.1,
        ..config(Load::Rate, 0.2)
    })
    .unwrap();
    let run = |probe: &Probe, tiers: &[crate::slo::Tier]| match probe.number {
        3 => invalid("lag"),
        7 => Outcome::Stopped(alarm(1000)),
        _ => queued(tiers, probe),
    };
    let both = whole.config().tiers.clone();
    let answer = drive(&mut whole, |probe| run(probe, &both));
    for upto in 0..=whole.reports().len() {
        let mut cut = Search::new(whole.config().clone()).unwrap();
        for report in &whole.reports()[..upto] {
            cut.report(report.clone()).unwrap();
        }
        let text = serde_json::to_string(&cut).unwrap();
        let mut read: Search = serde_json::from_str(&text).unwrap();
        assert_eq!(read, cut);
        assert_eq!(read.next(), cut.next());
        assert_eq!(drive(&mut read, |probe| run(probe, &both)), answer);
        assert_eq!(read, whole);
    }
    let json = serde_json::to_string(&answer).unwrap();
    assert_eq!(serde_json::from_str::<Answer>(&json).unwrap(), answer);
}

#[test]
fn reports_of_other_searches_are_refused() {
    let mut search = Search::new(config(Load::Rate, 4.0)).unwrap();
    let Step::Probe(probe) = search.next() else { panic!() };
    let outcome = step(9.0)(&probe);
    let other = Probe { at: 5.0, ..probe.clone() };
    let error = search.report(Report { probe: other, outcome: outcome.clone(), seconds: 0.0 });
    assert!(error.unwrap_err().to_string().contains("is not of the probe that comes next, 1 at 4"));
    let wrong = shares(&probe, &[0.0, 0.0]);
    let error = search.report(Report { probe: probe.clone(), outcome: wrong, seconds: 0.0 });
    assert!(error.unwrap_err().to_string().contains("other objectives"));
    drive(&mut search, step(9.0));
    let error = search.report(Report { probe, outcome, seconds: 0.0 });
    assert!(error.unwrap_err().to_string().contains("after the search has ended"));
}

//! Engines that are slow, dead, dying, restarting or in the way of each other.

use std::time::Duration;

use mock::Truth;
use model::exchange::Class;
use tempfile::TempDir;

use super::check::{Ending, at_once, check, failure, no_faster, refused};
use crate::endings::{begin, line};
use crate::support::process::{Mock, run, runner};
use crate::support::raw::{Act, Raw, whole};
use crate::support::results::random;

/// Slowness, by the engine's script: never a failure, and never shorter than it was.
#[rustfmt::skip]
const SLOW: [(&str, &[&str]); 6] = [
    ("first token", &["--ttft", "300ms", "--itl", "1ms"]),
    ("every token", &["--ttft", "1ms", "--itl", "60ms"]),
    ("headers", &["--ttft", "1ms", "--itl", "1ms", "--fault", "kind = 'slow-headers', for = '300ms'"]),
    ("a stall before the answer", &["--ttft", "1ms", "--itl", "1ms", "--fault", "kind = 'stall', after-tokens = 0, for = '300ms'"]),
    ("a stall within the answer", &["--ttft", "1ms", "--itl", "1ms", "--fault", "kind = 'stall', after-tokens = 3, for = '300ms'"]),
    ("one at a time", &["--ttft", "50ms", "--itl", "1ms", "--max-concurrency", "1"]),
];

#[test]
fn slowness_is_measured_and_no_failure() {
    at_once(&SLOW, 3, |&(about, script)| {
        let (place, mock) = (TempDir::new().unwrap(), Mock::logging(script));
        let one_by_one = "--concurrency 1 --num-prompts 3 --random-output-len 5";
        let ended = run(&mut line(runner(), &mock, place.path(), one_by_one));
        let log = mock.end();
        let after = check(about, place.path(), &ended, Ending::Finished, Some(&log));
        assert_eq!(after.summary.requests.successful, 3, "{about}");
        no_faster(about, &after.exchanges, &log);
    });
}

#[test]
fn an_engine_that_is_dead_at_the_start_is_reported_first() {
    let gone = Raw::with([]).listen().url.clone();
    let server = |act: Vec<Act>| Raw::routing([("GET", vec![act])]).listen();
    let hangs_up = server(vec![Act::Close]);
    let resets = server(vec![Act::Reset]);
    let broken = server(whole("500 Broken", "{}"));
    for (about, url, code, expected) in [
        ("nobody listens", &gone, 5, "onnection refused"),
        ("it hangs up", &hangs_up.url, 5, "closed before a reply arrived"),
        ("it resets", &resets.url, 5, "reset"),
        (
            "it fails",
            &broken.url,
            3,
            "does not list its models (HTTP 500: {}); name one with --model",
        ),
    ] {
        let place = TempDir::new().unwrap();
        let ended = run(&mut random(url, place.path(), "--num-prompts 3"));
        refused(about, place.path(), &ended, code, expected);
    }
}

/// Possible failures of a request whose engine is gone.
const GONE: [Class; 3] = [Class::Refused, Class::Reset, Class::Truncated];

/// The way an engine ends: a stopped engine leaves a log, a killed one does not.
#[derive(Clone, Copy, Debug)]
enum Leaves {
    Killed,
    Stopped,
}

/// The way it leaves, whether it comes back, and the load.
const COMINGS_AND_GOINGS: [(Leaves, bool, &str); 5] = [
    (Leaves::Killed, false, "--request-rate 100"),
    (Leaves::Killed, true, "--request-rate 100"),
    (Leaves::Stopped, false, "--request-rate 100"),
    (Leaves::Stopped, true, "--request-rate 100"),
    (Leaves::Stopped, true, "--concurrency 4"),
];

#[test]
fn an_engine_that_goes_away_fails_its_share_and_no_more() {
    let speed = ["--ttft", "5ms", "--itl", "10ms"];
    at_once(&COMINGS_AND_GOINGS, 5, |&(leaves, comes_back, load)| {
        let about = format!("{leaves:?}, comes back: {comes_back}, {load}");
        let (place, mock) = (TempDir::new().unwrap(), Mock::logging(&speed));
        // A closed loop fails as fast as a connection is refused, so it lasts by the clock.
        let size = if load.contains("rate") { "--num-prompts 1000" } else { "--duration 10s" };
        let process = begin(&mock, place.path(), &format!("{load} {size} --random-output-len 10"));
        let port = mock.port().to_owned();
        let mut log: Option<Vec<Truth>> = match leaves {
            Leaves::Killed => {
                drop(mock);
                None
            }
            Leaves::Stopped => Some(mock.end()),
        };
        let again = comes_back.then(|| {
            std::thread::sleep(Duration::from_millis(100));
            Mock::logging_at(&port, &speed)
        });
        let ended = process.end();
        let second = again.map(Mock::end).unwrap_or_default();
        let answered_again = second.len();
        if let Some(log) = &mut log {
            log.extend(second);
        }
        // Requests that met no engine are written nowhere, so `check` has one log for both lives.
        let after = check(&about, place.path(), &ended, Ending::Finished, log.as_deref());
        for (class, message) in after.measured().filter_map(failure) {
            assert!(GONE.contains(&class), "{about}: {class:?}: {message}");
        }
        let answered = after.summary.requests.successful as usize;
        assert!(answered > 0 && after.summary.requests.failed > 0, "{about}");
        assert_eq!(answered_again > 0, comes_back, "{about}");
        let last = after.measured().last().unwrap();
        assert_eq!(last.is_ok(), comes_back, "{about}: {:?}", last.outcome);
    });
}

#[test]
fn an_engine_that_dies_after_the_question_leaves_failures_only() {
    for (about, act, class) in
        [("hangs up", Act::Close, Class::Reset), ("resets", Act::Reset, Class::Reset)]
    {
        let raw = Raw::engine(move |_| vec![act.clone()]).listen();
        let place = TempDir::new().unwrap();
        let flags = "--num-prompts 20 --concurrency 3 --warmup-requests 0";
        let ended = run(&mut random(&raw.url, place.path(), flags));
        let after = check(about, place.path(), &ended, Ending::NothingAnswered, None);
        assert_eq!(after.summary.requests.failures[&class].count, 20, "{about}");
        for name in ["ttft", "itl", "e2e", "output-tokens"] {
            assert!(after.summary.metric(name).is_none(), "{about}: {name}");
        }
        assert!(ended.stderr.contains("every request failed"), "{about}");
    }
}

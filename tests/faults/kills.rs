//! Kills at random instants. Whatever was flushed is readable.

use std::path::Path;
use std::time::{Duration, Instant};

use mock::{End, Truth};
use model::random::mix;
use runs::record;
use tempfile::TempDir;

use super::check::{Ending, at_once, check, no_panic, tokens};
use crate::endings::{RUNS, line};
use crate::support::process::{Exit, Mock, Process, only_run, run, runner};

/// The number of kills, and the latest instant: after the start, or, for every second run, after
/// the first record could come.
const KILLS: u64 = 100;
const LATEST: Duration = Duration::from_millis(3_000);

/// The time between the first and last of the answers that were given but are not on record.
fn missing_span(log: &[Truth], recorded: usize) -> Duration {
    let mut ended: Vec<u64> = (log.iter().filter(|truth| truth.end == End::Whole))
        .map(|truth| truth.ended.unwrap().0)
        .collect();
    ended.sort_unstable();
    match ended[recorded.min(ended.len())..] {
        [first, .., last] => Duration::from_nanos(last - first),
        _ => Duration::ZERO,
    }
}

/// A run that was killed before its first request, perhaps before it had a folder.
fn unbegun(about: &str, folder: Option<&Path>, ended: &Exit, log: &[Truth]) {
    assert_eq!(ended.code, None, "{about}");
    no_panic(about, ended);
    assert!(log.is_empty(), "{about}: requests without a record file");
    if let Some(folder) = folder {
        let report = run(runner().arg("report").arg(folder)).with_code(3);
        assert!(
            report.stderr.contains("cannot read")
                || report.stderr.contains("is not the folder of a run"),
            "{about}: {report:#?}"
        );
    }
}

#[test]
fn a_killed_run_leaves_its_flushed_records() {
    let instants: Vec<(u64, Duration)> = (0..KILLS)
        .map(|kill| {
            let share = mix(kill) as f64 / u64::MAX as f64;
            (kill, LATEST.mul_f64(share))
        })
        .collect();
    let spans = std::sync::Mutex::new(Vec::new());
    at_once(&instants, 8, |(kill, after)| {
        let about = format!("kill {kill}, after {after:?}");
        let (place, mock) =
            (TempDir::new().unwrap(), Mock::logging(&["--ttft", "2ms", "--itl", "1ms"]));
        let flags = "--request-rate 40 --num-prompts 100000 --random-output-len 3";
        let mut process = Process::start(&mut line(runner(), &mock, place.path(), flags));
        if kill % 2 == 1 {
            process.until(&about, |_| {
                let run = only_run(&place.path().join(RUNS));
                run.is_some_and(|run| run.join(record::FILE).exists())
            });
        }
        let began = Instant::now();
        std::thread::sleep(after.saturating_sub(began.elapsed()));
        process.signal("KILL");
        let ended = process.end();
        let log = mock.end();
        let folder = only_run(&place.path().join(RUNS));
        let records =
            folder.as_ref().and_then(|folder| std::fs::read(folder.join(record::FILE)).ok());
        let Some(_) = records else {
            // It did not even begin: there is nothing to report, and the message says so.
            unbegun(&about, folder.as_deref(), &ended, &log);
            return;
        };
        let after = check(&about, place.path(), &ended, Ending::Killed, Some(&log));
        assert!(after.exchanges.iter().all(|exchange| exchange.is_ok()), "{about}");
        assert!(log.iter().all(|truth| truth.end != End::Whole || tokens(truth) == 3));
        spans.lock().unwrap().push(missing_span(&log, after.exchanges.len()));
    });
    let spans = spans.into_inner().unwrap();
    assert!(spans.len() as u64 >= KILLS / 2, "every second run began");
    eprintln!("the longest spans without a record: {:?}", spans.iter().max());
}

//! Signals in every phase of a run: the measurements are on disk, and the run ends.

use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;

use model::exchange::{Class, Phase};
use tempfile::TempDir;

use super::check::{Ending, GIVEN, at_once, check, failure, no_panic, refused};
use crate::endings::RUNS;
use crate::support::process::{Mock, Process, has_records, runner, words};
use crate::support::raw::{Raw, wait};
use crate::support::results::random;

const SIGNALS: [&str; 3] = ["INT", "TERM", "HUP"];

/// The place where the run stands when the signals come.
#[derive(Clone, Copy, Debug)]
enum At {
    /// This many are in flight, and no reply comes.
    InFlight(u64),
    /// Records have been flushed, and more is being measured.
    Measuring,
}

/// The phase, the engine's speed, the load, the run's state at the first signal, the number of
/// signals, and the failures that may follow.
type Row = (&'static str, [&'static str; 4], &'static str, At, usize, &'static [Class]);

#[rustfmt::skip]
const PHASES: [Row; 8] = [
    ("warmup, let finish", ["--ttft", "2s", "--itl", "1ms"], "--warmup-requests 2 --num-prompts 8 --concurrency 2", At::InFlight(2), 1, &[Class::NotSent]),
    ("warmup, given up", ["--ttft", "10m", "--itl", "1ms"], "--warmup-requests 2 --num-prompts 8 --concurrency 2", At::InFlight(2), 2, &[Class::Interrupted, Class::NotSent]),
    ("first tokens, let come", ["--ttft", "2s", "--itl", "1ms"], "--num-prompts 500 --concurrency 4", At::InFlight(4), 1, &[Class::NotSent]),
    ("first tokens, given up", ["--ttft", "10m", "--itl", "1ms"], "--num-prompts 500 --concurrency 4", At::InFlight(4), 2, &[Class::Interrupted, Class::NotSent]),
    ("tokens, given up", ["--ttft", "1ms", "--itl", "10m"], "--num-prompts 500 --concurrency 4", At::InFlight(4), 2, &[Class::Interrupted, Class::NotSent]),
    ("the last replies, given up", ["--ttft", "1ms", "--itl", "10m"], "--num-prompts 4 --concurrency 4", At::InFlight(4), 2, &[Class::Interrupted]),
    ("measuring, in a loop", ["--ttft", "5ms", "--itl", "1ms"], "--num-prompts 100000 --concurrency 2", At::Measuring, 1, &[Class::NotSent]),
    ("measuring, at a rate", ["--ttft", "5ms", "--itl", "1ms"], "--num-prompts 100000 --request-rate 50", At::Measuring, 2, &[Class::Interrupted, Class::NotSent]),
];

#[test]
fn a_signal_in_any_phase_keeps_the_records() {
    let rows: Vec<_> =
        SIGNALS.iter().flat_map(|signal| PHASES.iter().map(move |phase| (signal, phase))).collect();
    at_once(&rows, 4, |(signal, (phase, speed, load, at, times, classes))| {
        let about = format!("SIG{signal}, {phase}");
        let (place, mock) = (TempDir::new().unwrap(), Mock::logging(speed));
        let warmup = if load.contains("--warmup-requests") { "" } else { "--warmup-requests 0" };
        let flags = format!("--random-output-len 5 {warmup} {load}");
        let mut process = Process::start(&mut random(&mock.url, place.path(), &flags));
        process.until(&about, |_| match at {
            At::InFlight(number) => mock.metric("vllm:num_requests_running") == *number as f64,
            At::Measuring => has_records(&place.path().join(RUNS)),
        });
        process.signal(signal);
        if *times > 1 {
            process.until("the first is received", |process| {
                process.stderr().contains("interrupt again")
            });
            process.signal(signal);
        }
        let ended = process.end();
        let log = mock.end();
        let after = check(&about, place.path(), &ended, Ending::Interrupted, Some(&log));
        for exchange in &after.exchanges {
            let class = failure(exchange).map(|(class, _)| class);
            assert!(class.is_none_or(|class| classes.contains(&class)), "{about}: {exchange:#?}");
        }
        let warmed = after.exchanges.iter().filter(|exchange| exchange.phase == Phase::Warmup);
        assert_eq!(warmed.count() > 0, warmup.is_empty(), "{about}");
    });
}

#[test]
fn a_signal_before_the_run_leaves_nothing() {
    for signal in SIGNALS {
        let about = format!("SIG{signal} while the engine answers no request");
        let raw = Raw::routing([("GET", vec![vec![wait(600_000)]])]);
        let (place, listening) = (TempDir::new().unwrap(), raw.listen());
        let mut process =
            Process::start(&mut random(&listening.url, place.path(), "--num-prompts 3"));
        process.until(&about, |_| !raw.requests().is_empty());
        process.signal(signal);
        refused(&about, place.path(), &process.end(), 130, "");

        let about = format!("SIG{signal} while a file is read");
        let place = TempDir::new().unwrap();
        let file = place.path().join(GIVEN);
        assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
        let mut command = runner();
        command.args(words("--backend vllm --model mock --dataset-name sharegpt --base-url"));
        command.arg(&listening.url).arg("--dataset-path").arg(&file);
        let mut process = Process::start(command.current_dir(place.path()));
        // Opening it for writing succeeds as soon as somebody reads it.
        let mut writer = None;
        process.until(&about, |_| {
            let mut options = std::fs::OpenOptions::new();
            options.write(true).custom_flags(nix::libc::O_NONBLOCK);
            writer = options.open(&file).ok();
            writer.is_some()
        });
        process.signal(signal);
        process.until_gone();
        drop(writer);
        let ended = process.end();
        assert!(matches!(ended.code, None | Some(130)), "{about}: {ended:#?}");
        no_panic(&about, &ended);
        assert!(!place.path().join(RUNS).exists(), "{about}");
    }
}

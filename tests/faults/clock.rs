//! Clocks that are set while a run goes on. No figure may depend on the time of day, and no clock's
//! zero matters.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use model::units::Nanos;
use runs::folder::RunFolder;
use tempfile::TempDir;

use super::check::{Ending, at_once, check, no_faster};
use crate::endings::{RUNS, line};
use crate::support::lacking::{self, may_set_clocks};
use crate::support::process::{Mock, Process, only_run, run, runner, runner_behind};

/// A library that sets the time of day there and back each time that it is read, for a process that
/// loads it first.
const SETS_THE_CLOCK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t id, struct timespec *at) {
    static int (*system_clock)(clockid_t, struct timespec *);
    if (!system_clock) system_clock = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int done = system_clock(id, at);
    const char *step = getenv("STEP_SECONDS");
    if (done == 0 && id == CLOCK_REALTIME && step) {
        static long readings;
        if (__atomic_add_fetch(&readings, 1, __ATOMIC_RELAXED) % 2) at->tv_sec += atol(step);
    }
    return done;
}
"#;

/// Compiles it; absent where there is no compiler.
fn library(folder: &TempDir) -> Option<PathBuf> {
    let (source, library) = (folder.path().join("clock.c"), folder.path().join("clock.so"));
    std::fs::write(&source, SETS_THE_CLOCK).unwrap();
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl");
    let compiled = compile.stderr(Stdio::null()).status();
    compiled.is_ok_and(|status| status.success()).then_some(library)
}

/// The size of a step, and the timestamps in use. The kernel's timestamps have the true time, which
/// the program cannot know here. So steps that could be the age of a packet are tried with the
/// program's timestamps alone.
const STEPS: [(&str, &str); 6] = [
    ("3600", "kernel"),
    ("-3600", "kernel"),
    ("-100000000", "kernel"),
    ("20", "user"),
    ("-20", "user"),
    ("100000000", "user"),
];

/// True if the folder's name, which has the time of day, is not of this day, or the run ended
/// before it began.
fn is_off(place: &Path) -> bool {
    let status = RunFolder::at(&only_run(&place.join(RUNS)).unwrap()).status().unwrap().unwrap();
    let [started, ended] =
        [status.started, status.ended].map(|at| at.parse::<jiff::Timestamp>().unwrap());
    (ended - started).get_seconds().abs() > 10
        || (started - jiff::Timestamp::now()).total(jiff::Unit::Second).unwrap().abs() > 3_000.0
}

#[test]
fn a_clock_that_is_set_during_a_run_moves_no_figure() {
    let folder = TempDir::new().unwrap();
    let Some(library) = library(&folder) else {
        lacking::leave_out(&lacking::C_COMPILER);
        return;
    };
    let seen = AtomicUsize::new(0);
    at_once(&STEPS, 3, |(step, timestamps)| {
        let about = format!("{step} s, {timestamps}");
        let (place, mock) =
            (TempDir::new().unwrap(), Mock::logging(&["--ttft", "40ms", "--itl", "5ms"]));
        let flags = format!(
            "--concurrency 1 --num-prompts 12 --random-output-len 6 --timestamps {timestamps}"
        );
        let mut command = line(runner(), &mock, place.path(), &flags);
        command.env("LD_PRELOAD", &library).env("STEP_SECONDS", step);
        let began = Instant::now();
        let ended = run(&mut command);
        let took = Nanos(began.elapsed().as_nanos() as u64);
        let log = mock.end();
        let after = check(&about, place.path(), &ended, Ending::Finished, Some(&log));
        assert_eq!(after.summary.requests.successful, 12, "{about}");
        no_faster(&about, &after.exchanges, &log);
        let (first, last) = (&after.exchanges[0], &after.exchanges[11]);
        let span = last.ended.unwrap().since(first.due);
        assert!(span <= took, "{about}: {span:?} of {took:?}");
        let least = 12.0 * (40.0 + 5.0 * 5.0);
        assert!(span.as_millis_f64() >= least, "{about}: {span:?}");
        seen.fetch_add(usize::from(is_off(place.path())), Ordering::Relaxed);
    });
    assert!(seen.into_inner() > 0, "the program saw the clock being set");
}

/// A machine that has been up for years, or for no time at all.
#[test]
fn the_zero_of_a_clock_does_not_matter() {
    for offset in ["1000000000", "100"] {
        let about = format!("{offset} s");
        if !may_set_clocks() {
            return;
        }
        let shell = format!("exec unshare --time --monotonic {offset} --boottime {offset} \"$@\"");
        let (place, mock) =
            (TempDir::new().unwrap(), Mock::logging(&["--ttft", "20ms", "--itl", "2ms"]));
        let flags = "--concurrency 1 --num-prompts 4 --random-output-len 6";
        let ended = run(&mut line(runner_behind(&shell), &mock, place.path(), flags));
        let log = mock.end();
        let after = check(&about, place.path(), &ended, Ending::Finished, Some(&log));
        assert_eq!(after.summary.requests.successful, 4, "{about}");
        no_faster(&about, &after.exchanges, &log);
    }
}

/// Runs that begin in the same second, as after a clock was set back, have folders of their own.
#[test]
fn runs_of_one_instant_have_folders_of_their_own() {
    let (place, mock) = (TempDir::new().unwrap(), Mock::start(&["--ttft", "2ms", "--itl", "1ms"]));
    let flags = "--num-prompts 3 --random-output-len 4";
    let started = |_| Process::start(&mut line(runner(), &mock, place.path(), flags));
    let processes: Vec<Process> = (0..6).map(started).collect();
    let printed: Vec<String> =
        processes.into_iter().map(|process| process.end().with_code(0).stdout).collect();
    let mut drawn: Vec<String> = std::fs::read_dir(place.path().join(RUNS))
        .unwrap()
        .map(|folder| run(runner().arg("report").arg(folder.unwrap().path())).with_code(0).stdout)
        .collect();
    drawn.sort();
    let mut printed = printed;
    printed.sort();
    assert_eq!(drawn, printed);
}

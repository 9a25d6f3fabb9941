//! Disks that are full, read-only or slow, and a folder that is removed while the run writes into
//! it.

use std::path::{Path, PathBuf};
use std::process::Command;

use mock::{End, Truth};
use tempfile::TempDir;

use super::check::{
    Ending, agrees, at_once, check, no_panic, nothing_stays_behind, readable, refused,
};
use crate::endings::{RUNS, begin, line};
use crate::support::lacking::{self, may_mount};
use crate::support::process::{Exit, Mock, Process, only_run, run, runner, runner_behind};

const SPEED: [&str; 4] = ["--ttft", "2ms", "--itl", "1ms"];

/// The binary with a small file system for its runs, which are copied to another folder at its end.
fn on_disk(options: &str, keep: &Path) -> Command {
    let shell = format!(
        "mkdir {RUNS} && exec unshare -m sh -c 'mount -t tmpfs -o {options} none {RUNS} && {{ \"$@\"; code=$?; \
         cp -r {RUNS} {keep}; exit $code; }}' sh \"$@\"",
        keep = keep.display()
    );
    runner_behind(&shell)
}

/// Checks the remains of a run that found no room: readable as far as they go, and no more than the
/// engine answered.
fn full(about: &str, ended: &Exit, place: &Path, keep: &Path, log: &[Truth]) {
    assert_eq!(ended.code, Some(3), "{about}: {ended:#?}");
    no_panic(about, ended);
    assert!(ended.stderr.contains("No space left on device"), "{about}: {ended:#?}");
    nothing_stays_behind(about, place);
    let Some(folder) = only_run(&keep.join(RUNS)) else {
        assert_eq!(log.len(), 0, "{about}: it begins nothing that it cannot keep");
        return;
    };
    let after = readable(about, &folder);
    agrees(about, &after.exchanges, log, Ending::Killed);
    let successes = format!("{:<40} {}\n", "Successful requests:", after.exchanges.len());
    assert!(ended.stdout.contains(&successes), "{about}: {ended:#?}");
}

#[test]
fn a_full_disk_keeps_the_records_that_fit() {
    if !may_mount() {
        return;
    }
    // A page at a time: from no room for the plan to room for all but the summary.
    let pages: Vec<usize> = (1..12).collect();
    let fitted = std::sync::Mutex::new(0);
    at_once(&pages, 3, |pages| {
        let about = format!("{pages} pages");
        let (place, keep) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let mock = Mock::logging(&SPEED);
        let command = on_disk(&format!("size={}k", 4 * pages), keep.path());
        let flags = "--concurrency 50 --num-prompts 100 --random-output-len 4";
        let ended = run(&mut line(command, &mock, place.path(), flags));
        let log = mock.end();
        match ended.code {
            Some(0) => {
                std::fs::remove_dir(place.path().join(RUNS)).unwrap();
                check(&about, keep.path(), &ended, Ending::Finished, Some(&log));
                *fitted.lock().unwrap() += 1;
            }
            _ => full(&about, &ended, place.path(), keep.path(), &log),
        }
    });
    assert!(fitted.into_inner().unwrap() < pages.len() / 2, "most are full");
}

#[test]
fn a_read_only_disk_is_reported_before_a_request() {
    if !may_mount() {
        return;
    }
    let (place, keep, mock) =
        (TempDir::new().unwrap(), TempDir::new().unwrap(), Mock::logging(&SPEED));
    let command = on_disk("ro", keep.path());
    let ended = run(&mut line(command, &mock, place.path(), "--num-prompts 5"));
    refused("read-only", place.path(), &ended, 3, "Read-only file system");
    assert!(ended.stderr.contains("give a writable folder with --output-dir"), "{ended:#?}");
    assert_eq!(mock.end(), []);
}

/// No file may outgrow 1.2 MB, which is more than a component's memory: the records end there, and
/// the status says why.
#[test]
fn a_file_at_its_size_limit_ends_the_run_with_its_records() {
    let (place, mock) = (TempDir::new().unwrap(), Mock::logging(&SPEED));
    let limited = runner_behind("ulimit -f 2400; exec \"$@\"");
    let flags = "--concurrency 50 --num-prompts 100000 --random-output-len 100";
    let ended = run(&mut line(limited, &mock, place.path(), flags));
    let how = Ending::Failed(3, "records.jsonl.zst`: File too large");
    let after = check("limited", place.path(), &ended, how, None);
    agrees("limited", &after.exchanges, &mock.end(), Ending::Killed);
    assert!(after.summary.requests.successful > 0);
}

/// Other ways in which no folder can be made.
#[test]
fn a_place_that_is_no_folder_is_reported_before_a_request() {
    let (place, mock) = (TempDir::new().unwrap(), Mock::logging(&SPEED));
    for output in ["/dev/null", "/dev/null/runs", "/proc/runs"] {
        let flags = format!("--num-prompts 5 --output-dir {output}");
        let ended = run(&mut line(runner(), &mock, place.path(), &flags));
        refused(output, place.path(), &ended, 3, "--output-dir");
    }
    assert_eq!(mock.end(), []);
}

#[test]
fn a_folder_removed_during_the_run_is_reported_and_not_remade() {
    let (place, mock) = (TempDir::new().unwrap(), Mock::logging(&SPEED));
    let flags = "--request-rate 50 --num-prompts 100 --random-output-len 4";
    let process = begin(&mock, place.path(), flags);
    std::fs::remove_dir_all(place.path().join(RUNS)).unwrap();
    let ended = process.end();
    let log = mock.end();
    refused("removed", place.path(), &ended, 3, "records.jsonl.zst`: No such file or directory");
    assert_eq!(log.iter().filter(|truth| truth.end == End::Whole).count(), 100, "the load goes on");
}

/// A control group whose threads can be stopped, each for itself. Removed when dropped, with its
/// threads going on.
struct Freezer(PathBuf);

impl Freezer {
    fn new() -> Option<Self> {
        let group = format!("/sys/fs/cgroup/freezer/runner-test-{}", std::process::id());
        std::fs::create_dir(&group).ok()?;
        Some(Freezer(group.into()))
    }

    fn freeze(&self, thread: &str) {
        std::fs::write(self.0.join("tasks"), thread).unwrap();
        std::fs::write(self.0.join("freezer.state"), "FROZEN").unwrap();
    }

    fn thaw(&self) {
        std::fs::write(self.0.join("freezer.state"), "THAWED").unwrap();
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        self.thaw();
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn thread(process: &Process, name: &str) -> String {
    let threads = std::fs::read_dir(format!("/proc/{}/task", process.id())).unwrap();
    let mut threads = threads.map(|thread| thread.unwrap().path());
    let named = |path: &PathBuf| {
        std::fs::read_to_string(path.join("comm")).is_ok_and(|is| is.trim() == name)
    };
    let thread = threads.find(named).unwrap_or_else(|| panic!("no thread `{name}`"));
    thread.file_name().unwrap().to_str().unwrap().to_owned()
}

/// A write that blocks stops the thread that writes: so that thread is stopped, for as long as
/// others go on.
#[test]
fn a_disk_that_is_slow_delays_records_and_nothing_else() {
    let Some(freezer) = Freezer::new() else {
        lacking::leave_out(&lacking::FREEZER);
        return;
    };
    let (place, mock) = (TempDir::new().unwrap(), Mock::logging(&SPEED));
    let flags = "--request-rate 100 --num-prompts 400 --random-output-len 4";
    let mut process = begin(&mock, place.path(), flags);
    // Dropped before the process, which cannot end while one of its threads is frozen.
    let freezer = freezer;
    freezer.freeze(&thread(&process, "record"));
    let tokens = || mock.metric("vllm:generation_tokens_total");
    let before = tokens();
    process.until("the load goes on", |_| tokens() >= before + 4.0 * 150.0);
    freezer.thaw();
    let ended = process.end();
    let log = mock.end();
    let after = check("slow", place.path(), &ended, Ending::Finished, Some(&log));
    assert_eq!(after.summary.requests.successful, 400);
}

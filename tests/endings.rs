//! However a run ends, its measurements are on disk: real processes, interrupted, killed, starved.

#[cfg(debug_assertions)]
mod panics;
mod phases;
mod stops;

use std::path::Path;
use std::process::{Command, Stdio};

use model::exchange::{Class, Exchange, Outcome, Phase};
use runs::folder::RunFolder;
use tempfile::TempDir;

use crate::support::lacking;
use crate::support::process::{
    Exit, Mock, Process, has_records, only_run, run, runner, runner_behind, words,
};

pub const RUNS: &str = "runs";

/// A run of the random dataset against a mock engine.
pub fn line(mut command: Command, mock: &Mock, folder: &Path, flags: &str) -> Command {
    let line = "--backend vllm --dataset-name random --random-input-len 8 --warmup-requests 0";
    command.args(words(line)).args(words(flags));
    command.args(["--base-url", &mock.url]).current_dir(folder);
    command
}

/// Starts a run against a mock engine, and waits until records are on disk.
#[track_caller]
pub fn begin(mock: &Mock, folder: &Path, flags: &str) -> Process {
    let mut process = Process::start(&mut line(runner(), mock, folder, flags));
    process.until("records are flushed", |_| has_records(&folder.join(RUNS)));
    process
}

pub fn exchanges(folder: &Path) -> Vec<Exchange> {
    RunFolder::at(&only_run(&folder.join(RUNS)).unwrap()).exchanges().unwrap()
}

pub fn report(folder: &Path) -> Exit {
    report_with(folder, &[])
}

pub fn report_with(folder: &Path, flags: &[&str]) -> Exit {
    let run_folder = only_run(&folder.join(RUNS)).unwrap();
    run(runner().arg("report").arg(run_folder).args(flags)).with_code(0)
}

/// The failures' classes; absent for a success.
pub fn class(exchange: &Exchange) -> Option<Class> {
    match &exchange.outcome {
        Outcome::Ok => None,
        Outcome::Incomplete { class, .. } => Some(*class),
    }
}

/// The number of exchanges with this class, or of successes.
pub fn count(exchanges: &[Exchange], expected: Option<Class>) -> usize {
    exchanges.iter().filter(|exchange| class(exchange) == expected).count()
}

#[test]
fn one_interrupt_finishes_requests_in_flight() {
    for (signal, load) in [("INT", "--concurrency 4"), ("TERM", "--request-rate 100")] {
        let (folder, mock) =
            (TempDir::new().unwrap(), Mock::start(&["--ttft", "20ms", "--itl", "5ms"]));
        let flags = format!("--num-prompts 100000 --random-output-len 20 {load}");
        let process = begin(&mock, folder.path(), &flags);
        process.signal(signal);
        let ended = process
            .end()
            .with_stderr(130, "interrupted: waiting for the requests in flight")
            .with_stdout(130, "suspect interrupted: the run was stopped");
        let exchanges = exchanges(folder.path());
        let answered = count(&exchanges, None);
        assert!(answered > 0);
        // One may have been due at the very moment of the interrupt.
        let not_sent = count(&exchanges, Some(Class::NotSent));
        assert_eq!(
            answered + not_sent,
            exchanges.len(),
            "everything that was sent was answered: {exchanges:#?}"
        );
        assert!(not_sent == 0 || load.contains("rate"), "{exchanges:#?}");
        assert!(
            exchanges
                .iter()
                .all(|e| e.phase == Phase::Measure && e.ended.is_some() == e.sent.is_some())
        );
        let indices: Vec<u64> = exchanges.iter().map(|e| e.index).collect();
        assert_eq!(indices, (0..exchanges.len() as u64).collect::<Vec<_>>(), "none is missing");
        assert_eq!(report(folder.path()).stdout, ended.stdout);
    }
}

#[test]
fn a_cap_leaves_due_requests_unsent() {
    let (folder, mock) =
        (TempDir::new().unwrap(), Mock::start(&["--ttft", "1ms", "--itl", "500ms"]));
    let flags = "--num-prompts 500 --random-output-len 4 --request-rate 1000 --max-concurrency 2";
    let process = begin(&mock, folder.path(), flags);
    process.signal("INT");
    let ended = process.end().with_code(130);
    let exchanges = exchanges(folder.path());
    let (answered, not_sent) = (count(&exchanges, None), count(&exchanges, Some(Class::NotSent)));
    assert!(answered > 0 && not_sent > 0, "{answered} answered, {not_sent} not sent");
    assert_eq!(answered + not_sent, exchanges.len());
    assert!(ended.stdout.contains("Failed requests (not-sent):"), "{ended:#?}");
    assert_eq!(report(folder.path()).stdout, ended.stdout);
}

#[test]
fn a_second_interrupt_stops_at_once() {
    for signal in ["INT", "TERM"] {
        let (folder, mock) =
            (TempDir::new().unwrap(), Mock::start(&["--ttft", "1ms", "--itl", "10m"]));
        let flags = "--concurrency 4 --num-prompts 1000 --random-output-len 50";
        let mut process = Process::start(&mut line(runner(), &mock, folder.path(), flags));
        process.until("four are in flight", |_| mock.metric("vllm:num_requests_running") == 4.0);
        process.signal(signal);
        process.until("the first one is received", |p| {
            p.stderr().contains("interrupt again to stop at once")
        });
        process.signal(signal);
        let ended = process
            .end()
            .with_stderr(130, "stopping: ")
            .with_stdout(130, "Failed requests (interrupted):           4\n");
        let exchanges = exchanges(folder.path());
        assert_eq!(count(&exchanges, Some(Class::Interrupted)), 4);
        assert_eq!(exchanges.len(), 4);
        assert!(exchanges.iter().all(|e| e.sent.is_some() && e.ended.is_some()), "{exchanges:#?}");
        assert_eq!(report(folder.path()).stdout, ended.stdout);
    }
}

#[test]
fn a_killed_run_can_be_reported() {
    let (folder, mock) = (TempDir::new().unwrap(), Mock::start(&["--ttft", "1ms", "--itl", "1ms"]));
    let flags = "--request-rate 200 --num-prompts 100000 --random-output-len 5";
    let process = begin(&mock, folder.path(), flags);
    process.signal("KILL");
    let ended = process.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (None, ""));
    let exchanges = exchanges(folder.path());
    assert!(count(&exchanges, None) > 0);
    let report = report(folder.path());
    assert!(report.stderr.contains("did not finish"), "{report:#?}");
    let successes = format!("{:<40} {}\n", "Successful requests:", exchanges.len());
    assert!(report.stdout.contains(&successes), "{report:#?}");
    assert!(report.stdout.contains("suspect interrupted"), "{report:#?}");
}

#[test]
fn a_server_that_dies_leaves_failures_by_class() {
    let (folder, mock) =
        (TempDir::new().unwrap(), Mock::start(&["--ttft", "5ms", "--itl", "20ms"]));
    let flags = "--request-rate 100 --num-prompts 300 --random-output-len 10";
    let process = begin(&mock, folder.path(), flags);
    mock.kill();
    let ended = process.end().with_code(0);
    let exchanges = exchanges(folder.path());
    assert_eq!(exchanges.len(), 300);
    let answered = count(&exchanges, None);
    let by_class: Vec<usize> = [Class::Refused, Class::Reset, Class::Truncated]
        .map(|class| count(&exchanges, Some(class)))
        .into();
    assert!(answered > 0 && by_class[0] > 0, "{answered} {by_class:?}");
    assert_eq!(answered + by_class.iter().sum::<usize>(), 300, "{by_class:?}");
    let connect = format!("{:<40} {}\n", "Failed requests (refused):", by_class[0]);
    assert!(ended.stdout.contains(&connect), "{ended:#?}");
    assert_eq!(report(folder.path()).stdout, ended.stdout);
}

#[test]
fn a_dataset_without_samples_leaves_an_error_and_no_result() {
    let mock = Mock::start(&["--ttft", "1ms", "--itl", "1ms"]);
    for dataset in ["sharegpt", "conversation", "custom", "trace"] {
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join("empty.json"), "[]").unwrap();
        let mut command = runner();
        command
            .args(["run", "--backend", "vllm", "--dataset-name", dataset])
            .args(["--dataset-path", "empty.json", "--num-prompts", "5"])
            .args(["--base-url", &mock.url]);
        let ended = run(command.current_dir(folder.path())).with_code(3);
        assert_eq!(ended.stdout, "", "{dataset}");
        assert!(ended.stderr.contains("(`data` is empty.json)"), "{ended:#?}");
        assert_eq!(only_run(&folder.path().join(RUNS)), None, "{dataset}");
    }
}

/// A file system of 64 KiB, as long as this lives.
struct SmallDisk<'p>(&'p Path);

impl<'p> SmallDisk<'p> {
    fn mount(path: &'p Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=64k", "none"]).arg(path);
        mount.stderr(Stdio::null());
        mount.status().is_ok_and(|status| status.success()).then(|| SmallDisk(path))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_ends_the_run_in_words() {
    let (folder, mock) = (TempDir::new().unwrap(), Mock::start(&["--ttft", "1ms", "--itl", "1ms"]));
    let runs = folder.path().join(RUNS);
    std::fs::create_dir(&runs).unwrap();
    let disk = SmallDisk::mount(&runs);
    // If only root may mount a disk, no file may outgrow 1.2 MB, which is more than a component's
    // memory.
    let (command, cause) = match disk {
        Some(_) => (runner(), "No space left on device"),
        None => (runner_behind("ulimit -f 2400; exec \"$@\""), "File too large"),
    };
    let flags = "--concurrency 50 --num-prompts 100000 --random-output-len 100";
    let ended = run(&mut line(command, &mock, folder.path(), flags))
        .with_stderr(3, &format!("records.jsonl.zst`: {cause}"))
        .with_stderr(3, "everything written before stays readable");
    let kept = count(&exchanges(folder.path()), None);
    assert!(kept > 0);
    let successes = format!("{:<40} {kept}\n", "Successful requests:");
    assert!(ended.stdout.contains(&successes), "{ended:#?}");
    assert!(report(folder.path()).stdout.contains(&successes));
}

#[test]
fn nobody_who_listens_is_no_reason_to_panic() {
    for pipes in ["| head -n 1", "2>&1 >/dev/null | true", "2>&1 | true"] {
        let (folder, mock) =
            (TempDir::new().unwrap(), Mock::start(&["--ttft", "50ms", "--itl", "1ms"]));
        let shell = format!("{{ \"$@\"; echo $? > code; }} {pipes}");
        let flags = "--num-prompts 2 --random-output-len 4";
        run(&mut line(runner_behind(&shell), &mock, folder.path(), flags));
        let code = std::fs::read_to_string(folder.path().join("code")).unwrap();
        assert_eq!(code, "0\n", "{pipes}");
        assert_eq!(count(&exchanges(folder.path()), None), 3 - 1);
    }
}

#[test]
fn ten_thousand_at_once_are_all_answered() {
    let allowed = rlimit::Resource::NOFILE.get_hard().unwrap();
    if allowed < 10_200 {
        lacking::leave_out(&lacking::OPEN_FILES);
        return;
    }
    let (folder, mock) = (TempDir::new().unwrap(), Mock::start(&["--ttft", "2s", "--itl", "10ms"]));
    let flags = "--num-prompts 10000 --random-output-len 3";
    let ended = run(&mut line(runner(), &mock, folder.path(), flags))
        .with_stdout(0, "Successful requests:                     10000\n")
        .with_stdout(0, "Peak concurrent requests:                10000\n");
    assert!(!ended.stderr.contains("warning"), "{}", ended.stderr);
}

#[test]
fn too_few_descriptors_are_reported_and_recorded() {
    let (folder, mock) = (TempDir::new().unwrap(), Mock::start(&["--ttft", "1s", "--itl", "1ms"]));
    let starved = runner_behind("ulimit -n 256; exec \"$@\"");
    let flags = "--num-prompts 500 --random-output-len 3";
    let ended = run(&mut line(starved, &mock, folder.path(), flags)).with_code(0);
    for part in [
        "500 connections",
        "only 256 file descriptors are allowed and the limit cannot be raised",
        "ulimit -Hn",
        "--max-concurrency 128",
    ] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    let exchanges = exchanges(folder.path());
    let (answered, failed) = (count(&exchanges, None), count(&exchanges, Some(Class::Refused)));
    assert!(answered > 128 && failed > 128, "{answered} answered, {failed} failed");
    assert_eq!(answered + failed, 500);
    assert!(ended.stdout.contains("refused: Too many open files"), "{}", ended.stdout);
    let capped = runner_behind("ulimit -n 256; exec \"$@\"");
    let elsewhere = TempDir::new().unwrap();
    let flags = format!("{flags} --max-concurrency 128");
    let ended = run(&mut line(capped, &mock, elsewhere.path(), &flags)).with_code(0);
    assert!(!ended.stderr.contains("warning"), "the advice helps: {}", ended.stderr);
    assert_eq!(count(&crate::endings::exchanges(elsewhere.path()), None), 500);
}

#[test]
fn too_little_memory_ends_in_words() {
    let mock = Mock::start(&["--ttft", "1ms", "--itl", "1ms"]);
    let flags = "--num-prompts 20 --random-output-len 3 --request-rate 100";
    let mut refused = 0;
    // From too little for any plugin to enough for all instances, in KiB of addresses.
    for limit in [1_u64 << 20, 4 << 20, 8 << 20, 12 << 20, 16 << 20, 32 << 20] {
        let folder = TempDir::new().unwrap();
        let starved = runner_behind(&format!("ulimit -v {limit}; exec \"$@\""));
        let ended = run(&mut line(starved, &mock, folder.path(), flags));
        assert!(
            matches!(ended.code, Some(0 | 3 | 4)) && !ended.stderr.contains("panicked"),
            "{limit}: {ended:#?}"
        );
        if ended.code != Some(0) {
            refused += 1;
            assert!(ended.stderr.contains("error: "), "{limit}: {ended:#?}");
        }
    }
    assert!(refused > 0, "a GiB of addresses is too little");
}

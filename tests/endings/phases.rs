//! An interrupt while the run waits for no measured reply: for a connection, an answer about the
//! server itself, a plugin that does not return. It ends the run soon, and keeps the measurements.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use super::{RUNS, count, exchanges, report_with};
use crate::hostile_guests::fixture::{DATASET, SCORER, components};
use crate::support::process::{Exit, Mock, Process, has_records, only_run, runner};
use crate::support::raw::{Act, Raw, wait, whole};
use crate::support::results::random;
use runs::record;

fn silence() -> Vec<Act> {
    vec![wait(3_600_000)]
}

fn start(url: &str, folder: &Path, flags: &str) -> Process {
    let all = "--model mock --random-input-len 8 --random-output-len 2 --num-prompts 10 \
               --warmup-requests 1";
    Process::start(&mut random(url, folder, &format!("{all} {flags}")))
}

fn until_requests(process: &mut Process, server: &Arc<Raw>, route: &str, times: usize) {
    process.until("the requests come", |_| {
        let requests = server.requests();
        requests.iter().filter(|r| r.starts_with(route)).count() == times
    });
}

fn interrupted(process: Process) -> Exit {
    process.signal("INT");
    process.end().with_code(130)
}

#[test]
fn a_cache_that_is_never_flushed() {
    let (folder, route) = (TempDir::new().unwrap(), "POST /reset_prefix_cache");
    let server = Raw::routing([(route, vec![silence()])]);
    let listening = server.listen();
    let mut process = start(&listening.url, folder.path(), "--flush-cache");
    until_requests(&mut process, &server, route, 1);
    interrupted(process);
    assert_eq!(exchanges(folder.path()).len(), 1, "the warm-up's");
}

#[test]
fn metrics_that_never_come() {
    let (folder, route) = (TempDir::new().unwrap(), "GET /metrics");
    let server = Raw::routing([(route, vec![silence()])]);
    let listening = server.listen();
    let mut process = start(&listening.url, folder.path(), "--server-metrics --server-series none");
    until_requests(&mut process, &server, route, 1);
    interrupted(process);
    assert_eq!(exchanges(folder.path()).len(), 1, "the warm-up's");
}

/// The measurement is over: nothing of it is lost, and the report names the unreadable metrics.
#[test]
fn metrics_that_come_only_once() {
    let (folder, route) = (TempDir::new().unwrap(), "GET /metrics");
    let first = whole("200 OK", "vllm:prompt_tokens_total 5\n");
    let server = Raw::routing([(route, vec![first, silence()])]);
    let listening = server.listen();
    let mut process =
        start(&listening.url, folder.path(), "--server-metrics --server-series none --details");
    until_requests(&mut process, &server, route, 2);
    let ended = interrupted(process);
    assert_eq!(count(&exchanges(folder.path()), None), 11);
    assert!(ended.stdout.contains("the run was stopped before it answered"), "{ended:#?}");
    let again = report_with(folder.path(), &["--details"]);
    assert_eq!(again.stdout, ended.stdout);
}

fn scenario(folder: &Path, url: &str, dataset: &str, more: &str) -> Process {
    let path = folder.join("hangs.toml");
    let text = format!(
        "name = 'hangs'\n\
         target = {{ base-url = '{url}', model = 'mock' }}\n\
         [backend]\nplugin = 'backends/vllm.wasm'\n\
         [dataset]\nplugin = '{DATASET}'\nconfig = {{ {dataset} }}\n\
         [sandbox]\ndataset-call = '1h'\nscorer-call = '1h'\n\
         [load]\nconcurrency = 2\nwarmup = 0\n{more}"
    );
    std::fs::write(&path, text).unwrap();
    let mut command = runner();
    command.arg("run").arg(path).current_dir(folder);
    Process::start(command.env("RUNNER_PLUGIN_PATH", components()))
}

/// Before the first request is ready, and while others are answered.
#[test]
fn a_dataset_that_does_not_return() {
    for (at, measured) in [(0, false), (400, true)] {
        let (folder, mock) = (TempDir::new().unwrap(), Mock::start(&["--itl", "1ms"]));
        let dataset = format!("call = 'next', misbehave = 'loop', only-at = {at}");
        let mut process = scenario(folder.path(), &mock.url, &dataset, "requests = 20000\n");
        if measured {
            process.until("records are flushed", |_| has_records(&folder.path().join(RUNS)))
        } else {
            process.until("the run has begun", |_| {
                let run = only_run(&folder.path().join(RUNS));
                run.is_some_and(|run| run.join(record::FILE).exists())
            })
        }
        interrupted(process);
        assert_eq!(count(&exchanges(folder.path()), None) > 0, measured);
        assert!(only_run(&folder.path().join(RUNS)).is_some());
    }
}

/// Every answer is on disk when they are judged.
#[test]
fn a_scorer_that_does_not_return() {
    let (folder, mock) = (TempDir::new().unwrap(), Mock::start(&["--itl", "1ms"]));
    let load = format!(
        "requests = 6\n[[scorers]]\nplugin = '{SCORER}'\n\
         config = {{ call = 'score', misbehave = 'loop' }}\n"
    );
    let mut process = scenario(folder.path(), &mock.url, "", &load);
    process.until("all are answered", |_| {
        let metrics = mock.metrics();
        let mut finished =
            metrics.lines().filter(|line| line.starts_with("vllm:request_success_total"));
        finished.any(|line| line.ends_with(" 6") || line.ends_with(" 6.0"))
    });
    process.signal("INT");
    process.until("it is received", |process| process.stderr().contains("interrupted: "));
    let judging = "interrupted: reporting without counting and judging the answers";
    if !process.stderr().contains(judging) {
        // It came before the last reply was taken.
        std::thread::sleep(Duration::from_secs(2));
        process.signal("INT");
    }
    process.end().with_stderr(130, judging);
    assert_eq!(count(&exchanges(folder.path()), None), 6);
}

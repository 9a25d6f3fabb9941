//! An interrupt in every phase of a run: it ends soon, however much is planned and whatever it
//! waits for.

use tempfile::TempDir;

use super::{RUNS, begin, count, exchanges, line, report};
use crate::support::process::{Exit, Mock, Process, has_records, only_run, runner_behind};
use crate::support::raw::{Raw, wait};
use crate::support::results::random;
use crate::support::server::nobody;
use model::exchange::Class;

fn tells_of_an_interrupt(ended: &Exit) {
    assert!(ended.stdout.contains("suspect interrupted: the run was stopped"), "{ended:#?}");
}

/// Ten million requests are due at once, and a handful of them can be in flight.
#[test]
fn millions_that_were_due_are_counted_and_not_recorded() {
    let (folder, mock) = (TempDir::new().unwrap(), Mock::start(&["--ttft", "1ms", "--itl", "1ms"]));
    let flags = "--num-prompts 10000000 --random-output-len 2 --max-concurrency 4";
    let process = begin(&mock, folder.path(), flags);
    process.signal("INT");
    let ended = process.end().with_code(130);
    tells_of_an_interrupt(&ended);
    let exchanges = exchanges(folder.path());
    let answered = count(&exchanges, None);
    let not_sent = count(&exchanges, Some(Class::NotSent));
    assert!(answered > 0 && not_sent <= 1, "{answered} {not_sent}");
    let all = format!("{:<40} {}\n", "Failed requests (not-sent):", 10_000_000 - answered);
    assert!(ended.stdout.contains(&all), "{all}: {ended:#?}");
    let status = only_run(&folder.path().join(RUNS)).unwrap().join("status.json");
    let status = std::fs::read_to_string(status).unwrap();
    let unsent = format!("\"unsent\": {}", 10_000_000 - answered - not_sent);
    assert!(status.contains(&unsent), "{status}");
    assert_eq!(report(folder.path()).stdout, ended.stdout);
}

#[test]
fn a_hangup_is_an_interrupt() {
    let (folder, mock) = (TempDir::new().unwrap(), Mock::start(&["--ttft", "5ms", "--itl", "1ms"]));
    let flags = "--num-prompts 100000 --random-output-len 5 --request-rate 100";
    let process = begin(&mock, folder.path(), flags);
    process.signal("HUP");
    let ended = process.end().with_code(130);
    tells_of_an_interrupt(&ended);
    let own = only_run(&folder.path().join(RUNS)).unwrap();
    let status = std::fs::read_to_string(own.join("status.json")).unwrap();
    assert!(status.contains("\"interrupted\": true"), "{status}");
}

/// As behind `nohup`.
#[test]
fn a_hangup_that_is_ignored_stays_ignored() {
    let (folder, mock) = (TempDir::new().unwrap(), Mock::start(&["--ttft", "5ms", "--itl", "1ms"]));
    let flags = "--num-prompts 300 --random-output-len 5 --request-rate 200";
    let behind = runner_behind("trap '' HUP; exec \"$@\"");
    let mut process = Process::start(&mut line(behind, &mock, folder.path(), flags));
    process.until("records are flushed", |_| has_records(&folder.path().join(RUNS)));
    process.signal("HUP");
    process.end().with_code(0);
    assert_eq!(count(&exchanges(folder.path()), None), 300);
}

#[test]
fn thinking_users_do_not_hold_a_run_up() {
    let (folder, mock) = (TempDir::new().unwrap(), Mock::start(&["--ttft", "1ms", "--itl", "1ms"]));
    let flags = "--num-prompts 100 --random-output-len 2 --concurrency 3 --think-time 10m";
    let process = begin(&mock, folder.path(), flags);
    process.signal("TERM");
    process.end().with_code(130);
    let exchanges = exchanges(folder.path());
    assert_eq!((exchanges.len(), count(&exchanges, None)), (3, 3));
}

/// Any wait before the first request: the server is not ready, does not list its models, or never
/// flushes its cache.
#[test]
fn waiting_for_a_server_ends_with_an_interrupt() {
    let no_one = nobody();
    let ready = "--ready-check-timeout-sec 600";
    for (is_away, flags) in [(true, ready), (false, ""), (false, ready)] {
        let silent = Raw::routing([("GET", vec![vec![wait(3_600_000)]])]);
        let listening = silent.listen();
        let url = if is_away { &no_one } else { &listening.url };
        let folder = TempDir::new().unwrap();
        let flags = format!("--num-prompts 10 {flags}");
        let mut process = Process::start(&mut random(url, folder.path(), &flags));
        process.until("it waits", |process| {
            process.stderr().contains("waiting for http") || !silent.requests().is_empty()
        });
        process.signal("INT");
        let ended = process.end();
        assert_eq!(ended.code, Some(130), "{url} {flags}: {ended:#?}");
    }
}

/// The first interrupt lets the warm-up's requests end, the second gives them up; then nothing is
/// measured.
#[test]
fn a_warm_up_is_given_up() {
    let (folder, mock) = (TempDir::new().unwrap(), Mock::start(&["--ttft", "1ms", "--itl", "10m"]));
    let flags = "--random-input-len 8 --num-prompts 100 --random-output-len 5 --concurrency 2 \
                 --warmup-requests 50";
    let mut process = Process::start(&mut random(&mock.url, folder.path(), flags));
    process.until("two are in flight", |_| mock.metric("vllm:num_requests_running") == 2.0);
    process.signal("INT");
    process.until("the first one is received", |process| {
        process.stderr().contains("interrupt again to stop at once")
    });
    process.signal("INT");
    let ended = process.end();
    assert_eq!(ended.code, Some(130), "{ended:#?}");
}

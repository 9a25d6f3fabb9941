//! Clocks of real processes: one set in a run, and one roughly known for its unequal ways.

use std::io::{Seek, Write};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use model::exchange::Exchange;
use result::finding::Id;

use super::{ENGINE, Fleet, measured, records_of};
use crate::support::library::compile;
use crate::support::process::{Mock, Process};
use crate::support::proxy::{Network, Proxy};

/// The text before the C library's clock, compiled once by this program's compiler.
fn set_clock() -> &'static PathBuf {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| compile(include_str!("set_clock.rs"), "libset_clock.so"))
}

/// A clock that is set ahead by 5 ms in a run is found: whose, by how much, and from when.
#[test]
fn a_clock_that_is_set_during_a_run_is_found() {
    let fleet = Fleet::new(2);
    let ahead = fleet.path().join("ahead");
    std::fs::write(&ahead, 0_i64.to_ne_bytes()).unwrap();
    // Slowly enough that a busy machine compares clocks again before the end.
    let flags = "--request-rate 20";
    let mut other = fleet.command(1, flags);
    other.env("LD_PRELOAD", set_clock()).env("CLOCK_AHEAD", &ahead);
    let mut processes = [Process::start(&mut fleet.command(0, flags)), Process::start(&mut other)];
    processes[1].until("it measures", |_| records_of(&fleet, 1) > 1_000);
    // In its place: the process has the file mapped.
    let mut file = std::fs::File::options().write(true).open(&ahead).unwrap();
    file.rewind().unwrap();
    file.write_all(&5_000_000_i64.to_ne_bytes()).unwrap();
    let [coordinator, _] = processes.map(|process| process.end().with_code(0));
    assert!(coordinator.stderr.contains("the clock of rank 1"), "{coordinator:#?}");

    let run = fleet.run();
    let facts = run.facts().unwrap();
    let agents = facts.fleet.as_ref().unwrap().agents.clone();
    assert_eq!(agents[0].clock_moved, None);
    let moved = agents[1].clock_moved.unwrap();
    // How far it moved at least: a busy machine knows less.
    assert!(moved.by_ms > 0.0 && moved.by_ms <= 5.0, "{moved:?}");
    assert!(moved.from_s > 0.0 && moved.from_s < 15.0, "{moved:?}");
    let summary = run.summarize(&facts).unwrap();
    let found = summary.findings.iter().find(|finding| finding.id == Id::AgentClock);
    assert!(found.unwrap().seen.contains("agent 1"), "{found:?}");
    // Measurements on one machine stay correct.
    assert_eq!(summary.requests.successful, 200);
}

/// Computes the time between the sending of each request of a rank, by the run's clock, and its
/// receipt, by the engine's own: the median, in milliseconds.
fn until_received(exchanges: &[Exchange], received: &[f64], rank: u64) -> f64 {
    let both = exchanges.iter().zip(received);
    let mut after: Vec<f64> = both
        .filter(|(exchange, _)| exchange.index % 2 == rank)
        .map(|(exchange, received)| received - exchange.sent.unwrap().as_millis_f64())
        .collect();
    after.sort_by(f64::total_cmp);
    after[after.len() / 2]
}

/// Messages from rank 0 take 5 ms longer than messages to it. No clock can be known better than to
/// half of that, and the bound says so. The clock is indeed wrong by 2.5 ms: by that much, the
/// engine got the process's requests later or earlier than recorded, compared with rank 0. A longer
/// way is no clock that moved.
#[test]
fn a_clock_is_wrong_by_no_more_than_its_bound() {
    let fleet = Fleet::against(2, Mock::logging(&ENGINE));
    let longer = Network { delay: Duration::from_millis(5), one_way: true, ..Network::PLAIN };
    let proxy = Proxy::before(&format!("http://127.0.0.1:{}", fleet.port), longer);
    let far = proxy.url.trim_start_matches("http://").to_owned();
    let flags = "--clock-error 20ms";
    let mut other = fleet.command(1, flags);
    other.env("RUNNER_FLEET_COORDINATOR", &far);
    let processes = [Process::start(&mut fleet.command(0, flags)), Process::start(&mut other)];
    for process in processes {
        process.end().with_code(0);
    }
    let run = fleet.run();
    let facts = run.facts().unwrap();
    let agents = facts.fleet.as_ref().unwrap().agents.clone();
    let bound_ms = agents[1].clock_bound_us.unwrap() / 1e3;
    assert!((2.5..20.0).contains(&bound_ms), "{bound_ms}");
    assert!(agents.iter().all(|agent| agent.clock_moved.is_none()), "{agents:?}");
    let summary = run.summarize(&facts).unwrap();
    assert!(!summary.findings.iter().any(|finding| finding.id == Id::AgentClock));

    let exchanges = measured(&run);
    let mut log = fleet.mock.end();
    log.retain(|truth| truth.first_token().is_some());
    log.sort_by_key(|truth| truth.received);
    let received: Vec<f64> = (log[log.len() - exchanges.len()..].iter())
        .map(|truth| truth.received.as_millis_f64())
        .collect();
    let [own, others] = [0, 1].map(|rank| until_received(&exchanges, &received, rank));
    let wrong_ms = (others - own).abs();
    assert!(wrong_ms <= bound_ms, "wrong by {wrong_ms} ms, and known to {bound_ms} ms");
    assert!((1.0..4.0).contains(&wrong_ms), "wrong by {wrong_ms} ms");
}

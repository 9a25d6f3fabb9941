//! Findings on the processor of the client.

use super::*;
use model::client::{Backlog, Client, HeldBack, Machine, Overruns, Thread};

/// The findings of the sound run with these vitals of its client.
fn watched(spoil: impl Fn(&mut Client)) -> Vec<(Id, Severity)> {
    after(|facts, _| {
        let mut client =
            Client { watched_s: 10.0, machine: Some(Machine::default()), ..Client::default() };
        for name in ["pace", "read-0", "read-1", "decode-0", "record"] {
            client.threads.insert(name.into(), Thread::default());
        }
        spoil(&mut client);
        facts.client = Some(client);
    })
}

#[test]
fn threads_that_have_not_enough_of_a_core() {
    let found = [(Id::ClientSaturated, Severity::Suspect)];
    let thread = |name: &'static str, cpu_most, waiting_most| {
        watched(move |client| {
            let thread = client.threads.get_mut(name).unwrap();
            (thread.cpu_most, thread.waiting_most) = (cpu_most, waiting_most);
        })
    };
    for name in ["pace", "read-0", "read-1"] {
        assert_eq!(thread(name, Some(0.9), Some(0.25)), []);
        assert_eq!(thread(name, Some(0.91), None), found, "{name}");
        assert_eq!(thread(name, Some(0.1), Some(0.26)), found, "{name}");
    }
    // They work behind the readers, and may be as busy as they like.
    for name in ["decode-0", "record"] {
        assert_eq!(thread(name, Some(1.0), Some(1.0)), [], "{name}");
    }
}

#[test]
fn plugins_that_run_too_long() {
    let overrun = |calls, seconds| {
        watched(move |client| {
            let overruns = Overruns { calls, seconds };
            client.plugin_overruns.insert("b.wasm".into(), overruns);
        })
    };
    assert_eq!(watched(|_| {}), []);
    assert_eq!(overrun(1, 1.0), [(Id::PluginOverruns, Severity::Suspect)]);
}

#[test]
fn pauses_that_are_long_or_show_in_the_percentiles() {
    let pauses = |longest, sum| {
        watched(move |client| (client.longest_pause_ms, client.paused_s) = (longest, sum))
    };
    let found = [(Id::ClientPaused, Severity::Suspect)];
    assert_eq!(pauses(100.0, 0.1), []);
    assert_eq!(pauses(101.0, 0.0), found);
    // The P99 of TTFT is 50 ms, and 10 s were watched.
    assert_eq!(pauses(60.0, 0.11), found);
    assert_eq!(pauses(2.0, 0.11), []);
}

#[test]
fn time_that_a_hypervisor_took() {
    let stolen = |share| watched(move |client| client.machine.as_mut().unwrap().stolen = share);
    assert_eq!(stolen(0.01), []);
    assert_eq!(stolen(0.02), [(Id::StolenTime, Severity::Note)]);
    assert_eq!(stolen(0.06), [(Id::StolenTime, Severity::Suspect)]);
}

#[test]
fn decoding_that_does_not_keep_up() {
    let behind = |ms| watched(move |client| client.decode_behind_ms = ms);
    assert_eq!(behind(1000.0), []);
    assert_eq!(behind(1001.0), [(Id::DecodeBehind, Severity::Note)]);
}

#[test]
fn an_engine_that_had_to_wait() {
    let held_back = |throttled_from_s, late_s, lag: Option<Nanos>| {
        after(move |facts, run| {
            for exchange in run {
                exchange.read_lag = lag;
            }
            let held_back = HeldBack {
                periods: 2,
                seconds: 3.5,
                from_to_s: vec![(1.0, 2.0), (4.0, 6.5)],
                throttled_from_s,
                late_s,
            };
            let backlog = Backlog { held_back: Some(held_back), ..Backlog::default() };
            let client = Client { backlog: Some(backlog), ..Client::default() };
            facts.client = Some(client);
        })
    };
    let kernel = Some(Nanos(1_000));
    assert_eq!(held_back(None, None, kernel), [(Id::HeldBack, Severity::Note)]);
    assert_eq!(held_back(None, Some(0.5), kernel), [(Id::HeldBack, Severity::Suspect)]);
    let invalid = [(Id::HeldBack, Severity::Invalid)];
    assert_eq!(held_back(Some(4.0), Some(0.5), kernel), invalid);
    // This client's own timestamps are as late as its reads.
    assert_eq!(held_back(None, None, None), invalid);
}

#[test]
fn a_machine_that_others_keep_busy() {
    let busy = |busy, own| {
        watched(move |client| {
            let machine = client.machine.as_mut().unwrap();
            (machine.busy, machine.own) = (busy, own);
        })
    };
    assert_eq!(busy(0.9, 0.1), []);
    assert_eq!(busy(0.95, 0.5), []);
    let found = [(Id::SharedMachine, Severity::Note)];
    assert_eq!(busy(0.95, 0.4), found);
    assert_eq!(watched(|client| client.machine = None), []);
}

#[test]
fn time_that_a_limit_kept_this_process_from_running() {
    let throttled = |seconds| watched(move |client| client.throttled_s = Some(seconds));
    // Of ten seconds.
    assert_eq!(throttled(0.01), []);
    assert_eq!(throttled(0.02), [(Id::Throttled, Severity::Note)]);
    assert_eq!(throttled(0.2), [(Id::Throttled, Severity::Suspect)]);
}

#[test]
fn a_clock_that_was_set() {
    let stepped = |ms| watched(move |client| client.clock_step_ms = Some(ms));
    assert_eq!(stepped(0.9), []);
    assert_eq!(stepped(1.1), [(Id::ClockStep, Severity::Suspect)]);
}

#[test]
fn a_client_pause_explains_joined_chunks_first() {
    let why = |paused: f64| {
        let (mut facts, mut run) = sound();
        for exchange in &mut run {
            exchange.events.at[1] = exchange.events.at[0];
        }
        facts.client = Some(Client {
            watched_s: 10.0,
            longest_pause_ms: paused,
            paused_s: paused / 1e3,
            ..Client::default()
        });
        finding(&facts, &run, Id::BufferedReplies).unwrap().2
    };
    assert!(why(0.0).contains("tokens that fast: the server"));
    assert!(why(1100.0).contains("tokens that fast: this client was paused"));
}

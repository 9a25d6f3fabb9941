//! Findings on the processor of the client.

use super::*;
use model::client::{Backlog, Client, HeldBack, Machine, Overruns, Thread};

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

/// Ten seconds were watched.
#[test]
fn vitals_have_limits() {
    use Severity::{Note, Suspect};
    let machine = |client: &mut Client, stolen| client.machine.as_mut().unwrap().stolen = stolen;
    let overruns = |client: &mut Client| {
        client.plugin_overruns.insert("b.wasm".into(), Overruns { calls: 1, seconds: 1.0 });
    };
    for (found, wanted) in [
        (watched(|_| {}), None),
        (watched(overruns), Some((Id::PluginOverruns, Suspect))),
        (watched(|client| machine(client, 0.01)), None),
        (watched(|client| machine(client, 0.02)), Some((Id::StolenTime, Note))),
        (watched(|client| machine(client, 0.06)), Some((Id::StolenTime, Suspect))),
        (watched(|client| client.decode_behind_ms = 1000.0), None),
        (watched(|client| client.decode_behind_ms = 1001.0), Some((Id::DecodeBehind, Note))),
        (watched(|client| client.throttled_s = Some(0.01)), None),
        (watched(|client| client.throttled_s = Some(0.02)), Some((Id::Throttled, Note))),
        (watched(|client| client.throttled_s = Some(0.2)), Some((Id::Throttled, Suspect))),
        (watched(|client| client.clock_step_ms = Some(0.9)), None),
        (watched(|client| client.clock_step_ms = Some(1.1)), Some((Id::ClockStep, Suspect))),
    ] {
        assert_eq!(found, Vec::from_iter(wanted));
    }
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

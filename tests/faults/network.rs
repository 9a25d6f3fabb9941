//! Networks that delay, lose, hold back, cut and fall silent: through a proxy, and, where possible,
//! through the kernel's own emulation in a network namespace.

use std::process::Command;
use std::time::Duration;

use mock::Truth;
use model::exchange::{Class, Exchange};
use model::units::Nanos;
use tempfile::TempDir;

use super::check::{Ending, Remains, at_once, check, failure};
use crate::endings::line;
use crate::support::lacking;
use crate::support::process::{Mock, run, runner_behind};
use crate::support::proxy::{Network, Proxy};
use crate::support::results::random;

const SPEED: [&str; 4] = ["--ttft", "20ms", "--itl", "3ms"];
const REQUESTS: usize = 12;

const fn milliseconds(number: u64) -> Duration {
    Duration::from_millis(number)
}

/// A name, the network, and the client's protocol and flags.
#[rustfmt::skip]
const NETWORKS: [(&str, Network, &str); 8] = [
    ("nothing", Network::PLAIN, ""),
    ("40 ms each way", Network { delay: milliseconds(40), ..Network::PLAIN }, ""),
    ("40 ms each way, HTTP/2", Network { delay: milliseconds(40), ..Network::PLAIN }, "--http 2"),
    ("20 ms and jitter", Network { delay: milliseconds(20), jitter: milliseconds(30), ..Network::PLAIN }, ""),
    ("loss", Network { delay: milliseconds(5), loses_one_in: 20, ..Network::PLAIN }, ""),
    ("loss, HTTP/2", Network { delay: milliseconds(5), loses_one_in: 20, ..Network::PLAIN }, "--http 2"),
    ("segments of 1 byte", Network { segment: 1, ..Network::PLAIN }, ""),
    ("segments of 61 bytes and loss", Network { segment: 61, loses_one_in: 60, ..Network::PLAIN }, ""),
];

fn first_token(exchange: &Exchange) -> Nanos {
    let first = exchange.events.iter().find(|event| event.kind.is_output());
    first.unwrap().at.since(exchange.sent.unwrap())
}

/// Requests one after the other: the time to first token holds the engine's own and the way there
/// and back.
fn holds_the_way(about: &str, after: &Remains, log: &[Truth], delay: Duration) {
    let way = Nanos(2 * delay.as_nanos() as u64);
    let mut log: Vec<&Truth> = log.iter().collect();
    log.sort_by_key(|truth| truth.number);
    assert_eq!(after.exchanges.len(), log.len(), "{about}");
    for (exchange, truth) in after.exchanges.iter().zip(log) {
        let engine = truth.first_token().unwrap().since(truth.received);
        let (seen, least) = (first_token(exchange), engine + way);
        assert!(seen >= least, "{about}: {seen:?} instead of {least:?} or more");
    }
    let least = 20.0 + way.as_millis_f64();
    assert!(after.summary.metrics["ttft"].min >= least, "{about}");
}

#[test]
fn network_delays_are_measured_and_nothing_is_lost() {
    at_once(&NETWORKS, 4, |(about, network, flags)| {
        let (place, mock) = (TempDir::new().unwrap(), Mock::logging(&SPEED));
        let proxy = Proxy::before(&mock.url, *network);
        let flags = format!(
            "--concurrency 1 --num-prompts {REQUESTS} --random-input-len 8 --random-output-len 8 \
             --warmup-requests 0 {flags}"
        );
        let ended = run(&mut random(&proxy.url, place.path(), &flags));
        let log = mock.end();
        let after = check(about, place.path(), &ended, Ending::Finished, Some(&log));
        assert_eq!(after.summary.requests.successful as usize, REQUESTS, "{about}");
        holds_the_way(about, &after, &log, network.delay);
    });
}

/// A connection that says nothing any more and does not end, after this many bytes, and the
/// failure.
const SILENCES: [(usize, Class); 4] = [
    (0, Class::FirstTokenTimeout),
    (40, Class::FirstTokenTimeout),
    (200, Class::FirstTokenTimeout),
    (900, Class::TokenGapTimeout),
];

#[test]
fn a_network_that_falls_silent_is_a_timeout() {
    at_once(&SILENCES, 4, |(bytes, class)| {
        let about = format!("silent after {bytes} bytes");
        let (place, mock) = (TempDir::new().unwrap(), Mock::start(&SPEED));
        let network = Network { silent_after: Some(*bytes), ..Network::PLAIN };
        let proxy = Proxy::before(&mock.url, network);
        let flags = "--model mock --concurrency 2 --num-prompts 4 --random-input-len 8 \
                     --random-output-len 30 --warmup-requests 0 --connections never \
                     --first-token-timeout 3s --token-gap-timeout 3s";
        let ended = run(&mut random(&proxy.url, place.path(), flags));
        let after = check(&about, place.path(), &ended, Ending::NothingAnswered, None);
        for exchange in &after.exchanges {
            let got = failure(exchange).map(|(class, _)| class);
            assert_eq!(got, Some(*class), "{about}: {exchange:#?}");
        }
    });
}

/// A shell's line that gives it a network of its own, with this emulation.
fn apart(emulation: &str) -> String {
    format!("ip link set lo up && tc qdisc add dev lo root netem {emulation} && exec \"$@\"")
}

/// The same by the kernel: real loss, sent again by the kernel, and real reordering.
#[test]
fn the_kernels_own_emulation_gives_the_same() {
    for (emulation, delay) in [
        ("delay 20ms", milliseconds(20)),
        ("delay 20ms 5ms reorder 25% 50%", Duration::ZERO),
        ("delay 5ms loss 5%", milliseconds(5)),
        ("duplicate 5% delay 5ms", milliseconds(5)),
    ] {
        let mut network = Command::new("unshare");
        let mut try_it = Command::new("unshare");
        try_it.args(["-n", "sh", "-c", &apart(emulation), "sh", "true"]);
        if !lacking::can(network.args(["-n", "true"]), &lacking::NETWORKS)
            || !lacking::can(&mut try_it, &lacking::NETEM)
        {
            return;
        }
        let place = TempDir::new().unwrap();
        let mock = Mock::logging_behind(
            &format!("exec unshare -n sh -c '{}' sh \"$@\"", apart(emulation)),
            &SPEED,
        );
        let within = runner_behind(&format!("exec nsenter -t {} -n \"$@\"", mock.id()));
        let flags = format!("--concurrency 1 --num-prompts {REQUESTS} --random-output-len 8");
        let ended = run(&mut line(within, &mock, place.path(), &flags));
        let log = mock.end();
        let after = check(emulation, place.path(), &ended, Ending::Finished, Some(&log));
        assert_eq!(after.summary.requests.successful as usize, REQUESTS, "{emulation}");
        holds_the_way(emulation, &after, &log, delay);
    }
}

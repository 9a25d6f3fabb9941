//! The faults that a server over TCP can commit, over every kind of connection. Each is a failure
//! of its class, and all other requests are answered.

use model::exchange::{Class, Outcome};
use tempfile::TempDir;

use crate::endings::{class, exchanges, line, report_with};
use crate::faults::check::{Ending, check, failure};
use crate::support::authority::Authority;
use crate::support::process::{Mock, run, runner};

/// Faults of the request at each position, and the resulting failure.
pub const FAULTS: [(&str, Class); 15] = [
    ("kind = 'hang-up'", Class::Reset),
    ("kind = 'hang-up', reset = true", Class::Reset),
    ("kind = 'cut', after-tokens = 0", Class::Truncated),
    ("kind = 'cut', after-tokens = 3", Class::Truncated),
    ("kind = 'cut', after-tokens = 0, reset = true", Class::Truncated),
    ("kind = 'cut', after-tokens = 3, reset = true", Class::Truncated),
    ("kind = 'no-done', after-tokens = 3", Class::Truncated),
    ("kind = 'http-error'", Class::HttpStatus),
    ("kind = 'http-error', status = 429, retry-after = '7s'", Class::HttpStatus),
    ("kind = 'html', status = 502", Class::HttpStatus),
    ("kind = 'html'", Class::Protocol),
    ("kind = 'in-band-error', after-tokens = 0", Class::InBandError),
    ("kind = 'in-band-error', after-tokens = 3", Class::InBandError),
    ("kind = 'stall', after-tokens = 0", Class::FirstTokenTimeout),
    ("kind = 'stall', after-tokens = 3", Class::TokenGapTimeout),
];

/// Odd behaviour that is not a failure.
const ODDITIES: [&str; 5] = [
    "kind = 'split', bytes = 1",
    "kind = 'merge', events = 3",
    "kind = 'crlf'",
    "kind = 'ping'",
    "kind = 'goodbye'",
];

/// Answered as if nothing had been, before and after the others.
const SOUND: usize = 2;

#[test]
fn each_is_a_failure_of_its_class_over_every_kind_of_connection() {
    let authority = Authority::new();
    let certified = authority.certify("127.0.0.1");
    let trust = format!("--ca-cert {}", authority.certificate().display());
    let faults: Vec<&str> = FAULTS.iter().map(|(fault, _)| *fault).chain(ODDITIES).collect();
    let faults: Vec<String> = (SOUND..)
        .zip(faults)
        .map(|(number, fault)| format!("{fault}, requests = [{number}]"))
        .collect();
    let requests = SOUND + faults.len() + SOUND;
    let script = faults.join(";");
    for (kind, http, secure) in [
        ("HTTP/1.1", "1.1", false),
        ("HTTP/2", "2", false),
        ("HTTP/1.1 with TLS", "1.1", true),
        ("HTTP/2 with TLS", "2", true),
    ] {
        let mut mock = vec!["--ttft", "20ms", "--itl", "1ms", "--fault", &script];
        if secure {
            mock.extend(certified.flags());
        }
        let (folder, mock) = (TempDir::new().unwrap(), Mock::logging(&mock));
        let trust = if secure { &trust } else { "" };
        let flags = format!(
            "--concurrency 1 --num-prompts {requests} --random-output-len 8 --http {http} {trust} \
             --first-token-timeout 1500ms --token-gap-timeout 1500ms"
        );
        let ended = run(&mut line(runner(), &mock, folder.path(), &flags)).with_code(0);
        let log = mock.end();
        let exchanges = check(kind, folder.path(), &ended, Ending::Finished, Some(&log)).exchanges;
        assert_eq!(exchanges.len(), requests, "{kind}");
        for (number, exchange) in exchanges.iter().enumerate() {
            let fault = number.checked_sub(SOUND).and_then(|at| FAULTS.get(at));
            assert_eq!(
                class(exchange),
                fault.map(|(_, class)| *class),
                "{kind}: {fault:?}: {:?}",
                exchange.outcome
            );
            assert_eq!(exchange.is_ok(), exchange.outcome == Outcome::Ok);
            let connection = exchange.connection.unwrap();
            assert_eq!(connection.secured.is_some(), secure, "{kind}");
            assert!(connection.begun <= connection.connected, "{kind}");
            assert!(connection.secured.is_none_or(|at| connection.connected <= at), "{kind}");
        }
        let whole = report_with(folder.path(), &["--details"]).stdout;
        assert!(whole.contains("(retry-after: 7)"), "{kind}: {whole}");
        let answered = format!("{:<40} {}\n", "Successful requests:", requests - FAULTS.len());
        assert!(ended.stdout.contains(&answered), "{kind}: {}", ended.stdout);
    }
}

#[test]
fn a_reset_is_called_one() {
    let faults = "kind = 'hang-up', reset = true, requests = [0]; kind = 'cut', after-tokens = 2, reset = true, requests = [1]";
    let (folder, mock) = (
        TempDir::new().unwrap(),
        Mock::start(&["--ttft", "1ms", "--itl", "5ms", "--fault", faults]),
    );
    let flags = "--concurrency 1 --num-prompts 3 --random-output-len 8";
    run(&mut line(runner(), &mock, folder.path(), flags)).with_code(0);
    for (exchange, wanted) in exchanges(folder.path()).iter().zip([Class::Reset, Class::Truncated])
    {
        assert_eq!(failure(exchange), Some((wanted, "the connection was reset")));
    }
}

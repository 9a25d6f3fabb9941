//! WebSockets, against a server that is not ours: the Python package websockets, which plays vLLM's
//! `/v1/realtime`, with faults.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use serde::Deserialize;
use tempfile::TempDir;

use model::exchange::{Class, Exchange, Kind, Outcome, Reason};

use crate::endings::{class, exchanges};
use crate::support::authority::Authority;
use crate::support::process::{Mock, Process, run, runner, words};
use crate::support::pypi;

const REALTIME: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/sockets/realtime.py");
const PACKAGES: &str = "websockets==17.4\n";

static PYTHON: LazyLock<Result<PathBuf, String>> = LazyLock::new(|| {
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/websockets");
    pypi::python(Path::new(folder), PACKAGES)
});

/// A line of the server's log.
#[derive(Deserialize)]
struct Entry {
    number: u64,
    fault: Option<String>,
    /// The id that the handshake carried.
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    digest: String,
    #[serde(default)]
    model: String,
    #[serde(default)]
    samples: u32,
    #[serde(default)]
    deltas: Vec<String>,
    /// Arrivals of messages, in nanoseconds by the server's clock.
    #[serde(default)]
    arrivals: Vec<u64>,
    /// The code with which the client closed, or the server.
    closed: Option<u16>,
}

const RATE: u32 = 16_000;

/// Writes this many recordings with this many samples each, no two alike.
fn recordings(folder: &Path, count: u16, samples: u32) {
    let mut texts = "file_name,transcription\n".to_owned();
    for number in 0..count {
        let mut file = b"RIFF".to_vec();
        file.extend((36 + 2 * samples).to_le_bytes());
        file.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0\0\x7d\0\0\x02\0\x10\0data");
        file.extend((2 * samples).to_le_bytes());
        for sample in 0..samples {
            let sample = number.wrapping_mul(31).wrapping_add(sample as u16);
            file.extend(sample.to_le_bytes());
        }
        std::fs::write(folder.join(format!("{number:05}.wav")), file).unwrap();
        texts += &format!("{number:05}.wav,spoken {number}\n");
    }
    std::fs::write(folder.join("metadata.csv"), texts).unwrap();
}

/// The server, its address and its log, in this folder; nothing without Python's packages.
fn serve(folder: &Path) -> Option<(Process, String, PathBuf)> {
    let log = folder.join("log.jsonl");
    let (server, url) = pypi::serve(pypi::present(&PYTHON)?, REALTIME, &log);
    Some((server, url, log))
}

/// The connections that the server has logged.
fn logged(log: &Path) -> Vec<Entry> {
    let text = std::fs::read_to_string(log).unwrap();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    (whole.lines()).map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A run of this many recordings with this many samples each.
fn line(folder: &Path, url: &str, (count, samples): (u16, u32), flags: &str) -> Command {
    let sounds = folder.join("sounds");
    std::fs::create_dir(&sounds).unwrap();
    recordings(&sounds, count, samples);
    let line = "--backend realtime --model m --dataset-name speech --warmup-requests 0";
    let mut command = runner();
    command
        .args(words(line))
        .args(words(flags))
        .args(["--base-url", url])
        .args(["--num-prompts", &count.to_string()])
        .arg("--dataset-path")
        .arg(&sounds)
        .current_dir(folder);
    command
}

/// A run against the server, and the server's log.
fn run_against_websockets(
    recordings: (u16, u32),
    flags: &str,
) -> Option<(TempDir, Vec<Exchange>, Vec<Entry>)> {
    let folder = TempDir::new().unwrap();
    let (mut server, url, log) = serve(folder.path())?;
    run(&mut line(folder.path(), &url, recordings, flags)).with_code(0);
    let exchanges = exchanges(folder.path());
    // The last connections are closed when the run has all replies.
    server.until("the end of its connections", |_| logged(&log).len() == exchanges.len());
    let served = logged(&log);
    Some((folder, exchanges, served))
}

/// The record of a fault: its class, its reason, and a part of its message.
fn recorded(fault: &str) -> (Class, Option<Reason>, &'static str) {
    use Class::{HttpStatus, InBandError, Protocol, TokenGapTimeout, Truncated};
    match fault {
        "forbidden" => (HttpStatus, Some(Reason::Unauthorised), "no entry"),
        "unavailable" => (HttpStatus, Some(Reason::Unavailable), "no worker is free"),
        "error" => (InBandError, Some(Reason::Overloaded), "is overloaded"),
        "close" => (InBandError, None, "with code 1011: no worker is left"),
        "away" => (Truncated, None, "with code 1001: shutting down"),
        "reset" => (Truncated, None, "the connection was reset"),
        "silence" => (TokenGapTimeout, None, "no more of the answer"),
        "not-utf-8" => (Protocol, None, "is not UTF-8"),
        "oversize" => (Protocol, None, "larger than 16 MiB"),
        other => panic!("{other}"),
    }
}

#[test]
fn each_exchange_agrees_with_the_servers_log() {
    let flags = "--concurrency 8 --token-gap-timeout 2s --set backend.config.pace=at-once \
                 --set backend.config.piece=20";
    let Some((_folder, exchanges, served)) = run_against_websockets((200, 1_000), flags) else {
        return;
    };
    assert_eq!((exchanges.len(), served.len()), (200, 200));
    let refused = |exchange: &&Exchange| class(exchange) == Some(Class::HttpStatus);
    let of_fault = |fault: &str| {
        let same = |served: &&Entry| served.fault.as_deref() == Some(fault);
        served.iter().filter(same).count()
    };
    assert_eq!(exchanges.iter().filter(refused).count(), 20, "every tenth");
    for fault in ["forbidden", "unavailable"] {
        let (_, reason, part) = recorded(fault);
        let same = exchanges.iter().filter(|exchange| match &exchange.outcome {
            Outcome::Incomplete { reason: own, message, .. } => {
                *own == reason && message.contains(part)
            }
            Outcome::Ok => false,
        });
        assert_eq!((same.count(), of_fault(fault)), (10, 10), "{fault}");
    }
    for exchange in exchanges.iter().filter(|exchange| !refused(exchange)) {
        let digest = &exchange.sample.request_digest;
        let mut same = served.iter().filter(|served| served.digest == *digest);
        let (Some(served), None) = (same.next(), same.next()) else {
            panic!("{exchange:?}: not served once")
        };
        let about = format!("{}: {:?}", served.number, exchange.outcome);
        assert_eq!((&*served.model, served.samples), ("m", 1_000), "{about}");
        assert_eq!(exchange.status, Some(101), "{about}");
        let ids = exchange.ids.as_ref().unwrap();
        assert_eq!((&served.id, served.id.is_some()), (&ids.request, true), "{about}");
        // The session, the beginning, four pieces and the end.
        assert_eq!(served.arrivals.len(), 7, "{about}");
        let (wanted, reason) = match served.fault.as_deref().map(recorded) {
            None => (None, None),
            Some((class, reason, part)) => {
                assert!(about.contains(part), "{about}");
                (Some(class), reason)
            }
        };
        assert_eq!(class(exchange), wanted, "{about}");
        if let Outcome::Incomplete { reason: own, .. } = &exchange.outcome {
            assert_eq!(*own, reason, "{about}");
        }
        assert_eq!(exchange.output, served.deltas.concat(), "{about}");
        let pieces = exchange.events.kind.iter().filter(|kind| **kind == Kind::Text).count();
        assert_eq!(pieces, served.deltas.len(), "{about}");
        let closed = match served.fault.as_deref() {
            None | Some("error") => Some(1000),
            Some("close") => Some(1011),
            Some("away" | "silence") => Some(1001),
            Some("not-utf-8") => Some(1007),
            Some("oversize") => Some(1009),
            // The server's own name for no close at all.
            Some(_) => Some(1006),
        };
        assert_eq!(served.closed, closed, "{about}");
        if wanted.is_none() {
            let usage = exchange.usage.unwrap();
            assert_eq!(usage.input_tokens, Some(served.samples), "{about}");
            let tokens = u32::try_from(served.deltas.len()).ok();
            assert_eq!(usage.output_tokens, tokens, "{about}");
        }
        let (sent, written) = (exchange.sent.unwrap(), exchange.written.unwrap());
        let (headers, input) = (exchange.headers.unwrap(), exchange.input_sent.unwrap());
        assert!(sent < headers && headers < written, "{about}");
        assert_eq!(input, written, "{about}: all input came before the answer");
    }
    for fault in ["error", "close", "reset", "silence", "not-utf-8", "oversize", "away"] {
        assert_eq!(of_fault(fault), 20, "{fault}");
    }
}

/// Pieces that are sent as they are spoken arrive no earlier, and lateness does not add up.
#[test]
fn pieces_of_speech_arrive_when_they_are_spoken() {
    let flags = "--concurrency 1 --token-gap-timeout 2s --set backend.config.piece=50";
    let Some((_folder, exchanges, served)) = run_against_websockets((1, RATE), flags) else {
        return;
    };
    assert_eq!(class(&exchanges[0]), None, "{:?}", exchanges[0].outcome);
    let arrivals = &served[0].arrivals;
    assert_eq!(arrivals.len(), 23);
    let since = |arrival: &u64| (arrival - arrivals[1]) / 1_000_000;
    let spoken: Vec<u64> = arrivals[2..22].iter().map(since).collect();
    for (number, spoken) in (1..).zip(&spoken) {
        // The first of these messages arrives late too.
        assert!(spoken + 20 >= 50 * number, "{number}: {spoken} ms");
    }
    assert!(spoken[19] < 1_500, "{spoken:?}");
    let exchange = &exchanges[0];
    let input = exchange.input_sent.unwrap();
    let speaking = input.since(exchange.sent.unwrap()).as_millis_f64();
    assert!((1_000.0..1_600.0).contains(&speaking), "{speaking}");
}

/// An interrupt in the middle of speech ends the run, closes open connections, and leaves a result.
#[test]
fn an_interrupt_closes_open_sockets() {
    let folder = TempDir::new().unwrap();
    let Some((mut server, url, log)) = serve(folder.path()) else { return };
    // A minute each.
    let mut run = Process::start(&mut line(folder.path(), &url, (1, 60 * RATE), "--concurrency 1"));
    server.until("a WebSocket", |server| server.stdout().contains("open"));
    run.signal("INT");
    run.until("the first interrupt", |run| run.stderr().contains("interrupted"));
    run.signal("INT");
    run.end().with_code(130);
    let exchanges = exchanges(folder.path());
    assert_eq!(class(&exchanges[0]), Some(Class::Interrupted));
    server.until("the end of its connection", |_| logged(&log).len() == 1);
    assert_eq!(logged(&log)[0].closed, Some(1001));
}

/// Over TLS too, where a task waits for the socket.
#[test]
fn a_websocket_over_tls() {
    let authority = Authority::new();
    let certified = authority.certify("127.0.0.1");
    let mut flags = certified.flags().to_vec();
    flags.extend(["--ttft", "20ms", "--itl", "1ms", "--output-tokens", "12"]);
    flags.extend(["--model", "m"]);
    let mock = Mock::start(&flags);
    let url = mock.url.replace("http://", "https://");
    let folder = TempDir::new().unwrap();
    let flags = format!(
        "--concurrency 4 --set backend.config.piece=20 --ca-cert {}",
        authority.certificate().display()
    );
    run(&mut line(folder.path(), &url, (8, 1_000), &flags)).with_code(0);
    let exchanges = exchanges(folder.path());
    assert_eq!(exchanges.len(), 8);
    for exchange in &exchanges {
        assert_eq!(class(exchange), None, "{:?}", exchange.outcome);
        assert!(exchange.connection.unwrap().secured.is_some());
        assert_eq!(exchange.usage.unwrap().output_tokens, Some(12));
    }
}

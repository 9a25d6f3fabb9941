//! Exchanges of several requests, against a server that is not ours: it plays Replicate's API, with
//! a host of its own for streams. The backend is the example for authors.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;
use tempfile::TempDir;

use model::exchange::{Class, Exchange, Kind, Outcome, Reason};

use crate::endings::{class, exchanges, report};
use crate::support::process::{Process, run, runner, words};
use crate::support::results::json_lines;

const REPLICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/sockets/replicate.py");
const BACKEND: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/components/examples/replicate.wasm");
/// The flags that all runs have in common.
const LINE: &str = "--model meta/llama --dataset-name random --random-input-len 8 \
                    --random-output-len 8 --warmup-requests 0 --concurrency 8";

/// A line of the server's log: one request.
#[derive(Deserialize)]
struct Entry {
    prediction: u64,
    digest: String,
    step: String,
    status: u16,
    fault: Option<String>,
    pieces: Vec<String>,
    connection: u64,
    headers: BTreeMap<String, String>,
}

/// The server, and a folder for its log and for runs.
struct Replicate {
    server: Process,
    folder: TempDir,
    /// The ports of the API and of the streams.
    ports: [String; 2],
}

impl Replicate {
    fn start(flags: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        let mut command = Command::new("python3");
        let log = folder.path().join("log.jsonl");
        command.arg(REPLICATE).arg(log).args(flags).stdin(Stdio::piped());
        let mut server = Process::start(&mut command);
        server.until("its ports", |server| server.stdout().ends_with('\n'));
        let output = server.stdout();
        let mut ports = output.split_whitespace().map(str::to_owned);
        let ports = [(); 2].map(|()| ports.next().unwrap());
        Replicate { server, folder, ports }
    }

    fn command(&self, flags: &str) -> Command {
        let mut command = runner();
        command
            .args(["--plugin", BACKEND])
            .args(words(LINE))
            .args(words(flags))
            .args(["--base-url", &format!("http://127.0.0.1:{}", self.ports[0])])
            .env("REPLICATE_API_KEY", "r8-the-key-of-the-user")
            .args(["--header", "x-tenant: the-tenant-of-the-user"])
            .current_dir(self.folder.path());
        command
    }

    /// The place of the streams, as users write it.
    fn streams(&self) -> String {
        format!("127.0.0.1:{}", self.ports[1])
    }

    /// The requests of each prediction in their order, by the digest of the first.
    fn served(&self) -> BTreeMap<String, Vec<Entry>> {
        let mut served: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
        for one in json_lines::<Entry>(self.folder.path().join("log.jsonl")) {
            served.entry(one.digest.clone()).or_default().push(one);
        }
        served
    }
}

fn reason(exchange: &Exchange) -> Option<Reason> {
    match &exchange.outcome {
        Outcome::Incomplete { reason, .. } => *reason,
        Outcome::Ok => None,
    }
}

/// Holds the records against the server's log; gives the number of exchanges of each fault.
fn compared(
    exchanges: &[Exchange],
    served: &BTreeMap<String, Vec<Entry>>,
    expected: impl Fn(&str) -> (Option<Class>, Option<Reason>),
) -> BTreeMap<String, usize> {
    let mut faults = BTreeMap::new();
    let mut first_uses = 0;
    for exchange in exchanges {
        let id = &exchange.sample.id;
        let served = &served[&exchange.sample.request_digest];
        let fault = served[0].fault.as_deref();
        *faults.entry(fault.unwrap_or("none").to_owned()).or_default() += 1;
        let wanted = fault.map_or((None, None), &expected);
        let seen = (class(exchange), reason(exchange));
        assert_eq!(seen, wanted, "{id}, {fault:?}: {:?}", exchange.outcome);
        let text = served[0].pieces.concat();
        match fault {
            None | Some("late") => assert_eq!(exchange.output, text, "{id}"),
            // The output before the fault is on record.
            _ => assert!(text.starts_with(&exchange.output), "{id}: {}", exchange.output),
        }
        let statuses = |step: &model::exchange::Step| step.status;
        let statuses: Vec<Option<u16>> = exchange.steps.iter().map(statuses).collect();
        let served_statuses: Vec<Option<u16>> = served.iter().map(|one| Some(one.status)).collect();
        assert_eq!(statuses, served_statuses, "{id}");
        assert_eq!(exchange.status, *served_statuses.last().unwrap(), "{id}");
        assert_eq!(exchange.sent, exchange.steps[0].sent, "{id}");
        assert_eq!(exchange.ended, exchange.steps.last().unwrap().ended, "{id}");
        // Each request carries the ids of the exchange, wherever it goes.
        let own = exchange.ids.as_ref().unwrap().request.as_ref();
        let carried = |one: &Entry| one.headers.get("x-request-id") == own;
        assert!(served.iter().all(carried), "{id}");
        for pair in exchange.steps.windows(2) {
            assert!(pair[0].ended <= pair[1].sent, "{id}: {pair:?}");
        }
        for step in &exchange.steps {
            let instants = [step.sent, step.first_byte, step.headers, step.ended];
            assert!(instants.iter().all(Option::is_some), "{id}: {step:?}");
            assert!(instants.is_sorted(), "{id}: {step:?}");
            assert!(step.bytes > 0, "{id}: {step:?}");
            first_uses += usize::from(!step.connection.unwrap().reused);
        }
    }
    // Each connection that the server saw was new for one request alone.
    let connections: BTreeSet<u64> = served.values().flatten().map(|one| one.connection).collect();
    assert_eq!(first_uses, connections.len());
    faults
}

#[test]
fn streams_on_another_host_agree_with_the_servers_log() {
    let replicate = Replicate::start(&[]);
    let flags = format!("--num-prompts 200 --allow-host {}", replicate.streams());
    run(&mut replicate.command(&flags)).with_code(0);
    let (exchanges, served) = (exchanges(replicate.folder.path()), replicate.served());
    assert_eq!((exchanges.len(), served.len()), (200, 200));
    let faults = compared(&exchanges, &served, |fault| match fault {
        "refused" => (Some(Class::HttpStatus), Some(Reason::Overloaded)),
        "error" => (Some(Class::HttpStatus), Some(Reason::Internal)),
        "failed" => (Some(Class::InBandError), None),
        "cut" => (Some(Class::Truncated), None),
        "never" => (Some(Class::HttpStatus), Some(Reason::Invalid)),
        _ => (None, None),
    });
    assert_eq!(faults.len(), 7, "{faults:?}");
    assert!(faults.iter().all(|(fault, count)| *count == if fault == "none" { 80 } else { 20 }));
    for exchange in exchanges.iter().filter(|exchange| exchange.is_ok()) {
        let served = &served[&exchange.sample.request_digest];
        let texts = exchange.events.kind.iter().filter(|kind| **kind == Kind::Text);
        assert_eq!(texts.count(), served[0].pieces.len());
        assert_eq!(exchange.steps[0].host, None);
        assert_eq!(exchange.steps[1].host, Some(replicate.streams()));
    }
    for one in served.values().flatten() {
        let key = one.headers.get("authorization").map(String::as_str);
        let tenant = one.headers.get("x-tenant").map(String::as_str);
        match &*one.step {
            "stream" => {
                assert_eq!((key, tenant), (None, None), "{}", one.prediction);
                assert_eq!(one.headers["host"], replicate.streams());
                assert_eq!(one.headers["accept"], "text/event-stream");
            }
            _ => {
                assert_eq!(key, Some("Bearer r8-the-key-of-the-user"));
                assert_eq!(tenant, Some("the-tenant-of-the-user"));
            }
        }
    }
    drop(replicate.server);
}

#[test]
fn polled_predictions_agree_with_the_servers_log() {
    let replicate = Replicate::start(&[]);
    let flags = "--num-prompts 100 --disable-stream --set backend.config.poll-interval=20";
    run(&mut replicate.command(flags)).with_code(0);
    let (exchanges, served) = (exchanges(replicate.folder.path()), replicate.served());
    assert_eq!((exchanges.len(), served.len()), (100, 100));
    let faults = compared(&exchanges, &served, |fault| match fault {
        "refused" => (Some(Class::HttpStatus), Some(Reason::Overloaded)),
        "error" => (Some(Class::HttpStatus), Some(Reason::Internal)),
        "failed" => (Some(Class::InBandError), None),
        "cut" => (Some(Class::Truncated), None),
        "never" => (Some(Class::HttpStatus), Some(Reason::Unavailable)),
        _ => (None, None),
    });
    assert!(faults.iter().all(|(fault, count)| *count == if fault == "none" { 40 } else { 10 }));
    for exchange in &exchanges {
        let pauses = exchange.steps.windows(2);
        for pair in pauses {
            let waited = pair[1].sent.unwrap().since(pair[0].ended.unwrap());
            assert!(Duration::from(waited) >= Duration::from_millis(20), "{pair:?}");
        }
        assert!(exchange.steps.iter().all(|step| step.host.is_none()));
        if exchange.is_ok() {
            let pieces = served[&exchange.sample.request_digest][0].pieces.len();
            let usage = exchange.usage.unwrap();
            let counts = (usage.input_tokens, usage.output_tokens);
            assert_eq!(counts, (Some(7), Some(pieces as u32)));
            let first = exchange.timings.unwrap().first_token.unwrap();
            assert_eq!(Duration::from(first), Duration::from_millis(250));
        }
    }
    drop(replicate.server);
}

#[test]
fn a_host_that_the_user_does_not_name_is_not_reached() {
    let replicate = Replicate::start(&[]);
    let ended = run(replicate.command("--num-prompts 10").args(["--json"]));
    let exchanges = exchanges(replicate.folder.path());
    assert_eq!(exchanges.len(), 10);
    let refused: Vec<&Exchange> =
        exchanges.iter().filter(|exchange| class(exchange) == Some(Class::Protocol)).collect();
    assert_eq!(refused.len(), 8, "{}", ended.stderr);
    for exchange in refused {
        let Outcome::Incomplete { message, .. } = &exchange.outcome else { panic!("{exchange:?}") };
        assert!(message.contains(&format!("hosts = [\"{}\"]", replicate.streams())), "{message}");
        assert_eq!(exchange.steps.len(), 1);
    }
    let all = replicate.served();
    assert!(all.values().flatten().all(|one| one.step == "create"));
    drop(replicate.server);
}

fn polls(log: &Path) -> usize {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().filter(|line| line.contains("\"look\"")).count()
}

/// One interrupt ends exchanges that wait to look again, however long the wait is; their earlier
/// replies are on record.
#[test]
fn an_interrupt_ends_polling() {
    let replicate = Replicate::start(&["endless"]);
    let log = replicate.folder.path().join("log.jsonl");
    let flags = "--num-prompts 8 --disable-stream --set backend.config.poll-interval=300";
    let mut process = Process::start(&mut replicate.command(flags));
    process.until("some polls", |_| polls(&log) >= 16);
    let since = Instant::now();
    process.signal("INT");
    let ended = process.end().with_code(130);
    assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    let exchanges = exchanges(replicate.folder.path());
    assert_eq!(exchanges.len(), 8);
    for exchange in &exchanges {
        assert_eq!(class(exchange), Some(Class::Interrupted), "{:?}", exchange.outcome);
        assert!(exchange.steps.len() >= 2, "{:?}", exchange.steps);
        assert!(exchange.ended >= exchange.steps.last().unwrap().ended);
    }
    let shown = report(replicate.folder.path());
    assert!(shown.stdout.contains("interrupted"), "{}", shown.stdout);
    drop(replicate.server);
}

/// While nothing of the answer has come, the timeout for the first token counts from the first
/// request, and that between tokens does not run.
#[test]
fn timeouts_count_from_the_first_request() {
    let replicate = Replicate::start(&["endless"]);
    let flags = "--num-prompts 4 --disable-stream --set backend.config.poll-interval=200 \
                 --first-token-timeout 900ms --token-gap-timeout 100ms";
    run(&mut replicate.command(flags)).with_code(5);
    for exchange in exchanges(replicate.folder.path()) {
        let seen = class(&exchange);
        assert_eq!(seen, Some(Class::FirstTokenTimeout), "{:?}", exchange.outcome);
        let took = exchange.ended.unwrap().since(exchange.sent.unwrap());
        let took = Duration::from(took);
        assert!(took >= Duration::from_millis(900), "{took:?}");
        assert!(exchange.steps.len() >= 3, "{:?}", exchange.steps);
    }
    drop(replicate.server);
}

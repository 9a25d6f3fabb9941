//! Ids of requests, as third-party servers and a router see them: two engines behind a proxy that
//! hashes a header.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

use serde::Deserialize;
use tempfile::TempDir;

use model::exchange::{Exchange, Phase};
use model::identity::Ids;

use crate::endings::exchanges;
use crate::support::process::{Mock, Process, run, runner, words};
use crate::support::results::json_lines;

const ROUTER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/sockets/router.py");

/// A line of the router's log.
#[derive(Deserialize)]
struct Entry {
    server: usize,
    headers: BTreeMap<String, String>,
}

/// The header fields with ids of each request that an engine got.
type Fields = Vec<BTreeMap<String, String>>;

/// Runs two engines behind a router that hashes this header, with these flags. Returns the
/// exchanges, the router's log, and the header fields with ids that each engine logged.
fn run_through_router(header: &str, flags: &str) -> (Vec<Exchange>, Vec<Entry>, [Fields; 2]) {
    let folder = TempDir::new().unwrap();
    let engine = || Mock::logging(&["--ttft", "2ms", "--itl", "100us"]);
    let engines = [engine(), engine()];
    let log = folder.path().join("router.jsonl");
    let mut command = Command::new("python3");
    command.arg(ROUTER).arg(&log).arg(header);
    command.args(engines.iter().map(|engine| &engine.url));
    let mut router = Process::start(command.stdin(Stdio::piped()));
    router.until("its port", |router| router.stdout().ends_with('\n'));
    let url = format!("http://127.0.0.1:{}", router.stdout().trim());
    let mut command = runner();
    command.args(words("--backend openai-chat --model mock --concurrency 8"));
    command.args(words(flags)).args(["--base-url", &url]);
    run(command.current_dir(folder.path())).with_code(0);
    let exchanges = exchanges(folder.path());
    let routed = json_lines(log);
    drop(router);
    let logged = engines.map(|engine| engine.end().into_iter().map(|truth| truth.ids).collect());
    (exchanges, routed, logged)
}

fn ids(exchange: &Exchange) -> &Ids {
    exchange.ids.as_deref().unwrap()
}

#[test]
fn a_conversation_stays_on_a_server_whose_log_joins_the_records() {
    let agents = "dataset.config={sub-agents={count=2,tool-calls=1},tool-calls=4}";
    let flags = format!(
        "--dataset-name agent --set {agents} --sessions 24 --session-header X-Session-ID \
         --parent-session-header X-Dynamo-Parent-Session-ID --traceparent"
    );
    let (exchanges, routed, logged) = run_through_router("x-session-id", &flags);
    assert!(exchanges.iter().all(Exchange::is_ok));
    // By the router's own log, each session is on one server, and both have some.
    let mut servers: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for request in &routed {
        let session = &*request.headers["x-session-id"];
        servers.entry(session).or_default().insert(request.server);
    }
    assert!(servers.values().all(|on| on.len() == 1), "{servers:?}");
    let all: BTreeSet<usize> = servers.values().flatten().copied().collect();
    assert_eq!(all.len(), 2);
    // The requests of a conversation have one id, and no other conversation has it.
    let mut sessions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let measured = || exchanges.iter().filter(|it| it.phase == Phase::Measure);
    for exchange in measured() {
        let turn = exchange.sample.turn.as_ref().unwrap();
        let session = ids(exchange).session.as_deref().unwrap();
        sessions.entry(&turn.session).or_default().insert(session);
    }
    assert!(sessions.values().all(|ids| ids.len() == 1), "{sessions:?}");
    let different: BTreeSet<_> = sessions.values().flatten().collect();
    assert_eq!(different.len(), sessions.len());
    // A sub-agent's requests name the session of the agent that began it; an agent's name none.
    let by_index: BTreeMap<u64, &Exchange> = measured().map(|it| (it.index, it)).collect();
    let mut parents = 0;
    for exchange in measured() {
        let class = exchange.sample.class.as_deref();
        assert_eq!(ids(exchange).parent.is_some(), class == Some("sub-agent"));
        if let Some(parent) = &ids(exchange).parent {
            // Up its own conversation, to the request that it came from.
            let mut from = exchange;
            while ids(from).session == ids(exchange).session {
                from = by_index[&from.sample.parents[0]];
            }
            assert_eq!(ids(from).session.as_ref(), Some(parent));
            parents += 1;
        }
    }
    assert!(parents > 0);
    // The servers' logs join the records in full, and have each field.
    let logged: Vec<_> = logged.into_iter().flatten().collect();
    assert_eq!(logged.len(), exchanges.len());
    let logged: BTreeMap<&str, _> = logged.iter().map(|it| (&*it["x-request-id"], it)).collect();
    assert_eq!(logged.len(), exchanges.len());
    for exchange in &exchanges {
        let own = ids(exchange);
        let seen = logged[own.request.as_deref().unwrap()];
        assert_eq!(seen.get("x-session-id"), own.session.as_ref());
        assert_eq!(seen.get("x-dynamo-parent-session-id"), own.parent.as_ref());
        let (trace, span) = (own.trace.unwrap(), own.span.unwrap());
        assert_eq!(seen["traceparent"], format!("00-{trace}-{span}-01"));
    }
}

#[test]
fn a_prefix_has_one_routing_key_with_other_tools_names_too() {
    let flags = "--dataset-name generated-shared-prefix --gsp-num-groups 6 \
                 --gsp-prompts-per-group 8 --gsp-system-prompt-len 64 --gsp-question-len 8 \
                 --gsp-output-len 4 --num-prompts 48 --gsp-send-routing-key \
                 --request-id-prefix bench- --warmup-requests 0";
    let (exchanges, routed, _) = run_through_router("x-smg-routing-key", flags);
    let keys: BTreeSet<&String> =
        (routed.iter()).map(|request| &request.headers["x-smg-routing-key"]).collect();
    assert_eq!(keys.len(), 6);
    let sent: BTreeSet<&str> =
        (routed.iter()).map(|request| &*request.headers["x-request-id"]).collect();
    let wanted: Vec<String> = (0..48).map(|number| format!("bench-{number}")).collect();
    assert_eq!(sent, wanted.iter().map(String::as_str).collect());
    assert!(exchanges.iter().all(|it| ids(it).trace.is_none()));
}

#[test]
fn a_header_of_the_user_goes_first_and_off_sends_nothing() {
    let line = "--dataset-name random --random-input-len 8 --random-output-len 2 --num-prompts 4";
    let own = format!("{line} --header X-Request-ID:mine");
    let (exchanges, routed, _) = run_through_router("x-request-id", &own);
    assert!((routed.iter()).all(|request| request.headers["x-request-id"] == "mine"));
    assert!(exchanges.iter().all(|exchange| exchange.ids.is_none()));
    let off = format!("{line} --request-id-header off");
    let (exchanges, routed, _) = run_through_router("x-request-id", &off);
    assert!((routed.iter()).all(|request| !request.headers.contains_key("x-request-id")));
    assert!(exchanges.iter().all(|exchange| exchange.ids.is_none()));
}

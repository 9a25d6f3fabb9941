//! MLPerf Agentic on virtual time, against MLCommons endpoints (`agentic/make.py`): the requests,
//! their times, and the end of the measurement.

use std::collections::BTreeMap;
use std::path::Path;

use model::exchange::{Exchange, Phase};
use serde_json::Value;

use super::sessions::answer;
use crate::support::raw::{Raw, whole};
use crate::support::trial::{RunResult, Trial};

const TRAJECTORIES: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/whole_runs/agentic/trajectories.jsonl");

const SCENARIO: &str = r#"
target.model = "mock"
backend.plugin = "backends/vllm.wasm"
backend.config = { route = "chat" }
dataset.plugin = "datasets/conversation.wasm"
load = { concurrency = 3, sessions = 5, lanes = { start-at = [0.0, 0.0], salt = "pass" } }
[request]
history = "recorded"
after-failure = "drop"
output-tokens = 8192
ignore-eos = false
temperature = 1.0
top-k = 20
top-p = 0.95
repetition-penalty = 1.0
presence-penalty = 1.5
ids = { session = "x-session-id", form = "named" }
extra-body = { chat_template_kwargs = { preserve_thinking = true } }
"#;

fn trial(raw: &std::sync::Arc<Raw>) -> Trial {
    Trial::new(SCENARIO).dataset_file(Path::new(TRAJECTORIES)).against_raw(raw)
}

/// A trajectory's request: its name, its number of messages, and the facts about it.
type Requests = BTreeMap<(String, usize), (bool, f64)>;

fn sent(ran: &RunResult, of: impl Fn(&Exchange) -> usize) -> Requests {
    let sent = ran.exchanges.iter().filter_map(|exchange| {
        let at = exchange.sent?.since(ran.start()).as_millis_f64();
        let session = exchange.sample.turn.as_ref()?.session.clone();
        Some(((session, of(exchange)), (exchange.phase == Phase::Measure, at)))
    });
    sent.collect()
}

/// The requests that a server saw: the session's name and the body.
fn seen(raw: &Raw) -> Vec<(String, Value)> {
    let requests = raw.requests().into_iter().filter_map(|request| {
        let (head, body) = request.split_once("\r\n\r\n")?;
        let mut fields = head.lines().filter_map(|line| line.split_once(": "));
        let (_, session) = fields.find(|(name, _)| name.eq_ignore_ascii_case("x-session-id"))?;
        let mut body: Value = serde_json::from_str(body).ok()?;
        body.as_object_mut()?.remove("stream_options");
        Some((session.to_owned(), body))
    });
    requests.collect()
}

#[tokio::test(start_paused = true)]
async fn requests_are_those_of_mlcommons_endpoints() {
    let theirs: Vec<Value> = serde_json::from_str(include_str!("agentic/requests.json")).unwrap();
    let raw = Raw::engine(answer);
    let ran = trial(&raw).run().await;
    let mut requests = seen(&raw);
    let messages = |body: &Value| body["messages"].as_array().unwrap().len();
    let mut expected = Requests::new();
    for theirs in &theirs {
        let body = &theirs["body"];
        let session = theirs["session"].as_str().unwrap().to_owned();
        let place = requests.iter().position(|own| own.0 == session && own.1 == *body);
        let place = place.unwrap_or_else(|| panic!("{session}: {body} is none of {requests:#?}"));
        requests.swap_remove(place);
        let facts = (theirs["is-measured"].as_bool().unwrap(), theirs["at-ms"].as_f64().unwrap());
        expected.insert((session, messages(body)), facts);
    }
    assert!(requests.is_empty(), "{requests:#?}");
    // Each turn's number of messages, by its place in its trajectory.
    let counts: BTreeMap<&str, Vec<usize>> =
        [("sim_0001", vec![2, 5, 7, 8, 10]), ("astropy", vec![2, 4])].into();
    let own = sent(&ran, |exchange| {
        let turn = exchange.sample.turn.as_ref().unwrap();
        let (_, counts) = counts.iter().find(|(name, _)| turn.session.starts_with(*name)).unwrap();
        counts[turn.index as usize]
    });
    assert_eq!(own.len(), theirs.len());
    for (request, (is_measured, at)) in &expected {
        let (own_measured, own_at) = own[request];
        assert_eq!(own_measured, *is_measured, "{request:?}");
        assert!((own_at - at).abs() < 1.5, "{request:?}: {own_at} ms, not {at} ms");
    }
    let tail = expected.values().filter(|(is_measured, _)| !is_measured).count() as u64;
    let requests = &ran.summary.requests;
    assert_eq!((requests.tail, requests.total), (tail, expected.len() as u64 - tail));
}

/// Machines of a fleet replay the same trajectories: no two share a pass of one, and their requests
/// equal a single machine's.
#[tokio::test(start_paused = true)]
async fn slices_send_the_requests_of_the_whole() {
    let whole = Raw::engine(answer);
    trial(&whole).run().await;
    let mut together = Vec::new();
    for index in 0..2 {
        let slice = Raw::engine(answer);
        trial(&slice).slice(index, 2).run().await;
        assert!(!seen(&slice).is_empty());
        together.extend(seen(&slice));
    }
    let sorted = |mut requests: Vec<(String, Value)>| {
        requests.sort_by_key(|(session, body)| (session.clone(), body.to_string()));
        requests
    };
    assert_eq!(sorted(together), sorted(seen(&whole)));
}

#[tokio::test(start_paused = true)]
async fn failed_turn_ends_its_trajectory() {
    let raw = Raw::engine(|number| match number {
        0 => whole("500 Internal Server Error", "{}"),
        _ => answer(number),
    });
    let ran = trial(&raw).run().await;
    let of = |exchange: &&Exchange| {
        let turn = exchange.sample.turn.as_ref();
        turn.is_some_and(|turn| turn.session == "astropy/12907")
    };
    let sent: Vec<bool> =
        ran.exchanges.iter().filter(of).map(|exchange| exchange.sent.is_some()).collect();
    assert_eq!(sent, [true, false]);
}

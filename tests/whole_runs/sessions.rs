//! Sessions as whole runs on virtual time: the requests, their content, and their times.

use std::io::Write as _;

use model::exchange::{Class, Exchange};
use model::units::Nanos;
use result::finding::Id;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::has_finding;
use crate::support::raw::{Act, CHUNKED, DONE, LAST_CHUNK, Raw, chunk, say, wait};
use crate::support::trial::{RunResult, Trial};

const MS: u64 = 1_000_000;

/// Chats with one instruction, three questions each, 500 ms apart, and answers on record.
pub(super) fn file(chats: u32) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    for chat in 0..chats {
        let mut messages = vec![json!({"role": "system", "content": format!("You are {chat}.")})];
        for turn in 0..3 {
            messages.push(json!({"role": "user", "content": format!("question {chat}.{turn}")}));
            messages.push(json!({"role": "assistant", "content": format!("record {chat}.{turn}")}));
        }
        let line = json!({"id": format!("chat-{chat}"), "messages": messages});
        writeln!(file, "{line}").unwrap();
    }
    file
}

pub(super) fn trial(file: &NamedTempFile, load: &str) -> Trial {
    Trial::new(&format!(
        r#"
[target]
model = "mock"
[backend]
plugin = "backends/openai.wasm"
config = {{ route = "chat" }}
[dataset]
plugin = "datasets/conversation.wasm"
config = {{ format = "messages", think-time = 0.5, output-len = 4 }}
[load]
warmup = 0
{load}
"#
    ))
    .dataset_file(file.path())
}

fn event(text: &str) -> String {
    let chunk = json!({"id": "c", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]});
    format!("data: {chunk}\n\n")
}

/// An answer that names the request's number, in two pieces 100 ms apart.
pub(super) fn answer(number: u64) -> Vec<Act> {
    let last = [chunk(event(&format!("{number}"))), chunk(DONE), LAST_CHUNK.into()];
    vec![say(CHUNKED), wait(100), say(chunk(event("answer "))), wait(100), say(last.concat())]
}

/// Runs a trial against an engine that gives this answer.
async fn answered(trial: Trial) -> RunResult {
    trial.against_raw(&Raw::engine(answer)).run().await
}

/// The messages of each request, in the order in which they came.
fn sent(raw: &Raw) -> Vec<Vec<(String, String)>> {
    let bodies = raw.requests();
    let bodies = bodies.iter().filter_map(|request| {
        let (_, body) = request.split_once("\r\n\r\n")?;
        serde_json::from_str::<Value>(body).ok()
    });
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    bodies
        .map(|body| {
            let messages = body["messages"].as_array().unwrap().iter();
            messages.map(|message| (text(&message["role"]), text(&message["content"]))).collect()
        })
        .collect()
}

fn contents(messages: &[(String, String)]) -> Vec<&str> {
    messages.iter().map(|(_, content)| content.as_str()).collect()
}

fn exchange(ran: &RunResult, id: &str) -> Exchange {
    let found = ran.exchanges.iter().find(|exchange| exchange.sample.id == id);
    found.unwrap_or_else(|| panic!("no {id}")).clone()
}

#[tokio::test(start_paused = true)]
async fn every_turn_holds_the_answers_that_were_given() {
    let file = file(1);
    let raw = Raw::engine(answer);
    let ran = trial(&file, "arrival = 'closed'\nconcurrency = 1\nsessions = 1")
        .against_raw(&raw)
        .run()
        .await;
    assert_eq!(ran.summary.requests.successful, 3, "{}", ran.text);
    let sent = sent(&raw);
    assert_eq!(sent.len(), 3);
    let given: Vec<_> =
        (0..2).map(|turn| exchange(&ran, &format!("chat-0/{turn}")).output).collect();
    assert_eq!(
        contents(&sent[2]),
        ["You are 0.", "question 0.0", &*given[0], "question 0.1", &*given[1], "question 0.2"]
    );
    assert!(given[0].starts_with("answer "), "{given:?}");
    let roles: Vec<&str> = sent[1].iter().map(|(role, _)| role.as_str()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
}

/// Think times to the nanosecond, however many sessions there are.
#[tokio::test(start_paused = true)]
async fn a_turn_is_due_when_the_answer_before_it_has_been_read() {
    let file = file(40);
    let ran = answered(trial(&file, "arrival = 'constant'\nrate = 20.0\nsessions = 40")).await;
    assert_eq!(ran.summary.requests.successful, 120, "{}", ran.text);
    for chat in 0..40 {
        for turn in 1..3 {
            let before = exchange(&ran, &format!("chat-{chat}/{}", turn - 1));
            let exchange = exchange(&ran, &format!("chat-{chat}/{turn}"));
            assert_eq!(exchange.due, before.ended.unwrap() + Nanos(500 * MS));
            assert_eq!(exchange.sent, Some(exchange.due), "{}", exchange.sample.id);
            assert_eq!(exchange.sample.parents, [before.index]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn recorded_histories_do_not_depend_on_the_server() {
    let file = file(2);
    let raw = Raw::engine(answer);
    let ran = trial(&file, "arrival = 'closed'\nconcurrency = 1\nrequests = 6")
        .with("[request]\nhistory = 'recorded'\n")
        .against_raw(&raw)
        .run()
        .await;
    assert_eq!(ran.summary.requests.successful, 6, "{}", ran.text);
    let last = exchange(&ran, "chat-1/2");
    assert_eq!(last.sample.history.map(|history| history.recorded), Some(2));
    let sent = sent(&raw);
    let last = sent.iter().find(|messages| contents(messages).contains(&"question 1.2"));
    assert!(contents(last.unwrap()).contains(&"record 1.1"));
}

fn refusing(which: u64) -> std::sync::Arc<Raw> {
    Raw::engine(move |number| {
        if number == which {
            crate::support::raw::whole("500 Internal Server Error", "{}")
        } else {
            answer(number)
        }
    })
}

#[tokio::test(start_paused = true)]
async fn requests_after_a_failure_fail_or_continue() {
    let file = file(2);
    let one_by_one = "arrival = 'closed'\nconcurrency = 1\nsessions = 2";
    let ran = trial(&file, one_by_one).against_raw(&refusing(0)).run().await;
    let failures: Vec<Class> = ran.failures().into_iter().map(|(_, class)| class).collect();
    assert_eq!(failures, [Class::HttpStatus, Class::ParentFailed, Class::ParentFailed]);
    assert_eq!(ran.summary.requests.successful, 3, "{}", ran.text);
    let raw = refusing(0);
    let ran = trial(&file, one_by_one)
        .with("[request]\nafter-failure = 'continue'\n")
        .against_raw(&raw)
        .run()
        .await;
    assert_eq!(ran.summary.requests.successful, 5, "{}", ran.text);
    let second = exchange(&ran, "chat-0/1");
    assert_eq!(second.sample.history.map(|history| history.recorded), Some(1));
    assert_eq!(contents(&sent(&raw)[1])[2], "record 0.0");
}

#[tokio::test(start_paused = true)]
async fn users_have_sessions_or_requests() {
    let file = file(3);
    let begun = |ran: &RunResult, chat: u32| {
        let root = exchange(ran, &format!("chat-{chat}/0"));
        root.sent.unwrap().since(ran.start()).0 / MS
    };
    let raw = Raw::engine(answer);
    let closed = "arrival = 'closed'\nconcurrency = 1\nsessions = 3";
    let ran = trial(&file, closed).against_raw(&raw).run().await;
    // Three answers of 200 ms, and two pauses of 500 ms.
    assert_eq!([begun(&ran, 0), begun(&ran, 1), begun(&ran, 2)], [0, 1600, 3200]);
    let ran = answered(trial(&file, &format!("{closed}\nusers = 'requests'"))).await;
    assert_eq!([begun(&ran, 0), begun(&ran, 1), begun(&ran, 2)], [0, 200, 400]);
    assert_eq!(ran.summary.requests.successful, 9, "{}", ran.text);
}

#[tokio::test(start_paused = true)]
async fn a_plan_of_sessions_can_be_cut() {
    let file = file(7);
    let mut seen: Vec<(u64, String)> = Vec::new();
    for index in 0..3 {
        let ran = answered(
            trial(&file, "arrival = 'constant'\nrate = 10.0\nsessions = 7").slice(index, 3),
        )
        .await;
        seen.extend(ran.measured().map(|exchange| (exchange.index, exchange.sample.id.clone())));
    }
    seen.sort();
    let whole: Vec<(u64, String)> =
        (0..21).map(|index| (index, format!("chat-{}/{}", index / 3, index % 3))).collect();
    assert_eq!(seen, whole);
}

/// Five users have one session at a time each: four processes together are the five, whoever has
/// two of them.
#[tokio::test(start_paused = true)]
async fn slices_of_a_plan_of_sessions_keep_as_many_users_busy() {
    for (concurrency, of) in [(5, 4), (1, 2), (3, 4)] {
        let file = file(11);
        let load = format!("arrival = 'closed'\nconcurrency = {concurrency}\nsessions = 11");
        let requests_of = async |slice: Option<u32>| {
            let raw = Raw::engine(answer);
            let mut trial = trial(&file, &load);
            if let Some(index) = slice {
                trial = trial.slice(index, of);
            }
            let ran = trial.against_raw(&raw).run().await;
            let start = ran.measured().map(|e| e.due).min().unwrap_or_default();
            ran.measured().map(|e| (e.index, e.sent.map(|at| at.since(start)))).collect::<Vec<_>>()
        };
        let mut whole = requests_of(None).await;
        let mut together = Vec::new();
        for index in 0..of {
            together.extend(requests_of(Some(index)).await);
        }
        whole.sort_unstable();
        together.sort_unstable();
        assert_eq!(together, whole, "{concurrency} users");
        assert_eq!(whole.len(), 33);
    }
}

#[tokio::test(start_paused = true)]
async fn a_system_prompt_stands_before_that_of_the_dataset() {
    let file = file(1);
    let raw = Raw::engine(answer);
    trial(&file, "arrival = 'closed'\nconcurrency = 1\nsessions = 1")
        .with("[request]\nsystem-prompt = 'Answer in rhyme.'\n")
        .against_raw(&raw)
        .run()
        .await;
    for messages in sent(&raw) {
        assert_eq!(messages[0].1, "Answer in rhyme.\n\nYou are 0.");
        assert!(messages[1..].iter().all(|(role, _)| role != "system"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_by_time_ends_in_the_middle_of_its_sessions() {
    let file = file(2);
    let ran = answered(trial(&file, "arrival = 'closed'\nconcurrency = 2\nduration = '1s'")).await;
    // The third turns would be due at 1.4 s.
    assert_eq!(ran.summary.requests.successful, 4, "{}", ran.text);
    assert_eq!(ran.summary.requests.total, 4);
}

/// Three answers of 200 ms and two pauses of 500 ms, to the nanosecond.
#[tokio::test(start_paused = true)]
async fn the_summary_says_how_long_sessions_took() {
    let file = file(4);
    let ran = answered(trial(&file, "arrival = 'closed'\nconcurrency = 2\nsessions = 4")).await;
    for (name, value) in [
        ("session-time", 1600.0),
        ("session-in-flight", 600.0),
        ("session-idle", 1000.0),
        ("session-turns", 3.0),
    ] {
        assert_eq!(ran.everywhere(name), (value, 4), "{name}");
    }
    let sessions = ran.summary.sessions.unwrap();
    assert_eq!((sessions.total, sessions.complete), (4, 4));
    assert_eq!((sessions.requests, sessions.alone), (12, 0));
    // Two after two, each pair in 1.6 s.
    assert_eq!(sessions.sessions_per_s, Some(4.0 / 3.2));
    assert_eq!(sessions.turns_per_s, Some(12.0 / 3.2));
    let turns: Vec<(Option<&str>, u64)> = (ran.summary.groups.by_turn.iter())
        .map(|turn| (turn.name.as_deref(), turn.requests))
        .collect();
    assert_eq!(turns, [(Some("0"), 4), (Some("1"), 4), (Some("2"), 4)]);
    let histories = ran.summary.histories.unwrap();
    assert_eq!((histories.requests, histories.answers, histories.recorded), (8, 12, 0));
    assert!(ran.text.contains("Complete sessions:                       4\n"), "{}", ran.text);
}

#[tokio::test(start_paused = true)]
async fn incomplete_sessions_are_distinguished() {
    let ends = |ran: &RunResult| {
        let sessions = ran.summary.sessions.unwrap();
        (sessions.complete, sessions.failed, sessions.cut_short)
    };
    let file = file(2);
    // The third turns would be due at 1.4 s.
    let ran = answered(trial(&file, "arrival = 'closed'\nconcurrency = 2\nduration = '1s'")).await;
    assert_eq!(ends(&ran), (0, 0, 2), "{}", ran.text);
    assert!(ran.summary.metric("session-time").is_none());

    let one_by_one = "arrival = 'closed'\nconcurrency = 1\nsessions = 2";
    let ran = trial(&file, one_by_one).against_raw(&refusing(0)).run().await;
    assert_eq!(ends(&ran), (1, 1, 0), "{}", ran.text);
    assert_eq!(ran.summary.requests.failed_by_themselves, Some(1));
    assert!(ran.text.contains("1 of them by themselves and 2 because"), "{}", ran.text);
    assert!(!has_finding(&ran, Id::RecordedAnswers));

    // If sessions go on with the answer on record, a remark says so; if the record is meant, none
    // does.
    let ran = trial(&file, one_by_one)
        .with("[request]\nafter-failure = 'continue'\n")
        .against_raw(&refusing(0))
        .run()
        .await;
    let histories = ran.summary.histories.unwrap();
    assert_eq!((histories.requests, histories.with_recorded), (4, 2));
    assert!(has_finding(&ran, Id::RecordedAnswers), "{}", ran.text);
    let ran = answered(trial(&file, one_by_one).with("[request]\nhistory = 'recorded'\n")).await;
    assert_eq!(ran.summary.histories.unwrap().recorded_share(), Some(1.0));
    assert!(!has_finding(&ran, Id::RecordedAnswers), "{}", ran.text);
}

/// The number of opened connections is the number of sessions, however many requests these have.
#[tokio::test(start_paused = true)]
async fn sessions_may_begin_all_at_once() {
    let file = file(2);
    let ran = answered(trial(&file, "arrival = 'inf'\nsessions = 2")).await;
    assert_eq!(ran.summary.requests.successful, 6, "{}", ran.text);
    assert_eq!(ran.peak_connections, 2);
}

/// The content of one session is more than the bound, so sessions come one after the other, however
/// many are due.
#[tokio::test(start_paused = true)]
async fn sessions_begin_only_while_there_is_memory_for_them() {
    let file = file(3);
    let load = "arrival = 'constant'\nrate = 10.0\nsessions = 3";
    let begun = |ran: &RunResult| {
        assert_eq!(ran.summary.requests.successful, 9, "{}", ran.text);
        (0..3).map(|chat| exchange(ran, &format!("chat-{chat}/0"))).collect::<Vec<_>>()
    };
    let free = begun(&answered(trial(&file, load)).await);
    let bounded = format!("{load}\nsession-memory = '1B'");
    let ran = answered(trial(&file, &bounded)).await;
    let roots = begun(&ran);
    for chat in 0..3 {
        // It is due when it would have been, and its lateness counts from there.
        let due = |roots: &[Exchange]| roots[chat].due.0 - roots[0].due.0;
        assert_eq!(due(&roots), due(&free));
        assert!(free[chat].sent.unwrap().0 - free[chat].due.0 < 2 * MS);
    }
    for chat in 0..2 {
        let over = exchange(&ran, &format!("chat-{chat}/2")).ended.unwrap();
        assert!(roots[chat + 1].sent.unwrap() >= over);
    }
    let late = roots[2].sent.unwrap().0 - roots[2].due.0;
    assert!(late > 2_000 * MS, "{late}");
}

/// The time that a trace states for a request is in the request's record, and only then.
#[tokio::test(start_paused = true)]
async fn a_recorded_duration_stays_with_its_request() {
    const TRACE: &str =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../plugins/datasets/trace/cases/weka/trace.jsonl");
    let scenario = "[target]\nmodel = 'mock'\n[backend]\nplugin = 'backends/vllm.wasm'\n\
        [dataset]\nplugin = 'datasets/trace.wasm'\n[load]\nsessions = 1\nwarmup = 0\n";
    let trial = Trial::new(scenario).dataset_file(std::path::Path::new(TRACE));
    let ran = trial.against("").run().await;
    let mut seconds: Vec<Option<f64>> = ran
        .measured()
        .map(|exchange| exchange.sample.recorded_duration.map(|took| took.as_secs_f64()))
        .collect();
    seconds.sort_by(|one, other| one.partial_cmp(other).unwrap());
    let stated = [1.0, 1.0, 1.0, 2.0, 2.0, 2.0].map(Some);
    assert_eq!(seconds, [&[None], &stated[..]].concat());
}

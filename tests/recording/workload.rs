//! A known trace is replayed through the recorder, and the recording is compared with it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Recorded, Recorder};
use crate::support::process::{Mock, run, runner, words};

/// Tokens of the mock engine are bytes, and so are the recorder's here.
const BYTES: &str = "--bytes-per-token 1";

/// Numbers that look random and are always the same.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// Rows of Mooncake's format whose lengths are all different: prompts that share up to six blocks.
fn mooncake(count: u64) -> Vec<Value> {
    let (mut numbers, mut next, mut time) = (Numbers(7), 10_000, 0);
    let mut lengths: Vec<u64> = (0..count).map(|row| 65 + row * 7).collect();
    for place in (1..lengths.len()).rev() {
        lengths.swap(place, numbers.below(place as u64 + 1) as usize);
    }
    let rows = lengths.into_iter().map(|length| {
        let blocks = length.div_ceil(64);
        let shared = numbers.below(7).min(blocks - 1);
        let root = 1000 * (1 + numbers.below(3));
        let ids = (0..blocks).map(|block| {
            next += 1;
            if block < shared { root + block } else { next }
        });
        let ids: Vec<u64> = ids.collect();
        time += numbers.below(25);
        json!({"timestamp": time, "input_length": length, "output_length": 1 + numbers.below(9),
               "hash_ids": ids, "block_size": 64})
    });
    rows.collect()
}

/// Replays a file through a recorder before a mock engine with these faults.
fn replayed(rows: &[Value], faults: &str, load: &str) -> Recorded {
    let folder = TempDir::new().unwrap();
    let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
    std::fs::write(folder.path().join("trace.jsonl"), text).unwrap();
    let mut flags = vec!["--ttft", "5ms", "--itl", "1ms"];
    if !faults.is_empty() {
        flags.extend(["--fault", faults]);
    }
    let mock = Mock::start(&flags);
    let recorder = Recorder::start(&mock.url, BYTES);
    let line = "run --backend openai --set backend.config.route=completions --dataset-name trace \
                --dataset-path trace.jsonl --warmup-requests 0 --output-dir runs";
    let mut command = runner();
    command.args(words(line)).args(words(load)).args(["--base-url", &recorder.url]);
    run(command.current_dir(folder.path())).with_code(0);
    recorder.end()
}

fn number(row: &Value, key: &str) -> u64 {
    row[key].as_u64().unwrap_or_else(|| panic!("`{key}`: {row}"))
}

fn ids(row: &Value) -> Vec<u64> {
    row["hash_ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect()
}

/// Checks that the whole blocks of two prompts are equal in one trace where they are equal in the
/// other.
#[track_caller]
fn check_blocks<'r>(pairs: impl Iterator<Item = (&'r Value, &'r Value)>, input: &str) {
    let (mut names, mut taken) = (BTreeMap::new(), BTreeSet::new());
    for (known, recorded) in pairs {
        let whole = number(known, input) as usize / 64;
        for (id, name) in ids(known)[..whole].iter().zip(&ids(recorded)[..whole]) {
            let first = *names.entry(*id).or_insert(*name);
            assert_eq!(first, *name, "block {id} has two names");
            taken.insert(*name);
        }
    }
    assert_eq!(names.len(), taken.len(), "two blocks have one name");
}

#[test]
fn a_recorded_trace_is_the_trace() {
    // Of each class a tenth of the requests, and one of each ten is sound.
    let faults = [
        "hang-up'",
        "cut', after-tokens = 1",
        "no-done', after-tokens = 1",
        "http-error'",
        "http-error', status = 429",
        "html', status = 502",
        "html'",
        "in-band-error', after-tokens = 1",
        "split', bytes = 1",
    ];
    let listed =
        |class: usize| (0..12).map(|ten| (10 * ten + class).to_string()).collect::<Vec<_>>();
    let faults = faults.iter().enumerate().map(|(class, fault)| {
        format!("kind = '{fault}, requests = [{}]", listed(class).join(", "))
    });
    let faults = faults.collect::<Vec<_>>().join("; ");
    for faults in ["", &faults] {
        let trace = mooncake(120);
        let recorded = replayed(&trace, faults, "--arrival dataset");
        assert_eq!(recorded.rows.len(), trace.len(), "{}", recorded.exit.stderr);
        let rows = recorded.rows.iter();
        let by_length: BTreeMap<u64, &Value> =
            rows.map(|row| (number(row, "input_length"), row)).collect();
        let pair = |row| (row, by_length[&number(row, "input_length")]);
        for (known, row) in trace.iter().map(pair) {
            assert_eq!(row["output_length"], known["output_length"], "{row}");
            assert_eq!(ids(row).len(), ids(known).len());
        }
        check_blocks(trace.iter().map(pair), "input_length");
        if !faults.is_empty() {
            assert_eq!(recorded.count("of them with an error status"), 36);
            assert!(recorded.count("of them without the end of their reply") >= 48);
        }
    }
}

/// Sessions of agents in the format `weka`: a sub-agent runs between two requests.
fn weka() -> Vec<Value> {
    let request = |t: f64, input: u64, ids: &[u64]| json!({"t": t, "type": "s", "model": "m", "in": input, "out": 3, "hash_ids": ids, "api_time": 0.01});
    let sessions = (0..7u64).map(|number| {
        let id = |block: u64| 100 * (number + 1) + block;
        // All sessions share their first block.
        let main = [1, id(1), id(2), id(3), id(4)];
        let agent = json!({"type": "subagent", "t": 0.03, "agent_id": "a", "duration_ms": 40, "status": "completed",
            "requests": [request(0.03, 70 + number, &[id(50)]), request(0.06, 140 + number, &[id(50), id(51)])]});
        let requests = [
            request(0.0, 130 + number, &main[..2]),
            request(0.02, 200 + number, &main[..3]),
            agent,
            request(0.1, 325 + number, &main),
        ];
        json!({"id": format!("s{number}"), "models": ["m"], "block_size": 64, "hash_id_scope": "global",
               "requests": requests})
    });
    sessions.collect()
}

/// The requests of a session and of its sub-agents, each with its thread.
fn requests(session: &Value) -> Vec<(usize, &Value)> {
    let items = session["requests"].as_array().unwrap().iter().enumerate();
    let requests = items.flat_map(|(place, item)| match item["requests"].as_array() {
        Some(own) => own.iter().map(|request| (place, request)).collect(),
        None => vec![(0, item)],
    });
    requests.collect()
}

#[test]
fn recorded_sessions_are_the_sessions() {
    let trace = weka();
    let load = "--concurrency 7 --num-prompts 35 --session-header x-session-id \
                --parent-session-header x-parent-session-id";
    let recorded = replayed(&trace, "", load);
    assert_eq!(recorded.sessions.len(), trace.len(), "{}", recorded.exit.stderr);
    let first = |session: &Value| number(requests(session)[0].1, "in");
    let sessions = recorded.sessions.iter();
    let by_first: BTreeMap<u64, &Value> =
        sessions.map(|session| (first(session), session)).collect();
    let mut pairs = Vec::new();
    for known in &trace {
        let session = by_first[&first(known)];
        let shape = |session: &Value| {
            let requests = requests(session).into_iter();
            requests
                .map(|(thread, one)| (thread, number(one, "in"), number(one, "out")))
                .collect::<Vec<_>>()
        };
        assert_eq!(shape(session), shape(known));
        let both = requests(known).into_iter().zip(requests(session));
        pairs.extend(both.map(|((_, known), (_, recorded))| (known.clone(), recorded.clone())));
    }
    check_blocks(pairs.iter().map(|(known, recorded)| (known, recorded)), "in");
}

/// A conversation of this many turns, by its first message.
fn chat(recorder: &Recorder, first: &str, turns: usize) {
    let mut messages = vec![json!({"role": "system", "content": "Be brief."})];
    for turn in 0..turns {
        messages.push(json!({"role": "user", "content": format!("{first} {turn}")}));
        let body =
            json!({"model": "mock", "messages": messages, "max_tokens": 5, "temperature": 0.25});
        let reply = super::traffic::post(
            recorder.address(),
            "/v1/chat/completions",
            "",
            body.to_string().as_bytes(),
        );
        let reply: Value = serde_json::from_str(reply.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        let message = &reply["choices"][0]["message"];
        messages.push(json!({"role": "assistant", "content": message["content"]}));
    }
}

#[test]
fn a_conversation_is_a_session_without_a_header() {
    let mock = Mock::start(&["--ttft", "2ms", "--itl", "1ms"]);
    let recorder = Recorder::start(&mock.url, BYTES);
    for (first, turns) in [("Hello", 3), ("Hello again", 2), ("Hello", 1)] {
        chat(&recorder, first, turns);
    }
    let recorded = recorder.end();
    let sessions: Vec<&str> =
        recorded.rows.iter().map(|row| row["session_id"].as_str().unwrap()).collect();
    // The last one repeats the beginning of the first, and nothing says that it continues it.
    assert_eq!(sessions, ["0", "0", "0", "1", "1", "2"]);
    assert!(
        recorded.rows[1]["delay"].as_f64().is_some() && recorded.rows[3].get("delay").is_none()
    );
    assert_eq!(recorded.rows[0]["extra"], json!({"temperature": 0.25}));

    // A prompt that repeats the answer before it states its new tokens. A replay with the server's
    // own answers has the same lengths.
    let new =
        |rows: &[Value]| rows.iter().map(|row| row["new_length"].as_u64()).collect::<Vec<_>>();
    let length = |place: usize, key| number(&recorded.rows[place], key);
    for place in [1, 2, 4] {
        let before = length(place - 1, "input_length") + length(place - 1, "output_length");
        assert_eq!(length(place, "new_length"), length(place, "input_length") - before);
    }
    assert!([0, 3, 5].iter().all(|place| new(&recorded.rows)[*place].is_none()));
    let load = "--arrival dataset --ignore-eos --set dataset.config.answers=live \
                --set backend.config.route=chat";
    let replayed = replayed(&recorded.rows, "", load);
    let lengths = |rows: &[Value]| {
        let mut lengths: Vec<_> = (rows.iter().zip(new(rows)))
            .map(|(row, new)| (number(row, "input_length"), number(row, "output_length"), new))
            .collect();
        lengths.sort_unstable();
        lengths
    };
    assert_eq!(lengths(&replayed.rows), lengths(&recorded.rows));
}

/// `runner plan TRACE`: the figures equal counts of the rows by hand.
#[test]
fn a_trace_is_described_without_a_scenario() {
    let folder = TempDir::new().unwrap();
    let mut trace = mooncake(60);
    for (number, row) in trace.iter_mut().enumerate() {
        row["api_time"] = json!(0.02 * (number % 7) as f64);
    }
    let text: String = trace.iter().map(|row| format!("{row}\n")).collect();
    std::fs::write(folder.path().join("trace.jsonl"), text).unwrap();
    let mut command = runner();
    command.args(words("plan trace.jsonl --format json")).current_dir(folder.path());
    let outlook: Value = serde_json::from_str(&run(&mut command).with_code(0).stdout).unwrap();
    assert_eq!(outlook["requests"], 60);
    let tokens: u64 = trace.iter().map(|row| number(row, "input_length")).sum();
    assert_eq!(outlook["cache"]["tokens"], tokens);
    // A cache that holds everything finds as much as one without limits, and a smaller one no more.
    let sizes = outlook["cache"]["sizes"].as_array().unwrap();
    let shares: Vec<f64> = sizes.iter().map(|size| size["share"].as_f64().unwrap()).collect();
    assert!(
        shares.is_sorted() && shares.last() == outlook["cache"]["share"].as_f64().as_ref(),
        "{outlook}"
    );
    let spans = trace.iter().map(|row| {
        let start = row["timestamp"].as_f64().unwrap() / 1e3;
        (start, start + row["api_time"].as_f64().unwrap())
    });
    let spans: Vec<(f64, f64)> = spans.collect();
    // A request of no length is in flight at its instant.
    let at_once = |at: f64| {
        spans
            .iter()
            .filter(|(start, end)| *start <= at && (at < *end || start == end && *start == at))
            .count()
    };
    let most = spans.iter().map(|(start, _)| at_once(*start)).max().unwrap();
    let found = outlook["in-flight"]["most-requests"].as_u64().unwrap();
    assert!(found.abs_diff(most as u64) <= 1, "{found} and {most}");
}

/// Conversations with one of two system prompts, of 5 and of 11 blocks.
fn conversations(count: u64) -> String {
    let (mut numbers, mut next, mut time, mut rows) = (Numbers(11), 1_000_000, 0, Vec::new());
    for session in 0..count {
        time += numbers.below(30) * numbers.below(30);
        let (system, blocks) = if numbers.below(4) == 0 { (2_000, 11) } else { (1_000, 5) };
        let mut ids: Vec<u64> = (system..system + blocks).collect();
        let (mut length, mut at) = (64 * blocks + 1, time);
        for turn in 0..1 + numbers.below(3) * numbers.below(3) {
            length += 1 + numbers.below(25) * numbers.below(25);
            ids.truncate(length as usize / 64);
            while (ids.len() as u64) < length.div_ceil(64) {
                next += 1;
                ids.push(next);
            }
            let (answer, pause) = (1 + numbers.below(200), numbers.below(3_000));
            let mut row = json!({"timestamp": at, "session_id": session.to_string(), "input_length": length,
                "output_length": answer, "hash_ids": ids, "block_size": 64, "api_time": 0.25});
            if turn > 0 {
                row["delay"] = json!(pause);
            }
            rows.push(row);
            length += answer;
            at += 250 + pause;
        }
    }
    rows.sort_by_key(|row| row["timestamp"].as_u64());
    rows.iter().map(|row| format!("{row}\n")).collect()
}

#[test]
fn a_fit_has_the_distributions_of_the_recording() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("rows.jsonl"), conversations(400)).unwrap();
    let runner = |line: &str| {
        let mut command = runner();
        run(command.args(words(line)).current_dir(folder.path())).with_code(0).stdout
    };
    let table = runner("record --fit fit.toml rows.jsonl");
    let means = table.lines().filter(|line| line.contains(" mean "));
    let distances: Vec<f64> =
        means.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect();
    // Two samples of 400 are 0.138 apart by chance in one of a thousand.
    assert_eq!(distances.len(), 5, "{table}");
    assert!(distances.iter().all(|distance| *distance < 0.138), "{table}");
    let points = table.lines().find(|line| line.contains("prefix cache")).unwrap();
    let points: f64 = points.rsplit(' ').nth(1).unwrap().parse().unwrap();
    assert!(points.abs() < 5.0, "{table}");
    // The scenario states its distance, and runs.
    let scenario = std::fs::read_to_string(folder.path().join("fit.toml")).unwrap();
    assert!(scenario.contains(table.lines().last().unwrap()), "{scenario}");
    let plan: Value = serde_json::from_str(&runner("plan fit.toml --format json")).unwrap();
    assert_eq!(plan["sessions"]["count"], 400);
    // Prompts of one length, which stand alone.
    let row = |number: u64| json!({"timestamp": 10 * number, "input_length": 200, "output_length": number % 3});
    let alone: String = (0..7).map(|number| format!("{}\n", row(number))).collect();
    std::fs::write(folder.path().join("alone.jsonl"), alone).unwrap();
    assert!(runner("record --fit alone.toml alone.jsonl").contains("prompt tokens"));
    for (plan, chart) in [("rows.jsonl", "Tokens in flight"), ("fit.toml", "Requests per session")]
    {
        let page = runner(&format!("plan {plan} --format html"));
        assert!(page.contains(chart) && page.contains("best possible hits"), "{plan}");
    }
}

//! `runner verify`, as a whole: our own figures are exact in every case, eleven faulty clients are
//! caught by name, and the cases are true to their scripts.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::process::{Process, processes_with, run, run_patiently, runner};
use crate::support::results::follows;
use ::verify::expected::Expected;
use ::verify::{Case, Log};
use mock::{Engine, Script};

/// The mutations of a client: the mistake, the case that shows it, its wrong figure, and the cause.
const MUTANTS: [(&str, &str, &str, &str); 11] = [
    ("role", "stream-role", "ttft.mean", "first-chunk"),
    ("answer-only", "stream-reasoning", "ttft.mean", "first-answer"),
    ("chunks", "stream-four-tokens", "tokens.output", "tokens by chunks"),
    ("over-all", "stream-four-tokens", "tpot.mean", "with-first"),
    ("asked", "fault-short", "tokens.output", "tokens by asked"),
    ("failures", "fault-in-band", "requests.successful", "successes by text"),
    ("slowest", "fault-stall", "longest.max", "without the slowest"),
    ("warm-up", "load-warm-up", "requests.successful", "with the warm-up"),
    ("closed-loop", "fault-pause", "load.arrivals", "a loop that waits for the server"),
    ("random-gaps", "load-constant", "load.arrivals", "random gaps"),
    ("half-in-flight", "load-concurrency", "load.in-flight", "2 in flight"),
];

/// A client with this program's records and figures of its own. `$MUTANT` names its mistake.
const CLIENT: &str = r#"
set -e
requests=$1 warm_up=$2 output_len=$3 url=$4 folder=$5 tokenizer=$6
shift 6
case $MUTANT in
    closed-loop | half-in-flight) set -- --concurrency 2;;
    random-gaps) set -- "$@" --arrival poisson;;
    warm-up) requests=$((requests + warm_up)) warm_up=0;;
esac
"$RUNNER" run --line-of runner --backend openai-chat --base-url "$url" --model mock --tokenizer "$tokenizer" \
    --dataset-name random --random-input-len 16 --random-output-len "$output_len" \
    --num-prompts "$requests" --warmup-requests "$warm_up" "$@" \
    --output-dir "$folder/runs" --allow-invalid --no-progress >/dev/null
"$RUNNER" export "$folder/runs" --table requests --format csv --output "$folder/requests.csv"
awk -F, -v mutant="$MUTANT" -v asked="$output_len" '
NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
$at["phase"] != "measure" { next }
{
    good = $at["outcome"] == "complete"
    if (mutant == "failures") good = $at["first_token_ns"] != ""
    if (!good) next
    count++
    n = $at["output_tokens"]
    e2e = $at["e2e_ms"]
    tokens += mutant == "chunks" ? n / $at["tokens_per_event"] : mutant == "asked" ? asked : n
    first = mutant == "role" ? "ttft_any_ms" : mutant == "answer-only" ? "ttft_answer_ms" : "ttft_ms"
    ttft += $at[first]
    all += e2e
    if (e2e > longest) { second = longest; longest = e2e } else if (e2e > second) second = e2e
    if (n > 1) {
        tpot += mutant == "over-all" ? e2e / n : (e2e - $at["ttft_ms"]) / (n - 1)
        several++
    }
}
END {
    print "successful", count
    print "output", tokens
    print "ttft", ttft / count
    print "e2e", all / count
    print "longest", mutant == "slowest" ? second : longest
    print "tpot", tpot / several
}' "$folder/requests.csv"
"#;

/// The profile of that client. It claims to be right, whatever the client does.
const PROFILE: &str = r#"
name = "faulty"
title = "A faulty client"
command = ["sh", "CLIENT", "{requests}", "{warm-up}", "{output-len}", "{base-url}", "{folder}",
    "{tokenizer}"]
[[arguments]]
when = "rate"
add = ["--request-rate", "{rate}", "--arrival", "constant"]
[[arguments]]
when = "concurrency"
add = ["--concurrency", "{concurrency}"]
[environment]
RUNNER = "PROGRAM"
MUTANT = "NAME"
[[source]]
name = "stdout"
reader = "text"
[figures.ttft]
definition = "first-text"
pattern = "(?m)^ttft ([0-9.]+)"
statistics = ["mean"]
[figures.e2e]
definition = "end"
pattern = "(?m)^e2e ([0-9.]+)"
statistics = ["mean"]
[figures.longest]
of = "e2e"
definition = "end"
pattern = "(?m)^longest ([0-9.]+)"
statistics = ["max"]
[figures.tpot]
definition = "over-n-1"
pattern = "(?m)^tpot ([0-9.]+)"
statistics = ["mean"]
[figures."requests.successful"]
definition = "complete"
pattern = "(?m)^successful ([0-9]+)"
[figures."tokens.output"]
definition = ["usage", "text"]
pattern = "(?m)^output ([0-9.]+)"
[load]
arrivals = ["constant"]
"#;

/// The card of a client in these cases.
fn card(client: &str, flags: &[&str], cases: &[&str], code: i32) -> Value {
    let mut command = runner();
    command.args(["verify", client, "--format", "json", "--strict"]);
    command.args(flags);
    for case in cases {
        command.args(["--case", case]);
    }
    let ended = run_patiently(&mut command).with_code(code);
    serde_json::from_str(&ended.stdout).unwrap()
}

/// Everything that is not exact on a card, as text.
fn off(card: &Value) -> Vec<String> {
    let mut off = Vec::new();
    for case in card["cases"].as_array().unwrap() {
        let name = &case["name"];
        if case["outcome"] != serde_json::json!({ "judged": "exact" }) {
            off.push(format!("{name}: {}", case["outcome"]));
        }
        let checks = case["checks"].as_array().into_iter().flatten();
        for check in checks.filter(|check| check["verdict"] != "exact") {
            off.push(format!("{name}: {}", check["words"]));
        }
    }
    off
}

/// The cases of a part, each part by a process of its own: most of a case is waiting.
#[test]
fn our_own_figures_are_exact() {
    let parts = ["load-*", "stream-*", "fault-*"];
    let cards = std::thread::scope(|scope| {
        // A busy machine reads late, but by less than the definitions differ.
        let patient = ["--tries", "10", "--tolerance", "20ms"];
        let running = parts.map(|part| scope.spawn(move || card("runner", &patient, &[part], 0)));
        running.map(|part| part.join().unwrap())
    });
    let mut cases = 0;
    for card in &cards {
        assert_eq!(off(card), Vec::<String>::new());
        follows("verify", card);
        let judged = card["cases"].as_array().unwrap();
        cases += judged.len();
        for case in judged {
            let checks = case["checks"].as_array().map_or(0, Vec::len);
            assert!(checks > 1, "{}: {checks} checks", case["name"]);
        }
    }
    assert_eq!(cases, shipped::texts_below("conformance/").filter(is_case).count());
}

fn is_case((name, _): &(&str, &str)) -> bool {
    name.ends_with(".toml") && !name.contains('/')
}

#[test]
fn faulty_clients_are_caught() {
    let folder = tempfile::tempdir().unwrap();
    let client = folder.path().join("client.sh");
    fs::write(&client, CLIENT).unwrap();
    let profile = |name: &str| {
        let path = folder.path().join(format!("{name}.toml"));
        let text = PROFILE
            .replace("CLIENT", client.to_str().unwrap())
            .replace("PROGRAM", env!("CARGO_BIN_EXE_runner"))
            .replace("NAME", name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let cases: BTreeSet<&str> = MUTANTS.iter().map(|(_, case, ..)| *case).collect();
    let cases: Vec<&str> = cases.into_iter().collect();
    let (honest, cases) = (&profile("none"), &cases);
    let next = AtomicUsize::new(0);
    let missed = Mutex::new(Vec::new());
    let work = || {
        while let Some((name, case, figure, fits)) = MUTANTS.get(next.fetch_add(1, Relaxed)) {
            // On a busy machine a time may fit nothing at first.
            let mut tries = (0..6).map(|_| card(&profile(name), &["--tries", "1"], &[case], 7));
            let is_caught = |card: &Value| {
                let checks = card["cases"][0]["checks"].as_array().cloned();
                checks.into_iter().flatten().any(|check| {
                    let found = check["fits"].as_str().unwrap_or_default();
                    check["figure"] == *figure && found.contains(fits)
                })
            };
            if !tries.any(|card| is_caught(&card)) {
                missed.lock().unwrap().push(*name);
            }
        }
    };
    std::thread::scope(|scope| {
        // The same client without a fault is exact in the same cases.
        let patient = ["--tries", "10", "--tolerance", "20ms"];
        scope.spawn(move || {
            assert_eq!(off(&card(honest, &patient, cases, 0)), Vec::<String>::new());
        });
        for _ in 0..3 {
            scope.spawn(work);
        }
    });
    assert_eq!(missed.into_inner().unwrap(), Vec::<&str>::new());
}

/// Profiles of older versions are found by name, and listed nowhere.
#[test]
fn older_versions_are_found_and_not_listed() {
    let listed = run(runner().args(["verify", "--list"])).with_code(0).stdout;
    assert!(listed.contains("  genai-bench ") && !listed.contains("0.0.2"));
    let older = ["verify", "older/genai-bench-0.0.2"];
    let none = run(runner().args(older).args(["--program", "no-such-program"])).with_code(3);
    let (message, install) = (&none.stderr, "pip install genai-bench==0.0.2");
    assert!(message.contains(install), "{message}");
    let none = run(runner().args(["verify", "older/genai-bench"])).with_code(3);
    assert!(!none.stderr.contains("older/sglang"), "{}", none.stderr);
}

/// The values of each stated definition equal the script's, to the nanosecond, on a virtual clock.
#[tokio::test(start_paused = true)]
async fn cases_hold_their_descriptions() {
    let mut compared = 0;
    let of_older = |(name, _): &(&str, &str)| name.starts_with("clients/older/cases/");
    let cases = shipped::texts_below("conformance/").filter(|one| is_case(one) || of_older(one));
    for (name, text) in cases {
        let case = Case::read(name, text).unwrap();
        let script: Script = case.script().parse().unwrap();
        let engine = Engine::with_bytes(script).unwrap();
        for number in 0..case.asks.requests {
            let (mut client, server) = tokio::io::duplex(1 << 16);
            tokio::spawn(mock::serve_connection(server, Arc::clone(&engine)));
            let body = format!(
                r#"{{"messages":[{{"content":"{number}"}}],"max_tokens":{},"stream":true}}"#,
                case.asks.output_len
            );
            let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: mock\r\nconnection: close";
            let request = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            client.write_all(request.as_bytes()).await.unwrap();
            let _ = client.read_to_end(&mut Vec::new()).await;
        }
        let log = Log::read(&mock::log(&engine)).unwrap();
        assert_eq!(log.requests.len() as u64, case.asks.requests, "{name}");
        let count = |text: &str| Some(text.split_whitespace().count() as u64);
        let expected = Expected::new(&case, &log, 0, &count);
        for (figure, by) in &expected.on_time {
            let of_log = [figure.clone(), format!("{figure}.mean")];
            let of_log = of_log.iter().find_map(|figure| expected.by_log.get(figure));
            let of_log = of_log.unwrap_or_else(|| panic!("{name}: {figure} is not judged"));
            for (word, value) in by {
                let found = of_log.get(word).copied().unwrap_or(f64::NAN);
                assert!((found - value).abs() < 1e-6, "{name}: {figure} by {word}: {found}");
                compared += 1;
            }
        }
    }
    assert!(compared > 100, "{compared}");
}

#[test]
fn clients_that_cannot_be_verified_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("wrong.toml");
    fs::write(&wrong, PROFILE.replace("first-text", "first-token")).unwrap();
    let missing = folder.path().join("missing.toml");
    fs::write(&missing, PROFILE.replace("\"sh\", \"CLIENT\"", "\"no-such-client\"")).unwrap();
    let silent = folder.path().join("silent.toml");
    fs::write(&silent, PROFILE.replace("\"sh\", \"CLIENT\"", "\"echo\"")).unwrap();
    let wrong = wrong.to_str().unwrap();
    let missing = missing.to_str().unwrap();
    for (flags, code, expected) in [
        (vec!["nobody"], 3, "no client `nobody`; there are"),
        (vec!["runner", "--case", "stream-x"], 2, "no case `stream-x`"),
        (vec![wrong], 3, "wrong.toml: `figures.ttft`"),
        (vec![missing, "--case", "stream-role"], 3, "`no-such-client` does not run"),
        (vec!["runner", "--cases", "no-such-folder"], 3, "no-such-folder: cannot be read"),
        (vec!["runner", "--tokenizer", "no-such"], 3, "--tokenizer: no-such: cannot be read"),
    ] {
        let ended = run(runner().arg("verify").args(&flags)).with_code(code);
        assert!(ended.stderr.contains(expected), "{flags:?}: {}", ended.stderr);
    }
    let ended = run(runner().args(["verify", "--strict", "--case", "stream-role"]).arg(&silent));
    ended.with_stdout(7, "the client states no successful requests");
    let list = run(runner().args(["verify", "--list"])).with_code(0).stdout;
    assert!(list.contains("stream-role") && list.contains("Clients\n"), "{list}");
}

/// The client ends with the program, whatever ends it, signals that it cannot catch included.
#[test]
fn a_client_ends_with_the_program() {
    for name in ["HUP", "TERM", "KILL"] {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("client.toml");
        let client = format!("sleep 77{}", std::process::id());
        let script = format!("\"sh\", \"-c\", \"{client} & wait\"");
        fs::write(&at, PROFILE.replace("\"sh\", \"CLIENT\"", &script)).unwrap();
        let clients = || processes_with(&client).len();
        let mut verify =
            Process::start(runner().args(["verify", "--case", "stream-role"]).arg(&at));
        verify.until("the client works", |_| clients() == 2);
        verify.signal(name);
        verify.until_gone();
        let mut looks = 0..10_000;
        while clients() > 0 && looks.next().is_some() {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(clients(), 0, "after {name}");
    }
}

/// The view of another project's CI: a case below its base path, its log, and its expectations.
#[test]
fn cases_are_served_to_others() {
    let mut server = Process::start(runner().args(["mock", "--conformance", "--port", "0"]));
    server.until("it listens", |server| server.stdout().contains("/stream-usage-last\n"));
    let listening = server.stdout();
    let address = listening.lines().next().unwrap();
    let address = address.strip_prefix("listening on http://").unwrap();
    let ask = |method: &str, path: &str, body: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        let head = format!("{method} {path} HTTP/1.1\r\nhost: mock\r\nconnection: close");
        write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply.split_once("\r\n\r\n").unwrap().1.to_owned()
    };
    let cases: Value = serde_json::from_str(&ask("GET", "/", "")).unwrap();
    assert!(cases.as_array().unwrap().len() > 30);
    let body = r#"{"messages":[{"content":"x"}],"stream":true}"#;
    for _ in 0..2 {
        let reply = ask("POST", "/stream-role/v1/chat/completions", body);
        assert!(reply.contains("[DONE]"), "{reply}");
    }
    let expected = |query: &str| -> Value {
        serde_json::from_str(&ask("GET", &format!("/stream-role/expected{query}"), "")).unwrap()
    };
    let by_log = &expected("")["by-log"];
    assert_eq!(by_log["requests.successful"]["complete"], 2.0);
    assert_eq!(by_log["tokens.output"]["usage"], 12.0);
    let first = by_log["ttft.mean"]["first-chunk"].as_f64().unwrap();
    let text = by_log["ttft.mean"]["first-text"].as_f64().unwrap();
    assert!((50.0..text).contains(&first) && text >= 300.0, "{by_log}");
    let without = &expected("?warm-up=1")["by-log"];
    assert_eq!(without["requests.successful"]["complete"], 1.0);
    ask("POST", "/stream-role/reset", "");
    assert_eq!(expected("")["requests"], 0);
}

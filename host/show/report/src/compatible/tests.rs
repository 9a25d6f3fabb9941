//! The files that vLLM 0.32 and SGLang 0.5.23 wrote, made again from the requests that they list.

use std::collections::BTreeMap;
use std::convert::Infallible;

use serde_json::Value;

use super::{Compatible, Keep, Tool, sglang, vllm};
use crate::exchanges::{facts, failed, reply};
use crate::fixture::reported;
use crate::text;
use model::arrival::Arrival;
use model::exchange::{Class, Exchange, Kind, Usage};
use model::units::Nanos;
use result::metric::Objective;
use result::summary::{RunFacts, Tokenizer};
use scenario::plan::Amount;

/// vLLM's file and its block: a role chunk before the answer; failures of every kind; a rate, a
/// cap, objectives and percentiles; answers of one token.
const VLLM: [(&str, &str); 4] = [
    ("chat", "vllm-chat-role-chunk"),
    ("faults", "vllm-faults"),
    ("detailed", "vllm-detailed"),
    ("one token", "vllm-one-token"),
];

const SGLANG: [(&str, &str); 2] =
    [("details", "sglang-native-details"), ("faults", "sglang-native-faults")];

fn case(name: &str) -> String {
    let path = format!("{}/src/compatible/cases/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

/// Keys of theirs that are not in ours. vLLM's `rtfx` is about audio.
const LEFT_OUT: [&str; 1] = ["rtfx"];

/// The values given as `--metadata` and `--label`, whose order is not kept.
const METADATA: [&str; 3] = ["tensor_parallel_size", "note", "label"];

fn file(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn list<'a>(file: &'a Value, key: &str) -> &'a [Value] {
    file[key].as_array().map_or(&[], Vec::as_slice)
}

fn nanos(seconds: &Value) -> Nanos {
    Nanos::from_secs_f64(seconds.as_f64().unwrap())
}

/// The requests of a detailed file as we record them; without times, they begin with the run.
fn exchanges(file: &Value) -> Vec<Exchange> {
    (list(file, "errors").iter().enumerate())
        .map(|(index, error)| {
            let of = |key: &str| list(file, key).get(index);
            let count = |key: &str| of(key).and_then(Value::as_u64).unwrap() as u32;
            let sent = of("start_times").map_or(Nanos(1_000_000_000), nanos);
            let mut exchange = reply(index as u64, 0, &[]);
            let mut push = |at: Nanos, kind: Kind, tokens, bytes| {
                exchange.events.push(model::exchange::Event { at, kind, tokens, bytes });
            };
            let ttft = nanos(of("ttfts").unwrap());
            let mut at = sent + ttft;
            if ttft > Nanos::ZERO {
                push(at, Kind::Text, Some(1), 3);
            }
            for gap in list(file, "itls")[index].as_array().unwrap() {
                at = at + nanos(gap);
                push(at, Kind::Text, Some(1), 3);
            }
            push(at, Kind::Usage, None, 0);
            push(at, Kind::End, None, 0);
            exchange.sent = Some(sent);
            let queued = of("queue_times").map_or(Nanos::ZERO, nanos);
            exchange.due = Nanos(sent.0 - queued.0);
            exchange.ended = Some(at);
            exchange.sample.input_tokens = Some(count("input_lens"));
            exchange.output = of("generated_texts").unwrap().as_str().unwrap().to_owned();
            exchange.usage =
                Some(Usage { output_tokens: Some(count("output_lens")), ..Usage::default() });
            match error.as_str() {
                Some("") => exchange,
                message => failed(exchange, Class::Reset, message.unwrap()),
            }
        })
        .collect()
}

/// Reads the part of a file that is about the run as a whole.
fn run_of(file: &Value) -> RunFacts {
    let mut facts = facts();
    facts.run.request_rate = file["request_rate"].as_f64();
    facts.run.max_in_flight = file["max_concurrency"].as_u64();
    facts.run.tokenizer =
        Some(Tokenizer { name: "qwen3-tok".into(), approximate: false, ..Tokenizer::default() });
    for index in 0..list(file, "errors").len() as u64 {
        facts.retokenized.insert(index, 4);
    }
    facts
}

fn objectives(limits: &[(&str, f64)]) -> Vec<Objective> {
    let objective = |(name, limit): &(&str, f64)| Objective::new(name, *limit).unwrap();
    limits.iter().map(objective).collect()
}

fn seen<T>(
    tool: Tool,
    theirs: &Value,
    facts: &RunFacts,
    keep: Keep,
    show: impl FnOnce(&Compatible<'_>) -> T,
) -> T {
    let exchanges = exchanges(theirs);
    let mut reported = reported(facts, &exchanges);
    let plan = &mut reported.plan;
    plan.backend.name = if tool == Tool::Vllm { "vllm" } else { "sglang" }.into();
    plan.backend.config = serde_json::json!({});
    if theirs["backend"] == "openai-chat" {
        plan.backend.config = serde_json::json!({"route": "chat"});
    }
    plan.dataset.plugin.config =
        serde_json::json!({"input-len": 64, "output-len": 16, "range-ratio": 0.5});
    plan.target.model = theirs["model_id"].as_str().unwrap_or_default().to_owned();
    for key in METADATA {
        if let Some(note) = theirs[key].as_str() {
            plan.about.notes.insert(key.into(), note.into());
        }
    }
    plan.tokenizer.name = "qwen3-tok".into();
    plan.tokenizer.approximate = false;
    plan.load.amount = Amount::Requests(exchanges.len() as u64);
    plan.load.arrival = Arrival::Inf;
    plan.percentiles = theirs
        .as_object()
        .unwrap()
        .keys()
        .filter_map(|key| key.strip_prefix('p')?.strip_suffix("_ttft_ms")?.parse().ok())
        .collect();
    reported.summary.throughput.duration_s = theirs["duration"].as_f64();
    if let Some(date) = theirs["date"].as_str() {
        let date = jiff::civil::DateTime::strptime("%Y%m%d-%H%M%S", date).unwrap();
        reported.status.as_mut().unwrap().ended = format!("{date}Z");
    }
    let open = || Ok::<_, Infallible>(exchanges.iter().cloned().map(Ok));
    let Ok(compatible) = Compatible::read(tool, &reported, facts, keep, open);
    show(&compatible)
}

/// Compares two values: the same type, and numbers within a millionth of each other.
fn assert_like(key: &str, ours: &Value, theirs: &Value) {
    match (ours, theirs) {
        (Value::Number(a), Value::Number(b)) => {
            assert_eq!(a.is_f64(), b.is_f64(), "{key}: {ours}, not {theirs}");
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            assert!((a - b).abs() <= 1e-6 * b.abs().max(1e-3), "{key}: {a}, not {b}");
        }
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len(), "{key}");
            for (a, b) in a.iter().zip(b) {
                assert_like(key, a, b);
            }
        }
        (Value::Object(a), Value::Object(b)) => {
            assert!(a.keys().eq(b.keys()), "{key}: {ours}, not {theirs}");
            for (key, a) in a {
                assert_like(key, a, &b[key]);
            }
        }
        // Our words for why a request failed are our own.
        (Value::String(a), Value::String(b)) if key == "errors" => {
            assert_eq!(a.is_empty(), b.is_empty(), "{a}, not {b}");
        }
        _ => assert_eq!(ours, theirs, "{key}"),
    }
}

/// Compares two files: the same keys in order, without unmeasured ones, and most values.
fn assert_file(ours: &str, theirs: &Value, unmeasured: &[&str], unlike: &[&str]) {
    let ours = file(ours);
    let left_out = |key: &&String| {
        let key = key.as_str();
        LEFT_OUT.contains(&key)
            || METADATA.contains(&key)
            || unmeasured.iter().any(|part| key.contains(part))
    };
    let keys = |of: &Value| -> Vec<String> {
        of.as_object().unwrap().keys().filter(|key| !left_out(key)).cloned().collect()
    };
    let (our_keys, their_keys) = (keys(&ours), keys(theirs));
    let known: Vec<&String> = our_keys.iter().filter(|key| their_keys.contains(key)).collect();
    assert_eq!(known, their_keys.iter().collect::<Vec<_>>());
    for key in METADATA {
        assert_eq!(ours.get(key), theirs.get(key), "{key}");
    }
    for (key, theirs) in theirs.as_object().unwrap() {
        if ours.get(key).is_some() && !unlike.iter().any(|part| key.contains(part)) {
            assert_like(key, &ours[key], theirs);
        }
    }
}

/// vLLM's own figures, from vLLM's own requests, to the digits that its block prints.
#[test]
fn reproduces_vllms_result_files() {
    for (name, stem) in VLLM {
        let (theirs, block) = (case(&format!("{stem}.json")), case(&format!("{stem}.txt")));
        let theirs = file(&theirs);
        let mut facts = run_of(&theirs);
        facts.run.goodput = match name {
            "faults" => objectives(&[("ttft", 60.0), ("tpot", 9.0)]),
            "detailed" => objectives(&[("ttft", 60.0), ("tpot", 9.0), ("e2el", 180.0)]),
            _ => Vec::new(),
        };
        // vLLM writes zero for no samples, or with one token an answer; ours is absent.
        let unmeasured: &[&str] = if name == "one token" { &["_tpot_ms", "_itl_ms"] } else { &[] };
        let (ours, text) = seen(Tool::Vllm, &theirs, &facts, Keep::All, |seen| {
            (vllm::json(seen), text::vllm::text(seen))
        });
        assert_file(&ours, &theirs, unmeasured, &[]);
        let expected: String = block
            .split_inclusive('\n')
            .take_while(|line| !line.contains("Client-side Queueing"))
            .filter(|line| {
                let absent = ["TPOT", "ITL", "per Output", "Inter-"];
                unmeasured.is_empty() || !absent.iter().any(|part| line.contains(part))
            })
            .collect();
        let text = text.strip_suffix(&format!("{:=^50}\n", "")).unwrap();
        let expected = expected.trim_end_matches(&*format!("{:=^50}\n", ""));
        assert_eq!(text, expected, "{name}");
    }
}

/// SGLang's figures from its own requests, without figures on ends and beginnings.
#[test]
fn reproduces_sglangs_result_files() {
    let unlisted = [
        "e2e_latency",
        "tpot",
        "concurrency",
        "server_info",
        "tag",
        "retokenized",
        "slo_",
        "goodput",
    ];
    for (name, stem) in SGLANG {
        let (theirs, block) = (case(&format!("{stem}.jsonl")), case(&format!("{stem}.txt")));
        let theirs = file(&theirs.replace("Infinity", "\"inf\""));
        let mut facts = run_of(&theirs);
        facts.run.goodput = match name {
            "faults" => objectives(&[("ttft", 60.0), ("tpot", 9.0)]),
            _ => objectives(&[("ttft", 60.0), ("tpot", 9.0), ("e2el", 180.0)]),
        };
        let (ours, text) = seen(Tool::Sglang, &theirs, &facts, Keep::All, |seen| {
            (sglang::json(seen), text::sglang::sglang(seen))
        });
        // The server's count of a prompt is in its lists, not in its sum.
        let unlike =
            [&unlisted[..], &["total_input", "input_throughput", "total_throughput"]].concat();
        assert_file(&ours.replace("Infinity", "\"inf\""), &theirs, &[], &unlike);
        let same = [
            "Backend",
            "Traffic",
            "Max request",
            "Successful",
            "duration",
            "generated tokens:",
            "Request throughput",
            "Output token",
            "TTFT (ms)",
            "ITL (ms)",
            "SLOs",
            "Peak",
        ];
        let (ours, theirs) = (text.lines(), block.lines());
        assert_eq!(ours.clone().count(), theirs.clone().count(), "{text}");
        for (ours, theirs) in ours.zip(theirs) {
            if same.iter().any(|part| theirs.contains(part)) {
                assert_eq!(ours, theirs, "{name}");
            }
            assert_eq!(shape(ours), shape(theirs), "{name}");
        }
    }
}

/// A line without its figures: its label, and whether its value is padded to 10 characters.
fn shape(line: &str) -> (String, bool) {
    match line.split_once(": ") {
        Some((label, _)) => {
            let padded = line.len() == 51 || (line.len() > 51 && !line.ends_with(' '));
            (label.to_owned(), padded)
        }
        None => (line.to_owned(), false),
    }
}

/// The block that LMDeploy 0.9.2 published, whose ends of lines were trimmed, and one that a later
/// LMDeploy printed, which has two lines more.
#[test]
fn lmdeploys_block_has_lmdeploys_lines() {
    let published = include_str!("../cases/lmdeploy-0.9.2.txt");
    let printed = include_str!("cases/lmdeploy-chat.txt");
    let theirs = file(&case("vllm-chat-role-chunk.json"));
    let ours =
        seen(Tool::Lmdeploy, &theirs, &run_of(&theirs), Keep::Nothing, text::sglang::lmdeploy);
    let later = ["Total input text tokens", "Total input vision tokens"];
    let printed = printed.lines().filter(|line| !later.iter().any(|part| line.contains(part)));
    assert!(ours.lines().map(shape).eq(printed.map(shape)), "{ours}");
    let columns = |block: &str| -> Vec<(String, usize)> {
        let column = |line: &str| match line.split_once(": ") {
            Some((label, value)) => {
                let padding = value.len() - value.trim_start().len();
                (label.to_owned(), label.len() + 2 + padding)
            }
            None => (line.to_owned(), 0),
        };
        block.lines().map(column).collect()
    };
    assert_eq!(columns(&ours), columns(published));
}

/// The chunks that count, on one reply of every kind of event.
#[test]
fn each_tool_has_its_own_chunks() {
    use Kind::{End, Finish, Reasoning, Role, Text, Tool as Call, Usage as Count};
    let mut exchange = reply(
        0,
        1000,
        &[
            (1010, Role, None, 0),
            (1030, Text, Some(0), 0),
            (1050, Reasoning, Some(1), 4),
            (1060, Text, Some(2), 7),
            (1100, Text, Some(0), 1),
            (1110, Call, None, 9),
            (1120, Text, Some(4), 3),
            (1120, Finish, None, 0),
            (1130, Count, None, 0),
            (1140, End, None, 0),
        ],
    );
    exchange.usage = Some(Usage { output_tokens: Some(8), ..Usage::default() });
    let mut facts = facts();
    facts.run.tokenizer = None;
    let by_tool = |tool, route: &str| {
        let mut reported = reported(&facts, std::slice::from_ref(&exchange));
        reported.plan.backend.config = serde_json::json!({"route": route});
        let open = || Ok::<_, Infallible>([Ok(exchange.clone())].into_iter());
        let Ok(seen) = Compatible::read(tool, &reported, &facts, Keep::All, open);
        let detail = seen.requests[0].detail.as_deref().unwrap();
        let ms = |seconds: f64| (seconds * 1000.0).round() as u64;
        let latency = ms(seen.requests[0].latency);
        (ms(detail.ttft), detail.itls.iter().map(|gap| ms(*gap)).collect::<Vec<_>>(), latency)
    };
    assert_eq!(by_tool(Tool::Vllm, "chat"), (10, vec![20, 20, 10, 40, 10, 10], 120));
    assert_eq!(by_tool(Tool::Sglang, "chat"), (50, vec![10, 40, 20], 140));
    assert_eq!(by_tool(Tool::Lmdeploy, "chat"), (60, vec![40, 20], 140));
    // An event that states no tokens counts for one; one that states none does not move the clock.
    assert_eq!(by_tool(Tool::Sglang, "generate"), (50, vec![5, 5, 50, 3, 3, 3, 3], 140));
}

/// Unmeasured figures are left out: there is no zero or null in place of a number.
#[test]
fn unmeasured_figures_have_no_key_and_no_line() {
    let theirs = file(&case("vllm-chat-role-chunk.json"));
    let mut facts = run_of(&theirs);
    facts.run.streamed = false;
    let (ours, text) = seen(Tool::Vllm, &theirs, &facts, Keep::Nothing, |seen| {
        (file(&vllm::json(seen)), text::vllm::text(seen))
    });
    for part in ["ttft", "tpot", "_itl_", "max_output_tokens_per_s"] {
        assert!(!ours.as_object().unwrap().keys().any(|key| key.contains(part)), "{part}");
    }
    assert!(ours["mean_e2el_ms"].is_f64());
    for part in ["TTFT", "TPOT", "ITL", "First Token", "Peak output"] {
        assert!(!text.contains(part), "{part}\n{text}");
    }
    let counts: BTreeMap<&str, bool> =
        ["latencies", "ttfts"].map(|key| (key, ours.get(key).is_some())).into();
    assert_eq!(counts, BTreeMap::from([("latencies", true), ("ttfts", false)]));
}

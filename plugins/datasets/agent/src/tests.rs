//! Samples of each format, and the rules for the graph of an agent.

mod mistakes;
mod synthetic;

use std::collections::BTreeMap;
use std::path::Path;

use runner_plugin::{Dataset, Error, Message, Part, Point, Prompt, Sample, Tokenizer};
use runner_plugin_testing::datasets::{self, first as all};
use runner_plugin_testing::files::Named;
use runner_plugin_testing::tokenizer::Pairs;

use super::Agents;

fn case(name: &str) -> Named {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/cases"));
    Named::default().with_path("data", folder.join(name).join("sessions.jsonl"))
}

fn open(
    config: &str,
    seed: u64,
    files: Named,
    tokenizer: impl Tokenizer + 'static,
) -> Result<Agents, Error> {
    datasets::open(config, seed, None, files, tokenizer)
}

fn text_of(message: &Message) -> String {
    let parts = message.parts.iter().map(|part| match part {
        Part::Text(text) => text.clone(),
        Part::Answer(of) => format!("<{of}>"),
        other => format!("{other:?}"),
    });
    let role = format!("{:?}", message.role);
    let role = role.trim_start_matches("Role::");
    let extra = message.extra.as_deref().unwrap_or_default();
    format!("{role}: {}{extra}", parts.collect::<String>())
}

/// A sample in a line: its conversation's parent, its dependencies, its messages, and its answer.
fn shown(sample: &Sample) -> String {
    let parent = match &sample.prompt {
        Prompt::Continuation(next) => format!(" < {}", next.parent),
        _ => String::new(),
    };
    let after = sample.after.iter().map(|after| {
        let point = match after.point {
            Point::End => "",
            Point::FirstOutput => "!",
        };
        format!(" [{}{point}+{}ms]", after.sample, after.delay / 1_000_000)
    });
    let after: String = after.collect();
    let messages: Vec<String> = sample.prompt.messages().iter().map(text_of).collect();
    let answer = sample.recorded_answer.as_ref().map(text_of).unwrap_or_default();
    let count = |tokens: Option<u32>| tokens.map_or("?".to_owned(), |tokens| tokens.to_string());
    format!(
        "{}{parent}{after} | {} | {answer} | {}>{} {}",
        sample.id,
        messages.join(" | "),
        count(sample.input_tokens),
        count(sample.output_tokens),
        sample.class.as_deref().unwrap_or_default()
    )
}

fn shows(config: &str, files: Named, expected: &[&str]) {
    for limit in [1, 2, 100] {
        let mut dataset = open(config, 42, files.clone(), Pairs).expect("a dataset");
        let samples = all(&mut dataset, 100, limit);
        check(&samples);
        let samples: Vec<String> = samples.iter().map(shown).collect();
        assert_eq!(samples, expected, "{config}, {limit} at a time");
    }
}

/// Checks the contract: unique ids, dependencies on earlier samples of the same session, parents
/// and answers that are waited for, and turns that count up.
fn check(samples: &[Sample]) {
    let mut turns: BTreeMap<&str, u32> = BTreeMap::new();
    let mut session: BTreeMap<&str, &Sample> = BTreeMap::new();
    for sample in samples {
        let turn = sample.turn.as_ref().expect("a turn");
        let index = turns.entry(&turn.session).or_default();
        assert_eq!(turn.index, *index, "{}", sample.id);
        assert_eq!(sample.id, format!("{}/{index}", turn.session));
        *index += 1;
        if sample.after.is_empty() {
            session.clear();
        }
        for after in &sample.after {
            assert!(session.contains_key(&*after.sample), "{}", shown(sample));
        }
        let waits = |of: &str, id: &str| {
            let waiting = session.get(of).copied().unwrap_or(sample);
            let mut after = waiting.after.iter();
            after.any(|after| after.sample == id && after.point == Point::End)
        };
        if let Prompt::Continuation(next) = &sample.prompt {
            assert!(waits(&sample.id, &next.parent), "{}", shown(sample));
        }
        for part in sample.prompt.messages().iter().flat_map(|message| &message.parts) {
            if let Part::Answer(of) = part {
                assert!(waits(&sample.id, of), "{}", shown(sample));
            }
        }
        assert!(session.insert(&sample.id, sample).is_none());
    }
}

#[test]
fn spawns_start_fresh_and_forks_inherit() {
    shows(
        "{}",
        case("dag"),
        &[
            "plan/0 | System: You plan. | User: Plan a trip. |  | 12>20 main",
            "plan:hotel/0 [plan/0+0ms] | User: Find a hotel. |  | 8>? sub-agent",
            "plan:hotel/1 < plan:hotel/0 [plan:hotel/0+0ms] | User: A cheaper one. |  | 7>? sub-agent",
            "plan:sauna/0 < plan:hotel/1 [plan:hotel/1+0ms] | User: Has it a sauna? |  | 8>? fork",
            "plan:train/0 [plan/0+100ms] | User: Find a train. |  | 8>? sub-agent",
            "plan/1 < plan/0 [plan/0+500ms] | User: How far is it? |  | 7>? main",
            "plan/2 < plan/1 [plan/1+0ms] [plan:hotel/1+0ms] [plan:train/0+0ms] | User: Sum it up. |  | 5>? main",
            "alone/0 | User: Hello. |  | 4>? main",
            "alone:beside/0 < alone/0 [alone/0+0ms] | User: And here? |  | 5>? fork",
            "alone:sauna/0 [alone:beside/0+0ms] | User: Has it a sauna? |  | 9>? sub-agent",
            "alone:beside/1 < alone:beside/0 [alone:beside/0+0ms] [alone:sauna/0+0ms] | User: Done. |  | 3>? fork",
            "alone/1 < alone/0 [alone/0+0ms] | User: Bye. |  | 2>? main",
        ],
    );
    let mut dataset = open(r#"{"delays": "none"}"#, 1, case("dag"), Pairs).expect("a dataset");
    let samples = all(&mut dataset, 100, 5);
    assert!(samples.iter().flat_map(|sample| &sample.after).all(|after| after.delay == 0));
    assert_eq!(samples[0].output_tokens, Some(20));
    assert_eq!(samples[6].parameters.as_deref(), Some(r#"{"temperature":0.5}"#));
}

#[test]
fn the_graph_of_a_trace_follows_from_its_messages() {
    let call = r#"Assistant: {"tool_calls":[{"id":"c1","type":"function","function":{"name":"search","arguments":"{\"q\":\"sea\"}"}}]}"#;
    let task =
        format!("t1/0 | System: You search. | User: What colour has the sea? | {call} | 19>9 main");
    let bad = r#"t4/0 | User: Call. | Assistant: {"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{oops"}}]} | 4>5 main"#;
    let expected = [
        &*task,
        "t1:1/0 [t1/0+500ms] | User: Ask a sailor. | Assistant: Blue, mostly. | 8>5 sub-agent",
        "t1:2/0 [t1/0+750ms] | User: Ask a poet. | Assistant: Wine-dark. | 7>4 sub-agent",
        "t1:2/1 < t1:2/0 [t1:2/0+250ms] | User: Seriously? | Assistant: No. | 5>2 sub-agent",
        "t1/1 < t1/0 [t1/0+0ms] [t1:1/0+0ms] [t1:2/1+1000ms] | Tool: blue{\"tool_call_id\":\"c1\"} | Assistant: It is blue. | 2>6 main",
        "t1/2 < t1/1 [t1/1+1000ms] | User: Thanks. | Assistant: Welcome. | 4>3 main",
        "t2/0 | User: yes party visit center f |  | 13>3 main",
        bad,
    ];
    shows("{}", case("otel"), &expected);
    let mut dataset =
        open(r#"{"bad-tool-calls": "drop", "max-delay": 0.6}"#, 42, case("otel"), Pairs)
            .expect("a dataset");
    let samples = all(&mut dataset, 100, 3);
    assert_eq!(samples.len(), expected.len() - 1);
    let delays = |at: usize| samples[at].after.iter().map(|after| after.delay / 1_000_000);
    assert_eq!(delays(2).collect::<Vec<_>>(), [600]);
    assert_eq!(delays(4).collect::<Vec<_>>(), [0, 0, 600]);
    let arrivals: Vec<_> = samples.iter().filter_map(|sample| sample.arrival).collect();
    assert_eq!(arrivals, [0, 30_000_000_000]);
    let remarks: Vec<_> = dataset
        .remarks()
        .into_iter()
        .map(|remark| {
            format!("{:?} {} {}", remark.what, remark.reason, remark.first.unwrap_or_default())
        })
        .collect();
    assert_eq!(
        remarks,
        [
            "Treatment::Dropped a span that is no request to a model `t1` (line 1)",
            "Treatment::Repaired a request without messages; it now has words of the same length `t2` (line 2)",
            "Treatment::Dropped a trace without a request to a model `t3` (line 3)",
            "Treatment::Dropped a tool call whose arguments are not a JSON object `t4` (line 4), of `f`",
        ]
    );
}

#[test]
fn spans_of_several_lines_make_a_trace() {
    shows(
        "{}",
        case("otlp"),
        &[
            "a/0 | User: One. | Assistant: 1 | 3>1 main",
            "a/1 < a/0 [a/0+2000ms] | User: Two. | Assistant: 3 | 2>1 main",
            "b/0 | User: Other. | Assistant: 2 | 4>1 main",
        ],
    );
    let mut dataset = open("{}", 1, case("otlp"), Pairs).expect("a dataset");
    let arrivals: Vec<_> =
        all(&mut dataset, 9, 9).iter().filter_map(|sample| sample.arrival).collect();
    assert_eq!(arrivals, [0, 500_000_000]);
    assert!(dataset.remarks().is_empty());
}

#[test]
fn lengths_become_texts_and_latencies_delays() {
    let mut dataset = open("{}", 3, case("trie"), Pairs).expect("a dataset");
    let spare = dataset.spare(1).expect("spare samples");
    assert_eq!((spare[0].input_tokens, spare[0].output_tokens), (Some(33), Some(64)));
    let samples = all(&mut dataset, 9, 2);
    check(&samples);
    let outline: Vec<_> = samples
        .iter()
        .map(|sample| {
            let delays: Vec<u64> = sample.after.iter().map(|after| after.delay).collect();
            let answer = sample.recorded_answer.as_ref().map(text_of).unwrap_or_default();
            let answer = answer.trim_start_matches("Assistant: ").to_owned();
            assert_eq!(Some(Pairs.count(&[answer], false)[0]), sample.output_tokens);
            (&*sample.id, sample.input_tokens, sample.output_tokens, delays)
        })
        .collect();
    assert_eq!(
        outline,
        [
            ("agent-000001/0", Some(33), Some(16), vec![]),
            ("agent-000001/1", Some(8), Some(20), vec![500_000_000]),
            ("agent-000001/2", Some(12), Some(64), vec![1_500_000_000]),
            ("agent-000002/0", Some(11), Some(5), vec![]),
        ]
    );
}

#[test]
fn repeat_begins_a_file_again_with_new_ids() {
    let mut dataset = open(r#"{"repeat": true}"#, 1, case("repeat"), Pairs).expect("a dataset");
    let samples = all(&mut dataset, 5, 2);
    check(&samples);
    let ids: Vec<&str> = samples.iter().map(|sample| sample.id.as_str()).collect();
    let expected = [
        "agent-000001/0",
        "agent-000001/1",
        "agent-000001#2/0",
        "agent-000001#2/1",
        "agent-000001#3/0",
    ];
    assert_eq!(ids, expected);
    assert_ne!(samples[0].prompt, samples[2].prompt);
    assert_eq!(dataset.remarks()[0].count, 2);
}

#[test]
fn gaps_of_a_trace_are_filled() {
    let message = |role, text| format!(r#"{{"role":"{role}","content":"{text}"}}"#);
    let (one, two) = (message("user", "One."), message("user", "Two."));
    let answer = message("assistant", "1");
    let span = |start, end: &str, input: &str| {
        format!(
            r#"{{"trace_id":"t","start_time":{start},{end}"attributes":{{"gen_ai.input.messages":[{input}]}}}}"#
        )
    };
    // A span a line, by their ends. No answer is recorded, and the third request has no end.
    let lines = [
        span(11, r#""end_time":12,"#, &two),
        span(10, r#""end_time":14,"#, &one),
        span(16, "", &format!("{one},{answer},{two}")),
        span(20, r#""end_time":21,"#, &format!("{one},{answer},{two},{answer},{one}")),
    ];
    let files = Named::default().with_bytes("data", lines.join("\n"));
    shows(
        "{}",
        files.clone(),
        &[
            "t/0 | User: One. | Assistant: 1 | 3>? main",
            "t:1/0 [t/0!+0ms] | User: Two. |  | 3>? sub-agent",
            "t/1 < t/0 [t/0+2000ms] | User: Two. | Assistant: 1 | 2>? main",
            "t/2 < t/1 [t/1+0ms] | User: One. |  | 2>? main",
        ],
    );
    let mut dataset = open("{}", 1, files, Pairs).expect("a dataset");
    all(&mut dataset, 9, 9);
    let remarks = dataset.remarks();
    assert_eq!(remarks.len(), 2);
    assert!(remarks.iter().all(|remark| remark.count == 1));
}

#[test]
fn a_byte_order_mark_changes_nothing() {
    for name in ["dag", "otel", "otlp", "trie"] {
        let path = format!("{}/cases/{name}/sessions.jsonl", env!("CARGO_MANIFEST_DIR"));
        let bytes = std::fs::read(path).expect("the case's file");
        let marked = [b"\xef\xbb\xbf", &bytes[..]].concat();
        let samples = |bytes: Vec<u8>| {
            let files = Named::default().with_bytes("data", bytes);
            open("{}", 1, files, Pairs).and_then(|mut dataset| dataset.next(1000)).expect("samples")
        };
        assert_eq!(samples(marked), samples(bytes), "{name}");
    }
}

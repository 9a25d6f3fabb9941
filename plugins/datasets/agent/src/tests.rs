//! Samples of each format, and the rules for the graph of an agent.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use runner_plugin::{Dataset, Error, Part, Point, Prompt, Role, Sample, Tokenizer};
use runner_plugin_testing::datasets::{self, damage, first as all, message_line, mistake, shown};
use runner_plugin_testing::files::Named;
use runner_plugin_testing::tokenizer::{Pairs, StandIn};

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
fn delays_can_be_left_out() {
    let mut dataset = open(r#"{"delays": "none"}"#, 1, case("dag"), Pairs).expect("a dataset");
    let samples = all(&mut dataset, 100, 5);
    assert!(samples.iter().flat_map(|sample| &sample.after).all(|after| after.delay == 0));
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

// The messages for mistakes in files and configurations.

#[test]
fn mistakes_name_their_line_and_their_key() {
    let complaint = |config: &str, text: &str| {
        let files = Named::default();
        let files = if text.is_empty() {
            files
        } else {
            files.with_bytes("data", text.replace('\'', "\""))
        };
        mistake(open(config, 1, files, Pairs).and_then(|mut dataset| dataset.next(10)))
    };
    let user = "'messages': [{'role': 'user', 'content': 'a'}]";
    let dag =
        |turn: &str| format!("{{'session_id': 'a', 'turns': [{{{user}{turn}}}, {{{user}}}]}}\n");
    let trie = "{'num_turns': 0, 'input_prompt_length': 3, 'assistant_response_length': [], \
                'tool_call_output_length': [], 'final_assistant_response_length': 5}";
    let cyclic = format!(
        "{{'session_id': 'b', 'turns': [{{{user}, 'spawns': ['c']}}]}}\n{{'session_id': 'c', 'turns': [{{{user}, 'spawns': ['c']}}]}}"
    );
    let beside = format!(
        "{{'session_id': 'r', 'turns': [{{{user}}}]}}\n{{'session_id': 'x', 'turns': [{{{user}, 'spawns': ['y']}}]}}\n{{'session_id': 'y', 'turns': [{{{user}, 'spawns': ['x']}}]}}"
    );
    let cases: Vec<(&str, String, &str)> = vec![
        ("{}", " ".to_owned(), "the file `data` is empty"),
        (r#"{"format": "synthetic"}"#, trie.to_owned(), "reads no file"),
        ("{}", dag(", 'spawns': ['b']"), "line 1: it starts the conversation `b`, which is not in the file"),
        ("{}", dag(", 'spawns': [{'children': ['a'], 'join_at': 2}]"), "`join_at` is 2; expected a later turn of 2"),
        ("{}", dag(", 'spawns': ['a']"), "the file `data` has no first conversation"),
        ("{}", dag(", 'delay': -5"), "line 1: `turns[0]`: `delay` is -0.005 seconds"),
        ("{}", dag(", 'max_tokens': 0"), "`turns[0]`: `max_tokens` is 0"),
        ("{}", dag("") + &dag(""), "line 2: an earlier conversation has the id `a` too"),
        ("{}", "{'session_id': 'a', 'turns': []}".to_owned(), "line 1: `turns` is empty"),
        ("{}", "{'session_id': 'a', 'turns': [{'messages': []}]}".to_owned(), "no message for the model to answer"),
        ("{}", "{'session_id': 'a', 'orchestrator': true}".to_owned(), "`orchestrator` is not supported"),
        ("{}", beside, "line 2: the conversation `x` never begins: the conversations before it start each other in a circle"),
        ("{}", cyclic, "line 2: the conversation `c` is started 17 levels deep, or starts itself"),
        ("{}", trie.replace("_length': 3", "_length': 0"), "a length is 0; expected from 1"),
        ("{}", "{'spans': []}".to_owned(), "the file `data` has no sessions"),
        ("{}", "{'spans': [{'attributes': {}}]}".to_owned(), "line 1: `trace_id` is missing"),
        ("{}", "{'trace_id': 't', 'spans': [{'attributes': {'gen_ai.usage.input_tokens': 5}}]}".to_owned(), "`start_time` is missing"),
        ("{}", "{'trace_id': 't', 'spans': [{'start_time': 5, 'end_time': 4, 'attributes': {'gen_ai.usage.input_tokens': 5}}]}".to_owned(), "`end_time` is before"),
        ("{}", "{'trace_id': 't', 'spans': [{'start_time': 5, 'attributes': {'gen_ai.input.messages': [{'role': 'user', 'parts': [{'type': 'file'}]}]}}]}".to_owned(), "`gen_ai.input.messages[0]`: `parts[0]` is of type `file`"),
        ("{}", "{'trace_id': 't', 'spans': [{}]}\n{'trace_id': 'u', 'spans': [{}]}\n{'trace_id': 'u', 'spans': [{}]}\n{'trace_id': 't', 'spans': [{}]}".to_owned(), "line 4: spans of the trace `t` stand far before"),
        ("{}", "{'trace_id': 't', 'attributes': {}}".to_owned(), "no session of the file `data` can be used (a span that is no request to a model: 1; a trace without"),
        (r#"{"tool-calls": 3, "compaction": {"trigger-tokens": 9, "target-tokens": 3}}"#, trie.to_owned(), "`tool-calls`, `compaction` cannot be set for the format `trie`"),
        (r#"{"bad-tool-calls": "drop"}"#, trie.to_owned(), "`bad-tool-calls` cannot be set"),
        (r#"{"repeat": true, "max-delay": 3}"#, String::new(), "`repeat`, `max-delay` cannot be set for the format `synthetic`"),
        (r#"{"max-delay": -1}"#, trie.to_owned(), "`max-delay` is -1"),
        (r#"{"compaction": {"trigger-tokens": 9, "target-tokens": 9}}"#, String::new(), "expected `target-tokens` from 1"),
        (r#"{"tool-calls": 9, "tool-result-len": 1000000}"#, String::new(), "expected at most 4194304: set smaller lengths"),
        (r#"{"sub-agents": {"depth": 0}}"#, String::new(), "`sub-agents.depth` is 0"),
        (r#"{"sub-agents": {"count": 0}}"#, String::new(), "`sub-agents.count` is 0; expected at least 1"),
        (r#"{"sub-agents": {"counts": 1}}"#, String::new(), "unknown field `counts`"),
        (r#"{"tool-latency": -1}"#, String::new(), "`tool-latency` gives -1 seconds"),
        (r#"{"tool-calls": 9, "sub-agents": {"fan-outs": 9, "count": 9, "depth": 5, "tool-calls": 9}}"#, String::new(), "agent 1: the session has more than 10000 requests"),
    ];
    for (config, text, expected) in cases {
        let message = complaint(config, &text);
        assert!(message.contains(expected), "{config} {text}\ngave: {message}\nnot:  {expected}");
    }
}

/// A file that is cut or changed anywhere is read or refused, and never anything else.
#[test]
fn damaged_files_are_read_or_refused() {
    for name in ["dag", "otel", "otlp", "trie"] {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/cases");
        let whole = std::fs::read(format!("{path}/{name}/sessions.jsonl")).expect("a file");
        let samples = damage(&whole, |files| open("{}", 1, files, Pairs));
        samples.iter().for_each(|samples| check(samples));
        assert!(samples.len() > 20, "{name}: {}", samples.len());
    }
}

// Agents that are drawn.

const FANS: &str = r#"{"tool-calls": {"distribution": "uniform", "min": 3, "max": 5}, "prompt-len": 20,
    "tool-result-len": 9, "tool-latency": 0.5, "output-len": 4, "final-output-len": 11, "system-len": 6,
    "sub-agents": {"fan-outs": 1, "count": 3, "tool-calls": 2, "prompt-len": 8, "final-output-len": 7, "depth": 2}}"#;

const COMPACTS: &str = r#"{"tool-calls": 6, "prompt-len": 40, "tool-result-len": 30, "output-len": 10,
    "final-output-len": 20, "compaction": {"trigger-tokens": 120, "target-tokens": 25}}"#;

fn sessions(samples: Vec<Sample>) -> Vec<Vec<Sample>> {
    let mut sessions: Vec<Vec<Sample>> = Vec::new();
    for sample in samples {
        if sample.after.is_empty() {
            sessions.push(Vec::new());
        }
        sessions.last_mut().expect("a root").push(sample);
    }
    sessions.pop();
    sessions
}

#[test]
fn sub_agents_start_together_and_are_waited_for() {
    let mut dataset = open(FANS, 5, Named::default(), Pairs).expect("a dataset");
    let samples = all(&mut dataset, 2000, 64);
    check(&samples);
    for session in sessions(samples) {
        let by_id: BTreeMap<&str, &Sample> =
            session.iter().map(|sample| (&*sample.id, sample)).collect();
        let main: Vec<&Sample> =
            session.iter().filter(|sample| sample.class.as_deref() == Some("main")).collect();
        assert!((4..=6).contains(&main.len()));
        let mut joins = 0;
        for sample in &session {
            let answers: Vec<&str> = sample
                .prompt
                .messages()
                .iter()
                .flat_map(|message| &message.parts)
                .filter_map(|part| match part {
                    Part::Answer(of) => Some(&**of),
                    _ => None,
                })
                .collect();
            if answers.is_empty() {
                continue;
            }
            joins += 1;
            assert_eq!((answers.len(), sample.after.len()), (3, 4), "{}", shown(sample));
            let Prompt::Continuation(next) = &sample.prompt else {
                panic!("{}", shown(sample));
            };
            for of in answers {
                // Each is the last of a conversation that began after the same request.
                let end = by_id[of];
                assert_eq!(end.output_tokens, Some(7));
                assert_eq!(end.class.as_deref(), Some("sub-agent"));
                let name = &end.turn.as_ref().expect("a turn").session;
                let root = by_id[&*format!("{name}/0")];
                assert_eq!(root.after.len(), 1);
                assert_eq!(root.after[0].sample, next.parent);
                assert_eq!(root.input_tokens, Some(8 + 6 + 1));
            }
        }
        // One of the agent, and one of each of its three sub-agents.
        assert_eq!(joins, 4);
        let last = main[main.len() - 1];
        assert_eq!(last.output_tokens, Some(11));
        for sample in &session {
            let tools =
                sample.after.len() == 1 && sample.turn.as_ref().is_some_and(|turn| turn.index > 0);
            if tools {
                assert_eq!(sample.after[0].delay, 500_000_000, "{}", shown(sample));
                assert_eq!(sample.input_tokens, Some(9));
            }
        }
    }
}

#[test]
fn a_long_history_becomes_a_summary() {
    let mut dataset = open(COMPACTS, 5, Named::default(), StandIn).expect("a dataset");
    let samples = all(&mut dataset, 9, 4);
    check(&samples);
    let outline: Vec<String> = samples
        .iter()
        .map(|sample| {
            format!(
                "{} {} {}",
                sample.id.trim_start_matches("agent-000001"),
                sample.class.as_deref().unwrap_or_default(),
                sample.output_tokens.unwrap_or(0)
            )
        })
        .collect();
    // 40 + 10 + 30 + 10 + 30 is 120, and with the next answer and result it is beyond the trigger.
    assert_eq!(
        outline,
        [
            "/0 main 10",
            "/1 main 10",
            "/2 main 10",
            "/3 compaction 25",
            ".c1/0 main 10",
            ".c1/1 main 10",
            ".c1/2 main 10",
            ".c1/3 compaction 25",
            ".c2/0 main 20",
        ]
    );
    let question = message_line(&samples[3].prompt.messages()[0]);
    assert!(
        question.ends_with(
            "Summarise this conversation so far, with everything that is needed to go on."
        )
    );
    assert_eq!(
        samples[4].prompt.messages().iter().map(message_line).collect::<Vec<_>>(),
        ["User: Summary of the work so far:\n + <agent-000001/3> + \n\nGo on with it."]
    );
}

#[test]
fn tools_of_recorded_histories_are_called_and_answer() {
    let config = COMPACTS.replacen('{', r#"{"tool-role": "tool","#, 1);
    let mut dataset = open(&config, 5, Named::default(), StandIn).expect("a dataset");
    let samples = all(&mut dataset, 40, 4);
    let mut results = 0;
    for (before, sample) in samples.iter().zip(&samples[1..]) {
        for message in sample.prompt.messages().iter().filter(|message| message.role == Role::Tool)
        {
            let called = before.recorded_answer.as_ref().and_then(|answer| answer.extra.clone());
            let result = message.extra.clone().unwrap_or_default();
            let id = result.split('"').nth(3).expect("an id").to_owned();
            assert!(called.is_some_and(|called| called.contains(&format!("\"{id}\""))), "{result}");
            results += 1;
        }
    }
    assert!(results > 20);
}

#[test]
fn an_agent_depends_on_the_seed_and_its_number_alone() {
    for config in [FANS, COMPACTS, "{}"] {
        let sequence = |seed, limit| {
            let mut dataset = open(config, seed, Named::default(), StandIn).expect("a dataset");
            all(&mut dataset, 120, limit)
        };
        let whole = sequence(9, 120);
        assert_eq!(whole.len(), 120);
        assert!(sequence(9, 1) == whole && sequence(9, 7) == whole);
        assert!(sequence(10, 7) != whole);
    }
}

#[test]
fn spare_samples_do_not_change_measured_samples() {
    for (config, files) in [(FANS, Named::default()), ("{}", case("dag")), ("{}", case("trie"))] {
        let mut plain = open(config, 42, files.clone(), Pairs).expect("a dataset");
        let plain = all(&mut plain, 40, 16);
        let mut dataset = open(config, 42, files, Pairs).expect("a dataset");
        let mut spare = dataset.spare(1).expect("spare samples");
        spare.extend(dataset.spare(1).expect("spare samples"));
        assert!(!spare.is_empty(), "{config}");
        let samples = all(&mut dataset, 40, 16);
        assert_eq!(samples[..], plain[..samples.len()], "{config}");
        let prompts: BTreeSet<String> =
            samples.iter().map(|sample| format!("{:?}", sample.prompt)).collect();
        for each in &spare {
            assert!(each.after.is_empty() && each.turn.is_none());
            assert!(!prompts.contains(&format!("{:?}", each.prompt)));
        }
    }
}

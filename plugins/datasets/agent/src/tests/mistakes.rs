//! The messages for mistakes in files and configurations.

use runner_plugin::Dataset;
use runner_plugin_testing::datasets::{damage, mistake};
use runner_plugin_testing::files::Named;
use runner_plugin_testing::tokenizer::Pairs;

use super::open;

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
        ("{}", "{'a': 1}".to_owned(), "line 1: expected a line with `session_id` and `turns`"),
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
        ("{}", trie.replace("'num_turns': 0", "'num_turns': 2"), "has 0 numbers and `num_turns` is 2"),
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
        samples.iter().for_each(|samples| super::check(samples));
        assert!(samples.len() > 20, "{name}: {}", samples.len());
    }
}

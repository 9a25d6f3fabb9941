//! The messages for mistakes in files and configurations.

use runner_plugin::Dataset;
use runner_plugin_testing::datasets::{cases, damage, invalid_config, invalid_input, mistake};
use runner_plugin_testing::files::Named;
use runner_plugin_testing::tokenizer::Pairs;

use super::open;

#[test]
fn mistakes_name_their_line_and_their_key() {
    let complaint = |config: &str, text: &str| {
        let files = Named::default().with_bytes("data", text);
        mistake(open(config, 1, files, Pairs).and_then(|mut dataset| {
            while !dataset.next(10)?.is_empty() {}
            Ok(())
        }))
    };
    // `¶` is a line break.
    for (case, expected) in cases(
        r#"
        {} |  => the file `data` is empty
        {} | {"messages": [ => file `data`, line 1: `messages`: EOF while parsing
        {} | {"prompt": 1} => line 1: expected a line with `messages`, with `session_id`
        {} | {"messages": 3} => line 1: `messages`: expected a list
        {} | {"messages": [{"role": "human"}]} => line 1: `messages[0]`: `role` is `human`
        {} | {"messages": [], "tools": 3} => line 1: `tools`: expected a list of tools
        {} | {"session_id":"a","messages":[{"role":"user","content":"a"}]}¶{"session_id":"a","messages":[{"role":"user","content":"a"},{"role":"user"}]}¶{"session_id":"a","messages":[{"role":"user","content":"b"}]} => line 3: `messages` do not begin with the previous row's
        {} | {"session_id":"a","messages":[{"role":"user","content":"a"}]}¶{"session_id":"a","messages":[{"role":"user","content":"a"},{"role":"user"}]}¶{"session_id":"a","text":"b"} => line 3: expected `messages` with the whole conversation so far
        {} | {"messages": []} => none of 1 conversations can be used (no message for
        {} | {"id":1,"messages":[{"role":"user"}]}¶{"id":1,"messages":[]} => line 2: an earlier conversation has the name `1` too
        {} | {"session_id":"a","turns":[{"text":"a"},{"delay":-1,"text":"b"}]} => line 1: `turns[1]`: `delay` is -0.001 seconds
        {} | {"session_id":"a","input_length":5} => row of a trace
        {} | {"session_id":"a","text":"a","max_tokens":0} => `max_tokens` is 0; expected at least 1
        {} | {"conversation_id":"a","role":"user","content":"a"} => line 1: `turn` is missing
        {} | {"conversation_id":"a","turn":2,"role":"user","content":"a"}¶{"conversation_id":"a","turn":2,"role":"assistant"} => line 2: `turn` is 2 after 2
        {} | [{"conversations": []}] => the file `data` has no conversation of two messages
        {"format": "messages"} | [{}] => one JSON array; this format has an object a line
        {"format": "synthetic"} | {"messages": [{"role": "user", "content": "a"}]} => reads no file
        {"shuffle": true} | {"messages": [{"role": "user", "content": "a"}]} => `shuffle` works only with a ShareGPT file
        {"turns": 3, "system-len": 4} | {"messages": [{"role": "user", "content": "a"}]} => `turns`, `system-len` cannot be set for the conversations of a file
        {"min-turns": 0} | {"messages": [{"role": "user", "content": "a"}]} => `min-turns` is 0; expected from 1 to 10000
        {"min-turns": 3, "max-turns": 2} | {"messages": [{"role": "user", "content": "a"}]} => `min-turns` is 3 and `max-turns` is 2
        {"think-time": -1} | {"messages": [{"role": "user", "content": "a"}]} => `think-time` gives -1 seconds
        {"output-len": 0} | {"messages": [{"role": "user", "content": "a"}]} => `output-len` is 0; expected at least 1
        {"output-len": "all"} | {"messages": [{"role": "user", "content": "a"}]} => key `output-len`: unknown variant `all`
        "#,
    ) {
        let (config, text) = case.split_once(" | ").expect("a file");
        let message = complaint(config, &text.replace('¶', "\n"));
        assert!(message.contains(expected), "{case}\ngave: {message}\nnot:  {expected}");
    }
    let message = invalid_config(open(r#"{"repeat": true}"#, 1, Named::default(), Pairs));
    assert!(message.starts_with("`repeat` cannot be set for synthetic"), "{message}");
}

#[test]
fn bounds_that_nothing_keeps_to_are_refused() {
    let mut dataset =
        open(r#"{"min-turns": 5, "input-len": 4}"#, 1, Named::default(), Pairs).expect("a dataset");
    // Spare samples have one turn each, and the number of texts of one token is limited.
    assert_eq!(dataset.spare(2).expect("spare samples").len(), 2);
    let message = invalid_input(dataset.next(1));
    assert!(
        message.starts_with("none of 1000 conversations can be used (fewer than 5 turns: 1000)"),
        "{message}"
    );
    let short = r#"{"turns": 1, "input-len": 1}"#;
    let mut dataset = open(short, 1, Named::default(), Pairs).expect("a dataset");
    let spare = dataset.spare(50).expect("spare samples");
    assert!((2..50).contains(&spare.len()), "{}", spare.len());
    let files =
        Named::default().with_bytes("data", r#"{"messages": [{"role": "user", "content": "a"}]}"#);
    let mut dataset = open("{}", 1, files, Pairs).expect("a dataset");
    assert_eq!(dataset.spare(3).expect("spare samples").len(), 1);
    let message = invalid_input(dataset.next(1));
    assert!(message.starts_with("all 1 conversations of the file"), "{message}");
}

/// A file that is cut or changed anywhere is read or refused, and never anything else.
#[test]
fn damaged_files_are_read_or_refused() {
    for name in ["sharegpt", "sharegpt-lines", "messages", "mlperf", "aiperf", "aiperf-rows"] {
        let file = if name == "sharegpt" { "conversations.json" } else { "conversations.jsonl" };
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/cases");
        let whole = std::fs::read(format!("{path}/{name}/{file}")).expect("the case's file");
        let samples = damage(&whole, |files| open("{}", 1, files, Pairs));
        assert!(samples.len() > 50, "{name}: {}", samples.len());
    }
}

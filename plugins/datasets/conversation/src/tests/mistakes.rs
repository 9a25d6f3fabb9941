//! The messages for mistakes in files and configurations.

use runner_plugin::random::Python;
use runner_plugin::{Dataset, Error};
use runner_plugin_testing::files::Named;
use runner_plugin_testing::tokenizer::Pairs;

use super::open;

#[test]
fn mistakes_name_their_line_and_their_key() {
    let complaint = |config: &str, text: &str| {
        let files = Named::default().with_bytes("data", text);
        let read = open(config, 1, files, Pairs).and_then(|mut dataset| {
            while !dataset.next(10)?.is_empty() {}
            Ok(())
        });
        match read.expect_err("a mistake") {
            Error::InvalidConfig(message) | Error::InvalidInput(message) => message,
            other => panic!("{other:?}"),
        }
    };
    let good = r#"{"messages": [{"role": "user", "content": "a"}]}"#;
    for (config, text, expected) in [
        ("{}", "", "the file `data` is empty"),
        ("{}", "{\"messages\": [", "file `data`, line 1: `messages`: EOF while parsing"),
        ("{}", "{\"prompt\": 1}", "line 1: expected a line with `messages`, with `session_id`"),
        ("{}", "{\"messages\": 3}", "line 1: `messages`: expected a list"),
        (
            "{}",
            "{\"messages\": [{\"role\": \"human\"}]}",
            "line 1: `messages[0]`: `role` is `human`",
        ),
        ("{}", "{\"messages\": [], \"tools\": 3}", "line 1: `tools`: expected a list of tools"),
        (
            "{}",
            "{\"session_id\":\"a\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}\n\
             {\"session_id\":\"a\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"user\"}]}\n\
             {\"session_id\":\"a\",\"messages\":[{\"role\":\"user\",\"content\":\"b\"}]}",
            "line 3: `messages` do not begin with the previous row's",
        ),
        (
            "{}",
            "{\"session_id\":\"a\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}\n\
             {\"session_id\":\"a\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"user\"}]}\n\
             {\"session_id\":\"a\",\"text\":\"b\"}",
            "line 3: expected `messages` with the whole conversation so far",
        ),
        ("{}", "{\"messages\": []}", "none of 1 conversations can be used (no message for"),
        (
            "{}",
            "{\"id\":1,\"messages\":[{\"role\":\"user\"}]}\n{\"id\":1,\"messages\":[]}",
            "line 2: an earlier conversation has the name `1` too",
        ),
        (
            "{}",
            "{\"session_id\":\"a\",\"turns\":[{\"text\":\"a\"},{\"delay\":-1,\"text\":\"b\"}]}",
            "line 1: `turns[1]`: `delay` is -0.001 seconds",
        ),
        ("{}", "{\"session_id\":\"a\",\"input_length\":5}", "row of a trace"),
        (
            "{}",
            "{\"session_id\":\"a\",\"text\":\"a\",\"max_tokens\":0}",
            "`max_tokens` is 0; expected at least 1",
        ),
        (
            "{}",
            "{\"conversation_id\":\"a\",\"role\":\"user\",\"content\":\"a\"}",
            "line 1: `turn` is missing",
        ),
        (
            "{}",
            "{\"conversation_id\":\"a\",\"turn\":2,\"role\":\"user\",\"content\":\"a\"}\n{\"conversation_id\":\"a\",\"turn\":2,\"role\":\"assistant\"}",
            "line 2: `turn` is 2 after 2",
        ),
        ("{}", "[{\"conversations\": []}]", "the file `data` has no conversation of two messages"),
        (r#"{"format": "messages"}"#, "[{}]", "one JSON array; this format has an object a line"),
        (r#"{"format": "synthetic"}"#, good, "reads no file"),
        (r#"{"shuffle": true}"#, good, "`shuffle` works only with a ShareGPT file"),
        (
            r#"{"turns": 3, "system-len": 4}"#,
            good,
            "`turns`, `system-len` cannot be set for the conversations of a file",
        ),
        (r#"{"min-turns": 0}"#, good, "`min-turns` is 0; expected from 1 to 10000"),
        (r#"{"min-turns": 3, "max-turns": 2}"#, good, "`min-turns` is 3 and `max-turns` is 2"),
        (r#"{"think-time": -1}"#, good, "`think-time` gives -1 seconds"),
        (r#"{"output-len": 0}"#, good, "`output-len` is 0; expected at least 1"),
        (r#"{"output-len": "all"}"#, good, "key `output-len`: unknown variant `all`"),
    ] {
        let message = complaint(config, text);
        assert!(message.contains(expected), "{config} {text}\ngave: {message}\nnot:  {expected}");
    }
    let synthetic = open(r#"{"repeat": true}"#, 1, Named::default(), Pairs).map(drop);
    assert!(
        matches!(synthetic, Err(Error::InvalidConfig(message)) if message.starts_with("`repeat` cannot be set for synthetic"))
    );
}

#[test]
fn bounds_that_nothing_keeps_to_are_refused() {
    let mut dataset =
        open(r#"{"min-turns": 5, "input-len": 4}"#, 1, Named::default(), Pairs).expect("a dataset");
    // Spare samples have one turn each, and the number of texts of one token is limited.
    assert_eq!(dataset.spare(2).expect("spare samples").len(), 2);
    let error = dataset.next(1).expect_err("no conversation has five turns");
    let Error::InvalidInput(message) = error else {
        panic!("{error:?}");
    };
    assert!(
        message.starts_with("none of 10000 conversations can be used (fewer than 5 turns: 10000)"),
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
    let error = dataset.next(1).expect_err("nothing is left");
    assert!(
        matches!(error, Error::InvalidInput(message) if message.starts_with("all 1 conversations of the file"))
    );
}

/// A file that is cut or changed anywhere is read or refused, and never anything else.
#[test]
fn damaged_files_are_read_or_refused() {
    let mut random = Python::new(7);
    for name in ["sharegpt", "sharegpt-lines", "messages", "mlperf", "aiperf", "aiperf-rows"] {
        let file = if name == "sharegpt" { "conversations.json" } else { "conversations.jsonl" };
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/cases");
        let whole = std::fs::read(format!("{path}/{name}/{file}")).expect("the case's file");
        let mut read = 0;
        for round in 0..600 {
            let mut bytes = whole.clone();
            let at = random.below(bytes.len() as u64) as usize;
            if round % 3 == 0 {
                bytes.truncate(at);
            } else {
                bytes[at] = b"\"{}[],:09aZ\xff"[random.below(12) as usize];
            }
            let files = Named::default().with_bytes("data", bytes);
            let outcome = open("{}", 1, files, Pairs).and_then(|mut dataset| {
                dataset.spare(1)?;
                let mut samples = Vec::new();
                loop {
                    let more = dataset.next(7)?;
                    if more.is_empty() {
                        return Ok(samples);
                    }
                    samples.extend(more);
                }
            });
            match outcome {
                Ok(samples) => {
                    read += usize::from(!samples.is_empty());
                }
                Err(Error::InvalidInput(message)) => assert!(!message.is_empty()),
                Err(other) => panic!("{name}, round {round}: {other:?}"),
            }
        }
        assert!(read > 50, "{name}: {read}");
    }
}

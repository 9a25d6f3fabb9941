//! The messages about wrong files and configurations.

use runner_plugin::Dataset;
use runner_plugin_testing::tokenizer::StandIn;

use super::{complaint, open, remarks, rest, text, trace};

#[test]
fn wrong_rows_are_named_with_their_lines_all_at_once() {
    let rows = concat!(
        "{\"timestamp\": 0, \"input_length\": 3}\n",
        "{\"timestamp\": 0}\n",
        "\n",
        "{\"timestamp\": 0, \"input_length\": 3, \"text_input\": \"a\"}\n",
        "{\"timestamp\": 0, \"input_length\": -3}\n",
        "{\"timestamp\": 0, \"input_length\": 30000000000}\n",
        "not JSON\n",
    );
    let message = complaint("{}", rows);
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), 5, "{message}");
    for (line, expected) in lines.iter().zip([
        "the file `data`: line 2: it has none of `input_length`, `text_input`, `messages` and `payload`; expected exactly one",
        "line 4: it has input_length and text_input of",
        "line 5: `input_length`: invalid value: integer `-3`, expected u64, at column",
        "line 6: `input_length` asks for 30000000000 tokens; expected at most 4194304",
        "line 7: expected a JSON object, found `not JSON`",
    ]) {
        assert!(line.starts_with(expected), "{line}");
    }
    let many = "{\"timestamp\": 0, \"input_length\": 3}\n".to_owned() + &"x\n".repeat(1000);
    assert_eq!(complaint("{}", &many).lines().count(), 8);
}

#[test]
fn sessions_before_their_beginning_are_refused() {
    for (name, wrong, expected) in [
        ("t", "-5.0", "line 1: request 1: `t` is -5; expected at least 0"),
        ("api_time", "-1e-3", "line 1: request 1: `api_time` is -0.001; expected at least 0"),
        ("t", "1e999", "line 1: request 1: `t`: number out of range"),
    ] {
        let mut times = vec![("t", "0.5"), ("api_time", "0.25")];
        times.retain(|(other, _)| *other != name);
        times.push((name, wrong));
        let times: String =
            times.iter().map(|(name, time)| format!("\"{name}\": {time}, ")).collect();
        let session = format!(
            "{{\"id\": \"a\", \"block_size\": 4, \"requests\": [{{{times}\"type\": \"n\", \"in\": 4, \"out\": 1, \"hash_ids\": [1]}}]}}\n"
        );
        let message = complaint("{}", &session);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_wrong_number_of_ids_follows_the_rule_of_the_format() {
    let row =
        |ids: &str| format!("{{\"timestamp\": 0, \"input_length\": 10, \"hash_ids\": {ids}}}\n");
    let message = complaint(r#"{"block-size": 4}"#, &row("[1, 2]"));
    assert!(
        message.contains("line 1: 2 hash ids for a prompt of 10 tokens in blocks of 4; expected 3, the last block being partial: set `block-size`"),
        "{message}"
    );
    assert!(complaint("{}", &row("[1, 2]")).contains("in blocks of 512; expected 1"));
    // Weka's ids stand for whole blocks only.
    let weka =
        trace("weka").replace("\"hash_ids\": [1, 2], \"input", "\"hash_ids\": [1, 2, 3], \"input");
    let message = complaint("{}", &weka);
    assert!(
        message.contains("line 1: request 1 of the session: 3 hash ids for a prompt of 9 tokens in blocks of 4; expected 2, one for every whole block: correct the session's `block_size`, or set `on-wrong-blocks"),
        "{message}"
    );
    let config = r#"{"block-size": 4, "on-wrong-blocks": "repair"}"#;
    for (ids, length) in [("[1]", 10), ("[1, 2, 3, 4, 5]", 10)] {
        let mut dataset = open(config, &row(ids));
        let samples = rest(&mut dataset, 1);
        assert_eq!(text(&samples[0]).len(), length);
        assert!(remarks(&dataset)[0].0.contains("number of hash ids"));
    }
    // Bailian's files have either.
    let row = |ids: &str| {
        format!(
            "{{\"chat_id\": 1, \"parent_chat_id\": -1, \"timestamp\": 0, \"input_length\": 40, \"output_length\": 1, \"hash_ids\": {ids}}}\n"
        )
    };
    open("{}", &row("[1, 2]"));
    open("{}", &row("[1, 2, 3]"));
    assert!(complaint("{}", &row("[1]")).contains("expected 2 or 3"));
}

#[test]
fn another_file_is_explained() {
    for (file, message) in [
        ("", "it is empty"),
        (
            "\u{feff}TIMESTAMP,ContextTokens,GeneratedTokens\n",
            "the file `data`: the file has no requests: only line 1, which names the columns",
        ),
        ("\n\n", "it is empty"),
        (
            "[{}]",
            "one JSON array; expected one JSON object a line: convert it with `jq -c '.[]' FILE`",
        ),
        ("{\n \"id\": 1\n}", "line 1 ends within a JSON object"),
        ("\u{1f}\u{0}", "of no known format"),
        ("PAR1xx", "Parquet"),
        (
            "{\"question\": 1}",
            "line 1 is of no known format: `{\"question\": 1}`. Set `format`, or use a file with rows like these:\n  mooncake: {",
        ),
        ("a,b,c\n", "azure: TIMESTAMP,ContextTokens,GeneratedTokens"),
    ] {
        let found = complaint("{}", file);
        assert!(found.contains(message), "{found}");
    }
    let message = complaint(r#"{"format": "azure"}"#, "TIMESTAMP,ContextTokens\n");
    assert!(message.contains("line 1 names no column `generatedtokens`"), "{message}");
    let message = complaint(r#"{"format": "mooncake"}"#, trace("azure"));
    assert!(message.contains("line 1: expected a JSON object, found `TIMESTAMP"), "{message}");
    let message = complaint("{}", "TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,2\n1,2\n");
    assert!(
        message.contains("line 2: column `timestamp` is `yesterday`; expected a time like")
            && message.contains("line 3: 2 fields; expected 3"),
        "{message}"
    );
}

#[test]
fn wrong_configurations_name_every_key() {
    let message = complaint(
        r#"{"time-scale": 0, "share": 2, "max-idle": -1, "window": {"from": 3, "to": 2}, "max-input": 0, "labels": {}}"#,
        "",
    );
    for key in ["time-scale", "share", "max-idle", "window", "max-input", "labels"] {
        assert!(message.contains(&format!("`{key}`")), "{message}");
    }
    assert!(
        complaint(r#"{"block-size": 4}"#, trace("azure")).contains("`block-size` has no meaning")
    );
    assert!(complaint(r#"{"as": "tokens"}"#, trace("azure")).contains("--tokenizer"));
    assert!(complaint(r#"{"window": {"to": 3}}"#, trace("weka")).contains("`window` needs"));
    assert!(complaint(r#"{"format": "mooncak"}"#, "").contains("mooncake"));
    let message = complaint(
        r#"{"max-input": 5, "on-too-long": "error", "block-size": 4}"#,
        trace("mooncake"),
    );
    assert!(message.contains("line 1: a prompt of 10 tokens; `max-input` is 5"), "{message}");
    assert_eq!(message.lines().count(), 4);
    assert!(
        complaint(r#"{"max-input": 2, "block-size": 4}"#, trace("mooncake"))
            .contains("no request is left: 4 in the file, 0 within `max-input` and `max-output`")
    );
}

#[test]
fn an_empty_selection_names_the_step_that_emptied_it() {
    let share = r#"{"block-size": 4, "share": 1e-9, "window": {"from": 2}}"#;
    let message = complaint(share, trace("mooncake"));
    assert!(
        message.ends_with("no request is left: 4 in the file, 0 after `share`, 0 in `window`"),
        "{message}"
    );
    let message = complaint(r#"{"window": {"from": 100}, "block-size": 4}"#, trace("mooncake"));
    assert!(message.ends_with("no request is left: 4 in the file, 0 in `window`"), "{message}");
    let message = complaint(r#"{"share": 1e-9}"#, trace("weka"));
    assert!(message.ends_with("no session is left: 2 in the file, 0 after `share`"), "{message}");
    let failed = "Timestamp,Session ID,Request tokens,Response tokens\n1,a,3,0\n";
    assert!(complaint("{}", failed).ends_with("1 in the file, 0 that can be used"));
}

#[test]
fn contradictions_of_a_row_are_refused() {
    let message = complaint("{}", "{\"timestamp\": 0, \"delay\": 500, \"input_length\": 3}\n");
    assert!(
        message.contains("line 1: `delay` without `session_id`: name the session"),
        "{message}"
    );
    let message = complaint("{}", "{\"timestamp\": 1e300, \"input_length\": 3}\n");
    assert!(message.contains("the time 1e300 is too large"), "{message}");
    let rows = trace("tracelab").replace("\"prefix_tokens\": 4", "\"prefix_tokens\": 500");
    let mut dataset = open("{}", &rows);
    assert_eq!(rest(&mut dataset, 9).len(), 4);
    let message = remarks(&dataset);
    assert!(
        message.iter().any(|(reason, count, line)| {
            reason.contains("do not add up to `input_tokens_total`")
                && *count == 1
                && line == "line 1"
        }),
        "{message:?}"
    );
}

#[test]
fn a_line_that_is_too_long_is_named() {
    let first = "{\"timestamp\": 0, \"input_length\": 3}\n";
    let file = format!("{first}{first}{}", " ".repeat(65 << 20));
    assert!(complaint("{}", &file).contains("line 3 is longer than 64 MiB"));
}

#[test]
fn sessions_that_cannot_be_replayed_so_are_wrong() {
    let message =
        complaint(r#"{"replay": "timestamps", "block-size": 4}"#, trace("mooncake-sessions"));
    assert!(
        message.contains("line 3: it continues the session `a`, with only its new content: set `replay = \"sessions\"`"),
        "{message}"
    );
    let rows = "{\"timestamp\": 1, \"input_length\": 3}\n{\"input_length\": 3}\n";
    assert!(complaint("{}", rows).contains("line 2 has no time, unlike other lines"));
    let twice = trace("weka").replace("\"s2\"", "\"s1\"");
    assert!(
        complaint("{}", &twice).contains(
            "line 2: the session `s1` occurs again (first on line 1); ids must be unique"
        )
    );
    let strange = trace("weka").replace("\"type\": \"s\"", "\"type\": \"z\"");
    assert!(
        complaint("{}", &strange)
            .contains("line 1: request 1: the type is `z`; expected `n`, `s` or `subagent`")
    );
    let twice = trace("bailian").replace("160", "159");
    assert!(
        complaint(r#"{"block-size": 4}"#, &twice)
            .contains("line 2: `chat_id` 159 occurs again (first on line 1); ids must be unique")
    );
}

/// Traces with a few damaged bytes: refused with a sentence, or replayed within bounds.
#[test]
fn damaged_traces_are_refused_or_replayed() {
    let mut replayed = 0;
    for (name, trace, config) in super::TRACES {
        let config = config.replacen(
            '{',
            r#"{"max-input": 64, "max-output": 9, "on-too-long": "truncate", "on-wrong-blocks": "repair", "#,
            1,
        );
        let config = config.replace(", }", "}");
        for round in 0..300_u64 {
            let mut bytes = trace.as_bytes().to_vec();
            for change in 0..1 + round % 3 {
                let drawn = crate::content::mixed(round << 8 | change);
                let at = (drawn % bytes.len() as u64) as usize;
                bytes[at] = b"0123456789-.,:\"{}[]\n\\aeE \xff"[(drawn >> 40) as usize % 26];
            }
            let opened = super::open_with(&config, bytes, round, StandIn);
            match opened {
                Ok(mut dataset) => {
                    replayed += 1;
                    for sample in rest(&mut dataset, 4) {
                        assert!(sample.input_tokens.unwrap_or(0) <= 64, "{name}: {sample:?}");
                        assert!(sample.output_tokens.unwrap_or(0) <= 9, "{name}: {sample:?}");
                    }
                }
                Err(error) => assert!(
                    matches!(&error, runner_plugin::Error::InvalidInput(message) if !message.is_empty()),
                    "{name}: {error:?}"
                ),
            }
        }
    }
    assert!(replayed > 200, "{replayed}");
}

#[test]
fn a_prompt_of_no_tokens_has_no_hash_ids() {
    let row = |ids: &str| {
        format!(
            "{{\"timestamp\": 0, \"input_length\": 0, \"output_length\": 1, \"hash_ids\": {ids}}}\n"
        )
    };
    let samples = open(r#"{"format": "mooncake"}"#, &row("[]")).next(2);
    assert_eq!(samples.expect("samples").len(), 1);
    let message = complaint(r#"{"format": "mooncake"}"#, &row("[1, 2]"));
    let expected = "line 1: 2 hash ids for a prompt of 0 tokens; expected none";
    assert!(message.contains(expected), "{message}");
}

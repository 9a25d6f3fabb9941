//! Requirements on a row, and the meaning of its columns.

use runner_plugin::{Dataset, Prompt, Treatment};

use super::{all, lines, mistake, open, text};

#[test]
fn an_instruction_has_its_input() {
    let rows = [
        r#"{"instruction": "Translate.", "input": "Guten Tag", "output": "Good day"}"#,
        r#"{"instruction": "Write a poem.", "input": "", "output": "…"}"#,
    ];
    let samples = all(&mut open("{}", lines(&rows)), 5);
    let texts: Vec<_> = samples.iter().map(text).collect();
    assert_eq!(texts, ["Translate.\nGuten Tag", "Write a poem."]);
}

#[test]
fn no_limit_is_minus_one_also_in_a_table() {
    let rows = ["prompt,max_tokens", "a,-1", "b,0", "c,7", "d,"];
    let samples = all(&mut open("{}", lines(&rows)), 5);
    let limits: Vec<_> = samples.iter().map(|one| one.output_tokens).collect();
    assert_eq!(limits, [None, None, Some(7), None]);
    let large = lines(&[r#"{"prompt": "a", "output_tokens": 5000000000}"#]);
    assert_eq!(
        mistake("{}", large),
        "file `data`, line 1: column `output_tokens`: expected a whole number from 0 to 4294967295, found 5000000000"
    );
}

#[test]
fn a_prompt_is_never_empty_nor_something_else() {
    for (config, row, expected) in [
        ("{}", r#"{"prompt": true}"#, "found true"),
        ("{}", r#"{"prompt": 5}"#, "found 5"),
        (r#"{"columns": {"prompt": "q"}}"#, r#"{"q": ""}"#, "the prompt's column `q` is empty"),
        (r#"{"columns": {"prompt": "q"}}"#, r#"{"q": null}"#, "the prompt's column `q` is empty"),
        (r#"{"template": "{q}"}"#, r#"{"q": ""}"#, "`template` gives an empty prompt"),
    ] {
        let message = mistake(config, lines(&[row]));
        assert!(message.contains(expected), "{message}\n  expected {expected}");
    }
    assert!(mistake("{}", lines(&["[]"])).contains("the file has none"));
}

#[test]
fn a_configured_column_may_be_rare() {
    let config = r#"{"columns": {"adapter": "lora_of"}}"#;
    let rows = [r#"{"prompt": "a"}"#, r#"{"prompt": "b", "lora_of": "x"}"#];
    let samples = all(&mut open(config, lines(&rows)), 5);
    assert_eq!(samples[1].adapter.as_deref(), Some("x"));
    let message = mistake(config, lines(&rows[..1]));
    assert!(message.contains("no row has the column `lora_of` (`columns.adapter`)"), "{message}");
}

#[test]
fn rows_out_of_order_are_left_out_if_they_may_be() {
    let rows = [
        r#"{"prompt": "a", "timestamp": 1000}"#,
        r#"{"prompt": "b", "timestamp": 500}"#,
        r#"{"prompt": "c"}"#,
        r#"{"prompt": "d", "timestamp": 3000}"#,
    ];
    assert!(mistake("{}", lines(&rows)).contains("line 2: the arrival time 500"));
    let mut dataset = open(r#"{"skip-invalid": true}"#, lines(&rows));
    let samples = all(&mut dataset, 5);
    let due: Vec<_> = samples.iter().map(|one| one.arrival).collect();
    assert_eq!(due, [Some(0), Some(2_000_000_000)]);
    let remarks = dataset.remarks();
    assert_eq!((remarks[0].what, remarks[0].count), (Treatment::Dropped, 2));
}

#[test]
fn made_names_differ_from_later_names() {
    let row = |id: &str| format!("{{\"id\": \"{id}\", \"prompt\": \"{id}\"}}");
    let rows = [row("x"), row("x"), row("x#2")];
    let rows: Vec<_> = rows.iter().map(String::as_str).collect();
    let samples = all(&mut open("{}", lines(&rows)), 5);
    let ids: Vec<_> = samples.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, ["x", "x#2", "x#2#3"]);
}

/// As `runner plan --export` writes them.
#[test]
fn exported_rows_are_as_they_were() {
    let rows = [
        r#"{"embedding": ["a", "b"]}"#,
        r#"{"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}],
            "parameters": {"temperature": 0.5, "tools": [{"type": "function"}]}}"#,
        r#"{"prompt": "p", "parameters": {"tools": [{"type": "function"}]}}"#,
        r#"{"text": "t", "embedding": [0.5, 0.25]}"#,
    ];
    let rows = rows.map(|row| row.replace('\n', " "));
    let rows: Vec<_> = rows.iter().map(String::as_str).collect();
    let samples = all(&mut open("{}", lines(&rows)), 5);
    let embedding = Prompt::Embedding(vec!["a".to_owned(), "b".to_owned()]);
    assert_eq!(samples[0].prompt, embedding);
    assert_eq!(samples[1].prompt.messages()[0].parts.len(), 2);
    assert_eq!(
        samples[1].parameters.as_deref(),
        Some(r#"{"temperature":0.5,"tools":[{"type":"function"}]}"#)
    );
    assert_eq!((text(&samples[2]), text(&samples[3])), ("p", "t"));
}

#[test]
fn only_its_key_lets_a_reference_set_a_length() {
    let rows = [r#"{"prompt": "What is 3*3?", "reference": "9"}"#];
    let output_tokens = |config: &str| {
        let samples = super::all(&mut super::open(config, super::lines(&rows)), 4);
        assert_eq!(samples[0].reference.as_deref(), Some("\"9\""));
        samples[0].output_tokens
    };
    assert_eq!(output_tokens("{}"), None);
    assert_eq!(output_tokens(r#"{"reference-sets-length": true}"#), Some(1));
    assert_eq!(output_tokens(r#"{"output-len": 60}"#), Some(60));
}

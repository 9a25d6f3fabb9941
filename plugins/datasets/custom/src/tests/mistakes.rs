//! Messages about mistakes of the user.

use runner_plugin::random::Python;
use runner_plugin::{Amount, Dataset};
use runner_plugin_testing::datasets::{self, cases, invalid_input};
use runner_plugin_testing::files::Named;

use super::{all, folder, lines, mistake, open};

#[test]
fn a_mistake_names_the_row_and_the_expected_value() {
    let good = r#"{"prompt":"a"}"#;
    // `¶` is a line break.
    for (case, expected) in cases(
        r#"
        {} | {"prompt":"a"}¶¶{ => line 3: EOF while parsing
        {} | {"prompt":"a"}¶[1] => line 2: expected an object
        {} |  => it is empty
        {} | ["a", => item 2 (line 1): the array has no end
        {} | {¶} => expected an object a line
        {} | {"prompt":"a","output_tokens":"x"} => line 1: column `output_tokens`: expected a whole number from 0 to 4294967295, found "x"
        {} | {"messages":[]} => line 1: `messages`: no question
        {} | {"messages":[{"role":"assistant","content":"a"}]} => no question
        {} | {"messages":[{"role":"user","content":5}]} => `messages[0]`: `content`: expected a text or a list of parts
        {} | {"messages":[{"role":"user","content":[{"type":"hologram"}]}]} => a part of type `hologram`
        {} | {"prompt":"a","images":"http://a/b.png"} => the images: expected image data
        {"template":"{b}"} | {"prompt":"a"} => there is no column `b`, which `template` names; it has `prompt`
        {"template":"{b"} | {"prompt":"a"} => `template`: expected `{column}`
        {"columns":{"class":"kind"}} | prompt,x¶a,b => line 2: there is no column `kind`; it has `prompt`, `x`
        {} | prompt,x¶a,"b¶c => line 2: column 2: a quotation mark is not closed
        {} | prompt,x¶a,b,c => line 2: it has 3 values, and there are 2 columns
        {"form":"text"} | {"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"}]} => `form` asks for text
        "#,
    ) {
        let (config, rows) = case.split_once(" | ").expect("a file");
        let message = mistake(config, lines(&rows.split('¶').collect::<Vec<_>>()));
        assert!(message.starts_with("file `data`"), "{message}");
        assert!(message.contains(expected), "{message}\n  expected {expected}");
    }
    // Shuffled, a row is found by its place in the file, and named by its number.
    let rows = [good, good, "", "{", good];
    let message = mistake(r#"{"shuffle":true}"#, lines(&rows));
    assert!(message.contains("line 4: EOF"), "{message}");
    let mut dataset = open(r#"{"skip-invalid":true}"#, lines(&rows));
    assert_eq!(all(&mut dataset, 5).len(), 3);
    assert!(dataset.remarks()[0].first.as_ref().unwrap().starts_with("line 4: EOF"));
}

/// A damaged file gives an error or other samples, and never a panic.
#[test]
fn damage_does_no_harm() {
    let mut random = Python::new(1);
    for name in ["jsonl", "jsonl.gz", "jsonl.zst", "json", "csv", "parquet"] {
        let whole = std::fs::read(folder(&format!("packed/rows.{name}"))).expect("a file");
        for round in 0..60 {
            let mut damaged = whole.clone();
            for _ in 0..3 {
                let at = random.below(damaged.len() as u64) as usize;
                damaged[at] = random.below(256) as u8;
            }
            damaged.truncate(whole.len() - round % 4 * whole.len() / 5);
            let config = match round % 2 {
                0 => r#"{"skip-invalid": true}"#,
                _ => r#"{"shuffle": true, "turns": "all"}"#,
            };
            let files = Named::default().with_bytes("data", damaged);
            let opened = super::open_with(config, 1, Amount::Unknown, files);
            let _ = opened.and_then(|mut dataset| datasets::read(&mut dataset, 7));
        }
    }
}

#[test]
fn a_file_without_rows_is_refused_at_once() {
    for (file, config) in
        [("[]", "{}"), ("[]", r#"{"shuffle": true}"#), ("", r#"{"format": "jsonl"}"#)]
    {
        let files = Named::default().with_bytes("data", file);
        let message = invalid_input(super::open_with(config, 7, Amount::Unknown, files));
        assert!(message.contains("no row is left to measure: the file has none"), "{message}");
    }
}

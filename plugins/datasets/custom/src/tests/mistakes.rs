//! Messages about mistakes of the user.

use runner_plugin::{Amount, Dataset};
use runner_plugin_testing::datasets::{cases, invalid_input};
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

#[test]
fn failing_cases_give_the_errors_in_their_files() {
    let mut tested = 0;
    for entry in std::fs::read_dir(folder("")).expect("the cases") {
        let path = entry.expect("a case").path();
        let Ok(expected) = std::fs::read_to_string(path.join("error.txt")) else { continue };
        let config = std::fs::read_to_string(path.join("config.toml")).unwrap_or_default();
        let config = match path.file_name().and_then(|name| name.to_str()) {
            Some("contradictions") => {
                r#"{"shuffle":true,"template":"{a}","columns":{"prompt":"a","arrival":"t"}}"#
            }
            Some("missing-column") => r#"{"columns":{"prompt":"question"}}"#,
            Some("absent-column") => r#"{"columns":{"output-tokens":"leng"}}"#,
            _ => {
                assert_eq!(config, "");
                "{}"
            }
        };
        let files = [
            "rows.jsonl",
            "rows.json",
            "rows.txt",
            "conversations.jsonl",
            "../no-prompt/rows.jsonl",
        ];
        let file = files.iter().map(|name| path.join(name)).find(|file| file.exists());
        let files = match file.filter(|_| !path.ends_with("no-file")) {
            Some(file) => Named::default().with_path("data", file),
            None => Named::default(),
        };
        let (_, expected) = expected.trim().split_once(": ").expect("a kind of error");
        assert_eq!(mistake(config, files), expected);
        tested += 1;
    }
    assert_eq!(tested, 12);
}

/// A damaged file gives an error or other samples, and never a panic.
#[test]
fn damage_does_no_harm() {
    let mut state = 1_u64;
    for name in ["jsonl", "jsonl.gz", "jsonl.zst", "json", "csv", "parquet"] {
        let whole = std::fs::read(folder(&format!("packed/rows.{name}"))).expect("a file");
        for round in 0..60 {
            let mut damaged = whole.clone();
            for _ in 0..3 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let at = (state >> 33) as usize % damaged.len();
                damaged[at] = (state >> 24) as u8;
            }
            damaged.truncate(whole.len() - round % 4 * whole.len() / 5);
            let config = match round % 2 {
                0 => r#"{"skip-invalid": true}"#,
                _ => r#"{"shuffle": true, "turns": "all"}"#,
            };
            let files = Named::default().with_bytes("data", damaged);
            let Ok(mut dataset) = super::open_with(config, 1, Amount::Unknown, files) else {
                continue;
            };
            for _ in 0..20 {
                match dataset.next(7) {
                    Ok(samples) if !samples.is_empty() => {}
                    _ => break,
                }
            }
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

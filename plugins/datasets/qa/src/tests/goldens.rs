//! Compares every prompt, stop text, limit and reference with the goldens, which `goldens/make.py`
//! had the reference implementations make of the same files.

use std::collections::BTreeMap;
use std::path::Path;

use runner_plugin::{Message, Part, Prompt, Role, Sample};
use runner_plugin_testing::files::Named;
use serde_json::{Value, json};

use super::{all, of_goldens, open};

/// The goldens by name: the header, and the questions.
fn goldens() -> BTreeMap<String, (Value, Vec<Value>)> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/goldens"));
    let entries = std::fs::read_dir(folder).expect("the folder of goldens");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let paths = paths.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    let golden = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(&path).expect("a golden file");
        let mut lines =
            text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON"));
        let header = lines.next().expect("a header");
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        (name, (header, lines.collect()))
    };
    paths.map(golden).collect()
}

fn message_json(message: &Message) -> Value {
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        other => panic!("{other:?}"),
    };
    let [Part::Text(text)] = &message.parts[..] else {
        panic!("expected a text, got {message:?}");
    };
    json!({"role": role, "content": text})
}

/// A sample in the form of a golden line, but for its reference.
fn shown(sample: &Sample, form: &str) -> Value {
    let parameters = sample.parameters.as_deref().unwrap_or("{}");
    let parameters: Value = serde_json::from_str(parameters).expect("an object");
    let mut shown = json!({"form": form});
    match &sample.prompt {
        Prompt::Text(text) => shown["text"] = text.clone().into(),
        Prompt::Messages(messages) => {
            shown["messages"] = messages.iter().map(message_json).collect();
            if let Some(tools) = parameters.get("tools") {
                shown["tools"] = tools.clone();
            } else {
                let continued = parameters.get("continue_final_message");
                shown["continued"] = continued.cloned().unwrap_or(false.into());
            }
        }
        other => panic!("{other:?}"),
    }
    if let Some(tokens) = sample.output_tokens {
        shown["stop"] = parameters.get("stop").cloned().unwrap_or(json!([]));
        shown["output-tokens"] = tokens.into();
    }
    shown
}

/// The right answer in a reference, as the harness has it.
fn target(task: &str, reference: &Value) -> Value {
    let text = |key: &str| reference[key].as_str().expect("a text").to_owned();
    match task {
        "humaneval" | "humaneval-instruct" => {
            format!("{}\ncheck({})", text("test"), text("entry_point")).into()
        }
        "mbpp" | "mbpp-instruct" => {
            let tests = reference["tests"].as_array().expect("tests");
            let tests: Vec<_> =
                tests.iter().take(3).map(|test| test.as_str().expect("a text")).collect();
            tests.join("\n").into()
        }
        "mmlu-cot-zeroshot" => format!("({})", text("answer")).into(),
        "ifeval" => "0".into(),
        _ => reference.get("answer").unwrap_or(reference).clone(),
    }
}

#[test]
fn prompts_equal_the_reference_implementations() {
    let goldens = goldens();
    assert_eq!(goldens.len(), 24);
    let mut count = 0;
    for (name, (header, lines)) in &goldens {
        let task = header["config"]["task"].as_str().expect("a task");
        for form in ["text", "turns", "message"] {
            let expected: Vec<_> = lines.iter().filter(|line| line["form"] == form).collect();
            if expected.is_empty() {
                continue;
            }
            let mut config = header["config"].clone();
            config["form"] = form.into();
            let mut files = Named::default();
            for (key, file) in header["files"].as_object().expect("files") {
                files = files.with_path(key, of_goldens(file.as_str().expect("a name")));
            }
            let mut dataset = open(&config.to_string(), 0, files).expect("a dataset");
            let samples = all(&mut dataset, 7);
            // Some goldens are of the first questions alone.
            assert!(samples.len() >= expected.len(), "{name}: {} samples", samples.len());
            for (sample, line) in samples.iter().zip(expected) {
                let mut line = line.clone();
                let expected = line.as_object_mut().expect("an object").remove("target");
                assert_eq!(shown(sample, form), line, "{name}, {form}, {}", sample.id);
                if let Some(expected) = expected {
                    let reference = sample.reference.as_deref().expect("a reference");
                    let reference = serde_json::from_str(reference).expect("JSON");
                    assert_eq!(target(task, &reference), expected, "{name}, {}", sample.id);
                }
                count += 1;
            }
        }
    }
    assert_eq!(count, 475);
}

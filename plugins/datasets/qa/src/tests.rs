//! Tests that prompts equal the reference implementations' prompts, and tests of messages about
//! mistakes.

mod mistakes;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use serde_json::{Value, json};

use runner_plugin::{Dataset, Error, Message, Part, Prompt, Role, Sample};
use runner_plugin_testing::datasets::{self, ids, rest as all};
use runner_plugin_testing::files::Named;
use runner_plugin_testing::tokenizer::StandIn;

use super::Qa;

fn open(config: &str, seed: u64, files: Named) -> Result<Qa, Error> {
    datasets::open(config, seed, None, files, StandIn)
}

fn of_goldens(name: &str) -> std::path::PathBuf {
    std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/goldens/files")).join(name)
}

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

// Questions, their order and their names, and the samples that are not measured.

fn gsm8k() -> Named {
    Named::default()
        .with_path("data", of_goldens("gsm8k_test.jsonl"))
        .with_path("examples", of_goldens("gsm8k_train.jsonl"))
}

fn mmlu() -> Named {
    Named::default()
        .with_path("data", of_goldens("mmlu_test.parquet"))
        .with_path("examples", of_goldens("mmlu_dev.parquet"))
}

fn dataset(config: &str, files: Named) -> Qa {
    open(config, 7, files).expect("a dataset")
}

/// The text of a sample that is a text, or of its first message.
fn text(sample: &Sample) -> &str {
    match sample.prompt.messages().first().map(|message| &message.parts[..]) {
        Some([Part::Text(text)]) => text,
        _ => datasets::text(sample),
    }
}

fn classes(config: &str) -> Vec<String> {
    let samples = all(&mut dataset(config, mmlu()), 50);
    let class = |sample: Sample| sample.class.expect("a class");
    samples.into_iter().map(class).collect()
}

#[test]
fn questions_do_not_depend_on_the_size_of_calls() {
    for config in [r#"{"task": "gsm8k"}"#, r#"{"task": "gsm8k", "order": "shuffled"}"#] {
        let whole = all(&mut dataset(config, gsm8k()), 100);
        let pieces = all(&mut dataset(config, gsm8k()), 1);
        assert_eq!(format!("{whole:?}"), format!("{pieces:?}"));
        assert_eq!(whole.len(), 6);
    }
}

#[test]
fn shuffled_questions_keep_their_examples() {
    let in_order = all(&mut dataset(r#"{"task": "gsm8k"}"#, gsm8k()), 10);
    let shuffled = all(&mut dataset(r#"{"task": "gsm8k", "order": "shuffled"}"#, gsm8k()), 10);
    assert_ne!(ids(&in_order), ids(&shuffled));
    for sample in &shuffled {
        let same = in_order.iter().find(|other| other.id == sample.id);
        assert_eq!(text(sample), text(same.expect("the same question")));
    }
}

#[test]
fn questions_for_warm_up_are_none_that_are_measured() {
    for form in ["text", "turns", "message"] {
        let config = format!(r#"{{"task": "mmlu", "shots": 1, "form": "{form}"}}"#);
        let mut warmed = dataset(&config, mmlu());
        // More than there are questions.
        let spare = warmed.spare(60).expect("samples");
        assert_eq!(spare.len(), 60);
        let measured = all(&mut warmed, 50);
        assert_eq!(
            format!("{measured:?}"),
            format!("{:?}", all(&mut dataset(&config, mmlu()), 50))
        );
        assert_eq!(measured.len(), 57);
        let texts = spare.iter().chain(&measured);
        let texts: HashSet<_> = texts.map(|sample| format!("{:?}", sample.prompt)).collect();
        assert_eq!(texts.len(), 117);
        assert!(text(&spare[59]).starts_with("Warm-up 60.\n\n"));
        assert!(spare.iter().all(|sample| sample.reference.is_none()));
    }
}

#[test]
fn subjects_and_limits_choose() {
    assert_eq!(
        classes(r#"{"task": "mmlu", "subjects": ["virology", "anatomy"]}"#),
        ["anatomy", "virology"]
    );
    assert_eq!(
        classes(r#"{"task": "mmlu", "subjects": ["virology", "anatomy"], "class": "category"}"#),
        ["stem", "other"]
    );
    let categories: HashSet<_> =
        classes(r#"{"task": "mmlu", "class": "category"}"#).into_iter().collect();
    assert_eq!(categories.len(), 4);
    let config = r#"{"task": "mmlu-pro", "shots": 0, "limit": 2}"#;
    let files = Named::default().with_path("data", of_goldens("mmlu_pro_test.parquet"));
    let samples = all(&mut dataset(config, files), 10);
    // Two of each category.
    assert_eq!(ids(&samples), ["100", "101", "102", "103"]);
}

#[test]
fn the_seeds_change_the_draws() {
    let first =
        |config: &str, files: Named| text(&all(&mut dataset(config, files), 10)[1]).to_owned();
    assert_ne!(
        first(r#"{"task": "gsm8k"}"#, gsm8k()),
        first(r#"{"task": "gsm8k", "examples-seed": 1}"#, gsm8k())
    );
    let gpqa = || Named::default().with_path("data", of_goldens("gpqa_main.csv"));
    assert_ne!(
        first(r#"{"task": "gpqa"}"#, gpqa()),
        first(r#"{"task": "gpqa", "choices-seed": 1}"#, gpqa())
    );
}

#[test]
fn the_user_can_leave_out_the_tasks_additions() {
    let config = r#"{"task": "arc", "form": "turns", "begin-answer": false, "stop": false, "output-len": 9}"#;
    let files = || Named::default().with_path("data", of_goldens("arc_test.parquet"));
    let [plain, ..] = &all(&mut dataset(config, files()), 10)[..] else {
        panic!("expected samples");
    };
    assert_eq!((plain.parameters.as_deref(), plain.output_tokens), (None, Some(9)));
    let [whole, ..] = &all(&mut dataset(r#"{"task": "arc", "form": "turns"}"#, files()), 10)[..]
    else {
        panic!("expected samples");
    };
    let parameters: Value =
        serde_json::from_str(whole.parameters.as_deref().expect("parameters")).expect("JSON");
    assert_eq!(parameters["continue_final_message"], true);
    assert_eq!(parameters["add_generation_prompt"], false);
    assert_eq!(parameters["stop"], serde_json::json!(["\n\n", "."]));
    assert_eq!(whole.output_tokens, Some(100));
}

#[test]
fn questions_that_no_scorer_judges_have_no_reference() {
    let files = Named::default()
        .with_path("data", of_goldens("BFCL_v4.json"))
        .with_path("answers", of_goldens("BFCL_v4_answers.json"));
    let samples = all(&mut dataset(r#"{"task": "bfcl"}"#, files), 50);
    let without = samples.iter().filter(|sample| sample.reference.is_none());
    let without: HashSet<_> =
        without.map(|sample| sample.class.as_deref().expect("a class")).collect();
    assert_eq!(without, HashSet::from(["live_relevance", "simple_java", "simple_javascript"]));
    let irrelevant = samples.iter().find(|sample| sample.class.as_deref() == Some("irrelevance"));
    let reference = irrelevant.and_then(|sample| sample.reference.as_deref()).expect("a reference");
    assert!(reference.ends_with(r#""ground_truth":[]}"#), "{reference}");
}

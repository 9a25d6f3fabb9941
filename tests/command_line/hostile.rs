//! Texts of others reach no terminal as a command: models of servers, messages, pages, names of
//! files.

use std::path::Path;

use crate::support::process::{Exit, Mock, run, runner, words};
use crate::support::results::{json_file, random, run_folder};

/// Colours, the clipboard, a cleared screen, a carriage return, C1, and text turned round.
const EVIL: &str = "m\u{1b}[31m\u{1b}]52;c;aGk=\u{7}\u{1b}[2J\r\u{9b}1A\u{202e}x\u{2066}y\u{7f}";

#[track_caller]
fn assert_clean(what: &str, text: &str) {
    let bad = text.chars().find(|c| {
        let c = *c;
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    });
    assert_eq!(bad, None, "{what}: {text:?}");
}

#[track_caller]
fn assert_all_clean(what: &str, ended: &Exit) {
    assert_clean(what, &ended.stdout);
    assert_clean(what, &ended.stderr);
}

fn against(mock: &Mock, folder: &Path, flags: &str) -> Exit {
    run(&mut random(&mock.url, folder, &format!("--random-output-len 4 {flags}")))
}

#[test]
fn a_model_with_an_evil_name_moves_no_cursor() {
    let folder = tempfile::tempdir().unwrap();
    let mock = Mock::start(&["--ttft", "1ms", "--itl", "1ms", "--model", EVIL]);
    let ended = against(&mock, folder.path(), "--num-prompts 5 --progress-every 1ms").with_code(0);
    assert_all_clean("run", &ended);
    let folder_of_run = run_folder(folder.path());
    let plan = json_file(folder_of_run.join("plan.json"));
    assert_eq!(plan["target"]["model"], EVIL, "the name is kept as it is");
    for format in ["text", "markdown", "json", "jsonl", "csv", "html"] {
        for style in ["runner", "vllm"] {
            let mut command = runner();
            command.arg("report").arg(&folder_of_run);
            command.args(["--format", format, "--style", style]);
            let ended = run(&mut command);
            assert_all_clean(&format!("{format}, {style}"), &ended);
            if format == "json" {
                serde_json::from_str::<serde_json::Value>(&ended.stdout).unwrap();
            }
        }
    }
    for table in ["requests", "events", "summary", "series"] {
        let ended = run(runner().arg("export").arg(&folder_of_run).args(["--table", table]));
        assert_all_clean(&format!("export of {table}"), &ended);
    }
    let mut charts = runner();
    charts.arg("report").arg(&folder_of_run);
    charts.args(["--format", "png", "--output"]).arg(folder.path().join("charts"));
    run(&mut charts).with_code(0);
    let mut compare = runner();
    compare.arg("compare").args([&folder_of_run, &folder_of_run]);
    assert_all_clean("compare", &run(&mut compare));
    // A model that the server does not know is refused, with a list of its models.
    let wrong = against(&mock, folder.path(), "--num-prompts 5 --model other").with_code(3);
    assert_all_clean("unknown model", &wrong);
}

#[test]
fn names_on_the_command_line_are_shown_and_not_obeyed() {
    let folder = tempfile::tempdir().unwrap();
    let name = EVIL.replace(';', "");
    let page = format!(
        "# {EVIL}\n=== Serving Benchmark Result ===\nSuccessful requests: 3\nBackend: {EVIL}\n\
        Mean TTFT (ms): 5\nMedian TTFT (ms): 9\nP99 TTFT (ms): 1\n===\n"
    );
    std::fs::write(folder.path().join(&name), page).unwrap();
    let broken = format!("{{\"{EVIL}\": 1}}");
    std::fs::write(folder.path().join("broken"), &broken).unwrap();
    let scenario = format!("[target]\nmodle = \"{}\"\n", EVIL.escape_unicode());
    std::fs::write(folder.path().join("s.toml"), scenario.replace("\\u{", "")).unwrap();
    std::fs::write(folder.path().join("p.wasm"), EVIL).unwrap();
    let mut seen = String::new();
    for line in [
        vec!["audit", &name],
        vec!["audit", &name, "--format", "json"],
        vec!["audit", &name, "--format", "github"],
        vec!["audit", "broken"],
        vec!["audit", EVIL],
        vec!["report", EVIL],
        vec!["compare", EVIL, EVIL],
        vec!["explain", &name, &name],
        vec!["explain", EVIL, EVIL],
        vec!["plugin", "check", EVIL],
        vec!["plugin", "check", "p.wasm"],
        vec!["plugin", "test", EVIL],
        vec!["scenario", "show", EVIL],
        vec!["scenario", "show", "s.toml"],
        vec!["mock", "--script", EVIL],
        vec!["--backend", EVIL],
        vec!["--num-prompts", EVIL],
        vec![EVIL, EVIL],
    ] {
        let ended = run(runner().args(&line).current_dir(folder.path()));
        assert_all_clean(&line.join(" "), &ended);
        seen += &ended.stdout;
        seen += &ended.stderr;
    }
    assert!(seen.contains("\\u{1b}[31m"), "{seen}");
}

/// The tokenizer library panics on this file. The user sees one error message, and no panic.
#[test]
fn a_tokenizer_that_the_library_cannot_bear_is_one_error() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": {"type": "FixedLength", "length": 0}, "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": {"a": 0, "[UNK]": 1}, "unk_token": "[UNK]"},
    });
    std::fs::write(folder.path().join("tokenizer.json"), tokenizer.to_string()).unwrap();
    let flags = "--backend vllm --model m --dataset-name random --num-prompts 1 --base-url http://127.0.0.1:1";
    let mut command = runner();
    command.args(words(flags)).arg("--tokenizer").arg(folder.path());
    let ended = run(command.current_dir(folder.path())).with_code(3);
    let expected = "the library that reads it failed: chunk size must be non-zero";
    assert_eq!(ended.stderr.matches(expected).count(), 1, "{ended:#?}");
    assert!(!ended.stderr.contains("panicked"), "{ended:#?}");
}

/// A chat template that doubles a text until the memory is full, or never ends, fails: the program
/// goes on, and gives the reason.
#[test]
fn a_chat_template_of_a_stranger_takes_no_memory_of_the_runner() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = r#"{"version": "1.0", "added_tokens": [], "model": {"type": "WordLevel",
        "vocab": {"one": 0, "two": 1, "[UNK]": 2}, "unk_token": "[UNK]"},
        "pre_tokenizer": {"type": "Whitespace"}}"#;
    std::fs::write(folder.path().join("tokenizer.json"), tokenizer).unwrap();
    let row = r#"{"messages": [{"role": "user", "content": "one two"}], "output_tokens": 3}"#;
    std::fs::write(folder.path().join("rows.jsonl"), row).unwrap();
    let plan = |template: &str| {
        std::fs::write(folder.path().join("chat_template.jinja"), template).unwrap();
        run(runner()
            .args(words(
                "plan --backend openai --base-url http://127.0.0.1:9 --model m --tokenizer . \
                 --dataset-name conversation --dataset-path rows.jsonl --num-prompts 1 \
                 --warmup-requests 0 --export out.jsonl --export-format vllm",
            ))
            .current_dir(folder.path()))
    };
    let message = "{{ messages[0].content }}";
    plan(message).with_code(0);
    let out = std::fs::read_to_string(folder.path().join("out.jsonl")).unwrap();
    assert!(out.contains("one two"), "{out}");
    let doubled = "{% set ns = namespace(x = 'x' * 1000) %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}";
    // Constants are joined when the template is read.
    let constant = "{{ ('x' * 90000000)".to_owned() + &" ~ 'x' * 90000000".repeat(20) + " }}";
    for template in [doubled.to_owned() + message, constant] {
        let ended = plan(&template).with_code(3);
        let why = "the chat template fails: it takes more than 1024 MiB of memory";
        assert!(ended.stderr.contains(why), "{ended:#?}");
    }
}

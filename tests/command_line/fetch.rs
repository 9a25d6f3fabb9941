//! `runner fetch` against a hub on this machine, and runs with the fetched files.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::transcript;
use crate::support::hub::{COMMIT, Hub, sha256};
use crate::support::process::{Exit, Mock, only_run, run, runner};
use crate::support::results::json_file;

/// The smallest tokenizer with a token for every byte that a prompt here may have: one for each
/// letter and sign.
fn small_tokenizer() -> String {
    let signs = (b' '..=b'~').map(char::from);
    let vocabulary: serde_json::Map<String, serde_json::Value> = (signs.enumerate())
        .map(|(id, sign)| (sign.to_string(), id.into()))
        .chain([("[UNK]".to_owned(), 95.into())])
        .collect();
    serde_json::json!({
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "."}, "behavior": "Isolated", "invert": false},
        "decoder": {"type": "Fuse"},
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    })
    .to_string()
}

/// The binary, with a hub and a cache of its own.
fn fetching(hub: &Hub, cache: &Path, words: &[&str]) -> Command {
    let mut command = at(cache);
    command.env("HF_ENDPOINT", &hub.url).args(words);
    command
}

/// The binary with a cache, and with a hub that it must not connect to.
fn at(cache: &Path) -> Command {
    let mut command = runner();
    for proxy in ["http_proxy", "https_proxy", "all_proxy"] {
        command.env_remove(proxy).env_remove(proxy.to_uppercase());
    }
    command
        .env("HF_HUB_CACHE", cache)
        .env("HF_HOME", cache)
        .env("HF_ENDPOINT", "http://127.0.0.1:9");
    command
}

/// Returns the output that a user sees, with the parts that differ from test to test by their
/// names.
fn seen(words: &[&str], ended: &Exit, hub: &Hub, cache: &Path) -> String {
    let text = format!(
        "$ runner {}\n{}{}exit code {}\n",
        words.join(" "),
        ended.stderr,
        ended.stdout,
        ended.code.unwrap()
    );
    text.replace(&hub.url, "[HUB]").replace(cache.to_str().unwrap(), "[CACHE]")
}

#[test]
fn a_tokenizer_is_fetched_alone_and_found_by_name() {
    let (hub, cache) = (Hub::start(), TempDir::new().unwrap());
    let model = "models/org/model";
    hub.put(model, "tokenizer.json", small_tokenizer().as_bytes(), true);
    hub.put(model, "tokenizer_config.json", b"{}", false);
    hub.put(model, "model.safetensors", &[7; 5_000], true);
    let words = ["fetch", "tokenizer", "org/model"];
    let ended = run(&mut fetching(&hub, cache.path(), &words)).with_code(0);
    let folder = PathBuf::from(ended.stdout.trim_end());
    assert!(folder.join("tokenizer.json").is_file());
    assert!(!folder.join("model.safetensors").exists());
    assert!(ended.stderr.contains("2 files"), "{}", ended.stderr);
    assert!(!hub.seen().iter().any(|seen| seen.path.contains("safetensors")));
    run(&mut fetching(&hub, cache.path(), &words)).with_stderr(0, "already there");

    // A tokenizer that the scenario names, and a server with its model under that name.
    let mock = Mock::start(&["--model", "org/model"]);
    for (flags, found) in [(&["--tokenizer", "org/model"][..], false), (&[][..], true)] {
        let runs = TempDir::new().unwrap();
        let mut command = at(cache.path());
        command
            .args("run --backend openai --dataset-name random --random-input-len 20".split(' '))
            .args("--details --random-output-len 3 --num-prompts 3 --base-url".split(' '))
            .arg(&mock.url)
            .args(flags)
            .arg("--output-dir")
            .arg(runs.path());
        let ended = run(&mut command).with_code(0);
        let note = "note: tokens are counted with the tokenizer of org/model (commit 0123456789ab)";
        assert_eq!(ended.stderr.contains(note), found, "{}", ended.stderr);
        let line = if found { "org/model (found by the model's name)" } else { "org/model\n" };
        assert!(ended.stdout.contains(line), "{}", ended.stdout);
        let plan = json_file(only_run(runs.path()).unwrap().join("plan.json"));
        let planned = &plan["tokenizer"];
        assert_eq!(planned["name"], "org/model");
        assert_eq!(planned["revision"], COMMIT);
        assert_eq!(planned["approximate"], false);
        assert_eq!(planned["found"].as_bool().unwrap_or(false), found);
        assert_eq!(planned["digest"].as_str().map(str::len), Some(64));
    }
}

#[test]
fn an_unfetched_name_is_an_error_with_its_fetch_command() {
    let cache = TempDir::new().unwrap();
    let mut command = at(cache.path());
    command.args("run --backend openai --dataset-name random --num-prompts 1".split(' '));
    command.args("--base-url http://127.0.0.1:9 --tokenizer org/model@v2".split(' '));
    let ended = run(&mut command).with_code(3);
    let message = ended.stderr.replace(cache.path().to_str().unwrap(), "[CACHE]");
    assert!(message.contains("runner fetch tokenizer org/model@v2"), "{message}");
    assert!(message.contains("[CACHE]/models--org--model"), "{message}");
}

#[test]
fn files_of_a_dataset_come_as_named_or_all_that_are_data() {
    let (hub, cache) = (Hub::start(), TempDir::new().unwrap());
    let data = "datasets/org/data";
    hub.put(data, "README.md", b"about it", false);
    hub.put(data, "a.jsonl", b"{}\n{}\n", false);
    hub.put(data, "parts/b.parquet", &[9; 3_000], true);
    let named = ["fetch", "dataset", "org/data", "a.jsonl"];
    let ended = run(&mut fetching(&hub, cache.path(), &named)).with_code(0);
    let path = PathBuf::from(ended.stdout.trim_end());
    assert_eq!(std::fs::read(path).unwrap(), b"{}\n{}\n");
    let none: &[&str] = &[];
    for (name, more, code) in [
        ("fetch-dataset", none, 0),
        ("fetch-too-large", &["--max-size", "1kB"], 3),
        ("fetch-no-file", &["a.json", "b.parquet"], 3),
    ] {
        let words = [&["fetch", "dataset", "org/data"], more].concat();
        let ended = run(&mut fetching(&hub, cache.path(), &words)).with_code(code);
        transcript(name, &seen(&words, &ended, &hub, cache.path()));
    }
}

#[test]
fn refusals_are_explained_and_never_show_the_token() {
    let (hub, cache) = (Hub::start(), TempDir::new().unwrap());
    hub.put("models/org/model", "tokenizer.json", b"{}", false);
    hub.put("models/org/weights", "model.gguf", b"GGUF", true);
    let fetch = |words: &[&str]| fetching(&hub, cache.path(), words);
    for (name, model, code) in [
        ("fetch-unknown", "org/modle", 3),
        ("fetch-no-tokenizer", "org/weights", 3),
        ("fetch-address", "https://huggingface.co/org/model", 2),
    ] {
        let words = ["fetch", "tokenizer", model];
        let ended = run(&mut fetch(&words)).with_code(code);
        transcript(name, &seen(&words, &ended, &hub, cache.path()));
    }

    hub.state.lock().unwrap().gate = Some(("hf_right".to_owned(), "GatedRepo"));
    let words = ["fetch", "tokenizer", "org/model"];
    let ended = run(&mut fetch(&words)).with_code(3);
    transcript("fetch-gated", &seen(&words, &ended, &hub, cache.path()));
    let ended = run(fetch(&words).env("HF_TOKEN", "hf_wrong")).with_code(3);
    assert!(!ended.stderr.contains("hf_wrong"), "{}", ended.stderr);
    transcript("fetch-gated-token", &seen(&words, &ended, &hub, cache.path()));
    let ended = run(fetch(&words).env("HF_TOKEN", "hf_right")).with_code(0);
    let all = format!("{}{}", ended.stdout, ended.stderr);
    assert!(!all.contains("hf_right"), "{all}");
    run(fetch(&words).env("HF_HUB_OFFLINE", "1")).with_stderr(3, "HF_HUB_OFFLINE");
    run(at(cache.path()).args(words)).with_stderr(5, "cannot reach 127.0.0.1");
}

#[test]
fn the_token_stays_with_the_hub_through_redirects() {
    let (hub, cache) = (Hub::start(), TempDir::new().unwrap());
    hub.put("models/org/model", "tokenizer.json", b"{}", true);
    hub.state.lock().unwrap().gate = Some(("hf_right".to_owned(), "GatedRepo"));
    let mut command = fetching(&hub, cache.path(), &["fetch", "tokenizer", "org/model"]);
    run(command.env("HF_TOKEN", "hf_right")).with_code(0);
    let (elsewhere, to_hub): (Vec<_>, Vec<_>) =
        hub.seen().into_iter().partition(|seen| seen.is_of_contents);
    assert!(!elsewhere.is_empty() && elsewhere.iter().all(|seen| seen.token.is_none()));
    assert!(to_hub.iter().all(|seen| seen.token.is_some()));
}

#[test]
fn a_damaged_file_is_deleted_and_a_cut_download_goes_on() {
    let (hub, cache) = (Hub::start(), TempDir::new().unwrap());
    let bytes: Vec<u8> = (0..200_000u32).map(|n| (n % 251) as u8).collect();
    hub.put("datasets/org/data", "a.csv", &bytes, true);
    let words = ["fetch", "dataset", "org/data", "a.csv"];
    let damaged = |sent: Option<Vec<u8>>| {
        let mut state = hub.state.lock().unwrap();
        let files = state.repositories.get_mut("datasets/org/data").unwrap();
        files.get_mut("a.csv").unwrap().sent = sent;
    };
    damaged(Some(vec![1; 200_000]));
    let ended = run(&mut fetching(&hub, cache.path(), &words))
        .with_stderr(5, "damaged")
        .with_stderr(5, &sha256(&bytes));
    assert_eq!(ended.stdout, "");
    damaged(None);
    hub.state.lock().unwrap().cuts = vec![50_000];
    let before = hub.seen().len();
    let ended = run(&mut fetching(&hub, cache.path(), &words))
        .with_stderr(0, "resuming with another connection");
    assert_eq!(std::fs::read(ended.stdout.trim_end()).unwrap(), bytes);
    let from: Vec<_> = (hub.seen().split_off(before).into_iter())
        .filter(|seen| seen.is_of_contents)
        .map(|seen| seen.from)
        .collect();
    assert_eq!(from, [None, Some(50_000)], "nothing of the damaged file is left");
}

//! Targets that get the API key and the user's headers: targets that the user named, and this
//! machine. A plugin's own choice of a server gets nothing, and a server cannot send them
//! elsewhere.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use crate::hostile_guests::fixture::components;
use crate::support::process::{Mock, run, runner, words};
use crate::support::results::run_file;
use crate::support::server::{read_request, serve};

const KEY: &str = "sk-0123456789abcdef";
/// The URL that SGLang's backend uses where nobody names one.
const USUAL: &str = "http://127.0.0.1:30000";

/// SGLang's backend, which goes to another server of its own accord.
fn led_astray(folder: &Path, to: &str) -> PathBuf {
    assert_eq!(to.len(), USUAL.len(), "{to}");
    let mut bytes = std::fs::read(components().join("backends/sglang.wasm")).unwrap();
    let at = bytes
        .windows(USUAL.len())
        .position(|part| part == USUAL.as_bytes())
        .expect("the backend holds its URL");
    bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    let path = folder.join("astray.wasm");
    std::fs::write(&path, bytes).unwrap();
    path
}

fn with(plugin: &Path, folder: &Path) -> Command {
    let mut command = runner();
    command
        .args(words(
            "--dataset-name random --num-prompts 2 --random-output-len 4 --header x-team:seven",
        ))
        .arg("--plugin")
        .arg(plugin)
        .env("OPENAI_API_KEY", KEY)
        .current_dir(folder);
    command
}

/// A server of bytes that answers each request with the same, and keeps the heads of the requests.
fn listening(answer: String) -> (String, Arc<Mutex<Vec<String>>>) {
    let heads = Arc::<Mutex<Vec<String>>>::default();
    let kept = Arc::clone(&heads);
    let url = serve(move |mut stream| {
        let request = read_request(stream)?;
        let (head, _) = request.split_once("\r\n\r\n")?;
        kept.lock().unwrap().push(head.to_owned());
        let _ = stream.write_all(answer.as_bytes());
        None
    });
    (url, heads)
}

#[test]
fn a_plugin_does_not_choose_who_gets_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = led_astray(folder.path(), "http://engines.invalid");
    let ended = run(&mut with(&plugin, folder.path())).with_code(3);
    let says = "sends requests to http://engines.invalid by default, which is not this machine";
    assert!(ended.stderr.contains(says), "{ended:#?}");
    assert!(ended.stderr.contains("--base-url http://engines.invalid"), "{ended:#?}");
    assert!(!ended.stderr.contains("cannot find"), "{ended:#?}");
    // The same without a key: prompts, too, go where the user wants them.
    run(with(&plugin, folder.path()).env_remove("OPENAI_API_KEY")).with_code(3);
}

#[test]
fn a_target_that_is_named_gets_the_key_and_the_run_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mock = Mock::start(&["--api-key", KEY, "--ttft", "1ms", "--itl", "1ms"]);
    let plugin = led_astray(folder.path(), "http://engines.invalid");
    let ended = run(with(&plugin, folder.path()).args(["--base-url", &mock.url])).with_code(0);
    let says =
        format!("note: the API key from OPENAI_API_KEY and the header x-team go to {}", mock.url);
    assert!(ended.stderr.contains(&says), "{ended:#?}");
    let plan = run_file(folder.path(), "plan.json");
    let key = serde_json::json!({ "variable": "OPENAI_API_KEY", "scheme": "bearer" });
    assert_eq!(plan["target"]["api-key"], key);
}

#[test]
fn this_machine_gets_the_key_without_being_named() {
    let folder = tempfile::tempdir().unwrap();
    let mock = Mock::start(&["--api-key", KEY, "--ttft", "1ms", "--itl", "1ms"]);
    let plugin = led_astray(folder.path(), &mock.url);
    run(&mut with(&plugin, folder.path())).with_stderr(0, "the API key from OPENAI_API_KEY");
}

#[test]
fn a_server_cannot_send_the_key_elsewhere() {
    let (elsewhere, heads) = listening(String::new());
    for status in ["301 Moved Permanently", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let folder = tempfile::tempdir().unwrap();
        let redirect = format!(
            "HTTP/1.1 {status}\r\nlocation: {elsewhere}/v1/models\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
        let (url, requests) = listening(redirect);
        let mut command = with(&components().join("backends/vllm.wasm"), folder.path());
        // Its model is named, so that requests follow the first question.
        command.args(["--base-url", &url, "--model", "m"]);
        run(&mut command).with_code(5);
        let requests = requests.lock().unwrap();
        assert!(requests.len() > 2, "{requests:?}");
        assert!(requests.iter().all(|head| head.contains(KEY)), "{requests:?}");
        assert_eq!(*heads.lock().unwrap(), Vec::<String>::new(), "{status}");
    }
}

#[test]
fn files_that_a_scenario_names_count_as_named() {
    let folder = tempfile::tempdir().unwrap();
    let mock = Mock::start(&["--api-key", KEY, "--ttft", "1ms", "--itl", "1ms"]);
    let plugin = led_astray(folder.path(), "http://engines.invalid");
    let text = format!("[target]\nbase-url = \"{}\"\napi-key-env = \"MINE\"\n", mock.url);
    let scenario = folder.path().join("s.toml");
    std::fs::write(&scenario, text).unwrap();
    let mut command = with(&plugin, folder.path());
    command.arg(&scenario).env("MINE", KEY).env("OPENAI_API_KEY", "another");
    run(&mut command).with_stderr(0, "the API key from MINE");
}

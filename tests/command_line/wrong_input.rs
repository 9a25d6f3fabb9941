//! Wrong input of every kind: a message that names the file, line, key or plugin and a remedy, the
//! right exit code, an empty stdout. The cases are data, in `wrong_input.toml`.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;

use super::transcript;
use crate::support::process::{Mock, run, runner, words};
use crate::support::server::serve;

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/command_line");

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// Its words; a name in brackets is replaced by a server's URL.
    run: String,
    /// A last word, which may hold blanks.
    last: Option<String>,
    exit: i32,
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// True if it only fails at the end, so that a result is printed.
    #[serde(default)]
    measures: bool,
}

#[test]
fn wrong_input_gets_its_message() {
    let text = std::fs::read_to_string(format!("{HERE}/wrong_input.toml")).unwrap();
    let cases: BTreeMap<String, Case> = toml::from_str(&text).unwrap();
    let mocks = [
        ("[PLAIN]", Mock::start(&["--model", "mock", "--ttft", "1ms", "--itl", "1ms"])),
        (
            "[KEYED]",
            Mock::start(&[
                "--api-key",
                "sesame",
                "--model",
                "mock",
                "--ttft",
                "1ms",
                "--itl",
                "1ms",
            ]),
        ),
        ("[TWO]", Mock::start(&["--model", "llama-3", "--model", "qwen-3"])),
        ("[PAGE]", Mock::start(&["--fault", "kind = 'html'"])),
        ("[REFUSING]", Mock::start(&["--fault", "kind = 'http-error', status = 503"])),
    ];
    let mut servers: Vec<_> = mocks.iter().map(|(name, mock)| (*name, mock.url.clone())).collect();
    servers.push(("[NOT-HTTP]", not_http()));
    let names: Vec<&String> = cases.keys().collect();
    let (cases, servers) = (&cases, &servers);
    let outputs = std::thread::scope(|scope| {
        let share = names.len().div_ceil(3);
        let threads: Vec<_> = names
            .chunks(share)
            .map(|names| {
                scope.spawn(move || {
                    let tell = |name: &&String| {
                        (name.to_string(), transcript_of(name, &cases[*name], servers))
                    };
                    names.iter().map(tell).collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    for (name, text) in outputs {
        transcript(&format!("wrong-{name}"), &text);
    }
}

/// Runs a case in a folder of its own and gives its transcript.
fn transcript_of(name: &str, case: &Case, servers: &[(&str, String)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    lay_out(folder.path());
    let to_server = |word: &str| {
        let known = servers.iter().find(|(server, _)| word == *server);
        known.map_or(word.to_owned(), |(_, url)| url.clone())
    };
    let mut command = runner();
    command
        .current_dir(folder.path())
        // A usage line has the flags that variables set.
        .env_remove("RUNNER_ALLOW_INVALID")
        .args(words(&case.run).map(to_server))
        .args(&case.last)
        .envs(&case.env);
    let ended = run(&mut command);
    assert!(!ended.stderr.contains("panicked"), "{name}: {ended:#?}");
    assert_eq!(ended.code, Some(case.exit), "{name}: {ended:#?}");
    assert_eq!(ended.stdout.is_empty(), !case.measures, "{name}: {ended:#?}");
    let mut stderr = without_stamps(&ended.stderr);
    for (server, url) in servers {
        stderr = stderr.replace(url, server);
    }
    let run_was_made =
        std::fs::read_dir(folder.path().join("runs")).is_ok_and(|mut runs| runs.next().is_some());
    assert_eq!(run_was_made, case.measures, "{name}: folders of runs");
    let last = case.last.as_ref().map(|last| format!(" '{last}'"));
    let line = format!("{}{}", case.run, last.unwrap_or_default());
    format!("$ runner {line}\n{stderr}exit code {}\n", case.exit)
}

/// Writes the input files into a folder, including some that no editor would write.
fn lay_out(folder: &Path) {
    for file in std::fs::read_dir(format!("{HERE}/inputs")).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), folder.join(file.file_name())).unwrap();
    }
    std::fs::write(folder.join("empty.wasm"), b"").unwrap();
    std::fs::write(folder.join("module.wasm"), b"\0asm\x01\0\0\0").unwrap();
    std::fs::write(folder.join("stranger.wasm"), b"\0asm\x0d\0\x01\0").unwrap();
    std::fs::create_dir(folder.join("empty")).unwrap();
}

/// Takes the instant out of the names of runs: `20260102-030405`.
fn without_stamps(text: &str) -> String {
    let is_stamp = |word: &str| {
        let (date, time) = (word.get(..8), word.get(9..15));
        let digits =
            |part: Option<&str>| part.is_some_and(|part| part.bytes().all(|b| b.is_ascii_digit()));
        digits(date) && word.get(8..9) == Some("-") && digits(time)
    };
    let parts: Vec<String> = text
        .split('/')
        .map(
            |part| {
                if is_stamp(part) { format!("[STAMP]{}", &part[15..]) } else { part.to_owned() }
            },
        )
        .collect();
    parts.join("/")
}

/// A server that greets whoever connects, as mail servers do.
fn not_http() -> String {
    serve(|mut stream| {
        let _ = stream.write_all(b"220 mail.example ESMTP\r\n");
        let _ = stream.read(&mut [0; 1024]);
        None
    })
}

//! Speech from a server that is not ours, whose WAV Python's `wave` writes.

use std::path::Path;

use serde::Deserialize;
use tempfile::TempDir;

use model::exchange::{Class, Exchange};

use crate::endings::{class, exchanges};
use crate::support::process::{run, runner, words};
use crate::support::pypi;
use crate::support::results::json_lines;

const SPEECH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/sockets/speech.py");

/// A line of the server's log.
#[derive(Deserialize)]
struct Entry {
    text: String,
    seconds: f64,
    fault: Option<String>,
}

/// A run of sixty requests against the server, and the server's log.
fn run_against_speech(flags: &str) -> (TempDir, Vec<Exchange>, Vec<Entry>) {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("log.jsonl");
    let texts: Vec<String> = (0..60).map(|text| format!("Sentence {text}.")).collect();
    std::fs::write(folder.path().join("texts.txt"), texts.join("\n")).unwrap();
    let (_server, url) = pypi::serve(Path::new("python3"), SPEECH, &log);
    let line = "--backend openai --set backend.config.route=speech --model m --dataset-name custom \
                --dataset-path texts.txt --num-prompts 60 --warmup-requests 0 --concurrency 6 \
                --temperature server";
    let mut command = runner();
    command.args(words(line)).args(words(flags)).args(["--base-url", &url]);
    run(command.current_dir(folder.path())).with_code(0);
    let exchanges = exchanges(folder.path());
    (folder, exchanges, json_lines(log))
}

#[test]
fn sound_is_as_long_as_the_server_made_it() {
    for (flags, of_stream) in [
        ("", true),
        (
            "--set backend.config.speech.format=wav --set backend.config.speech.stream-format=audio",
            true,
        ),
        ("--set backend.config.speech.format=wav --disable-stream", false),
    ] {
        let (folder, exchanges, served) = run_against_speech(flags);
        assert_eq!((exchanges.len(), served.len()), (60, 60), "{flags}");
        let texts = std::fs::read_to_string(folder.path().join("texts.txt")).unwrap();
        let texts: Vec<&str> = texts.lines().collect();
        for exchange in &exchanges {
            let text = texts[exchange.index as usize];
            let served = served.iter().find(|served| served.text == text).unwrap();
            let about = format!("{flags} {text}: {:?}", exchange.outcome);
            let wanted = match served.fault.as_deref() {
                None => None,
                Some("refused") => Some(Class::HttpStatus),
                Some("failed") => Some(Class::InBandError),
                Some(_) => Some(Class::Truncated),
            };
            assert_eq!(class(exchange), wanted, "{about}");
            assert!(exchange.output.is_empty(), "{about}");
            if wanted.is_none() {
                let seconds = exchange.audio_duration.unwrap().as_secs_f64();
                assert!((seconds - served.seconds).abs() < 1e-6, "{about}: {seconds}");
                let counted = exchange.usage.and_then(|usage| usage.output_tokens);
                assert_eq!(counted, flags.is_empty().then_some(7), "{about}");
            } else if of_stream && wanted != Some(Class::HttpStatus) {
                // The sound before the fault is kept.
                let seconds = exchange.audio_duration.unwrap().as_secs_f64();
                assert!(seconds > 0.0 && seconds < served.seconds + 1e-6, "{about}: {seconds}");
            }
        }
    }
}

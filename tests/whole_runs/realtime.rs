//! Speech over WebSockets: sent as it is spoken, answered in text and in sound, and everything that
//! can go wrong.

use std::path::Path;

use model::exchange::{Class, Exchange, Outcome};
use model::units::Nanos;

use crate::faults::check::failure;
use crate::support::trial::{RunResult, Trial};

const SCENARIO: &str = r#"
[target]
model = "mock"
base-url = "http://127.0.0.1:8000"
[request]
ignore-eos = false
[dataset]
plugin = "datasets/speech.wasm"
[dataset.config]
repeat = true
[load]
requests = 3
arrival = "constant"
rate = 10.0
warmup = 0
"#;

/// Half a second, with this many samples a second.
fn recording(folder: &Path, rate: u32) {
    let samples = rate / 2;
    let mut file = b"RIFF".to_vec();
    file.extend((36 + 2 * samples).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend(rate.to_le_bytes());
    file.extend((2 * rate).to_le_bytes());
    file.extend(b"\x02\0\x10\0data");
    file.extend((2 * samples).to_le_bytes());
    file.resize(44 + 2 * samples as usize, 7);
    std::fs::write(folder.join("0.wav"), file).unwrap();
    std::fs::write(folder.join("metadata.csv"), "file_name,transcription\n0.wav,one\n").unwrap();
}

async fn run(rate: u32, over: &str, script: &str) -> RunResult {
    let folder = tempfile::tempdir().unwrap();
    recording(folder.path(), rate);
    Trial::new(SCENARIO)
        .plugin("backends/realtime.wasm")
        .dataset_file(folder.path())
        .with(over)
        .against(&format!("answer = {{ text = 'one two three' }}\n{script}"))
        .run()
        .await
}

/// A twentieth of a second at a time, or all at once.
#[tokio::test(start_paused = true)]
async fn speech_is_sent_as_it_is_spoken() {
    for (pace, piece, spoken) in
        [("spoken", 50, 500.0), ("spoken", 200, 500.0), ("at-once", 50, 0.0)]
    {
        let over = format!("backend.config = {{ pace = '{pace}', piece = {piece} }}");
        let ran = run(16_000, &over, "").await;
        assert_eq!(ran.failures(), [], "{}", ran.text);
        assert_eq!(ran.everywhere("ttft-from-input"), (120.0, 3));
        assert_eq!(ran.everywhere("ttft"), (spoken + 120.0, 3));
        // Twelve further tokens.
        assert_eq!(ran.everywhere("e2e"), (spoken + 360.0, 3));
        assert_eq!(ran.everywhere("tpot"), (20.0, 3));
        for exchange in ran.measured() {
            assert_eq!(exchange.output, "one two three");
            let usage = exchange.usage.unwrap();
            assert_eq!((usage.input_tokens, usage.output_tokens), (Some(25), Some(13)));
            assert_eq!(exchange.written, exchange.input_sent);
        }
        assert!(ran.truths.iter().all(|truth| truth.status == Some(101)));
        let reused = |exchange: &Exchange| exchange.connection.unwrap().reused;
        assert!(!ran.measured().any(reused), "none is used twice");
    }
}

#[tokio::test(start_paused = true)]
async fn a_conversation_is_answered_in_text_and_in_sound() {
    for (output, sound) in [("text", None), ("audio", Some(Nanos(520_000_000)))] {
        let over = format!(
            "backend.config = {{ api = 'openai', output = '{output}' }}\nrequest.temperature = 'server'"
        );
        let ran = run(24_000, &over, "").await;
        assert_eq!(ran.failures(), [], "{}", ran.text);
        assert_eq!(ran.everywhere("ttft-from-input"), (120.0, 3));
        assert_eq!(ran.everywhere("ttft"), (620.0, 3));
        for exchange in ran.measured() {
            assert_eq!(exchange.output, "one two three");
            assert_eq!(exchange.audio_duration, sound, "{output}");
            assert_eq!(exchange.finish.as_deref(), Some("completed"));
            let of_output = exchange.usage.unwrap().output_audio_tokens;
            assert_eq!(of_output, Some(if sound.is_some() { 13 } else { 0 }));
        }
    }
}

/// Faults of the request at each position, and the resulting failure with a part of its message;
/// none for a merely odd request.
const FAULTS: [(&str, Option<(Class, &str)>); 15] = [
    ("kind = 'split', bytes = 1", None),
    ("kind = 'ping'", None),
    ("kind = 'hang-up'", Some((Class::Reset, "before a reply"))),
    ("kind = 'http-error', status = 403", Some((Class::HttpStatus, "HTTP 403"))),
    (
        "kind = 'http-error', status = 503, retry-after = '7s'",
        Some((Class::HttpStatus, "(retry-after: 7)")),
    ),
    ("kind = 'html'", Some((Class::Protocol, "did not open a WebSocket"))),
    ("kind = 'html', status = 502", Some((Class::HttpStatus, "HTTP 502"))),
    ("kind = 'in-band-error', after-tokens = 3", Some((Class::InBandError, "EngineCore"))),
    (
        "kind = 'cut', after-tokens = 3",
        Some((Class::Truncated, "without the WebSocket being closed")),
    ),
    ("kind = 'no-done', after-tokens = 3", Some((Class::Truncated, "with code 1000"))),
    (
        "kind = 'close', after-tokens = 3",
        Some((Class::InBandError, "with code 1011: the script closes here")),
    ),
    ("kind = 'close', after-tokens = 0, code = 4000", Some((Class::InBandError, "with code 4000"))),
    ("kind = 'close', after-tokens = 13", None),
    ("kind = 'stall', after-tokens = 0", Some((Class::FirstTokenTimeout, "nothing of the answer"))),
    ("kind = 'stall', after-tokens = 3", Some((Class::TokenGapTimeout, "no more of the answer"))),
];

#[tokio::test(start_paused = true)]
async fn each_fault_is_a_failure_of_its_class() {
    let faults = (0..).zip(FAULTS).map(|(number, (fault, _))| {
        format!("[[fault]]\n{}\nrequests = [{number}]\n", fault.replace(", ", "\n"))
    });
    let faults: String = faults.collect();
    let over = format!(
        "load.requests = {}\ntimeouts.first-token = '5s'\ntimeouts.token-gap = '3s'",
        FAULTS.len()
    );
    let ran = run(16_000, &over, &faults).await;
    for (exchange, (fault, expected)) in ran.measured().zip(FAULTS) {
        match (&exchange.outcome, expected) {
            (Outcome::Ok, None) => assert_eq!(exchange.output, "one two three", "{fault}"),
            (Outcome::Incomplete { class, message, .. }, Some((wanted, part))) => {
                assert_eq!(*class, wanted, "{fault}: {message}");
                assert!(message.contains(part), "{fault}: {message}");
            }
            (outcome, _) => panic!("{fault}: {outcome:?}"),
        }
        let has_begun = fault.contains("after-tokens = 3");
        assert_eq!(
            exchange.output,
            if expected.is_none() {
                "one two three"
            } else if has_begun {
                "one"
            } else {
                ""
            },
            "{fault}"
        );
    }
}

/// A connection that a plugin opens needs HTTP/1.1, and says so.
#[tokio::test(start_paused = true)]
async fn another_version_of_http_is_refused() {
    let ran = run(16_000, "connection.http = '2'", "").await;
    for exchange in ran.measured() {
        let (class, message) = failure(exchange).expect("it was sent");
        assert_eq!(class, Class::Plugin);
        assert!(message.contains("a WebSocket, which needs HTTP/1.1"), "{message}");
    }
}

//! Recordings of a folder, their text from a server, and its error rates: with both servers' forms
//! of a reply, streamed and whole.

use std::path::Path;

use crate::support::trial::{RunResult, Trial};

use super::assert_close;

const SCENARIO: &str = r#"
[target]
model = "mock"
[backend.config]
route = "transcriptions"
[dataset]
plugin = "datasets/speech.wasm"
[[scorers]]
plugin = "scorers/word-error-rate.wasm"
[load]
requests = 3
arrival = "constant"
rate = 10.0
warmup = 0
"#;

/// Half a second, a second and a second and a half at 16 000 samples a second.
fn recordings(folder: &Path) {
    let texts = "file_name,transcription\n0.wav,one two three\n1.wav,one two\n2.wav,four\n";
    std::fs::write(folder.join("metadata.csv"), texts).unwrap();
    for name in 0..3_u32 {
        let bytes = 16_000 * (name + 1);
        let mut file = b"RIFF".to_vec();
        file.extend((36 + bytes).to_le_bytes());
        file.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0\0\x7d\0\0\x02\0\x10\0data");
        file.extend(bytes.to_le_bytes());
        // A boundary in a sound must not end it.
        file.extend(b"\r\n--runner-form-0000000000000000--\r\n");
        file.resize(44 + bytes as usize, name as u8);
        std::fs::write(folder.join(format!("{name}.wav")), file).unwrap();
    }
}

async fn run(backend: &str, over: &str, script: &str) -> RunResult {
    let folder = tempfile::tempdir().unwrap();
    recordings(folder.path());
    Trial::new(SCENARIO)
        .plugin(&format!("backends/{backend}.wasm"))
        .dataset_file(folder.path())
        .with(over)
        .against(&format!("answer = {{ text = 'one two three' }}\n{script}"))
        .run()
        .await
}

#[tokio::test(start_paused = true)]
async fn error_rates_are_over_all_words() {
    for (backend, server) in [("openai", "openai"), ("vllm", "vllm"), ("openai", "vllm")] {
        for stream in [true, false] {
            let over = format!("request.stream = {stream}");
            let ran = run(backend, &over, &format!("transcriptions = '{server}'")).await;
            let about = format!("{backend} {server} {stream}\n{}", ran.text);
            assert_eq!(ran.failures(), [], "{about}");
            let summary = &ran.summary;
            // Errors 0, 1 and 3 of 3, 2 and 1 words.
            assert_close(summary.run_scores.get("word-error-rate").copied(), 4.0 / 6.0);
            let mean = |name: &str| summary.scores.get(name).map(|score| score.mean);
            assert_close(mean("sample-word-error-rate"), 3.5 / 3.0);
            assert_close(mean("word-insertions"), 1.0);
            // The real-time factor is the latency by this.
            assert_close(mean("audio-seconds"), 1.0);
            for exchange in ran.measured() {
                assert_eq!(exchange.output, "one two three", "{about}");
                let sent = exchange.sent.unwrap();
                let last = exchange.events.at.last().unwrap().since(sent).0;
                // A token is a byte.
                assert_eq!(last, 120_000_000 + 12 * 20_000_000, "{about}");
            }
            let names: Vec<_> = ran.plan.dataset.files.keys().map(String::as_str).collect();
            assert_eq!(names, ["data/0.wav", "data/1.wav", "data/2.wav", "data/metadata.csv"]);
            // Fifty tokens a second of sound.
            let counted = (server == "openai" || stream) && (backend, server) != ("openai", "vllm");
            assert_eq!(summary.tokens.input.total, counted.then_some(150), "{about}");
            let audio = summary.tokens.input_audio.as_ref().map(|audio| audio.total);
            assert_eq!(audio, (server == "openai").then_some(150), "{about}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn forms_of_whole_replies_have_one_text() {
    for format in ["json", "verbose-json", "text"] {
        for (backend, server) in [("openai", "openai"), ("vllm", "vllm")] {
            let over =
                format!("request.stream = false\nbackend.config.response-format = '{format}'");
            let ran = run(backend, &over, &format!("transcriptions = '{server}'")).await;
            assert_eq!(ran.failures(), [], "{format} {server}\n{}", ran.text);
            assert!(ran.measured().all(|exchange| exchange.output == "one two three"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_transcription_without_its_end_is_cut_off() {
    for server in ["openai", "vllm"] {
        let fault =
            format!("transcriptions = '{server}'\n[[fault]]\nkind = 'no-done'\nafter-tokens = 5");
        let ran = run("openai", "", &fault).await;
        assert_eq!(ran.failures().len(), 3, "{server}\n{}", ran.text);
        // Failed requests are not judged.
        assert!(ran.summary.run_scores.is_empty());
    }
}

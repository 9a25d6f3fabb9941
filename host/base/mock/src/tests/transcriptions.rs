//! The text of sounds, as vLLM and as OpenAI send it.

use serde_json::{Value, json};

use super::*;

/// Half a second of a WAV file at 4 bytes a second, and further fields.
async fn transcribe(engine: &Arc<Engine>, fields: &[(&str, &str)]) -> ClientReply {
    let mut body =
        b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n"
            .to_vec();
    body.extend(b"RIFF....WAVEfmt ....\x01\0\x01\0....\x04\0\0\0\x02\0\x10\0data\x02\0\0\0..\r\n");
    for (name, value) in fields {
        let part =
            format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        body.extend(part.bytes());
    }
    body.extend(b"--b--\r\n");
    let request = Request::builder()
        .method(Method::POST)
        .uri("/v1/audio/transcriptions")
        .header(CONTENT_TYPE, "multipart/form-data; boundary=b")
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    send(engine, request).await.unwrap()
}

fn values(got: &ClientReply) -> Vec<Value> {
    let data = got.data().into_iter().filter(|data| data != "[DONE]");
    data.map(|data| serde_json::from_str(&data).unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn chunks_are_like_vllms() {
    let engine = engine("answer = { text = 'Hi é' }\ntokens-per-chunk = 2");
    let fields = [("model", "m"), ("stream", "true"), ("stream_include_usage", "true")];
    let got = transcribe(&engine, &fields).await;
    assert_eq!(got.content_type(), "text/event-stream; charset=utf-8");
    assert!(got.body().ends_with("data: [DONE]\n\n"));
    assert_eq!(got.text(), "Hi é");
    let values = values(&got);
    let choices: Vec<_> = values.iter().map(|value| value["choices"].clone()).collect();
    assert_eq!(
        choices,
        [
            json!([{"delta": {"content": "H"}}]),
            json!([{"delta": {"content": "i "}}]),
            json!([{"delta": {"content": "é"}, "finish_reason": "stop", "stop_reason": null}]),
            json!([]),
        ]
    );
    assert_eq!(values[0]["object"], "transcription.chunk");
    assert_eq!(
        values[3]["usage"],
        json!({"prompt_tokens": 25, "total_tokens": 30, "completion_tokens": 5})
    );
    let whole = transcribe(&engine, &[("response_format", "text")]).await;
    assert_eq!(whole.body(), r#"{"text":"Hi é","usage":{"type":"duration","seconds":1}}"#);
}

#[tokio::test(start_paused = true)]
async fn events_are_like_openais() {
    let engine = engine("answer = 'echo'\ntranscriptions = 'openai'\ntokens-per-chunk = 4");
    let got = transcribe(&engine, &[("prompt", "Hello"), ("stream", "true")]).await;
    let usage = json!({
        "type": "tokens",
        "input_tokens": 30,
        "input_token_details": {"text_tokens": 5, "audio_tokens": 25},
        "output_tokens": 5,
        "total_tokens": 35,
    });
    assert_eq!(
        values(&got),
        [
            json!({"type": "transcript.text.delta", "delta": "H"}),
            json!({"type": "transcript.text.delta", "delta": "ello"}),
            json!({"type": "transcript.text.done", "text": "Hello", "usage": usage}),
        ]
    );
    assert!(!got.body().contains("[DONE]"));
    let whole = transcribe(&engine, &[("prompt", "Hello")]).await;
    assert_eq!(whole.body(), json!({"text": "Hello", "usage": usage}).to_string());
    let text = transcribe(&engine, &[("prompt", "Hello"), ("response_format", "text")]).await;
    assert_eq!(
        (text.body().as_str(), text.content_type()),
        ("Hello\n", "text/plain; charset=utf-8")
    );
    let verbose =
        transcribe(&engine, &[("prompt", "Hello"), ("response_format", "verbose_json")]).await;
    let verbose: Value = serde_json::from_str(&verbose.body()).unwrap();
    assert_eq!((&verbose["text"], &verbose["duration"]), (&json!("Hello"), &json!(0.5)));
    assert_eq!(verbose["segments"][0]["text"], "Hello");
}

#[tokio::test(start_paused = true)]
async fn mistakes_are_refused_and_faults_happen() {
    let got = transcribe(&engine(""), &[("stream", "perhaps")]).await;
    assert_eq!(got.status, 400);
    assert!(got.body().contains("expected a boolean, got `perhaps`"), "{}", got.body());
    let json = post(&engine(""), "/v1/audio/transcriptions", "{}").await;
    assert!(json.status == 400 && json.body().contains("expected multipart/form-data"));
    let broken = engine("[[fault]]\nkind = 'in-band-error'\nafter-tokens = 2");
    let got = transcribe(&broken, &[("stream", "true")]).await;
    assert!(got.body().contains(r#"data: {"error": {"message": "#), "{}", got.body());
}

//! A backend built for exactly runner:plugin 0.1.0: OpenAI's completions, streamed, without the SDK.
//! Its component, as it was built once, is in `tests/versions`, so that what was built once goes on running.
#![cfg(target_arch = "wasm32")]
#![allow(missing_docs, unsafe_code)]

use serde_json::{Value, json};

wit_bindgen::generate!({
    path: "../../../wit/frozen/0.1.0",
    world: "backend-plugin",
    generate_all,
});

use exports::runner::plugin::about;
use exports::runner::plugin::backend::{
    Codec, Decoded, Event, Frames, Framing, Guest, GuestCodec, Meaning, Output, Request, Usage,
};
use runner::plugin::types::{Error, Prompt, Sample, Settings};

struct Frozen;

impl about::Guest for Frozen {
    fn describe() -> about::Info {
        about::Info {
            name: "frozen".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            summary: env!("CARGO_PKG_DESCRIPTION").to_owned(),
            config_schema: json!({"type": "object", "additionalProperties": false}).to_string(),
        }
    }
}

impl Guest for Frozen {
    type Codec = Frozen;
}

impl GuestCodec for Frozen {
    fn open(_config: String) -> Result<Codec, Error> {
        runner::plugin::log::write(runner::plugin::log::Level::Info, "opened");
        Ok(Codec::new(Frozen))
    }

    fn default_url(&self) -> String {
        "http://127.0.0.1:8000".to_owned()
    }

    fn list_models(&self) -> Option<Request> {
        Some(Request {
            method: "GET".to_owned(),
            path: "/v1/models".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
        })
    }

    fn read_models(&self, body: Vec<u8>) -> Result<Vec<String>, Error> {
        let list: Value = parsed(&body)?;
        let models = list["data"].as_array().into_iter().flatten();
        Ok(models
            .filter_map(|model| model["id"].as_str().map(str::to_owned))
            .collect())
    }

    fn encode(&self, sample: Sample, settings: Settings) -> Result<Request, Error> {
        let prompt = match sample.prompt {
            Prompt::Text(text) => json!(text),
            Prompt::Tokens(ids) => json!(ids),
            Prompt::Messages(messages) => json!(
                messages
                    .iter()
                    .map(|message| message.content.as_str())
                    .collect::<Vec<_>>()
                    .join("\n")
            ),
        };
        let body = json!({
            "model": settings.model,
            "prompt": prompt,
            "max_tokens": sample.output_tokens,
            "temperature": settings.temperature,
            "ignore_eos": settings.ignore_eos,
            "stream": settings.streaming,
            "stream_options": {"include_usage": true},
        });
        Ok(Request {
            method: "POST".to_owned(),
            path: "/v1/completions".to_owned(),
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: body.to_string().into_bytes(),
        })
    }

    fn framing(&self, _streaming: bool) -> Framing {
        Framing::EventStream
    }

    fn decode(&self, state: Vec<u8>, frames: Frames) -> Result<Decoded, Error> {
        let mut events = Vec::new();
        let mut start = 0;
        for (frame, end) in frames.ends.iter().enumerate() {
            let data = &frames.bytes[start..*end as usize];
            start = *end as usize;
            let mut add = |what| {
                events.push(Event {
                    frame: frame as u32,
                    what,
                });
            };
            if data == b"[DONE]" {
                add(Meaning::End);
                continue;
            }
            let chunk: Value = parsed(data)?;
            let choice = &chunk["choices"][0];
            if let Some(text) = choice["text"].as_str() {
                add(Meaning::Text(Output {
                    text: text.to_owned(),
                    tokens: None,
                }));
            }
            if let Some(reason) = choice["finish_reason"].as_str() {
                add(Meaning::Finish(reason.to_owned()));
            }
            let count = |key: &str| chunk["usage"][key].as_u64().map(|count| count as u32);
            if chunk["usage"].is_object() {
                add(Meaning::Usage(Usage {
                    input_tokens: count("prompt_tokens"),
                    cached_input_tokens: None,
                    output_tokens: count("completion_tokens"),
                    reasoning_tokens: None,
                }));
            }
        }
        Ok(Decoded { events, state })
    }

    fn explain(&self, status: u16, body: Vec<u8>) -> String {
        format!("status {status}: {}", String::from_utf8_lossy(&body))
    }
}

fn parsed(bytes: &[u8]) -> Result<Value, Error> {
    serde_json::from_slice(bytes).map_err(|error| Error::Protocol(error.to_string()))
}

export!(Frozen);

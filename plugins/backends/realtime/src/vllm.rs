//! The events of vLLM's `/v1/realtime`, which transcribes one sound while it is sent
//! (`vllm/entrypoints/openai/realtime`).
//!
//! The server says `session.created`. The client sends the model, the start (`commit`), the sound
//! in pieces, and the end (`commit` with `final`).

use runner_plugin::dialect::{explain, frames};
use runner_plugin::{
    Body, Error, Meaning, Outgoing, Output, Part, Prompt, Sample, Setting, Settings, Usage,
};
use serde::Deserialize;
use serde_json::json;

use super::{Config, State, appended, event};

/// Samples a second.
const RATE: u32 = 16_000;

pub fn messages(
    config: &Config,
    path: &str,
    sample: &Sample,
    settings: &Settings,
) -> Result<Vec<Outgoing>, Error> {
    // It has no field for any setting, and decodes greedily.
    let greedy = settings.sampling.temperature == Some(0.0);
    let kept = [Setting::Adapter, if greedy { Setting::Temperature } else { Setting::Adapter }];
    settings.refuse(sample, path, &Setting::all_but(&kept))?;
    let media = only_sound(path, sample)?;
    let samples = super::samples(sample, media, path, RATE)?;
    let mut update = Body::new();
    update.set("type", "session.update").set("model", settings.model_for(sample));
    settings.lay_over(&mut update, sample)?;
    let update = Outgoing::text(String::from_utf8_lossy(&update.to_bytes())).held();
    let mut messages = vec![update, event(&json!({"type": "input_audio_buffer.commit"}))];
    messages.extend(appended(config, super::pieces(&samples, RATE, config.piece)));
    messages.push(event(&json!({"type": "input_audio_buffer.commit", "final": true})));
    Ok(messages)
}

fn only_sound<'s>(path: &str, sample: &'s Sample) -> Result<&'s runner_plugin::Media, Error> {
    let parts = match &sample.prompt {
        Prompt::Messages(messages) => messages.iter().flat_map(|message| &message.parts).collect(),
        _ => Vec::new(),
    };
    match parts[..] {
        [Part::Audio(media)] => Ok(media),
        _ => Err(Error::InvalidConfig(format!(
            "key `api`: vLLM's {path} takes one sound without text, and sample {} has other content; name a dataset of \
             sounds, such as datasets/speech.wasm, or set api = \"openai\"",
            sample.id
        ))),
    }
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    delta: Option<String>,
    text: Option<String>,
    usage: Option<Counts>,
}

#[derive(Deserialize)]
struct Counts {
    prompt_tokens: Option<u32>,
    completion_tokens: Option<u32>,
}

pub fn decode(state: &mut State, data: &[u8], events: &mut Vec<Meaning>) -> Result<(), Error> {
    let event: Event = frames::json(data, "an event of vLLM's /v1/realtime")?;
    match &*event.kind {
        "session.created" => events.push(Meaning::Proceed),
        "transcription.delta" => {
            state.begun = true;
            let delta = event.delta.unwrap_or_default();
            events.push(Meaning::Text(Output::text(delta)));
        }
        "transcription.done" => {
            // The text comes again, unless it did not come in pieces.
            if !state.begun {
                events.extend(event.text.map(|text| Meaning::Text(Output::text(text))));
            }
            let usage = event
                .usage
                .and_then(|counts| Usage::counted(counts.prompt_tokens, counts.completion_tokens));
            events.extend(usage);
            events.push(Meaning::End);
        }
        "error" => events.push(Meaning::Failure(explain::in_band(data))),
        _ => {}
    }
    Ok(())
}

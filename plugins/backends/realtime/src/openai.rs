//! The events of OpenAI's Realtime API, where the client decides when the model answers: a session
//! without detection of turns, the conversation, and `response.create`.

use runner_plugin::dialect::{explain, frames};
use runner_plugin::{
    Body, Error, Meaning, Media, Outgoing, Output, Part, Prompt, Reason, Refusal, Role, Sample,
    Setting, Settings, Sound, Usage,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Config, Modality, State, appended, event};

/// Samples a second.
const RATE: u32 = 24_000;

pub fn messages(
    config: &Config,
    path: &str,
    sample: &Sample,
    settings: &Settings,
) -> Result<Vec<Outgoing>, Error> {
    settings.refuse(sample, path, &Setting::all_but(&[Setting::Adapter]))?;
    let mut session = Body::new();
    session.set("type", "realtime");
    session.set("output_modalities", [config.output]);
    session.set_some("max_output_tokens", settings.output_tokens_for(sample));
    let format = json!({ "type": "audio/pcm", "rate": RATE });
    let mut audio = json!({ "input": { "format": format, "turn_detection": null } });
    if config.output == Modality::Audio {
        audio["output"] = json!({ "format": format });
        if let Some(voice) = &config.voice {
            audio["output"]["voice"] = voice.as_str().into();
        }
    }
    session.set("audio", audio);
    let (mut items, mut instructions) = (Vec::new(), Vec::new());
    match &sample.prompt {
        Prompt::Text(text) => items.push(item("user", "input_text", text)),
        Prompt::Messages(messages) => {
            for message in messages {
                for part in &message.parts {
                    match (message.role, part) {
                        (Role::System | Role::Developer, Part::Text(text)) => {
                            instructions.push(text.as_str());
                        }
                        (Role::User, Part::Text(text)) => {
                            items.push(item("user", "input_text", text));
                        }
                        (Role::Assistant, Part::Text(text)) => {
                            items.push(item("assistant", "output_text", text));
                        }
                        (Role::User, Part::Audio(media)) => {
                            items.extend(spoken(config, path, sample, media)?);
                        }
                        _ => return Err(not_taken(path, sample)),
                    }
                }
            }
        }
        _ => return Err(not_taken(path, sample)),
    }
    if !instructions.is_empty() {
        session.set("instructions", instructions.join("\n"));
    }
    settings.lay_over(&mut session, sample)?;
    let session: Value = frames::json(&session.to_bytes(), "a session")?;
    let mut messages = vec![event(&json!({"type": "session.update", "session": session})).held()];
    messages.append(&mut items);
    messages.push(event(&json!({"type": "response.create"})));
    Ok(messages)
}

fn item(role: &str, kind: &str, text: &str) -> Outgoing {
    let content = json!([{ "type": kind, "text": text }]);
    let item = json!({ "type": "message", "role": role, "content": content });
    event(&json!({"type": "conversation.item.create", "item": item}))
}

fn spoken(
    config: &Config,
    path: &str,
    sample: &Sample,
    media: &Media,
) -> Result<Vec<Outgoing>, Error> {
    let samples = super::samples(sample, media, path, RATE)?;
    let mut messages = appended(config, super::pieces(&samples, RATE, config.piece));
    messages.push(event(&json!({"type": "input_audio_buffer.commit"})));
    Ok(messages)
}

fn not_taken(path: &str, sample: &Sample) -> Error {
    Error::InvalidConfig(format!(
        "key `api`: {path} takes text, or messages of text and sound, and sample {} has neither; have the \
         dataset give one of these, or name another backend",
        sample.id
    ))
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    delta: Option<String>,
    response: Option<Response>,
}

#[derive(Deserialize)]
struct Response {
    status: Option<String>,
    status_details: Option<Details>,
    usage: Option<Counts>,
}

#[derive(Deserialize)]
struct Details {
    reason: Option<String>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Counts {
    input_tokens: Option<u32>,
    output_tokens: Option<u32>,
    input_token_details: Option<Parts>,
    output_token_details: Option<Parts>,
}

#[derive(Default, Deserialize)]
struct Parts {
    cached_tokens: Option<u32>,
    audio_tokens: Option<u32>,
    image_tokens: Option<u32>,
}

/// Appends the events of one message. Names without `output_` come from the API's beta.
pub fn decode(state: &mut State, data: &[u8], events: &mut Vec<Meaning>) -> Result<(), Error> {
    let event: Event = frames::json(data, "an event of OpenAI's Realtime API")?;
    let delta = || {
        let why = format!("a `{}` has no delta", event.kind);
        let delta = event.delta.as_deref();
        delta.ok_or_else(|| frames::unexpected(data, "an event of OpenAI's Realtime API", &why))
    };
    match &*event.kind {
        "session.created" => events.push(Meaning::Proceed),
        "response.created" => events.push(Meaning::Opened),
        "response.output_text.delta"
        | "response.text.delta"
        | "response.output_audio_transcript.delta"
        | "response.audio_transcript.delta" => {
            state.begun = true;
            events.push(Meaning::Text(Output::text(delta()?)));
        }
        "response.output_audio.delta" | "response.audio.delta" => {
            events.push(Meaning::Audio(Sound {
                duration: Some(super::milliseconds(delta()?, RATE)),
                choice: 0,
            }));
        }
        "response.function_call_arguments.delta" => {
            events.push(Meaning::ToolCall(Output::text(delta()?)));
        }
        "response.done" => done(event.response, events),
        "error" => events.push(Meaning::Failure(explain::in_band(data))),
        _ => {}
    }
    Ok(())
}

fn done(response: Option<Response>, events: &mut Vec<Meaning>) {
    let Some(response) = response else {
        events.push(Meaning::End);
        return;
    };
    events.extend(response.usage.map(|counts| Meaning::Usage(counts.usage())));
    let status = response.status.unwrap_or_default();
    let details = response.status_details;
    let (reason, error) = details.map_or((None, None), |own| (own.reason, own.error));
    match &*status {
        "failed" | "cancelled" => {
            let detail = error.as_ref().and_then(explain::message).or(reason);
            let message = detail.unwrap_or_else(|| "the server gave no reason".to_owned());
            let known = error.map(|error| explain::in_band(error.to_string().as_bytes()).reason);
            events.push(Meaning::Failure(Refusal {
                reason: known.unwrap_or(Reason::Other),
                message: format!("the response is {status}: {message}"),
            }));
        }
        _ => {
            events.push(Meaning::Finish(reason.unwrap_or(status)));
            events.push(Meaning::End);
        }
    }
}

impl Counts {
    fn usage(self) -> Usage {
        let input = self.input_token_details.unwrap_or_default();
        let output = self.output_token_details.unwrap_or_default();
        Usage {
            input_tokens: self.input_tokens,
            cached_input_tokens: input.cached_tokens,
            output_tokens: self.output_tokens,
            input_audio_tokens: input.audio_tokens,
            input_image_tokens: input.image_tokens,
            output_audio_tokens: output.audio_tokens,
            ..Usage::default()
        }
    }
}

//! Requests: the prompt in the route's fields, and the settings under `options` (`api/types.go` of
//! Ollama).

use runner_plugin::dialect::openai;
use runner_plugin::{Body, Error, Message, Part, Prompt, Request, Role, Sample, Setting, Settings};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Config, Route};

/// Settings without a field in `options`. Ollama always ends at the end-of-sequence token.
const UNSUPPORTED: [Setting; 2] = [Setting::IgnoreEos, Setting::MinOutputTokens];

#[derive(Serialize)]
struct WireMessage {
    role: &'static str,
    content: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<String>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

pub fn encode(config: &Config, sample: &Sample, settings: &Settings) -> Result<Request, Error> {
    if let Prompt::Embedding(texts) = &sample.prompt {
        return embed(config, texts, sample, settings);
    }
    let path = match config.route {
        Route::Generate => "/api/generate",
        Route::Chat => "/api/chat",
    };
    let mut body = Body::new();
    body.set("model", settings.model_for(sample));
    match (config.route, &sample.prompt) {
        (Route::Generate, Prompt::Text(text)) => {
            body.set("prompt", text).set("raw", config.raw.unwrap_or(true));
        }
        (Route::Chat, Prompt::Text(text)) => {
            let message = Message::text(Role::User, text.as_str());
            body.set("messages", [wire_message(&message)?]);
        }
        (Route::Chat, Prompt::Messages(messages)) => {
            let list: Vec<_> = messages.iter().map(wire_message).collect::<Result<_, _>>()?;
            body.set("messages", list);
        }
        (Route::Generate, Prompt::Messages(_) | Prompt::Continuation(_)) => {
            return Err(Error::InvalidConfig(format!(
                "key `route`: the dataset gives {}, which {path} does not accept; set route = \"chat\"",
                sample.prompt.kind()
            )));
        }
        (_, other) => {
            return Err(Error::InvalidConfig(format!(
                "the dataset gives {}, which Ollama does not accept; have the dataset give text, or name another dataset",
                other.kind()
            )));
        }
    }
    settings.refuse(sample, &format!("Ollama's {path}"), &UNSUPPORTED)?;
    body.set_some("think", config.think.as_ref());
    body.set("stream", settings.streaming);
    set_context(&mut body, config);
    body.set("options", options(config, sample, settings));
    settings.lay_over(&mut body, sample)?;
    Ok(Request::json(path, &body))
}

/// Sets the treatment of a prompt that is too long, and the time that the model stays loaded.
fn set_context(body: &mut Body, config: &Config) {
    if !config.truncate {
        body.set("truncate", false).set("shift", false);
    }
    body.set_some("keep_alive", config.keep_alive.as_ref());
}

fn options(config: &Config, sample: &Sample, settings: &Settings) -> Body {
    let sampling = &settings.sampling;
    let mut options = Body::new();
    options
        .set_some("num_ctx", config.num_ctx)
        .set_some("num_predict", settings.output_tokens_for(sample))
        .set_some("temperature", sampling.temperature)
        .set_some("top_p", sampling.top_p)
        .set_some("top_k", sampling.top_k)
        .set_some("min_p", sampling.min_p)
        .set_some("frequency_penalty", sampling.frequency_penalty)
        .set_some("presence_penalty", sampling.presence_penalty)
        .set_some("repeat_penalty", sampling.repetition_penalty)
        .set_some("seed", sampling.seed)
        .set_list("stop", &sampling.stop);
    options
}

/// The request for vectors. Sampling settings and lengths do not apply to it and are not sent.
fn embed(
    config: &Config,
    texts: &[String],
    sample: &Sample,
    settings: &Settings,
) -> Result<Request, Error> {
    if settings.streaming {
        return Err(Error::config(
            "the dataset gives texts to embed, and /api/embed does not stream its replies; set `stream = false` under \
             [request]",
        ));
    }
    let mut body = Body::new();
    body.set("model", settings.model_for(sample)).set("input", texts);
    if !config.truncate {
        body.set("truncate", false);
    }
    body.set_some("keep_alive", config.keep_alive.as_ref());
    if let Some(size) = config.num_ctx {
        body.set("options", serde_json::json!({ "num_ctx": size }));
    }
    settings.lay_over(&mut body, sample)?;
    Ok(Request::json("/api/embed", &body))
}

/// A message as Ollama writes it: one text, and the images beside it.
fn wire_message(message: &Message) -> Result<WireMessage, Error> {
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for part in &message.parts {
        match part {
            Part::Text(text) => texts.push(text.as_str()),
            Part::Image(media) => images.push(media.base64()),
            Part::Audio(_) | Part::Video(_) => {
                return Err(Error::config(
                    "the dataset gives audio or videos, which Ollama does not accept; name another dataset, or another \
                     backend",
                ));
            }
            Part::Answer(of) => return Err(openai::no_answer(of)),
        }
    }
    Ok(WireMessage {
        role: speaker(message.role),
        content: texts.join("\n"),
        images,
        extra: extra(message)?,
    })
}

/// Ollama has no role of its own for the application's instructions.
fn speaker(role: Role) -> &'static str {
    match role {
        Role::System | Role::Developer => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

/// The further fields of a message. Datasets hold the arguments of tool calls as OpenAI writes
/// them, as a text; Ollama wants the object.
fn extra(message: &Message) -> Result<Map<String, Value>, Error> {
    let mut fields = openai::further_fields(message, &["role", "content", "images"])?;
    let calls = fields.get_mut("tool_calls").and_then(Value::as_array_mut);
    for call in calls.into_iter().flatten() {
        let Some(arguments) = call.pointer_mut("/function/arguments") else { continue };
        if let Some(object) = arguments
            .as_str()
            .and_then(|text| serde_json::from_str::<Map<String, Value>>(text).ok())
        {
            *arguments = Value::Object(object);
        }
    }
    Ok(fields)
}

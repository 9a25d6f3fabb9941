//! Requests for `/v2/chat`, `/v2/embed` and `/v2/rerank`.

use runner_plugin::dialect::conversation::{self, Conversation, Piece, Speaker};
use runner_plugin::dialect::tools::{self, Choice, Tools};
use runner_plugin::{Body, Error, Prompt, Request, Sample, Setting, Settings};
use serde_json::{Value, json};

use super::InputType;

const API: &str = "Cohere's chat route";

const MISSING: [Setting; 4] =
    [Setting::IgnoreEos, Setting::MinOutputTokens, Setting::MinP, Setting::RepetitionPenalty];

pub fn written(
    input_type: InputType,
    sample: &Sample,
    settings: &Settings,
) -> Result<Request, Error> {
    let mut body = Body::new();
    body.set("model", settings.model_for(sample));
    let path = match &sample.prompt {
        Prompt::Embedding(texts) => {
            let input_type = match input_type {
                InputType::SearchDocument => "search_document",
                InputType::SearchQuery => "search_query",
                InputType::Classification => "classification",
                InputType::Clustering => "clustering",
            };
            body.set("input_type", input_type)
                .set("texts", texts)
                .set("embedding_types", ["float"]);
            "/v2/embed"
        }
        Prompt::Ranking(candidates) => {
            body.set("query", &candidates.query).set("documents", &candidates.documents);
            "/v2/rerank"
        }
        _ => {
            let parameters = chat(&mut body, sample, settings)?;
            tools::lay_over(settings, &mut body, sample, parameters)?;
            return Ok(Request::json("/v2/chat", &body));
        }
    };
    if settings.streaming {
        return Err(Error::InvalidConfig(format!(
            "the dataset gives {}, and {path} does not stream its replies; set `stream = false` under [request]",
            sample.prompt.kind()
        )));
    }
    settings.lay_over(&mut body, sample)?;
    Ok(Request::json(path, &body))
}

/// Writes the body for the chat route; returns the sample's parameters that are left.
fn chat(body: &mut Body, sample: &Sample, settings: &Settings) -> Result<Option<String>, Error> {
    let conversation = conversation::read(&sample.prompt, API)?;
    settings.refuse(sample, API, &MISSING)?;
    let (defined, parameters) = tools::take(sample)?;
    body.set("messages", messages(&conversation)?);
    if let Some(tools) = defined {
        set_tools(body, tools)?;
    }
    let sampling = &settings.sampling;
    body.set_some("max_tokens", settings.output_tokens_for(sample))
        .set_some("temperature", sampling.temperature)
        .set_some("p", sampling.top_p)
        .set_some("k", sampling.top_k)
        .set_some("frequency_penalty", sampling.frequency_penalty)
        .set_some("presence_penalty", sampling.presence_penalty)
        .set_some("seed", sampling.seed);
    body.set_list("stop_sequences", &sampling.stop);
    body.set("stream", settings.streaming);
    Ok(parameters)
}

fn messages(conversation: &Conversation<'_>) -> Result<Vec<Value>, Error> {
    let mut messages = Vec::new();
    for text in &conversation.instructions {
        messages.push(json!({"role": "system", "content": text}));
    }
    for turn in &conversation.turns {
        let role = match turn.speaker {
            Speaker::User => "user",
            Speaker::Model => "assistant",
        };
        // Results of tools are messages of their own, before the user's text.
        let (mut parts, mut calls) = (Vec::new(), Vec::new());
        for part in &turn.parts {
            match part {
                Piece::ToolResult(returned) => messages.push(json!({
                    "role": "tool",
                    "tool_call_id": returned.id,
                    "content": content(&returned.parts)?,
                })),
                Piece::Call(call) => {
                    let arguments = Value::Object(call.arguments.clone()).to_string();
                    calls.push(json!({
                        "id": call.id,
                        "type": "function",
                        "function": {"name": call.name, "arguments": arguments},
                    }));
                }
                other => parts.push(other.clone()),
            }
        }
        if parts.is_empty() && calls.is_empty() {
            continue;
        }
        let mut message = json!({"role": role});
        if !parts.is_empty() {
            message["content"] = content(&parts)?;
        }
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        messages.push(message);
    }
    Ok(messages)
}

/// One text as a string, anything else as blocks.
fn content(parts: &[Piece<'_>]) -> Result<Value, Error> {
    let refused = |kind: &str| {
        Err(Error::InvalidConfig(format!(
            "the dataset gives {kind}, which {API} does not accept; name another dataset, or another backend"
        )))
    };
    let block = |part: &Piece<'_>| match part {
        Piece::Text(text) => Ok(json!({"type": "text", "text": text})),
        Piece::Image(media) => {
            Ok(json!({"type": "image_url", "image_url": {"url": media.data_url()}}))
        }
        Piece::Audio(_) => refused("audio"),
        Piece::Video(_) => refused("a video"),
        Piece::Call(_) | Piece::ToolResult(_) => refused("a call inside the result of a tool"),
    };
    match parts {
        [Piece::Text(text)] => Ok(json!(text)),
        parts => parts.iter().map(block).collect(),
    }
}

/// Definitions have OpenAI's form; but the model cannot be made to call a certain tool.
fn set_tools(body: &mut Body, Tools { tools, choice }: Tools) -> Result<(), Error> {
    let tools = tools.into_iter().map(|tool| {
        let mut own = json!({"name": tool.name});
        if let Some(description) = tool.description {
            own["description"] = description.into();
        }
        own["parameters"] = tool.parameters.unwrap_or(json!({"type": "object"}));
        json!({"type": "function", "function": own})
    });
    body.set("tools", tools.collect::<Vec<Value>>());
    match choice {
        None | Some(Choice::Auto) => {}
        Some(Choice::Never) => {
            body.set("tool_choice", "NONE");
        }
        Some(Choice::Any) => {
            body.set("tool_choice", "REQUIRED");
        }
        Some(Choice::Named(name)) => {
            return Err(Error::InvalidConfig(format!(
                "the dataset's `tool_choice` names the tool `{name}`, and {API} cannot require a certain tool; use \
                 `required`, `auto` or `none` in the dataset, or name another backend"
            )));
        }
    }
    Ok(())
}

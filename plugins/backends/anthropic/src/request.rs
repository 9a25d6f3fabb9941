//! The body of a request for `/v1/messages`.

use runner_plugin::dialect::conversation::{self, Conversation, Piece, Speaker, Turn};
use runner_plugin::dialect::tools::{self, Choice, Tools};
use runner_plugin::{Body, Error, Media, Sample, Setting, Settings};
use serde_json::{Value, json};

const API: &str = "the Messages API";

/// Settings with a field in the API. Servers that imitate the API ignore other fields.
const KEPT: [Setting; 5] =
    [Setting::Temperature, Setting::TopP, Setting::TopK, Setting::Stop, Setting::Adapter];

pub fn body(sample: &Sample, settings: &Settings) -> Result<Body, Error> {
    let Conversation { instructions, turns } = conversation::read(&sample.prompt, API)?;
    settings.refuse(sample, API, &Setting::all_but(&KEPT))?;
    let Some(limit) = settings.output_tokens_for(sample) else {
        return Err(Error::InvalidConfig(format!(
            "key `request.output-tokens`: {API} needs a limit for every answer, and sample {} has none; pass for \
             example --output-tokens 1024, or set `output-tokens` under [request]",
            sample.id
        )));
    };
    let sampling = &settings.sampling;
    let (defined, parameters) = tools::take(sample)?;
    let mut body = Body::new();
    body.set("model", settings.model_for(sample)).set("max_tokens", limit);
    match &instructions[..] {
        [] => {}
        [text] => {
            body.set("system", text);
        }
        texts => {
            let blocks: Vec<Value> = texts.iter().map(|text| of_text(text)).collect();
            body.set("system", blocks);
        }
    }
    let turns: Vec<Value> = turns.iter().map(turn).collect::<Result<_, _>>()?;
    body.set("messages", turns);
    if let Some(tools) = defined {
        set_tools(&mut body, tools);
    }
    body.set_some("temperature", sampling.temperature)
        .set_some("top_p", sampling.top_p)
        .set_some("top_k", sampling.top_k);
    body.set_list("stop_sequences", &sampling.stop);
    body.set("stream", settings.streaming);
    tools::lay_over(settings, &mut body, sample, parameters)?;
    Ok(body)
}

fn turn(turn: &Turn<'_>) -> Result<Value, Error> {
    let role = match turn.speaker {
        Speaker::User => "user",
        Speaker::Model => "assistant",
    };
    Ok(json!({"role": role, "content": content(&turn.parts)?}))
}

/// One text as a string, anything else as blocks.
fn content(parts: &[Piece<'_>]) -> Result<Value, Error> {
    match parts {
        [Piece::Text(text)] => Ok(json!(text)),
        parts => parts.iter().map(block).collect(),
    }
}

fn block(part: &Piece<'_>) -> Result<Value, Error> {
    Ok(match part {
        Piece::Text(text) => of_text(text),
        Piece::Image(media) => of_image(media),
        Piece::Audio(_) | Piece::Video(_) => {
            return Err(Error::InvalidConfig(format!(
                "the dataset gives audio or videos, which this backend does not send to {API}; name another dataset, or \
                 another backend"
            )));
        }
        Piece::Call(call) => json!({
            "type": "tool_use",
            "id": call.id,
            "name": call.name,
            "input": call.arguments,
        }),
        Piece::ToolResult(returned) => json!({
            "type": "tool_result",
            "tool_use_id": returned.id,
            "content": content(&returned.parts)?,
        }),
    })
}

fn of_text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn of_image(media: &Media) -> Value {
    let source = json!({"type": "base64", "media_type": media.media_type, "data": media.base64()});
    json!({"type": "image", "source": source})
}

fn set_tools(body: &mut Body, Tools { tools, choice }: Tools) {
    let tools = tools.into_iter().map(|tool| {
        let schema = tool.parameters.unwrap_or(json!({"type": "object"}));
        let mut own = json!({"name": tool.name, "input_schema": schema});
        if let Some(description) = tool.description {
            own["description"] = description.into();
        }
        own
    });
    body.set("tools", tools.collect::<Vec<Value>>());
    let choice = choice.map(|choice| match choice {
        Choice::Auto => json!({"type": "auto"}),
        Choice::Never => json!({"type": "none"}),
        Choice::Any => json!({"type": "any"}),
        Choice::Named(name) => json!({"type": "tool", "name": name}),
    });
    body.set_some("tool_choice", choice);
}

//! The body of a request for `Converse` and `ConverseStream`, which is the same.

use runner_plugin::dialect::conversation::{self, Conversation, Piece, Speaker, Turn};
use runner_plugin::dialect::tools::{self, Choice, Tools};
use runner_plugin::{Body, Error, Media, Sample, Setting, Settings};
use serde_json::{Map, Value, json};

const API: &str = "Bedrock's Converse";

/// Settings with a field in the API. Models' own fields go to `additionalModelRequestFields`.
const KEPT: [Setting; 4] = [Setting::Temperature, Setting::TopP, Setting::Stop, Setting::Adapter];

pub fn body(sample: &Sample, settings: &Settings) -> Result<Body, Error> {
    let Conversation { instructions, turns } = conversation::read(&sample.prompt, API)?;
    settings.refuse(sample, API, &Setting::all_but(&KEPT))?;
    let (defined, parameters) = tools::take(sample)?;
    let mut body = Body::new();
    let turns: Vec<Value> = turns.iter().map(turn).collect::<Result<_, _>>()?;
    body.set("messages", turns);
    if !instructions.is_empty() {
        let blocks: Vec<Value> = instructions.iter().map(|text| json!({"text": text})).collect();
        body.set("system", blocks);
    }
    let inference = inference(sample, settings);
    if !inference.is_empty() {
        body.set("inferenceConfig", inference);
    }
    if let Some(tools) = defined {
        body.set("toolConfig", configured(tools)?);
    }
    tools::lay_over(settings, &mut body, sample, parameters)?;
    Ok(body)
}

fn turn(turn: &Turn<'_>) -> Result<Value, Error> {
    let role = match turn.speaker {
        Speaker::User => "user",
        Speaker::Model => "assistant",
    };
    Ok(json!({"role": role, "content": blocks(&turn.parts)?}))
}

fn blocks(parts: &[Piece<'_>]) -> Result<Vec<Value>, Error> {
    parts.iter().map(block).collect()
}

fn block(part: &Piece<'_>) -> Result<Value, Error> {
    Ok(match part {
        Piece::Text(text) => json!({"text": text}),
        Piece::Image(media) => {
            json!({"image": {"format": format(media)?, "source": {"bytes": media.base64()}}})
        }
        Piece::Audio(_) | Piece::Video(_) => {
            return Err(Error::InvalidConfig(format!(
                "the dataset gives audio or videos, which this backend does not send to {API}; name another dataset, or \
                 another backend"
            )));
        }
        Piece::Call(call) => json!({
            "toolUse": {"toolUseId": call.id, "name": call.name, "input": call.arguments},
        }),
        Piece::ToolResult(returned) => json!({
            "toolResult": {"toolUseId": returned.id, "content": blocks(&returned.parts)?},
        }),
    })
}

fn format(media: &Media) -> Result<&'static str, Error> {
    match media.media_type.as_str() {
        "image/png" => Ok("png"),
        "image/jpeg" | "image/jpg" => Ok("jpeg"),
        "image/gif" => Ok("gif"),
        "image/webp" => Ok("webp"),
        other => Err(Error::InvalidInput(format!(
            "an image of type `{other}`: {API} accepts only image/png, image/jpeg, image/gif and image/webp"
        ))),
    }
}

fn inference(sample: &Sample, settings: &Settings) -> Map<String, Value> {
    let sampling = &settings.sampling;
    let limit = settings.output_tokens_for(sample);
    let stop = Some(&sampling.stop).filter(|stop| !stop.is_empty());
    let fields = [
        ("maxTokens", limit.map(Value::from)),
        ("temperature", sampling.temperature.map(Value::from)),
        ("topP", sampling.top_p.map(Value::from)),
        ("stopSequences", stop.map(|stop| json!(stop))),
    ];
    let set = fields.into_iter();
    set.filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

fn configured(Tools { tools, choice }: Tools) -> Result<Value, Error> {
    let tools = tools.into_iter().map(|tool| {
        let mut own = json!({"name": tool.name});
        if let Some(description) = tool.description {
            own["description"] = description.into();
        }
        let schema = tool.parameters.unwrap_or(json!({"type": "object"}));
        own["inputSchema"] = json!({"json": schema});
        json!({"toolSpec": own})
    });
    let mut config = json!({"tools": tools.collect::<Vec<Value>>()});
    let choice = match choice {
        None => return Ok(config),
        Some(Choice::Auto) => json!({"auto": {}}),
        Some(Choice::Any) => json!({"any": {}}),
        Some(Choice::Named(name)) => json!({"tool": {"name": name}}),
        Some(Choice::Never) => {
            return Err(Error::InvalidConfig(format!(
                "the dataset's `tool_choice` is `none`, and {API} cannot forbid calls of tools; remove the tools from \
                 the dataset, or name another backend"
            )));
        }
    };
    config["toolChoice"] = choice;
    Ok(config)
}

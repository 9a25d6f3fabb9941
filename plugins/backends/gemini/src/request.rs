//! The body of a request for `generateContent`.

use runner_plugin::dialect::conversation::{self, Conversation, Piece, Speaker, Turn};
use runner_plugin::dialect::tools::{self, Choice, Tools};
use runner_plugin::{Body, Error, Media, Sample, Setting, Settings};
use serde_json::{Map, Value, json};

use super::Config;

const API: &str = "the Gemini API";

const MISSING: [Setting; 4] =
    [Setting::IgnoreEos, Setting::MinOutputTokens, Setting::MinP, Setting::RepetitionPenalty];

pub fn body(config: &Config, sample: &Sample, settings: &Settings) -> Result<Body, Error> {
    let Conversation { instructions, turns } = conversation::read(&sample.prompt, API)?;
    settings.refuse(sample, API, &MISSING)?;
    let (defined, parameters) = tools::take(sample)?;
    let mut body = Body::new();
    let contents: Vec<Value> = turns.iter().map(turn).collect::<Result<_, _>>()?;
    body.set("contents", contents);
    if !instructions.is_empty() {
        let parts: Vec<Value> = instructions.iter().map(|text| json!({"text": text})).collect();
        body.set("systemInstruction", json!({"parts": parts}));
    }
    if let Some(tools) = defined {
        set_tools(&mut body, tools);
    }
    let generation = generation(config, sample, settings);
    if !generation.is_empty() {
        body.set("generationConfig", generation);
    }
    tools::lay_over(settings, &mut body, sample, parameters)?;
    Ok(body)
}

fn turn(turn: &Turn<'_>) -> Result<Value, Error> {
    let role = match turn.speaker {
        Speaker::User => "user",
        Speaker::Model => "model",
    };
    let parts: Vec<Value> = turn.parts.iter().map(part).collect::<Result<_, _>>()?;
    Ok(json!({"role": role, "parts": parts}))
}

fn part(part: &Piece<'_>) -> Result<Value, Error> {
    Ok(match part {
        Piece::Text(text) => json!({"text": text}),
        Piece::Image(media) | Piece::Audio(media) | Piece::Video(media) => inline(media),
        Piece::Call(call) => json!({"functionCall": {"name": call.name, "args": call.arguments}}),
        Piece::ToolResult(returned) => {
            let name = returned.name.as_deref().ok_or_else(|| {
                Error::InvalidInput(format!(
                    "the result of the tool call `{}` has no call before it, and {API} needs the tool's name; add \
                     the field `name` to the message",
                    returned.id
                ))
            })?;
            let mut texts = Vec::new();
            for part in &returned.parts {
                let Piece::Text(text) = part else {
                    return Err(Error::InvalidInput(format!(
                        "the result of the tool call `{}` has a part that is not text, which {API} does not accept",
                        returned.id
                    )));
                };
                texts.push(*text);
            }
            json!({"functionResponse": {"name": name, "response": response(&texts.concat())}})
        }
    })
}

/// A tool's result must be an object; a text becomes the field of the API's documentation.
fn response(text: &str) -> Value {
    match serde_json::from_str::<Map<String, Value>>(text) {
        Ok(object) => Value::Object(object),
        Err(_) => json!({"output": text}),
    }
}

fn inline(media: &Media) -> Value {
    json!({"inlineData": {"mimeType": media.media_type, "data": media.base64()}})
}

fn set_tools(body: &mut Body, Tools { tools, choice }: Tools) {
    let declared = tools.into_iter().map(|tool| {
        let mut own = json!({"name": tool.name});
        if let Some(description) = tool.description {
            own["description"] = description.into();
        }
        if let Some(schema) = tool.parameters {
            own["parametersJsonSchema"] = schema;
        }
        own
    });
    let declared: Vec<Value> = declared.collect();
    body.set("tools", [json!({"functionDeclarations": declared})]);
    let mode = choice.map(|choice| match choice {
        Choice::Auto => json!({"mode": "AUTO"}),
        Choice::Never => json!({"mode": "NONE"}),
        Choice::Any => json!({"mode": "ANY"}),
        Choice::Named(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
    });
    let mode = mode.map(|mode| json!({"functionCallingConfig": mode}));
    body.set_some("toolConfig", mode);
}

fn generation(config: &Config, sample: &Sample, settings: &Settings) -> Map<String, Value> {
    let sampling = &settings.sampling;
    let mut fields = Map::new();
    let mut set = |key: &str, value: Option<Value>| {
        fields.extend(value.map(|value| (key.to_owned(), value)));
    };
    let limit = settings.output_tokens_for(sample);
    set("maxOutputTokens", limit.map(Value::from));
    set("temperature", sampling.temperature.map(Value::from));
    set("topP", sampling.top_p.map(Value::from));
    set("topK", sampling.top_k.map(Value::from));
    set("frequencyPenalty", sampling.frequency_penalty.map(Value::from));
    set("presencePenalty", sampling.presence_penalty.map(Value::from));
    set("seed", sampling.seed.map(Value::from));
    let stop = Some(&sampling.stop).filter(|stop| !stop.is_empty());
    set("stopSequences", stop.map(|stop| json!(stop)));
    let mut thinking = Map::new();
    if config.include_thoughts {
        thinking.insert("includeThoughts".to_owned(), true.into());
    }
    if let Some(budget) = config.thinking_budget {
        thinking.insert("thinkingBudget".to_owned(), budget.into());
    }
    let thinking = Some(thinking).filter(|thinking| !thinking.is_empty());
    set("thinkingConfig", thinking.map(Value::Object));
    fields
}

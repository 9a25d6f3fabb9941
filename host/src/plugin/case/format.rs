//! The contract's types as the files of a case have them: one place, so that a change of the contract is a
//! change of this file.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::plugin::PluginError;
use crate::plugin::backend::{Meaning, Message, Prompt, Request, Role, Sample, Settings};
use crate::plugin::bindings::backend_world::exports::runner::plugin::backend::Output;
use crate::plugin::scorer::{Count, CountSource, Exchange};

/// `sample.json`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SampleFile {
    id: String,
    prompt: PromptFile,
    input_tokens: Option<u32>,
    output_tokens: Option<u32>,
    reference: Option<Value>,
    session: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum PromptFile {
    Text(String),
    Messages(Vec<MessageFile>),
    Tokens(Vec<u32>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageFile {
    role: RoleFile,
    content: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RoleFile {
    System,
    User,
    Assistant,
    Tool,
}

impl SampleFile {
    /// As the plugin gets it.
    pub fn sample(self) -> Sample {
        Sample {
            id: self.id,
            prompt: match self.prompt {
                PromptFile::Text(text) => Prompt::Text(text),
                PromptFile::Tokens(tokens) => Prompt::Tokens(tokens),
                PromptFile::Messages(messages) => {
                    Prompt::Messages(messages.into_iter().map(MessageFile::message).collect())
                }
            },
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            reference: self.reference.map(|reference| reference.to_string()),
            session: self.session,
        }
    }
}

impl MessageFile {
    fn message(self) -> Message {
        Message {
            role: match self.role {
                RoleFile::System => Role::System,
                RoleFile::User => Role::User,
                RoleFile::Assistant => Role::Assistant,
                RoleFile::Tool => Role::Tool,
            },
            content: self.content,
        }
    }
}

/// `settings.json`; what it leaves out, and the whole of it where there is none, is as in most runs.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SettingsFile {
    model: String,
    streaming: bool,
    ignore_eos: bool,
    temperature: Option<f64>,
    extra_body: Option<Map<String, Value>>,
}

impl Default for SettingsFile {
    fn default() -> Self {
        SettingsFile {
            model: "tiny".to_owned(),
            streaming: true,
            ignore_eos: false,
            temperature: None,
            extra_body: None,
        }
    }
}

impl SettingsFile {
    /// As the plugin gets them.
    pub fn settings(self) -> Settings {
        Settings {
            model: self.model,
            streaming: self.streaming,
            ignore_eos: self.ignore_eos,
            temperature: self.temperature,
            extra_body: self
                .extra_body
                .map(|extra| Value::Object(extra).to_string()),
        }
    }
}

/// An entry of `exchanges.json`, a line of `exchanges.jsonl`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ExchangeFile {
    id: String,
    reference: Option<Value>,
    requested_tokens: Option<u32>,
    #[serde(default)]
    output: String,
    #[serde(default)]
    reasoning: String,
    output_tokens: Option<CountFile>,
    finish: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CountFile {
    tokens: u32,
    source: SourceFile,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SourceFile {
    Usage,
    Pieces,
    Length,
    Retokenized,
}

impl ExchangeFile {
    /// As the plugin gets it.
    pub fn exchange(self) -> Exchange {
        Exchange {
            id: self.id,
            reference: self.reference.map(|reference| reference.to_string()),
            requested_tokens: self.requested_tokens,
            output: self.output,
            reasoning: self.reasoning,
            output_tokens: self.output_tokens.map(|count| Count {
                tokens: count.tokens,
                source: match count.source {
                    SourceFile::Usage => CountSource::Usage,
                    SourceFile::Pieces => CountSource::Pieces,
                    SourceFile::Length => CountSource::Length,
                    SourceFile::Retokenized => CountSource::Retokenized,
                },
            }),
            finish: self.finish,
        }
    }
}

/// `request.http`: method and path, header fields, an empty line, the body.
pub fn request(request: &Request) -> String {
    let mut text = format!("{} {}\n", request.method, request.path);
    for (name, value) in &request.headers {
        text += &format!("{name}: {value}\n");
    }
    if !request.body.is_empty() {
        text += &format!("\n{}\n", String::from_utf8_lossy(&request.body));
    }
    text
}

/// `events.json`: a list, one event a line. Without frames, the pieces of one kind that follow each other
/// are one: for framings whose frames are cut by chance.
pub fn events(events: &[(usize, Meaning)], frames: bool) -> String {
    let shown = events.iter().map(|(frame, meaning)| {
        let mut shown = Map::new();
        if frames {
            shown.insert("frame".to_owned(), (*frame).into());
        }
        event(meaning, &mut shown);
        shown
    });
    let mut joined: Vec<Map<String, Value>> = Vec::new();
    for event in shown {
        match joined.last_mut() {
            Some(last) if !frames && is_piece(last) && last["kind"] == event["kind"] => {
                join(last, &event);
            }
            _ => joined.push(event),
        }
    }
    list(joined.into_iter().map(Value::Object))
}

fn is_piece(event: &Map<String, Value>) -> bool {
    ["text", "reasoning", "tool-call"]
        .iter()
        .any(|kind| event["kind"] == *kind)
}

fn join(last: &mut Map<String, Value>, next: &Map<String, Value>) {
    let text = |event: &Map<String, Value>| event["text"].as_str().unwrap_or_default().to_owned();
    let tokens = |event: &Map<String, Value>| event.get("tokens").and_then(Value::as_u64);
    let sum = match (tokens(last), tokens(next)) {
        (None, None) => None,
        (first, second) => Some(first.unwrap_or_default() + second.unwrap_or_default()),
    };
    last["text"] = (text(last) + &text(next)).into();
    if let Some(sum) = sum {
        last.insert("tokens".to_owned(), sum.into());
    }
}

fn event(meaning: &Meaning, event: &mut Map<String, Value>) {
    let mut set = |key: &str, value: Value| {
        event.insert(key.to_owned(), value);
    };
    match meaning {
        Meaning::Opened => set("kind", "opened".into()),
        Meaning::Text(Output { text, tokens })
        | Meaning::Reasoning(Output { text, tokens })
        | Meaning::ToolCall(Output { text, tokens }) => {
            let kind = match meaning {
                Meaning::Text(_) => "text",
                Meaning::Reasoning(_) => "reasoning",
                _ => "tool-call",
            };
            set("kind", kind.into());
            set("text", text.as_str().into());
            if let Some(tokens) = tokens {
                set("tokens", (*tokens).into());
            }
        }
        Meaning::Usage(usage) => {
            set("kind", "usage".into());
            let counts = [
                ("input-tokens", usage.input_tokens),
                ("cached-input-tokens", usage.cached_input_tokens),
                ("output-tokens", usage.output_tokens),
                ("reasoning-tokens", usage.reasoning_tokens),
            ];
            for (key, count) in counts {
                if let Some(count) = count {
                    set(key, json!(count));
                }
            }
        }
        Meaning::Finish(reason) => {
            set("kind", "finish".into());
            set("text", reason.as_str().into());
        }
        Meaning::Failure(message) => {
            set("kind", "failure".into());
            set("text", message.as_str().into());
        }
        Meaning::End => set("kind", "end".into()),
    }
}

/// A list with one entry a line.
pub fn list(entries: impl Iterator<Item = Value>) -> String {
    let lines: Vec<String> = entries.map(|entry| format!("  {entry}")).collect();
    match lines.as_slice() {
        [] => "[]\n".to_owned(),
        lines => format!("[\n{}\n]\n", lines.join(",\n")),
    }
}

/// `error.txt`: an error that a plugin returned; `None` of one that it caused.
pub fn error(error: &PluginError) -> Option<String> {
    let (kind, said) = match error {
        PluginError::Config { said, .. } => ("invalid-config", said),
        PluginError::Input { said, .. } => ("invalid-input", said),
        PluginError::Protocol { said, .. } => ("protocol", said),
        PluginError::Said { said, .. } => ("other", said),
        _ => return None,
    };
    Some(format!("{kind}: {said}\n"))
}

/// A sample as JSON, absent fields left out.
pub fn sample(sample: &Sample) -> Value {
    let mut json = json!({ "id": sample.id, "prompt": prompt(&sample.prompt) });
    if let Some(tokens) = sample.input_tokens {
        json["input-tokens"] = tokens.into();
    }
    if let Some(tokens) = sample.output_tokens {
        json["output-tokens"] = tokens.into();
    }
    if let Some(session) = &sample.session {
        json["session"] = session.as_str().into();
    }
    if let Some(reference) = &sample.reference {
        json["reference"] = any(reference);
    }
    json
}

/// A prompt as JSON.
pub fn prompt(prompt: &Prompt) -> Value {
    match prompt {
        Prompt::Text(text) => json!({ "text": text }),
        Prompt::Tokens(tokens) => json!({ "tokens": tokens }),
        Prompt::Messages(messages) => {
            let messages: Vec<_> = messages
                .iter()
                .map(|message| json!({ "role": role(message.role), "content": message.content }))
                .collect();
            json!({ "messages": messages })
        }
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

/// JSON text as a value; text that is none, which the host refuses elsewhere, as a string.
fn any(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

/// Scores by name, in the plugin's order.
pub fn scores(scores: &[(String, f64)]) -> Value {
    let scores = scores
        .iter()
        .map(|(name, value)| (name.clone(), json!(value)));
    Value::Object(scores.collect())
}

//! The files of a case: what they hold, how they are read and written.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::{Error, Framing, Meaning, Message, Output, Part, Prompt, Request, Role, Sample};
use crate::{Sampling, Settings};

/// What a case gives.
pub struct Files {
    /// The plugin's configuration.
    pub config: String,
    /// What is asked.
    pub sample: Sample,
    /// What the run asks of every request.
    pub settings: Settings,
    /// A reply's body.
    pub reply: Option<(Framing, Vec<u8>)>,
    /// Status and body of an error reply.
    pub error_reply: Option<(u16, Vec<u8>)>,
}

impl Files {
    /// Reads a case. A file that no case has is a mistake: it would hold without ever being looked at.
    pub fn read(case: &Path, expectations: &[&str]) -> Result<Self, String> {
        let read =
            |name: &str| fs::read(case.join(name)).map_err(|error| format!("{name}: {error}"));
        let mut files = Files {
            config: "{}".to_owned(),
            sample: json_file::<SampleFile>(&read("sample.json")?, "sample.json")?.into(),
            settings: json_file::<SettingsFile>(&read("settings.json")?, "settings.json")?.into(),
            reply: None,
            error_reply: None,
        };
        for entry in fs::read_dir(case).map_err(|error| error.to_string())? {
            let name = entry.map_err(|error| error.to_string())?.file_name();
            let name = name.to_string_lossy();
            let parts: Vec<&str> = name.split('.').collect();
            let framing = match parts[..] {
                ["reply", "sse"] => Framing::EventStream,
                ["reply", "lines"] => Framing::Lines,
                ["reply", "json"] => Framing::Whole,
                ["reply", status, "json" | "html" | "txt"] => {
                    let status = status
                        .parse()
                        .map_err(|_| format!("{name}: expected a status, as in reply.404.json"))?;
                    files.error_reply = Some((status, read(&name)?));
                    continue;
                }
                ["config", "json"] => {
                    let json: Value = json_file(&read(&name)?, &name)?;
                    files.config = json.to_string();
                    continue;
                }
                ["sample" | "settings", "json"] => continue,
                _ if expectations.contains(&&*name) => continue,
                _ => return Err(format!("{name}: no case has such a file")),
            };
            if files.reply.replace((framing, read(&name)?)).is_some() {
                return Err("a case has one reply, this has several".to_owned());
            }
        }
        Ok(files)
    }
}

fn json_file<T: DeserializeOwned>(bytes: &[u8], name: &str) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|error| format!("{name}: {error}"))
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct SampleFile {
    id: String,
    prompt: PromptFile,
    input_tokens: Option<u32>,
    output_tokens: Option<u32>,
    reference: Option<Value>,
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

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct SettingsFile {
    model: String,
    streaming: bool,
    ignore_eos: bool,
    temperature: Option<f64>,
    extra_body: Option<Map<String, Value>>,
}

impl From<SampleFile> for Sample {
    fn from(file: SampleFile) -> Self {
        Sample {
            id: file.id,
            prompt: match file.prompt {
                PromptFile::Text(text) => Prompt::Text(text),
                PromptFile::Tokens(tokens) => Prompt::Tokens(tokens),
                PromptFile::Messages(messages) => {
                    Prompt::Messages(messages.into_iter().map(Message::from).collect())
                }
            },
            input_tokens: file.input_tokens,
            output_tokens: file.output_tokens,
            reference: file.reference.map(|reference| reference.to_string()),
            turn: None,
            class: None,
            arrival: None,
            adapter: None,
            parameters: None,
        }
    }
}

impl From<MessageFile> for Message {
    fn from(file: MessageFile) -> Self {
        Message {
            role: match file.role {
                RoleFile::System => Role::System,
                RoleFile::User => Role::User,
                RoleFile::Assistant => Role::Assistant,
                RoleFile::Tool => Role::Tool,
            },
            parts: vec![Part::Text(file.content)],
            extra: None,
        }
    }
}

impl From<SettingsFile> for Settings {
    fn from(file: SettingsFile) -> Self {
        Settings {
            model: file.model,
            streaming: file.streaming,
            output_tokens: None,
            min_output_tokens: None,
            ignore_eos: file.ignore_eos,
            sampling: Sampling {
                temperature: file.temperature,
                ..Sampling::default()
            },
            extra_body: file
                .extra_body
                .map(|extra| Value::Object(extra).to_string()),
        }
    }
}

/// `request.http`.
pub fn request(request: &Request) -> String {
    let mut text = format!("{} {}\n", request.method, request.path);
    for (name, value) in &request.headers {
        text += &format!("{name}: {value}\n");
    }
    text.push('\n');
    text += &String::from_utf8_lossy(&request.body);
    text
}

/// `events.json`: a list, one event a line.
pub fn events(events: &[(usize, Meaning)]) -> String {
    if events.is_empty() {
        return "[]".to_owned();
    }
    let lines: Vec<String> = events
        .iter()
        .map(|(frame, meaning)| format!("  {}", event(*frame, meaning)))
        .collect();
    format!("[\n{}\n]", lines.join(",\n"))
}

fn event(frame: usize, meaning: &Meaning) -> Value {
    let mut event = Map::new();
    event.insert("frame".to_owned(), frame.into());
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
        Meaning::Failure(refusal) => {
            set("kind", "failure".into());
            set("text", refusal.message.as_str().into());
        }
        Meaning::End => set("kind", "end".into()),
    }
    Value::Object(event)
}

/// `error.txt`.
pub fn error(error: &Error) -> String {
    let (kind, message) = match error {
        Error::InvalidConfig(message) => ("invalid-config", message),
        Error::InvalidInput(message) => ("invalid-input", message),
        Error::Protocol(message) => ("protocol", message),
        Error::Other(message) => ("other", message),
    };
    format!("{kind}: {message}")
}

//! A plugin's inputs from the files of a case, in the contract's types.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::backend::{Control, Media, Message, Part, Prompt, Role, Sample, Turn};
use crate::backend::{Sampling, Settings};
use crate::scorer::{Count, CountSource, Exchange};

/// `sample.json`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SampleFile {
    id: String,
    prompt: PromptFile,
    input_tokens: Option<u32>,
    output_tokens: Option<u32>,
    reference: Option<Value>,
    turn: Option<TurnFile>,
    class: Option<String>,
    /// Nanoseconds from the beginning.
    arrival: Option<u64>,
    adapter: Option<String>,
    parameters: Option<Map<String, Value>>,
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
    content: ContentFile,
    extra: Option<Map<String, Value>>,
}

/// One text, as in most messages, or parts.
#[derive(Deserialize)]
#[serde(untagged)]
enum ContentFile {
    Text(String),
    Parts(Vec<PartFile>),
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum PartFile {
    Text(String),
    Image(MediaFile),
    Audio(MediaFile),
}

/// Content that is not text is in a file next to `sample.json`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct MediaFile {
    media_type: String,
    file: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RoleFile {
    System,
    Developer,
    User,
    Assistant,
    Tool,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct TurnFile {
    session: String,
    index: u32,
}

impl TurnFile {
    fn turn(self) -> Turn {
        Turn {
            session: self.session,
            index: self.index,
        }
    }
}

/// Bytes of a file of the case's folder.
type Read<'r> = dyn FnMut(&str) -> Option<Vec<u8>> + 'r;

impl SampleFile {
    /// As the plugin receives it; `read` returns the files that it refers to. `None` if one is missing.
    pub fn sample(self, read: &mut Read<'_>) -> Option<Sample> {
        Some(Sample {
            id: self.id,
            prompt: match self.prompt {
                PromptFile::Text(text) => Prompt::Text(text),
                PromptFile::Tokens(tokens) => Prompt::Tokens(tokens),
                PromptFile::Messages(messages) => Prompt::Messages(
                    messages
                        .into_iter()
                        .map(|message| message.message(read))
                        .collect::<Option<_>>()?,
                ),
            },
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            reference: self.reference.map(|reference| reference.to_string()),
            turn: self.turn.map(TurnFile::turn),
            class: self.class,
            arrival: self.arrival,
            adapter: self.adapter,
            parameters: self
                .parameters
                .map(|fields| Value::Object(fields).to_string()),
        })
    }
}

impl MessageFile {
    fn message(self, read: &mut Read<'_>) -> Option<Message> {
        Some(Message {
            role: match self.role {
                RoleFile::System => Role::System,
                RoleFile::Developer => Role::Developer,
                RoleFile::User => Role::User,
                RoleFile::Assistant => Role::Assistant,
                RoleFile::Tool => Role::Tool,
            },
            parts: match self.content {
                ContentFile::Text(text) => vec![Part::Text(text)],
                ContentFile::Parts(parts) => parts
                    .into_iter()
                    .map(|part| part.part(read))
                    .collect::<Option<_>>()?,
            },
            extra: self.extra.map(|fields| Value::Object(fields).to_string()),
        })
    }
}

impl PartFile {
    fn part(self, read: &mut Read<'_>) -> Option<Part> {
        let mut media = |file: MediaFile| {
            Some(Media {
                media_type: file.media_type,
                bytes: read(&file.file)?,
            })
        };
        Some(match self {
            PartFile::Text(text) => Part::Text(text),
            PartFile::Image(file) => Part::Image(media(file)?),
            PartFile::Audio(file) => Part::Audio(media(file)?),
        })
    }
}

/// `settings.json`; the defaults, also if the file is missing, are those of most runs.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SettingsFile {
    model: String,
    streaming: bool,
    output_tokens: Option<u32>,
    min_output_tokens: Option<u32>,
    ignore_eos: bool,
    sampling: SamplingFile,
    extra_body: Option<Map<String, Value>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct SamplingFile {
    temperature: Option<f64>,
    top_p: Option<f64>,
    top_k: Option<u32>,
    min_p: Option<f64>,
    frequency_penalty: Option<f64>,
    presence_penalty: Option<f64>,
    repetition_penalty: Option<f64>,
    seed: Option<u64>,
    stop: Vec<String>,
}

impl Default for SettingsFile {
    fn default() -> Self {
        SettingsFile {
            model: "tiny".to_owned(),
            streaming: true,
            output_tokens: None,
            min_output_tokens: None,
            ignore_eos: false,
            sampling: SamplingFile::default(),
            extra_body: None,
        }
    }
}

impl SettingsFile {
    /// As the plugin receives them.
    pub fn settings(self) -> Settings {
        let sampling = self.sampling;
        Settings {
            model: self.model,
            streaming: self.streaming,
            output_tokens: self.output_tokens,
            min_output_tokens: self.min_output_tokens,
            ignore_eos: self.ignore_eos,
            sampling: Sampling {
                temperature: sampling.temperature,
                top_p: sampling.top_p,
                top_k: sampling.top_k,
                min_p: sampling.min_p,
                frequency_penalty: sampling.frequency_penalty,
                presence_penalty: sampling.presence_penalty,
                repetition_penalty: sampling.repetition_penalty,
                seed: sampling.seed,
                stop: sampling.stop,
            },
            extra_body: self
                .extra_body
                .map(|extra| Value::Object(extra).to_string()),
        }
    }
}

/// The words of `control.txt`.
pub const CONTROLS: [(&str, Control); 4] = [
    ("health", Control::Health),
    ("list-models", Control::ListModels),
    ("flush-cache", Control::FlushCache),
    ("metrics", Control::Metrics),
];

/// An entry of `exchanges.json` or a line of `exchanges.jsonl`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ExchangeFile {
    id: String,
    reference: Option<Value>,
    turn: Option<TurnFile>,
    class: Option<String>,
    requested_tokens: Option<u32>,
    #[serde(default)]
    output: String,
    #[serde(default)]
    reasoning: String,
    #[serde(default)]
    tool_calls: String,
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
    /// As the plugin receives it.
    pub fn exchange(self) -> Exchange {
        Exchange {
            id: self.id,
            reference: self.reference.map(|reference| reference.to_string()),
            turn: self.turn.map(TurnFile::turn),
            class: self.class,
            requested_tokens: self.requested_tokens,
            output: self.output,
            reasoning: self.reasoning,
            tool_calls: self.tool_calls,
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

//! A plugin's inputs from the files of a case, in the contract's types.
//!
//! The comments of fields are for users: `case/reference.rs` makes the tables of the guide of them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::backend::{
    Candidates, Earlier, Media, Message, Part, Prompt, Role, Sample, Sampling, Settings, Turn,
};
use crate::scorer::{Count, CountSource, Exchange};

/// `sample.json`.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SampleFile {
    /// The sample's id.
    id: String,
    /// The prompt.
    prompt: PromptFile,
    /// Tokens of the prompt, as the dataset counted them.
    input_tokens: Option<u32>,
    /// Length of the sound in the prompt, in nanoseconds.
    audio_duration: Option<u64>,
    /// Tokens to request.
    output_tokens: Option<u32>,
    /// The value that a scorer compares the answer with.
    reference: Option<Value>,
    /// The conversation that the sample belongs to, and which of its turns it is, from 0.
    turn: Option<TurnFile>,
    /// The kind of sample, in the dataset's words.
    class: Option<String>,
    /// Due time, in nanoseconds from the beginning.
    arrival: Option<u64>,
    /// The LoRA adapter.
    adapter: Option<String>,
    /// Fields of this request alone; they win over the plugin's fields, and `extra-body` wins over
    /// them.
    parameters: Option<Map<String, Value>>,
    /// The state that the last reply of the conversation left, if the sample continues one.
    earlier: Option<EarlierFile>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct EarlierFile {
    /// The value that reply carried: text, or bytes as a list of numbers.
    carry: CarryFile,
    /// The number of messages at the beginning of the prompt that were the prompt of that reply or
    /// its answer.
    messages: u32,
}

/// Ids of servers are text; whatever else a backend carries is bytes.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
enum CarryFile {
    Text(String),
    Bytes(Vec<u8>),
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum PromptFile {
    /// Plain text.
    Text(String),
    /// A conversation; the model answers its last message.
    Messages(Vec<MessageFile>),
    /// Token ids.
    Tokens(Vec<u32>),
    /// Texts; each becomes a vector.
    Embedding(Vec<String>),
    /// Texts to put in order.
    Ranking(CandidatesFile),
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct CandidatesFile {
    /// The query that the texts should answer.
    query: String,
    /// The texts.
    documents: Vec<String>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct MessageFile {
    /// The role of the author.
    role: RoleFile,
    /// The text, or parts in their order.
    content: ContentFile,
    /// Further fields of the message.
    extra: Option<Map<String, Value>>,
}

/// One text, as in most messages, or parts.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
enum ContentFile {
    Text(String),
    Parts(Vec<PartFile>),
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum PartFile {
    /// Text.
    Text(String),
    /// An image.
    Image(MediaFile),
    /// A piece of audio.
    Audio(MediaFile),
    /// A video.
    Video(MediaFile),
}

/// Content that is not text is in a file next to `sample.json`.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct MediaFile {
    /// The type of the content, such as `image/png`.
    media_type: String,
    /// The file in the case's folder that holds the content.
    file: String,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
enum RoleFile {
    System,
    Developer,
    User,
    Assistant,
    Tool,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct TurnFile {
    /// The conversation's name.
    session: String,
    /// Index of this turn in its session, from 0.
    index: u32,
}

impl TurnFile {
    fn turn(self) -> Turn {
        Turn { session: self.session, index: self.index }
    }
}

/// Bytes of a file of the case's folder.
type Read<'r> = dyn FnMut(&str) -> Option<Vec<u8>> + 'r;

impl SampleFile {
    /// Returns the state that the last reply of its conversation left.
    pub fn earlier(&mut self) -> Option<Earlier> {
        let file = self.earlier.take()?;
        Some(Earlier {
            carry: match file.carry {
                CarryFile::Text(text) => text.into_bytes(),
                CarryFile::Bytes(bytes) => bytes,
            },
            messages: file.messages,
        })
    }

    /// As the plugin receives it; `read` returns the files that it refers to. `None` if one is
    /// missing.
    pub fn sample(self, read: &mut Read<'_>) -> Option<Sample> {
        let prompt = match self.prompt {
            PromptFile::Text(text) => Prompt::Text(text),
            PromptFile::Tokens(tokens) => Prompt::Tokens(tokens),
            PromptFile::Messages(messages) => {
                let messages = messages.into_iter().map(|message| message.message(read));
                Prompt::Messages(messages.collect::<Option<_>>()?)
            }
            PromptFile::Embedding(texts) => Prompt::Embedding(texts),
            PromptFile::Ranking(texts) => {
                Prompt::Ranking(Candidates { query: texts.query, documents: texts.documents })
            }
        };
        // A backend gets samples whose history stands in front of them.
        Some(Sample {
            audio_duration: self.audio_duration,
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            reference: self.reference.map(|reference| reference.to_string()),
            turn: self.turn.map(TurnFile::turn),
            class: self.class,
            arrival: self.arrival,
            adapter: self.adapter,
            parameters: self.parameters.map(|fields| Value::Object(fields).to_string()),
            ..Sample::bare(&self.id, prompt)
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
                ContentFile::Parts(parts) => {
                    parts.into_iter().map(|part| part.part(read)).collect::<Option<_>>()?
                }
            },
            extra: self.extra.map(|fields| Value::Object(fields).to_string()),
        })
    }
}

impl PartFile {
    fn part(self, read: &mut Read<'_>) -> Option<Part> {
        let mut media =
            |file: MediaFile| Some(Media { media_type: file.media_type, bytes: read(&file.file)? });
        Some(match self {
            PartFile::Text(text) => Part::Text(text),
            PartFile::Image(file) => Part::Image(media(file)?),
            PartFile::Audio(file) => Part::Audio(media(file)?),
            PartFile::Video(file) => Part::Video(media(file)?),
        })
    }
}

/// `settings.json`; the defaults fit most runs, and apply without the file too.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SettingsFile {
    /// The model's name on the server.
    model: String,
    /// True if the reply is to be streamed.
    pub(crate) streaming: bool,
    /// Output tokens to request if the sample does not set them.
    output_tokens: Option<u32>,
    /// Minimum number of tokens in an answer.
    min_output_tokens: Option<u32>,
    /// Make the answer exactly as long as requested by ignoring the end-of-sequence token.
    ignore_eos: bool,
    /// The sampling settings; the server chooses absent ones.
    sampling: SamplingFile,
    /// Fields to add to the request's body; they win over all others.
    extra_body: Option<Map<String, Value>>,
    /// The value that was prepared, as text.
    prepared: String,
}

#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct SamplingFile {
    /// The temperature.
    temperature: Option<f64>,
    /// Choose among the likeliest tokens that together have this probability.
    top_p: Option<f64>,
    /// Choose among this many of the likeliest tokens.
    top_k: Option<u32>,
    /// Choose among tokens that have at least this share of the likeliest one's probability.
    min_p: Option<f64>,
    /// Subtracted for each earlier occurrence of a token.
    frequency_penalty: Option<f64>,
    /// Subtracted once if a token occurred before.
    presence_penalty: Option<f64>,
    /// Divides the score of tokens that occurred before.
    repetition_penalty: Option<f64>,
    /// The server's random seed.
    seed: Option<u64>,
    /// Texts that end an answer.
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
            prepared: String::new(),
        }
    }
}

impl SettingsFile {
    /// As the plugin receives them.
    pub fn settings(self) -> Settings {
        let sampling = self.sampling;
        Settings {
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
            extra_body: self.extra_body.map(|extra| Value::Object(extra).to_string()),
            prepared: self.prepared.into_bytes(),
            ..Settings::bare(&self.model, self.streaming)
        }
    }
}

/// `head.json`: the beginning of the reply beside it.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema, serde::Serialize))]
#[serde(deny_unknown_fields, default)]
pub struct HeadFile {
    /// The status, from 200 to 299.
    pub status: u16,
    /// Header fields, with their names in lower case.
    pub headers: BTreeMap<String, String>,
}

impl Default for HeadFile {
    fn default() -> Self {
        HeadFile { status: 200, headers: BTreeMap::new() }
    }
}

/// The words of `control.txt`.
pub use crate::backend::ASIDES;

/// An entry of `exchanges.json` or a line of `exchanges.jsonl`.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ExchangeFile {
    /// The sample's id.
    id: String,
    /// The value to compare the answer with.
    reference: Option<Value>,
    /// The conversation that the sample belongs to, and which of its turns it is, from 0.
    turn: Option<TurnFile>,
    /// The kind of sample, in the dataset's words.
    class: Option<String>,
    /// Tokens that were requested.
    requested_tokens: Option<u32>,
    /// The answer.
    #[serde(default)]
    output: String,
    /// Further answers to the same request.
    #[serde(default)]
    choices: Vec<String>,
    /// The text of the reasoning.
    #[serde(default)]
    reasoning: String,
    /// The text of the tool calls.
    #[serde(default)]
    tool_calls: String,
    /// The tokens of the answer, reasoning included, and how they were counted.
    output_tokens: Option<CountFile>,
    /// The reason why the server stopped, in its own word.
    finish: Option<String>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct CountFile {
    /// The number of tokens.
    tokens: u32,
    /// The source of the count.
    source: SourceFile,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
            choices: self.choices,
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

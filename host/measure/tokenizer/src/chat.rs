//! Chat templates: from a conversation to the text that the model reads.
//!
//! A template is a Jinja program that comes with the model. It is rendered as transformers renders
//! it (`utils/chat_template_utils.py`, version 5.23): the same blocks and functions, the same white
//! space, the same JSON. Templates are from strangers, so steps, depth and output have bounds. No
//! bound on steps bounds memory, because a template may double a text with every step. So a process
//! of its own renders them, with a bound on memory and time ([`apart`]).
//!
//! This module owns finding and rendering. It leaves tokens to [`Tokenizer`](super::Tokenizer).

use std::collections::BTreeMap;
use std::io;

use jiff::civil::DateTime;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde, ValueKind};
use minijinja::{Environment, ErrorKind, State, Value as Jinja};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::python;
use super::siblings::Templates;
use apart::Sources;

pub mod apart;
mod generation;

/// Most steps of one rendering: ten thousand messages take a tenth of it.
const STEPS: u64 = 20_000_000;
/// The depth to which macros and loops nest.
const DEPTH: usize = 200;
/// Most bytes of a template, and of a rendered text.
const TEMPLATE_BYTES: usize = 4 << 20;
const RENDERED_BYTES: usize = 64 << 20;

/// The names under which messages hold the model's reasoning, the usual one first.
const REASONING: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];

/// The reason why there is no text of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum ChatError {
    #[error(
        "tokenizer `{tokenizer}` has no chat template; looked beside it for `chat_template.jinja`, `chat_template` in `tokenizer_config.json`, and `chat_template.json`: put one of them there, from the model's folder"
    )]
    Absent { tokenizer: String },
    #[error("chat template in `{file}`: {cause}")]
    Broken { file: String, cause: String },
    #[error("the chat template refuses the messages: {message}")]
    Refused { message: String },
    #[error("the chat template fails: {cause}")]
    Failed { cause: String },
    #[error("{0}")]
    Encoding(String),
}

pub struct ChatTemplate {
    templates: Environment<'static>,
    /// The values that every rendering sees: the special tokens by role.
    special: Map<String, Value>,
}

impl ChatTemplate {
    /// The template with that text and the model's special tokens. Fails if the text is none.
    pub fn parse(text: &str, special: &BTreeMap<String, String>) -> Result<Self, ChatError> {
        let texts = BTreeMap::from([("default".to_owned(), text.to_owned())]);
        Self::new("template", texts, special)
    }

    fn new(
        file: &str,
        texts: BTreeMap<String, String>,
        special: &BTreeMap<String, String>,
    ) -> Result<Self, ChatError> {
        let broken = |cause| ChatError::Broken { file: file.to_owned(), cause };
        let mut templates = environment();
        for (name, text) in texts {
            if text.len() > TEMPLATE_BYTES {
                let cause = format!("it has more than {} MiB", TEMPLATE_BYTES >> 20);
                return Err(broken(cause));
            }
            let text = generation::without_marks(&text);
            templates.add_template_owned(name, text).map_err(|error| broken(chain(&error)))?;
        }
        let special =
            (special.iter()).map(|(role, token)| (role.clone(), token.clone().into())).collect();
        let template = ChatTemplate { templates, special };
        // The day of every conversation in Llama's own template.
        Ok(template.dated(jiff::civil::date(2024, 7, 26).at(12, 0, 0, 0)))
    }

    /// The templates that these describe, with their date.
    fn from_sources(sources: &Sources) -> Result<Self, ChatError> {
        let made = Self::new(&sources.file, sources.texts.clone(), &sources.special)?;
        match &sources.now {
            None => Ok(made),
            Some(now) => now
                .parse()
                .map(|now| made.dated(now))
                .map_err(|cause: jiff::Error| ChatError::Failed { cause: cause.to_string() }),
        }
    }

    /// The template with another date, for templates that write the day of the conversation. The
    /// day of the run would make its prompts impossible to repeat; the default is 26 July 2024.
    pub fn dated(mut self, now: DateTime) -> Self {
        self.templates.add_function("strftime_now", move |format: &str| {
            jiff::fmt::strtime::format(format, now)
                .map_err(|cause| python::wrong(format!("strftime_now: {cause}")))
        });
        self
    }

    /// The text of a conversation, followed by the prompt for an answer.
    ///
    /// A message is an object with `role`, `content` and any other key that the template reads.
    /// `tools` is a list of functions as JSON schemas. `extra` holds the `chat_template_kwargs` of
    /// engines, such as `enable_thinking`; `add_generation_prompt` is true by default. Fails if the
    /// template refuses the messages, fails or exceeds its bounds.
    pub fn render(
        &self,
        messages: &[Value],
        tools: Option<&Value>,
        extra: &Map<String, Value>,
    ) -> Result<String, ChatError> {
        let name = match self.templates.get_template("tool_use") {
            Ok(_) if tools.is_some() => "tool_use",
            _ => "default",
        };
        let template = (self.templates.get_template(name)).map_err(|_| ChatError::Failed {
            cause: "there are several templates, but no template `default`".to_owned(),
        })?;
        let mut seen = self.special.clone();
        seen.insert("add_generation_prompt".to_owned(), true.into());
        seen.insert("documents".to_owned(), Value::Null);
        seen.extend(extra.iter().map(|(key, value)| (key.clone(), value.clone())));
        let messages = messages.iter().map(with_reasoning).collect();
        seen.insert("messages".to_owned(), Value::Array(messages));
        seen.insert("tools".to_owned(), tools.cloned().unwrap_or_default());
        let mut text = Bounded::default();
        let rendered = template.render_captured_to(Jinja::from(Serde(&seen)), &mut text);
        match rendered {
            Ok(_) => Ok(String::from_utf8(text.0)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())),
            Err(error) => Err(of_rendering(&error)),
        }
    }
}

/// A message as an engine hands it to the template: the arguments of tool calls are objects, which
/// are texts in the messages of the API.
///
/// Source: `_postprocess_messages` in vLLM's `entrypoints/chat_utils.py`.
pub(super) fn as_engines_do(message: &Value) -> Value {
    let mut message = message.clone();
    let calls = match &message["role"] {
        role if role == "assistant" => message.get_mut("tool_calls"),
        _ => None,
    };
    for call in calls.and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(function) = call.get_mut("function").and_then(Value::as_object_mut) else {
            continue;
        };
        let parsed = match function.get("arguments") {
            None | Some(Value::Null) => Some(Map::new().into()),
            Some(Value::String(text)) if text.is_empty() => Some(Map::new().into()),
            Some(Value::String(text)) => serde_json::from_str(text).ok(),
            Some(_) => None,
        };
        if let Some(parsed) = parsed {
            function.insert("arguments".to_owned(), parsed);
        }
    }
    message
}

/// A message with its reasoning under the names that templates know it by.
fn with_reasoning(message: &Value) -> Value {
    let mut message = message.clone();
    if let Some(fields) = message.as_object_mut() {
        let given = REASONING.map(|name| fields.get(name).cloned());
        let reasoning = given.into_iter().flatten().find(|value| !value.is_null());
        if let Some(reasoning) = reasoning {
            fields.entry("thinking").or_insert_with(|| reasoning.clone());
            fields.insert("reasoning_content".to_owned(), reasoning);
        }
    }
    message
}

fn environment() -> Environment<'static> {
    let mut templates = Environment::new();
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()
        .expect("the usual marks of Jinja are a syntax");
    templates.set_syntax(syntax);
    templates.set_fuel(Some(STEPS));
    templates.set_recursion_limit(DEPTH);
    templates.set_debug(false);
    templates.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    templates.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    templates.set_formatter(|output, state, value| match value.kind() {
        ValueKind::Number if !value.is_integer() => {
            output.write_str(&python::float(value)).map_err(|_| ErrorKind::WriteFailure.into())
        }
        _ => minijinja::escape_formatter(output, state, value),
    });
    templates.add_function("raise_exception", |message: &Jinja| {
        let error = minijinja::Error::new(ErrorKind::InvalidOperation, "raise_exception");
        Err::<Jinja, _>(error.with_source(Refusal(message.to_string())))
    });
    templates.add_filter("tojson", tojson);
    templates
}

fn tojson(_: &State<'_, '_>, value: &Jinja, options: Kwargs) -> Result<Jinja, minijinja::Error> {
    let style = python::Style::from_kwargs(&options)?;
    options.assert_all_used()?;
    let text = python::text(value, &style, RENDERED_BYTES).map_err(python::wrong)?;
    Ok(Jinja::from_safe_string(text))
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Refusal(String);

fn of_rendering(error: &minijinja::Error) -> ChatError {
    let mut source: Option<&dyn std::error::Error> = Some(error);
    while let Some(one) = source {
        if let Some(Refusal(message)) = one.downcast_ref() {
            let message = message.clone();
            return ChatError::Refused { message };
        }
        source = one.source();
    }
    let cause = match error.kind() {
        ErrorKind::OutOfFuel => format!("it takes more than {STEPS} steps"),
        ErrorKind::WriteFailure => format!("it writes more than {} MiB", RENDERED_BYTES >> 20),
        _ => chain(error),
    };
    ChatError::Failed { cause }
}

fn chain(error: &minijinja::Error) -> String {
    let mut chain = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        chain.push_str(": ");
        chain.push_str(&cause.to_string());
        source = cause.source();
    }
    chain
}

/// The text rendered so far, up to a size.
#[derive(Default)]
struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > RENDERED_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

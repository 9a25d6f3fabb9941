//! Sessions as lines of JSON that this and other tools read as their input.
//!
//! - `runner`: rows of the datasets `custom` (requests that stand alone, and sessions of whole
//!   prompts) or `conversation` (sessions whose prompts continue). Prompts are as the dataset gave
//!   them, because the run puts its system prompt before them again. A file is for one of the two,
//!   and [`Exporter::replay`] says for which.
//! - `vllm`: `{"prompt", "output_tokens"}`, the custom dataset of `vllm bench serve`. Prompts are
//!   as they are sent; conversations become the text that the model's chat template makes of them.
//! - `aiperf`: `{"text" | "messages", "timestamp", "output_length"}` a request, or `{"session_id",
//!   "turns": [...]}` a conversation, with delays and timestamps in milliseconds. Prompts are as
//!   they are sent.
//!
//! Content that a server would see and a format has no place for is refused, not left out.

use serde_json::{Map, Value, json};

use super::{DrawnSession, Request};
use model::units::Nanos;
use plugins::backend::{Continuation, Message, Part, Point, Prompt, Role, Sample};
use plugins::chat;
pub use runs::outlook::ExportFormat as Format;
use tokenizer::Tokenizer;

pub struct Exporter<'t> {
    format: Format,
    tokenizer: &'t Tokenizer,
    /// True if due times are worth writing: not if all are due at once.
    is_timed: bool,
    /// The dataset of the runner that reads the rows so far, once they are not for either.
    reader: Option<Reader>,
    /// True if a conversation has only messages of a user: `custom` would send the first alone.
    only_user: bool,
}

model::names! {
    /// A dataset of the runner that reads rows.
    enum Reader {
        Custom = "custom",
        Conversation = "conversation",
    }
}

/// Parameters that `conversation` reads, each beside the messages.
const OF_CONVERSATIONS: [&str; 3] = ["tools", "tool_choice", "parallel_tool_calls"];

type Fields = Map<String, Value>;

impl<'t> Exporter<'t> {
    /// In this format. `is_timed` says that requests are due at times of their own.
    pub fn new(format: Format, tokenizer: &'t Tokenizer, is_timed: bool) -> Self {
        Exporter { format, tokenizer, is_timed, reader: None, only_user: false }
    }

    /// The flags with which the runner sends the rows in `file` again, if they are for the runner.
    pub fn replay(&self, file: &str) -> Option<String> {
        if self.format != Format::Runner {
            return None;
        }
        let reader = self.reader.unwrap_or(Reader::Custom);
        // A warm-up would take the first rows away.
        let mut flags =
            format!("--dataset-name {} --dataset-path {file} --warmup-requests 0", reader.name());
        if reader == Reader::Conversation {
            flags += " --set dataset.config.format=aiperf";
        } else if self.only_user {
            flags += " --set dataset.config.turns=last";
        }
        if self.is_timed {
            flags += " --arrival dataset";
        }
        Some(flags)
    }

    /// The rows of a session. Fails if the format cannot express a sample, which the message names.
    pub fn rows(&mut self, drawn: &DrawnSession) -> Result<Vec<Value>, String> {
        let due = drawn.due.filter(|_| self.is_timed);
        if self.format != Format::Runner {
            for request in &drawn.requests {
                only_tools(request, self.format.name())?;
            }
        }
        match (self.format, drawn.requests.as_slice()) {
            (Format::Vllm, requests) => requests.iter().map(|one| self.vllm(one)).collect(),
            (Format::Aiperf, [one]) => Ok(vec![Value::Object(turn(one, due, "text", true)?)]),
            (Format::Runner, requests) => {
                for request in requests {
                    self.only_user |= is_only_user(&request.given);
                }
                let continues =
                    |request: &Request| matches!(request.given.prompt, Prompt::Continuation(_));
                let is_continued = requests.iter().any(continues);
                let reader = match requests {
                    [one] if is_for_either(one) => None,
                    _ if is_continued => Some(Reader::Conversation),
                    _ => Some(Reader::Custom),
                };
                if let (Some(reader), Some(first)) = (reader, requests.first()) {
                    let before = *self.reader.get_or_insert(reader);
                    if before != reader {
                        let what = format!(
                            "its row is for the dataset `{}`, and earlier rows are for `{}`; a file is for one dataset",
                            reader.name(),
                            before.name()
                        );
                        return Err(fault(&first.given, &what));
                    }
                }
                match requests {
                    [one] if !is_continued => Ok(vec![alone(one, due)?]),
                    _ if is_continued => continued(requests, due),
                    _ => session(requests, due),
                }
            }
            (Format::Aiperf, requests) => {
                let mut turns = Vec::new();
                for (request, before) in conversation(requests)? {
                    let due = due.filter(|_| before.is_none());
                    turns.push(Value::Object(turn(request, due, "text", before.is_none())?));
                }
                Ok(vec![json!({ "session_id": name(requests), "turns": turns })])
            }
        }
    }

    fn vllm(&self, request: &Request) -> Result<Value, String> {
        let sample = &request.sent;
        let refused =
            |what: &str| Err(fault(sample, &format!("vLLM's format has no place for {what}")));
        let prompt = match &sample.prompt {
            Prompt::Text(_) if parameters(sample).contains_key("tools") => {
                return refused("tools beside a text");
            }
            Prompt::Text(text) => text.clone(),
            Prompt::Messages(turns) => {
                let turns: Option<Vec<Value>> = turns.iter().map(chat::message).collect();
                let turns = turns.ok_or_else(|| fault(sample, ONLY_TEXT))?;
                let tools = parameters(sample);
                let rendered = self.tokenizer.render_chat(&turns, tools.get("tools"), &Map::new());
                rendered.map_err(|cause| {
                    let what = format!(
                        "vLLM's format has no place for conversations, and no text could be made of this one: {cause}; give the model's tokenizer with --tokenizer"
                    );
                    fault(sample, &what)
                })?
            }
            Prompt::Tokens(_) => return refused("token ids"),
            Prompt::Embedding(_) => return refused("texts to embed"),
            Prompt::Ranking(_) => return refused("texts to rank"),
            Prompt::Continuation(_) => return refused("continuations"),
        };
        let mut row = Fields::new();
        row.insert("prompt".into(), prompt.into());
        put(&mut row, "output_tokens", request.output_tokens);
        Ok(Value::Object(row))
    }
}

/// A row of the dataset `custom`.
fn alone(request: &Request, due: Option<Nanos>) -> Result<Value, String> {
    let mut row = prompt_row(&request.given)?;
    // If `conversation` reads the row too, both know this key.
    let output = if is_for_either(request) { "output_length" } else { "output_tokens" };
    beside(&mut row, request, output);
    put(&mut row, "timestamp", due.map(milliseconds));
    Ok(Value::Object(row))
}

/// The rows of a session of whole prompts, for `custom`.
fn session(requests: &[Request], due: Option<Nanos>) -> Result<Vec<Value>, String> {
    let session = name(requests);
    let mut rows = Vec::new();
    for (position, request) in requests.iter().enumerate() {
        let sample = &request.given;
        let follows = position == 0 || is_after(sample, &requests[position - 1].given);
        if !follows || sample.after.iter().any(|dependency| dependency.delay > 0) {
            let what = "this format holds only sessions whose whole prompts follow one another without delay";
            return Err(fault(sample, what));
        }
        let mut row = prompt_row(sample)?;
        row.insert("session".into(), json!(session));
        beside(&mut row, request, "output_tokens");
        put(&mut row, "timestamp", due.filter(|_| position == 0).map(milliseconds));
        rows.push(Value::Object(row));
    }
    Ok(rows)
}

/// The rows of a session whose prompts continue, for `conversation`.
fn continued(requests: &[Request], due: Option<Nanos>) -> Result<Vec<Value>, String> {
    let session = name(requests);
    let mut rows = Vec::new();
    let shared = requests.first().map(|first| parameters(&first.given));
    for (request, before) in conversation(requests)? {
        let own = parameters(&request.given);
        if request.given.adapter.is_some() {
            let what = "rows of conversations have no place for an adapter";
            return Err(fault(&request.given, what));
        }
        if let Some(other) = own.keys().find(|key| !OF_CONVERSATIONS.contains(&key.as_str())) {
            let what = format!("rows of conversations have no place for the parameter `{other}`");
            return Err(fault(&request.given, &what));
        }
        if shared.as_ref() != Some(&own) {
            let what = "its parameters differ from earlier turns, and a conversation has one set for all turns";
            return Err(fault(&request.given, what));
        }
        let mut row = turn(request, due.filter(|_| before.is_none()), "messages", false)?;
        // The answer on record to the turn before comes first.
        let recorded = before.and_then(|before| before.given.recorded_answer.as_ref());
        if let Some(recorded) = recorded
            && let Some(Value::Array(turns)) = row.get_mut("messages")
        {
            turns.splice(0..0, messages(&request.given, std::slice::from_ref(recorded))?);
        }
        row.insert("session_id".into(), json!(session));
        put(&mut row, "class", request.given.class.as_ref());
        for (key, value) in own {
            row.insert(key, value);
        }
        rows.push(Value::Object(row));
    }
    // The answer on record to the last turn; a limit says that it does not count as one.
    if let (Some(Value::Object(row)), Some(last)) = (rows.last_mut(), requests.last())
        && let Some(recorded) = &last.given.recorded_answer
        && last.output_tokens.is_some()
        && let Some(Value::Array(turns)) = row.get_mut("messages")
    {
        turns.extend(messages(&last.given, std::slice::from_ref(recorded))?);
    }
    Ok(rows)
}

/// True if `custom` and `conversation` read a row alike: messages with nothing but tools.
fn is_for_either(request: &Request) -> bool {
    let sample = &request.given;
    matches!(sample.prompt, Prompt::Messages(_))
        && !is_only_user(sample)
        && sample.adapter.is_none()
        && parameters(sample).keys().all(|key| key == "tools")
}

/// True if a prompt is several messages, all of a user.
fn is_only_user(sample: &Sample) -> bool {
    match &sample.prompt {
        Prompt::Messages(turns) => {
            turns.len() > 1 && turns.iter().all(|message| message.role == Role::User)
        }
        _ => false,
    }
}

/// Refuses content that the formats of other tools have no place for.
fn only_tools(request: &Request, format: &str) -> Result<(), String> {
    let sample = &request.given;
    let refused = |what: &str| {
        let what = format!("the format `{format}` has no place for {what}");
        Err(fault(sample, &what))
    };
    if sample.adapter.is_some() {
        return refused("an adapter");
    }
    match parameters(sample).keys().find(|key| *key != "tools") {
        Some(other) => refused(&format!("the parameter `{other}`")),
        None => Ok(()),
    }
}

/// A turn of AIPerf's, without its history. `as_sent`: with the plan's system prompt and salt.
fn turn(
    request: &Request,
    due: Option<Nanos>,
    text: &str,
    as_sent: bool,
) -> Result<Fields, String> {
    let sample = if as_sent { &request.sent } else { &request.given };
    let mut row = Fields::new();
    match &sample.prompt {
        Prompt::Text(prompt) if text == "text" => put(&mut row, text, Some(prompt)),
        Prompt::Text(prompt) => {
            put(&mut row, text, Some(json!([{ "role": "user", "content": prompt }])))
        }
        Prompt::Messages(turns) | Prompt::Continuation(Continuation { messages: turns, .. }) => {
            put(&mut row, "messages", Some(messages(sample, turns)?));
        }
        Prompt::Tokens(_) | Prompt::Embedding(_) | Prompt::Ranking(_) => {
            return Err(fault(sample, "this format holds only texts and conversations"));
        }
    }
    put(&mut row, "tools", parameters(sample).get("tools"));
    put(&mut row, "timestamp", due.map(milliseconds));
    let delay = sample.after.iter().map(|dependency| dependency.delay).max();
    let delay = delay.filter(|delay| *delay > 0);
    put(&mut row, "delay", delay.map(|delay| milliseconds(Nanos(delay))));
    put(&mut row, "output_length", request.output_tokens);
    Ok(row)
}

/// The requests of a conversation in order, each with its predecessor.
fn conversation(requests: &[Request]) -> Result<Vec<(&Request, Option<&Request>)>, String> {
    let mut before: Option<&Request> = None;
    let mut turns = Vec::new();
    for request in requests {
        let sample = &request.given;
        if let Some(before) = before {
            let continues = matches!(&sample.prompt, Prompt::Continuation(next) if next.parent == before.given.id);
            if !continues || !is_after(sample, &before.given) || !sample.prompt.quotes().is_empty()
            {
                let what = "this format holds only linear conversations, and this session forks, joins or starts over";
                return Err(fault(sample, what));
            }
        }
        turns.push((request, before));
        before = Some(request);
    }
    Ok(turns)
}

/// True if a sample depends on the end of this one alone.
fn is_after(sample: &Sample, before: &Sample) -> bool {
    match sample.after.as_slice() {
        [only] => only.sample == before.id && only.point == Point::End,
        _ => false,
    }
}

/// The prompt as `custom` reads it.
fn prompt_row(sample: &Sample) -> Result<Fields, String> {
    let mut row = Fields::new();
    match &sample.prompt {
        Prompt::Text(text) => put(&mut row, "prompt", Some(text)),
        Prompt::Tokens(tokens) => put(&mut row, "prompt", Some(tokens)),
        Prompt::Messages(turns) => put(&mut row, "messages", Some(messages(sample, turns)?)),
        Prompt::Ranking(texts) => {
            put(&mut row, "query", Some(&texts.query));
            put(&mut row, "documents", Some(&texts.documents));
        }
        Prompt::Embedding(texts) => put(&mut row, "embedding", Some(texts)),
        Prompt::Continuation(_) => {
            return Err(fault(sample, "a row has no place for a continuation"));
        }
    }
    Ok(row)
}

/// Writes a row's fields beside the prompt.
fn beside(row: &mut Fields, request: &Request, output: &str) {
    let sample = &request.given;
    put(row, "id", Some(&sample.id));
    put(row, output, request.output_tokens);
    put(row, "class", sample.class.as_ref());
    put(row, "adapter", sample.adapter.as_ref());
    let reference = sample.reference.as_deref();
    let reference = reference.and_then(|json| serde_json::from_str::<Value>(json).ok());
    put(row, "reference", reference);
    let mut parameters = parameters(sample);
    // Alone, `tools` stands beside messages; otherwise the parameters keep their order.
    if row.contains_key("messages") && parameters.len() == 1 {
        put(row, "tools", parameters.remove("tools"));
    }
    if !parameters.is_empty() {
        row.insert("parameters".into(), Value::Object(parameters));
    }
}

fn parameters(sample: &Sample) -> Fields {
    let json = sample.parameters.as_deref();
    let fields = json.and_then(|json| serde_json::from_str(json).ok());
    fields.unwrap_or_default()
}

fn messages(sample: &Sample, turns: &[Message]) -> Result<Vec<Value>, String> {
    let turns: Option<Vec<Value>> = turns.iter().map(message).collect();
    turns.ok_or_else(|| fault(sample, ONLY_TEXT))
}

/// A message with its parts as they are: one text, or a list.
fn message(message: &Message) -> Option<Value> {
    let mut written = chat::message(message)?;
    if let [Part::Text(_)] = message.parts.as_slice() {
        return Some(written);
    }
    let parts = message.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(json!({ "type": "text", "text": text })),
        _ => None,
    });
    written["content"] = parts.collect();
    Some(written)
}

/// The reason why a message has no row.
const ONLY_TEXT: &str = "pictures, audio and answers of other samples are not exported";

fn name(requests: &[Request]) -> String {
    let first = requests.first().map(|request| &request.given);
    let turn = first.and_then(|sample| sample.turn.as_ref());
    let session = turn.map(|turn| turn.session.clone());
    session.or_else(|| first.map(|sample| sample.id.clone())).unwrap_or_default()
}

fn milliseconds(span: Nanos) -> f64 {
    span.0 as f64 / 1e6
}

fn put<T: serde::Serialize>(row: &mut Fields, key: &str, value: Option<T>) {
    if let Some(value) = value.and_then(|value| serde_json::to_value(value).ok()) {
        row.insert(key.to_owned(), value);
    }
}

fn fault(sample: &Sample, what: &str) -> String {
    format!("sample `{}`: {what}", sample.id.escape_debug())
}

#[cfg(test)]
mod tests;

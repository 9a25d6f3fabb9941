//! Sessions as lines of JSON that this and other tools read as their input.
//!
//! - `runner`: rows of the datasets `custom` (requests that stand alone, and sessions of whole prompts) and
//!   `conversation` (sessions whose prompts continue). Prompts are as the dataset gave them, because the run puts its
//!   system prompt before them again.
//! - `vllm`: `{"prompt", "output_tokens"}`, the custom dataset of `vllm bench serve`. Prompts are as they are sent;
//!   conversations become the text that the model's chat template makes of them.
//! - `aiperf`: `{"text" | "messages", "timestamp", "output_length"}` a request, or `{"session_id", "turns": [...]}` a
//!   conversation, with delays and timestamps in milliseconds. Prompts are as they are sent.

use serde_json::{Map, Value, json};

use super::{Drawn, Request, quotes};
use model::units::Nanos;
use plugins::backend::{Message, Point, Prompt, Sample};
use plugins::chat;
pub use report::outlook::ExportFormat as Format;
use tokenizer::Tokenizer;

/// Writes sessions in a format.
pub struct Exporter<'t> {
    format: Format,
    tokenizer: &'t Tokenizer,
    /// Whether due times are worth writing: not if all are due at once.
    is_timed: bool,
}

type Fields = Map<String, Value>;

impl<'t> Exporter<'t> {
    /// In this format. `is_timed` says that requests are due at times of their own.
    pub fn new(format: Format, tokenizer: &'t Tokenizer, is_timed: bool) -> Self {
        Exporter {
            format,
            tokenizer,
            is_timed,
        }
    }

    /// The rows of a session.
    ///
    /// # Errors
    /// What the format cannot express, with the sample that has it.
    pub fn rows(&self, drawn: &Drawn) -> Result<Vec<Value>, String> {
        let due = drawn.due.filter(|_| self.is_timed);
        match (self.format, drawn.requests.as_slice()) {
            (Format::Vllm, requests) => requests.iter().map(|one| self.vllm(one)).collect(),
            (Format::Runner, [one]) => Ok(vec![alone(one, due)?]),
            (Format::Aiperf, [one]) => Ok(vec![Value::Object(turn(one, due, "text", true)?)]),
            (Format::Runner, requests) => session(requests, due),
            (Format::Aiperf, requests) => {
                let mut turns = Vec::new();
                for (request, before) in conversation(requests)? {
                    let due = due.filter(|_| before.is_none());
                    turns.push(Value::Object(turn(request, due, "text", before.is_none())?));
                }
                Ok(vec![
                    json!({ "session_id": name(requests), "turns": turns }),
                ])
            }
        }
    }

    fn vllm(&self, request: &Request) -> Result<Value, String> {
        let sample = &request.sent;
        let refused = |what: &str| {
            Err(of(
                sample,
                &format!("vLLM's format has no place for {what}"),
            ))
        };
        let prompt = match &sample.prompt {
            Prompt::Text(text) => text.clone(),
            Prompt::Messages(said) => {
                let said = messages(sample, said)?;
                let tools = parameters(sample);
                let rendered = self
                    .tokenizer
                    .render_chat(&said, tools.get("tools"), &Map::new());
                rendered.map_err(|cause| {
                    let what = format!(
                        "vLLM's format has no place for conversations, and no text could be made of this one: {cause}; give the model's tokenizer with --tokenizer"
                    );
                    of(sample, &what)
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
    let mut row = asked(&request.given)?;
    beside(&mut row, request, "output_tokens");
    put(&mut row, "timestamp", due.map(milliseconds));
    Ok(Value::Object(row))
}

/// The rows of a session: for `conversation` if its prompts continue, else for `custom`.
fn session(requests: &[Request], due: Option<Nanos>) -> Result<Vec<Value>, String> {
    let continues = |request: &Request| matches!(request.given.prompt, Prompt::Continuation(_));
    let session = name(requests);
    let mut rows = Vec::new();
    if !requests.iter().any(continues) {
        for (position, request) in requests.iter().enumerate() {
            let sample = &request.given;
            let follows = position == 0 || is_after(sample, &requests[position - 1].given);
            if !follows || sample.after.iter().any(|dependency| dependency.delay > 0) {
                let what = "whole prompts of a session can only follow one another without delay in this format";
                return Err(of(sample, what));
            }
            let mut row = asked(sample)?;
            row.insert("session".into(), json!(session));
            beside(&mut row, request, "output_tokens");
            put(
                &mut row,
                "timestamp",
                due.filter(|_| position == 0).map(milliseconds),
            );
            rows.push(Value::Object(row));
        }
        return Ok(rows);
    }
    for (request, before) in conversation(requests)? {
        let mut row = turn(request, due.filter(|_| before.is_none()), "messages", false)?;
        // The answer on record to the turn before comes first.
        let recorded = before.and_then(|before| before.given.recorded_answer.as_ref());
        if let Some(recorded) = recorded
            && let Some(Value::Array(said)) = row.get_mut("messages")
        {
            said.splice(
                0..0,
                messages(&request.given, std::slice::from_ref(recorded))?,
            );
        }
        row.insert("session_id".into(), json!(session));
        beside(&mut row, request, "output_length");
        // Names are made of the session's.
        row.remove("id");
        rows.push(Value::Object(row));
    }
    Ok(rows)
}

/// A turn of AIPerf's: what is new in it. `as_sent` with what the plan puts before it.
fn turn(
    request: &Request,
    due: Option<Nanos>,
    text: &str,
    as_sent: bool,
) -> Result<Fields, String> {
    let sample = if as_sent {
        &request.sent
    } else {
        &request.given
    };
    let mut row = Fields::new();
    match &sample.prompt {
        Prompt::Text(said) if text == "text" => put(&mut row, text, Some(said)),
        Prompt::Text(said) => put(
            &mut row,
            text,
            Some(json!([{ "role": "user", "content": said }])),
        ),
        Prompt::Messages(said) => put(&mut row, "messages", Some(messages(sample, said)?)),
        Prompt::Continuation(next) => {
            put(
                &mut row,
                "messages",
                Some(messages(sample, &next.messages)?),
            );
        }
        Prompt::Tokens(_) | Prompt::Embedding(_) | Prompt::Ranking(_) => {
            return Err(of(sample, "this format only has texts and conversations"));
        }
    }
    put(&mut row, "tools", parameters(sample).get("tools"));
    put(&mut row, "timestamp", due.map(milliseconds));
    let delay = sample.after.iter().map(|dependency| dependency.delay).max();
    let delay = delay.filter(|delay| *delay > 0);
    put(
        &mut row,
        "delay",
        delay.map(|delay| milliseconds(Nanos(delay))),
    );
    put(&mut row, "output_length", request.output_tokens);
    Ok(row)
}

/// The requests of a conversation in order, each with the one before it.
fn conversation(requests: &[Request]) -> Result<Vec<(&Request, Option<&Request>)>, String> {
    let mut before: Option<&Request> = None;
    let mut turns = Vec::new();
    for request in requests {
        let sample = &request.given;
        if let Some(before) = before {
            let continues = matches!(&sample.prompt, Prompt::Continuation(next) if next.parent == before.given.id);
            if !continues || !is_after(sample, &before.given) || !quotes(sample).is_empty() {
                let what = "sessions that fork, join or start over within can not be written in this format, only conversations of one turn after the other";
                return Err(of(sample, what));
            }
        }
        turns.push((request, before));
        before = Some(request);
    }
    Ok(turns)
}

/// Whether a sample depends on the end of this one alone.
fn is_after(sample: &Sample, before: &Sample) -> bool {
    match sample.after.as_slice() {
        [only] => only.sample == before.id && only.point == Point::End,
        _ => false,
    }
}

/// The prompt as `custom` reads it.
fn asked(sample: &Sample) -> Result<Fields, String> {
    let mut row = Fields::new();
    match &sample.prompt {
        Prompt::Text(text) => put(&mut row, "prompt", Some(text)),
        Prompt::Tokens(tokens) => put(&mut row, "prompt", Some(tokens)),
        Prompt::Messages(said) => put(&mut row, "messages", Some(messages(sample, said)?)),
        Prompt::Ranking(texts) => {
            put(&mut row, "query", Some(&texts.query));
            put(&mut row, "documents", Some(&texts.documents));
        }
        Prompt::Embedding(texts) => match texts.as_slice() {
            [text] => put(&mut row, "prompt", Some(text)),
            _ => return Err(of(sample, "several texts to embed have no place in a row")),
        },
        Prompt::Continuation(_) => return Err(of(sample, "a continuation has no place in a row")),
    }
    Ok(row)
}

/// What a row says beside the prompt.
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
    // Where messages are, `tools` stands beside them.
    if row.contains_key("messages") {
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

fn messages(sample: &Sample, said: &[Message]) -> Result<Vec<Value>, String> {
    let said: Option<Vec<Value>> = said.iter().map(chat::message).collect();
    said.ok_or_else(|| {
        of(
            sample,
            "pictures, audio and answers of other samples are not exported",
        )
    })
}

fn name(requests: &[Request]) -> String {
    let first = requests.first().map(|request| &request.given);
    let turn = first.and_then(|sample| sample.turn.as_ref());
    let session = turn.map(|turn| turn.session.clone());
    session
        .or_else(|| first.map(|sample| sample.id.clone()))
        .unwrap_or_default()
}

fn milliseconds(span: Nanos) -> f64 {
    span.0 as f64 / 1e6
}

fn put<T: serde::Serialize>(row: &mut Fields, key: &str, value: Option<T>) {
    if let Some(value) = value.and_then(|value| serde_json::to_value(value).ok()) {
        row.insert(key.to_owned(), value);
    }
}

fn of(sample: &Sample, what: &str) -> String {
    format!("sample `{}`: {what}", sample.id.escape_debug())
}

#[cfg(test)]
mod tests;

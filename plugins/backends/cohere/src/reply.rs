//! Replies of Cohere's API: chat, streamed and whole, vectors, and orders.

use runner_plugin::dialect::{explain, frames, openai, tools};
use runner_plugin::{Embedded, Error, Frame, Meaning, Output, Reason, Refusal, ServedModel, Usage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Reply {
    ended: bool,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: Option<String>,
    index: Option<u32>,
    delta: Option<Delta>,
    /// Of a whole answer.
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    finish_reason: Option<String>,
    usage: Option<Counts>,
    /// Of vectors.
    embeddings: Option<Embeddings>,
    /// Of an order.
    #[serde(borrow)]
    results: Option<&'a RawValue>,
    meta: Option<Meta>,
}

#[derive(Default, Deserialize)]
struct Delta {
    message: Option<Message>,
    finish_reason: Option<String>,
    error: Option<String>,
    usage: Option<Counts>,
}

#[derive(Default, Deserialize)]
struct Message {
    content: Option<OneOrMany<Content>>,
    tool_plan: Option<String>,
    tool_calls: Option<OneOrMany<Call>>,
}

/// Streams have one thing where whole replies have a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany<T> {
    Many(Vec<T>),
    One(T),
}

#[derive(Deserialize)]
struct Content {
    text: Option<String>,
    thinking: Option<String>,
}

#[derive(Deserialize)]
struct Call {
    id: Option<String>,
    #[serde(default)]
    function: Function,
}

#[derive(Default, Deserialize)]
struct Function {
    name: Option<String>,
    arguments: Option<String>,
}

/// Cohere writes counts as floating-point numbers.
#[derive(Clone, Copy, Deserialize)]
struct Counts {
    tokens: Option<Tokens>,
    cached_tokens: Option<f64>,
}

#[derive(Clone, Copy, Deserialize)]
struct Tokens {
    input_tokens: Option<f64>,
    output_tokens: Option<f64>,
}

#[derive(Deserialize)]
struct Embeddings {
    float: Option<Vec<Vec<f32>>>,
}

#[derive(Deserialize)]
struct Meta {
    billed_units: Option<Tokens>,
    tokens: Option<Tokens>,
}

const EVENT: &str = "an event of Cohere's API";

impl Reply {
    pub fn decode(&mut self, frame: &Frame<'_>, events: &mut Vec<Meaning>) -> Result<(), Error> {
        let data = frame.data.trim_ascii();
        // Gateways add it; only the end of the message counts.
        if data == b"[DONE]" {
            return Ok(());
        }
        let event: Event = frames::json(data, EVENT)?;
        if let Some(kind) = &event.kind {
            self.read(kind, event.index.unwrap_or(0), event.delta.unwrap_or_default(), events);
            return Ok(());
        }
        let counted = event.meta.and_then(|meta| meta.tokens.or(meta.billed_units));
        if let Some(embeddings) = event.embeddings {
            let vectors = embeddings.float.ok_or_else(|| {
                frames::unexpected(data, EVENT, &"it has no vectors of the type `float`")
            })?;
            for (index, values) in (0..).zip(vectors) {
                events.push(Meaning::Vector(Embedded { index, values }));
            }
            events.extend(counted.map(|tokens| tokens.of_input()));
            return Ok(());
        }
        if event.results.is_some() {
            openai::pooled(data, events)?;
            let counted = counted.filter(|tokens| tokens.input_tokens.is_some());
            events.extend(counted.map(|tokens| tokens.of_input()));
            return Ok(());
        }
        let Some(message) = event.message else {
            return Err(frames::unexpected(
                data,
                EVENT,
                &"it has no type, message, embeddings or results",
            ));
        };
        let Ok(message) = serde_json::from_str::<Message>(message.get()) else {
            // An error has a text there.
            events.push(Meaning::Failure(explain::in_band(data)));
            return Ok(());
        };
        message.read(None, events);
        events.extend(event.usage.and_then(Counts::usage).map(Meaning::Usage));
        events.extend(event.finish_reason.map(|reason| finish(reason, None)));
        Ok(())
    }

    fn read(&mut self, kind: &str, index: u32, delta: Delta, events: &mut Vec<Meaning>) {
        match kind {
            "message-start" => events.push(Meaning::Opened),
            "content-start" | "content-delta" | "tool-plan-delta" | "tool-call-start"
            | "tool-call-delta" => {
                if let Some(message) = delta.message {
                    message.read(Some((index, kind == "tool-call-delta")), events);
                }
            }
            "message-end" => {
                events.extend(delta.usage.and_then(Counts::usage).map(Meaning::Usage));
                let reason = delta.finish_reason;
                events.extend(reason.map(|reason| finish(reason, delta.error)));
                if !self.ended {
                    self.ended = true;
                    events.push(Meaning::End);
                }
            }
            // Citations, ends of parts, debugging, and types to come.
            _ => {}
        }
    }
}

impl Message {
    /// Appends the pieces; in a stream, `at` is the part's number, and true if a call continues.
    fn read(self, at: Option<(u32, bool)>, events: &mut Vec<Meaning>) {
        // The model's plan of how to use tools is thinking aloud, before it calls them.
        events.extend(Output::some(self.tool_plan).map(Meaning::Reasoning));
        for content in self.content.map_or(Vec::new(), OneOrMany::into_list) {
            events.extend(Output::some(content.thinking).map(Meaning::Reasoning));
            events.extend(Output::some(content.text).map(Meaning::Text));
        }
        let calls = self.tool_calls.map_or(Vec::new(), OneOrMany::into_list);
        for (number, call) in (0..).zip(calls) {
            let Function { name, arguments } = call.function;
            let arguments = arguments.unwrap_or_default();
            let (index, goes_on) = at.unwrap_or((number, false));
            if !goes_on {
                let id = call.id.unwrap_or_default();
                let name = name.unwrap_or_default();
                events.push(tools::begun(index, &id, &name, &arguments));
            } else if !arguments.is_empty() {
                events.push(tools::continued(index, &arguments));
            }
        }
    }
}

impl<T> OneOrMany<T> {
    fn into_list(self) -> Vec<T> {
        match self {
            OneOrMany::Many(list) => list,
            OneOrMany::One(one) => vec![one],
        }
    }
}

impl Counts {
    /// The counts of tokens that the model read and wrote. Billed tokens (`billed_units`) exclude
    /// the template's tokens, so they are no substitute.
    fn usage(self) -> Option<Usage> {
        let tokens = self.tokens?;
        Some(Usage {
            input_tokens: tokens.input_tokens.map(whole),
            cached_input_tokens: self.cached_tokens.map(whole),
            output_tokens: tokens.output_tokens.map(whole),
            ..Usage::default()
        })
    }
}

impl Tokens {
    fn of_input(self) -> Meaning {
        Meaning::Usage(Usage { input_tokens: self.input_tokens.map(whole), ..Usage::default() })
    }
}

fn whole(number: f64) -> u32 {
    // Saturates; a number that is no count becomes zero.
    number as u32
}

/// Cohere ends a request that it could not finish with a reason that a complete answer never has.
fn finish(reason: String, error: Option<String>) -> Meaning {
    let kind = match reason.as_str() {
        "ERROR" => Reason::Internal,
        "TIMEOUT" => Reason::Unavailable,
        _ => return Meaning::Finish(reason),
    };
    let detail = error
        .map_or(String::new(), |error| format!(": {}", explain::excerpt(error.as_bytes(), 300)));
    Meaning::Failure(Refusal {
        reason: kind,
        message: format!("the server gave up on the answer (finish reason `{reason}`){detail}"),
    })
}

/// Reads the meaning of a status that only Cohere uses; otherwise the guess holds.
pub fn refine(status: u16, guessed: Refusal) -> Refusal {
    let reason = match status {
        498 => Reason::Unauthorised,
        499 => Reason::Unavailable,
        _ => guessed.reason,
    };
    Refusal { reason, ..guessed }
}

pub fn models(body: &[u8]) -> Result<Vec<ServedModel>, Error> {
    #[derive(Deserialize)]
    struct List {
        models: Vec<Model>,
    }
    #[derive(Deserialize)]
    struct Model {
        name: String,
        context_length: Option<f64>,
    }
    let list: List = frames::json(body, "a list of models")?;
    let served = list.models.into_iter().map(|model| ServedModel {
        context_tokens: model.context_length.map(whole),
        ..ServedModel::named(model.name)
    });
    Ok(served.collect())
}

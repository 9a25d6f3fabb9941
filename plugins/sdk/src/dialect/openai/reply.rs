//! Replies of the OpenAI API, streamed and whole, with the liberties of engines: usage in the
//! answer's last chunk or in its own, reasoning under two names, errors inside a success.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::counts::{Counts, Metrics, Sglext};
use super::pattern::{Pattern, PieceKind};
use super::pooling::pooled;
use crate::dialect::{explain, frames};
use crate::{Error, Frame, Meaning, Output, Reason, Refusal};

const CHUNK: &str = "a chunk of a reply";

/// The state that decoding keeps of a reply from one frame to the next.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Reply {
    begun: bool,
    ended: bool,
    counting: Counting,
    produced: u32,
    /// The part of the last parsed chunk that later chunks repeat. It only saves time.
    pattern: Option<Pattern>,
}

/// The count of tokens with each piece: every piece has the number so far, or none has. A count in
/// the last chunk alone must not count for its piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Counting {
    #[default]
    Unknown,
    EveryPiece,
    No,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    usage: Option<Counts>,
    #[serde(borrow)]
    metrics: Option<Metrics<'a>>,
    #[serde(borrow)]
    sglext: Option<Sglext<'a>>,
    /// An error of SGLang and LMDeploy may be at the top level, without `error` around it.
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    /// Vectors, or an order: these replies are read by `pooling`.
    data: Option<IgnoredAny>,
    results: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    index: Option<u32>,
    text: Option<String>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    message: Option<Delta<'a>>,
    finish_reason: Option<String>,
    /// The ids of the chunk's tokens, if requested: vLLM's and LMDeploy's name.
    token_ids: Option<Vec<IgnoredAny>>,
    gen_tokens: Option<Vec<IgnoredAny>>,
}

#[derive(Default, Deserialize)]
struct Delta<'a> {
    role: Option<IgnoredAny>,
    content: Option<String>,
    reasoning: Option<String>,
    reasoning_content: Option<String>,
    #[serde(borrow)]
    tool_calls: Option<Vec<&'a RawValue>>,
    /// LMDeploy's place for the ids on the chat route.
    gen_tokens: Option<Vec<IgnoredAny>>,
}

/// Appends the events of one frame, of a stream or a whole body. Only a stream's `[DONE]` gives the
/// end marker: the host detects the end of a whole body.
///
/// # Errors
/// [`Error::Protocol`] if the frame is not of this API.
pub fn decode(
    reply: &mut Reply,
    frame: &Frame<'_>,
    events: &mut Vec<Meaning>,
) -> Result<(), Error> {
    let data = frame.data.trim_ascii();
    if data == b"[DONE]" {
        end(&mut reply.ended, events);
        return Ok(());
    }
    if frame.name.is_none()
        && let Some(pattern) = &reply.pattern
        && let Some((of, text)) = pattern.text(data)
    {
        events.push(match of {
            PieceKind::Text => Meaning::Text(piece(0, text)),
            PieceKind::Reasoning => Meaning::Reasoning(piece(0, text)),
        });
        return Ok(());
    }
    if data.starts_with(b"[") && pooled(data, events)? {
        return Ok(());
    }
    let chunk: Chunk = parse(data)?;
    if let Some(error) = chunk.error {
        events.push(failure(error.get().as_bytes()));
        return Ok(());
    }
    if frame.name == Some("error") {
        events.push(failure(data));
        return Ok(());
    }
    if chunk.choices.is_none()
        && (chunk.data.is_some() || chunk.results.is_some())
        && pooled(data, events)?
    {
        return Ok(());
    }
    match (&chunk.choices, &chunk.usage, chunk.message) {
        (None, None, Some(_)) => events.push(failure(data)),
        (None, None, None) => {
            return Err(not_a_chunk(data, &"it has no choices, usage or error"));
        }
        _ => {
            let before = events.len();
            reply.read(chunk, events);
            reply.pattern = reply.pattern_of(data, &events[before..]);
        }
    }
    Ok(())
}

impl Reply {
    fn read(&mut self, chunk: Chunk, events: &mut Vec<Meaning>) {
        let before = events.len();
        let choices = chunk.choices.unwrap_or_default();
        let only_usage = choices.is_empty();
        let tokens = self.tokens(&choices, chunk.usage.as_ref());
        let mut finishes = Vec::new();
        let mut by_ids = false;
        for choice in choices {
            let piece = |text| piece(choice.index.unwrap_or(0), text);
            let finish = choice.finish_reason.filter(|reason| !reason.is_empty());
            let delta = choice.message.or(choice.delta).unwrap_or_default();
            let text = choice.text.or(delta.content);
            let reasoning = delta.reasoning.or(delta.reasoning_content);
            let tools = delta.tool_calls.unwrap_or_default();
            // Ids give each choice's tokens; the counts only the sum of all.
            let ids = choice.token_ids.or(choice.gen_tokens).or(delta.gen_tokens);
            let own = ids.map(|ids| ids.len() as u32);
            let from = events.len();
            let silent =
                [&text, &reasoning].iter().all(|text| text.as_ref().is_none_or(String::is_empty))
                    && tools.is_empty();
            if silent {
                let counted = own.or(tokens).is_some_and(|tokens| tokens > 0);
                if !self.begun && delta.role.is_some() && finish.is_none() && !counted {
                    events.push(Meaning::Opened);
                } else if counted || (finish.is_none() && (text.is_some() || reasoning.is_some())) {
                    // No text, but perhaps tokens: half a character, say, or a special one.
                    events.push(Meaning::Text(piece(String::new())));
                }
            } else {
                let nonempty =
                    |text: Option<String>| text.filter(|text| !text.is_empty()).map(piece);
                events.extend(nonempty(reasoning).map(Meaning::Reasoning));
                events.extend(nonempty(text).map(Meaning::Text));
                events.extend(
                    tools.iter().map(|call| Meaning::ToolCall(piece(call.get().to_owned()))),
                );
            }
            if own.is_some() {
                by_ids = true;
                attribute(&mut events[from..], own);
            }
            self.begun = true;
            finishes.extend(finish);
        }
        if !by_ids {
            attribute(&mut events[before..], tokens);
        }
        // Servers that count every piece repeat the counts; only the last is new.
        let last = only_usage || !finishes.is_empty() || events.len() == before;
        if let Some(counts) = chunk.usage.filter(|_| last) {
            let mut usage = counts.usage();
            let metrics = chunk.metrics;
            let further = metrics.map(|metrics| metrics.read(usage.as_mut()));
            events.extend(usage.map(Meaning::Usage));
            events.extend(further.into_iter().flatten());
        }
        events.extend(chunk.sglext.into_iter().flat_map(Sglext::read));
        events.extend(finishes.into_iter().map(finished));
    }

    /// The number of tokens that this chunk adds, if the server counts every piece.
    fn tokens(&mut self, choices: &[Choice], usage: Option<&Counts>) -> Option<u32> {
        // A chunk without choices ends the count. Several answers are counted separately.
        if choices.is_empty() || self.counting == Counting::No {
            return None;
        }
        let one = choices.iter().all(|choice| choice.index.unwrap_or(0) == 0);
        let Some(total) = usage.and_then(|usage| usage.completion_tokens).filter(|_| one) else {
            self.counting = Counting::No;
            return None;
        };
        self.counting = Counting::EveryPiece;
        let new = total.saturating_sub(self.produced);
        self.produced = total;
        Some(new)
    }

    /// The pattern of a chunk that was parsed to these events, if later chunks may have it: one
    /// uncounted piece of text that leaves the reply's state unchanged.
    fn pattern_of(&self, chunk: &[u8], events: &[Meaning]) -> Option<Pattern> {
        let of = match events {
            [Meaning::Text(piece)] if !piece.text.is_empty() && piece.choice == 0 => {
                PieceKind::Text
            }
            [Meaning::Reasoning(piece)] if piece.choice == 0 => PieceKind::Reasoning,
            _ => return None,
        };
        let counted = events.iter().any(|event| match event {
            Meaning::Text(piece) | Meaning::Reasoning(piece) => piece.tokens.is_some(),
            _ => false,
        });
        let settled = self.begun && self.counting == Counting::No && !counted;
        settled.then(|| Pattern::from_chunk(of, chunk)).flatten()
    }
}

/// Gives the end marker, unless the reply has `ended` before.
pub(crate) fn end(ended: &mut bool, events: &mut Vec<Meaning>) {
    if !std::mem::replace(ended, true) {
        events.push(Meaning::End);
    }
}

fn piece(choice: u32, text: String) -> Output {
    Output { choice, ..Output::text(text) }
}

/// Assigns the chunk's tokens to its piece, if it has one alone.
fn attribute(events: &mut [Meaning], tokens: Option<u32>) {
    let mut pieces = events.iter_mut().filter_map(|event| match event {
        Meaning::Text(piece) | Meaning::Reasoning(piece) | Meaning::ToolCall(piece) => Some(piece),
        _ => None,
    });
    if let (Some(piece), None) = (pieces.next(), pieces.next()) {
        piece.tokens = tokens;
    }
}

/// Engines end a request that they could not finish with a reason that a complete answer never has.
fn finished(reason: String) -> Meaning {
    match reason.as_str() {
        "abort" | "error" => Meaning::Failure(Refusal {
            reason: Reason::Internal,
            message: format!("the server gave up on the answer (finish reason `{reason}`)"),
        }),
        _ => Meaning::Finish(reason),
    }
}

pub(crate) fn parse<'a, T: Deserialize<'a>>(data: &'a [u8]) -> Result<T, Error> {
    frames::json(data, CHUNK)
}

pub(crate) fn failure(error: &[u8]) -> Meaning {
    Meaning::Failure(explain::in_band(error))
}

/// The error for a frame in an unknown format, with the frame's beginning.
pub(crate) fn not_a_chunk(data: &[u8], why: &dyn std::fmt::Display) -> Error {
    frames::unexpected(data, CHUNK, why)
}

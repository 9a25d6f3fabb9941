//! llama.cpp's `/completion` (`tools/server/README.md` and `tools/server/server-task.cpp`).

use std::borrow::Cow;

use runner_plugin::dialect::{explain, frames, openai};
use runner_plugin::{Body, Error, Frame, Head, Meaning, Output, Prompt, Request, Sample};
use runner_plugin::{Setting, Settings, Usage};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::adapter;
use super::chat::Timings;

const PATH: &str = "/completion";

/// The most answers that are counted: state must stay small. A server has fewer slots.
const CHOICES: usize = 1024;

pub fn encode(cache: bool, sample: &Sample, settings: &Settings) -> Result<Request, Error> {
    let mut body = Body::new();
    // A server of one model ignores this; one of several models chooses by it.
    body.set("model", &settings.model);
    match &sample.prompt {
        Prompt::Text(text) => body.set("prompt", text),
        Prompt::Tokens(tokens) => body.set("prompt", tokens),
        other => return Err(openai::not_taken(other, PATH, "chat")),
    };
    settings.refuse(sample, "llama.cpp's /completion", &[Setting::MinOutputTokens])?;
    let sampling = &settings.sampling;
    body.set_some("n_predict", settings.output_tokens_for(sample))
        .set_some("temperature", sampling.temperature)
        .set_some("top_p", sampling.top_p)
        .set_some("top_k", sampling.top_k)
        .set_some("min_p", sampling.min_p)
        .set_some("frequency_penalty", sampling.frequency_penalty)
        .set_some("presence_penalty", sampling.presence_penalty)
        .set_some("repeat_penalty", sampling.repetition_penalty)
        .set_some("seed", sampling.seed);
    body.set_list("stop", &sampling.stop);
    body.set("ignore_eos", settings.ignore_eos)
        .set("cache_prompt", cache)
        .set("stream", settings.streaming)
        .set_some("lora", adapter(sample)?);
    settings.lay_over(&mut body, sample)?;
    Ok(Request::json(PATH, &body))
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    begun: bool,
    /// True if the end marker has been given, or is not needed.
    ended: bool,
    /// Tokens of each answer so far; most requests have one answer.
    produced: Vec<u32>,
    /// Number of answers that are complete.
    complete: usize,
    /// Tokens that speculative decoding proposed for these, and the accepted ones among them.
    drafted: Option<u32>,
    accepted: Option<u32>,
}

/// The state before the first frame. The host itself finds the end of a reply that is not streamed.
pub fn begin(head: &Head) -> Reply {
    Reply { ended: !head.streaming, ..Reply::default() }
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(default)]
    index: u32,
    #[serde(borrow)]
    content: Option<Cow<'a, str>>,
    tokens: Option<Vec<IgnoredAny>>,
    #[serde(default)]
    stop: bool,
    tokens_predicted: Option<u32>,
    tokens_evaluated: Option<u32>,
    #[serde(borrow)]
    stop_type: Option<Cow<'a, str>>,
    #[serde(default)]
    truncated: bool,
    timings: Option<Timings>,
}

impl Reply {
    /// Appends the events of an event of a stream, of a whole reply, or of a list of replies.
    pub fn decode(&mut self, frame: &Frame<'_>, events: &mut Vec<Meaning>) -> Result<(), Error> {
        let data = frame.data.trim_ascii();
        if data == b"[DONE]" {
            // Some versions of the server end with it as well.
            return Ok(());
        }
        if data.starts_with(b"[") {
            let all: Vec<Event> =
                serde_json::from_slice(data).map_err(|error| wrong(data, &error))?;
            let single = all.len() == 1;
            for event in all {
                self.read(event, data, single, events)?;
            }
            return Ok(());
        }
        let event: Event = serde_json::from_slice(data).map_err(|error| wrong(data, &error))?;
        self.read(event, data, true, events)
    }

    /// Reads an event, of a list of several unless it is `single`.
    fn read(
        &mut self,
        event: Event<'_>,
        data: &[u8],
        single: bool,
        events: &mut Vec<Meaning>,
    ) -> Result<(), Error> {
        if let Some(error) = event.error {
            events.push(Meaning::Failure(explain::in_band(error.get().as_bytes())));
            return Ok(());
        }
        let Some(content) = event.content else {
            return Err(wrong(data, &"it has no content or error"));
        };
        let tokens = self.new_tokens(event.index, event.tokens_predicted, event.tokens.as_deref());
        if !content.is_empty() || tokens.is_some_and(|tokens| tokens > 0) {
            self.begun = true;
            events.push(Meaning::Text(Output {
                text: content.into_owned(),
                tokens,
                choice: event.index,
            }));
        } else if !event.stop && !std::mem::replace(&mut self.begun, true) {
            // The progress of the prompt, for example.
            events.push(Meaning::Opened);
        }
        if !event.stop {
            return Ok(());
        }
        self.complete += 1;
        let counted = event.tokens_predicted.is_some();
        let output = self.produced.iter().fold(0_u32, |sum, more| sum.saturating_add(*more));
        let timings = event.timings.unwrap_or_default();
        sum(&mut self.drafted, timings.draft_n);
        sum(&mut self.accepted, timings.draft_n_accepted);
        events.push(Meaning::Usage(Usage {
            input_tokens: event.tokens_evaluated,
            // `tokens_cached` counts the tokens in the slot at the end, the answer included.
            cached_input_tokens: timings.cached(event.tokens_evaluated),
            output_tokens: counted.then_some(output),
            draft_tokens: self.drafted,
            accepted_draft_tokens: self.accepted,
            ..Usage::default()
        }));
        // Each of several answers is timed for itself.
        let is_single = single && self.produced.len() <= 1;
        events.extend(timings.meaning().filter(|_| is_single));
        let finish = if event.truncated {
            Some("truncated".to_owned())
        } else {
            event.stop_type.map(Cow::into_owned)
        };
        events.extend(finish.map(Meaning::Finish));
        if self.complete >= self.produced.len() && !std::mem::replace(&mut self.ended, true) {
            events.push(Meaning::End);
        }
        Ok(())
    }

    /// The number of tokens that an event adds to an answer. The count so far is better than
    /// `tokens`, which holds only the last token if several end in the middle of a character.
    fn new_tokens(
        &mut self,
        index: u32,
        total: Option<u32>,
        ids: Option<&[IgnoredAny]>,
    ) -> Option<u32> {
        let place = usize::try_from(index).ok().filter(|at| *at < CHOICES)?;
        if place >= self.produced.len() {
            self.produced.resize(place + 1, 0);
        }
        let so_far = &mut self.produced[place];
        let new = match (total, ids) {
            (Some(total), _) => total.saturating_sub(*so_far),
            (None, Some(ids)) if !ids.is_empty() => u32::try_from(ids.len()).ok()?,
            _ => return None,
        };
        *so_far = so_far.saturating_add(new);
        Some(new)
    }
}

/// Adds one answer's count to the sum of several; a count that no answer has stays absent.
fn sum(one: &mut Option<u32>, more: Option<u32>) {
    if let Some(more) = more {
        *one = Some(one.unwrap_or(0).saturating_add(more));
    }
}

fn wrong(data: &[u8], why: &dyn std::fmt::Display) -> Error {
    frames::unexpected(data, "an event of llama.cpp", why)
}

//! Replies of the native `/generate` routes of SGLang and LMDeploy: `text`, `output_ids` and
//! `meta_info`. Their requests differ and are the backends' own.

mod skip;

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::dialect::explain;
use crate::dialect::openai::{Tiers, end, failure, not_a_chunk, parse};
use crate::json::readable;
use crate::{Error, Frame, Meaning, Output, Refusal, Speculation, Timings, Usage};
use skip::Pattern;

/// The meaning of a chunk's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Text {
    /// Unknown; detected from the reply. SGLang repeats the answer so far in every chunk, unless it
    /// was started with `--incremental-streaming-output`.
    #[default]
    Unknown,
    /// The answer so far.
    SoFar,
    /// Only the new text, as LMDeploy sends it.
    New,
}

/// The most answers to one request, so that the state has a bound.
const CHOICES: usize = 128;

/// The state that decoding keeps of a reply from one frame to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    ended: bool,
    /// The answers to the request, several only if it asked for them (`n`).
    choices: Vec<Choice>,
    /// The counts of the answers that are complete.
    usage: Totals,
}

/// The counts of several answers, which state them each for itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Totals {
    cached: Option<u32>,
    output: Option<u32>,
    reasoning: Option<u32>,
    drafted: Option<u32>,
    accepted: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Choice {
    index: u32,
    begun: bool,
    /// True if its counts are in the totals.
    counted: bool,
    text: Text,
    /// Tokens so far, as counted by the server.
    produced: u32,
    /// Length of the last text in bytes, and a digest of it while the meaning of texts is unknown.
    seen: u32,
    digest: u64,
    /// The place where the new text begins in a chunk that repeats the answer so far.
    skip: Option<Pattern>,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<Borrowed<'a>>,
    output_ids: Option<Vec<IgnoredAny>>,
    #[serde(borrow)]
    meta_info: Option<MetaInfo<'a>>,
    /// Number of the answer to which the chunk belongs, where there are several.
    index: Option<u32>,
}

#[derive(Deserialize)]
#[serde(transparent)]
struct Borrowed<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Default, Deserialize)]
struct MetaInfo<'a> {
    #[serde(borrow)]
    finish_reason: Option<&'a RawValue>,
    prompt_tokens: Option<u32>,
    completion_tokens: Option<u32>,
    cached_tokens: Option<u32>,
    reasoning_tokens: Option<u32>,
    image_tokens: Option<u32>,
    video_tokens: Option<u32>,
    audio_tokens: Option<u32>,
    // Proposed and accepted tokens of speculative decoding. SGLang has named them three times; some
    // versions send two of the names.
    spec_num_proposed_drafts: Option<u32>,
    spec_num_correct_drafts: Option<u32>,
    spec_proposed_drafts: Option<u32>,
    spec_accepted_drafts: Option<u32>,
    spec_draft_token_num: Option<u32>,
    spec_accept_token_num: Option<u32>,
}

/// The part of an answer's last chunk with its durations and the steps of speculative decoding. It
/// is read there alone, though some servers send it with every chunk.
#[derive(Deserialize)]
struct LastChunk<'a> {
    #[serde(borrow)]
    meta_info: Further<'a>,
}

#[derive(Deserialize)]
struct Further<'a> {
    // Seconds, and instants in seconds since 1970, of a server that was started to report them.
    #[serde(borrow)]
    queue_time: Option<&'a RawValue>,
    #[serde(borrow)]
    forward_entry_time: Option<&'a RawValue>,
    #[serde(borrow)]
    prefill_finished_time: Option<&'a RawValue>,
    #[serde(borrow)]
    first_token_latency: Option<&'a RawValue>,
    #[serde(borrow)]
    e2e_latency: Option<&'a RawValue>,
    #[serde(borrow)]
    cached_tokens_details: Option<&'a RawValue>,
    #[serde(borrow)]
    spec_verify_ct: Option<&'a RawValue>,
    // Steps by the number of proposed tokens that they accepted, under two names as well.
    #[serde(borrow)]
    spec_correct_drafts_histogram: Option<&'a RawValue>,
    #[serde(borrow)]
    spec_accept_histogram: Option<&'a RawValue>,
}

impl Further<'_> {
    fn timings(&self) -> Option<Meaning> {
        let span = |from: Option<f64>, to: Option<f64>| Some((to? - from?) * 1e3);
        let (entry, finished) = (self.forward_entry_time, self.prefill_finished_time);
        let first: Option<f64> = readable(self.first_token_latency);
        let timings = Timings {
            queue: span(Some(0.0), readable(self.queue_time)),
            prefill: span(readable(entry), readable(finished)),
            first_token: span(Some(0.0), first),
            decode: span(first, readable(self.e2e_latency)),
        };
        timings.meaning()
    }

    fn speculation(&self) -> Option<Meaning> {
        let newest = self.spec_correct_drafts_histogram;
        let accepted = readable(newest.or(self.spec_accept_histogram));
        let steps = readable(self.spec_verify_ct);
        Speculation::meaning(steps, accepted.unwrap_or_default())
    }
}

impl MetaInfo<'_> {
    fn drafted(&self) -> Option<u32> {
        let newest = self.spec_num_proposed_drafts;
        newest.or(self.spec_proposed_drafts).or(self.spec_draft_token_num)
    }

    fn accepted(&self) -> Option<u32> {
        let newest = self.spec_num_correct_drafts;
        newest.or(self.spec_accepted_drafts).or(self.spec_accept_token_num)
    }
}

/// Appends the events of one frame. `text` is the meaning of texts, if known beforehand.
///
/// # Errors
/// [`Error::Protocol`] if the frame is not a chunk of such a reply.
pub fn decode(
    reply: &mut Reply,
    text: Text,
    frame: &Frame<'_>,
    events: &mut Vec<Meaning>,
) -> Result<(), Error> {
    let data = frame.data.trim_ascii();
    if data == b"[DONE]" {
        end(&mut reply.ended, events);
        return Ok(());
    }
    if let [choice] = &mut reply.choices[..]
        && choice.continues(data, &mut reply.usage, events)
    {
        return Ok(());
    }
    if data.starts_with(b"[") {
        // Several answers in a reply that is not streamed.
        let chunks: Vec<Chunk> = parse(data)?;
        for (index, chunk) in chunks.into_iter().enumerate() {
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            reply.read(data, chunk, index, text, events)?;
        }
        return Ok(());
    }
    let chunk: Chunk = parse(data)?;
    let index = chunk.index.unwrap_or(0);
    reply.read(data, chunk, index, text, events)
}

impl Reply {
    /// Reads a chunk of one of the answers in full.
    fn read(
        &mut self,
        data: &[u8],
        chunk: Chunk<'_>,
        index: u32,
        text: Text,
        events: &mut Vec<Meaning>,
    ) -> Result<(), Error> {
        if let Some(error) = chunk.error {
            events.push(failure(error.get().as_bytes()));
            return Ok(());
        }
        match (&chunk.text, &chunk.meta_info, chunk.message) {
            (None, None, Some(_)) => events.push(failure(data)),
            (None, None, None) => {
                return Err(not_a_chunk(data, &"it has no text, meta_info or error"));
            }
            _ => {
                let Some(at) = usize::try_from(index).ok().filter(|at| *at < CHOICES) else {
                    let why = format!("the reply has more than {CHOICES} answers");
                    return Err(not_a_chunk(data, &why));
                };
                while self.choices.len() <= at {
                    self.choices
                        .push(Choice { index: self.choices.len() as u32, ..Choice::default() });
                }
                let single = self.choices.len() == 1;
                let choice = &mut self.choices[at];
                if text != Text::Unknown {
                    choice.text = text;
                }
                let length = chunk.text.as_ref().map_or(0, |text| text.0.len());
                // Servers time each of several answers for itself, and number them.
                let is_alone = single && chunk.index.is_none() && !data.starts_with(b"[");
                choice.read(chunk, is_alone.then_some(data), &mut self.usage, events);
                // After the server took text back, the next text is not new.
                if single && choice.text == Text::SoFar && choice.seen as usize == length {
                    choice.skip = Pattern::from_chunk(data);
                }
            }
        }
        Ok(())
    }
}

impl Totals {
    /// Adds the counts of an answer that is complete; the counts of all such answers.
    fn add(&mut self, meta: &MetaInfo<'_>) -> Usage {
        let sum = |one: &mut Option<u32>, more: Option<u32>| {
            if let Some(more) = more {
                *one = Some(one.unwrap_or(0).saturating_add(more));
            }
        };
        sum(&mut self.output, meta.completion_tokens);
        sum(&mut self.reasoning, meta.reasoning_tokens);
        sum(&mut self.drafted, meta.drafted());
        sum(&mut self.accepted, meta.accepted());
        // All answers share the prompt: tokens that one answer put into the cache, the others find.
        let least = self.cached.into_iter().chain(meta.cached_tokens).min();
        self.cached = least;
        Usage {
            input_tokens: meta.prompt_tokens,
            cached_input_tokens: self.cached,
            output_tokens: self.output,
            reasoning_tokens: self.reasoning,
            draft_tokens: self.drafted,
            accepted_draft_tokens: self.accepted,
            input_image_tokens: meta.image_tokens,
            input_video_tokens: meta.video_tokens,
            input_audio_tokens: meta.audio_tokens,
            output_audio_tokens: None,
        }
    }
}

impl Choice {
    /// Reads the new part of a chunk that repeats the text so far; others have no effect.
    fn continues(&mut self, data: &[u8], usage: &mut Totals, events: &mut Vec<Meaning>) -> bool {
        let Some(mut seen) = self.skip.take() else { return false };
        let Some(new) = seen.step(data) else { return false };
        let quoted = [b"\"", new.text, b"\""].concat();
        let further = [b"{", new.rest].concat();
        let (Ok(text), Ok(rest)) = (
            serde_json::from_slice::<Cow<'_, str>>(&quoted),
            serde_json::from_slice::<Chunk<'_>>(&further),
        ) else {
            return false;
        };
        if rest.error.is_some()
            || rest.text.is_some()
            || rest.output_ids.is_some()
            || rest.index.is_some_and(|index| index != self.index)
        {
            return false;
        }
        let length = self.seen as usize + text.len();
        self.seen = u32::try_from(length).unwrap_or(u32::MAX);
        self.skip = Some(seen);
        let meta = rest.meta_info.unwrap_or_default();
        let alone = rest.index.is_none().then_some(&*further);
        self.take(text.into_owned(), meta, alone, usage, events);
        true
    }

    /// Reads a chunk in full. `alone` is its bytes if the reply has one answer.
    fn read(
        &mut self,
        chunk: Chunk<'_>,
        alone: Option<&[u8]>,
        usage: &mut Totals,
        events: &mut Vec<Meaning>,
    ) {
        let meta = chunk.meta_info.unwrap_or_default();
        let text = chunk.text.map(|text| text.0).unwrap_or_default();
        let ids = chunk.output_ids.map(|ids| ids.len() as u32);
        let new = self.new_text(&text, ids, meta.completion_tokens).to_owned();
        self.take(new, meta, alone, usage, events);
    }

    /// Takes the new text of a chunk and its other facts. `alone` is the chunk's bytes, or the
    /// bytes after its text, if the reply has one answer.
    fn take(
        &mut self,
        new: String,
        meta: MetaInfo<'_>,
        alone: Option<&[u8]>,
        usage: &mut Totals,
        events: &mut Vec<Meaning>,
    ) {
        let piece = |text, tokens| Output { tokens, choice: self.index, ..Output::text(text) };
        let first = !self.begun;
        self.begun = true;
        let tokens = meta.completion_tokens.map(|total| {
            let tokens = total.saturating_sub(self.produced);
            self.produced = self.produced.max(total);
            tokens
        });
        let counted = tokens.is_some_and(|tokens| tokens > 0);
        if !new.is_empty() || counted {
            events.push(Meaning::Text(piece(new, tokens)));
        } else if meta.finish_reason.is_none() {
            events.push(if first && tokens == Some(0) {
                Meaning::Opened
            } else {
                Meaning::Text(piece(new, tokens))
            });
        }
        let Some(reason) = meta.finish_reason else { return };
        if !std::mem::replace(&mut self.counted, true) {
            events.push(Meaning::Usage(usage.add(&meta)));
            if let Some(chunk) = alone
                && let Ok(last) = serde_json::from_slice::<LastChunk<'_>>(chunk)
            {
                events.extend(last.meta_info.timings());
                events.extend(last.meta_info.speculation());
                events.extend(Tiers::counts(last.meta_info.cached_tokens_details));
            }
        }
        events.push(finished(reason));
    }

    fn new_text<'a>(&mut self, text: &'a str, ids: Option<u32>, total: Option<u32>) -> &'a str {
        let so_far = match self.text {
            Text::SoFar => true,
            Text::New => false,
            // Nothing came before, so the two are the same.
            Text::Unknown if self.seen == 0 && self.produced == 0 => false,
            Text::Unknown => self.find_out(text, ids, total),
        };
        if !so_far {
            if self.text == Text::Unknown {
                self.remember(text);
            }
            return text;
        }
        let mut start = (self.seen as usize).min(text.len());
        // Only if the server retracted text.
        while !text.is_char_boundary(start) {
            start += 1;
        }
        self.remember(text);
        &text[start..]
    }

    /// True if texts are the answer so far; decided for good once the evidence is clear.
    fn find_out(&mut self, text: &str, ids: Option<u32>, total: Option<u32>) -> bool {
        if let (Some(ids), Some(total)) = (ids, total) {
            // The count is always the total; so as many ids as that are all there are so far.
            let from_total = ids.abs_diff(total);
            let from_new = ids.abs_diff(total.saturating_sub(self.produced));
            if from_total != from_new {
                let so_far = from_total < from_new;
                self.text = if so_far { Text::SoFar } else { Text::New };
                return so_far;
            }
        }
        let seen = self.seen as usize;
        let repeats = text.len() >= seen && digest(&text.as_bytes()[..seen]) == self.digest;
        if !repeats {
            self.text = Text::New;
        } else if text.len() > seen && seen > 0 {
            self.text = Text::SoFar;
        }
        repeats
    }

    fn remember(&mut self, text: &str) {
        self.seen = self.seen.max(u32::try_from(text.len()).unwrap_or(u32::MAX));
        if self.text == Text::Unknown {
            self.seen = text.len() as u32;
            self.digest = digest(text.as_bytes());
        }
    }
}

fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |digest, byte| {
        (digest ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The finish reason, `{"type": …}` or only the word; an abort is a failure.
fn finished(reason: &RawValue) -> Meaning {
    let reason: Value = serde_json::from_str(reason.get()).unwrap_or_default();
    let kind = reason.as_str().or_else(|| reason.get("type").and_then(Value::as_str));
    match kind {
        Some(kind @ ("abort" | "error")) => {
            let message =
                explain::message(&reason).filter(|message| message != kind).unwrap_or_else(|| {
                    format!("the server gave up on the answer (finish reason `{kind}`)")
                });
            Meaning::Failure(Refusal { message, ..explain::in_band(reason.to_string().as_bytes()) })
        }
        Some(kind) => Meaning::Finish(kind.to_owned()),
        None => Meaning::Finish(reason.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes chunks; `read_all` has each read in full.
    fn decoded(chunks: &[String], read_all: bool) -> (Vec<Meaning>, Reply) {
        let (mut reply, mut events) = (Reply::default(), Vec::new());
        for chunk in chunks {
            let frame = Frame { name: None, data: chunk.as_bytes() };
            decode(&mut reply, Text::Unknown, &frame, &mut events).unwrap();
            if read_all {
                reply.choices[0].skip = None;
            }
        }
        (events, reply)
    }

    #[test]
    fn skipping_seen_text_changes_nothing() {
        let pieces = ["", " a", "\"", "\\", "\u{1f600}", "é\n", "", "\u{2028}]", "[1,2", " end"];
        for has_ids in [true, false] {
            let (mut text, mut ids) = (String::new(), Vec::new());
            let mut chunks = Vec::new();
            for (number, piece) in pieces.iter().cycle().take(35).enumerate() {
                text.push_str(piece);
                ids.push(number * 7);
                let finish = match number {
                    34 => serde_json::json!({ "type": "length" }),
                    _ => Value::Null,
                };
                let meta = serde_json::json!({
                    "finish_reason": finish, "prompt_tokens": 3, "completion_tokens": ids.len(),
                });
                let quoted = serde_json::json!(text);
                chunks.push(if has_ids {
                    format!(r#"{{"text":{quoted},"output_ids":{ids:?},"meta_info":{meta}}}"#)
                } else {
                    format!(r#"{{"text": {quoted}, "meta_info": {meta}}}"#)
                });
                // A server that takes text back is read in full until its text is longer than
                // before.
                if number == 14 {
                    text.truncate(text.floor_char_boundary(text.len() - 9));
                }
            }
            let (skipped, reply) = decoded(&chunks, false);
            assert!(reply.choices[0].skip.is_some(), "it did skip");
            assert_eq!(skipped, decoded(&chunks, true).0);
        }
    }
}

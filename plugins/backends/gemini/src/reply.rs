//! Replies of the Gemini API, streamed and whole: every event of a stream has the form of a whole
//! reply.
//!
//! A stream has no end marker: it is complete when all its candidates have a finish reason. Every
//! event counts the tokens so far, and the count of an answer (`candidatesTokenCount`) leaves out
//! the thoughts before it.

use std::collections::BTreeMap;

use runner_plugin::dialect::{explain, frames, tools};
use runner_plugin::{Error, Frame, Meaning, Output, Reason, Refusal, ServedModel, Usage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Most candidates to remember; the API gives at most 8.
const CANDIDATES: usize = 64;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Reply {
    streaming: bool,
    begun: bool,
    ended: bool,
    /// True if each candidate that was seen has finished.
    finished: BTreeMap<u32, bool>,
    /// Calls of tools so far, which have no number of their own.
    calls: u32,
    /// Tokens so far of answers and of thoughts, while every piece came with a count.
    answered: Counting,
    thought: Counting,
}

/// Count of tokens with each piece of a kind: every piece has the number so far, or only the last
/// piece has a number. If the first piece has none, the last piece's count covers all pieces.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Counting {
    SoFar(u32),
    No,
}

impl Default for Counting {
    fn default() -> Self {
        Counting::SoFar(0)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    candidates: Option<Vec<Candidate<'a>>>,
    usage_metadata: Option<Counts>,
    prompt_feedback: Option<Feedback>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    index: Option<u32>,
    #[serde(borrow)]
    content: Option<Content<'a>>,
    finish_reason: Option<String>,
    finish_message: Option<String>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    parts: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    text: Option<String>,
    #[serde(default)]
    thought: bool,
    #[serde(borrow)]
    function_call: Option<Call<'a>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    id: Option<String>,
    #[serde(default)]
    name: String,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    prompt_token_count: Option<u32>,
    tool_use_prompt_token_count: Option<u32>,
    cached_content_token_count: Option<u32>,
    candidates_token_count: Option<u32>,
    thoughts_token_count: Option<u32>,
    #[serde(default)]
    prompt_tokens_details: Option<Modalities>,
    #[serde(default)]
    tool_use_prompt_tokens_details: Option<Modalities>,
    #[serde(default)]
    candidates_tokens_details: Option<Modalities>,
}

/// Counts of modalities other than text, out of a list; absent without an entry.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(from = "Vec<ModalityCount>")]
struct Modalities {
    image: Option<u32>,
    video: Option<u32>,
    audio: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ModalityCount {
    #[serde(default)]
    modality: String,
    /// Left out where it is 0.
    #[serde(default)]
    token_count: u32,
}

impl From<Vec<ModalityCount>> for Modalities {
    fn from(list: Vec<ModalityCount>) -> Self {
        let mut modalities = Modalities::default();
        for entry in list {
            let of = match entry.modality.as_str() {
                "IMAGE" => &mut modalities.image,
                "VIDEO" => &mut modalities.video,
                "AUDIO" => &mut modalities.audio,
                _ => continue,
            };
            *of = sum(*of, Some(entry.token_count));
        }
        modalities
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
    block_reason_message: Option<String>,
}

impl Reply {
    pub fn decode(&mut self, frame: &Frame<'_>, events: &mut Vec<Meaning>) -> Result<(), Error> {
        let data = frame.data.trim_ascii();
        let event: Event = frames::json(data, EVENT)?;
        if event.error.is_some() {
            events.push(Meaning::Failure(refine(data, explain::in_band(data))));
            return Ok(());
        }
        if event.candidates.is_none()
            && event.usage_metadata.is_none()
            && event.prompt_feedback.is_none()
        {
            return Err(frames::unexpected(
                data,
                EVENT,
                &"it has no candidates, usageMetadata, promptFeedback or error",
            ));
        }
        self.read(event, events);
        Ok(())
    }

    pub fn new(streaming: bool) -> Self {
        Reply { streaming, ..Reply::default() }
    }

    fn read(&mut self, event: Event<'_>, events: &mut Vec<Meaning>) {
        let candidates = event.candidates.unwrap_or_default();
        let several = candidates.len() > 1 || self.finished.len() > 1;
        let mut finishes = Vec::new();
        let before = events.len();
        for candidate in candidates {
            let choice = candidate.index.unwrap_or(0);
            let parts = candidate.content.and_then(|content| content.parts);
            for part in parts.unwrap_or_default() {
                self.part(choice, part, events);
            }
            if self.finished.len() < CANDIDATES {
                self.finished.entry(choice).or_default();
            }
            let reason = candidate.finish_reason;
            if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
                self.finished.entry(choice).and_modify(|is| *is = true);
                finishes.push(finish(reason, candidate.finish_message));
            }
        }
        if !self.begun && events.len() == before && finishes.is_empty() {
            events.push(Meaning::Opened);
        }
        self.begun = true;
        let counts = event.usage_metadata;
        // The counts cover all candidates together.
        self.attribute(counts.filter(|_| !several), &mut events[before..]);
        let ends = self.finished.values().all(|is| *is) && !self.finished.is_empty();
        // Every event repeats the counts; only the last event counts the whole answer.
        if let Some(counts) = counts.filter(|_| ends) {
            events.push(Meaning::Usage(counts.usage()));
        }
        events.extend(finishes);
        if let Some(feedback) = event.prompt_feedback
            && let Some(reason) = feedback.block_reason
        {
            events.push(Meaning::Failure(blocked(&reason, feedback.block_reason_message)));
        } else if ends && self.streaming && !self.ended {
            self.ended = true;
            events.push(Meaning::End);
        }
    }

    fn part(&mut self, choice: u32, part: Part<'_>, events: &mut Vec<Meaning>) {
        let piece = |text: String| Output { choice, ..Output::text(text) };
        let text = part.text.filter(|text| !text.is_empty());
        events.extend(text.map(|text| {
            if part.thought { Meaning::Reasoning(piece(text)) } else { Meaning::Text(piece(text)) }
        }));
        let Some(call) = part.function_call else { return };
        let id = call.id.filter(|id| !id.is_empty());
        // A result names its call, so one without an id needs one.
        let id = id.unwrap_or_else(|| format!("call_{}", self.calls));
        let arguments = call.args.map_or("{}", |args| args.get());
        let mut called = tools::begun(self.calls, &id, &call.name, arguments);
        if let Meaning::ToolCall(output) = &mut called {
            output.choice = choice;
        }
        events.push(called);
        self.calls = self.calls.saturating_add(1);
    }

    /// Assigns the new tokens of answers and of thoughts to the only piece of each kind.
    fn attribute(&mut self, counts: Option<Counts>, events: &mut [Meaning]) {
        let answered = counts.and_then(|counts| counts.candidates_token_count);
        let thought = counts.and_then(|counts| counts.thoughts_token_count);
        let pieces = events.iter_mut().filter_map(|event| match event {
            Meaning::Text(piece) | Meaning::ToolCall(piece) => Some(piece),
            _ => None,
        });
        self.answered.assign(answered, pieces.collect());
        let pieces = events.iter_mut().filter_map(|event| match event {
            Meaning::Reasoning(piece) => Some(piece),
            _ => None,
        });
        self.thought.assign(thought, pieces.collect());
    }
}

impl Counting {
    fn assign(&mut self, total: Option<u32>, mut pieces: Vec<&mut Output>) {
        let Counting::SoFar(before) = *self else { return };
        match (total, &mut pieces[..]) {
            (Some(total), [piece]) => {
                piece.tokens = Some(total.saturating_sub(before));
                *self = Counting::SoFar(total.max(before));
            }
            // The split of the tokens is unknown, but later tokens are counted.
            (Some(total), [_, ..]) => *self = Counting::SoFar(total.max(before)),
            (None, [_, ..]) => *self = Counting::No,
            (_, []) => {}
        }
    }
}

impl Counts {
    /// Counts answers and thoughts apart; cached tokens are part of the prompt.
    fn usage(self) -> Usage {
        let prompt = self.prompt_tokens_details.unwrap_or_default();
        let tools = self.tool_use_prompt_tokens_details.unwrap_or_default();
        let answers = self.candidates_tokens_details.unwrap_or_default();
        Usage {
            input_tokens: sum(self.prompt_token_count, self.tool_use_prompt_token_count),
            cached_input_tokens: self.cached_content_token_count,
            output_tokens: sum(self.candidates_token_count, self.thoughts_token_count),
            reasoning_tokens: self.thoughts_token_count,
            input_image_tokens: sum(prompt.image, tools.image),
            input_video_tokens: sum(prompt.video, tools.video),
            input_audio_tokens: sum(prompt.audio, tools.audio),
            output_audio_tokens: answers.audio,
            ..Usage::default()
        }
    }
}

/// The sum of two counts; of one, if the other is absent.
fn sum(one: Option<u32>, other: Option<u32>) -> Option<u32> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
        (one, other) => one.or(other),
    }
}

/// The model itself ends an answer with `STOP` or `MAX_TOKENS`; filters have words of their own.
/// Their answers are missing or unusable.
fn finish(reason: String, message: Option<String>) -> Meaning {
    match reason.as_str() {
        "OTHER" | "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "MALFORMED_RESPONSE" => {
            let detail = message.map_or(String::new(), |message| {
                format!(": {}", explain::excerpt(message.as_bytes(), 300))
            });
            Meaning::Failure(Refusal {
                reason: Reason::Internal,
                message: format!(
                    "the server gave up on the answer (finish reason `{reason}`){detail}"
                ),
            })
        }
        _ => Meaning::Finish(reason),
    }
}

fn blocked(reason: &str, message: Option<String>) -> Refusal {
    let detail = message.map_or(String::new(), |message| {
        format!(": {}", explain::excerpt(message.as_bytes(), 300))
    });
    Refusal {
        reason: Reason::Invalid,
        message: format!(
            "the server blocked the prompt (block reason `{}`){detail}",
            explain::excerpt(reason.as_bytes(), 60)
        ),
    }
}

const EVENT: &str = "a GenerateContentResponse";

#[derive(Deserialize)]
struct Failed {
    error: ErrorBody,
}

#[derive(Deserialize)]
struct ErrorBody {
    status: Option<String>,
    message: Option<String>,
}

/// Reads the kind of an error from its body, which outweighs the guess from its status and words.
pub fn refine(body: &[u8], guessed: Refusal) -> Refusal {
    // A stream without `alt=sse` in its request is an array.
    let failed = serde_json::from_slice(body)
        .or_else(|_| serde_json::from_slice::<[Failed; 1]>(body).map(|[failed]| failed));
    let Ok(Failed { error }) = failed else { return guessed };
    let text = error.message.unwrap_or_default().to_lowercase();
    let reason = match error.status.as_deref() {
        // A wrong key has the status 400.
        Some("INVALID_ARGUMENT") if text.contains("api key") => Reason::Unauthorised,
        Some("INVALID_ARGUMENT") if text.contains("token count") && text.contains("exceeds") => {
            Reason::TooLong
        }
        Some("UNAUTHENTICATED" | "PERMISSION_DENIED") => Reason::Unauthorised,
        Some("RESOURCE_EXHAUSTED") => Reason::Overloaded,
        // «The model is overloaded. Please try again later.»
        Some("UNAVAILABLE") if guessed.reason == Reason::Overloaded => Reason::Overloaded,
        Some("UNAVAILABLE" | "DEADLINE_EXCEEDED") => Reason::Unavailable,
        Some("NOT_FOUND") if text.contains("model") => Reason::UnknownModel,
        Some("INTERNAL") => Reason::Internal,
        _ => guessed.reason,
    };
    Refusal { reason, ..guessed }
}

/// The models in the answer to `models.list` that generate content.
pub fn models(body: &[u8]) -> Result<Vec<ServedModel>, Error> {
    #[derive(Deserialize)]
    struct List {
        #[serde(default)]
        models: Vec<Model>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Model {
        name: String,
        input_token_limit: Option<u32>,
        output_token_limit: Option<u32>,
        supported_generation_methods: Option<Vec<String>>,
    }
    let list: List = frames::json(body, "a list of models")?;
    let generates = |model: &Model| {
        let methods = model.supported_generation_methods.as_ref();
        methods.is_none_or(|methods| methods.iter().any(|name| name == "generateContent"))
    };
    let models = list.models.into_iter().filter(generates);
    let served = models.map(|model| ServedModel {
        // The two limits are apart from each other.
        context_tokens: model
            .input_token_limit
            .zip(model.output_token_limit)
            .map(|(input, output)| input.saturating_add(output)),
        ..ServedModel::named(model.name.strip_prefix("models/").unwrap_or(&model.name))
    });
    Ok(served.collect())
}

//! The counts of a reply (`usage`), by all the names that engines have for them.
//!
//! OpenAI itself counts cached, audio and reasoning tokens, and how much of a prediction that came
//! with the request was right. SGLang puts what speculative decoding did under the names of such
//! predictions, and counts images and videos beside audio. vLLM has a table by modality, and says
//! in `metrics` beside `usage` what speculative decoding did.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Usage;

/// The counts of a reply.
#[derive(Deserialize)]
pub(super) struct Counts {
    pub(super) prompt_tokens: Option<u32>,
    pub(super) completion_tokens: Option<u32>,
    pub(super) total_tokens: Option<u32>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
    /// SGLang's place for the count.
    reasoning_tokens: Option<u32>,
}

#[derive(Default, Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u32>,
    image_tokens: Option<u32>,
    video_tokens: Option<u32>,
    audio_tokens: Option<u32>,
    /// vLLM's place for the counts.
    multimodal_tokens: Option<Modalities>,
}

#[derive(Default, Deserialize)]
struct Modalities {
    image: Option<u32>,
    video: Option<u32>,
    audio: Option<u32>,
}

#[derive(Default, Deserialize)]
struct CompletionDetails {
    reasoning_tokens: Option<u32>,
    audio_tokens: Option<u32>,
    accepted_prediction_tokens: Option<u32>,
    rejected_prediction_tokens: Option<u32>,
}

impl Counts {
    /// `None` if nothing was counted.
    pub(super) fn usage(self) -> Option<Usage> {
        let prompt = self.prompt_tokens_details.unwrap_or_default();
        let by_modality = prompt.multimodal_tokens.unwrap_or_default();
        let completion = self.completion_tokens_details.unwrap_or_default();
        let accepted = completion.accepted_prediction_tokens;
        let rejected = completion.rejected_prediction_tokens;
        let usage = Usage {
            input_tokens: self.prompt_tokens,
            cached_input_tokens: prompt.cached_tokens,
            output_tokens: self.completion_tokens,
            reasoning_tokens: completion.reasoning_tokens.or(self.reasoning_tokens),
            draft_tokens: accepted
                .zip(rejected)
                .map(|(accepted, rejected)| accepted.saturating_add(rejected)),
            accepted_draft_tokens: accepted,
            input_image_tokens: prompt.image_tokens.or(by_modality.image),
            input_video_tokens: prompt.video_tokens.or(by_modality.video),
            input_audio_tokens: prompt.audio_tokens.or(by_modality.audio),
            output_audio_tokens: completion.audio_tokens,
        };
        (usage != Usage::default()).then_some(usage)
    }
}

/// vLLM's facts about a request beside its `usage`, if the server was started to report them. The
/// format may change: a value that cannot be read is left out.
#[derive(Clone, Copy, Deserialize)]
#[serde(transparent)]
pub(super) struct Metrics<'a>(#[serde(borrow)] &'a RawValue);

#[derive(Deserialize)]
struct Extensions {
    speculative_decoding: Speculative,
}

#[derive(Deserialize)]
struct Speculative {
    num_draft_tokens: Option<u32>,
    num_accepted_draft_tokens: Option<u32>,
}

impl Metrics<'_> {
    /// Adds the counts of speculative decoding, if they are there.
    pub(super) fn add_to(self, usage: &mut Usage) {
        if let Ok(told) = serde_json::from_str::<Extensions>(self.0.get()) {
            let Speculative {
                num_draft_tokens,
                num_accepted_draft_tokens,
            } = told.speculative_decoding;
            usage.draft_tokens = num_draft_tokens.or(usage.draft_tokens);
            usage.accepted_draft_tokens = num_accepted_draft_tokens.or(usage.accepted_draft_tokens);
        }
    }
}

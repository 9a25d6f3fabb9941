//! The counts of a reply (`usage`), by all the names that engines have for them.
//!
//! OpenAI itself counts cached, audio and reasoning tokens, and how much of a prediction that came
//! with the request was right. SGLang counts speculative decoding under the names of such
//! predictions, and images and videos beside audio. Its `sglext` has the steps, if a request asks
//! for them. vLLM has a table by modality, and in `metrics` beside `usage` the request's durations
//! and its speculative decoding.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::readable;
use crate::{Meaning, Speculation, Timings, Usage};

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

#[derive(Default, Deserialize)]
struct Extensions<'a> {
    #[serde(borrow)]
    queue_time_ms: Option<&'a RawValue>,
    /// From when the request was scheduled, not from when it arrived.
    #[serde(borrow)]
    time_to_first_token_ms: Option<&'a RawValue>,
    #[serde(borrow)]
    generation_time_ms: Option<&'a RawValue>,
    #[serde(borrow)]
    speculative_decoding: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Speculative<'a> {
    #[serde(borrow)]
    num_draft_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    num_accepted_draft_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    num_spec_steps: Option<&'a RawValue>,
    #[serde(borrow)]
    acceptance_histogram: Option<&'a RawValue>,
}

impl Metrics<'_> {
    /// Adds the counts of speculative decoding, if present, and returns the further events.
    pub(super) fn read(self, usage: Option<&mut Usage>) -> impl Iterator<Item = Meaning> + use<> {
        let all: Extensions<'_> = readable(Some(self.0)).unwrap_or_default();
        let timings = Timings {
            queue: readable(all.queue_time_ms),
            prefill: readable(all.time_to_first_token_ms),
            decode: readable(all.generation_time_ms),
            ..Timings::default()
        };
        let drafts: Option<Speculative<'_>> = readable(all.speculative_decoding);
        let drafts = drafts.unwrap_or_default();
        if let Some(usage) = usage {
            let (drafted, accepted) = (drafts.num_draft_tokens, drafts.num_accepted_draft_tokens);
            usage.draft_tokens = readable(drafted).or(usage.draft_tokens);
            usage.accepted_draft_tokens = readable(accepted).or(usage.accepted_draft_tokens);
        }
        let steps = readable(drafts.acceptance_histogram).unwrap_or_default();
        let speculation = Speculation::meaning(readable(drafts.num_spec_steps), steps);
        timings.meaning().into_iter().chain(speculation)
    }
}

/// Cached prompt tokens by the memory that had them (SGLang's `CachedTokensDetails`).
#[derive(Default, Deserialize)]
pub(crate) struct Tiers {
    device: Option<u64>,
    host: Option<u64>,
    /// Present only with a storage behind the host's memory.
    storage: Option<u64>,
}

impl Tiers {
    /// A count for each tier that the server states.
    pub(crate) fn counts(details: Option<&RawValue>) -> impl Iterator<Item = Meaning> + use<> {
        let tiers: Tiers = readable(details).unwrap_or_default();
        let named = [
            ("cached-tokens-device", tiers.device),
            ("cached-tokens-host", tiers.host),
            ("cached-tokens-storage", tiers.storage),
        ];
        let named = named.into_iter();
        named.filter_map(|(name, tokens)| Some(Meaning::Count((name.to_owned(), tokens?))))
    }
}

/// SGLang's facts beside the API's own, for `return_spec_tokens_details` or
/// `return_cached_tokens_details` in the request. A list of steps, of several answers, is left out.
#[derive(Clone, Copy, Deserialize)]
#[serde(transparent)]
pub(super) struct Sglext<'a>(#[serde(borrow)] &'a RawValue);

#[derive(Default, Deserialize)]
struct SglextFields<'a> {
    #[serde(borrow)]
    cached_tokens_details: Option<&'a RawValue>,
    #[serde(borrow)]
    spec_tokens_details: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct SpecTokens<'a> {
    #[serde(borrow)]
    spec_verify_ct: Option<&'a RawValue>,
    #[serde(borrow)]
    spec_correct_drafts_histogram: Option<&'a RawValue>,
}

impl Sglext<'_> {
    /// The events of the cache's tiers and of the steps of speculative decoding.
    pub(super) fn read(self) -> impl Iterator<Item = Meaning> {
        let fields: SglextFields<'_> = readable(Some(self.0)).unwrap_or_default();
        Tiers::counts(fields.cached_tokens_details).chain(fields.speculation())
    }
}

impl SglextFields<'_> {
    /// The event of the steps of speculative decoding, if there were any.
    fn speculation(&self) -> Option<Meaning> {
        let details: SpecTokens<'_> = readable(self.spec_tokens_details)?;
        let steps = readable(details.spec_verify_ct).filter(|steps| *steps > 0)?;
        let accepted = readable(details.spec_correct_drafts_histogram);
        Speculation::meaning(Some(steps), accepted.unwrap_or_default())
    }
}

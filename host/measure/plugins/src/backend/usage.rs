//! The server's token counts, in the contract and in a record.

use super::Usage;
use model::exchange;

/// Nothing counted.
impl Default for Usage {
    fn default() -> Self {
        Usage {
            input_tokens: None,
            cached_input_tokens: None,
            output_tokens: None,
            reasoning_tokens: None,
            draft_tokens: None,
            accepted_draft_tokens: None,
            input_image_tokens: None,
            input_video_tokens: None,
            input_audio_tokens: None,
            output_audio_tokens: None,
        }
    }
}

impl From<Usage> for exchange::Usage {
    fn from(usage: Usage) -> Self {
        exchange::Usage {
            input_tokens: usage.input_tokens,
            cached_input_tokens: usage.cached_input_tokens,
            output_tokens: usage.output_tokens,
            reasoning_tokens: usage.reasoning_tokens,
            draft_tokens: usage.draft_tokens,
            accepted_draft_tokens: usage.accepted_draft_tokens,
            input_image_tokens: usage.input_image_tokens,
            input_video_tokens: usage.input_video_tokens,
            input_audio_tokens: usage.input_audio_tokens,
            output_audio_tokens: usage.output_audio_tokens,
        }
    }
}

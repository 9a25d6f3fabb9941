//! The server's token counts, timings, steps of speculative decoding, and length of sound.

use crate::bindings::backend_world::exports::runner::plugin::backend::{
    Sound, Speculation, Timings, Usage,
};
use model::exchange;
use model::units::Nanos;

/// Most entries of a list of steps.
const ENTRIES: usize = 1024;

/// The longest name of a count, in bytes.
const NAME_BYTES: usize = 64;

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

impl From<Timings> for exchange::ServerTimings {
    fn from(timings: Timings) -> Self {
        exchange::ServerTimings {
            queue: timings.queue.map(Nanos::from_millis_f64),
            prefill: timings.prefill.map(Nanos::from_millis_f64),
            first_token: timings.first_token.map(Nanos::from_millis_f64),
            decode: timings.decode.map(Nanos::from_millis_f64),
        }
    }
}

impl From<Speculation> for exchange::Speculation {
    fn from(speculation: Speculation) -> Self {
        exchange::Speculation {
            steps: speculation.steps,
            steps_by_accepted: speculation.steps_by_accepted,
        }
    }
}

/// Describes the first timing that is not a duration.
pub(super) fn wrong_timing(timings: &Timings) -> Option<String> {
    let parts = [
        ("queue", timings.queue),
        ("prefill", timings.prefill),
        ("first-token", timings.first_token),
        ("decode", timings.decode),
    ];
    parts.into_iter().find_map(|(part, value)| {
        let value = value.filter(|value| !value.is_finite() || *value < 0.0)?;
        Some(format!(
            "the timing `{part}` is {value} ms; a duration must be finite and not negative"
        ))
    })
}

/// Describes an invalid length of a piece of sound.
pub(super) fn wrong_length(sound: &Sound) -> Option<String> {
    let length = sound.duration?;
    (!length.is_finite() || length < 0.0).then(|| {
        format!("a piece of sound has a length of {length} ms; it must be finite and not negative")
    })
}

pub(super) fn wrong_name(name: &str) -> Option<String> {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    let is_name = name.len() <= NAME_BYTES
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.split('-').all(is_word);
    (!is_name).then(|| {
        let shown: String = name.chars().take(NAME_BYTES).collect();
        format!(
            "it counts `{}`; a name is in kebab-case, such as `image-tokens`, with at most {NAME_BYTES} bytes",
            shown.escape_debug()
        )
    })
}

/// Describes the fault of the list of steps: it is too long, or does not add up to their number.
pub(super) fn wrong_steps(speculation: &Speculation) -> Option<String> {
    let Speculation { steps, steps_by_accepted: list } = speculation;
    let entries = list.len();
    let sum: u64 = list.iter().map(|steps| u64::from(*steps)).sum();
    if entries > ENTRIES {
        Some(format!(
            "the list `steps-by-accepted` has {entries} entries, at most {ENTRIES} are allowed"
        ))
    } else if entries > 0 && sum != u64::from(*steps) {
        Some(format!(
            "the list `steps-by-accepted` adds up to {sum}; expected {steps}, the number of `steps`"
        ))
    } else {
        None
    }
}

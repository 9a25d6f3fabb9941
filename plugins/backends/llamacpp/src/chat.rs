//! llama.cpp's `/v1/chat/completions`: OpenAI's, with the native names of some settings, and with
//! `timings`.

use runner_plugin::Timings as Durations;
use runner_plugin::dialect::openai;
use runner_plugin::{Error, Frame, Meaning, Prompt, Request, Sample, Setting, Settings};
use serde::Deserialize;

use super::adapter;

pub fn encode(cache: bool, sample: &Sample, settings: &Settings) -> Result<Request, Error> {
    let route = "llama.cpp's /v1/chat/completions";
    settings.refuse(sample, route, &[Setting::MinOutputTokens])?;
    if matches!(sample.prompt, Prompt::Tokens(_)) {
        return Err(Error::InvalidConfig(format!(
            "key `route`: the dataset gives token ids, which {route} does not accept; set route = \"completion\", or have \
             the dataset give text"
        )));
    }
    // Older servers do not know `max_completion_tokens`.
    let mut body = openai::standard_body(openai::Route::Chat, "max_tokens", sample, settings)?;
    body.set("model", &settings.model);
    // The server would ignore OpenAI-like engines' usual name.
    body.remove("repetition_penalty")
        .set_some("repeat_penalty", settings.sampling.repetition_penalty);
    body.set("ignore_eos", settings.ignore_eos)
        .set("cache_prompt", cache)
        .set_some("lora", adapter(sample)?);
    settings.lay_over(&mut body, sample)?;
    Ok(Request::json("/v1/chat/completions", &body))
}

/// The part of a reply with its durations, and with the counts that `usage` lacks: of speculative
/// decoding, and on older servers of the cache.
#[derive(Deserialize)]
struct Timed {
    timings: Option<Timings>,
}

/// The way a request was worked on.
#[derive(Clone, Copy, Default, Deserialize)]
pub struct Timings {
    cache_n: Option<u32>,
    prompt_n: Option<u32>,
    /// Tokens that speculative decoding proposed, if it did.
    pub draft_n: Option<u32>,
    /// Drafted tokens that the model accepted.
    pub draft_n_accepted: Option<u32>,
    /// Milliseconds from when the prompt was begun until the first token was chosen.
    prompt_ms: Option<f64>,
    /// Milliseconds from then until the last token.
    predicted_ms: Option<f64>,
}

impl Timings {
    /// The prompt tokens that were in the cache, which some servers state by the others' number.
    pub fn cached(self, prompt: Option<u32>) -> Option<u32> {
        let processed = || Some(prompt?.saturating_sub(self.prompt_n?));
        self.cache_n.or_else(processed)
    }

    /// The event of the durations. The wait for a slot is not among them.
    pub fn meaning(self) -> Option<Meaning> {
        let durations = Durations {
            prefill: self.prompt_ms,
            decode: self.predicted_ms,
            ..Durations::default()
        };
        durations.meaning()
    }
}

pub fn decode(
    reply: &mut openai::Reply,
    frame: &Frame<'_>,
    events: &mut Vec<Meaning>,
) -> Result<(), Error> {
    let before = events.len();
    openai::decode(reply, frame, events)?;
    let usage = events[before..].iter_mut().find_map(|event| match event {
        Meaning::Usage(usage) => Some(usage),
        _ => None,
    });
    if let Some(usage) = usage
        && let Ok(timed) = serde_json::from_slice::<Timed>(frame.data)
        && let Some(timings) = timed.timings
    {
        let cached = usage.cached_input_tokens;
        usage.cached_input_tokens = cached.or_else(|| timings.cached(usage.input_tokens));
        usage.draft_tokens = timings.draft_n;
        usage.accepted_draft_tokens = timings.draft_n_accepted;
        events.extend(timings.meaning());
    }
    Ok(())
}

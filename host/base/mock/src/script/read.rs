//! The keys of a script: turns TOML into a [`Script`], or into all of its mistakes.

use std::num::{NonZeroU32, NonZeroUsize};
use std::ops::RangeInclusive;

use super::{CONTEXT_LIMIT, CONTRADICTS_BATCHING, Counts, Script};
use crate::dialect;
use crate::fault::Fault;
use crate::serve::{possible_number, possible_span};
use crate::transcript::{Moment, Pause, Transcript};
use model::duration::{self, Span};
use reader::{Located, Place, Problem, Reader, ScenarioError, parse_table};
use simulator::{Parameters, parameters};

pub(super) fn read(name: &str, text: &str) -> Result<Script, ScenarioError> {
    let (script, problems) = parse_table(name, text, &[], |root, _| script(root));
    ScenarioError::unless_empty(problems)?;
    Ok(script.unwrap_or_default())
}

fn script(t: &mut Reader<'_, '_>) -> Script {
    let usual = Script::default();
    macro_rules! word {
        ($key:literal, $field:ident) => {
            t.word($key).map_or(usual.$field, |located| located.value)
        };
    }
    Script {
        ttft: span(t, "ttft").unwrap_or(usual.ttft),
        itl: span(t, "itl").unwrap_or(usual.itl),
        cold_requests: number(t, "cold-requests", 0..=u32::MAX).unwrap_or(usual.cold_requests),
        cold_delay: span(t, "cold-delay").unwrap_or(usual.cold_delay),
        spread: spread(t).unwrap_or(usual.spread),
        seed: number(t, "seed", 0..=u32::MAX).map_or(usual.seed, u64::from),
        batching: batching(t),
        tokens_per_chunk: positive(t, "tokens-per-chunk").unwrap_or(usual.tokens_per_chunk),
        output_tokens: number(t, "output-tokens", 0..=u32::MAX).unwrap_or(usual.output_tokens),
        stop_after: number(t, "stop-after", 0..=u32::MAX),
        answer: t.own("answer").map_or(usual.answer, |located| located.value),
        reasoning_tokens: number(t, "reasoning-tokens", 0..=u32::MAX)
            .unwrap_or(usual.reasoning_tokens),
        reasoning_field: word!("reasoning-field", reasoning_field),
        role_chunk: word!("role-chunk", role_chunk),
        usage: word!("usage", usage),
        counts: t.table("counts", counts),
        server_timings: fraction(t, "server-timings", 1.0).map(|located| located.value),
        generate: word!("generate", generate),
        transcriptions: word!("transcriptions", transcriptions),
        incremental: flag(t, "incremental"),
        api_key: t.string("api-key").map(|located| located.value),
        models: models(t),
        max_concurrency: max_concurrency(t),
        context_limit: number(t, "context-limit", 1..=CONTEXT_LIMIT.get())
            .and_then(NonZeroU32::new)
            .unwrap_or(usual.context_limit),
        headers: word!("headers", headers),
        prefix_cache: flag(t, "prefix-cache"),
        faults: faults(t),
        routes: dialect::routes(t),
        transcript: transcript(t),
        pause: pause(t),
    }
}

fn flag(t: &mut Reader<'_, '_>, key: &'static str) -> bool {
    t.boolean(key).is_some_and(|located| located.value)
}

fn span(t: &mut Reader<'_, '_>, key: &'static str) -> Option<Span> {
    let located = t.parsed(key, "a time such as \"120ms\"", |text| {
        let span: Span = text.parse().map_err(|error: duration::ParseError| error.to_string())?;
        possible_span(span).map(|()| span)
    })?;
    without_batching(t, key, &located.place);
    Some(located.value)
}

/// Notes that a key which sets times has no meaning beside `batching`.
fn without_batching(t: &Reader<'_, '_>, key: &str, place: &Place) {
    if t.has("batching") {
        let message = format!("`{key}`: {CONTRADICTS_BATCHING}");
        let help = format!("leave out `{key}` or `batching`");
        t.report(Problem::new(message).at(place.clone(), "here").help(help));
    }
}

fn counts(t: &mut Reader<'_, '_>) -> Counts {
    let all = 0..=u32::MAX;
    let draft_tokens = number(t, "draft-tokens", all.clone());
    let accepted = t.integer("accepted-draft-tokens");
    if let (Some(draft), Some(accepted)) = (draft_tokens, &accepted)
        && accepted.value > u64::from(draft)
    {
        let message = format!(
            "`counts.accepted-draft-tokens`: {} of {draft} draft tokens cannot be accepted",
            accepted.value
        );
        let problem = Problem::new(message).at(accepted.place.clone(), format!("at most {draft}"));
        t.report(problem);
    }
    Counts {
        draft_tokens,
        accepted_draft_tokens: accepted
            .and_then(|located| ranged(t, "accepted-draft-tokens", located, all.clone())),
        input_image_tokens: number(t, "input-image-tokens", all.clone()),
        input_video_tokens: number(t, "input-video-tokens", all.clone()),
        input_audio_tokens: number(t, "input-audio-tokens", all.clone()),
        output_audio_tokens: number(t, "output-audio-tokens", all),
        steps_by_accepted: steps(t),
    }
}

fn steps(t: &mut Reader<'_, '_>) -> Vec<u32> {
    const MOST: usize = 256;
    let Some(located) = t.own::<Vec<u32>>("steps-by-accepted") else { return Vec::new() };
    if located.value.is_empty() || located.value.len() > MOST {
        let expected = format!("expected 1 to {MOST} numbers");
        let found = located.value.len();
        let message = format!("`counts.steps-by-accepted`: {expected}, found {found}");
        t.report(Problem::new(message).at(located.place, expected));
        return Vec::new();
    }
    located.value
}

fn fraction(t: &mut Reader<'_, '_>, key: &'static str, most: f64) -> Option<Located<f64>> {
    let expected = format!("a number from 0 to {most}");
    let located = t.number(key, &expected)?;
    if let Err(message) = possible_number(located.value, most) {
        let message = format!("`{key}`: {message}");
        t.report(Problem::new(message).at(located.place, format!("expected {expected}")));
        return None;
    }
    Some(located)
}

fn batching(t: &mut Reader<'_, '_>) -> Option<Parameters> {
    let is_there = t.has("batching");
    let parameters = t.table("batching", |t| {
        let mut parameters = Parameters::default();
        for (name, _) in parameters::NAMES {
            parameter(t, name, &mut parameters);
        }
        parameters
    });
    is_there.then_some(parameters)
}

fn parameter(t: &mut Reader<'_, '_>, name: &'static str, parameters: &mut Parameters) {
    let Some(located) = t.own::<toml::Value>(name) else { return };
    let value = match located.value {
        toml::Value::String(text) => text,
        other => other.to_string(),
    };
    if let Err(message) = parameters.set(name, &value) {
        let message = format!("`batching`: {message}");
        t.report(Problem::new(message).at(located.place, "here"));
    }
}

fn max_concurrency(t: &mut Reader<'_, '_>) -> Option<NonZeroUsize> {
    let located = t.integer("max-concurrency")?;
    without_batching(t, "max-concurrency", &located.place);
    let places = ranged(t, "max-concurrency", located, 1..=u32::MAX)?;
    NonZeroUsize::new(places as usize)
}

fn spread(t: &mut Reader<'_, '_>) -> Option<f64> {
    let located = fraction(t, "spread", 2.0)?;
    without_batching(t, "spread", &located.place);
    Some(located.value)
}

fn number(t: &mut Reader<'_, '_>, key: &'static str, range: RangeInclusive<u32>) -> Option<u32> {
    let located = t.integer(key)?;
    ranged(t, key, located, range)
}

fn ranged(
    t: &Reader<'_, '_>,
    key: &str,
    located: Located<u64>,
    range: RangeInclusive<u32>,
) -> Option<u32> {
    let number = u32::try_from(located.value).ok();
    let number = number.filter(|number| range.contains(number));
    if number.is_none() {
        let (least, most) = range.into_inner();
        let expected = format!("expected a whole number from {least} to {most}");
        let message = format!("`{key}`: {expected}, found {}", located.value);
        t.report(Problem::new(message).at(located.place, expected));
    }
    number
}

fn positive(t: &mut Reader<'_, '_>, key: &'static str) -> Option<NonZeroU32> {
    number(t, key, 1..=u32::MAX).and_then(NonZeroU32::new)
}

fn faults(t: &mut Reader<'_, '_>) -> Vec<Fault> {
    let located = t.own_tables::<Fault>("fault").unwrap_or_default();
    for fault in &located {
        let lasting = fault.value.kind.lasting();
        if let Some(Err(message)) = lasting.map(possible_span) {
            let message = format!("`fault.for`: {message}");
            t.report(Problem::new(message).at(fault.place.clone(), "in this fault"));
        }
    }
    located.into_iter().map(|located| located.value).collect()
}

fn transcript(t: &mut Reader<'_, '_>) -> Option<Transcript> {
    let located = t.own_tables::<Moment>("transcript")?;
    for moment in &located {
        if let Some(message) = moment.value.mistake() {
            let message = format!("`transcript`: {message}");
            t.report(Problem::new(message).at(moment.place.clone(), "in this event"));
        }
    }
    let moments = located.into_iter().map(|located| located.value).collect();
    Some(Transcript { moments })
}

fn pause(t: &mut Reader<'_, '_>) -> Option<Pause> {
    let located = t.own::<Pause>("pause")?;
    if let Some(message) = located.value.mistake() {
        let message = format!("`pause`: {message}");
        t.report(Problem::new(message).at(located.place, "here"));
        return None;
    }
    Some(located.value)
}

fn models(t: &mut Reader<'_, '_>) -> Vec<String> {
    let located = t.one_or_more("models").map(|located| located.value);
    let names = located.unwrap_or_default().into_iter();
    names.map(|located| located.value).collect()
}

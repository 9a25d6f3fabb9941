//! The keys of a script: turns TOML into a [`Script`], or into all of its mistakes.

use std::num::{NonZeroU32, NonZeroUsize};
use std::ops::RangeInclusive;

use super::{CONTEXT_LIMIT, Script, possible_span, possible_spread};
use crate::dialect;
use crate::fault::Fault;
use model::duration::{self, Span};
use reader::{Problem, Reader, ScenarioError, parse_table};

/// Reads a script.
pub(super) fn read(name: &str, text: &str) -> Result<Script, ScenarioError> {
    let (script, problems) = parse_table(name, text, &[], |root, _| script(root));
    ScenarioError::unless_empty(problems)?;
    Ok(script.unwrap_or_default())
}

fn script(t: &mut Reader<'_, '_>) -> Script {
    let usual = Script::default();
    macro_rules! word {
        ($key:literal, $field:ident) => {
            t.word($key).map_or(usual.$field, |said| said.value)
        };
    }
    Script {
        ttft: span(t, "ttft").unwrap_or(usual.ttft),
        itl: span(t, "itl").unwrap_or(usual.itl),
        spread: spread(t).unwrap_or(usual.spread),
        seed: number(t, "seed", 0..=u32::MAX).map_or(usual.seed, u64::from),
        tokens_per_chunk: positive(t, "tokens-per-chunk").unwrap_or(usual.tokens_per_chunk),
        output_tokens: number(t, "output-tokens", 0..=u32::MAX).unwrap_or(usual.output_tokens),
        stop_after: number(t, "stop-after", 0..=u32::MAX),
        answer: t.own("answer").map_or(usual.answer, |said| said.value),
        reasoning_tokens: number(t, "reasoning-tokens", 0..=u32::MAX)
            .unwrap_or(usual.reasoning_tokens),
        reasoning_field: word!("reasoning-field", reasoning_field),
        role_chunk: word!("role-chunk", role_chunk),
        usage: word!("usage", usage),
        generate: word!("generate", generate),
        incremental: flag(t, "incremental"),
        api_key: t.string("api-key").map(|said| said.value),
        models: models(t),
        max_concurrency: positive(t, "max-concurrency")
            .and_then(|places: NonZeroU32| NonZeroUsize::try_from(places).ok()),
        context_limit: number(t, "context-limit", 1..=CONTEXT_LIMIT.get())
            .and_then(NonZeroU32::new)
            .unwrap_or(usual.context_limit),
        headers: word!("headers", headers),
        prefix_cache: flag(t, "prefix-cache"),
        faults: faults(t),
        routes: dialect::routes(t),
    }
}

fn flag(t: &mut Reader<'_, '_>, key: &'static str) -> bool {
    t.boolean(key).is_some_and(|said| said.value)
}

fn span(t: &mut Reader<'_, '_>, key: &'static str) -> Option<Span> {
    let said = t.parsed(key, "a time such as \"120ms\"", |text| {
        let span: Span = text
            .parse()
            .map_err(|error: duration::ParseError| error.to_string())?;
        possible_span(span).map(|()| span)
    })?;
    Some(said.value)
}

fn spread(t: &mut Reader<'_, '_>) -> Option<f64> {
    let said = t.number("spread", "a number from 0 to 2")?;
    if let Err(message) = possible_spread(said.value) {
        let message = format!("`spread`: {message}");
        t.report(Problem::new(message).at(said.place, "expected a number from 0 to 2"));
        return None;
    }
    Some(said.value)
}

fn number(t: &mut Reader<'_, '_>, key: &'static str, range: RangeInclusive<u32>) -> Option<u32> {
    let said = t.integer(key)?;
    let number = u32::try_from(said.value).ok();
    let number = number.filter(|number| range.contains(number));
    if number.is_none() {
        let (least, most) = range.into_inner();
        let expected = format!("expected a whole number from {least} to {most}");
        let message = format!("`{key}`: {expected}, found {}", said.value);
        t.report(Problem::new(message).at(said.place, expected));
    }
    number
}

fn positive(t: &mut Reader<'_, '_>, key: &'static str) -> Option<NonZeroU32> {
    number(t, key, 1..=u32::MAX).and_then(NonZeroU32::new)
}

fn faults(t: &mut Reader<'_, '_>) -> Vec<Fault> {
    let said = t.own_tables::<Fault>("fault").unwrap_or_default();
    for fault in &said {
        let lasting = fault.value.what.lasting();
        if let Some(Err(message)) = lasting.map(possible_span) {
            let message = format!("`fault.for`: {message}");
            t.report(Problem::new(message).at(fault.place.clone(), "in this fault"));
        }
    }
    said.into_iter().map(|said| said.value).collect()
}

fn models(t: &mut Reader<'_, '_>) -> Vec<String> {
    let said = t.one_or_more("models").map(|said| said.value);
    let names = said.unwrap_or_default().into_iter();
    names.map(|said| said.value).collect()
}

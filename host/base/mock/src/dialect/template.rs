//! Templates: text with placeholders such as `{text}`, each replaced by a JSON value.
//!
//! Responsible for telling placeholders from JSON's braces, and for writing the values. The reader
//! of a template decides which placeholders are valid in it.

use std::time::Duration;

use crate::pace::Timings;
use crate::wire::bytes::{put, put_string};

/// The value that replaces a placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// The text that this event adds.
    Text,
    /// All text so far, this event's included.
    TextSoFar,
    /// The tokens that this event adds, as a list of ids.
    Ids,
    /// Tokens that this event adds.
    NewTokens,
    /// Tokens so far, this event's included.
    Tokens,
    /// The event's place in the reply, from 0.
    Index,
    Id,
    /// The requested model.
    Model,
    /// The number of tokens in the prompt.
    InputTokens,
    /// The number of prompt tokens that were found in the prefix cache.
    CachedTokens,
    /// The number of tokens in the whole answer.
    OutputTokens,
    /// The reason why the answer ends: `"stop"` or `"length"`.
    Finish,
    /// Seconds since the engine began to work on the request.
    Seconds,
    /// The time that the request queued, by the engine's own timings: in milliseconds, and in
    /// nanoseconds.
    QueueMs,
    QueueNs,
    /// The time from then to the first token.
    PrefillMs,
    PrefillNs,
    /// The time from the first token to the last so far.
    DecodeMs,
    DecodeNs,
    /// The sum of the three.
    TotalNs,
    /// The error message, a sentence.
    Message,
    /// The error's status, a number.
    Status,
}

use Value::{
    CachedTokens, DecodeMs, DecodeNs, Finish, Id, Ids, Index, InputTokens, Message, Model,
    NewTokens, OutputTokens, PrefillMs, PrefillNs, QueueMs, QueueNs, Seconds, Status, Text,
    TextSoFar, Tokens, TotalNs,
};

const NAMES: [(&str, Value); 22] = [
    ("text", Text),
    ("text-so-far", TextSoFar),
    ("ids", Ids),
    ("new-tokens", NewTokens),
    ("tokens", Tokens),
    ("index", Index),
    ("id", Id),
    ("model", Model),
    ("input-tokens", InputTokens),
    ("cached-tokens", CachedTokens),
    ("output-tokens", OutputTokens),
    ("finish", Finish),
    ("seconds", Seconds),
    ("queue-ms", QueueMs),
    ("queue-ns", QueueNs),
    ("prefill-ms", PrefillMs),
    ("prefill-ns", PrefillNs),
    ("decode-ms", DecodeMs),
    ("decode-ns", DecodeNs),
    ("total-ns", TotalNs),
    ("message", Message),
    ("status", Status),
];

/// Available before the first token.
pub(super) const BEFORE: &[Value] = &[Index, Id, Model, InputTokens, CachedTokens];

/// Available for an event with tokens.
pub(super) const DURING: &[Value] = &[
    Text,
    TextSoFar,
    Ids,
    NewTokens,
    Tokens,
    Index,
    Id,
    Model,
    InputTokens,
    CachedTokens,
    Seconds,
];

/// Available for the last event with tokens, and after it.
pub(super) const AFTER: &[Value] = &[
    Text,
    TextSoFar,
    Ids,
    NewTokens,
    Tokens,
    Index,
    Id,
    Model,
    InputTokens,
    CachedTokens,
    Seconds,
    OutputTokens,
    Finish,
    QueueMs,
    QueueNs,
    PrefillMs,
    PrefillNs,
    DecodeMs,
    DecodeNs,
    TotalNs,
];

/// Available for an error.
pub(super) const OF_ERRORS: &[Value] = &[Message, Status];

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Literal(String),
    Value(Value),
}

/// The values of the placeholders in one place.
#[derive(Clone, Copy, Default)]
pub(super) struct Values<'a> {
    pub text: &'a str,
    pub text_so_far: &'a str,
    pub ids: &'a [u8],
    pub tokens: u32,
    pub index: u32,
    pub id: &'a str,
    pub model: &'a str,
    pub input_tokens: u32,
    pub cached_tokens: u32,
    pub output_tokens: u32,
    pub finish: &'a str,
    pub seconds: f64,
    pub timings: Timings,
    pub message: &'a str,
    pub status: u16,
}

impl Template {
    /// Reads a template in which these placeholders are valid. A name in braces is a placeholder;
    /// JSON has no such thing outside its strings.
    pub fn read(text: &str, known: &[Value]) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let (before, at) = rest.split_at(open);
            literal.push_str(before);
            let Some(name) = name_in_braces(at) else {
                literal.push('{');
                rest = &at[1..];
                continue;
            };
            let value = NAMES.iter().find(|(own, _)| *own == name);
            match value.map(|(_, value)| *value) {
                Some(value) if known.contains(&value) => {
                    if !literal.is_empty() {
                        parts.push(Part::Literal(std::mem::take(&mut literal)));
                    }
                    parts.push(Part::Value(value));
                }
                Some(_) => return Err(format!("`{{{name}}}` is not valid here; {}", names(known))),
                None => {
                    return Err(format!("`{{{name}}}` is not a placeholder; {}", names(known)));
                }
            }
            rest = &at[name.len() + 2..];
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        Ok(Template { parts })
    }

    /// True if it has a line end of its own.
    pub(crate) fn has_line_end(&self) -> bool {
        let breaks =
            |part: &Part| matches!(part, Part::Literal(text) if text.contains(['\n', '\r']));
        self.parts.iter().any(breaks)
    }

    /// The text with nothing in the places of the values, which shows its form.
    pub(crate) fn form(&self) -> Vec<u8> {
        let mut form = Vec::new();
        self.write(&Values::default(), &mut form);
        form
    }

    /// Appends the text with the values in their places.
    pub fn write(&self, values: &Values<'_>, out: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                Part::Literal(text) => out.extend_from_slice(text.as_bytes()),
                Part::Value(value) => value.write(values, out),
            }
        }
    }
}

fn milliseconds(span: Duration, out: &mut Vec<u8>) {
    put(out, format_args!("{:?}", span.as_secs_f64() * 1e3));
}

fn nanoseconds(span: Duration, out: &mut Vec<u8>) {
    put(out, format_args!("{}", span.as_nanos()));
}

impl Value {
    fn write(self, values: &Values<'_>, out: &mut Vec<u8>) {
        let Timings { queue, prefill, decode } = values.timings;
        let mut number = |number: u32| put(out, format_args!("{number}"));
        match self {
            NewTokens => number(u32::try_from(values.ids.len()).unwrap_or(u32::MAX)),
            Tokens => number(values.tokens),
            Index => number(values.index),
            InputTokens => number(values.input_tokens),
            CachedTokens => number(values.cached_tokens),
            OutputTokens => number(values.output_tokens),
            Status => number(values.status.into()),
            Seconds => put(out, format_args!("{:?}", values.seconds)),
            QueueMs => milliseconds(queue, out),
            PrefillMs => milliseconds(prefill, out),
            DecodeMs => milliseconds(decode, out),
            QueueNs => nanoseconds(queue, out),
            PrefillNs => nanoseconds(prefill, out),
            DecodeNs => nanoseconds(decode, out),
            TotalNs => nanoseconds(queue + prefill + decode, out),
            Text => put_string(out, values.text),
            TextSoFar => put_string(out, values.text_so_far),
            Id => put_string(out, values.id),
            Model => put_string(out, values.model),
            Finish => put_string(out, values.finish),
            Message => put_string(out, values.message),
            Ids => {
                // Lists of numbers and memory have no way to fail.
                let _ = serde_json::to_writer(out, values.ids);
            }
        }
    }
}

/// The name at the beginning of `{name}…`; names are small letters and hyphens.
fn name_in_braces(text: &str) -> Option<&str> {
    let (name, _) = text.strip_prefix('{')?.split_once('}')?;
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
    (!name.is_empty() && name.bytes().all(plain)).then_some(name)
}

fn names(known: &[Value]) -> String {
    let names = NAMES.iter().filter(|(_, value)| known.contains(value));
    let names: Vec<String> = names.map(|(name, _)| format!("{{{name}}}")).collect();
    format!("use one of {}", names.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(template: &str) -> String {
        let values = Values {
            text: "b\"",
            text_so_far: "ab\"",
            ids: &[98, 34],
            tokens: 3,
            seconds: 1.0,
            ..Values::default()
        };
        let mut out = Vec::new();
        let template = Template::read(template, DURING).unwrap();
        template.write(&values, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn placeholders_are_told_from_braces() {
        let text = r#"{"t":{text},"a":{"all":{text-so-far}},"n":[{new-tokens},{tokens}],"e":{}}"#;
        let expected = r#"{"t":"b\"","a":{"all":"ab\""},"n":[2,3],"e":{}}"#;
        assert_eq!(written(text), expected);
        assert_eq!(written("{ids} {seconds} {"), "[98,34] 1.0 {");
        assert_eq!(written("{Text} {text"), "{Text} {text");
    }

    #[test]
    fn errors_name_an_unknown_placeholder_of_a_template() {
        let error = Template::read("{txt}", BEFORE).unwrap_err();
        assert_eq!(
            error,
            "`{txt}` is not a placeholder; use one of {index} {id} {model} {input-tokens} {cached-tokens}"
        );
        let error = Template::read("{finish}", DURING).unwrap_err();
        assert!(error.starts_with("`{finish}` is not valid here"), "{error}");
    }
}

//! Templates: text with placeholders such as `{text}`, each replaced by a JSON value.
//!
//! Responsible for telling placeholders from JSON's braces, and for writing the values. The reader
//! of a template decides which placeholders are valid in it.

use std::time::Duration;

use model::words::Word as _;

use crate::truth::Timings;
use crate::wire::bytes::{put, put_string};

model::names! {
    /// The value that replaces a placeholder.
    pub(super) enum Value {
        /// The text that this event adds.
        Text = "text",
        /// All text so far, this event's included.
        TextSoFar = "text-so-far",
        /// The tokens that this event adds, as a list of ids.
        Ids = "ids",
        /// Tokens that this event adds.
        NewTokens = "new-tokens",
        /// Tokens so far, this event's included.
        Tokens = "tokens",
        /// The event's place in the reply, from 0.
        Index = "index",
        Id = "id",
        /// The requested model.
        Model = "model",
        /// The number of tokens in the prompt.
        InputTokens = "input-tokens",
        /// The number of prompt tokens that were found in the prefix cache.
        CachedTokens = "cached-tokens",
        /// The number of tokens in the whole answer.
        OutputTokens = "output-tokens",
        /// The reason why the answer ends: `"stop"` or `"length"`.
        Finish = "finish",
        /// Seconds since the engine began to work on the request.
        Seconds = "seconds",
        /// The time that the request queued, by the engine's own timings: in milliseconds, and in
        /// nanoseconds.
        QueueMs = "queue-ms",
        QueueNs = "queue-ns",
        /// The time from then to the first token.
        PrefillMs = "prefill-ms",
        PrefillNs = "prefill-ns",
        /// The time from the first token to the last so far.
        DecodeMs = "decode-ms",
        DecodeNs = "decode-ns",
        /// The sum of the three.
        TotalNs = "total-ns",
        /// The error message, a sentence.
        Message = "message",
        /// The error's status, a number.
        Status = "status",
    }
}

use Value::{
    CachedTokens, DecodeMs, DecodeNs, Finish, Id, Ids, Index, InputTokens, Message, Model,
    NewTokens, OutputTokens, PrefillMs, PrefillNs, QueueMs, QueueNs, Seconds, Status, Text,
    TextSoFar, Tokens, TotalNs,
};

/// The stage of a reply that a template belongs to, which decides the values that it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Before,
    During,
    /// The last event with tokens, and after it.
    After,
    Error,
}

impl Stage {
    fn has(self, value: Value) -> bool {
        let first = match value {
            Message | Status => return self == Stage::Error,
            Index | Id | Model | InputTokens | CachedTokens => Stage::Before,
            Text | TextSoFar | Ids | NewTokens | Tokens | Seconds => Stage::During,
            _ => Stage::After,
        };
        self >= first && self != Stage::Error
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Literal(String),
    Value(Value),
}

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
    /// Reads a template of this stage. A name in braces is a placeholder; JSON has no such thing
    /// outside its strings.
    pub fn read(text: &str, stage: Stage) -> Result<Self, String> {
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
            let fault = match Value::named(name) {
                Some(value) if stage.has(value) => {
                    if !literal.is_empty() {
                        parts.push(Part::Literal(std::mem::take(&mut literal)));
                    }
                    parts.push(Part::Value(value));
                    rest = &at[name.len() + 2..];
                    continue;
                }
                Some(_) => "valid here",
                None => "a placeholder",
            };
            let names = Value::ALL.into_iter().filter(|value| stage.has(*value));
            let names: Vec<String> = names.map(|value| format!("{{{value}}}")).collect();
            return Err(format!("`{{{name}}}` is not {fault}; use one of {}", names.join(" ")));
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        Ok(Template { parts })
    }

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

    pub fn write(&self, values: &Values<'_>, out: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                Part::Literal(text) => out.extend(text.as_bytes()),
                Part::Value(value) => value.write(values, out),
            }
        }
    }
}

fn milliseconds(span: Duration, out: &mut Vec<u8>) {
    put!(out, "{:?}", span.as_secs_f64() * 1e3);
}

fn nanoseconds(span: Duration, out: &mut Vec<u8>) {
    put!(out, "{}", span.as_nanos());
}

impl Value {
    fn write(self, values: &Values<'_>, out: &mut Vec<u8>) {
        let Timings { queue, prefill, decode } = values.timings;
        let mut number = |number: u32| put!(out, "{number}");
        match self {
            NewTokens => number(u32::try_from(values.ids.len()).unwrap_or(u32::MAX)),
            Tokens => number(values.tokens),
            Index => number(values.index),
            InputTokens => number(values.input_tokens),
            CachedTokens => number(values.cached_tokens),
            OutputTokens => number(values.output_tokens),
            Status => number(values.status.into()),
            Seconds => put!(out, "{:?}", values.seconds),
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
        let template = Template::read(template, Stage::During).unwrap();
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
        let names = "{index} {id} {model} {input-tokens} {cached-tokens}";
        let error = Template::read("{txt}", Stage::Before).unwrap_err();
        assert_eq!(error, format!("`{{txt}}` is not a placeholder; use one of {names}"));
        let error = Template::read("{finish}", Stage::During).unwrap_err();
        assert!(error.starts_with("`{finish}` is not valid here"), "{error}");
    }
}

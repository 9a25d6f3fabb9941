//! Spans of OpenTelemetry, as its exporters write them: times, and the attributes of the semantic
//! conventions for generative AI (<https://opentelemetry.io/docs/specs/semconv/gen-ai/>).

use dialogue::messages::{self, object};
use runner_plugin::date::instant;
use runner_plugin::{Message, Part, Role};
use serde_json::{Map, Value, json};

/// A request to a model, as recorded.
#[derive(Debug, Default)]
pub(crate) struct Span {
    /// The time when it began, in nanoseconds since 1970.
    pub(crate) start: u64,
    pub(crate) end: Option<u64>,
    pub(crate) input: Option<Vec<Message>>,
    pub(crate) output: Option<Message>,
    pub(crate) input_tokens: Option<u32>,
    pub(crate) output_tokens: Option<u32>,
    pub(crate) parameters: Option<String>,
}

type Fields = Map<String, Value>;

/// Operations that request no answer: operations of a whole agent, of a tool, and others.
const OTHERS: [&str; 6] =
    ["create_agent", "invoke_agent", "invoke_workflow", "execute_tool", "embeddings", "retrieval"];

pub(crate) fn trace_id(span: &Fields) -> Option<String> {
    let context = span.get("context").and_then(Value::as_object);
    ["trace_id", "traceId"].iter().find_map(|key| {
        let id = span.get(*key).or_else(|| context?.get(*key))?;
        match id {
            Value::String(id) => Some(id.clone()),
            Value::Number(id) => Some(id.to_string()),
            _ => None,
        }
    })
}

/// Reads a span; `None` if it is no request to a model.
pub(crate) fn span(mut fields: Fields) -> Result<Option<Span>, String> {
    let attributes = attributes(fields.remove("attributes"))?;
    let operation = attributes.get("gen_ai.operation.name");
    let other = operation.and_then(Value::as_str).is_some_and(|name| OTHERS.contains(&name));
    let input = list(&attributes, "gen_ai.input.messages")?;
    let input_tokens = tokens(&attributes, "gen_ai.usage.input_tokens")?;
    if other || (input.is_none() && input_tokens.is_none()) {
        return Ok(None);
    }
    let start = time(&fields, &["start_time", "startTimeUnixNano", "startTime"])?
        .ok_or("`start_time` is missing")?;
    let end = time(&fields, &["end_time", "endTimeUnixNano", "endTime"])?;
    if end.is_some_and(|end| end < start) {
        return Err("`end_time` is before `start_time`".to_owned());
    }
    let system = list(&attributes, "gen_ai.system_instructions")?;
    let input = input
        .map(|input| conversation(system, input))
        .transpose()?
        .filter(|input| !input.is_empty());
    let output = list(&attributes, "gen_ai.output.messages")?;
    let output = output.and_then(|output| output.into_iter().next());
    let output = output.map(message).transpose();
    let output = output.map_err(|cause| format!("`gen_ai.output.messages[0]`: {cause}"))?;
    let mut parameters = Fields::new();
    if let Some(tools) = list(&attributes, "gen_ai.tool.definitions")?
        && !tools.is_empty()
    {
        parameters.insert("tools".to_owned(), Value::Array(tools));
    }
    Ok(Some(Span {
        start,
        end,
        input,
        // Several messages are the calls of tools beside the text of the first, the answer.
        output: output.and_then(|all| all.into_iter().next()),
        input_tokens,
        output_tokens: tokens(&attributes, "gen_ai.usage.output_tokens")?,
        parameters: object(parameters),
    }))
}

/// The attributes: an object, or OTLP's list of keys and values.
fn attributes(value: Option<Value>) -> Result<Fields, String> {
    match value {
        None | Some(Value::Null) => Ok(Fields::new()),
        Some(Value::Object(attributes)) => Ok(attributes),
        Some(Value::Array(pairs)) => {
            let pair = |mut pair: Value| {
                let key = pair.get("key")?.as_str()?.to_owned();
                Some((key, plain(pair.get_mut("value")?.take())))
            };
            Ok(pairs.into_iter().filter_map(pair).collect())
        }
        Some(_) => Err("`attributes`: expected an object, or a list of keys and values".to_owned()),
    }
}

/// A value without OTLP's wrapping, `{"stringValue": "…"}`.
fn plain(value: Value) -> Value {
    let Value::Object(mut wrapped) = value else { return value };
    for key in ["stringValue", "doubleValue", "boolValue"] {
        if let Some(value) = wrapped.remove(key) {
            return value;
        }
    }
    if let Some(value) = wrapped.remove("intValue") {
        // 64-bit integers are strings in OTLP's JSON.
        let number = value.as_str().and_then(|text| text.parse::<i64>().ok());
        return number.map_or(value, Value::from);
    }
    if let Some(Value::Object(mut array)) = wrapped.remove("arrayValue") {
        return match array.remove("values") {
            Some(Value::Array(values)) => values.into_iter().map(plain).collect(),
            _ => Value::Array(Vec::new()),
        };
    }
    if let Some(Value::Object(mut list)) = wrapped.remove("kvlistValue") {
        let pairs = list.remove("values");
        return Value::Object(attributes(pairs).unwrap_or_default());
    }
    Value::Object(wrapped)
}

/// A list, which exporters write as one or as text with JSON.
fn list(attributes: &Fields, key: &str) -> Result<Option<Vec<Value>>, String> {
    match attributes.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(values)) => Ok(Some(values.clone())),
        Some(Value::String(text)) => match serde_json::from_str(text) {
            Ok(Value::Array(values)) => Ok(Some(values)),
            Ok(_) => Err(format!("`{key}`: expected a list")),
            // Instructions may be a plain text.
            Err(_) if key == "gen_ai.system_instructions" => {
                Ok(Some(vec![json!({"type": "text", "content": text})]))
            }
            Err(error) => Err(format!("`{key}`: expected a list as JSON: {error}")),
        },
        Some(_) => Err(format!("`{key}`: expected a list")),
    }
}

fn tokens(attributes: &Fields, key: &str) -> Result<Option<u32>, String> {
    let number = match attributes.get(key) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(number)) => number.as_f64(),
        Some(Value::String(text)) => text.parse().ok(),
        Some(_) => None,
    };
    match number {
        Some(number) if (0.0..=f64::from(u32::MAX)).contains(&number) => {
            Ok(Some(number as u32).filter(|tokens| *tokens > 0))
        }
        _ => Err(format!("`{key}`: expected a number of tokens")),
    }
}

fn conversation(system: Option<Vec<Value>>, input: Vec<Value>) -> Result<Vec<Message>, String> {
    let mut all = Vec::new();
    if let Some(parts) = system.filter(|parts| !parts.is_empty()) {
        let instructions = message(json!({"role": "system", "parts": parts}));
        all.extend(instructions.map_err(|cause| format!("`gen_ai.system_instructions`: {cause}"))?);
    }
    for (index, each) in input.into_iter().enumerate() {
        let read = message(each);
        all.extend(read.map_err(|cause| format!("`gen_ai.input.messages[{index}]`: {cause}"))?);
    }
    Ok(all)
}

/// A message: of the conventions, `{"role": "user", "parts": [{"type": "text", "content": "…"}]}`,
/// or of the OpenAI API. Each of several tools' results in one message becomes a message.
fn message(value: Value) -> Result<Vec<Message>, String> {
    let Value::Object(mut fields) = value else { return Err("expected an object".to_owned()) };
    fields.remove("finish_reason");
    let Some(parts) = fields.remove("parts") else {
        return Ok(vec![messages::message(Value::Object(fields))?]);
    };
    let Value::Array(parts) = parts else { return Err("`parts`: expected a list".to_owned()) };
    let role = match fields.get("role") {
        Some(Value::String(name)) => messages::role(name)?,
        _ => return Err("`role` is missing".to_owned()),
    };
    let (mut texts, mut calls, mut results, mut reasoning) =
        (Vec::new(), Vec::new(), Vec::new(), String::new());
    for (index, part) in parts.into_iter().enumerate() {
        let Value::Object(mut part) = part else {
            return Err(format!("`parts[{index}]`: expected an object"));
        };
        let kind = part.remove("type");
        let content = part.remove("content");
        let text = || match &content {
            Some(Value::String(text)) => Ok(text.clone()),
            _ => Err(format!("`parts[{index}]`: expected a text as `content`")),
        };
        match kind.as_ref().and_then(Value::as_str) {
            Some("text") => texts.push(Part::Text(text()?)),
            Some("reasoning" | "thinking") => reasoning.push_str(&text()?),
            Some("tool_call") => calls.push(call(part)),
            Some("tool_call_response") => results.push(result(part, content)),
            other => {
                return Err(format!(
                    "`parts[{index}]` is of type `{}`; expected `text`, `reasoning`, `tool_call` or \
                     `tool_call_response`",
                    messages::shortened(other.unwrap_or("none"))
                ));
            }
        }
    }
    if !results.is_empty() && texts.is_empty() && calls.is_empty() {
        return Ok(results);
    }
    let mut extra = Fields::new();
    if !reasoning.is_empty() {
        extra.insert("reasoning_content".to_owned(), Value::String(reasoning));
    }
    if !calls.is_empty() {
        extra.insert("tool_calls".to_owned(), Value::Array(calls));
    }
    if texts.is_empty() {
        texts.push(Part::Text(String::new()));
    }
    results.push(Message { role, parts: texts, extra: object(extra) });
    Ok(results)
}

/// A call of a tool, as the OpenAI API has it.
fn call(mut part: Fields) -> Value {
    let arguments = match part.remove("arguments") {
        None | Some(Value::Null) => "{}".to_owned(),
        Some(Value::String(text)) => text,
        Some(value) => value.to_string(),
    };
    json!({"id": part.remove("id"), "type": "function",
        "function": {"name": part.remove("name"), "arguments": arguments}})
}

fn result(mut part: Fields, content: Option<Value>) -> Message {
    let keys = ["response", "result"];
    let result = keys.iter().find_map(|key| part.remove(*key)).or(content);
    let text = match result {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text,
        Some(value) => value.to_string(),
    };
    let mut extra = Fields::new();
    if let Some(id) = part.remove("id").filter(|id| !id.is_null()) {
        extra.insert("tool_call_id".to_owned(), id);
    }
    Message { extra: object(extra), ..Message::text(Role::Tool, text) }
}

/// A time in nanoseconds since 1970: as text of RFC 3339, or as a number of seconds, milliseconds,
/// microseconds or nanoseconds, told apart by their size.
fn time(fields: &Fields, keys: &[&str]) -> Result<Option<u64>, String> {
    for key in keys {
        let wrong = || {
            format!(
                "`{key}`: expected a time such as `2026-01-31T12:00:00.5Z`, or nanoseconds since 1970"
            )
        };
        let Some(value) = fields.get(*key).filter(|value| !value.is_null()) else { continue };
        let whole = value.as_u64().or_else(|| value.as_str()?.parse().ok());
        // A double has not enough digits for nanoseconds.
        if whole.is_some_and(|whole| whole >= 100_000_000_000_000_000) {
            return Ok(whole);
        }
        let Some(number) = whole.map(|whole| whole as f64).or_else(|| value.as_f64()) else {
            let nanos = value.as_str().and_then(instant);
            let nanos = nanos.and_then(|nanos| u64::try_from(nanos).ok());
            return nanos.map(Some).ok_or_else(wrong);
        };
        if !(0.0..1e19).contains(&number) {
            return Err(wrong());
        }
        let scale = match number {
            ..1e11 => 1e9,
            ..1e14 => 1e6,
            ..1e17 => 1e3,
            _ => 1.0,
        };
        return Ok(Some((number * scale).round() as u64));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanoseconds(value: Value) -> Option<u64> {
        let fields = Fields::from_iter([("start_time".to_owned(), value)]);
        time(&fields, &["start_time"]).ok().flatten()
    }

    #[test]
    fn times_are_read_in_every_unit() {
        let noon = 1_769_860_800_500_000_000;
        for value in [
            json!("2026-01-31T12:00:00.5Z"),
            json!("2026-01-31T13:00:00.500+01:00"),
            json!("2026-01-31T06:30:00.5-0530"),
            json!("2026-01-31 12:00:00.500000"),
            json!(1_769_860_800.5),
            json!(1_769_860_800_500_u64),
            json!(1_769_860_800_500_000_u64),
            json!(1_769_860_800_500_000_000_u64),
            json!("1769860800500000000"),
        ] {
            assert_eq!(nanoseconds(value.clone()), Some(noon), "{value}");
        }
        assert_eq!(nanoseconds(json!("1970-01-01T00:00:00Z")), Some(0));
        assert_eq!(nanoseconds(json!("2000-02-29T00:00:00Z")), Some(951_782_400_000_000_000));
        for value in [
            json!("yesterday"),
            json!("2026-13-01T00:00:00Z"),
            json!("2026-01-01T00:00:00+x"),
            json!(-1),
            json!(true),
        ] {
            assert_eq!(nanoseconds(value.clone()), None, "{value}");
        }
    }

    #[test]
    fn messages_of_the_conventions_become_api_messages() {
        let read = |value| message(value).expect("a message");
        assert_eq!(
            read(json!({"role": "assistant", "finish_reason": "stop", "parts": [
                {"type": "reasoning", "content": "hm"}, {"type": "text", "content": "a"},
                {"type": "tool_call", "id": "1", "name": "ls", "arguments": {"path": "."}}]})),
            [Message {
                extra: Some(
                    r#"{"reasoning_content":"hm","tool_calls":[{"id":"1","type":"function","function":{"name":"ls","arguments":"{\"path\":\".\"}"}}]}"#
                        .to_owned()
                ),
                ..Message::text(Role::Assistant, "a")
            }]
        );
        let results = read(json!({"role": "tool", "parts": [
            {"type": "tool_call_response", "id": "1", "response": "a.txt"},
            {"type": "tool_call_response", "id": "2", "result": {"ok": true}}]}));
        assert_eq!(results.len(), 2);
        assert_eq!(results[1].extra.as_deref(), Some(r#"{"tool_call_id":"2"}"#));
        assert_eq!(results[1].parts, [Part::Text("{\"ok\":true}".to_owned())]);
        assert_eq!(read(json!({"role": "user", "content": "b"})), [Message::text(Role::User, "b")]);
    }

    #[test]
    fn spans_of_otlp_are_unwrapped_and_others_left_out() {
        let fields = |value: Value| match value {
            Value::Object(fields) => fields,
            _ => panic!("expected an object"),
        };
        let read = span(fields(json!({"traceId": "t", "startTimeUnixNano": "1769860800500000000",
            "endTimeUnixNano": "1769860801500000000", "attributes": [
                {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "12"}},
                {"key": "gen_ai.input.messages", "value": {"stringValue": "[{\"role\":\"user\",\"content\":\"a\"}]"}}]})))
        .expect("a span")
        .expect("a request");
        assert_eq!(read.input, Some(vec![Message::text(Role::User, "a")]));
        assert_eq!(read.input_tokens, Some(12));
        assert_eq!(read.end.map(|end| end - read.start), Some(1_000_000_000));
        for attributes in [
            json!({"gen_ai.operation.name": "invoke_agent", "gen_ai.usage.input_tokens": 5}),
            json!({"http.method": "POST"}),
        ] {
            let other = span(fields(json!({"start_time": 0, "attributes": attributes})));
            assert!(matches!(other, Ok(None)));
        }
    }
}

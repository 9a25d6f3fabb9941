//! The calls of an answer, from the text of its tool calls: JSON values one after another, which
//! are the calls of OpenAI's API as they are streamed. Pieces with the same `index` belong
//! together; their `arguments` are joined.

use serde_json::{Map, Value};

const MOST_CALLS: usize = 1000;

#[derive(Debug, PartialEq)]
pub struct Call {
    pub name: String,
    pub arguments: Map<String, Value>,
}

/// A call whose arguments may still be pieces of text.
#[derive(Default)]
struct Pieces {
    index: Option<u64>,
    name: String,
    text: String,
    table: Option<Map<String, Value>>,
}

/// Reads the calls; `None` if any is malformed.
#[must_use]
pub fn read(text: &str) -> Option<Vec<Call>> {
    pieces(text)?.into_iter().map(Pieces::finish).collect()
}

/// Reads the calls that are whole.
#[must_use]
pub fn whole(text: &str) -> Vec<Call> {
    pieces(text).into_iter().flatten().filter_map(Pieces::finish).collect()
}

fn pieces(text: &str) -> Option<Vec<Pieces>> {
    let mut calls: Vec<Pieces> = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        match value.ok()? {
            Value::Array(values) => values.iter().try_for_each(|value| add(&mut calls, value))?,
            value => add(&mut calls, &value)?,
        }
    }
    Some(calls)
}

/// Adds a piece to the call that it belongs to, or begins a new one.
fn add(calls: &mut Vec<Pieces>, value: &Value) -> Option<()> {
    let function = value.get("function").unwrap_or(value);
    let index = value.get("index").or_else(|| function.get("index")).and_then(Value::as_u64);
    let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
    let is_new = match index {
        // The same index with another name: some servers number every call 0.
        Some(_) => !calls.iter().any(|call| {
            call.index == index && (name.is_empty() || call.name.is_empty() || !call.is_whole())
        }),
        None => !name.is_empty() || calls.is_empty(),
    };
    if is_new {
        if calls.len() == MOST_CALLS {
            return None;
        }
        calls.push(Pieces { index, ..Pieces::default() });
    }
    let call = match index {
        Some(_) => calls.iter_mut().rfind(|call| call.index == index),
        None => calls.last_mut(),
    }?;
    call.name.push_str(name);
    match function.get("arguments") {
        Some(Value::String(piece)) => call.text.push_str(piece),
        Some(Value::Object(table)) => call.table = Some(table.clone()),
        None | Some(Value::Null) => {}
        Some(_) => return None,
    }
    Some(())
}

impl Pieces {
    fn is_whole(&self) -> bool {
        self.table.is_some() || serde_json::from_str::<Map<String, Value>>(&self.text).is_ok()
    }

    fn finish(self) -> Option<Call> {
        let arguments = match self.table {
            Some(table) => table,
            // A tool without parameters.
            None if self.text.trim().is_empty() => Map::new(),
            None => serde_json::from_str(&self.text).ok()?,
        };
        (!self.name.is_empty()).then_some(Call { name: self.name, arguments })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(text: &str) -> Option<Vec<(String, Value)>> {
        let calls = read(text)?.into_iter();
        Some(calls.map(|call| (call.name, Value::Object(call.arguments))).collect())
    }

    #[test]
    fn pieces_of_calls_that_are_streamed_are_joined() {
        let text = concat!(
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":""}}"#,
            r#"{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}"#,
            r#"{"index":0,"function":{"arguments":"{\"x\":"}}{"index":0,"function":{"arguments":"1}"}}"#,
        );
        let expected = vec![("f".to_owned(), json!({"x": 1})), ("g".to_owned(), json!({}))];
        assert_eq!(found(text), Some(expected));
    }

    #[test]
    fn whole_calls_are_read_alone_and_in_lists() {
        let wanted = || Some(vec![("f".to_owned(), json!({"x": 1})), ("g".to_owned(), json!({}))]);
        let list = r#"[{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}},{"function":{"name":"g"}}]"#;
        assert_eq!(found(list), wanted());
        let tables = r#"{"function":{"index":0,"name":"f","arguments":{"x":1}}} {"name":"g","arguments":{}}"#;
        assert_eq!(found(tables), wanted());
        let one_index = r#"{"index":0,"function":{"name":"f","arguments":{"x":1}}}{"index":0,"function":{"name":"g","arguments":"{}"}}"#;
        assert_eq!(found(one_index), wanted());
    }

    #[test]
    fn text_without_a_call_is_not_read() {
        for text in
            ["{", "x", r#"{"function":{}}"#, r#"{"function":{"name":"f","arguments":"[1]"}}"#, "3"]
        {
            assert_eq!(found(text), None, "{text}");
        }
        assert_eq!(found(""), Some(Vec::new()));
        let cut = r#"{"name":"f","arguments":"{"}{"name":"g","arguments":"{}"}"#;
        assert_eq!(found(cut), None);
        assert_eq!(whole(cut), [Call { name: "g".to_owned(), arguments: Map::new() }]);
    }
}

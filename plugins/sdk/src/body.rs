//! A request's JSON body. Its keys keep the order in which they were set, so that the same request
//! gives the same bytes; the user's own fields are merged over it.

use serde::ser::{Error as _, SerializeMap};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::Error;

/// A JSON object under construction.
#[derive(Clone, Debug, Default)]
pub struct Body {
    fields: Vec<(String, String)>,
}

/// As an object, so that a body can be a field of another body.
impl Serialize for Body {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.fields.len()))?;
        for (key, text) in &self.fields {
            let value = RawValue::from_string(text.clone()).map_err(S::Error::custom)?;
            map.serialize_entry(key, &value)?;
        }
        map.end()
    }
}

impl Body {
    /// An empty object.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a field; an existing field keeps its place. A value that cannot be JSON (a map whose
    /// keys are not strings) becomes `null`.
    pub fn set(&mut self, key: &str, value: impl Serialize) -> &mut Self {
        let text = serde_json::to_string(&value).unwrap_or_else(|_| "null".to_owned());
        match self.fields.iter_mut().find(|(known, _)| known == key) {
            Some((_, known)) => *known = text,
            None => self.fields.push((key.to_owned(), text)),
        }
        self
    }

    /// Sets a field if there is a value; otherwise leaves it to the server.
    pub fn set_some(&mut self, key: &str, value: Option<impl Serialize>) -> &mut Self {
        if let Some(value) = value {
            self.set(key, value);
        }
        self
    }

    /// Sets a list if it has items; otherwise leaves it to the server.
    pub fn set_list<T: Serialize>(&mut self, key: &str, list: &[T]) -> &mut Self {
        self.set_some(key, Some(list).filter(|list| !list.is_empty()))
    }

    /// Removes a field.
    pub fn remove(&mut self, key: &str) -> &mut Self {
        self.fields.retain(|(known, _)| known != key);
        self
    }

    /// Merges further fields, a JSON object, over these. If both sides have an object, the two are
    /// merged, so that one field of `sampling_params` can be set without repeating the others.
    /// Otherwise the user's value wins, even `null`.
    ///
    /// # Errors
    /// [`Error::InvalidConfig`] if it is not a JSON object.
    pub fn merge(&mut self, extra: Option<&str>) -> Result<&mut Self, Error> {
        let Some(extra) = extra else { return Ok(self) };
        let extra: Map<String, Value> = serde_json::from_str(extra).map_err(|error| {
            Error::InvalidConfig(format!(
                "expected a JSON object such as {{\"top_p\": 0.9}}: {error}"
            ))
        })?;
        for (key, value) in extra {
            let known = self.fields.iter().find(|(known, _)| *known == key);
            let merged = match (known, value) {
                (Some((_, known)), value @ Value::Object(_)) if known.starts_with('{') => {
                    match serde_json::from_str(known) {
                        Ok(known) => merged(known, value),
                        Err(_) => value,
                    }
                }
                (_, value) => value,
            };
            self.set(&key, merged);
        }
        Ok(self)
    }

    /// The fields in their order, each with its value as JSON text.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        let fields = self.fields.iter();
        fields.map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// The object as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(
            2 + self.fields.iter().map(|(key, value)| key.len() + value.len() + 4).sum::<usize>(),
        );
        for (key, value) in &self.fields {
            bytes.push(if bytes.is_empty() { b'{' } else { b',' });
            bytes.extend_from_slice(Value::from(key.as_str()).to_string().as_bytes());
            bytes.push(b':');
            bytes.extend_from_slice(value.as_bytes());
        }
        if bytes.is_empty() {
            bytes.push(b'{');
        }
        bytes.push(b'}');
        bytes
    }
}

/// Merges `over` into `under`, recursively if both are objects.
fn merged(under: Value, over: Value) -> Value {
    match (under, over) {
        (Value::Object(mut under), Value::Object(over)) => {
            for (key, value) in over {
                let value = match under.get_mut(&key) {
                    Some(known) => merged(known.take(), value),
                    None => value,
                };
                under.insert(key, value);
            }
            Value::Object(under)
        }
        (_, over) => over,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(body: &Body) -> String {
        String::from_utf8(body.to_bytes()).unwrap()
    }

    #[test]
    fn keys_keep_the_order_in_which_they_were_set() {
        let mut body = Body::new();
        body.set("model", "m").set_some("temperature", Some(0.0));
        body.set_some("seed", None::<u32>).set("stream", true);
        body.set("model", "n");
        assert_eq!(text(&body), r#"{"model":"n","temperature":0.0,"stream":true}"#);
        assert_eq!(text(&Body::new()), "{}");
    }

    #[test]
    fn a_body_can_be_a_field_of_another() {
        let (mut inner, mut outer) = (Body::new(), Body::new());
        inner.set("z", 1).set("a", "x");
        outer.set("input", &inner).set("stream", true);
        assert_eq!(text(&outer), r#"{"input":{"z":1,"a":"x"},"stream":true}"#);
    }

    #[test]
    fn the_users_fields_win_and_objects_merge() {
        let mut body = Body::new();
        body.set("a", 1);
        body.set("params", serde_json::json!({"n": 1, "deep": {"x": 1}}));
        body.merge(Some(r#"{"b":[2],"params":{"m":2,"deep":{"x":null}},"a":null}"#)).unwrap();
        assert_eq!(text(&body), r#"{"a":null,"params":{"n":1,"deep":{"x":null},"m":2},"b":[2]}"#);
    }

    #[test]
    fn an_overlay_must_be_an_object() {
        let error = Body::new().merge(Some("[1]")).unwrap_err();
        assert!(matches!(error, Error::InvalidConfig(message) if message.contains("JSON object")));
    }
}

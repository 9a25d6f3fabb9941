//! Secret values in the fields that the user adds to the body of requests (`request.extra-body`).
//! The backend plugin gets names for them, and the host puts the values in after `encode`, as it
//! does with the key.

use std::cell::RefCell;

use model::redact;
use serde_json::Value;

/// The names that stand for values, and the values.
#[derive(Default)]
pub(crate) struct MaskedSecrets {
    values: Vec<(String, Value)>,
}

impl MaskedSecrets {
    /// Takes the secret values out of the fields that the plugin gets.
    pub fn mask(extra_body: &mut Option<String>) -> Self {
        let mut masked = MaskedSecrets::default();
        let body = extra_body.as_ref();
        let Some(mut body) = body.and_then(|body| serde_json::from_str::<Value>(body).ok()) else {
            return masked;
        };
        let values = RefCell::new(Vec::new());
        redact::fields(&mut body, &|value| {
            let name = format!("runner-secret-{}-value", values.borrow().len());
            values.borrow_mut().push((name.clone(), value.clone()));
            name
        });
        masked.values = values.into_inner();
        if !masked.values.is_empty() {
            *extra_body = Some(body.to_string());
        }
        masked
    }

    /// Puts the values where the plugin wrote their names.
    pub fn restore(&self, mut body: Vec<u8>) -> Vec<u8> {
        for (name, value) in &self.values {
            let quoted = format!("\"{name}\"");
            body = replaced(body, quoted.as_bytes(), value.to_string().as_bytes());
        }
        body
    }
}

fn replaced(text: Vec<u8>, from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut new = Vec::new();
    let mut rest = &text[..];
    while let Some(at) = rest.windows(from.len()).position(|part| part == from) {
        new.extend_from_slice(&rest[..at]);
        new.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    if new.is_empty() {
        return text;
    }
    new.extend_from_slice(rest);
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_see_names_of_secrets_servers_see_values() {
        let body = r#"{"api_key":"a\"b","n":1,"user":{"hf_token":7,"name":"x"}}"#;
        let mut text = Some(body.to_owned());
        let masked = MaskedSecrets::mask(&mut text);
        let text = text.unwrap();
        assert!(!text.contains("a\\\"b") && !text.contains('7'), "{text}");
        assert!(text.contains(r#""n":1"#) && text.contains(r#""name":"x""#), "{text}");
        let lifted = masked.restore(text.into_bytes());
        assert_eq!(String::from_utf8(lifted).unwrap(), body);
        let mut plain = Some(r#"{ "n": 1 }"#.to_owned());
        assert!(MaskedSecrets::mask(&mut plain).values.is_empty());
        assert_eq!(plain.as_deref(), Some(r#"{ "n": 1 }"#));
    }
}

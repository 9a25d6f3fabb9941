//! The plan as the processes of a fleet compare it: a digest, and its parts for messages.
//!
//! Both hold the digests of plugins, of the dataset's files and of the tokenizer, and no paths.

use std::collections::BTreeMap;

use model::hex;
use runs::folder::without_secrets;
use scenario::plan::Plan;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The longest part of a plan that is sent to rank 0 as it is, in bytes.
const LONGEST_PART: usize = 200;

/// The digest that the plans of all processes must have.
///
/// # Errors
/// If the plan cannot be written as JSON, which is a bug.
pub(super) fn digest(plan: &Plan) -> Result<String, serde_json::Error> {
    let text = serde_json::to_string(&plan.shared())?;
    Ok(hex(&Sha256::digest(text)))
}

/// The parts of a plan by their names, as text and without secrets, for messages about what
/// differs.
pub(super) fn parts(plan: &Plan) -> BTreeMap<String, String> {
    let mut parts = BTreeMap::new();
    flatten("", &without_secrets(&plan.shared()), &mut parts);
    parts
}

fn flatten(name: &str, value: &Value, parts: &mut BTreeMap<String, String>) {
    let below = |key: &str| match name {
        "" => key.to_owned(),
        name => format!("{name}.{key}"),
    };
    match value {
        Value::Object(fields) => {
            (fields.iter()).for_each(|(key, value)| flatten(&below(key), value, parts))
        }
        Value::String(text) if text.len() <= LONGEST_PART => {
            parts.insert(name.to_owned(), text.clone());
        }
        value => {
            let text = value.to_string();
            let part = match text.len() <= LONGEST_PART {
                true => text,
                // Long texts are compared and not shown.
                false => format!("a text with the SHA-256 {}", hex(&Sha256::digest(text))),
            };
            parts.insert(name.to_owned(), part);
        }
    }
}

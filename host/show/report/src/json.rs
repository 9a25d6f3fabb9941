//! Documents as JSON. A figure that was not measured has no key.

use model::clean;
use serde::Serialize;

/// A document as indented JSON with a newline at its end, without control characters.
pub fn json(document: &impl Serialize) -> serde_json::Result<String> {
    let json = serde_json::to_string_pretty(document)?;
    Ok(clean::json(&json).into_owned() + "\n")
}

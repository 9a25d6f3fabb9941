//! The summary as JSON, indented. A figure that was not measured has no key. The schema is
//! `schemas/summary.schema.json`.

use model::clean;
use result::summary::Summary;

/// The summary as indented JSON with a newline at its end. Errors: only if a value cannot be
/// represented in JSON, which no summary contains.
pub fn json(summary: &Summary) -> serde_json::Result<String> {
    let json = serde_json::to_string_pretty(summary)?;
    Ok(clean::json(&json).into_owned() + "\n")
}

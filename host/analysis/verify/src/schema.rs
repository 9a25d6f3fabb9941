//! The JSON Schema of a card, generated from the types that write it. A test keeps the copy in
//! `schemas/` equal to it; `runner schema` prints this copy.

use schemars::schema_for;

use crate::card::Card;

/// The names of the schemas, for the output of `runner verify --format json`.
pub const NAMES: [&str; 1] = ["verify"];

/// The schema of that name as indented JSON with a newline at its end; `None` if there is none.
pub fn schema(name: &str) -> Option<String> {
    let schema = match name {
        "verify" => schema_for!(Card),
        _ => return None,
    };
    let text = serde_json::to_string_pretty(&schema);
    text.ok().map(|text| text + "\n")
}

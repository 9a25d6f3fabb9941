//! JSON Schemas of a lab's files, generated from the types that write the files. Tests keep the
//! copies in `schemas/` equal; `runner schema` prints the copies.

use schemars::schema_for;

use crate::findings::LabReport;
use crate::journal::Event;
use crate::walk::SavedLab;

/// The names of the schemas: `lab.json`, a line of `journal.jsonl`, `lab-report.json`.
pub const NAMES: [&str; 3] = ["lab", "lab-event", "lab-report"];

/// The schema of that name as indented JSON with a newline at its end; `None` if there is none.
pub fn schema(name: &str) -> Option<String> {
    let schema = match name {
        "lab" => schema_for!(SavedLab),
        "lab-event" => schema_for!(Event),
        "lab-report" => schema_for!(LabReport),
        _ => return None,
    };
    let text = serde_json::to_string_pretty(&schema);
    text.ok().map(|text| text + "\n")
}

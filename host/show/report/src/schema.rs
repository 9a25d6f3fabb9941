//! JSON Schemas of the result files, generated from their types. Tests keep the copies in
//! `schemas/` equal to them; `runner schema` prints these copies.

use schemars::{Schema, schema_for};

use crate::search::{Saved, Searched};
use crate::sweep::{self, Sweep};
use compare::Compared;
use compare::agreed::Agreed;
use compare::explain::Explained;
use compare::variation::Repeats;
use model::exchange::Exchange;
use result::summary::Summary;
use runs::outlook::Outlook;
use runs::probe::Probe;

/// A schema's name, and the function that makes the schema.
pub type NamedSchema = (&'static str, fn() -> Schema);

pub const SCHEMAS: &[NamedSchema] = &[
    ("summary", || schema_for!(Summary)),
    ("exchange", || schema_for!(Exchange)),
    ("devices", || schema_for!(devices::Entry)),
    ("server-series", || schema_for!(series::Entry)),
    ("audit", || schema_for!(audit::Report)),
    ("comparison", || schema_for!(Compared)),
    ("explain", || schema_for!(Explained)),
    ("agreement", || schema_for!(Agreed)),
    ("repeats", || schema_for!(Repeats)),
    ("outlook", || schema_for!(Outlook)),
    ("probe", || schema_for!(Probe)),
    ("sweep", || schema_for!(sweep::Result)),
    ("sweep-file", || schema_for!(Saved<Sweep>)),
    ("search", || schema_for!(::search::Answer)),
    ("search-file", || schema_for!(Saved<Searched>)),
    #[cfg(feature = "studies")]
    ("trend", || schema_for!(trend::Trends)),
];

/// The schema of that name as indented JSON with a newline at its end; `None` if there is none.
pub fn schema(name: &str) -> Option<String> {
    let (_, schema) = SCHEMAS.iter().find(|(known, _)| *known == name)?;
    serde_json::to_string_pretty(&schema()).ok().map(|text| text + "\n")
}

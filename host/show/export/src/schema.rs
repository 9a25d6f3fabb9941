//! The columns of a table: their names, types, units and descriptions, and the table's metadata on
//! its runs.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use serde_json::json;

use super::{ExportError, Run, Table};

/// The key of a column's unit in its metadata; empty where it has none.
const UNIT: &str = "unit";
/// The key of a column's description, which is the definition of a metric.
const DESCRIPTION: &str = "description";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Text,
    Flag,
    /// Whole numbers, with a sign, so that a difference may be below zero.
    Whole,
    Number,
    Wholes,
}

#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) name: String,
    pub(crate) kind: Type,
    unit: &'static str,
    about: &'static str,
}

impl Head {
    pub(crate) fn new(
        name: impl Into<String>,
        kind: Type,
        unit: &'static str,
        about: &'static str,
    ) -> Self {
        Head { name: name.into(), kind, unit, about }
    }

    /// A column of words, which has no unit.
    pub(crate) fn text(name: impl Into<String>, about: &'static str) -> Self {
        Head::new(name, Type::Text, "", about)
    }

    pub(crate) fn run() -> Self {
        Head::text("run", "the run, by the name of its folder")
    }

    fn field(&self) -> Field {
        let data = match self.kind {
            Type::Text => DataType::Utf8,
            Type::Flag => DataType::Boolean,
            Type::Whole => DataType::Int64,
            Type::Number => DataType::Float64,
            Type::Wholes => DataType::List(item()),
        };
        let about = [(UNIT, self.unit), (DESCRIPTION, self.about)];
        let about = about.map(|(key, value)| (key.to_owned(), value.to_owned()));
        Field::new(&self.name, data, true).with_metadata(HashMap::from(about))
    }
}

pub(crate) fn item() -> Arc<Field> {
    Arc::new(Field::new("item", DataType::Int64, true))
}

/// The schema of a table of these runs.
pub(crate) fn schema(
    table: Table,
    heads: &[Head],
    runs: &[Run<'_>],
) -> Result<SchemaRef, ExportError> {
    let runs: Vec<_> = runs
        .iter()
        .map(|run| {
            let summary = &run.reported.summary;
            json!({
                "run": run.label,
                "name": run.reported.plan.name,
                "runner": run.reported.plan.runner,
                "started": run.reported.status.as_ref().map(|status| &status.started),
                "verdict": summary.verdict,
                "findings": summary.findings,
            })
        })
        .collect();
    let about = [
        ("table", table.name().to_owned()),
        ("program", concat!("runner ", env!("CARGO_PKG_VERSION")).to_owned()),
        ("runs", serde_json::Value::from(runs).to_string()),
    ];
    let about = about.map(|(key, value)| (key.to_owned(), value));
    let fields: Vec<Field> = heads.iter().map(Head::field).collect();
    Ok(Arc::new(Schema::new_with_metadata(fields, HashMap::from(about))))
}

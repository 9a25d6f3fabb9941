//! Facts as text for people: sizes, times, tables of keys.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::author::keys::{Key, wrapped};

/// A size in readable units.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..10_485_760 => format!("{} KiB", bytes.div_ceil(1024)),
        _ => format!("{} MiB", bytes.div_ceil(1 << 20)),
    }
}

/// A duration in readable units.
pub fn time(duration: Duration) -> String {
    match duration.as_nanos() {
        0..1_000_000 => format!("{:.1} µs", duration.as_secs_f64() * 1e6),
        1_000_000..1_000_000_000 => format!("{:.1} ms", duration.as_secs_f64() * 1e3),
        _ => format!("{:.1} s", duration.as_secs_f64()),
    }
}

/// Configuration keys, one paragraph each, with the keys of their tables below. A table that several keys take is listed
/// at the first of them.
pub fn keys(keys: &[Key]) -> String {
    let mut text = String::new();
    listed(keys, "", 1, &mut BTreeMap::new(), &mut text);
    text
}

/// Lists the keys of a table, which is that of the key `within`; `seen` says at which key a table was listed.
fn listed(
    keys: &[Key],
    within: &str,
    indent: usize,
    seen: &mut BTreeMap<String, String>,
    text: &mut String,
) {
    let (margin, deeper) = ("  ".repeat(indent), "  ".repeat(indent + 2));
    for key in keys {
        let default = match (&key.default, key.required) {
            (Some(default), _) => format!(", default {default}"),
            (None, true) => ", required".to_owned(),
            (None, false) => ", optional".to_owned(),
        };
        *text += &format!("{margin}{}: {}{default}\n", key.key, key.kind);
        if let Some(description) = &key.description {
            *text += &wrapped(description, &deeper);
        }
        let Some(table) = &key.inner else {
            continue;
        };
        let path = match within {
            "" => key.key.clone(),
            within => format!("{within}.{}", key.key),
        };
        if let Some(name) = &table.name {
            if let Some(first) = seen.get(name) {
                *text += &format!("{deeper}Its table has the keys of `{first}`.\n");
                continue;
            }
            seen.insert(name.clone(), path.clone());
        }
        *text += &format!("{deeper}Keys of its table:\n");
        listed(&table.keys, &path, indent + 3, seen, text);
    }
}

/// The rows of a table. Each column is as wide as its widest cell; the last column is not padded.
pub fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::from(" ");
        for (cell, width) in row.iter().zip(&widths) {
            line += &format!(" {cell:<width$} ");
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn a_table_is_listed_where_it_is_first_taken() {
        let schema = json!({
            "$defs": { "Range": {
                "type": "object",
                "required": ["min"],
                "properties": { "min": { "type": "number", "description": "The least." } },
            } },
            "properties": {
                "input": { "anyOf": [{ "type": "number" }, { "$ref": "#/$defs/Range" }] },
                "output": { "$ref": "#/$defs/Range" },
            },
        });
        let text = super::keys(&crate::author::keys::keys(&schema));
        assert_eq!(
            text,
            concat!(
                "  input: number | table, optional\n",
                "      Keys of its table:\n",
                "        min: number, required\n",
                "            The least.\n",
                "  output: table, optional\n",
                "      Its table has the keys of `input`.\n",
            )
        );
    }
}

//! Facts as text for people: sizes, times, tables of keys.

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

/// Configuration keys, one paragraph each.
pub fn keys(keys: &[Key]) -> String {
    let mut text = String::new();
    for key in keys {
        let default = match (&key.default, key.required) {
            (Some(default), _) => format!(", default {default}"),
            (None, true) => ", required".to_owned(),
            (None, false) => ", optional".to_owned(),
        };
        text += &format!("  {}: {}{default}\n", key.key, key.kind);
        if let Some(description) = &key.description {
            text += &wrapped(description, "      ");
        }
    }
    text
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

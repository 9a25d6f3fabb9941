//! An explanation as text for people.

use std::fmt::Write;

use super::{Explained, Kind, Part, Range, Row};
use audit::figures::shown;
use audit::text::wrapped;

pub fn text(explained: &Explained) -> String {
    let mut out = String::new();
    for side in &explained.sides {
        wrapped(&mut out, &format!("{}  ", side.name), "   ", &side.source);
        wrapped(&mut out, "   ", "   ", &side.described);
        for doubt in &side.doubts {
            wrapped(&mut out, "   ", "     ", doubt);
        }
    }
    summary(&mut out, explained);
    if !explained.differences.is_empty() {
        out.push_str("\nDifferences:\n");
        for setting in &explained.differences {
            let first = format!("  {:<10}  ", setting.kind.name());
            let words = match setting.kind {
                Kind::Definition => {
                    format!("{}: A's is {}; B's is {}", setting.what, setting.a, setting.b)
                }
                _ => format!("{}: {} in A, {} in B", setting.what, setting.a, setting.b),
            };
            wrapped(&mut out, &first, "              ", &words);
        }
    }
    if !explained.unknown.is_empty() {
        out.push_str("\nPossible differences:\n");
        for unknown in &explained.unknown {
            wrapped(&mut out, "  ", "    ", unknown);
        }
    }
    if explained.figures.is_empty() {
        out.push_str("\nThe two results have no figure in common.\n");
    }
    // Unseparated parts are the same for many figures.
    let mut notes: Vec<&str> = Vec::new();
    for row in &explained.figures {
        of_row(&mut out, row, &mut notes);
    }
    if !notes.is_empty() {
        out.push_str("\nNot separated, and so in the remainder:\n");
        for (number, note) in (1..).zip(&notes) {
            wrapped(&mut out, &format!("  [{number}] "), "      ", note);
        }
    }
    out.push_str(
        "\nA difference is B less A. Two measurements of one engine differ too: runner compare gives intervals.\n",
    );
    out
}

/// The share of A's figure up to which two measurements usually differ, and so may a remainder.
const SMALL: f64 = 0.03;

/// The figures in three groups: alike, explained by the parts, and with a remainder.
fn summary(out: &mut String, explained: &Explained) {
    let (mut alike, mut explains, mut left) = (Vec::new(), Vec::new(), Vec::new());
    for row in &explained.figures {
        let small = SMALL * row.a.abs();
        let Range { low, high } = row.remainder;
        let nearest = if low <= 0.0 && high >= 0.0 { 0.0 } else { low.abs().min(high.abs()) };
        if row.difference.abs() <= small {
            alike.push(row.figure.clone());
        } else if nearest <= small {
            let mut kinds: Vec<&str> = (row.parts.iter())
                .filter(|part| part.value.is_some())
                .map(|part| part.kind.name())
                .collect();
            kinds.dedup();
            explains.push(format!("{} ({})", row.figure, kinds.join(", ")));
        } else {
            let share = nearest.copysign(low) / row.a.abs() * 100.0;
            let of_a = share.is_finite().then(|| format!(" {share:+.0} %"));
            left.push(row.figure.clone() + &of_a.unwrap_or_default());
        }
    }
    if explained.figures.is_empty() {
        return;
    }
    out.push_str("\nIn short:\n");
    for (first, items) in [
        ("  within 3 %   ", &alike),
        ("  explained    ", &explains),
        ("  remains      ", &left),
        ("  equal        ", &explained.equal),
    ] {
        if !items.is_empty() {
            wrapped(out, first, "               ", &items.join(", "));
        }
    }
}

fn of_row<'e>(out: &mut String, row: &'e Row, notes: &mut Vec<&'e str>) {
    let (Row { figure, unit, .. }, apart) = (row, signed(row.difference));
    let [a, b] = [row.a, row.b].map(shown);
    let _ = writeln!(out, "\n{figure}: {a} {unit} in A, {b} {unit} in B, {apart} {unit}");
    for part in &row.parts {
        if let Some(value) = part.value {
            let first = format!("  {:<10}  {:<20}  ", part.kind.name(), ranged(value));
            let words = format!("{}: {}", part.how.name(), part.words);
            wrapped(out, &first, "              ", &words);
        }
    }
    let mut marks: Vec<usize> = (row.parts.iter())
        .filter(|part| part.value.is_none())
        .map(|part| note(part, notes))
        .collect();
    marks.sort_unstable();
    let marks: Vec<String> = marks.iter().map(|mark| format!("[{mark}]")).collect();
    let with = match marks.as_slice() {
        [] => String::new(),
        marks => format!(", with {}", marks.join(" ")),
    };
    let rest = ranged(row.remainder);
    let _ = writeln!(out, "  remainder   {rest:<20}  the engine, or unexplained{with}");
    if !row.places.is_empty() {
        out.push_str("  by the servers' own timings, the difference is at:\n");
    }
    for place in &row.places {
        let first = format!("    {:<22}  {:<10}  ", place.place, signed(place.difference));
        let [a, b] = [place.a, place.b].map(shown);
        let words = format!("{a} {unit} in A, {b} {unit} in B");
        wrapped(out, &first, "              ", &words);
    }
}

/// The number of a note, which is added if it is new.
fn note<'e>(part: &'e Part, notes: &mut Vec<&'e str>) -> usize {
    let words = part.words.as_str();
    let known = notes.iter().position(|note| *note == words);
    known.unwrap_or_else(|| {
        notes.push(words);
        notes.len() - 1
    }) + 1
}

/// A number with its sign.
fn signed(value: f64) -> String {
    let text = shown(value);
    match text.as_str() {
        "0" | "-0" => "0".to_owned(),
        _ if value > 0.0 => format!("+{text}"),
        _ => text,
    }
}

fn ranged(range: Range) -> String {
    let (low, high) = (signed(range.low), signed(range.high));
    if low == high { low } else { format!("{low} to {high}") }
}

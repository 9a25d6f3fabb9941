//! BurstGPT's and Azure's CSV: lengths and times, without hash ids.

use super::Format;
use super::row::{Content, NOTHING, Row, tokens};
use crate::config::Name;
use runner_plugin::date::instant;

fn needed(name: Name) -> [&'static str; 3] {
    match name {
        Name::Azure => ["timestamp", "contexttokens", "generatedtokens"],
        _ => ["timestamp", "request tokens", "response tokens"],
    }
}

pub(super) fn header(line: &[u8], name: Name) -> Result<Vec<String>, String> {
    let text = String::from_utf8_lossy(line);
    let columns: Vec<String> =
        fields(&text).into_iter().map(|column| column.trim().to_lowercase()).collect();
    let missing: Vec<&str> = needed(name)
        .into_iter()
        .filter(|column| !columns.iter().any(|found| found == column))
        .collect();
    if missing.is_empty() {
        return Ok(columns);
    }
    let example = match name {
        Name::Azure => "TIMESTAMP,ContextTokens,GeneratedTokens",
        _ => {
            "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type"
        }
    };
    Err(format!(
        "line 1 names no column `{}`; expected columns like `{example}`",
        missing.join("`, `")
    ))
}

pub(super) fn row(format: &Format, line: &[u8]) -> Result<Row, String> {
    let text = std::str::from_utf8(line).map_err(|_| "it is not UTF-8".to_owned())?;
    let values = fields(text);
    if values.len() != format.columns.len() {
        return Err(format!(
            "{} fields; expected {}, as line 1 names them",
            values.len(),
            format.columns.len()
        ));
    }
    let get = |column: &str| {
        let at = format.columns.iter().position(|found| found == column)?;
        let value = values.get(at)?.trim();
        (!value.is_empty()).then(|| value.to_owned())
    };
    let [time, input, output] = needed(format.name);
    let count = |column: &str| {
        let value = get(column).unwrap_or_default();
        let count = value.parse::<u64>().ok();
        // Tables that went through pandas have 12.0 for 12.
        count
            .or_else(|| value.strip_suffix(".0")?.parse().ok())
            .ok_or_else(|| format!("column `{column}` is `{value}`; expected a number of tokens"))
    };
    let cell = get(time).unwrap_or_default();
    let at = match cell.parse::<f64>() {
        Ok(units) if units.is_finite() => format.nanos(units)?,
        _ if format.name == Name::Azure => instant(&cell).ok_or_else(|| {
            format!("column `{time}` is `{cell}`; expected a time like `2023-11-16 18:17:03.97`")
        })?,
        _ => return Err(format!("column `{time}` is `{cell}`; expected a number")),
    };
    let (input, no_input) = tokens(input, count(input)?)?;
    let (output, no_output) = tokens(output, count(output)?)?;
    let burst = format.name == Name::Burstgpt;
    let took = get("elapsed time").filter(|_| burst);
    let took = took.and_then(|took| took.parse::<f64>().ok());
    let pictures = get("numimages").is_some_and(|count| count.trim_end_matches(".0") != "0");
    let class = if burst {
        get("model")
    } else if format.columns.iter().any(|column| column == "numimages") {
        Some(if pictures { "images" } else { "text" }.to_owned())
    } else {
        None
    };
    Ok(Row {
        time: Some(at),
        took: took.map(|took| format.nanos(took)).transpose()?,
        session: get("session id").filter(|_| burst),
        class,
        output: Some(output),
        content: Content::Tokens(input),
        repaired: (no_input || no_output).then_some(NOTHING),
        // BurstGPT's failed requests have no answer.
        unusable: (burst && no_output).then_some("a request that failed when it was recorded"),
        pictures,
        ..Row::default()
    })
}

/// The fields of a line; quotes may enclose one, and two stand for one within it.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut letters = line.trim_end_matches(['\r', '\n']).chars().peekable();
    while let Some(letter) = letters.next() {
        let last = fields.len() - 1;
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                fields[last].push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            _ => fields[last].push(letter),
        }
    }
    fields
}

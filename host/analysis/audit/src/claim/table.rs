//! The table that LMDeploy's benchmark appends a row to for each run: commas between, names in the
//! first line, whatever the file is called.

use serde_json::{Number, Value};

use super::json::Object;
use super::{Claim, ReadError, Source, Tool, flat, in_order};

/// Every row of such a table; `None` if the text is not such a table.
pub(super) fn read(file: &str, text: &str) -> Option<Result<Vec<Claim>, Vec<ReadError>>> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let (_, header) = lines.next()?;
    let names: Vec<&str> = header.split(',').map(str::trim).collect();
    if !(names.contains(&"completed") && names.contains(&"duration")) {
        return None;
    }
    let rows = lines.filter(|(_, line)| *line != header).map(|(index, line)| {
        let number = index + 1;
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        if cells.len() != names.len() {
            return Err(vec![ReadError {
                file: file.to_owned(),
                place: Some(format!("line {number}")),
                what: format!("the row has {} cells", cells.len()),
                expected: format!("expected {}, one for each name in the first line", names.len()),
            }]);
        }
        let row: Object = (names.iter().zip(cells))
            .filter(|(_, cell)| !matches!(*cell, "" | "nan" | "None"))
            .map(|(name, cell)| ((*name).to_owned(), value(cell)))
            .collect();
        let source = Source { file: file.to_owned(), line: Some(number), ..Source::default() };
        flat::read(&row, Tool::Lmdeploy, source).map(|claim| vec![claim])
    });
    Some(in_order(file, rows))
}

/// A cell as JSON would have it.
fn value(cell: &str) -> Value {
    if let Ok(number) = cell.parse::<u64>() {
        return number.into();
    }
    let number = cell.parse::<f64>().ok().and_then(Number::from_f64);
    number.map_or_else(|| Value::String(cell.to_owned()), Value::Number)
}

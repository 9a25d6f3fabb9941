//! Detection of tables, and of the separator of their cells, from their first lines.

use std::io::Cursor;

use records::{Cut, Records, cells};

use crate::columns::Header;
use crate::config::Format;
use crate::format::Names;

const SEPARATORS: [(u8, Format, &str); 3] =
    [(b',', Format::Csv, "comma"), (b';', Format::Csv, "semicolon"), (b'\t', Format::Tsv, "tab")];

/// The number of lines that are looked at.
const LINES: usize = 100;

/// The first lines of a file as a table.
struct Table {
    names: Vec<String>,
    header: Header,
    /// True if there are rows, and all have as many cells as there are names.
    even: bool,
    /// True if a separator is not followed by a space, as it is in a sentence.
    tight: bool,
}

/// True if a file without JSON is a table or text, from its beginning; also describes the detected
/// kind. `whole` says that this is the whole file.
pub fn detect(head: &[u8], whole: bool, header: Names<'_>) -> Result<(Format, String), String> {
    let read =
        |(separator, format, name)| Some((format, name, table(head, whole, separator, header)?));
    let tables: Vec<_> = SEPARATORS.into_iter().filter_map(read).collect();
    let named = |(_, _, table): &&(Format, &str, Table)| match table.header {
        Header::Configured => true,
        Header::Usual => table.names.iter().all(|name| is_plain(name)),
        Header::Unknown => false,
    };
    // Of equal ones, the first.
    let widest = tables.iter().filter(named).rev();
    if let Some((format, _, table)) = widest.max_by_key(|(_, _, table)| table.names.len()) {
        let kind = if *format == Format::Csv { "CSV" } else { "TSV" };
        return Ok((*format, format!("{kind} with {}", list(&table.names))));
    }
    let doubtful = tables.iter().find(|(_, _, table)| {
        table.even && table.names.len() > 1 && (table.header == Header::Usual || table.tight)
    });
    match doubtful {
        None => Ok((Format::Text, "text with a prompt a line".to_owned())),
        Some((format, separator, table)) => {
            let word = if *format == Format::Csv { "csv" } else { "tsv" };
            let many = table.names.len() - 1;
            Err(format!(
                "it could be a table or text: each of its lines has {many} {separator}{}; set `format = \"{word}\"` and \
                 `columns.prompt` if the first line names columns ({}), or `format = \"text\"` if each line is a prompt",
                if many == 1 { "" } else { "s" },
                list(&table.names)
            ))
        }
    }
}

/// Returns the separator of the cells in a CSV file that begins like this.
pub fn separator(head: &[u8], whole: bool, header: Names<'_>) -> u8 {
    let semicolons = table(head, whole, b';', header);
    let commas = table(head, whole, b',', header);
    let rank = |table: Option<Table>| {
        table.map(|table| (table.header != Header::Unknown, table.names.len()))
    };
    if rank(semicolons) > rank(commas) { b';' } else { b',' }
}

/// The first lines as a table; `None` if the first one is none.
fn table(head: &[u8], whole: bool, separator: u8, header: Names<'_>) -> Option<Table> {
    let mut records = Records::new(Box::new(Cursor::new(head.to_vec())), Cut::Quoted(separator));
    let mut lines = Vec::new();
    while lines.len() <= LINES
        && let Ok(Some(record)) = records.next_record()
    {
        lines.push(record.bytes);
    }
    // The last line may continue.
    if !whole && lines.len() <= LINES {
        lines.pop();
    }
    let (first, rows) = lines.split_first()?;
    let names = cells(first, separator).ok()?;
    let names: Vec<_> = names.iter().map(|name| name.trim().to_owned()).collect();
    let even = |row: &Vec<u8>| cells(row, separator).is_ok_and(|row| row.len() == names.len());
    let tight = |line: &Vec<u8>| {
        let mut pairs = line.windows(2);
        pairs.any(|pair| pair[0] == separator && pair[1] != b' ')
    };
    Some(Table {
        header: header(&names),
        even: !rows.is_empty() && rows.iter().all(even),
        tight: separator == b'\t' || lines.iter().any(tight),
        names,
    })
}

/// True if a name suits a column: one or two words.
fn is_plain(name: &str) -> bool {
    (1..=2).contains(&name.split_whitespace().count()) && !name.ends_with(['.', '?', '!', ':'])
}

fn list(names: &[String]) -> String {
    let shown = names.iter().take(20).map(|name| {
        let short: String = name.chars().take(40).collect();
        format!("`{short}`")
    });
    let shown: Vec<_> = shown.collect();
    let word = if names.len() == 1 { "the column" } else { "the columns" };
    format!("{word} {}", shown.join(", "))
}

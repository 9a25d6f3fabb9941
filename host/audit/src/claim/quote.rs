//! Where a page repeats figures of its results outside of them: cells of its tables, sentences that compare.

use super::page::Page;
use super::{Quote, number};

/// How pages name figures, by ours. The longer of two that begin alike comes first.
const NAMES: [(&str, &str); 9] = [
    ("Total TPS", "throughput.total-tokens-per-s"),
    ("Output TPS", "throughput.output-tokens-per-s"),
    ("Mean TPOT(ms)", "tpot.mean"),
    ("Mean TPOT (ms)", "tpot.mean"),
    ("Mean TPOT", "tpot.mean"),
    ("Mean TTFT(ms)", "ttft.mean"),
    ("Mean TTFT (ms)", "ttft.mean"),
    ("Mean TTFT", "ttft.mean"),
    ("Mean ITL(ms)", "itl.mean"),
];

/// A figure that was found.
struct Hit {
    at: usize,
    end: usize,
    figure: &'static str,
    value: f64,
}

/// Every such place of a page, in order.
pub(super) fn read(page: &Page<'_>) -> Vec<Quote> {
    let hits = hits(page);
    let mut quotes: Vec<Quote> = Vec::new();
    let mut index = 0;
    while let Some(first) = hits.get(index) {
        let cell = cell(page.text, first.at);
        // In a table, a cell is of one result; in a sentence, each figure may be of another.
        let together = hits[index..]
            .iter()
            .take_while(|hit| cell.as_ref().is_some_and(|cell| cell.end >= hit.end))
            .count()
            .max(1);
        let group = &hits[index..index + together];
        let words = match &cell {
            Some(cell) => cell.words(page.text),
            None => sentence(page.text, first),
        };
        let after = &page.text[group[0].end..];
        quotes.push(Quote {
            line: page.text[..first.at].matches('\n').count() + 1,
            words,
            row: cell.as_ref().map(|cell| cell.row.clone()),
            figures: group
                .iter()
                .map(|hit| (hit.figure.to_owned(), hit.value))
                .collect(),
            change: cell.as_ref().and_then(|_| change(after)),
        });
        index += together;
    }
    quotes
}

fn hits(page: &Page<'_>) -> Vec<Hit> {
    let text = page.text;
    let mut hits: Vec<Hit> = Vec::new();
    for (name, figure) in NAMES {
        for (at, _) in text.match_indices(name) {
            let inside = page
                .fences
                .iter()
                .any(|fence| (fence.start..fence.end).contains(&at));
            let block = page
                .spans
                .iter()
                .any(|span| (span.start..span.end).contains(&at));
            if inside || block {
                continue;
            }
            let rest = &text[at + name.len()..];
            let Some(behind) = rest.trim_start_matches(' ').strip_prefix([':', '=']) else {
                continue;
            };
            let value = behind.trim_start();
            let start = text.len() - value.len();
            let Some((length, found)) = leading(value) else {
                continue;
            };
            hits.push(Hit {
                at,
                end: start + length,
                figure,
                value: found,
            });
            // `15.12 ms vs 138.86 ms`
            let other = value[length..].strip_prefix(" ms vs ");
            if let Some((more, found)) = other.and_then(leading) {
                let at = start + length + " ms vs ".len();
                hits.push(Hit {
                    at,
                    end: at + more,
                    figure,
                    value: found,
                });
            }
        }
    }
    hits.sort_by_key(|hit| hit.at);
    hits
}

/// The number that a text begins with, and its length.
fn leading(text: &str) -> Option<(usize, f64)> {
    let length = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ','))
        .unwrap_or(text.len());
    let digits = text[..length].trim_end_matches(['.', ',']);
    let stated = number::read(digits).ok()??;
    Some((digits.len(), stated.value))
}

/// The change in percent after a figure, in brackets: `(+15.59%)`.
fn change(after: &str) -> Option<f64> {
    let inner = after.trim_start().strip_prefix('(')?;
    let (percent, _) = inner.split_once('%')?;
    percent.trim_start_matches('+').parse().ok()
}

/// A cell of a table.
struct Cell {
    start: usize,
    end: usize,
    /// The first cell of its row.
    row: String,
    /// The header of its column.
    column: Option<String>,
}

impl Cell {
    fn words(&self, text: &str) -> String {
        let cell = plain(&text[self.start..self.end]);
        let column = self
            .column
            .as_ref()
            .map(|column| format!(", {column}"))
            .unwrap_or_default();
        let words = format!("{}{column}: {cell}", self.row);
        shortened(&words)
    }
}

/// The cell that a place is in, if it is in one.
fn cell(text: &str, at: usize) -> Option<Cell> {
    // A row is never long; a sentence far below a table is in none.
    const FAR: usize = 400;
    let start = text[..at].rfind('|').filter(|start| at - start < FAR)? + 1;
    let end = at + text[at..].find('|').filter(|end| *end < FAR)?;
    // Cells that lie before it, back to the row of dashes.
    let rule = text[..start].rfind("---")?;
    let head = &text[..rule];
    let rows = &text[rule..start];
    let figures = |cell: &&str| NAMES.iter().any(|(name, _)| cell.contains(name));
    let cells: Vec<&str> = rows
        .split('|')
        .map(str::trim)
        .filter(|cell| !cell.is_empty())
        .collect();
    let behind = cells.iter().rev().take_while(|cell| figures(cell)).count();
    let row = cells
        .iter()
        .rev()
        .nth(behind)
        .filter(|cell| !cell.contains("---"))?;
    let columns = text[..rule + 3]
        .rsplit('|')
        .take_while(|cell| {
            cell.trim().is_empty() || cell.trim().chars().all(|c| matches!(c, '-' | ':'))
        })
        .filter(|cell| !cell.trim().is_empty())
        .count();
    let headers: Vec<&str> = head
        .rsplit('|')
        .map(str::trim)
        .skip_while(|cell| cell.is_empty() || cell.chars().all(|c| matches!(c, '-' | ':')))
        .filter(|cell| !cell.is_empty())
        .take(columns)
        .collect();
    let column = (headers.len() == columns)
        .then(|| headers.iter().rev().nth(behind + 1).copied())
        .flatten();
    Some(Cell {
        start,
        end,
        row: plain(row),
        column: column.map(|column| column.split(" (").next().unwrap_or(column).to_owned()),
    })
}

/// Without Markdown's marks and line breaks.
fn plain(text: &str) -> String {
    let text = text
        .replace("<br>", " ")
        .replace("<br/>", " ")
        .replace("**", "");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The words of a sentence up to a figure.
fn sentence(text: &str, hit: &Hit) -> String {
    let before = &text[..hit.at];
    let least = (0..=before.len())
        .rev()
        .filter(|at| before.is_char_boundary(*at))
        .nth(40)
        .unwrap_or(0);
    let near = &before[least..];
    let cut = [", ", "; ", "\n", ": "]
        .iter()
        .filter_map(|mark| near.rfind(mark).map(|at| at + mark.len()))
        .max();
    shortened(&plain(&text[least + cut.unwrap_or(0)..hit.end]))
}

fn shortened(words: &str) -> String {
    match words.chars().count() > 120 {
        true => words.chars().take(119).chain(['…']).collect(),
        false => words.to_owned(),
    }
}

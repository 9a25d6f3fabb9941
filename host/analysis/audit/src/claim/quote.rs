//! Places where a page repeats figures of its results: cells of its tables, sentences that
//! compare.

use std::collections::VecDeque;

use super::page::{Page, TOO_LARGE};
use super::seek::{Ahead, Lines, did, inside, shortened};
use super::{ReadError, number};
use schemars::JsonSchema;
use serde::Serialize;

/// A place outside the results where a page repeats figures of one: a row of its summary table, a
/// sentence that compares.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Quote {
    /// The line, from 1.
    pub line: usize,
    /// The words around it, shortened.
    pub words: String,
    /// The first cell of the row, if it is in a table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<String>,
    /// The figures, under our names and in our units.
    pub figures: Vec<(String, f64)>,
    /// The claimed change, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<f64>,
}

/// The way pages name figures, by ours. The longer of two that begin alike comes first.
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

struct FigureMatch {
    at: usize,
    end: usize,
    figure: &'static str,
    value: f64,
}

/// The number of characters of a place that are quoted.
const LONGEST: usize = 120;

/// The most figures that a page may repeat: many more than anybody reads.
pub(crate) const MOST_QUOTES: usize = 10_000;

/// The most bytes between a figure and its change.
const NEAR: usize = 40;

/// Every such place of a page, in order.
pub(super) fn read(file: &str, page: &Page<'_>) -> Result<Vec<Quote>, ReadError> {
    let (named, hits) = hits(file, page)?;
    let mut table = Table::new(page.text, &named);
    let mut lines = Lines::new(page.text);
    let mut quotes: Vec<Quote> = Vec::new();
    let mut index = 0;
    while let Some(first) = hits.get(index) {
        let cell = table.cell(first.at);
        // In a table, a cell is of one result; in a sentence, each figure may be of another.
        let together = hits[index..]
            .iter()
            .take_while(|hit| cell.as_ref().is_some_and(|cell| cell.end >= hit.end))
            .count()
            .max(1);
        let group = &hits[index..index + together];
        let words = match &cell {
            Some(cell) => statement(cell, page.text),
            None => sentence(page.text, first),
        };
        let (line, _) = lines.place(first.at);
        quotes.push(Quote {
            line,
            words,
            row: cell.as_ref().map(|cell| cell.row.clone()),
            figures: group.iter().map(|hit| (hit.figure.to_owned(), hit.value)).collect(),
            change: cell.as_ref().and_then(|_| change(&page.text[group[0].end..])),
        });
        index += together;
    }
    Ok(quotes)
}

/// The place where the page writes one of the names, and where a figure follows it.
fn hits(file: &str, page: &Page<'_>) -> Result<(Vec<usize>, Vec<FigureMatch>), ReadError> {
    let text = page.text;
    let mut named: Vec<usize> = Vec::new();
    let mut hits: Vec<FigureMatch> = Vec::new();
    for (name, figure) in NAMES {
        did(text.len());
        for (at, _) in text.match_indices(name) {
            named.push(at);
            let fenced = inside(&page.fences, at, |fence| (fence.start, fence.end));
            if fenced || inside(&page.spans, at, |span| (span.start, span.end)) {
                continue;
            }
            let rest = &text[at + name.len()..];
            let Some(behind) = rest.trim_start_matches(' ').strip_prefix([':', '=']) else {
                continue;
            };
            let value = behind.trim_start();
            let start = text.len() - value.len();
            did(start - at);
            let Some((length, found)) = leading(value) else { continue };
            hits.push(FigureMatch { at, end: start + length, figure, value: found });
            // `15.12 ms vs 138.86 ms`
            let other = value[length..].strip_prefix(" ms vs ");
            if let Some((more, found)) = other.and_then(leading) {
                let at = start + length + " ms vs ".len();
                hits.push(FigureMatch { at, end: at + more, figure, value: found });
            }
            if hits.len() > MOST_QUOTES {
                let what =
                    format!("it repeats more than {MOST_QUOTES} figures outside of its results");
                return Err(ReadError::of_file(file, what, TOO_LARGE));
            }
        }
    }
    hits.sort_by_key(|hit| hit.at);
    named.sort_unstable();
    Ok((named, hits))
}

/// The number that a text begins with, and its length.
fn leading(text: &str) -> Option<(usize, f64)> {
    let length =
        text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ',')).unwrap_or(text.len());
    did(length);
    let digits = text[..length].trim_end_matches(['.', ',']);
    let stated = number::read(digits).ok()??;
    Some((digits.len(), stated.value))
}

/// The change in percent after a figure, in brackets: `(+15.59%)`.
fn change(after: &str) -> Option<f64> {
    let near = &after[..after.floor_char_boundary(NEAR)];
    let inner = near.trim_start().strip_prefix('(')?;
    let (percent, _) = inner.split_once('%')?;
    percent.trim_start_matches('+').parse().ok()
}

/// Writes the statement of a cell, with its row and its column.
fn statement(cell: &Cell, text: &str) -> String {
    let column = cell.column.as_ref();
    let column = column.map_or_else(String::new, |column| format!(", {column}"));
    let stated = plain(&text[cell.start..cell.end]);
    shortened(&format!("{}{column}: {stated}", cell.row), LONGEST)
}

/// Without Markdown's marks and line breaks.
fn plain(text: &str) -> String {
    let text = text.replace("<br>", " ").replace("<br/>", " ").replace("**", "");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The words of a sentence up to a figure.
fn sentence(text: &str, hit: &FigureMatch) -> String {
    let before = &text[..hit.at];
    let least =
        (0..=before.len()).rev().filter(|at| before.is_char_boundary(*at)).nth(40).unwrap_or(0);
    let near = &before[least..];
    let cut = [", ", "; ", "\n", ": "]
        .iter()
        .filter_map(|mark| near.rfind(mark).map(|at| at + mark.len()))
        .max();
    let words = &text[least + cut.unwrap_or(0)..hit.end];
    did(words.len());
    shortened(&plain(words), LONGEST)
}

/// A cell is never longer than this; a sentence far below a table is in none.
const FAR: usize = 400;

/// The most columns of a table with headers.
const COLUMNS: usize = 64;

struct Cell {
    pub start: usize,
    pub end: usize,
    /// The first cell of its row.
    pub row: String,
    /// The header of its column.
    pub column: Option<String>,
}

/// A part of a text between two bars, with something in it.
#[derive(Clone, Copy)]
struct Part {
    start: usize,
    end: usize,
}

/// The known facts about the tables up to a place, which only grows.
#[derive(Default)]
struct Table<'a> {
    text: &'a str,
    /// Places of the names of figures, in order, from the next part on.
    named: &'a [usize],
    bars: Ahead<'a>,
    /// The place where the part of the place begins.
    start: usize,
    recent: VecDeque<Part>,
    /// The number of parts at the end that have only dashes and colons.
    ruled: usize,
    /// The headers of the last table with a rule; empty if they are not known.
    headers: Vec<Part>,
    /// True if a rule has been seen.
    in_table: bool,
    /// The last part without a figure since the rule, and the number of parts with one after it.
    row: Option<Part>,
    behind: usize,
}

impl<'a> Table<'a> {
    /// The tables of a text in which these places name figures.
    pub fn new(text: &'a str, named: &'a [usize]) -> Self {
        Table { text, named, bars: Ahead::new(text, "|"), ..Table::default() }
    }

    /// Finds the cell that a place is in, if any. No place may be before an earlier call's place.
    pub fn cell(&mut self, at: usize) -> Option<Cell> {
        let mut bar = self.bars.from(self.start)?;
        while bar < at {
            self.pass(bar);
            bar = self.bars.from(self.start)?;
        }
        let short = self.start > 0 && at - self.start < FAR && bar - at < FAR;
        let row = self.row.filter(|_| short && self.in_table)?;
        let header = self.headers.get(self.behind + 1);
        Some(Cell {
            start: self.start,
            end: bar,
            row: self.label(row),
            column: header.map(|header| {
                let words = &self.text[header.start..header.end];
                shortened(words.split(" (").next().unwrap_or(words), LONGEST)
            }),
        })
    }

    /// The beginning of a part as plain text.
    fn label(&self, part: Part) -> String {
        let text = &self.text[part.start..part.end];
        let words = plain(&text[..text.floor_char_boundary(FAR)]);
        shortened(&words, LONGEST)
    }

    /// Takes note of the part that ends with a bar.
    fn pass(&mut self, bar: usize) {
        let whole = &self.text[self.start..bar];
        let text = whole.trim();
        did(whole.len());
        let start = self.start + (whole.len() - whole.trim_start().len());
        let part = Part { start, end: start + text.len() };
        let names = self.named.iter().take_while(|at| **at < bar).count();
        let figure = names > 0;
        did(names);
        self.named = &self.named[names..];
        self.start = bar + 1;
        if text.is_empty() {
            return;
        }
        self.ruled =
            if text.bytes().all(|byte| matches!(byte, b'-' | b':')) { self.ruled + 1 } else { 0 };
        if text.contains("---") {
            self.in_table = true;
            self.headers = self.headers();
            self.row = None;
            self.behind = 0;
        } else if figure {
            self.behind += 1;
        } else {
            self.row = Some(part);
            self.behind = 0;
        }
        self.recent.push_back(part);
        if self.recent.len() > 2 * COLUMNS {
            self.recent.pop_front();
        }
    }

    /// The parts before a rule, one for each of its columns, if there are enough. The rule's last
    /// part is the next of [`Table::recent`].
    fn headers(&self) -> Vec<Part> {
        let columns = self.ruled;
        let first = (self.recent.len() + 1).checked_sub(2 * columns);
        let Some(first) = first.filter(|_| columns > 0 && columns <= COLUMNS) else {
            return Vec::new();
        };
        did(columns);
        self.recent.iter().skip(first).take(columns).copied().collect()
    }
}

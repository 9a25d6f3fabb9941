//! Cells of a page's tables, from its beginning to its end. Line breaks do not matter: rows end
//! where the first cell without a figure begins the next.

use std::collections::VecDeque;

use super::super::seek::{Ahead, did, shortened};
use super::{LONGEST, plain};

/// A cell is never longer than this; a sentence far below a table is in none.
const FAR: usize = 400;

/// The most columns of a table with headers.
const COLUMNS: usize = 64;

/// A cell of a table.
pub(super) struct Cell {
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
pub(super) struct Table<'a> {
    text: &'a str,
    /// Places of the names of figures, in order, from the next part on.
    named: &'a [usize],
    bars: Ahead<'a>,
    /// The place where the part of the place begins.
    start: usize,
    /// The last parts.
    recent: VecDeque<Part>,
    /// The number of parts at the end that have only dashes and colons.
    ruled: usize,
    /// The headers of the last table with a rule; empty if they are not known.
    headers: Vec<Part>,
    /// True if a rule has been seen.
    in_table: bool,
    /// The last part without a figure since the rule, and the number of parts with a figure after
    /// it.
    row: Option<Part>,
    behind: usize,
}

impl<'a> Table<'a> {
    /// The tables of a text in which these places name figures.
    pub fn new(text: &'a str, named: &'a [usize]) -> Self {
        Table {
            text,
            named,
            bars: Ahead::new(text, "|"),
            start: 0,
            recent: VecDeque::new(),
            ruled: 0,
            headers: Vec::new(),
            in_table: false,
            row: None,
            behind: 0,
        }
    }

    /// Finds the cell that a place is in, if it is in one. No place may be before an earlier call's
    /// place.
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

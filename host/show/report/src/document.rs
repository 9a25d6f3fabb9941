//! A page as data: headings, text, tables, code and charts, which become Markdown and one HTML
//! file. Both have the same content, because both are drawn from the same blocks.
//!
//! This module owns the blocks and their two forms. What a page says is left to its makers: `lab`,
//! [`crate::sweep`] and [`crate::search`]. All text is escaped here, so makers give it as it is.
//! Markdown has no charts: a maker puts a table of the same figures beside each.

mod html;
mod markdown;
#[cfg(test)]
mod tests;

use crate::chart::Chart;

/// A page.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The kind of page, in a word or two above its title: `Lab`.
    pub kind: &'static str,
    /// Its title.
    pub title: String,
    pub blocks: Vec<Block>,
}

/// A part of a page.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A heading of level 2 to 4; level 2 begins a section.
    Heading(u8, String),
    /// A paragraph.
    Paragraph(Text),
    /// A list.
    List(Vec<Text>),
    /// Lines to be copied or read as they are.
    Code {
        /// Their language, for Markdown: `bash`, `text`.
        language: &'static str,
        /// The lines.
        text: String,
    },
    /// A table.
    Table(Table),
    /// A chart.
    Chart(Box<Chart>),
}

/// A table. A column whose cells are all numbers is aligned to the right, the first column never.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The columns' headings.
    pub head: Vec<String>,
    /// The rows, each with as many cells as there are headings.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    pub text: String,
    /// The tone for its colour: good or bad news. The text says it too.
    pub tone: Tone,
}

/// The tone of a text: good or bad news, or neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Neither.
    #[default]
    Plain,
    /// Good.
    Good,
    /// Bad.
    Bad,
}

/// Text on one line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Text(pub Vec<Span>);

/// A part of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum Span {
    /// As the rest.
    Plain(String),
    /// Emphasized.
    Strong(String),
    /// As something to be typed.
    Code(String),
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell {
            text,
            tone: Tone::Plain,
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl Text {
    /// Plain text.
    pub fn plain(text: impl Into<String>) -> Self {
        Text(vec![Span::Plain(text.into())])
    }

    /// Emphasized text.
    pub fn strong(text: impl Into<String>) -> Self {
        Text(vec![Span::Strong(text.into())])
    }

    /// Text in which parts between backticks are code.
    pub fn marked(text: &str) -> Self {
        let parts = text.split('`').enumerate();
        let parts = parts.filter(|(_, part)| !part.is_empty());
        let span = |(place, part): (usize, &str)| match place % 2 {
            0 => Span::Plain(part.to_owned()),
            _ => Span::Code(part.to_owned()),
        };
        Text(parts.map(span).collect())
    }

    /// This text with plain text after it.
    #[must_use]
    pub fn then(mut self, text: impl Into<String>) -> Self {
        self.0.push(Span::Plain(text.into()));
        self
    }
}

impl Table {
    /// A table without rows.
    pub fn new<H: Into<String>>(head: impl IntoIterator<Item = H>) -> Self {
        Table {
            head: head.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The table without the columns that say nothing in any row. The first column stays.
    #[must_use]
    pub fn without_empty_columns(mut self) -> Self {
        let says = |at: usize| {
            let mut cells = self.rows.iter().filter_map(|row| row.get(at));
            at == 0 || cells.any(|cell| !cell.text.is_empty())
        };
        let kept: Vec<bool> = (0..self.head.len()).map(says).collect();
        let mut at = kept.iter();
        self.head.retain(|_| *at.next().unwrap_or(&true));
        for row in &mut self.rows {
            let mut at = kept.iter();
            row.retain(|_| *at.next().unwrap_or(&true));
        }
        self
    }

    /// Says of each column if it holds numbers and nothing else.
    fn numbers(&self) -> Vec<bool> {
        // What follows a number, such as its interval, does not count; a digest is none.
        let is_number = |text: &str| {
            let first = text.split(' ').next().unwrap_or_default();
            let digits = first.trim_end_matches('%').replace(',', "");
            text.is_empty() || digits.parse::<f64>().is_ok()
        };
        let cell =
            |row: &Vec<Cell>, at: usize| row.get(at).map_or("", |cell| &cell.text).to_owned();
        // The first column holds names. Some of them, such as ids of trials, only look like
        // numbers.
        let of = |at: usize| {
            at > 0
                && self.rows.iter().all(|row| is_number(&cell(row, at)))
                && self.rows.iter().any(|row| !cell(row, at).is_empty())
        };
        (0..self.head.len()).map(of).collect()
    }
}

impl Document {
    /// An empty page.
    pub fn new(kind: &'static str, title: impl Into<String>) -> Self {
        Document {
            kind,
            title: title.into(),
            blocks: Vec::new(),
        }
    }

    /// Adds a heading of that level.
    pub fn heading(&mut self, level: u8, text: impl Into<String>) {
        self.blocks.push(Block::Heading(level, text.into()));
    }

    /// Adds a paragraph, in which parts between backticks are code.
    pub fn say(&mut self, text: &str) {
        self.blocks.push(Block::Paragraph(Text::marked(text)));
    }

    /// Adds a paragraph.
    pub fn paragraph(&mut self, text: Text) {
        self.blocks.push(Block::Paragraph(text));
    }

    /// Adds a list, if it has items.
    pub fn list(&mut self, items: Vec<Text>) {
        if !items.is_empty() {
            self.blocks.push(Block::List(items));
        }
    }

    /// Adds lines as they are.
    pub fn code(&mut self, language: &'static str, text: impl Into<String>) {
        let text = text.into();
        self.blocks.push(Block::Code { language, text });
    }

    /// Adds a table, if it has rows.
    pub fn table(&mut self, table: Table) {
        if !table.rows.is_empty() {
            self.blocks.push(Block::Table(table));
        }
    }

    /// Adds a chart, if there is anything to draw.
    pub fn chart(&mut self, chart: Chart) {
        if !chart.is_empty() {
            self.blocks.push(Block::Chart(Box::new(chart)));
        }
    }

    /// Its charts, in order.
    pub fn charts(&self) -> impl Iterator<Item = &Chart> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Chart(chart) => Some(&**chart),
            _ => None,
        })
    }

    /// The page as Markdown.
    pub fn markdown(&self) -> String {
        markdown::markdown(self)
    }

    /// The page as one HTML file that needs no network.
    ///
    /// # Errors
    /// Only if the template uses a value that it is not given, which is a bug.
    pub fn html(&self) -> Result<String, minijinja::Error> {
        html::html(self)
    }
}

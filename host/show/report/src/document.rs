//! A page as data: headings, text, tables, figures, findings and charts, which become Markdown, one
//! HTML file, or text for a terminal. All forms say the same, because all are drawn from the same
//! blocks; only HTML has charts, so a maker puts a table of the same figures beside each.
//!
//! This module owns the blocks and their forms, and all escaping: makers give foreign text as it
//! is. The contents of a page are left to its makers: `lab`, [`crate::page`], [`crate::published`],
//! [`crate::compared`], [`crate::repeats`], [`crate::sweep`] and [`crate::search`].

mod html;
mod markdown;
mod slug;
mod terminal;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use slug::Slugs;

use std::ops::Range;

use crate::chart::Chart;
use result::finding::{Finding, Verdict};
use result::metric::Metric;

pub struct Document {
    /// The kind of page, in a word or two above its title: `Lab`.
    pub kind: &'static str,
    pub title: String,
    pub blocks: Vec<Block>,
    /// The folders of the runs whose records it shows, for its last line.
    pub folders: Vec<String>,
}

pub enum Block {
    /// A heading; one of level 2 begins a section, but within a card.
    Heading(Heading),
    /// The headings of levels 2 and 3, with links to them. In HTML the bar has them.
    Contents,
    Paragraph(Text),
    /// A paragraph on how to read the block beside it.
    Remark(Text),
    List(Vec<Text>),
    /// Lines to be copied or read as they are.
    Code {
        /// Their language, for Markdown: `bash`, `text`.
        language: &'static str,
        text: String,
    },
    Table(Table),
    /// A chart. Charts that follow each other share the width.
    Chart(Box<Chart>),
    /// Short facts, next to each other.
    Facts(Vec<Pair>),
    Pairs(Vec<Pair>),
    Figures(Vec<Figure>),
    /// Blocks that belong together, several such beside each other.
    Cards(Vec<Vec<Block>>),
    /// Blocks that a reader opens.
    Details {
        summary: String,
        /// True if they are open on paper.
        is_printed: bool,
        blocks: Vec<Block>,
    },
    /// A verdict, with its reasons in short.
    Verdict(Verdict, Text, Vec<Text>),
    /// Reasons to doubt a run, in full.
    Findings(Vec<Finding>),
    /// The metrics that the page speaks of, with its names for them.
    Definitions(Vec<(&'static str, &'static Metric)>),
    /// The names of runs whose charts are drawn over each other, to take each out of them.
    Series(Vec<String>),
}

#[derive(Clone, Debug)]
pub struct Heading {
    pub level: u8,
    pub text: Text,
    /// Its name for links, also from outside of the page; made from the text if absent.
    pub name: Option<String>,
    /// Its text in the bar of sections, if other.
    pub short: Option<&'static str>,
}

/// A table. A column whose cells are all numbers is aligned to the right, the first column never.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub head: Vec<String>,
    /// The rows, each with one cell for each heading.
    pub rows: Vec<Vec<Cell>>,
    /// The columns that are aligned to the right instead.
    pub numeric: Option<Range<usize>>,
    pub fit: Fit,
}

/// The way in which a table fits a narrow screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fit {
    /// The cells of a row stand below each other.
    #[default]
    Stacked,
    Narrow,
    Scrolled,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    pub text: Text,
    /// The tone for its colour: good or bad news. The text says it too.
    pub tone: Tone,
}

/// The tone of a text: good or bad news, or neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    #[default]
    Plain,
    Good,
    Bad,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    pub name: String,
    pub value: String,
}

#[derive(Clone, Debug)]
pub struct Figure {
    pub name: Text,
    pub value: String,
    pub unit: &'static str,
    pub lines: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Text(pub Vec<Span>);

#[derive(Clone, Debug, PartialEq)]
pub enum Span {
    Plain(String),
    Strong(String),
    /// A word with an explanation.
    Word(&'static str),
    Code(String),
    /// A link to the heading of that name.
    Link(String, String),
    /// The name of a metric, with its definition on request.
    Term(String, &'static str),
    /// The unit of the value before it.
    Unit(&'static str),
    /// The difference of the value before it, as good or bad news.
    Change(String, Tone),
    /// A word of that worth.
    Badge(String, Verdict),
    /// The mark of the run of that place in charts.
    Mark(usize),
    /// The end of a line within a cell.
    Break,
}

impl Span {
    fn to_plain(&self) -> String {
        match self {
            Span::Plain(text)
            | Span::Strong(text)
            | Span::Code(text)
            | Span::Link(text, _)
            | Span::Term(text, _)
            | Span::Badge(text, _) => text.clone(),
            Span::Word(text) => (*text).to_owned(),
            Span::Unit("") => String::new(),
            Span::Unit(unit) => format!(" ({unit})"),
            Span::Change(text, _) => format!(" {text}"),
            Span::Break => " ".to_owned(),
            Span::Mark(_) => String::new(),
        }
    }
}

impl<T: Into<Text>> From<T> for Cell {
    fn from(text: T) -> Self {
        Cell { text: text.into(), tone: Tone::Plain }
    }
}

impl From<Span> for Text {
    fn from(span: Span) -> Self {
        Text(vec![span])
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Text::plain(text)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Text::plain(text)
    }
}

pub(crate) fn pair(name: impl Into<String>, value: impl Into<String>) -> Pair {
    Pair { name: name.into(), value: value.into() }
}

/// Names with their values; leaves out unknown values.
pub(crate) fn pairs<const N: usize>(given: [(&str, Option<String>); N]) -> Vec<Pair> {
    given.into_iter().filter_map(|(name, value)| Some(pair(name, value?))).collect()
}

impl Text {
    pub fn plain(text: impl Into<String>) -> Self {
        Text(vec![Span::Plain(text.into())])
    }

    pub fn strong(text: impl Into<String>) -> Self {
        Text(vec![Span::Strong(text.into())])
    }

    /// Text in which parts between backticks are code.
    pub fn marked(text: &str) -> Self {
        let parts = text.split('`').enumerate().filter(|(_, part)| !part.is_empty());
        let span = |(place, part): (usize, &str)| match place % 2 {
            0 => Span::Plain(part.to_owned()),
            _ => Span::Code(part.to_owned()),
        };
        Text(parts.map(span).collect())
    }

    /// Text that explains the words between asterisks.
    pub(crate) fn explained(text: &'static str) -> Self {
        let parts = text.split('*').enumerate();
        let span = |(place, part): (usize, &'static str)| match place % 2 {
            0 => Span::Plain(part.to_owned()),
            _ => Span::Word(part),
        };
        Text(parts.map(span).collect())
    }

    pub fn then(self, text: impl Into<String>) -> Self {
        self.with(Span::Plain(text.into()))
    }

    pub(crate) fn with(mut self, span: Span) -> Self {
        self.0.push(span);
        self
    }

    fn to_plain(&self) -> String {
        self.0.iter().map(Span::to_plain).collect()
    }
}

impl Table {
    pub fn new<H: Into<String>>(head: impl IntoIterator<Item = H>) -> Self {
        Table {
            head: head.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
            numeric: None,
            fit: Fit::Stacked,
        }
    }

    pub fn row<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    pub fn row_once<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        let row = cells.into_iter().map(Into::into).collect();
        if !self.rows.contains(&row) {
            self.rows.push(row);
        }
    }

    /// The table without the columns that say nothing in any row. The first column stays.
    pub fn without_empty_columns(mut self) -> Self {
        let says = |at: usize| {
            let mut cells = self.rows.iter().filter_map(|row| row.get(at));
            at == 0 || cells.any(|cell| !cell.text.to_plain().is_empty())
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

    /// Returns for each column if it holds numbers and nothing else.
    fn numbers(&self) -> Vec<bool> {
        let is_absent = |text: &str| matches!(text, "" | "-" | "–");
        // Text after a number, such as its interval, does not count; a digest is none.
        let is_number = |text: &str| {
            let first = text.split(' ').next().unwrap_or_default();
            let digits = first.trim_end_matches('%').replace(',', "");
            is_absent(text) || digits.parse::<f64>().is_ok()
        };
        // The first column holds names, and some of these look like numbers.
        let of = |at: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(at));
            let cells: Vec<String> = cells.map(|cell| cell.text.to_plain()).collect();
            at > 0
                && cells.iter().all(|cell| is_number(cell))
                && cells.iter().any(|cell| !is_absent(cell))
        };
        let columns = 0..self.head.len();
        match &self.numeric {
            Some(numeric) => columns.map(|at| numeric.contains(&at)).collect(),
            None => columns.map(of).collect(),
        }
    }
}

impl Document {
    pub fn new(kind: &'static str, title: impl Into<String>) -> Self {
        Document { kind, title: title.into(), blocks: Vec::new(), folders: Vec::new() }
    }

    pub fn heading(&mut self, level: u8, text: impl Into<Text>) {
        self.push(Block::heading(level, text));
    }

    /// Begins a section that others link to by that name, with a short heading for the bar.
    pub(crate) fn section(
        &mut self,
        name: &str,
        short: impl Into<Option<&'static str>>,
        text: impl Into<Text>,
    ) {
        self.push(Block::Heading(Heading {
            level: 2,
            text: text.into(),
            name: Some(name.to_owned()),
            short: short.into(),
        }));
    }

    pub fn push(&mut self, block: Block) {
        self.blocks.push(block);
    }

    /// Adds a paragraph, in which parts between backticks are code.
    pub fn say(&mut self, text: &str) {
        self.blocks.push(Block::Paragraph(Text::marked(text)));
    }

    pub fn paragraph(&mut self, text: Text) {
        self.blocks.push(Block::Paragraph(text));
    }

    pub fn list(&mut self, items: Vec<Text>) {
        if !items.is_empty() {
            self.blocks.push(Block::List(items));
        }
    }

    /// Adds facts below each other, if there are any.
    pub(crate) fn pairs(&mut self, pairs: Vec<Pair>) {
        if !pairs.is_empty() {
            self.push(Block::Pairs(pairs));
        }
    }

    /// Adds a paragraph on how to read the block beside it.
    pub(crate) fn remark(&mut self, text: impl Into<Text>) {
        self.push(Block::Remark(text.into()));
    }

    pub fn code(&mut self, language: &'static str, text: impl Into<String>) {
        let text = text.into();
        self.blocks.push(Block::Code { language, text });
    }

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

    pub fn charts(&self) -> impl Iterator<Item = &Chart> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Chart(chart) => Some(&**chart),
            _ => None,
        })
    }

    pub fn markdown(&self) -> String {
        markdown::markdown(self, 1)
    }

    /// The page as a section of another one in Markdown, whose heading has that level.
    pub fn markdown_section(&self, level: u8) -> String {
        markdown::markdown(self, level)
    }

    /// The page as one HTML file that needs no network.
    pub fn html(&self) -> String {
        html::html(self)
    }

    pub fn text(&self) -> String {
        terminal::text(self)
    }
}

impl Block {
    pub fn heading(level: u8, text: impl Into<Text>) -> Self {
        Block::Heading(Heading { level, text: text.into(), name: None, short: None })
    }
}

/// The headings of blocks, in order, also of blocks within others.
fn headings(blocks: &[Block]) -> Vec<&Heading> {
    let within = blocks.iter().map(|block| match block {
        Block::Heading(heading) => vec![heading],
        Block::Cards(cards) => cards.iter().flat_map(|card| headings(card)).collect(),
        Block::Details { blocks, .. } => headings(blocks),
        _ => Vec::new(),
    });
    within.flatten().collect()
}

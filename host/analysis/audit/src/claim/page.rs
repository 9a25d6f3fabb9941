//! A text with blocks in it: a page in Markdown, a log, or a block by itself. The text around a
//! block describes it: headings, the launch command, the `Namespace(…)` line, the profile.
//!
//! Some tools lose line breaks when pages are pasted. So a heading ends where something else
//! begins, not only at the end of its line.

use super::block::{self, Span};
use super::quote::{self, Quote};
use super::seek::{Ahead, Lines, did, shortened};
use super::{Claim, ReadError, Source, in_order, too_many};

mod context;
mod namespace;

/// Text between two fences of three backticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fence<'a> {
    /// The byte of its opening.
    pub start: usize,
    /// The byte after its closing.
    pub end: usize,
    /// The text after the opening fence: `bash`, `yaml`.
    pub info: &'a str,
    pub text: &'a str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Heading {
    pub at: usize,
    pub level: usize,
    pub text: String,
    /// The index of the heading that it is under.
    outer: Option<usize>,
}

/// A page, split into its parts.
pub(super) struct Page<'a> {
    pub text: &'a str,
    pub spans: Vec<Span>,
    pub fences: Vec<Fence<'a>>,
    pub headings: Vec<Heading>,
}

/// The number of characters of a model's or a machine's name that are kept: each result of a page
/// repeats them.
const LONGEST: usize = 200;

/// The most headings, and the most fenced parts, of a page.
const MOST_PARTS: usize = 100_000;

/// The expectation in place of a page that is too large.
pub(super) const TOO_LARGE: &str = "expected a page for people to read; split it";

/// Every block of a text, and the text's other statements about them.
pub(super) fn read(file: &str, text: &str) -> Result<(Vec<Claim>, Vec<Quote>), Vec<ReadError>> {
    let fences = fences(text);
    let headings = headings(text, &fences);
    if fences.len().max(headings.len()) > MOST_PARTS {
        let what = format!("it has more than {MOST_PARTS} headings or fenced parts");
        return Err(vec![ReadError::of_file(file, what, TOO_LARGE)]);
    }
    let page = Page { text, spans: block::spans(text), fences, headings };
    if page.spans.len() > super::MOST_RESULTS {
        return Err(vec![too_many(file)]);
    }
    let facts = context::Facts::new(&page);
    let mut lines = Lines::new(text);
    let read_one = |(index, span): (usize, &Span)| {
        let (line, column) = lines.place(span.start);
        // The text before a block begins after the previous block.
        let begin = index.checked_sub(1).map_or(0, |previous| page.spans[previous].end);
        let before = &text[begin..span.start];
        did(before.len());
        let source = Source {
            file: file.to_owned(),
            line: Some(line),
            column: Some(column),
            headings: page.above(span.start).into_iter().map(|it| it.text.clone()).collect(),
            caption: context::caption(before),
            ..Source::default()
        };
        let mut claim = block::read(text, *span, source)?;
        context::fill(&mut claim, &page, &facts, *span, before);
        Ok(vec![claim])
    };
    let claims = in_order(file, page.spans.iter().enumerate().map(read_one))?;
    let quotes = quote::read(file, &page).map_err(|error| vec![error])?;
    Ok((claims, quotes))
}

impl Page<'_> {
    /// The headings above a place, the outermost first.
    pub(super) fn above(&self, at: usize) -> Vec<&Heading> {
        let after = self.headings.partition_point(|heading| {
            did(1);
            heading.at < at
        });
        let mut path: Vec<&Heading> = Vec::new();
        let mut next = after.checked_sub(1);
        while let Some(heading) = next.map(|index| &self.headings[index]) {
            path.push(heading);
            next = heading.outer;
        }
        path.reverse();
        path
    }

    /// The first words under the heading of that name, up to the next heading.
    pub(super) fn section(&self, name: &str) -> Option<String> {
        self.headings.iter().enumerate().find_map(|(index, heading)| {
            if heading.text.eq_ignore_ascii_case(name) {
                let next = self.headings.get(index + 1).map_or(self.text.len(), |next| next.at);
                let section = self.text.get(heading.at..next)?;
                did(section.len());
                let line = section.lines().skip(1).find(|line| !line.trim().is_empty())?;
                let words = line.trim().trim_start_matches("- ");
                return Some(shortened(words, LONGEST));
            }
            // Without line breaks, the words that stand under it follow it.
            let rest = heading.text.strip_prefix(name)?.strip_prefix(' ')?;
            (rest.len() < 80).then(|| rest.to_owned())
        })
    }
}

/// The fenced parts; of too many, one more than there may be.
fn fences(text: &str) -> Vec<Fence<'_>> {
    let marks = text.match_indices("```").map(|(at, _)| at);
    let marks: Vec<usize> = marks.take(2 * (MOST_PARTS + 1)).collect();
    (marks.chunks_exact(2))
        .map(|pair| {
            let (start, close) = (pair[0], pair[1]);
            let inner = &text[start + 3..close];
            let info = inner.len() - inner.trim_start_matches(|c: char| !c.is_whitespace()).len();
            Fence { start, end: close + 3, info: &inner[..info], text: inner[info..].trim() }
        })
        .collect()
}

/// Texts that end a heading whose line continues.
const ENDS: [&str; 9] = [" ```", " #", " - ", " | ", " ??? ", " ???+", " !!! ", " ![", " 1. "];

/// The place of the beginning of another heading among [`ENDS`].
const ANOTHER: usize = 1;

/// The headings outside of fenced parts; of too many, one more than there may be.
fn headings(text: &str, fences: &[Fence<'_>]) -> Vec<Heading> {
    let mut found: Vec<Heading> = Vec::new();
    let mut fences = fences.iter().peekable();
    let mut marks = Ahead::new(text, "#");
    let mut breaks = Ahead::new(text, "\n");
    let mut ends = ENDS.map(|end| Ahead::new(text, end));
    let mut at = 0;
    while let Some(next) = marks.from(at).filter(|_| found.len() <= MOST_PARTS) {
        while fences.next_if(|fence| fence.end <= next).is_some() {}
        if let Some(fence) = fences.peek().filter(|fence| fence.start <= next) {
            at = fence.end;
            continue;
        }
        let level = text[next..].len() - text[next..].trim_start_matches('#').len();
        did(level);
        at = next + level;
        let begins = text[..next].chars().next_back().is_none_or(char::is_whitespace);
        if !begins || level > 6 || !text[at..].starts_with(' ') {
            continue;
        }
        let line = breaks.from(at).unwrap_or(text.len());
        let within = |end: &mut Ahead<'_>| end.from(at).filter(|end| *end < line);
        let own_line = next == 0 || text[..next].ends_with('\n');
        let whole = own_line && line - at < 120 && within(&mut ends[ANOTHER]).is_none();
        let end =
            if whole { line } else { ends.iter_mut().filter_map(within).min().unwrap_or(line) };
        let words: String = text[at..end].trim_start().chars().take(80).collect();
        did(words.len());
        let outer = outer(&found, level);
        found.push(Heading { at: next, level, text: words.trim_end().to_owned(), outer });
    }
    found
}

/// The index of the heading that one of this level is under, if it comes next.
fn outer(found: &[Heading], level: usize) -> Option<usize> {
    let mut above = found.len().checked_sub(1);
    while let Some(index) = above.filter(|index| found[*index].level >= level) {
        did(1);
        above = found[index].outer;
    }
    above
}

#[cfg(test)]
mod tests;

//! A text with blocks in it: a page in Markdown, a log, or a block by itself. The text around a block
//! describes it: headings, the launch command, the `Namespace(…)` line, the profile.
//!
//! Some tools lose line breaks when pages are pasted. So a heading ends where something else begins, not
//! only at the end of its line.

use super::block::{self, Span};
use super::quote;
use super::{Claim, Quote, ReadError, Source, in_order};

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
    /// Its content.
    pub text: &'a str,
}

/// A heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Heading {
    pub at: usize,
    pub level: usize,
    pub text: String,
}

/// A page, split into its parts.
pub(super) struct Page<'a> {
    pub text: &'a str,
    pub spans: Vec<Span>,
    pub fences: Vec<Fence<'a>>,
    pub headings: Vec<Heading>,
}

/// Every block of a text, and what the text states about them elsewhere.
pub(super) fn read(file: &str, text: &str) -> Result<(Vec<Claim>, Vec<Quote>), Vec<ReadError>> {
    let fences = fences(text);
    let headings = headings(text, &fences);
    let page = Page {
        text,
        spans: block::spans(text),
        fences,
        headings,
    };
    let read_one = |(index, span): (usize, &Span)| {
        let mut source = page.place(file, *span);
        source.headings = page
            .above(span.start)
            .into_iter()
            .map(|it| it.text.clone())
            .collect();
        let before = &text[page.before(index)..span.start];
        source.caption = context::caption(before);
        let mut claim = block::read(text, *span, source)?;
        context::fill(&mut claim, &page, *span, before);
        Ok(claim)
    };
    let claims = in_order(page.spans.iter().enumerate().map(read_one))?;
    let quotes = quote::read(&page);
    Ok((claims, quotes))
}

impl Page<'_> {
    /// Where a block is.
    fn place(&self, file: &str, span: Span) -> Source {
        let above = &self.text[..span.start];
        let line = above.matches('\n').count() + 1;
        let column = span.start - above.rfind('\n').map_or(0, |at| at + 1) + 1;
        Source {
            file: file.to_owned(),
            line: Some(line),
            column: Some(column),
            ..Source::default()
        }
    }

    /// Where the text before a block begins: after the previous block.
    fn before(&self, index: usize) -> usize {
        match index.checked_sub(1) {
            Some(previous) => self.spans[previous].end,
            None => 0,
        }
    }

    /// The headings above a place, the outermost first.
    pub(super) fn above(&self, at: usize) -> Vec<&Heading> {
        let mut path: Vec<&Heading> = Vec::new();
        for heading in self.headings.iter().take_while(|heading| heading.at < at) {
            path.retain(|outer| outer.level < heading.level);
            path.push(heading);
        }
        path
    }

    /// The first words under the heading of that name, up to the next heading.
    pub(super) fn section(&self, name: &str) -> Option<String> {
        self.headings
            .iter()
            .enumerate()
            .find_map(|(index, heading)| {
                if heading.text.eq_ignore_ascii_case(name) {
                    let next = self
                        .headings
                        .get(index + 1)
                        .map_or(self.text.len(), |next| next.at);
                    let line = self
                        .text
                        .get(heading.at..next)?
                        .lines()
                        .skip(1)
                        .find(|line| !line.trim().is_empty())?;
                    return Some(line.trim().trim_start_matches("- ").to_owned());
                }
                // Without line breaks, the words that stand under it follow it.
                let rest = heading.text.strip_prefix(name)?.strip_prefix(' ')?;
                (rest.len() < 80).then(|| rest.to_owned())
            })
    }
}

fn fences(text: &str) -> Vec<Fence<'_>> {
    let marks: Vec<usize> = text.match_indices("```").map(|(at, _)| at).collect();
    marks
        .chunks_exact(2)
        .map(|pair| {
            let (start, close) = (pair[0], pair[1]);
            let inner = &text[start + 3..close];
            let info = inner.len() - inner.trim_start_matches(|c: char| !c.is_whitespace()).len();
            Fence {
                start,
                end: close + 3,
                info: &inner[..info],
                text: inner[info..].trim(),
            }
        })
        .collect()
}

/// What ends a heading whose line continues.
const ENDS: [&str; 9] = [
    " ```", " #", " - ", " | ", " ??? ", " ???+", " !!! ", " ![", " 1. ",
];

fn headings(text: &str, fences: &[Fence<'_>]) -> Vec<Heading> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = text[at..].find('#').map(|offset| at + offset) {
        if let Some(fence) = fences
            .iter()
            .find(|fence| (fence.start..fence.end).contains(&next))
        {
            at = fence.end;
            continue;
        }
        let marks = text[next..].len() - text[next..].trim_start_matches('#').len();
        at = next + marks;
        let begins = text[..next]
            .chars()
            .next_back()
            .is_none_or(char::is_whitespace);
        if !begins || marks > 6 || !text[at..].starts_with(' ') {
            continue;
        }
        let line = text[at..].split('\n').next().unwrap_or_default();
        let own_line = next == 0 || text[..next].ends_with('\n');
        let end = match own_line && line.len() < 120 && !line.contains(" #") {
            true => line.len(),
            false => ENDS
                .iter()
                .filter_map(|end| line.find(end))
                .min()
                .unwrap_or(line.len()),
        };
        let words = line[..end].trim();
        found.push(Heading {
            at: next,
            level: marks,
            text: words.chars().take(80).collect(),
        });
    }
    found
}

#[cfg(test)]
mod tests;

//! A page as one HTML file, with the style, the script and the policy of all pages.

use minijinja::Error;
use serde::Serialize;

use super::{Block, Document, Span, Text, Tone};
use crate::chart::Chart;
use crate::html::frame::{Drawn, Frame, drawn, render, section};
use crate::markdown::slug::Slugs;

const TEMPLATE: &str = include_str!("page.html");

#[derive(Serialize)]
struct Page<'d> {
    #[serde(flatten)]
    frame: Frame,
    kind: &'static str,
    /// The blocks before the first section.
    lead: Vec<Shown<'d>>,
    parts: Vec<Part<'d>>,
}

#[derive(Serialize)]
struct Part<'d> {
    id: String,
    name: &'d str,
    blocks: Vec<Shown<'d>>,
}

/// A block as the template takes it.
#[derive(Default, Serialize)]
struct Shown<'d> {
    kind: &'static str,
    level: u8,
    id: String,
    text: &'d str,
    lines: Vec<Vec<Piece<'d>>>,
    head: Vec<Head<'d>>,
    rows: Vec<Vec<Shade<'d>>>,
    chart: Option<Drawn>,
}

#[derive(Serialize)]
struct Piece<'d> {
    kind: &'static str,
    text: &'d str,
}

#[derive(Serialize)]
struct Head<'d> {
    text: &'d str,
    is_text: bool,
}

#[derive(Serialize)]
struct Shade<'d> {
    text: &'d str,
    class: String,
}

/// The page.
pub(super) fn html(page: &Document) -> Result<String, Error> {
    // Names of elements that every page has.
    let mut slugs = Slugs::default();
    for taken in ["main", "theme", "live", "chart-keys"] {
        slugs.next(taken);
    }
    let (mut lead, mut parts) = (Vec::new(), Vec::<Part>::new());
    let mut above = page.title.as_str();
    for block in &page.blocks {
        if let Block::Heading(_, text) = block {
            above = text;
        }
        if let Block::Heading(2, name) = block {
            let id = slugs.next(name);
            let blocks = Vec::new();
            parts.push(Part { id, name, blocks });
            continue;
        }
        let shown = shown(block, above, &mut slugs);
        match parts.last_mut() {
            Some(part) => part.blocks.push(shown),
            None => lead.push(shown),
        }
    }
    let sections = parts.iter().map(|part| section(&part.id, part.name));
    let frame = Frame::new(page.title.clone(), sections.collect());
    let page = Page {
        frame,
        kind: page.kind,
        lead,
        parts,
    };
    render(TEMPLATE, &page)
}

fn pieces(text: &Text) -> Vec<Piece<'_>> {
    let each = text.0.iter().map(|span| match span {
        Span::Plain(text) => ("plain", text),
        Span::Strong(text) => ("strong", text),
        Span::Code(text) => ("code", text),
    });
    each.map(|(kind, text)| Piece { kind, text }).collect()
}

/// A block below that heading.
fn shown<'d>(block: &'d Block, above: &'d str, slugs: &mut Slugs) -> Shown<'d> {
    let none = Shown::default();
    match block {
        Block::Heading(level, text) => Shown {
            kind: "heading",
            level: *level,
            id: slugs.next(text),
            text,
            ..none
        },
        Block::Paragraph(text) => Shown {
            kind: "paragraph",
            lines: vec![pieces(text)],
            ..none
        },
        Block::List(items) => Shown {
            kind: "list",
            lines: items.iter().map(pieces).collect(),
            ..none
        },
        Block::Code { text, .. } => Shown {
            kind: "code",
            text,
            ..none
        },
        Block::Table(table) => {
            let numbers = table.numbers();
            let is_text = |at: usize| !numbers.get(at).copied().unwrap_or(false);
            let head = table.head.iter().enumerate();
            let rows = table.rows.iter().map(|row| {
                let cells = row.iter().enumerate().map(|(at, cell)| {
                    let tone = match cell.tone {
                        Tone::Plain => None,
                        Tone::Good => Some("better"),
                        Tone::Bad => Some("worse"),
                    };
                    let classes = is_text(at).then_some("text").into_iter().chain(tone);
                    Shade {
                        text: &cell.text,
                        class: classes.collect::<Vec<_>>().join(" "),
                    }
                });
                cells.collect()
            });
            Shown {
                kind: "table",
                text: above,
                rows: rows.collect(),
                head: head
                    .map(|(at, text)| Head {
                        text,
                        is_text: is_text(at),
                    })
                    .collect(),
                ..none
            }
        }
        Block::Chart(chart) => Shown {
            kind: "chart",
            chart: Some(drawn(&named(chart, slugs), &[])),
            ..none
        },
    }
}

/// The chart under a name that nothing else on the page has.
fn named(chart: &Chart, slugs: &mut Slugs) -> Chart {
    Chart {
        name: slugs.next(&chart.name),
        ..chart.clone()
    }
}

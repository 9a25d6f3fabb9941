//! A page as Markdown.

use std::fmt::Write;

use super::{Block, Document, Span, Table, Text};
use crate::markdown::escape::{fence, inline};

/// The page.
pub(super) fn markdown(page: &Document) -> String {
    let mut out = format!("# {}\n\n", line(&page.title));
    for block in &page.blocks {
        match block {
            Block::Heading(level, text) => {
                let marks = "#".repeat(usize::from(*level));
                let _ = writeln!(out, "{marks} {}\n", line(text));
            }
            Block::Paragraph(text) => {
                let _ = writeln!(out, "{}\n", spans(text));
            }
            Block::List(items) => {
                for item in items {
                    let _ = writeln!(out, "- {}", spans(item));
                }
                out.push('\n');
            }
            Block::Code { language, text } => {
                let _ = writeln!(out, "{}", fence(language, &clean(text)));
            }
            Block::Table(of) => table(&mut out, of),
            Block::Chart(_) => {}
        }
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// Text without characters that change how the text after them is shown.
fn clean(text: &str) -> String {
    let spaced = |c: char| match c != '\n' && c != '\t' && model::clean::unsafe_to_show(c) {
        true => ' ',
        false => c,
    };
    text.chars().map(spaced).collect()
}

/// Foreign text on one line, in which Markdown and HTML mean nothing. Spaces at its ends are kept:
/// it may be a part of a line.
fn part(text: &str) -> String {
    let end = |yes: bool| if yes { " " } else { "" };
    let (begins, ends) = (text.starts_with(' '), text.ends_with(' '));
    let safe = inline(&clean(text));
    match safe.is_empty() {
        true => end(begins).to_owned(),
        false => format!("{}{safe}{}", end(begins), end(ends)),
    }
}

/// A line of its own: it does not begin a list, a quotation or a heading.
fn line(text: &str) -> String {
    begun(part(text.trim()))
}

fn begun(line: String) -> String {
    let digits = line.chars().take_while(char::is_ascii_digit).count();
    let numbered = digits > 0 && line[digits..].starts_with(['.', ')']);
    match (line.starts_with(['-', '+', '=', ':']), numbered) {
        (true, _) => format!("\\{line}"),
        (_, true) => format!("{}\\{}", &line[..digits], &line[digits..]),
        _ => line,
    }
}

fn spans(text: &Text) -> String {
    let each = text.0.iter().map(|span| match span {
        Span::Plain(text) => part(text),
        Span::Strong(text) => strong(text),
        Span::Code(text) => code(text),
    });
    begun(each.collect())
}

/// Emphasized text; its marks take no space beside them within.
fn strong(text: &str) -> String {
    let safe = part(text);
    let inner = safe.trim_matches(' ');
    match inner.is_empty() {
        true => safe,
        false => safe.replacen(inner, &format!("**{inner}**"), 1),
    }
}

/// Code within a line, between more backticks than it has in a row.
fn code(text: &str) -> String {
    let text: String = clean(text).replace(['\n', '\t'], " ");
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let marks = "`".repeat(longest + 1);
    let space = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{marks}{space}{text}{space}{marks}")
}

fn table(out: &mut String, table: &Table) {
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    out.push_str(&row(table.head.iter().map(|head| part(head)).collect()));
    let marks = table.numbers().into_iter();
    let marks = marks.map(|is_number| if is_number { "---:" } else { "---" }.to_owned());
    out.push_str(&row(marks.collect()));
    for cells in &table.rows {
        out.push_str(&row(cells.iter().map(|cell| part(&cell.text)).collect()));
    }
    out.push('\n');
}

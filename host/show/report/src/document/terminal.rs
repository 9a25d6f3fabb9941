//! A page as text for a terminal: no colours, and no control characters. Functions that only a
//! screen has have no form.

use comfy_table::{CellAlignment, LineStyle, Table as Lines, TableStyle};

use super::{Block, Document, Pair, Span, Table, Text};
use crate::plain;

pub(super) fn text(page: &Document) -> String {
    let mut out = format!("== {} ==\n", plain(&page.title));
    blocks(&mut out, &page.blocks);
    out
}

fn blocks(out: &mut String, blocks: &[Block]) {
    let mut above: Option<&Block> = None;
    for block in blocks {
        let drawn = block_text(block);
        // A list stands right below the words that introduce it.
        let is_introduced = matches!((above, block), (Some(Block::Paragraph(_)), Block::List(_)));
        if !drawn.is_empty() && !is_introduced {
            out.push('\n');
        }
        out.push_str(&drawn);
        above = Some(block);
    }
}

fn block_text(block: &Block) -> String {
    match block {
        Block::Heading(heading) => format!("== {} ==\n", one_line(&heading.text)),
        Block::Paragraph(text) | Block::Remark(text) => format!("{}\n", one_line(text)),
        Block::List(items) => items.iter().map(|item| below(&one_line(item))).collect(),
        Block::Code { text, .. } => text.lines().map(below).collect(),
        Block::Table(of) => table(of),
        Block::Facts(pairs) | Block::Pairs(pairs) => {
            let pair = |Pair { name, value }: &Pair| below(&format!("{name}: {value}"));
            pairs.iter().map(pair).collect()
        }
        Block::Figures(figures) => {
            let figures = figures.iter().map(|figure| {
                let name = one_line(&figure.name);
                below(&format!("{name}: {} {}", figure.value, figure.unit))
            });
            figures.collect()
        }
        Block::Cards(cards) => {
            let mut out = String::new();
            cards.iter().for_each(|card| blocks(&mut out, card));
            out
        }
        Block::Verdict(_, title, lines) => {
            let lines = lines.iter().map(|line| below(&one_line(line)));
            format!("{}\n{}", one_line(title), lines.collect::<String>())
        }
        Block::Findings(findings) => {
            let findings = findings.iter().map(|finding| {
                let (severity, id) = (finding.severity.name(), finding.id.name());
                below(&format!("{severity} {id}: {}", finding.seen))
            });
            findings.collect()
        }
        Block::Chart(_)
        | Block::Contents
        | Block::Definitions(_)
        | Block::Details { .. }
        | Block::Series(_) => String::new(),
    }
}

fn one_line(text: &Text) -> String {
    let each = text.0.iter().map(|span| match span {
        Span::Code(text) => format!("`{}`", plain(text)),
        other => plain(&other.to_plain()),
    });
    each.collect()
}

/// A line of the block above it.
fn below(line: &str) -> String {
    format!("  {}\n", plain(line))
}

fn table(table: &Table) -> String {
    let mut lines = Lines::new();
    lines.load_style(TableStyle::new().header_separator(LineStyle::none().fill('-')));
    lines.set_header(table.head.iter().map(|head| plain(head)));
    for row in &table.rows {
        lines.add_row(row.iter().map(|cell| one_line(&cell.text)));
    }
    for (column, is_number) in lines.column_iter_mut().zip(table.numbers()) {
        if is_number {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    format!("{}\n", lines.trim_fmt())
}

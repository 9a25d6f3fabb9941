//! A page as Markdown. Functions that only a screen has, such as taking a run out of charts, have
//! no form.

use std::fmt::Write;

use super::slug::Slugs;
use super::{Block, Cell, Document, Figure, Heading, Pair, Span, Table, Text, headings};
use result::finding::Verdict;

/// Characters with a meaning within a line, in Markdown or in extensions of sites.
const MARKS: &str = "\\`*_{}[]#|~$!^";

const CONTENTS: &str = "Table of Contents";

struct Markdown<'d> {
    out: String,
    level: u8,
    /// The headings, with the anchors that sites give them.
    anchors: Vec<(&'d Heading, String)>,
}

/// The page, whose title is a heading of that level.
pub(super) fn markdown(page: &Document, level: u8) -> String {
    let mut slugs = Slugs::default();
    slugs.next(&page.title);
    if page.blocks.iter().any(|block| matches!(block, Block::Contents)) {
        slugs.next(CONTENTS);
    }
    let anchors = headings(&page.blocks).into_iter();
    let mut markdown = Markdown {
        out: String::new(),
        level,
        anchors: anchors.map(|heading| (heading, slugs.next(&heading.text.to_plain()))).collect(),
    };
    markdown.heading(1, &line(&page.title));
    markdown.blocks(&page.blocks);
    let mut out = markdown.out;
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

impl Markdown<'_> {
    fn heading(&mut self, level: u8, text: &str) {
        let marks = "#".repeat(usize::from(self.level + level - 1));
        let _ = writeln!(self.out, "{marks} {text}\n");
    }

    fn blocks(&mut self, blocks: &[Block]) {
        for block in blocks {
            self.block(block);
        }
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Heading(heading) => self.heading(heading.level, &self.spans(&heading.text)),
            Block::Contents => self.contents(),
            Block::Paragraph(text) | Block::Remark(text) => {
                let _ = writeln!(self.out, "{}\n", self.spans(text));
            }
            Block::List(items) => self.list(items.iter().map(|item| self.spans(item)).collect()),
            Block::Code { language, text } => {
                let _ = writeln!(self.out, "{}", fence(language, text));
            }
            Block::Table(of) => self.table(of),
            Block::Chart(_) | Block::Series(_) => {}
            Block::Facts(pairs) => {
                let facts: Vec<String> = pairs.iter().map(fact).collect();
                let _ = writeln!(self.out, "{}\n", facts.join(" · "));
            }
            Block::Pairs(pairs) => self.list(pairs.iter().map(fact).collect()),
            Block::Figures(figures) => {
                let figures = figures.iter().map(|figure| {
                    let Figure { value, unit, lines, .. } = figure;
                    let value = part(&format!("{value} {unit}"));
                    let all = std::iter::once(value).chain(lines.iter().map(|line| part(line)));
                    let all: Vec<String> = all.collect();
                    format!("**{}**: {}", self.spans(&figure.name), all.join("; "))
                });
                self.list(figures.collect());
            }
            Block::Cards(cards) => cards.iter().for_each(|card| self.blocks(card)),
            Block::Details { summary, blocks, .. } => {
                let _ = writeln!(self.out, "{}\n", line(summary));
                self.blocks(blocks);
            }
            Block::Verdict(verdict, title, lines) => {
                let alert = match verdict {
                    Verdict::Valid => "NOTE",
                    Verdict::Suspect => "WARNING",
                    Verdict::Invalid => "CAUTION",
                };
                let _ = writeln!(self.out, "> [!{alert}]\n> {}", self.spans(title));
                for line in lines {
                    let _ = writeln!(self.out, "> - {}", self.spans(line));
                }
                self.out.push('\n');
            }
            Block::Findings(findings) => {
                let findings = findings.iter().map(|finding| {
                    format!(
                        "**{}** `{}`: {}. Why it matters: {}. What to do: {}.",
                        finding.severity.name(),
                        finding.id.name(),
                        part(&finding.seen),
                        part(&finding.why),
                        part(&finding.advice)
                    )
                });
                self.list(findings.collect());
            }
            Block::Definitions(metrics) => {
                let metrics = metrics.iter().map(|(name, metric)| {
                    let [definition, equals] = [metric.definition, metric.equals].map(part);
                    format!("**{}**: {definition}. Equals: {equals}.", part(name))
                });
                self.list(metrics.collect());
            }
        }
    }

    fn list(&mut self, items: Vec<String>) {
        for item in items {
            let _ = writeln!(self.out, "- {item}");
        }
        self.out.push('\n');
    }

    /// Links to the sections, between the marks that tools for such lists look for.
    fn contents(&mut self) {
        self.out.push_str("<!-- toc -->\n\n");
        self.heading(2, CONTENTS);
        let listed = self.anchors.iter().filter(|(heading, _)| heading.level < 4);
        let links: String = listed
            .map(|(heading, anchor)| {
                let indent = if heading.level == 2 { "" } else { "  " };
                format!("{indent}- [{}](#{anchor})\n", self.within(&heading.text))
            })
            .collect();
        let _ = writeln!(self.out, "{links}\n<!-- tocstop -->\n");
    }

    fn table(&mut self, table: &Table) {
        let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        self.out.push_str(&row(table.head.iter().map(|head| part(head)).collect()));
        let marks = table.numbers().into_iter();
        let marks = marks.map(|is_number| if is_number { "---:" } else { "---" }.to_owned());
        self.out.push_str(&row(marks.collect()));
        for cells in &table.rows {
            let cell = |cell: &Cell| {
                let text = self.within(&cell.text);
                // A bar ends a cell even within code, which has no other escapes.
                text.replace("\\|", "|").replace('|', "\\|")
            };
            let row = row(cells.iter().map(cell).collect());
            self.out.push_str(&row);
        }
        self.out.push('\n');
    }

    fn spans(&self, text: &Text) -> String {
        begun(self.within(text))
    }

    fn within(&self, text: &Text) -> String {
        let each = text.0.iter().map(|span| match span {
            Span::Code(text) => code(text),
            Span::Strong(text) => strong(text),
            Span::Word(text) => format!("*{text}*"),
            Span::Badge(text, Verdict::Suspect | Verdict::Invalid) => strong(text),
            Span::Link(text, name) => match self.anchor(name) {
                Some(anchor) => format!("[{}](#{anchor})", part(text)),
                None => part(text),
            },
            Span::Break => "<br>".to_owned(),
            other => part(&other.to_plain()),
        });
        each.collect()
    }

    fn anchor(&self, name: &str) -> Option<&str> {
        let mut anchors = self.anchors.iter();
        let found = anchors.find(|(heading, _)| heading.name.as_deref() == Some(name));
        found.map(|(_, anchor)| anchor.as_str())
    }
}

fn fact(Pair { name, value }: &Pair) -> String {
    format!("{}: {}", part(name), part(value))
}

/// Text without characters that change how the text after them is shown.
fn clean(text: &str) -> String {
    let spaced =
        |c: char| if c != '\n' && c != '\t' && model::clean::unsafe_to_show(c) { ' ' } else { c };
    text.chars().map(spaced).collect()
}

/// Foreign text on one line, without Markdown and HTML. Spaces at its ends are kept.
fn part(text: &str) -> String {
    let end = |yes: bool| if yes { " " } else { "" };
    let (begins, ends) = (text.starts_with(' '), text.ends_with(' '));
    let safe = inline(&clean(text));
    if safe.is_empty() {
        end(begins).to_owned()
    } else {
        format!("{}{safe}{}", end(begins), end(ends))
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

/// Emphasized text; its marks take no space beside them within.
fn strong(text: &str) -> String {
    let safe = part(text);
    let inner = safe.trim_matches(' ');
    if inner.is_empty() { safe } else { safe.replacen(inner, &format!("**{inner}**"), 1) }
}

/// Code within a line, between more backticks than it has in a row.
fn code(text: &str) -> String {
    let text: String = clean(text).replace(['\n', '\t'], " ");
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let marks = "`".repeat(longest + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{marks}{space}{text}{space}{marks}")
}

/// Text within a line, without marks. Words that sites turn into links are code.
fn inline(text: &str) -> String {
    let ends = |c: char| c.is_whitespace() || c.is_control();
    let words = text.trim().split_inclusive(ends).map(|with_end| {
        let word = with_end.trim_end_matches(ends);
        let lower = word.to_ascii_lowercase();
        if ["@", "://", "www."].iter().any(|mark| lower.contains(mark)) {
            code(word) + &escaped(&with_end[word.len()..])
        } else {
            escaped(with_end)
        }
    });
    words.collect()
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            c if c.is_control() => safe.push(' '),
            c => {
                if MARKS.contains(c) {
                    safe.push('\\');
                }
                safe.push(c);
            }
        }
    }
    safe
}

/// Text in a fence, which is longer than any row of backticks in the text, with a newline after it.
fn fence(language: &str, text: &str) -> String {
    let (mut longest, mut run) = (0, 0);
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(3.max(longest + 1));
    format!("{fence}{language}\n{}\n{fence}\n", clean(text).trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_within_a_line_means_anything() {
        for (text, safe) in [
            ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
            ("a|b", "a\\|b"),
            ("<script>&amp;", "&lt;script&gt;&amp;amp;"),
            ("[x](y) *z* _w_ `v`", "\\[x\\](y) \\*z\\* \\_w\\_ \\`v\\`"),
            ("two\r\nlines\u{1b}[31m", "two  lines \\[31m"),
            ("# $x$ ~~y~~", "\\# \\$x\\$ \\~\\~y\\~\\~"),
            ("by @org/team, *", "by `@org/team,` \\*"),
            ("https://a/?b=*c*\nWWW.x`y", "`https://a/?b=*c*` ``WWW.x`y``"),
        ] {
            assert_eq!(inline(text), safe);
        }
    }

    #[test]
    fn a_fence_is_longer_than_its_content() {
        let fence = |text| fence("text", text);
        assert_eq!(fence("a\n"), "```text\na\n```\n");
        assert_eq!(fence("a\n````\n# b"), "`````text\na\n````\n# b\n`````\n");
        assert_eq!(fence("a\u{1b}[0m\tb"), "```text\na [0m\tb\n```\n");
    }
}

//! The cards of benchmark clients (`runner verify`): as a page that compares them case by case, and
//! each as a badge. Text is the terminal's form of the page, and `verify` has every verdict.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::chart::escape;
use crate::document::{Cell, Document, Span, Table, Text, Tone, pairs};
use model::shell;
use verify::card::{Card, CaseCard, Outcome, Totals};
use verify::ceiling::Level;
use verify::types::{Check, Part, Verdict};

/// Shown for a case or a level that was not run.
const ABSENT: &str = "–";

/// The page of these cards, in their order; there is at least one.
pub fn page(cards: &[Card]) -> Document {
    let title = match cards {
        [card] => format!("{} against known truth", name(card)),
        _ => "Benchmark clients against known truth".to_owned(),
    };
    let mut page = Document::new("Clients", title);
    page.remark("Each client ran against an engine that logs the sent bytes and their times. A figure is exact if it equals its true value by the client's own definition. A case with a dash was not run.");
    page.heading(2, "Summary");
    page.table(summary(cards));
    for part in [Part::Load, Part::Streams, Part::Faults] {
        let table = verdicts(cards, part);
        if !table.rows.is_empty() {
            page.heading(2, part.title());
            page.table(table);
        }
    }
    ceilings(&mut page, cards);
    page.heading(2, "Figures that differ from the claim");
    for card in cards {
        page.heading(3, name(card));
        doubts(&mut page, card);
    }
    page.heading(2, "Cases");
    page.remark("Counts have no tolerance.");
    page.table(cases(cards));
    page.heading(2, "How it was made");
    for card in cards {
        if cards.len() > 1 {
            page.heading(3, name(card));
        }
        provenance(&mut page, card);
    }
    page
}

fn name(card: &Card) -> String {
    match &card.client.version {
        Some(version) => format!("{} {version}", card.client.title),
        None => card.client.title.clone(),
    }
}

fn summary(cards: &[Card]) -> Table {
    let mut table = Table::new([
        "Client",
        "Exact",
        "Within its stated error",
        "By another definition",
        "Wrong",
        "Failed",
        "Not applicable",
    ]);
    for card in cards {
        let Totals {
            exact,
            within_stated_error,
            another_definition,
            wrong,
            failed,
            not_applicable,
        } = card.totals;
        let bad = |count: usize| Cell {
            text: Text::plain(count.to_string()),
            tone: if count > 0 { Tone::Bad } else { Tone::Plain },
        };
        table.row([
            Cell::from(name(card)),
            exact.to_string().into(),
            within_stated_error.to_string().into(),
            bad(another_definition),
            bad(wrong),
            bad(failed),
            not_applicable.to_string().into(),
        ]);
    }
    table
}

/// Every case that a card has, in the order of the first card that has it.
fn union(cards: &[Card]) -> Vec<&CaseCard> {
    let mut all: Vec<&CaseCard> = Vec::new();
    for case in cards.iter().flat_map(|card| &card.cases) {
        if !all.iter().any(|known| known.name == case.name) {
            all.push(case);
        }
    }
    all
}

fn verdicts(cards: &[Card], part: Part) -> Table {
    let names = cards.iter().map(|card| card.client.title.clone());
    let mut table = Table::new(["Case".to_owned()].into_iter().chain(names));
    let cases = union(cards).into_iter();
    for case in cases.filter(|case| case.part == part) {
        let of = |card: &Card| {
            let own = card.cases.iter().find(|own| own.name == case.name);
            own.map_or_else(|| Cell::from(ABSENT), verdict)
        };
        let first = Cell::from(Text::from(Span::Code(case.name.clone())));
        table.row([first].into_iter().chain(cards.iter().map(of)));
    }
    table
}

/// The worst verdict of a case, with the figures that have it.
fn verdict(case: &CaseCard) -> Cell {
    let (text, tone) = match &case.outcome {
        Outcome::Judged(verdict @ (Verdict::Exact | Verdict::WithinStatedError)) => {
            (verdict.label().to_owned(), Tone::Good)
        }
        Outcome::Judged(worst) => {
            let of = |check: &&Check| check.verdict == *worst;
            let mut names: Vec<&str> = Vec::new();
            for check in case.checks.iter().filter(of) {
                let quantity = quantity(&check.figure);
                if !names.contains(&quantity) {
                    names.push(quantity);
                }
            }
            let label = match worst {
                Verdict::AnotherDefinition => "other definition",
                _ => worst.label(),
            };
            (format!("{label}: {}", names.join(", ")), Tone::Bad)
        }
        Outcome::Failed(_) => ("failed".to_owned(), Tone::Bad),
        Outcome::NotApplicable(_) => ("not applicable".to_owned(), Tone::Plain),
    };
    Cell { text: Text::plain(text), tone }
}

/// A figure without its statistic: `ttft` of `ttft.mean`, `requests.failed` as it is.
fn quantity(figure: &str) -> &str {
    let time = ["ttft", "tpot", "itl", "e2e"];
    match figure.split_once('.') {
        Some((quantity, _)) if time.contains(&quantity) => quantity,
        _ => figure,
    }
}

/// Adds the ceiling of each client, if it was measured.
fn ceilings(page: &mut Document, cards: &[Card]) {
    let known = |card: &&Card| card.ceiling.is_some();
    let cards: Vec<&Card> = cards.iter().filter(known).collect();
    if cards.is_empty() {
        return;
    }
    page.heading(2, "Ceiling");
    page.remark("Streams of a token every 20 ms, more at each level. The figure is the share by which the client's TTFT or its gaps are off, whichever is worse. The server shares the machine with the client.");
    let ceilings = cards.iter().filter_map(|card| card.ceiling.as_ref());
    let levels = ceilings.flat_map(|ceiling| &ceiling.levels);
    let streams: BTreeSet<u64> = levels.map(|level| level.streams).collect();
    let names = cards.iter().map(|card| card.client.title.clone());
    let mut table = Table::new(["Streams".to_owned()].into_iter().chain(names));
    for streams in streams {
        let of = |card: &&Card| {
            let levels = card.ceiling.iter().flat_map(|ceiling| &ceiling.levels);
            let level = levels.into_iter().find(|level| level.streams == streams);
            level.map_or_else(|| Cell::from(ABSENT), level_cell)
        };
        let first = Cell::from(streams.to_string());
        table.row([first].into_iter().chain(cards.iter().map(of)));
    }
    page.table(table);
    let words = cards.iter().filter_map(|card| {
        let ceiling = card.ceiling.as_ref()?;
        Some(Text::strong(name(card)).then(format!(": {}", ceiling.label())))
    });
    page.list(words.collect());
}

fn level_cell(level: &Level) -> Cell {
    let text = match (&level.failed, level.worst()) {
        (Some(_), _) => "failed".to_owned(),
        (None, Some(worst)) if worst.is_finite() => format!("{:.1} %", worst * 100.0),
        (None, _) => ABSENT.to_owned(),
    };
    Cell { text: Text::plain(text), tone: if level.holds() { Tone::Good } else { Tone::Bad } }
}

fn doubts(page: &mut Document, card: &Card) {
    let mut clean = true;
    for case in &card.cases {
        let lines: Vec<Text> = match &case.outcome {
            Outcome::Judged(_) => {
                let off = |check: &&Check| check.verdict > Verdict::WithinStatedError;
                let line = |check: &Check| {
                    Text::from(Span::Code(check.figure.clone())).then(format!(": {}", check.words))
                };
                case.checks.iter().filter(off).map(line).collect()
            }
            Outcome::Failed(why) => vec![Text::plain(format!("failed: {why}"))],
            Outcome::NotApplicable(_) => Vec::new(),
        };
        if !lines.is_empty() {
            clean = false;
            page.heading(4, Text::from(Span::Code(case.name.clone())));
            page.paragraph(Text::plain(sentence(&case.title)));
            page.list(lines);
        }
    }
    if clean {
        page.say("None: every figure that it states is exact or within the error that it states.");
    }
}

fn sentence(line: &str) -> String {
    if line.ends_with(['.', '!', '?']) { line.to_owned() } else { format!("{line}.") }
}

fn cases(cards: &[Card]) -> Table {
    let mut table = Table::new(["Case", "What happens", "Why it matters", "Tolerance of times"]);
    table.numeric = Some(0..0);
    for case in union(cards) {
        table.row([
            Cell::from(Text::from(Span::Code(case.name.clone()))),
            case.title.as_str().into(),
            case.why.as_str().into(),
            case.tolerance.as_str().into(),
        ]);
    }
    table
}

fn provenance(page: &mut Document, card: &Card) {
    page.pairs(pairs([
        ("Judged by", Some(format!("runner {}", card.runner))),
        ("Date", card.date.clone()),
        ("Machine", card.machine.clone()),
        ("Tokenizer", Some(card.tokenizer.clone())),
    ]));
    let unable = card.cases.iter().filter_map(|case| match &case.outcome {
        Outcome::NotApplicable(why) => {
            Some(Text::from(Span::Code(case.name.clone())).then(format!(" does not apply: {why}")))
        }
        _ => None,
    });
    page.list(unable.collect());
    if let Some(case) = card.cases.iter().find(|case| !case.command.is_empty()) {
        page.say(&format!("The command of the case `{}`:", case.name));
        page.code("bash", shell::line(&case.command));
    }
}

/// Room for a character of 11 pixels' height; text is stretched to its room in any font.
const CHARACTER: usize = 7;
/// Pixels on either side of a text.
const ASIDE: usize = 6;
const HEIGHT: usize = 20;

/// The badge of a card: the number of exact cases among the cases that apply.
pub fn badge(card: &Card) -> String {
    let Totals { exact, within_stated_error, another_definition, wrong, failed, not_applicable: _ } =
        card.totals;
    let good = exact + within_stated_error;
    let all = good + another_definition + wrong + failed;
    let colour = match all - good {
        _ if all == 0 => "#6b7280",
        0 => "#15803d",
        _ if wrong + failed == 0 => "#a16207",
        _ => "#b91c1c",
    };
    let label = "runner verify";
    let value = match all {
        0 => "no case".to_owned(),
        _ => format!("{good} of {all} true"),
    };
    let title = format!("{}: {label}, {value}", name(card));
    let (left, right) = (width(label), width(&value));
    let mut svg = String::new();
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{all}\" height=\"{HEIGHT}\" role=\"img\" aria-label=\"{title}\">\
         <title>{title}</title>\
         <rect width=\"{all}\" height=\"{HEIGHT}\" rx=\"3\" fill=\"{colour}\"/>\
         <path d=\"M3 0H{left}V{HEIGHT}H3a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3z\" fill=\"#374151\"/>\
         <g fill=\"#fff\" font-family=\"Verdana,DejaVu Sans,sans-serif\" font-size=\"11\">",
        all = left + right,
        title = escape(&title),
    );
    for (from, text) in [(0, label), (left, value.as_str())] {
        let _ = write!(
            svg,
            "<text x=\"{}\" y=\"14\" textLength=\"{}\">{}</text>",
            from + ASIDE,
            text.chars().count() * CHARACTER,
            escape(text)
        );
    }
    svg.push_str("</g></svg>\n");
    svg
}

fn width(text: &str) -> usize {
    text.chars().count() * CHARACTER + 2 * ASIDE
}

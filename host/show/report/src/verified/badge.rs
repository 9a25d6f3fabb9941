//! A card as a badge: a small SVG for a project's README.

use std::fmt::Write as _;

use crate::chart::escape;
use verify::card::{Card, Totals};

/// Room for a character of 11 pixels' height. Text is stretched to the room that it was given, so
/// that it fits whatever font a reader has.
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
    let title = match &card.client.version {
        Some(version) => format!("{} {version}: {label}, {value}", card.client.title),
        None => format!("{}: {label}, {value}", card.client.title),
    };
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

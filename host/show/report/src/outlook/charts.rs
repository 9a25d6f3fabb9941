//! The charts of an outlook: a histogram of each distribution.

use crate::chart::{
    Axis, Cell, Chart, Column, Form, Key, Mark, Panel, Point, Rows, Rule, Shape, Side, Snap, Ticks,
    Tone, scale,
};
use model::number::{count, percent, short};
use runs::outlook::{Bar, Lengths, Outlook};

/// The histograms of an outlook, for the data that it has.
pub fn charts(outlook: &Outlook) -> Vec<Chart> {
    let due = outlook.due.as_ref().map(|due| &due.seconds);
    let sessions = &outlook.sessions;
    let drawn = [
        ("input-tokens", "Tokens of prompts", "tokens", outlook.input.tokens.as_ref()),
        ("output-tokens", "Requested tokens", "tokens", outlook.output.tokens.as_ref()),
        ("due", "Due times", "s", due),
        ("session-requests", "Requests per session", "requests", sessions.requests.as_ref()),
        ("delays", "Delays after earlier requests", "s", sessions.delays.as_ref()),
    ];
    drawn
        .into_iter()
        .filter_map(|(name, title, unit, lengths)| Some(histogram(name, title, unit, lengths?)))
        .collect()
}

/// The name of a bar.
pub(super) fn range(bar: &Bar, unit: &str) -> String {
    let width = bar.to - bar.from;
    let whole = unit != "s" && width == 1.0;
    if whole {
        short(bar.from, 6)
    } else {
        format!("{} to {}", short(bar.from, 6), short(bar.to, 6))
    }
}

fn histogram(name: &str, title: &str, unit: &str, lengths: &Lengths) -> Chart {
    let bars = &lengths.bars;
    let share = |bar: &Bar| bar.count as f64 / lengths.count as f64;
    let most = bars.iter().map(share).fold(0.0, f64::max);
    let low = bars.first().map_or(0.0, |bar| bar.from);
    let high = bars.last().map_or(1.0, |bar| bar.to);
    let value = |value: f64| format!("{} {unit}", short(value, 4));
    let rules = [("P50", lengths.p50), ("P99", lengths.p99)];
    Chart {
        name: name.to_owned(),
        title: format!("{title}, histogram"),
        note: "The share of values in each bar.".to_owned(),
        seen: format!(
            "Of {} values, half are at most {}, 90 % at most {}, 99 % at most {}; the largest is {}.",
            count(lengths.count),
            value(lengths.p50),
            value(lengths.p90),
            value(lengths.p99),
            value(lengths.max)
        ),
        x: Axis { title: format!("{title} ({unit})"), low, high, ticks: Ticks::Numbers },
        panels: vec![Panel {
            y: Axis {
                title: "share of values".to_owned(),
                low: 0.0,
                high: scale::round_end(most, 4),
                ticks: Ticks::Percent,
            },
            height: 220.0,
            marks: vec![Mark {
                key: 0,
                shape: Shape::Bars,
                points: bars
                    .iter()
                    .map(|bar| Point { x: bar.from, to: bar.to, y: Some(share(bar)) })
                    .collect(),
                column: Some(Column {
                    head: "share".to_owned(),
                    cells: bars
                        .iter()
                        .map(|bar| {
                            Some(Cell {
                                x: (bar.from + bar.to) / 2.0,
                                y: share(bar),
                                text: format!("{} ({})", percent(share(bar)), count(bar.count)),
                            })
                        })
                        .collect(),
                }),
            }],
            rules: rules
                .map(|(label, at)| Rule {
                    side: Side::X,
                    at,
                    label: format!("{label} {}", value(at)),
                })
                .into(),
            bands: Vec::new(),
        }],
        keys: vec![Key { label: title.to_owned(), tone: Tone::Series(0) }],
        rows: Rows {
            head: unit.to_owned(),
            labels: bars.iter().map(|bar| range(bar, unit)).collect(),
            snap: Snap::X,
        },
        log: None,
        form: Form::Full,
    }
}

//! The outlook on a run ([`runs::outlook`]) as text, as a page and as charts.

mod text;

use crate::chart::{
    Axis, Cell, Chart, Form, Key, Mark, Panel, Point, Rows, Rule, Shape, Side, Snap, Ticks, Tone,
    scale,
};
use crate::charts::histogram as bars_of;
use crate::charts::lanes::{Drawing, draw};
use crate::document::{Block, Document, Table, pair};
use crate::view::Lane;
use model::number::{count, percent, plural, short};
use runs::outlook::{Bar, InFlight, Lengths, Outlook, RecordedSession};
use text::{facts, title};

pub use text::text;

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
    let histograms = drawn
        .into_iter()
        .filter_map(|(name, title, unit, lengths)| Some(histogram(name, title, unit, lengths?)));
    let flight = outlook.in_flight.as_ref().map(in_flight);
    histograms.chain(flight).chain(lanes(&outlook.recorded_sessions)).collect()
}

/// The first sessions at their recorded times.
fn lanes(sessions: &[RecordedSession]) -> Option<Chart> {
    let lanes = sessions.iter().map(|session| {
        let bars = session.requests.iter().map(|request| crate::view::Bar {
            sent_s: request.start,
            first_s: Some(request.start),
            ended_s: request.end,
            is_sub_agents: request.is_sub_agents,
            failure: None,
        });
        Lane { sessions: 1, bars: bars.collect() }
    });
    let lanes: Vec<Lane> = lanes.collect();
    (!lanes.is_empty()).then(|| {
        draw(Drawing {
            name: "sessions".to_owned(),
            title: "Sessions and their requests".to_owned(),
            lanes: &lanes,
            row: "session",
            labels: ["", "a request, as recorded"],
            axis: "recorded time (s)",
            note: "Each row is one of the first sessions; a bar is a request.".to_owned(),
        })
    })
}

/// The most tokens in flight over time.
fn in_flight(flight: &InFlight) -> Chart {
    let spans = &flight.spans;
    let bars = spans.iter().map(|span| {
        let y = span.count as f64;
        let text = format!("{} tokens", count(span.count));
        let cell = Cell { x: f64::midpoint(span.from, span.to), y, text };
        (Point { x: span.from, to: span.to, y: Some(y) }, Some(cell))
    });
    let (points, cells) = bars.unzip();
    let end = spans.last().map_or(1.0, |span| span.to);
    let most = scale::round_end(flight.most_tokens as f64, 4);
    let y = Axis::new("most tokens", 0.0, most, Ticks::Numbers);
    let marks = vec![Mark::new(0, Shape::Bars, points).with_column("tokens", cells)];
    Chart {
        name: "in-flight".to_owned(),
        title: "Tokens in flight".to_owned(),
        note: "The most tokens of prompts and answers at a time in each span, by the recorded durations."
            .to_owned(),
        seen: format!(
            "At most {} tokens of {} are in flight at a time.",
            count(flight.most_tokens),
            plural(flight.most_requests, "request")
        ),
        x: Axis::new("Time (s)", 0.0, end, Ticks::Numbers),
        panels: vec![Panel::new(y, 220.0, marks)],
        keys: vec![Key { label: "Tokens in flight".to_owned(), tone: Tone::Series(0) }],
        rows: Rows::new("s", spans.iter().map(|bar| range(bar, "s")).collect(), Snap::X),
        log: None,
        form: Form::Full,
    }
}

fn range(bar: &Bar, unit: &str) -> String {
    if unit != "s" && bar.to - bar.from == 1.0 {
        short(bar.from, 6)
    } else {
        format!("{} to {}", short(bar.from, 6), short(bar.to, 6))
    }
}

fn histogram(name: &str, title: &str, unit: &str, lengths: &Lengths) -> Chart {
    let bars = &lengths.bars;
    let (points, cells) =
        bars_of(bars.iter().map(|bar| (bar.from, bar.to, bar.count)).collect(), lengths.count);
    let most = points.iter().filter_map(|point| point.y).fold(0.0, f64::max);
    let low = bars.first().map_or(0.0, |bar| bar.from);
    let high = bars.last().map_or(1.0, |bar| bar.to);
    let value = |value: f64| format!("{} {unit}", short(value, 4));
    let rules = [("P50", lengths.p50), ("P99", lengths.p99)]
        .map(|(label, at)| Rule::new(Side::X, at, format!("{label} {}", value(at))));
    let y = Axis::new("share of values", 0.0, scale::round_end(most, 4), Ticks::Percent);
    let marks = vec![Mark::new(0, Shape::Bars, points).with_column("share", cells)];
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
        x: Axis::new(format!("{title} ({unit})"), low, high, Ticks::Numbers),
        panels: vec![Panel { rules: rules.into(), ..Panel::new(y, 220.0, marks) }],
        keys: vec![Key { label: title.to_owned(), tone: Tone::Series(0) }],
        rows: Rows::new(unit, bars.iter().map(|bar| range(bar, unit)).collect(), Snap::X),
        log: None,
        form: Form::Full,
    }
}

// An outlook as a page: its facts, its histograms, and the best possible hits of a prefix cache.

pub fn page(outlook: &Outlook) -> Document {
    let mut page = Document::new("Plan", title(outlook));
    page.heading(2, "Requests");
    let facts = facts(outlook).into_iter();
    page.push(Block::Pairs(facts.map(|(label, words)| pair(label.trim(), words)).collect()));
    let mut table = Table::new(["tokens that the cache holds", "best possible hits"]);
    for size in outlook.cache.iter().flat_map(|cache| &cache.sizes) {
        table.row([count(size.tokens), percent(size.share)]);
    }
    if !table.rows.is_empty() {
        page.heading(2, "Prefix cache");
        page.table(table);
        page.say(
            "Pages leave in the order of Belady, which knows the future: no engine has more hits.",
        );
    }
    let charts = charts(outlook);
    if !charts.is_empty() {
        page.heading(2, "Distributions");
    }
    charts.into_iter().for_each(|chart| page.chart(chart));
    page
}

#[cfg(test)]
mod tests;

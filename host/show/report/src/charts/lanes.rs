//! Swim lanes: users or sessions, one below the other, each with its requests.

use super::{RunView, of_run};
use crate::chart::{
    Axis, Cell, Chart, Column, Form, Key, Mark, Panel, Point, Rows, Shape, Snap, Ticks, Tone,
};
use crate::view::{Bar, Lane};
use model::number::{count, plural};

const ROW: f64 = 16.0;

/// The places and pixel heights of bars in a row: a session's own, and its sub-agents'.
const PLACES: [(f64, f64); 2] = [(-0.1, 8.0), (0.32, 3.0)];

/// The part of a request that a bar shows, in seconds.
type Span = fn(&Bar) -> Option<(f64, f64)>;

pub(super) fn charts(runs: &[RunView]) -> Vec<Chart> {
    (0..runs.len()).filter_map(|number| chart(runs, number)).collect()
}

/// Rows of bars, and their texts.
pub(crate) struct Drawing<'d> {
    pub name: String,
    pub title: String,
    pub lanes: &'d [Lane],
    /// A row: `user`.
    pub row: &'static str,
    /// A bar up to its first token, and after it.
    pub labels: [&'static str; 2],
    pub axis: &'static str,
    pub note: String,
}

fn chart(runs: &[RunView], number: usize) -> Option<Chart> {
    let drawn = runs[number].view.lanes.as_ref()?;
    let [name, title] = of_run(runs, number, "lanes", "Users and their requests");
    let mut note = "Each row is a user, or lane, with its sessions one after the other; a bar is a request from when it was sent.".to_owned();
    if drawn.left_out > 0 {
        note.push_str(&format!(" {} further requests are left out.", count(drawn.left_out)));
    }
    Some(draw(Drawing {
        name,
        title,
        lanes: &drawn.lanes,
        row: "user",
        labels: ["until the first token", "decoding"],
        axis: "time since the measurement began (s)",
        note,
    }))
}

pub(crate) fn draw(drawing: Drawing<'_>) -> Chart {
    let lanes = drawing.lanes;
    let bars = || lanes.iter().flat_map(|lane| &lane.bars);
    let end = bars().map(|bar| bar.ended_s).fold(0.0, f64::max);
    let has_sub_agents = bars().any(|bar| bar.is_sub_agents);
    let spans: [(&str, Tone, Span); 3] = [
        (drawing.labels[0], Tone::Phase(3), |bar| {
            let end = bar.first_s.unwrap_or(bar.ended_s);
            bar.failure.is_none().then_some((bar.sent_s, end))
        }),
        (drawing.labels[1], Tone::Phase(4), |bar| {
            bar.first_s.filter(|_| bar.failure.is_none()).map(|first| (first, bar.ended_s))
        }),
        ("failed", Tone::Failed, |bar| bar.failure.map(|_| (bar.sent_s, bar.ended_s))),
    ];
    let (mut keys, mut marks) = (Vec::new(), Vec::new());
    for (label, tone, span) in spans {
        if !bars().any(|bar| span(bar).is_some_and(|(from, to)| to > from)) {
            continue;
        }
        for (is_sub_agents, (place, height)) in [false, true].into_iter().zip(PLACES) {
            let rows = lanes.iter().enumerate();
            let points = rows.flat_map(|(row, lane)| {
                let own = lane.bars.iter().filter(|bar| bar.is_sub_agents == is_sub_agents);
                own.filter_map(move |bar| {
                    let (x, to) = span(bar)?;
                    Some(Point { x, to, y: Some(row as f64 + place) })
                })
            });
            marks.push(Mark::new(keys.len(), Shape::Spans(height), points.collect()));
        }
        keys.push(Key { label: label.to_owned(), tone });
    }
    let column = |head: &str, text: &dyn Fn(&Lane) -> String| Column {
        head: head.to_owned(),
        cells: (lanes.iter().enumerate())
            .map(|(row, lane)| {
                let x = lane.bars.iter().map(|bar| bar.ended_s).fold(0.0, f64::max);
                Some(Cell { x, y: row as f64, text: text(lane) })
            })
            .collect(),
    };
    let failed = |lane: &Lane| lane.bars.iter().filter(|bar| bar.failure.is_some()).count();
    for column in [
        column("sessions", &|lane| count(lane.sessions)),
        column("requests", &|lane| count(lane.bars.len() as u64)),
        column("failed", &|lane| count(failed(lane) as u64)),
    ] {
        let unseen = Mark::new(0, Shape::Unseen, Vec::new());
        marks.push(Mark { column: Some(column), ..unseen });
    }
    let mut note = drawing.note;
    if has_sub_agents {
        note.push_str(" Thin bars are requests of sub-agents.");
    }
    let rows = lanes.len().max(1) as f64;
    let y = Axis::new("", -0.5, rows - 0.5, Ticks::None);
    Chart {
        name: drawing.name,
        title: drawing.title,
        note,
        seen: format!(
            "{} of {}, {} of them failed.",
            plural(bars().count() as u64, "request"),
            plural(lanes.len() as u64, drawing.row),
            lanes.iter().map(failed).sum::<usize>()
        ),
        x: Axis::new(drawing.axis, 0.0, end * 1.01, Ticks::Numbers),
        panels: vec![Panel::new(y, (rows * ROW).max(40.0), marks)],
        keys,
        rows: Rows::new(
            drawing.row,
            (1..=lanes.len()).map(|lane| format!("{} {lane}", drawing.row)).collect(),
            Snap::Y,
        ),
        log: None,
        form: Form::Full,
    }
}

//! Charts of the time to first token over its causes: the prompt's length, and the time in the run.

use super::{RunView, end, keys, milliseconds, round_begin, seconds, sentences, time_unit};
use crate::chart::{
    Axis, Cell, Chart, Form, Log, Mark, Panel, Point, Rows, Shape, Side, Snap, Ticks,
};
use crate::view::Dot;
use model::number::{count, short};
use statistics::{Ranked, Sorted};

/// Parts of the horizontal axis, each with its own median.
const PARTS: usize = 16;

/// If the largest is more than this many times the median, the axis starts out logarithmic.
const SKEWED: f64 = 12.0;

pub(super) fn charts(runs: &[RunView]) -> Vec<Chart> {
    let by_length = Kind {
        name: "ttft-prompt",
        title: "TTFT against prompt length",
        note: "One point per request; the line joins the medians of equal parts of the axis. The part that rises with the length is prefill; the rest is waiting.",
        axis: "prompt (tokens)",
        head: "Prompt",
        of: |dot| dot.input_tokens.map(f64::from),
        words: |from, to| format!("{} to {} tokens", short(from, 4), short(to, 4)),
    };
    let by_time = Kind {
        name: "ttft-time",
        title: "TTFT over the run",
        note: "One point per request, at the time it was sent; the line joins the medians of equal spans of time. A line that rises throughout shows a growing queue.",
        axis: "time sent, since the measurement began (s)",
        head: "Sent",
        of: |dot| Some(dot.sent_s),
        words: |from, to| format!("{} to {}", seconds(from), seconds(to)),
    };
    [by_length, by_time].iter().filter_map(|kind| chart(runs, kind)).collect()
}

/// A scatter plot, and the horizontal positions of its points.
struct Kind {
    name: &'static str,
    title: &'static str,
    note: &'static str,
    axis: &'static str,
    head: &'static str,
    of: fn(&Dot) -> Option<f64>,
    words: fn(f64, f64) -> String,
}

/// The plot; `None` if all points are at the same place, or there are none.
fn chart(runs: &[RunView], kind: &Kind) -> Option<Chart> {
    let points = |run: &RunView| -> Vec<(f64, f64)> {
        run.view.dots.iter().filter_map(|dot| Some(((kind.of)(dot)?, dot.ttft_ms))).collect()
    };
    let of_runs: Vec<_> = runs.iter().map(points).collect();
    let all = || of_runs.iter().flatten();
    let low = all().map(|(x, _)| *x).fold(f64::INFINITY, f64::min);
    let high = all().map(|(x, _)| *x).fold(f64::NEG_INFINITY, f64::max);
    if low >= high || !low.is_finite() {
        return None;
    }
    let ttft = Sorted::new(all().map(|(_, y)| *y).collect())?;
    let (unit, divisor) = time_unit(ttft.max());
    let width = (high - low) / PARTS as f64;
    let edge = |part: usize| low + part as f64 * width;
    let part_of = |x: f64| (((x - low) / width) as usize).min(PARTS - 1);
    let mut marks = Vec::new();
    for (number, points) in of_runs.iter().enumerate() {
        let dots = points.iter().map(|(x, y)| Point::at(*x, y / divisor));
        marks.push(Mark::new(number, Shape::Dots, dots.collect()));
        let mut parts = vec![Vec::new(); PARTS];
        for (x, y) in points {
            parts[part_of(*x)].push(*y);
        }
        let cells: Vec<Option<Cell>> = parts
            .into_iter()
            .enumerate()
            .map(|(part, samples)| {
                let of = samples.len() as u64;
                let median = Sorted::new(samples)?.percentile(50.0);
                Some(Cell {
                    x: edge(part) + width / 2.0,
                    y: median / divisor,
                    text: format!("median {} of {}", milliseconds(median), count(of)),
                })
            })
            .collect();
        let medians = cells.iter().flatten().map(|cell| Point::at(cell.x, cell.y));
        let line = Mark::new(number, Shape::Line, medians.collect());
        marks.push(line.with_column(&*runs[number].label, cells));
    }
    let seen = sentences(runs, |number| {
        let points = &of_runs[number];
        let ttft = Sorted::new(points.iter().map(|(_, y)| *y).collect())?;
        Some(format!(
            "{} requests with TTFT from {} to {}, half of them at most {}.",
            count(points.len() as u64),
            milliseconds(ttft.min()),
            milliseconds(ttft.max()),
            milliseconds(ttft.percentile(50.0))
        ))
    });
    let answered: u64 = runs.iter().map(|run| run.reported.summary.requests.successful).sum();
    let shown = all().count() as u64;
    let mut note = kind.note.to_owned();
    if shown < answered {
        let [shown, answered] = [shown, answered].map(count);
        note += &format!(" The chart shows {shown} of {answered}, spread evenly over the run.");
    }
    let rows = (0..PARTS).map(|part| (kind.words)(edge(part), edge(part + 1)));
    let margin = (high - low) * 0.02;
    let begin = if low < high * 0.4 { 0.0 } else { low - margin };
    let y = Axis::new(format!("TTFT ({unit})"), 0.0, end(ttft.max() / divisor), Ticks::Numbers);
    Some(Chart {
        name: kind.name.to_owned(),
        title: kind.title.to_owned(),
        note,
        seen,
        x: Axis::new(kind.axis, begin, high + margin, Ticks::Numbers),
        panels: vec![Panel::new(y, 220.0, marks)],
        keys: keys(runs),
        rows: Rows::new(kind.head, rows.collect(), Snap::X),
        log: Some(Log {
            side: Side::Y,
            low: round_begin((ttft.min() / divisor).max(ttft.max() / divisor * 1e-5).max(1e-6)),
            first: ttft.max() > SKEWED * ttft.percentile(50.0),
        }),
        form: Form::Half,
    })
}

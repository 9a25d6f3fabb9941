//! The parts of the time to first token as stacked bars: of the mean, and of the requests around
//! percentiles.

use super::{RunView, milliseconds, of_run};
use crate::chart::{
    Axis, Cell, Chart, Form, Key, Mark, Panel, Point, Rows, Shape, Snap, Ticks, Tone,
};
use model::number::{count, percent};
use result::summary::FirstToken;
use result::summary::first_token::{Part, Parts, UNEXPLAINED};

/// Pixels from a row to the next: its name, and below it the bar.
const ROW: f64 = 40.0;

const BAR: f64 = 10.0;

/// A chart for each run whose server tells the parts.
pub(super) fn charts(runs: &[RunView]) -> Vec<Chart> {
    let each = runs.iter().enumerate().filter_map(|(number, run)| {
        let split = run.reported.summary.first_token.as_ref()?;
        let title = "Parts of the time to first token";
        Some(chart(split, of_run(runs, number, "first-token", title)))
    });
    each.collect()
}

/// The tone of a part: the tone of the same phase in a waterfall.
fn tone(part: Option<Part>) -> Tone {
    Tone::Phase(match part {
        Some(Part::Client) => 0,
        Some(Part::Connection) => 2,
        Some(Part::Network | Part::NetworkAndFrontEnd) => 5,
        Some(Part::FrontEnd) => 6,
        Some(Part::Queue) => 7,
        Some(Part::Prefill) => 8,
        None => 3,
    })
}

fn chart(split: &FirstToken, [name, title]: [String; 2]) -> Chart {
    let mut rows: Vec<(String, &Parts)> =
        vec![(format!("mean of {} requests", count(split.requests)), &split.mean)];
    rows.extend(split.around.iter().map(|around| {
        let requests = count(around.requests);
        let named = format!("around P{}, mean of {requests}", around.percentile);
        (named, &around.mean)
    }));
    let parts = Part::ALL.into_iter().map(Some).chain([None]);
    // Where each row's next part begins.
    let mut upto = vec![0.0; rows.len()];
    let (mut keys, mut marks) = (Vec::new(), Vec::new());
    for part in parts {
        let length = |parts: &Parts| match part {
            Some(part) => parts.part(part).unwrap_or(0.0),
            // A negative time cannot be drawn, and the note says so.
            None => parts.unexplained_ms.max(0.0),
        };
        if rows.iter().all(|(_, parts)| length(parts) <= 0.0) {
            continue;
        }
        let label = part.map_or(UNEXPLAINED, Part::name).to_owned();
        let (mut points, mut cells) = (Vec::new(), Vec::new());
        for (row, ((_, parts), from)) in rows.iter().zip(&mut upto).enumerate() {
            let ms = length(parts);
            let to = *from + ms;
            if ms > 0.0 {
                points.push(Point { x: *from, to, y: Some(row as f64) });
            }
            let share = parts.share(ms).map(percent).unwrap_or_default();
            let text = format!("{}, {share}", milliseconds(ms));
            cells.push(Some(Cell { x: to, y: row as f64, text }));
            *from = to;
        }
        let bars = Mark::new(keys.len(), Shape::Spans(BAR), points);
        marks.push(bars.with_column(&*label, cells));
        keys.push(Key { label, tone: tone(part) });
    }
    let high = upto.iter().copied().fold(0.0, f64::max);
    let high = if high > 0.0 { high * 1.02 } else { 1.0 };
    let many = rows.len() as f64;
    let mean = &split.mean;
    let y = Axis::new("", -0.8, many - 0.6, Ticks::Names);
    let excess = split.contradiction(count).map(|words| format!(" {words}"));
    Chart {
        name,
        title,
        note: format!(
            "Each bar is the mean time from due to first token of some requests, by its parts.{}",
            excess.unwrap_or_default()
        ),
        seen: format!("Of a mean of {}: {}.", milliseconds(mean.whole_ms), mean.shares()),
        x: Axis::new("time since due (ms)", 0.0, high, Ticks::Numbers),
        panels: vec![Panel::new(y, (many + 0.2) * ROW, marks)],
        keys,
        rows: Rows::new("Requests", rows.into_iter().map(|(name, _)| name).collect(), Snap::Y),
        log: None,
        form: Form::Full,
    }
}

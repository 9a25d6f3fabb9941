//! Charts of several runs, each run a point: one figure against another, and figures over the load.
//!
//! Sweeps, searches and labs say which points; this module makes charts of them.

use super::{end, round_begin};
use crate::chart::{
    Axis, Band, Cell, Chart, Form, Key, Log, Mark, Panel, Point, Rows, Rule, Shape, Side, Snap,
    Ticks, Tone,
};
use model::number;

/// Values whose smallest is more than this share of their largest lie close together.
const CLOSE: f64 = 0.5;

/// The ratio of the largest to the smallest from which an axis starts out logarithmic.
const WIDE: f64 = 20.0;

#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// Its name, unique in its page.
    pub name: String,
    pub title: String,
    pub note: String,
    pub x: String,
    /// The heading of the rows of its table: `Load`.
    pub head: String,
    pub panels: Vec<Plane>,
    /// Parts of the horizontal axis worth a name.
    pub bands: Vec<Band>,
    /// True if each point has the name of its row beside it.
    pub is_named: bool,
}

/// A vertical axis, and the lines drawn against it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plane {
    pub y: String,
    pub is_share: bool,
    pub lines: Vec<Line>,
    /// Places worth a name.
    pub rules: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The name of the points. Lines of the same label have the same key.
    pub label: String,
    pub shape: Style,
    pub spots: Vec<Spot>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Joined,
    /// Joined in their order, without points of its own: it only connects points of other lines.
    Connecting,
    Apart,
    /// Each failure on its own, as a cross.
    Crossed,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Spot {
    /// The row of the table that it is in: its load.
    pub row: String,
    pub x: f64,
    pub y: f64,
    pub text: String,
}

/// The chart. Points without a place, such as the points of a load without a limit, are left out.
pub fn chart(plot: &Plot) -> Chart {
    let lines = || plot.panels.iter().flat_map(|plane| &plane.lines);
    let spots = || lines().flat_map(|line| &line.spots).filter(|spot| is_placed(spot));
    let mut keys: Vec<Key> = Vec::new();
    let mut rows: Vec<String> = Vec::new();
    for line in lines() {
        if !keys.iter().any(|key| key.label == line.label) {
            keys.push(Key {
                label: line.label.clone(),
                tone: match line.shape {
                    Style::Crossed => Tone::Failed,
                    Style::Joined => Tone::Joined(keys.len()),
                    Style::Connecting => Tone::Series(keys.len()),
                    Style::Apart => Tone::Spots(keys.len()),
                },
            });
        }
        for spot in line.spots.iter().filter(|spot| is_placed(spot)) {
            if line.shape != Style::Connecting && !rows.contains(&spot.row) {
                rows.push(spot.row.clone());
            }
        }
    }
    let largest = spots().map(|spot| spot.x).fold(0.0, f64::max);
    let banded = plot.bands.iter().flat_map(|band| [band.from, band.to]);
    let ruled = plot.panels.iter().flat_map(|plane| &plane.rules);
    let ruled = ruled.filter(|rule| rule.side == Side::X).map(|rule| rule.at);
    let (low, high) = fitted(spots().map(|spot| spot.x).chain(banded).chain(ruled));
    let smallest = spots().map(|spot| spot.x).filter(|x| *x > 0.0).fold(f64::INFINITY, f64::min);
    let several = plot.panels.iter().map(|plane| plane.lines.len()).max() > Some(1);
    let seen = lines().filter_map(|line| sentence(line, several));
    let panels: Vec<Panel> =
        (plot.panels.iter()).map(|plane| panel(plane, plot, &keys, &rows)).collect();
    Chart {
        name: plot.name.clone(),
        title: plot.title.clone(),
        note: if low > 0.0 || panels.iter().any(|panel| panel.y.low > 0.0) {
            format!("{} Axes do not begin at zero.", plot.note)
        } else {
            plot.note.clone()
        },
        seen: seen.collect::<Vec<_>>().join(" "),
        x: Axis::new(plot.x.clone(), low, high, Ticks::Numbers),
        panels,
        keys,
        rows: Rows::new(plot.head.clone(), rows, Snap::Near),
        log: smallest.is_finite().then(|| Log {
            side: Side::X,
            low: round_begin(smallest),
            first: largest > WIDE * smallest,
        }),
        form: Form::Full,
    }
}

/// The ends of an axis that values fill: from zero, unless they lie close together far from it.
fn fitted(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    if !low.is_finite() || low <= CLOSE * high {
        return (0.0, end(high * 1.05));
    }
    // A single value has some room around it too.
    let room = ((high - low) * 0.15).max(high * 0.01);
    let step = number::round_step(high - low + 2.0 * room, 6);
    let below = ((low - room) / step + 1e-9).floor() * step;
    let above = ((high + room) / step - 1e-9).ceil() * step;
    (below.max(0.0), above)
}

fn is_placed(spot: &Spot) -> bool {
    spot.x.is_finite() && spot.y.is_finite()
}

fn sentence(line: &Line, several: bool) -> Option<String> {
    let mut spots = line.spots.iter().filter(|spot| is_placed(spot));
    let first = spots.next().filter(|_| line.shape != Style::Connecting)?;
    let name = if several { format!("{}: ", line.label) } else { String::new() };
    let from = format!("{name}{} at {}", first.text, first.row);
    Some(match spots.next_back() {
        Some(last) => format!("{from}, up to {} at {}.", last.text, last.row),
        None => format!("{from}."),
    })
}

fn panel(plane: &Plane, plot: &Plot, keys: &[Key], rows: &[String]) -> Panel {
    let mut marks = Vec::new();
    let ruled = plane.rules.iter().filter(|rule| rule.side == Side::Y);
    let placed = plane.lines.iter().flat_map(|line| &line.spots);
    let placed = placed.filter(|spot| is_placed(spot)).map(|spot| spot.y);
    let all = placed.chain(ruled.map(|rule| rule.at));
    let (low, high) =
        if plane.is_share { (0.0, end(all.fold(0.0, f64::max) * 1.05)) } else { fitted(all) };
    for line in &plane.lines {
        let key = keys.iter().position(|key| key.label == line.label).unwrap_or_default();
        let spots: Vec<&Spot> = line.spots.iter().filter(|spot| is_placed(spot)).collect();
        let points: Vec<Point> = spots.iter().map(|spot| Point::at(spot.x, spot.y)).collect();
        if matches!(line.shape, Style::Joined | Style::Connecting) {
            marks.push(Mark::new(key, Shape::Line, points.clone()));
        }
        if line.shape != Style::Connecting {
            let cells = rows.iter().map(|row| {
                let spot = spots.iter().find(|spot| spot.row == *row)?;
                Some(Cell { x: spot.x, y: spot.y, text: spot.text.clone() })
            });
            let shape = if plot.is_named { Shape::Named } else { Shape::Spots };
            marks.push(Mark::new(key, shape, points).with_column(&*line.label, cells.collect()));
        }
    }
    let ticks = if plane.is_share { Ticks::Percent } else { Ticks::Numbers };
    Panel {
        y: Axis::new(&*plane.y, low, high, ticks),
        height: if plot.panels.len() > 1 { 180.0 } else { 300.0 },
        marks,
        rules: plane.rules.clone(),
        bands: plot.bands.clone(),
    }
}

/// The points that no other beats in both figures, as a line from left to right.
pub fn front(spots: impl IntoIterator<Item = Spot>) -> Option<Line> {
    let mut spots: Vec<Spot> = spots.into_iter().filter(is_placed).collect();
    spots.sort_by(|a, b| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)));
    (spots.len() > 1).then(|| Line {
        label: "Pareto front".to_owned(),
        shape: Style::Connecting,
        spots,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spot(row: &str, x: f64, y: f64) -> Spot {
        Spot { row: row.to_owned(), x, y, text: format!("{x}, {y}") }
    }

    fn plot(lines: Vec<Line>) -> Plot {
        Plot {
            name: "curve".to_owned(),
            title: "Throughput and latency".to_owned(),
            note: String::new(),
            x: "Throughput".to_owned(),
            head: "Load".to_owned(),
            panels: vec![Plane {
                y: "Latency".to_owned(),
                is_share: false,
                lines,
                rules: Vec::new(),
            }],
            bands: Vec::new(),
            is_named: true,
        }
    }

    #[test]
    fn points_that_lie_close_together_fill_the_chart() {
        for (values, ends) in [
            (vec![59.2, 61.0], (58.0, 62.0)),
            (vec![1.0, 8.0], (0.0, 10.0)),
            (vec![0.0, 0.0], (0.0, 1.0)),
            (vec![60.0], (59.4, 60.6)),
            (Vec::new(), (0.0, 1.0)),
        ] {
            let (low, high) = fitted(values.iter().copied());
            let apart = (low - ends.0).abs() + (high - ends.1).abs();
            assert!(apart < 1e-6, "{values:?}: {low} to {high}");
        }
    }

    #[test]
    fn each_load_is_a_row_and_each_line_a_column() {
        let line =
            |label: &str, spots| Line { label: label.to_owned(), shape: Style::Joined, spots };
        let chart = chart(&plot(vec![
            line("a", vec![spot("1", 10.0, 5.0), spot("2", 20.0, 6.0)]),
            line("b", vec![spot("2", 30.0, 7.0), spot("4", f64::INFINITY, 9.0)]),
        ]));
        assert_eq!(chart.rows.labels, ["1", "2"], "a point without a place");
        let cells: Vec<Vec<Option<&str>>> = chart
            .columns()
            .map(|(_, column)| {
                let cells = column.cells.iter();
                cells.map(|cell| cell.as_ref().map(|cell| cell.text.as_str())).collect()
            })
            .collect();
        assert_eq!(cells[0], [Some("10, 5"), Some("20, 6")]);
        assert_eq!(cells[1], [None, Some("30, 7")]);
        assert!(chart.x.high >= 30.0 && chart.panels[0].y.high >= 7.0);
        assert!(chart.seen.contains("b: 30, 7 at 2."), "{}", chart.seen);
    }

    #[test]
    fn a_front_goes_from_left_to_right_and_takes_two() {
        let line = front([spot("2", 2.0, 5.0), spot("1", 1.0, 3.0)]).unwrap();
        assert_eq!(line.spots.iter().map(|s| s.x).collect::<Vec<_>>(), [1.0, 2.0]);
        assert_eq!(front([spot("1", 1.0, 3.0)]), None);
    }

    #[test]
    fn nothing_is_a_chart_of_nothing() {
        assert!(chart(&plot(Vec::new())).is_empty());
    }
}

//! Differences from something, one below the other, each with its interval: a forest plot.
//!
//! Labs say which differences; this module makes a chart of them.

use crate::chart::{
    Axis, Cell, Chart, Form, Key, Mark, Panel, Point, Rows, Rule, Shape, Side, Snap, Ticks, Tone,
};
use model::number;

/// Pixels from a row to the next: its name, and below it the interval.
const ROW: f64 = 40.0;

/// The axis reaches at least so far to both sides.
const LEAST: f64 = 0.01;

/// The axis reaches at most this multiple of the shorter half of the intervals: an interval of few
/// repeats may be very wide.
const FURTHEST: f64 = 2.0;

#[derive(Clone, Debug, PartialEq)]
pub struct Forest {
    /// Its name, unique in its page.
    pub name: String,
    pub title: String,
    pub note: String,
    pub x: String,
    /// The meaning of zero: `the baseline`.
    pub zero: String,
    pub rows: Vec<Difference>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    pub name: String,
    /// The size, as a share: 0.1 is 10 % better.
    pub share: f64,
    /// The ends of its interval; absent if there is none.
    pub interval: Option<[f64; 2]>,
    /// True if it is shown to be more, false if less; absent if it may be chance.
    pub is_better: Option<bool>,
    /// The difference as text, with its interval.
    pub text: String,
}

pub fn chart(forest: &Forest) -> Chart {
    let kinds = [
        (Some(true), "better", Tone::Spots(2)),
        (None, "no difference shown", Tone::Spots(5)),
        (Some(false), "worse", Tone::Failed),
    ];
    let has = |kind: &Option<bool>| forest.rows.iter().any(|row| row.is_better == *kind);
    let kinds: Vec<_> = kinds.into_iter().filter(|(kind, ..)| has(kind)).collect();
    let (low, high) = ends(&forest.rows);
    // An interval that leaves the drawing has its ends in its row's name.
    let name = |row: &Difference| match row.interval {
        Some([from, to]) if from < low - 1e-9 || to > high + 1e-9 => {
            format!("{} ({} to {})", row.name, signed(from), signed(to))
        }
        _ => row.name.clone(),
    };
    let marks = kinds.iter().enumerate().flat_map(|(key, (kind, head, _))| {
        let rows = || forest.rows.iter().enumerate();
        let own = || rows().filter(|(_, row)| row.is_better == *kind);
        let intervals = own().filter_map(|(at, row)| {
            let [x, to] = row.interval?;
            Some(Point { x, to, y: Some(at as f64) })
        });
        let spots = own().map(|(at, row)| Point::at(row.share, at as f64));
        let cells = rows().map(|(at, row)| {
            let is_own = row.is_better == *kind;
            is_own.then(|| Cell { x: row.share, y: at as f64, text: row.text.clone() })
        });
        [
            Mark::new(key, Shape::Spans(2.0), intervals.collect()),
            Mark::new(key, Shape::Spots, spots.collect()).with_column(*head, cells.collect()),
        ]
    });
    let marks = marks.collect();
    let count = forest.rows.len() as f64;
    let y = Axis::new("", -0.8, count - 0.6, Ticks::Names);
    let seen = forest.rows.iter().map(|row| format!("{}: {}.", row.name, row.text));
    Chart {
        name: forest.name.clone(),
        title: forest.title.clone(),
        note: forest.note.clone(),
        seen: seen.collect::<Vec<_>>().join(" "),
        x: Axis::new(forest.x.clone(), low, high, Ticks::Percent),
        panels: vec![Panel {
            rules: vec![Rule::new(Side::X, 0.0, forest.zero.clone())],
            ..Panel::new(y, (count + 0.2) * ROW, marks)
        }],
        keys: kinds
            .into_iter()
            .map(|(_, label, tone)| Key { label: label.to_owned(), tone })
            .collect(),
        rows: Rows::new("Of", forest.rows.iter().map(name).collect(), Snap::Y),
        log: None,
        form: Form::Full,
    }
}

/// A share in percent, with its sign: `+12 %`.
fn signed(share: f64) -> String {
    format!("{:+.0} %", share * 100.0)
}

/// The ends of the axis: it holds zero, every difference, and most of each interval.
fn ends(rows: &[Difference]) -> (f64, f64) {
    let largest = rows.iter().map(|row| row.share.abs()).fold(LEAST, f64::max);
    let reaches = rows.iter().filter_map(|row| row.interval);
    let mut reaches: Vec<f64> = reaches.map(|[low, high]| low.abs().max(high.abs())).collect();
    reaches.sort_by(f64::total_cmp);
    let middle = reaches.get(reaches.len().saturating_sub(1) / 2).copied();
    let far = (largest * 1.25).max(FURTHEST * middle.unwrap_or(0.0));
    let ends = rows.iter().flat_map(|row| row.interval.unwrap_or([row.share; 2]));
    let (low, high) = ends
        .fold((-LEAST, LEAST), |(low, high), end| (low.min(end.max(-far)), high.max(end.min(far))));
    let step = number::round_step(high - low, 8);
    ((low / step + 1e-9).floor() * step, (high / step - 1e-9).ceil() * step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Look, Width, svg};

    fn row(share: f64, interval: Option<[f64; 2]>, is_better: Option<bool>) -> Difference {
        Difference {
            name: format!("option {share}"),
            share,
            interval,
            is_better,
            text: format!("{share}"),
        }
    }

    #[test]
    fn the_axis_holds_every_difference_and_no_endless_interval() {
        for (rows, ends) in [
            (vec![row(0.1, Some([0.05, 0.15]), Some(true))], (-0.02, 0.16)),
            (vec![row(0.0, Some([-0.9, 9.0]), None)], (-2.0, 10.0)),
            (
                vec![
                    row(0.02, Some([-0.1, 0.12]), None),
                    row(0.03, Some([-0.08, 0.1]), None),
                    row(0.2, Some([-0.9, 9.0]), None),
                    row(-0.1, Some([-0.9, 9.0]), None),
                ],
                (-0.3, 0.3),
            ),
            (vec![row(-0.2, None, Some(false))], (-0.2, 0.05)),
        ] {
            let (low, high) = super::ends(&rows);
            assert!((low - ends.0).abs() < 0.011, "{low} {ends:?}");
            assert!((high - ends.1).abs() < 0.041, "{high} {ends:?}");
            assert!(low <= 0.0 && high > 0.0);
            assert!(rows.iter().all(|row| (low..=high).contains(&row.share)));
        }
    }

    #[test]
    fn each_difference_is_a_row_with_a_name_a_point_and_an_interval() {
        let forest = Forest {
            name: "gains".to_owned(),
            title: String::new(),
            note: String::new(),
            x: String::new(),
            zero: "baseline".to_owned(),
            rows: vec![row(0.1, Some([0.05, 0.15]), Some(true)), row(-0.2, None, Some(false))],
        };
        let chart = chart(&forest);
        let keys: Vec<&str> = chart.keys.iter().map(|key| &*key.label).collect();
        assert_eq!(keys, ["better", "worse"], "only what is drawn");
        let svg = svg(&chart, Look { width: Width::Narrow, log: false, alone: None });
        let wide = Forest {
            rows: vec![
                row(0.01, Some([-0.02, 0.04]), None),
                row(0.02, Some([-0.02, 0.04]), None),
                row(0.1, Some([-0.6, 9.0]), None),
            ],
            ..forest
        };
        let labels = super::chart(&wide).rows.labels;
        assert_eq!(labels, ["option 0.01", "option 0.02", "option 0.1 (-60 % to +900 %)"]);
        for name in ["option 0.1", "option -0.2", "baseline"] {
            assert!(svg.contains(&format!(">{name}</text>")), "{name}");
        }
        assert_eq!(svg.matches("class=\"spot\"").count(), 1);
        assert_eq!(svg.matches("class=\"cross\"").count(), 1);
        assert_eq!(svg.matches("class=\"fill\"").count(), 1, "one interval");
        // The first tick's label begins within the drawing.
        let at = svg.find(">-20%</text>").unwrap();
        let label = &svg[svg[..at].rfind("<text").unwrap()..at];
        let middle: f64 =
            label.split("x=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
        assert!(middle >= 12.0, "{label}");
    }
}

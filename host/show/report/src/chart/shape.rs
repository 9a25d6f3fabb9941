//! Marks as SVG elements.

use std::fmt::Write;

use super::scale::Scale;
use super::{Mark, Point, Shape, Tone};

/// The positions of a panel's values.
pub(super) struct Place<'a> {
    pub(super) x: &'a Scale,
    pub(super) y: &'a Scale,
    /// The pixel of the panel's lower edge.
    pub(super) floor: f64,
}

/// A pixel, to a tenth, as short as it can be written.
pub(super) fn pixel(value: f64) -> String {
    let tenths = (value * 10.0).round();
    if tenths % 10.0 == 0.0 {
        format!("{}", tenths / 10.0)
    } else {
        format!("{:.1}", tenths / 10.0)
    }
}

/// The elements of a mark.
pub(super) fn elements(mark: &Mark, tone: Tone, place: &Place<'_>) -> String {
    let points = &mark.points;
    let dashes = match tone.dashes() {
        "" => String::new(),
        dashes => format!(" stroke-dasharray=\"{dashes}\""),
    };
    let stroked = |path: String| {
        if path.is_empty() {
            String::new()
        } else {
            format!("<path class=\"stroke\"{dashes} d=\"{path}\"/>")
        }
    };
    match mark.shape {
        Shape::Unseen => String::new(),
        Shape::Line => stroked(line(points, place)),
        Shape::Steps => stroked(steps(points, place)),
        Shape::Area => {
            let area = area(points, place);
            let filled = if area.is_empty() {
                String::new()
            } else {
                format!("<path class=\"area\" d=\"{area}\"/>")
            };
            filled + &stroked(steps(points, place))
        }
        Shape::Bars => filled(bars(points, place)),
        Shape::Spans(thickness) => filled(spans(points, place, thickness)),
        Shape::Dots => dots(points, place, tone),
        Shape::Spots | Shape::Named => spots(points, place, tone),
        Shape::Crosses => stroked(crosses(points, place)),
    }
}

fn filled(path: String) -> String {
    if path.is_empty() { path } else { format!("<path class=\"fill\" d=\"{path}\"/>") }
}

fn line(points: &[Point], place: &Place<'_>) -> String {
    let mut path = String::new();
    let mut drawing = false;
    for point in points {
        let Some(y) = point.y else {
            drawing = false;
            continue;
        };
        let (x, y) = (pixel(place.x.place(point.x)), pixel(place.y.place(y)));
        let command = if drawing { 'L' } else { 'M' };
        let _ = write!(path, "{command}{x} {y}");
        drawing = true;
    }
    path
}

fn steps(points: &[Point], place: &Place<'_>) -> String {
    let mut path = String::new();
    let mut before: Option<String> = None;
    for point in points {
        let Some(y) = point.y else {
            before = None;
            continue;
        };
        let y = pixel(place.y.place(y));
        match &before {
            None => {
                let _ = write!(path, "M{} {y}", pixel(place.x.place(point.x)));
            }
            Some(last) if *last != y => {
                let _ = write!(path, "V{y}");
            }
            Some(_) => {}
        }
        let _ = write!(path, "H{}", pixel(place.x.place(point.to)));
        before = Some(y);
    }
    path
}

fn area(points: &[Point], place: &Place<'_>) -> String {
    let floor = pixel(place.floor);
    let mut path = String::new();
    for run in points.split(|point| point.y.is_none()) {
        let Some(first) = run.first() else { continue };
        let _ = write!(path, "M{} {floor}", pixel(place.x.place(first.x)));
        for point in run {
            let y = place.y.place(point.y.unwrap_or(0.0));
            let _ = write!(path, "V{}H{}", pixel(y), pixel(place.x.place(point.to)));
        }
        let _ = write!(path, "V{floor}Z");
    }
    path
}

/// Bars with a gap between them, each at least half a pixel if it is above zero.
fn bars(points: &[Point], place: &Place<'_>) -> String {
    let mut path = String::new();
    for point in points {
        let Some(y) = point.y.filter(|y| *y > 0.0) else {
            continue;
        };
        let (from, to) = (place.x.place(point.x), place.x.place(point.to));
        let gap = ((to - from) * 0.12).min(1.0);
        let top = place.y.place(y).min(place.floor - 0.5);
        let (from, to, top) = (pixel(from + gap / 2.0), pixel(to - gap / 2.0), pixel(top));
        let _ = write!(path, "M{from} {}V{top}H{to}V{}Z", pixel(place.floor), pixel(place.floor));
    }
    path
}

/// Bars along the horizontal axis, each at least a fraction of a pixel so that short ones are
/// visible.
fn spans(points: &[Point], place: &Place<'_>, thickness: f64) -> String {
    let mut path = String::new();
    for point in points {
        let Some(y) = point.y else { continue };
        let (from, to) = (place.x.place(point.x), place.x.place(point.to));
        let width = pixel((to - from).max(0.4));
        let top = pixel(place.y.place(y) - thickness / 2.0);
        let _ = write!(path, "M{} {top}h{width}v{}h-{width}z", pixel(from), pixel(thickness));
    }
    path
}

fn dots(points: &[Point], place: &Place<'_>, tone: Tone) -> String {
    let marker = tone.marker();
    let mut path = String::new();
    for point in points {
        let Some(y) = point.y else { continue };
        let (x, y) = (pixel(place.x.place(point.x)), pixel(place.y.place(y)));
        let _ = write!(path, "M{x} {y}{marker}");
    }
    let class = if marker == "h0" { "round" } else { "dots" };
    if path.is_empty() { path } else { format!("<path class=\"{class}\" d=\"{path}\"/>") }
}

fn spots(points: &[Point], place: &Place<'_>, tone: Tone) -> String {
    let mut path = String::new();
    for point in points {
        let Some(y) = point.y else { continue };
        let (x, y) = (pixel(place.x.place(point.x)), pixel(place.y.place(y)));
        let _ = write!(path, "M{x} {y}{}", tone.spot());
    }
    let class = if tone == Tone::Failed { "cross" } else { "spot" };
    if path.is_empty() { path } else { format!("<path class=\"{class}\" d=\"{path}\"/>") }
}

fn crosses(points: &[Point], place: &Place<'_>) -> String {
    let mut path = String::new();
    for point in points {
        let Some(y) = point.y else { continue };
        let (x, y) = (place.x.place(point.x), place.y.place(y));
        let _ = write!(path, "M{} {}l5 5m0-5l-5 5", pixel(x - 2.5), pixel(y - 2.5));
    }
    path
}

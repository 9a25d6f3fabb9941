//! Marks as SVG elements.

use std::fmt::Write;

use super::scale::Scale;
use super::{Mark, Point, Shape, Tone};

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

pub(super) fn elements(mark: &Mark, tone: Tone, place: &Place<'_>) -> String {
    let points = &mark.points;
    let element = |class: &str, dashes: &str, path: String| match path.as_str() {
        "" => path,
        _ => format!("<path class=\"{class}\"{dashes} d=\"{path}\"/>"),
    };
    let filled = |class: &str, path| element(class, "", path);
    let stroked = |path| element("stroke", &tone.dashes(), path);
    match mark.shape {
        Shape::Unseen => String::new(),
        Shape::Line => stroked(line(points, place)),
        Shape::Steps => stroked(steps(points, place)),
        Shape::Area => filled("area", area(points, place)) + &stroked(steps(points, place)),
        Shape::Bars => filled("fill", bars(points, place)),
        Shape::Spans(thickness) => filled("fill", spans(points, place, thickness)),
        Shape::Dots => {
            let marker = tone.marker();
            let class = if marker == "h0" { "round" } else { "dots" };
            filled(class, markers(points, place, marker))
        }
        Shape::Spots | Shape::Named => {
            let class = if tone == Tone::Failed { "cross" } else { "spot" };
            filled(class, markers(points, place, tone.spot()))
        }
        Shape::Crosses => stroked(crosses(points, place)),
    }
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

/// The points with a value: the pixels of their beginning, their end and their value.
fn places(points: &[Point], place: &Place<'_>) -> impl Iterator<Item = [f64; 3]> {
    let measured = points.iter().filter_map(|point| Some((point, point.y?)));
    measured
        .map(move |(point, y)| [place.x.place(point.x), place.x.place(point.to), place.y.place(y)])
}

/// Bars with a gap between them, each at least half a pixel if it is above zero.
fn bars(points: &[Point], place: &Place<'_>) -> String {
    let floor = pixel(place.floor);
    let points: Vec<Point> =
        points.iter().filter(|point| point.y.is_some_and(|y| y > 0.0)).copied().collect();
    let bars = places(&points, place).map(|[from, to, top]| {
        let gap = ((to - from) * 0.12).min(1.0);
        let top = top.min(place.floor - 0.5);
        let [from, to, top] = [from + gap / 2.0, to - gap / 2.0, top].map(pixel);
        format!("M{from} {floor}V{top}H{to}V{floor}Z")
    });
    bars.collect()
}

/// Bars along the horizontal axis; short ones get a fraction of a pixel to be visible.
fn spans(points: &[Point], place: &Place<'_>, thickness: f64) -> String {
    let spans = places(points, place).map(|[from, to, y]| {
        let width = (to - from).max(0.4);
        let [from, width, top, height] = [from, width, y - thickness / 2.0, thickness].map(pixel);
        format!("M{from} {top}h{width}v{height}h-{width}z")
    });
    spans.collect()
}

fn markers(points: &[Point], place: &Place<'_>, marker: &str) -> String {
    let markers =
        places(points, place).map(|[x, _, y]| format!("M{} {}{marker}", pixel(x), pixel(y)));
    markers.collect()
}

fn crosses(points: &[Point], place: &Place<'_>) -> String {
    let crosses = places(points, place)
        .map(|[x, _, y]| format!("M{} {}l5 5m0-5l-5 5", pixel(x - 2.5), pixel(y - 2.5)));
    crosses.collect()
}

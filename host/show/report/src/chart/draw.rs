//! A chart as SVG.

use std::fmt::Write;

use super::palette::{self, Theme};
use super::scale::{Scale, Tick, ticks};
use super::{Axis, Chart, Form, Mark, Panel, Point, Rule, Shape, Side, Ticks, Tone};

/// The width of the place for which a chart is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    Wide,
    Narrow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub width: Width,
    /// True if the axis that may be logarithmic is.
    pub log: bool,
    /// The colours of a file of its own, with its title and legend; absent as part of a page.
    pub alone: Option<Theme>,
}

/// Approximate width of a character in pixels: labels are not measured, only given room.
const CHARACTER: f64 = 6.9;
/// Pixels from the last panel to the lower edge: ticks and the axis's title.
const BELOW: f64 = 40.0;
/// Pixels above a panel: the vertical axis's title.
const ABOVE: f64 = 26.0;
const BETWEEN: f64 = 14.0;
const RIGHT: f64 = 16.0;

/// The longest name beside a point, in characters.
const LONGEST_NAME: usize = 28;

/// Text of at most `most` characters, the last an ellipsis where some are left out.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() > most {
        let kept: String = text.chars().take(most.saturating_sub(1)).collect();
        format!("{}…", kept.trim_end())
    } else {
        text.to_owned()
    }
}

/// Escapes text for SVG and HTML, including attributes. Control characters become spaces.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c if model::clean::unsafe_to_show(c) => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

pub fn svg(chart: &Chart, look: Look) -> String {
    let mut drawing = Drawing::new(chart, look);
    drawing.head();
    let (top, mut floor) = (drawing.top, drawing.top);
    for panel in &chart.panels {
        let ceiling = floor + ABOVE;
        floor = ceiling + panel.height;
        drawing.panel(panel, ceiling, floor);
        floor += BETWEEN;
    }
    floor -= BETWEEN;
    drawing.horizontal_axis(floor);
    drawing.finish(top, floor)
}

struct Drawing<'a> {
    chart: &'a Chart,
    look: Look,
    width: f64,
    left: f64,
    top: f64,
    x: Scale,
    columns: usize,
    text: String,
}

impl<'a> Drawing<'a> {
    fn new(chart: &'a Chart, look: Look) -> Self {
        let width: f64 = match (look.width, chart.form) {
            (Width::Narrow, _) => 328.0,
            (Width::Wide, Form::Half) => 520.0,
            (Width::Wide, Form::Full) => 1088.0,
        };
        let log = |side| look.log && chart.log.is_some_and(|log| log.side == side);
        let labels = chart.panels.iter().flat_map(|panel| {
            ticks(&logged(&panel.y, chart, log(Side::Y)), log(Side::Y), rows(panel))
        });
        let longest = labels.map(|tick| tick.label.chars().count()).max();
        let left = longest.map_or(10.0, |longest| longest as f64 * CHARACTER + 14.0);
        let axis = logged(&chart.x, chart, log(Side::X));
        let scale = if log(Side::X) { Scale::log } else { Scale::linear };
        let x = scale(axis.low, axis.high, left, width - RIGHT);
        Drawing { chart, look, width, left, top: 0.0, x, columns: 0, text: String::new() }
    }

    fn log(&self, side: Side) -> bool {
        self.look.log && self.chart.log.is_some_and(|log| log.side == side)
    }

    fn label(&mut self, attributes: &str, [x, y]: [f64; 2], text: &str) {
        let (x, y, text) = (pixel(x), pixel(y), escape(text));
        let _ = write!(self.text, "<text {attributes} x=\"{x}\" y=\"{y}\">{text}</text>");
    }

    /// Title and legend, for a picture outside a page.
    fn head(&mut self) {
        if self.look.alone.is_none() {
            return;
        }
        self.label("class=\"title\"", [16.0, 26.0], &self.chart.title);
        self.top = 36.0;
        if self.chart.keys.len() < 2 {
            return;
        }
        let mut x = 16.0;
        let mut y = 48.0;
        for key in &self.chart.keys {
            let room = 26.0 + key.label.chars().count() as f64 * CHARACTER + 18.0;
            if x > 16.0 && x + room > self.width {
                (x, y) = (16.0, y + 18.0);
            }
            let swatch = swatch(key.tone, x, y - 4.0);
            let _ = write!(
                self.text,
                "<g class=\"{}\">{swatch}</g><text x=\"{}\" y=\"{}\">{}</text>",
                key.tone.class(),
                pixel(x + 26.0),
                pixel(y),
                escape(&key.label)
            );
            x += room;
        }
        self.top = y + 10.0;
    }

    fn panel(&mut self, panel: &Panel, ceiling: f64, floor: f64) {
        let log = self.log(Side::Y);
        let axis = logged(&panel.y, self.chart, log);
        // A panel without ticks lists its rows, the first at the top.
        let has_rows = matches!(axis.ticks, Ticks::None | Ticks::Names);
        let (from, to) = if has_rows { (ceiling, floor) } else { (floor, ceiling) };
        let scale = if log { Scale::log } else { Scale::linear };
        let y = scale(axis.low, axis.high, from, to);
        let right = self.width - RIGHT;
        self.bands(panel, ceiling, floor);
        let x = if has_rows { self.left } else { 4.0 };
        self.label("class=\"axis\"", [x, ceiling - 11.0], &axis.title);
        let mut grid = String::new();
        for Tick { at, label } in ticks(&axis, log, rows(panel)) {
            let at = y.place(at);
            let _ = write!(grid, "M{} {}H{}", pixel(self.left), pixel(at), pixel(right));
            self.label("text-anchor=\"end\"", [self.left - 7.0, at + 4.0], &label);
        }
        if !grid.is_empty() {
            let _ = write!(self.text, "<path class=\"grid\" d=\"{grid}\"/>");
        }
        let [left, floor_pixel, right] = [self.left, floor, right].map(pixel);
        let _ = write!(self.text, "<path class=\"base\" d=\"M{left} {floor_pixel}H{right}\"/>");
        for mark in &panel.marks {
            let key = &self.chart.keys[mark.key];
            let x = &self.x;
            let place = Place { x, y: &y, floor };
            let drawn = elements(mark, key.tone, &place);
            let mut cells = String::new();
            if let Some(column) = &mark.column {
                for cell in &column.cells {
                    match cell {
                        Some(cell) => {
                            let (x, y) = (x.place(cell.x), y.place(cell.y));
                            let _ = write!(cells, "{},{} ", pixel(x), pixel(y));
                        }
                        None => cells.push_str("- "),
                    }
                }
                cells.pop();
            }
            let _ = write!(self.text, "<g class=\"{} k{}\"", key.tone.class(), mark.key);
            if mark.column.is_some() && self.look.alone.is_none() {
                let _ = write!(self.text, " data-column=\"{}\" data-at=\"{cells}\"", self.columns);
            }
            self.columns += usize::from(mark.column.is_some());
            let _ = write!(self.text, ">{drawn}</g>");
        }
        self.rules(panel, &y, ceiling, floor);
        match axis.ticks {
            Ticks::Names => self.row_names(&y),
            _ => self.point_names(panel, &y, ceiling, floor),
        }
    }

    /// The name of each row above its drawing, cut where the panel ends.
    fn row_names(&mut self, y: &Scale) {
        let room = ((self.width - RIGHT - self.left) / CHARACTER) as usize;
        for (row, name) in self.chart.rows.labels.iter().enumerate() {
            let at = [self.left, y.place(row as f64) - 9.0];
            self.label("class=\"named\"", at, &cut(name, room));
        }
    }

    /// The names of points, each beside its point where it lies on no point and no other name.
    fn point_names(&mut self, panel: &Panel, y: &Scale, ceiling: f64, floor: f64) {
        let right = self.width - RIGHT;
        let mut named = Vec::new();
        // The occupied boxes: left, top, right, bottom.
        let mut taken: Vec<[f64; 4]> = Vec::new();
        for mark in &panel.marks {
            let is_large = matches!(mark.shape, Shape::Spots | Shape::Named);
            let cells = mark.column.iter().flat_map(|column| &column.cells);
            for (row, cell) in cells.enumerate().filter(|_| is_large) {
                let Some(cell) = cell else { continue };
                let at = [self.x.place(cell.x), y.place(cell.y)];
                taken.push([at[0] - 6.0, at[1] - 6.0, at[0] + 6.0, at[1] + 6.0]);
                if let (Shape::Named, Some(name)) = (mark.shape, self.chart.rows.labels.get(row)) {
                    named.push((at, cut(name, LONGEST_NAME)));
                }
            }
        }
        for ([x, y], name) in named {
            let length = name.chars().count() as f64 * CHARACTER;
            let places = [
                ("start", x + 9.0, y + 4.0),
                ("end", x - 9.0, y + 4.0),
                ("middle", x, y - 10.0),
                ("middle", x, y + 19.0),
                ("start", x + 7.0, y - 9.0),
                ("start", x + 7.0, y + 17.0),
                ("end", x - 7.0, y - 9.0),
                ("end", x - 7.0, y + 17.0),
            ];
            let free = places.into_iter().find_map(|(anchor, x, y)| {
                let from = match anchor {
                    "start" => x,
                    "end" => x - length,
                    _ => x - length / 2.0,
                };
                let own = [from, y - 10.0, from + length, y + 3.0];
                let is_within =
                    own[0] >= self.left && own[2] <= right && own[1] >= ceiling && own[3] <= floor;
                let is_free = !taken.iter().any(|other| {
                    own[0] < other[2] && other[0] < own[2] && own[1] < other[3] && other[1] < own[3]
                });
                (is_within && is_free).then_some((anchor, x, y, own))
            });
            let Some((anchor, x, y, own)) = free else { continue };
            taken.push(own);
            self.label(&format!("class=\"named\" text-anchor=\"{anchor}\""), [x, y], &name);
        }
    }

    fn bands(&mut self, panel: &Panel, ceiling: f64, floor: f64) {
        for band in &panel.bands {
            let (from, to) = (self.x.place(band.from), self.x.place(band.to));
            let _ = write!(
                self.text,
                "<rect class=\"band\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
                pixel(from),
                pixel(ceiling),
                pixel((to - from).max(0.0)),
                pixel(floor - ceiling)
            );
            if !band.label.is_empty() {
                let at = [(from + to) / 2.0, ceiling + 12.0];
                self.label("class=\"ruled\" text-anchor=\"middle\"", at, &band.label);
            }
        }
    }

    /// Rules, and their labels if they do not overlap.
    fn rules(&mut self, panel: &Panel, y: &Scale, ceiling: f64, floor: f64) {
        let right = self.width - RIGHT;
        let (mut lines, mut labels) = (String::new(), Vec::new());
        let mut taken = [f64::NEG_INFINITY; 3];
        for Rule { side, at, label } in &panel.rules {
            if *side == Side::Y {
                let at = y.place(*at);
                let _ = write!(lines, "M{} {}H{}", pixel(self.left), pixel(at), pixel(right));
                labels.push(("end", [right - 4.0, at - 4.0], label));
                continue;
            }
            let at = self.x.place(*at);
            let _ = write!(lines, "M{} {}V{}", pixel(at), pixel(ceiling), pixel(floor));
            let room = label.chars().count() as f64 * CHARACTER + 10.0;
            let (anchor, from) =
                if at + room > self.width { ("end", at - room) } else { ("start", at) };
            let Some(line) = taken.iter().position(|upto| from >= *upto) else { continue };
            taken[line] = from + room;
            let x = if anchor == "end" { at - 4.0 } else { at + 4.0 };
            labels.push((anchor, [x, ceiling + 11.0 + line as f64 * 14.0], label));
        }
        if !lines.is_empty() {
            let _ = write!(self.text, "<path class=\"rule\" d=\"{lines}\"/>");
        }
        for (anchor, at, label) in labels {
            self.label(&format!("class=\"ruled\" text-anchor=\"{anchor}\""), at, label);
        }
    }

    fn horizontal_axis(&mut self, floor: f64) {
        let axis = logged(&self.chart.x, self.chart, self.log(Side::X));
        let right = self.width - RIGHT;
        let about = ((right - self.left) / 62.0).max(2.0) as usize;
        let mut small = String::new();
        for Tick { at, label } in ticks(&axis, self.log(Side::X), about) {
            let at = self.x.place(at);
            let _ = write!(small, "M{} {}v4", pixel(at), pixel(floor));
            // The label of an end stays within the drawing.
            let half = label.chars().count() as f64 * CHARACTER / 2.0;
            let x = at.clamp(half, (self.width - half).max(half));
            self.label("text-anchor=\"middle\"", [x, floor + 17.0], &label);
        }
        let _ = write!(self.text, "<path class=\"base\" d=\"{small}\"/>");
        let at = [right, floor + 34.0];
        self.label("class=\"axis\" text-anchor=\"end\"", at, &axis.title);
    }

    fn finish(self, top: f64, floor: f64) -> String {
        let chart = self.chart;
        let (width, height) = (self.width, floor + BELOW);
        let look = match self.look.width {
            Width::Wide => "wide",
            Width::Narrow => "narrow",
        };
        let name = format!("{}-{look}{}", chart.name, if self.look.log { "-log" } else { "" });
        let mut svg = String::with_capacity(self.text.len() + 1024);
        let _ = write!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart {look} {}\" viewBox=\"0 0 {width} {}\" width=\"{width}\" height=\"{}\" role=\"img\" aria-labelledby=\"{name}-title\" aria-describedby=\"{name}-desc\"",
            if self.look.log { "log" } else { "linear" },
            pixel(height),
            pixel(height),
        );
        if self.look.alone.is_none() {
            let _ = write!(
                svg,
                " data-area=\"{} {} {} {}\"",
                pixel(self.left),
                pixel(top + ABOVE),
                pixel(width - RIGHT),
                pixel(floor)
            );
        }
        let _ = write!(
            svg,
            "><title id=\"{name}-title\">{}</title><desc id=\"{name}-desc\">{}</desc>",
            escape(&chart.title),
            escape(&chart.seen)
        );
        if let Some(theme) = self.look.alone {
            let rules = palette::rules(|name| palette::colour(name, theme).to_owned());
            let _ = write!(
                svg,
                "<style>.chart{{font-family:'DejaVu Sans',Verdana,sans-serif}}{rules}</style><rect class=\"ground\" width=\"100%\" height=\"100%\"/>"
            );
        }
        svg.push_str(&self.text);
        svg.push_str("</svg>");
        svg
    }
}

/// Counts the ticks that a panel's vertical axis has room for.
fn rows(panel: &Panel) -> usize {
    ((panel.height / 38.0) as usize).clamp(2, 6)
}

/// An axis, with its end for the logarithmic scale.
fn logged(axis: &Axis, chart: &Chart, log: bool) -> Axis {
    let low = chart.log.filter(|_| log).map_or(axis.low, |log| log.low);
    // An axis needs an extent.
    let high = if axis.high > low { axis.high } else { low + low.abs().max(1.0) };
    Axis { low, high, ..axis.clone() }
}

/// A sample of a tone, for legends: 20 pixels wide around the height `y`.
pub(crate) fn swatch(tone: super::Tone, x: f64, y: f64) -> String {
    use super::Tone::{Failed, Joined, Phase, Series, Spots};
    let (from, to) = (pixel(x), pixel(x + 20.0));
    match tone {
        Spots(_) => {
            let at = pixel(x + 10.0);
            format!("<path class=\"spot\" d=\"M{at} {}{}\"/>", pixel(y), tone.spot())
        }
        Joined(number) => swatch(Series(number), x, y) + &swatch(Spots(number), x, y),
        Series(_) => {
            let dashes = tone.dashes();
            format!("<path class=\"stroke\"{dashes} d=\"M{from} {}H{to}\"/>", pixel(y))
        }
        Phase(number) => {
            let thickness = thickness(number);
            let top = pixel(y - thickness / 2.0);
            format!("<path class=\"fill\" d=\"M{from} {top}H{to}v{thickness}H{from}z\"/>")
        }
        Failed => format!(
            "<path class=\"stroke\" d=\"M{} {}l6 6m0-6l-6 6\"/>",
            pixel(x + 7.0),
            pixel(y - 3.0)
        ),
    }
}

/// Height in pixels of a phase's bar in a row of 10: waiting is thin, work is thick.
pub(crate) fn thickness(phase: usize) -> f64 {
    [2.0, 4.0, 4.0, 5.0, 8.0, 4.0, 4.0, 2.0, 6.0][phase % palette::PHASES]
}

// Marks as SVG elements.

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

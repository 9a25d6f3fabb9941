//! The data of a chart, and drawing it as SVG, alone or as part of a page.
//!
//! A chart is data: axes, panels, marks in the axes' units, and the rows a reader steps through.
//! Only this module decides its looks, so a page, a picture for a README and paper show the same.
//! `charts` decides which charts a run has; the page's script handles hovering.
//!
//! Drawing needs no script and no library. A chart is drawn once for a wide and once for a narrow
//! page, and, if an axis may be logarithmic, once for each scale; a page shows one of them.

mod draw;
pub mod palette;
#[cfg(feature = "pictures")]
pub mod png;
pub mod scale;

#[cfg(test)]
mod tests;

pub use draw::{Look, Width, svg};
pub(crate) use draw::{escape, swatch, thickness as phase_height};
pub use palette::Theme;

#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Stable and unique in a page: `ttft-ecdf`. Files and anchors are named by it.
    pub name: String,
    pub title: String,
    /// Advice for reading it, in a sentence or two.
    pub note: String,
    /// A description with figures, for readers who cannot see the chart.
    pub seen: String,
    /// The axis that all panels share.
    pub x: Axis,
    /// The panels from top to bottom; at least one.
    pub panels: Vec<Panel>,
    /// The meanings of the marks; a reader may hide each.
    pub keys: Vec<Key>,
    pub rows: Rows,
    pub log: Option<Log>,
    pub form: Form,
}

/// The room that a chart takes on a wide page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Half,
    Full,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Its label, with the unit: `TTFT (ms)`.
    pub title: String,
    pub low: f64,
    /// Its end; more than `low`.
    pub high: f64,
    pub ticks: Ticks,
}

/// The way in which an axis's ticks are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ticks {
    Numbers,
    /// Numbers; only whole ones have a meaning.
    Counts,
    Percent,
    /// Not at all.
    None,
    /// The chart's rows by their names, from top to bottom, each above its drawing.
    Names,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Log {
    pub side: Side,
    /// Its beginning then: more than zero. Smaller values are drawn at the edge.
    pub low: f64,
    /// True if a reader sees it so at first.
    pub first: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    X,
    Y,
}

/// A part of a chart with a vertical axis of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// The vertical axis. Without ticks, it runs from top to bottom.
    pub y: Axis,
    /// Pixels from its top to its bottom.
    pub height: f64,
    /// The marks drawn in it, the last on top.
    pub marks: Vec<Mark>,
    /// Lines across it at places worth a name.
    pub rules: Vec<Rule>,
    /// Parts of the horizontal axis worth a name.
    pub bands: Vec<Band>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    pub side: Side,
    pub at: f64,
    pub label: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    pub from: f64,
    pub to: f64,
    pub label: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    pub label: String,
    /// Its colour, dashes and marker.
    pub tone: Tone,
}

/// A colour, with dashes or a height that distinguish it without colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// One of several series, by its number: a line.
    Series(usize),
    /// The same, of points that stand alone.
    Spots(usize),
    /// The same, of points that a line joins.
    Joined(usize),
    /// A phase of a request, by its number.
    Phase(usize),
    Failed,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Its meaning: a place in the chart's keys.
    pub key: usize,
    pub shape: Shape,
    pub points: Vec<Point>,
    /// Its values at the chart's rows; absent if it only illustrates another mark.
    pub column: Option<Column>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// Points joined by straight lines.
    Line,
    /// Each value from its point to where it ends, joined.
    Steps,
    /// The same, filled down to the axis.
    Area,
    /// The same, as bars apart from each other.
    Bars,
    /// Points on their own, many and small.
    Dots,
    /// Points on their own, few and large.
    Spots,
    /// The same, each with the name of its row beside it where there is room.
    Named,
    /// Bars along the horizontal axis, with a height in pixels.
    Spans(f64),
    Crosses,
    /// Not at all: only its column counts.
    Unseen,
}

/// A place in the axes' units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub x: f64,
    /// The end of a mark that has a width; else `x`.
    pub to: f64,
    /// The position from below; absent if nothing was measured, and then nothing is drawn.
    pub y: Option<f64>,
}

impl Axis {
    pub(crate) fn new(title: impl Into<String>, low: f64, high: f64, ticks: Ticks) -> Self {
        Axis { title: title.into(), low, high, ticks }
    }
}

impl Panel {
    pub(crate) fn new(y: Axis, height: f64, marks: Vec<Mark>) -> Self {
        Panel { y, height, marks, rules: Vec::new(), bands: Vec::new() }
    }
}

impl Mark {
    pub(crate) fn new(key: usize, shape: Shape, points: Vec<Point>) -> Self {
        Mark { key, shape, points, column: None }
    }

    /// The mark with its values at the chart's rows.
    pub(crate) fn with_column(self, head: impl Into<String>, cells: Vec<Option<Cell>>) -> Self {
        Mark { column: Some(Column { head: head.into(), cells }), ..self }
    }
}

impl Rows {
    pub(crate) fn new(head: impl Into<String>, labels: Vec<String>, snap: Snap) -> Self {
        Rows { head: head.into(), labels, snap }
    }
}

impl Rule {
    pub fn new(side: Side, at: f64, label: impl Into<String>) -> Self {
        Rule { side, at, label: label.into() }
    }
}

impl Point {
    pub fn at(x: f64, y: f64) -> Self {
        Point { x, to: x, y: Some(y) }
    }
}

/// The rows that a reader steps through: percentiles, spans of time, requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    pub head: String,
    pub labels: Vec<String>,
    /// The row that a place in the chart means.
    pub snap: Snap,
}

model::names! {
    /// The row that a place in a chart means.
    pub enum Snap {
        /// The row that is nearest from left to right.
        X = "x",
        /// The row that is nearest from bottom to top.
        Y = "y",
        /// The row with the nearest point.
        Near = "near",
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub head: String,
    /// One cell per row; absent if there is no value.
    pub cells: Vec<Option<Cell>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    pub x: f64,
    pub y: f64,
    /// The value as text, with its unit.
    pub text: String,
}

impl Chart {
    /// The columns of its table in drawing order, each with its key.
    pub fn columns(&self) -> impl Iterator<Item = (usize, &Column)> {
        let marks = self.panels.iter().flat_map(|panel| &panel.marks);
        marks.filter_map(|mark| Some((mark.key, mark.column.as_ref()?)))
    }

    pub fn is_empty(&self) -> bool {
        let mut marks = self.panels.iter().flat_map(|panel| &panel.marks);
        marks.all(|mark| mark.points.iter().all(|point| point.y.is_none()))
    }
}

//! The lines of a text block: labels, values and the rules of sections.

use std::fmt::{Display, Write};

use crate::plain;
use crate::sections::Row;
use result::summary::{Distribution, Summary};
use statistics::{Figures, Ranked};

/// The column of the values, minus one.
const LABELS: usize = 40;

/// The unit in a label, and the divisor from milliseconds to it.
pub(super) type Scale = (&'static str, f64);

pub(super) const MS: Scale = (" (ms)", 1.0);

/// A value as text; a dash stands for an absent one.
pub(super) fn or_dash<T>(value: Option<T>, text: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), text)
}

#[derive(Default)]
pub(crate) struct Block {
    pub(super) text: String,
    /// The title of a section that has no line yet.
    pub(super) pending: Option<&'static str>,
    /// Pads values to 10 characters, as the tools with Python's `"{:<40} {:<10.2f}"` do.
    pub(super) is_padded: bool,
    /// Draws of each distribution the mean, the median and the highest percentile alone.
    pub(super) is_short: bool,
}

impl Block {
    pub(crate) fn titled(title: &str) -> Self {
        Block { text: format!("{title:=^50}\n"), ..Block::default() }
    }

    /// The block of a tool that shares the ancestor.
    pub(super) fn padded() -> Self {
        Block { is_padded: true, ..Block::titled(" Serving Benchmark Result ") }
    }

    /// The text, with its cautions and a rule at its end.
    pub(crate) fn end(mut self, cautions: &[String]) -> String {
        self.pending = None;
        for caution in cautions {
            self.prose(&format!("caution: {caution}"));
        }
        self.prose(&"=".repeat(50));
        self.text
    }

    /// A line for a number of something, if there is any.
    pub(crate) fn count(&mut self, label: &str, count: u64) {
        self.line(label, Some(count).filter(|count| *count > 0));
    }

    /// Begins a section. Its rule is drawn once there is a line below it.
    pub(crate) fn section(&mut self, title: &'static str) {
        self.pending = Some(title);
    }

    /// A line for each row that the block has.
    pub(super) fn rows(&mut self, rows: Vec<Row>) {
        for (label, value) in rows.into_iter().filter_map(Row::line) {
            self.line(&label, Some(value));
        }
    }

    pub(crate) fn line(&mut self, label: &str, value: Option<impl Display>) {
        let Some(value) = value else { return };
        let (label, value) = (plain(label), plain(&value.to_string()));
        let width = if self.is_padded { 10 } else { 0 };
        self.prose(&format!("{label:<LABELS$} {value:<width$}"));
    }

    pub(super) fn figure(&mut self, label: &str, value: Option<f64>) {
        self.line(label, value.map(|value| format!("{value:.2}")));
    }

    pub(crate) fn prose(&mut self, text: &str) {
        if let Some(title) = self.pending.take() {
            let _ = writeln!(self.text, "{title:-^50}");
        }
        self.text.push_str(&plain(text));
        self.text.push('\n');
    }

    /// A table, if it has rows. The first `left` columns stand on the left, as wide as their cells,
    /// the others on the right of their widths.
    pub(super) fn table(
        &mut self,
        left: usize,
        heads: &[(&str, usize)],
        rows: impl Iterator<Item = Vec<String>>,
    ) {
        let head = heads.iter().map(|(head, _)| (*head).to_owned()).collect();
        let all: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
        let widths = heads.iter().enumerate().map(|(at, (_, least))| {
            let cells = all.iter().map(|row| row[at].chars().count()).filter(|_| at < left);
            cells.fold(*least, usize::max)
        });
        let widths: Vec<usize> = widths.collect();
        for row in all.iter().filter(|_| all.len() > 1) {
            let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, width))| match at {
                at if at < left => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            });
            self.prose(&cells.collect::<Vec<_>>().join(" "));
        }
    }

    /// A section of mean, median and percentiles, as other tools define them.
    pub(super) fn figures(
        &mut self,
        title: &'static str,
        label: &str,
        of: Option<&Figures>,
        percentiles: &[f64],
    ) {
        let Some(of) = of else { return };
        self.section(title);
        self.figure(&format!("Mean {label} (ms):"), Some(of.mean()));
        self.figure(&format!("Median {label} (ms):"), Some(of.percentile(50.0)));
        for percent in percentiles {
            let value = of.percentile(*percent);
            self.figure(&format!("P{percent} {label} (ms):"), Some(value));
        }
    }

    pub(super) fn distribution(
        &mut self,
        summary: &Summary,
        metric: &str,
        label: &str,
        scale: Scale,
    ) {
        let Some(distribution) = summary.metric(metric) else { return };
        let Distribution { mean, median, .. } = distribution;
        let (unit, divisor) = scale;
        let percentiles = &summary.run.percentiles;
        let skipped = if self.is_short { percentiles.len().saturating_sub(1) } else { 0 };
        let mut figure = |which: &str, value: f64| {
            self.figure(&format!("{which} {label}{unit}:"), Some(value / divisor));
        };
        if mean.is_finite() {
            figure("Mean", *mean);
        }
        figure("Median", *median);
        for percent in &percentiles[skipped..] {
            if let Some(value) = distribution.percentile(*percent) {
                figure(&format!("P{percent}"), value);
            }
        }
    }
}

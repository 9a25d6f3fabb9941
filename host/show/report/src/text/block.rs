//! The lines of a text block: labels, values and the rules of sections.

use std::fmt::{Display, Write};

use crate::plain;
use result::summary::{Distribution, Summary};

/// The column of the values, minus one.
const LABELS: usize = 40;

/// The unit in a label, and the divisor from milliseconds to it.
pub(super) type Scale = (&'static str, f64);

pub(super) const MS: Scale = (" (ms)", 1.0);

#[derive(Default)]
pub(crate) struct Block {
    pub(super) text: String,
    /// The title of a section that has no line yet.
    pub(super) pending: Option<&'static str>,
    /// Draws of each distribution the mean, the median and the highest percentile alone.
    pub(super) is_short: bool,
}

impl Block {
    /// A block that begins with that title.
    pub(crate) fn titled(title: &str) -> Self {
        Block { text: format!("{title:=^50}\n"), ..Block::default() }
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

    pub(crate) fn line(&mut self, label: &str, value: Option<impl Display>) {
        let Some(value) = value else { return };
        let (label, value) = (plain(label), plain(&value.to_string()));
        self.prose(&format!("{label:<LABELS$} {value}"));
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

    pub(super) fn distribution(
        &mut self,
        summary: &Summary,
        metric: &str,
        label: &str,
        scale: Scale,
    ) {
        let Some(distribution) = summary.metric(metric) else {
            return;
        };
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

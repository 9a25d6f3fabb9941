//! The blocks of the tools that share an ancestor: labels of 40 characters, values padded to 10, as
//! Python's `"{:<40} {:<10.2f}"` writes them, and rules of 50.

use std::fmt::{Display, Write};

use super::super::plain;
use statistics::{Figures, Ranked};

#[derive(Default)]
pub(super) struct Padded {
    text: String,
    /// The title of a section that has no line yet.
    pending: Option<&'static str>,
}

impl Padded {
    pub(super) fn new() -> Self {
        Padded { text: format!("{:=^50}\n", " Serving Benchmark Result "), pending: None }
    }

    /// Begins a section; its rule is drawn once there is a line below it.
    pub(super) fn section(&mut self, title: &'static str) {
        self.pending = Some(title);
    }

    pub(super) fn line(&mut self, label: &str, value: Option<impl Display>) {
        let Some(value) = value else { return };
        if let Some(title) = self.pending.take() {
            let _ = writeln!(self.text, "{title:-^50}");
        }
        let (label, value) = (plain(label), plain(&value.to_string()));
        let _ = writeln!(self.text, "{label:<40} {value:<10}");
    }

    pub(super) fn figure(&mut self, label: &str, value: Option<f64>) {
        self.line(label, value.map(|value| format!("{value:.2}")));
    }

    /// A section of mean, median and percentiles.
    pub(super) fn distribution(
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

    pub(super) fn finish(mut self) -> String {
        let _ = writeln!(self.text, "{:=^50}", "");
        self.text
    }
}

//! The runs that charts show, and the numbers and sentences beside them.

use crate::chart::{Key, Tone, scale};
use crate::view::View;
use model::number::{short, significant};
use runs::Reported;

/// A run of a chart or a page.
#[derive(Clone, Debug)]
pub struct RunView {
    /// Its name among the runs shown with it.
    pub label: String,
    /// The facts about it, except its exchanges.
    pub reported: Reported,
    /// The view of its exchanges.
    pub view: View,
}

/// A key for each run.
pub(super) fn keys(runs: &[RunView]) -> Vec<Key> {
    let numbered = runs.iter().enumerate();
    numbered
        .map(|(number, run)| Key { label: run.label.clone(), tone: Tone::Series(number) })
        .collect()
}

/// The unit for spans of time up to a number of milliseconds, and its length in milliseconds.
pub(super) fn time_unit(longest_ms: f64) -> (&'static str, f64) {
    if longest_ms >= 20_000.0 { ("s", 1000.0) } else { ("ms", 1.0) }
}

/// A span of time as text.
pub(super) fn milliseconds(ms: f64) -> String {
    let (unit, divisor) = time_unit(ms);
    format!("{} {unit}", significant(ms / divisor, 4))
}

/// A chosen span of time as text, such as the end of a bar.
pub(super) fn chosen_milliseconds(ms: f64) -> String {
    let (unit, divisor) = time_unit(ms);
    format!("{} {unit}", short(ms / divisor, 4))
}

/// An instant of a run as text.
pub(super) fn seconds(s: f64) -> String {
    format!("{} s", short(s, 4))
}

/// The nearest lower 1, 2 or 5 times a power of ten, at which a logarithmic axis may begin.
pub(super) fn round_begin(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let factor = [5.0, 2.0, 1.0].into_iter().find(|f| f * power <= value * 1.000_001);
    factor.unwrap_or(1.0) * power
}

/// The end of an axis from zero that includes a value.
pub(super) fn end(value: f64) -> f64 {
    scale::round_end(value, 6)
}

/// One sentence per run, each with the run's name if there are several.
pub(super) fn sentences(runs: &[RunView], of: impl Fn(usize) -> Option<String>) -> String {
    let several = runs.len() > 1;
    let sentences = runs.iter().enumerate().filter_map(|(number, run)| {
        let sentence = of(number)?;
        Some(if several { format!("{}: {sentence}", run.label) } else { sentence })
    });
    sentences.collect::<Vec<_>>().join(" ")
}

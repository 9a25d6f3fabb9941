//! Figures as a page shows them.

use model::number;
use report::document::{Cell, Tone};
use report::label::label;

use crate::findings::{LabReport, gain_text};
use crate::judge::Judgement;
use crate::stat::{Gain, Spread, places};

/// A number with four digits, or all before the point: `14,154`, `9.875`.
pub(super) fn number(value: f64) -> String {
    number::fixed(value, places(value))
}

/// Fewer repeats have no useful interval: with two repeats it is some nine times as wide as their
/// distance.
pub(super) const FEWEST: usize = 3;

/// A mean with half of its interval, to the same place; of too few repeats the mean alone.
pub(super) fn spread(value: &Spread) -> String {
    let interval = value.interval.filter(|_| value.repeats >= FEWEST);
    with_margin(value.mean, interval.map(|[low, high]| (high - low) / 2.0))
}

/// A mean with its margin, to the same place: `1,443 ± 9`.
pub(super) fn with_margin(mean: f64, margin: Option<f64>) -> String {
    match margin {
        Some(margin) => format!("{} ± {}", number(mean), number::fixed(margin, places(mean))),
        None => number(mean),
    }
}

/// A figure as text; shares are in percent.
pub(super) fn figure(name: &str, value: &Spread) -> String {
    if name.ends_with("-share") { number::percent(value.mean) } else { spread(value) }
}

/// Names the objective's figure.
pub(super) fn figure_of(report: &LabReport) -> String {
    let objective = report.objective.as_deref().unwrap_or_default();
    let figure = objective.split_once(' ').map(|(_, figure)| figure);
    figure.map_or_else(|| "Figure".to_owned(), label)
}

/// A gain, as good or bad news where its interval does not hold zero.
pub(super) fn gain_cell(gain: &Gain) -> Cell {
    Cell {
        text: gain_text(gain).into(),
        tone: match gain.interval {
            Some([low, _]) if low > 0.0 => Tone::Good,
            Some([_, high]) if high < 0.0 => Tone::Bad,
            _ => Tone::Plain,
        },
    }
}

/// A judgement with its colour.
pub(super) fn judgement(standing: Judgement) -> Cell {
    Cell {
        text: standing.label().into(),
        tone: match standing {
            Judgement::Better => Tone::Good,
            Judgement::Worse | Judgement::RuledOut => Tone::Bad,
            Judgement::Reference | Judgement::NoDifference | Judgement::NotJudged => Tone::Plain,
        },
    }
}

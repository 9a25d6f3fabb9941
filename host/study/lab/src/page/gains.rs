//! The gain of each trial on each scenario, with its interval, as the first picture of a page.

use report::chart::Chart;
use report::charts::{self, Difference, Forest};

use super::figure_of;
use crate::findings::{LabReport, StudyReport, gain_text};
use crate::judge::{Judgement, Row};
use crate::stat::Gain;

/// The most rows that the picture has; a table has all.
const MOST: usize = 40;

pub(super) fn chart(report: &LabReport, study: &StudyReport, number: usize) -> Chart {
    let mut rows: Vec<Difference> = study.against_baseline.iter().flat_map(differences).collect();
    let left_out = match rows.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(" {more} more are in the tables."),
    };
    rows.truncate(MOST);
    charts::chart(&Forest {
        name: format!("gains-{}", number + 1),
        title: format!("Gain in {} against the baseline", figure_of(report)),
        note: format!(
            "Further right is better. A bar is the 95 % interval, for all comparisons together, and continues where it reaches \
             the edge.{left_out}"
        ),
        x: "gain".to_owned(),
        zero: "the baseline".to_owned(),
        rows,
    })
}

/// A row for each scenario, or one for all if there is only one.
fn differences(row: &Row) -> Vec<Difference> {
    if matches!(row.judgement, Judgement::Reference | Judgement::RuledOut) {
        return Vec::new();
    }
    (row.scenarios.iter())
        .filter_map(|scenario| Some((scenario.scenario.as_str(), scenario.gain?)))
        .map(|(scenario, gain)| Difference {
            name: match row.scenarios.len() {
                1 => row.label.clone(),
                _ => format!("{}, {scenario}", row.label),
            },
            share: gain.percent / 100.0,
            interval: gain.interval.map(|ends| ends.map(|end| end / 100.0)),
            is_better: is_better(row.judgement, &gain),
            text: gain_text(&gain),
        })
        .collect()
}

/// True or false where a gain is shown, for better or worse, and the trial differs to that side.
fn is_better(judgement: Judgement, gain: &Gain) -> Option<bool> {
    let [low, high] = gain.interval?;
    match judgement {
        Judgement::Better if low > 0.0 => Some(true),
        Judgement::Worse if high < 0.0 => Some(false),
        _ => None,
    }
}

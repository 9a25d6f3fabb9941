//! A sweep: its runs' measurements; as text and as a page, its curve, the knee and the Pareto
//! front.

mod page;
#[cfg(test)]
pub(crate) mod tests;

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;

use crate::label::label;
use crate::search::{amount, short, unit};
use result::figure::Figure;
use result::finding::{Severity, Verdict};
use result::summary::Summary;
use search::Load;
use search::sweep::{At, Curve, Mean, NoKnee, Place, Point, Run, curve};

/// The figures of the table, with their headings.
const COLUMNS: [(&str, &str); 9] = [
    ("throughput.requests-per-s", "req/s"),
    ("throughput.output-tokens-per-s", "out tok/s"),
    ("ttft.median", "TTFT P50"),
    ("ttft.p99", "TTFT P99"),
    ("tpot.mean", "TPOT mean"),
    ("e2e.p99", "E2E P99"),
    ("requests.success-share", "answered"),
    ("devices.energy-per-million-output-tokens", "J/M out tok"),
    ("cost.per-million-output-tokens", "cost/M out"),
];

/// The number of these at the end that a table has only where a run has them.
const ASKED_FOR: usize = 2;

/// A sweep, as far as it is.
#[model::apply(model::document!)]
pub struct Sweep {
    /// The load that is varied.
    pub load: Load,
    /// The figure that is better the higher it is.
    pub throughput: String,
    /// The figure that is better the lower it is.
    pub latency: String,
    /// The loads of all runs, in order.
    pub planned: Vec<At>,
    /// The runs that were made, in order.
    pub runs: Vec<SweptRun>,
}

/// A run of a sweep.
#[model::apply(model::document!)]
pub struct SweptRun {
    /// Its load.
    pub at: At,
    /// The number of the repeat, from 1.
    pub repeat: u32,
    /// Its folder, in the sweep's.
    pub folder: String,
    /// Its verdict.
    pub verdict: Verdict,
    /// The findings that the verdict rests on, by their names; none of a valid run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
    /// The two figures of the curve, by which it is judged. An absent one was not measured.
    pub curve: [Option<f64>; 2],
    /// The measured figures of the table, by name.
    pub figures: std::collections::BTreeMap<String, f64>,
}

/// A sweep with its curve.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(deny_unknown_fields)]
pub struct Result<'s> {
    #[serde(flatten)]
    pub sweep: &'s Sweep,
    /// The curve.
    pub curve: Curve,
}

impl SweptRun {
    /// Takes the figures that a run of a sweep measured.
    pub fn new(run: &Run, folder: &str, summary: &Summary, curve: [&Figure; 2]) -> Self {
        let read = |name: &str| {
            let figure: Figure = name.parse().ok()?;
            Some((name.to_owned(), figure.read(summary)?))
        };
        SweptRun {
            at: run.at,
            repeat: run.repeat,
            folder: folder.to_owned(),
            verdict: summary.verdict,
            doubts: doubts(summary),
            curve: curve.map(|figure| figure.read(summary)),
            figures: COLUMNS.iter().filter_map(|(name, _)| read(name)).collect(),
        }
    }
}

/// The findings that make a run no better than its verdict.
fn doubts(summary: &Summary) -> Vec<String> {
    let decisive = summary.findings.iter().filter(|finding| {
        finding.severity != Severity::Note
            && Verdict::from_findings(std::slice::from_ref(finding)) == summary.verdict
    });
    decisive.map(|finding| finding.id.name().to_owned()).collect()
}

impl SweptRun {
    /// Its verdict, with the findings of a run that is not valid: `suspect (send-lag)`.
    fn verdict_words(&self) -> String {
        let name = self.verdict.name();
        if self.doubts.is_empty() {
            name.to_owned()
        } else {
            format!("{name} ({})", self.doubts.join(", "))
        }
    }
}

impl Sweep {
    /// The folders of its runs, in the order in which they were made.
    pub fn folders(&self) -> impl Iterator<Item = &str> {
        self.runs.iter().map(|run| &*run.folder)
    }

    fn columns(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let always = COLUMNS.len() - ASKED_FOR;
        COLUMNS.into_iter().enumerate().filter_map(move |(place, column)| {
            let mut runs = self.runs.iter();
            (place < always || runs.any(|run| run.figures.contains_key(column.0))).then_some(column)
        })
    }

    pub fn result(&self) -> Result<'_> {
        let points: Vec<Point> = (self.runs.iter())
            .map(|run| Point {
                at: run.at,
                repeat: run.repeat,
                valid: run.verdict != Verdict::Invalid,
                throughput: run.curve[0],
                latency: run.curve[1],
            })
            .collect();
        Result { sweep: self, curve: curve(&points) }
    }
}

pub use page::{knee_rule, page, spot};

pub fn begins(load: Load, run: &Run, of: usize) -> String {
    format!("== run {} of {of}: {} ==", run.number, amount(load, run.at.number()))
}

pub fn ended(load: Load, run: &SweptRun) -> String {
    let figures = COLUMNS.iter().filter_map(|(name, heading)| {
        let value = run.figures.get(*name)?;
        Some(format!("{heading} {}", shown(name, *value)))
    });
    format!(
        "{}: {}, {}",
        amount(load, run.at.number()),
        run.verdict_words(),
        figures.collect::<Vec<_>>().join(", ")
    )
}

fn shown(name: &str, value: f64) -> String {
    if name.ends_with("-share") { format!("{} %", short(100.0 * value)) } else { short(value) }
}

/// The sweep as text. Times are milliseconds.
pub fn text(sweep: &Sweep) -> String {
    let mut text = String::new();
    let _ = write!(text, "{:>10}", unit(sweep.load));
    for (_, heading) in sweep.columns() {
        let _ = write!(text, " {heading:>11}");
    }
    text.push_str("  verdict\n");
    for run in &sweep.runs {
        let _ = write!(text, "{:>10}", short(run.at.number()));
        for (name, _) in sweep.columns() {
            let value = run.figures.get(name);
            let value = value.map_or_else(|| "-".to_owned(), |value| shown(name, *value));
            let _ = write!(text, " {value:>11}");
        }
        let _ = writeln!(text, "  {}", run.verdict_words());
    }
    let result = sweep.result();
    text.push('\n');
    if let Some(words) = knee_words(sweep, &result.curve) {
        let _ = writeln!(text, "knee: {words}");
    }
    let front: Vec<String> = (result.curve.places.iter())
        .filter(|place| place.on_front == Some(true))
        .map(|place| on_front(sweep.load, place))
        .collect();
    if !front.is_empty() {
        let _ = writeln!(text, "Pareto front of {} and {}:", sweep.throughput, sweep.latency);
        for line in front {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}

/// States the place of the knee, or the reason why none is shown.
fn knee_words(sweep: &Sweep, curve: &Curve) -> Option<String> {
    if let Some(knee) = &curve.knee {
        let rises = if knee.slope_above > 0.0 {
            let share = 100.0 * knee.slope_above / knee.slope_below;
            format!("it rises {} % as fast as below", short(share))
        } else {
            "it does not rise".to_owned()
        };
        return Some(format!(
            "{}, where {} is {}; beyond that, {rises}",
            amount(sweep.load, knee.at),
            label(&sweep.throughput),
            short(knee.throughput),
        ));
    }
    let why = match curve.no_knee? {
        NoKnee::TooFewLoads => "fewer than five loads have valid runs",
        NoKnee::NoCorner => "throughput follows the load, or bends too little to place the knee",
    };
    Some(format!("none shown, because {why}"))
}

fn on_front(load: Load, place: &Place) -> String {
    let mean = |mean: Option<Mean>| mean.map_or_else(|| "-".to_owned(), page::mean);
    format!(
        "{}: {} and {}",
        amount(load, place.at.number()),
        mean(place.throughput),
        mean(place.latency)
    )
}

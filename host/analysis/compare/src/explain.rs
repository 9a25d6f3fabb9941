//! Explains the differences between two results of one engine: the parts from definitions, the
//! workload, the schedule, failures or a client's own time, and the remainder.
//!
//! A difference is B's figure less A's. It is split in a fixed order: first each figure is brought
//! to one definition, then the known parts of lengths, of the schedule and of failures are taken
//! off. A part is in the sum only if it was recomputed from records, follows from an identity of
//! stated figures, or has bounds. Else the text mentions it, and it stays in the remainder. Unknown
//! parts are never estimated.
//!
//! Pure: takes records one by one, and claims as `audit` reads them. This module owns the parts;
//! `audit` owns the meaning of other tools' figures, and `result` the definitions of our own.

mod account;
mod definition;
mod parts;
#[cfg(test)]
mod tests;
mod text;

use schemars::JsonSchema;
use serde::Serialize;

pub use account::{Account, Place};
pub use text::text;

use result::figure::Statistic;

/// The difference of two results, taken apart.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Explained {
    /// The two results, A and B.
    pub sides: [Facts; 2],
    /// The known differences in the requested settings and in their effects.
    pub differences: Vec<Setting>,
    /// The settings that a result does not state, so that they may differ.
    pub unknown: Vec<String>,
    /// The counts that are equal, to the last one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub equal: Vec<String>,
    /// The figures that both state.
    pub figures: Vec<Row>,
}

/// A result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Facts {
    /// `A` or `B`.
    pub name: String,
    /// The run's folder, or the place of a claim.
    pub source: String,
    /// The tool that measured it, and its description of the scenario.
    pub described: String,
    /// Reasons to doubt it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
}

/// Something that differs between two results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Setting {
    /// The part of a difference that it belongs to.
    pub kind: Kind,
    /// Its name.
    pub what: String,
    /// A's.
    pub a: String,
    /// B's.
    pub b: String,
}

/// A figure of two results, and the parts of its difference.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Row {
    /// The figure, by the name that both tools give it: `ttft.mean`.
    pub figure: String,
    /// Its unit.
    pub unit: String,
    /// A's figure, as A defines it.
    pub a: f64,
    /// B's figure, as B defines it.
    pub b: f64,
    /// B's less A's.
    pub difference: f64,
    /// The parts of it that are known.
    pub parts: Vec<Part>,
    /// The remainder when the parts with a value are taken off: the engine, or unexplained.
    pub remainder: Range,
    /// Of the mean TTFT: the places of the whole difference, by the servers' own timings. They are
    /// no further parts, and add up to the difference by themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Place>,
}

model::words! {
    /// The cause of a part of a difference.
    pub enum Kind {
        /// The two tools compute different things under one name.
        Definition = "definition",
        /// Prompts and answers differ: their number or their lengths.
        Workload = "workload",
        /// Requests were sent at other times: rate, cap, warm-up.
        Schedule = "schedule",
        /// Requests failed, and are in no latency.
        Failures = "failures",
        /// Time that a client took itself.
        Client = "client",
        /// The engines or models differ, as far as the results say.
        Engine = "engine",
    }
}

model::words! {
    /// The way in which a part was found.
    pub enum How {
        /// Computed again from the records of a side's requests, or from its counts.
        Recomputed = "recomputed",
        /// Within two ends that follow from figures of both sides.
        Bounded = "bounded",
        /// The two results' settings give it.
        Settings = "from the settings",
        /// The part is not known; the remainder holds it.
        NotSeparated = "not separated",
    }
}

/// A part of a difference.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Part {
    /// Its cause.
    pub kind: Kind,
    /// The way in which it was found.
    pub how: How,
    /// The part, with the sign that it has in the difference; absent if it is not separated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Range>,
    /// The part and its evidence, as text.
    pub words: String,
}

/// A number, or the two ends that it is between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Range {
    /// The lower end.
    pub low: f64,
    /// The upper end; the same if the number is known.
    pub high: f64,
}

impl Range {
    /// A number that is known.
    pub(crate) fn exact(value: f64) -> Self {
        Range { low: value, high: value }
    }

    /// Between two numbers, in whatever order; `None` if one is not finite.
    pub(crate) fn between(one: f64, other: f64) -> Option<Self> {
        (one.is_finite() && other.is_finite())
            .then(|| Range { low: one.min(other), high: one.max(other) })
    }

    fn minus(self, other: Range) -> Self {
        Range { low: self.low - other.high, high: self.high - other.low }
    }

    fn wider(self, by: f64) -> Self {
        Range { low: self.low - by, high: self.high + by }
    }
}

impl Part {
    fn known(kind: Kind, how: How, value: Range, words: impl Into<String>) -> Self {
        Part { kind, how, value: Some(value), words: words.into() }
    }

    fn unknown(kind: Kind, words: impl Into<String>) -> Self {
        Part { kind, how: How::NotSeparated, value: None, words: words.into() }
    }
}

/// The latencies that every tool has a name for.
const LATENCIES: [&str; 4] = ["ttft", "tpot", "itl", "e2e"];

/// The statistics that most tools state.
const STATISTICS: [Statistic; 3] =
    [Statistic::Mean, Statistic::Percentile(50.0), Statistic::Percentile(99.0)];

/// The figures of a run as a whole, with their units.
const WHOLES: [(&str, &str); 3] = [
    ("throughput.requests-per-s", "req/s"),
    ("throughput.output-tokens-per-s", "tok/s"),
    ("throughput.total-tokens-per-s", "tok/s"),
];

pub fn explain(a: &Account, b: &Account) -> Explained {
    let sides = [a, b];
    let (differences, unknown) = account::differences(sides);
    let mut figures = Vec::new();
    for theirs in LATENCIES {
        for statistic in STATISTICS {
            let parts = |sides: [&Account; 2]| parts::of_latency(sides, theirs, statistic);
            figures.extend(row(sides, &format!("{theirs}.{statistic}"), "ms", parts));
        }
    }
    for (figure, unit) in WHOLES {
        let parts = |sides: [&Account; 2]| parts::of_whole(sides, figure);
        figures.extend(row(sides, figure, unit, parts));
    }
    let facts = |name: &str, account: &Account| Facts {
        name: name.to_owned(),
        source: account.source.clone(),
        described: account.described.clone(),
        doubts: account.doubts.clone(),
    };
    let equal = account::equal(sides);
    Explained { sides: [facts("A", a), facts("B", b)], differences, unknown, equal, figures }
}

/// The row of a figure that both sides state.
fn row(
    sides: [&Account; 2],
    figure: &str,
    unit: &str,
    parts: impl FnOnce([&Account; 2]) -> Vec<Part>,
) -> Option<Row> {
    let [a, b] = [sides[0].figure(figure)?, sides[1].figure(figure)?];
    let difference = b.value - a.value;
    let parts = parts(sides);
    let whole = Range::exact(difference).wider(a.rounding + b.rounding);
    let remainder = parts.iter().filter_map(|part| part.value).fold(whole, Range::minus);
    Some(Row {
        figure: figure.to_owned(),
        unit: unit.to_owned(),
        a: a.value,
        b: b.value,
        difference,
        parts,
        remainder,
        places: match figure {
            "ttft.mean" => account::of_mean_ttft(sides),
            _ => Vec::new(),
        },
    })
}

//! Settings that make two sides incomparable, and settings that differ between them on purpose.
//!
//! A comparison is meaningful only if everything else is the same. The requests, the load, the way
//! of measuring and the validity of the measurement must agree; engine, address, dialect and
//! hardware are the subjects of comparisons, and are listed.

mod claims;
mod runs;

pub(crate) use claims::short_model;

use std::collections::BTreeSet;

use super::side::Side;
use model::about::{About, is_same_engine};
use result::finding::{Severity, Verdict};

pub use scenario::Kind;

/// Something that must agree but does not.
#[model::apply(model::document!)]
#[derive(Eq)]
pub struct Obstacle {
    /// Its kind.
    pub kind: Kind,
    /// The setting that differs, and how.
    pub difference: Difference,
}

/// A setting that differs between two sides.
#[model::apply(model::document!)]
#[derive(Eq)]
pub struct Difference {
    /// The setting, as named in the plan.
    pub what: String,
    /// The letter of the side that is compared with the baseline, or `another run of` a side.
    pub side: String,
    /// The baseline's value; absent if it has none.
    pub baseline: Option<String>,
    /// The other side's value; absent if it has none.
    pub value: Option<String>,
}

impl Difference {
    /// Both values in a short text.
    pub fn values(&self, baseline: &str) -> String {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "not given".into());
        format!("{} in {baseline}, {} in {}", text(&self.baseline), text(&self.value), self.side)
    }
}

/// The settings of two sides, compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compatibility {
    /// Settings that must agree, and do not.
    pub obstacles: Vec<Obstacle>,
    /// Differences in the subjects of comparisons.
    pub differences: Vec<Difference>,
    /// Settings that cannot be checked, because a side does not state them.
    pub unknown: Vec<String>,
}

/// Compares a side with the baseline. `names` are their letters; `must_agree` are the kinds that
/// people compare on purpose elsewhere.
pub(crate) fn compatibility(
    baseline: &Side,
    side: &Side,
    names: [&str; 2],
    must_agree: &[Kind],
) -> Compatibility {
    let mut found = CompatibilityCheck::new(names, must_agree);
    match (baseline, side) {
        (Side::Runs(a), Side::Runs(b)) => {
            // Repeats are compared with the first of them, so that nothing hides in the middle.
            for (runs, name) in [a, b].into_iter().zip(names) {
                let other = format!("another run of {name}");
                let mut own = CompatibilityCheck::new([name, &other], must_agree);
                if let [first, others @ ..] = runs.as_slice() {
                    others.iter().for_each(|other| runs::obstacles(first, other, &mut own));
                }
                found.found.obstacles.append(&mut own.found.obstacles);
            }
            if let (Some(a), Some(b)) = (a.first(), b.first()) {
                runs::obstacles(a, b, &mut found);
                runs::differences(a, b, &mut found);
            }
        }
        (Side::Turns(_), _) | (_, Side::Turns(_)) => {
            // Each turn has requests of its own, which the other side's turn repeats.
            let turns = baseline.measured().iter().zip(side.measured());
            turns.clone().for_each(|(a, b)| runs::obstacles(a, b, &mut found));
            turns.take(1).for_each(|(a, b)| runs::differences(a, b, &mut found));
        }
        (Side::Runs(runs), Side::Claim(stated)) => {
            claims::with_run(&runs[0], &stated.claim, false, &mut found);
        }
        (Side::Claim(stated), Side::Runs(runs)) => {
            claims::with_run(&runs[0], &stated.claim, true, &mut found);
        }
        (Side::Claim(a), Side::Claim(b)) => claims::with_claim(&a.claim, &b.claim, &mut found),
    }
    found.verdicts(baseline, side);
    found.found
}

struct CompatibilityCheck<'n> {
    names: [&'n str; 2],
    must_agree: &'n [Kind],
    found: Compatibility,
}

impl<'n> CompatibilityCheck<'n> {
    fn new(names: [&'n str; 2], must_agree: &'n [Kind]) -> Self {
        CompatibilityCheck { names, must_agree, found: Compatibility::default() }
    }

    fn difference(&self, what: &str, a: Option<String>, b: Option<String>) -> Difference {
        Difference { what: what.to_owned(), side: self.names[1].to_owned(), baseline: a, value: b }
    }

    /// Something that must agree but does not.
    fn obstacle(&mut self, kind: Kind, what: &str, a: Option<String>, b: Option<String>) {
        let difference = self.difference(what, a, b);
        let obstacle = Obstacle { kind, difference };
        if !self.found.obstacles.contains(&obstacle) {
            self.found.obstacles.push(obstacle);
        }
    }

    /// Compares a setting that may differ.
    fn may(&mut self, what: &str, a: Option<String>, b: Option<String>) {
        if a != b {
            let difference = self.difference(what, a, b);
            self.found.differences.push(difference);
        }
    }

    /// Compares a setting that may differ, unless this comparison demands that it agrees.
    fn on_purpose(&mut self, kind: Kind, what: &str, a: Option<String>, b: Option<String>) {
        if self.must_agree.contains(&kind) && a != b {
            self.obstacle(kind, what, a, b)
        } else {
            self.may(what, a, b)
        }
    }

    fn about(&mut self, a: &About, b: &About) {
        let is_same = a.engine.as_deref().zip(b.engine.as_deref());
        let is_same = is_same.is_some_and(|(a, b)| is_same_engine(a, b));
        let engine = if is_same { &a.engine } else { &b.engine };
        for (kind, what, a, b) in [
            (Kind::Engine, "engine", &a.engine, engine),
            (Kind::Engine, "engine version", &a.engine_version, &b.engine_version),
            (Kind::Hardware, "hardware", &a.hardware, &b.hardware),
        ] {
            self.on_purpose(kind, what, a.clone(), b.clone());
        }
        let (launch, launched) = (a.launch_command.clone(), b.launch_command.clone());
        self.may("launch command", launch, launched);
        let keys: BTreeSet<&String> = a.notes.keys().chain(b.notes.keys()).collect();
        for key in keys {
            let value = |about: &About| about.notes.get(key).cloned();
            self.may(key, value(a), value(b));
        }
    }

    /// Notes something that only one side states, or neither.
    fn unknown(&mut self, what: &str) {
        let what = what.to_owned();
        if !self.found.unknown.contains(&what) {
            self.found.unknown.push(what);
        }
    }

    /// Notes runs with the verdict invalid.
    fn verdicts(&mut self, baseline: &Side, side: &Side) {
        let [a, b] = [baseline, side].map(worst);
        if [&a, &b].into_iter().flatten().any(|(verdict, _)| *verdict == Verdict::Invalid) {
            let text = |worst: Option<(Verdict, String)>| worst.map(|(_, words)| words);
            self.obstacle(Kind::Verdict, "verdict", text(a), text(b));
        }
    }
}

/// The worst verdict of a side's runs, with its reasons; `None` for a claim.
fn worst(side: &Side) -> Option<(Verdict, String)> {
    let verdicts = side.measured().iter().map(|run| {
        let summary = &run.reported.summary;
        let invalid = summary.findings.iter();
        let invalid = invalid.filter(|finding| finding.severity == Severity::Invalid);
        let reasons: Vec<&str> = invalid.map(|finding| finding.id.name()).collect();
        let verdict = summary.verdict.name();
        let words = if reasons.is_empty() {
            verdict.to_owned()
        } else {
            format!("{verdict} ({})", reasons.join(", "))
        };
        (summary.verdict, words)
    });
    verdicts.max_by_key(|(verdict, _)| *verdict)
}

#[cfg(test)]
mod tests;

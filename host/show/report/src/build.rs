//! A build's runs, judged: their thresholds, their findings and the comparison with a baseline as
//! one list of checks. The list decides if the build passes. Its forms are Markdown for summaries
//! and comments, JUnit XML, and annotations of a GitHub log.
//!
//! This module owns the list and its forms. It leaves comparisons to `compare`, the runs' own
//! figures to `result`, and exit codes to the command line. Passing has one rule: a check fails, or
//! it does not. Doubts warn, so that a build fails only for its author's conditions. They are a
//! suspect finding, a figure that is worse though no condition is about it, and a baseline that
//! cannot be compared.

mod annotations;
mod junit;
mod markdown;
#[cfg(test)]
mod tests;

use compare::{Compared, Judgement};
use model::number;
use result::finding::{Finding, Severity, Verdict};
use result::summary::Summary;

pub use annotations::annotations;
pub use junit::junit;
pub use markdown::{markdown, text};
pub use quick_junit::SerializeError;

/// The runs of a build, and the result of the comparison with the baseline.
pub struct Build {
    pub scenario: String,
    /// The runs, in the order in which they began.
    pub runs: Vec<Run>,
    /// The comparison with the baseline.
    pub baseline: Baseline,
    /// True if a run that is invalid is a doubt, and fails nothing.
    pub allows_invalid: bool,
}

pub struct Run {
    /// The name of its folder.
    pub folder: String,
    pub summary: Summary,
}

/// The comparison of a build with its baseline.
pub enum Baseline {
    NotRequested,
    /// There is no baseline yet. The text names the place where it was sought.
    None(String),
    /// Nothing was compared.
    NotComparable {
        /// The reasons, with the advice.
        reasons: Vec<String>,
        /// True if that fails the build.
        fails: bool,
    },
    Compared(Box<Compared>),
}

/// The subject of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The verdict on the validity of a run.
    Run,
    Threshold,
    Finding,
    /// The baseline: its existence, its comparability and the figures that it lacks.
    Baseline,
    /// A condition on the difference from the baseline.
    Condition,
}

impl Subject {
    /// Its name, as the class of test cases.
    pub fn name(self) -> &'static str {
        match self {
            Subject::Run => "run",
            Subject::Threshold => "threshold",
            Subject::Finding => "finding",
            Subject::Baseline => "baseline",
            Subject::Condition => "condition",
        }
    }
}

/// The outcome of a check, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    Passes,
    /// It passes, with a note.
    Notes,
    /// It passes, with a doubt.
    Warns,
    Fails,
}

/// Something that a build is checked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    pub subject: Subject,
    /// The condition: `ttft.p99 <= 200 ms`.
    pub name: String,
    pub outcome: Outcome,
    /// The value that was measured.
    pub seen: String,
    /// Sentences on the reason why it matters, and on the advice.
    pub more: Vec<String>,
}

impl Build {
    /// Everything that the build is checked for.
    pub fn checks(&self) -> Vec<Check> {
        let mut checks = vec![self.valid()];
        checks.extend(self.thresholds());
        checks.extend(self.findings());
        checks.extend(self.against());
        checks
    }

    /// True if all runs are valid.
    fn valid(&self) -> Check {
        let invalid: Vec<String> = (self.runs.iter())
            .filter_map(|run| Some(self.label(run, &invalid(&run.summary)?)))
            .collect();
        let many = self.runs.len();
        let (outcome, seen) = if invalid.is_empty() {
            let worst = self.runs.iter().map(|run| run.summary.verdict).max();
            let worst = worst.unwrap_or(Verdict::Valid).name();
            let runs = if many == 1 { "run" } else { "runs" };
            (Outcome::Passes, format!("{many} {runs}, verdict {worst}"))
        } else {
            (self.invalid(), invalid.join("; "))
        };
        Check {
            subject: Subject::Run,
            name: "the measurement is valid".to_owned(),
            outcome,
            seen,
            more: Vec::new(),
        }
    }

    /// The outcome of an invalid run's check.
    fn invalid(&self) -> Outcome {
        if self.allows_invalid { Outcome::Warns } else { Outcome::Fails }
    }

    /// The words with the name of the run, if there are several.
    fn label(&self, run: &Run, words: &str) -> String {
        match self.runs.len() {
            1 => words.to_owned(),
            _ => format!("{words} ({})", run.folder),
        }
    }

    /// The thresholds: each must hold in every run.
    fn thresholds(&self) -> Vec<Check> {
        let mut checks: Vec<Check> = Vec::new();
        for run in &self.runs {
            for checked in &run.summary.thresholds {
                let outcome = if checked.held { Outcome::Passes } else { Outcome::Fails };
                let seen = self.label(run, &checked.outcome());
                let known = (checks.iter_mut()).find(|known| known.name == checked.threshold);
                match known {
                    Some(known) if known.outcome == outcome => {
                        known.seen = format!("{}; {seen}", known.seen);
                    }
                    // The text shows the deciding value.
                    Some(known) if known.outcome < outcome => {
                        (known.outcome, known.seen) = (outcome, seen);
                    }
                    Some(_) => {}
                    None => checks.push(Check {
                        subject: Subject::Threshold,
                        name: checked.threshold.clone(),
                        outcome,
                        seen,
                        more: Vec::new(),
                    }),
                }
            }
        }
        checks
    }

    /// The findings that are more than notes, each once: an invalid run's fail the build by its
    /// verdict.
    fn findings(&self) -> Vec<Check> {
        let mut checks: Vec<Check> = Vec::new();
        for run in &self.runs {
            for finding in &run.summary.findings {
                let Finding { id, severity, seen, .. } = finding;
                let outcome = match severity {
                    Severity::Note => continue,
                    Severity::Suspect => Outcome::Warns,
                    Severity::Invalid => self.invalid(),
                };
                let seen = self.label(run, seen);
                match checks.iter_mut().find(|known| known.name == id.name()) {
                    Some(known) => {
                        known.outcome = known.outcome.max(outcome);
                        known.seen = format!("{}; {seen}", known.seen);
                    }
                    None => checks.push(Check {
                        subject: Subject::Finding,
                        name: id.name().to_owned(),
                        outcome,
                        seen,
                        more: vec![finding.why.clone(), finding.advice.clone()],
                    }),
                }
            }
        }
        checks
    }

    /// The comparison with the baseline.
    fn against(&self) -> Vec<Check> {
        let baseline = |outcome, name: &str, seen, more| Check {
            subject: Subject::Baseline,
            name: name.to_owned(),
            outcome,
            seen,
            more,
        };
        let comparable = "the baseline is comparable";
        match &self.baseline {
            Baseline::NotRequested => Vec::new(),
            Baseline::None(place) => vec![baseline(
                Outcome::Notes,
                "there is a baseline",
                format!("nothing was compared: no baseline in {place}"),
                vec!["the first run passes; store its runs as the baseline of the next".to_owned()],
            )],
            Baseline::NotComparable { reasons, fails } => {
                let outcome = if *fails { Outcome::Fails } else { Outcome::Warns };
                let seen = format!("NOTHING WAS COMPARED: {}", reasons.join("; "));
                vec![baseline(outcome, comparable, seen, Vec::new())]
            }
            Baseline::Compared(compared) => {
                let (outcome, seen) = if compared.is_assumed() && !compared.conditions.is_empty() {
                    (
                        Outcome::Warns,
                        "one run per side: the run-to-run variation is assumed; repeat the runs",
                    )
                } else {
                    (Outcome::Passes, "compared")
                };
                let compares = baseline(outcome, comparable, seen.to_owned(), Vec::new());
                let mut checks = vec![compares];
                checks.extend(conditions(compared));
                checks.extend(worse(compared));
                checks
            }
        }
    }
}

/// The reason why a run is no measurement to go by, if so: by its findings, or because most of its
/// requests failed for whatever reasons.
pub fn invalid(summary: &Summary) -> Option<String> {
    if summary.verdict == Verdict::Invalid {
        let findings = summary.findings.iter();
        let invalid = findings.filter(|finding| finding.severity == Severity::Invalid);
        let why: Vec<&str> = invalid.map(|finding| finding.seen.as_str()).collect();
        return Some(why.join("; "));
    }
    let requests = &summary.requests;
    let failed = requests.failed;
    (u128::from(failed) * 2 > u128::from(requests.total)).then(|| {
        let total = requests.total;
        format!("{failed} of {total} requests failed")
    })
}

/// The conditions of a comparison.
fn conditions(compared: &Compared) -> impl Iterator<Item = Check> {
    compared.conditions.iter().map(|outcome| Check {
        // A condition that cannot be checked is a fault of the comparison, and must not stand open.
        subject: if outcome.is_absent { Subject::Baseline } else { Subject::Condition },
        name: outcome.condition.clone(),
        outcome: if outcome.fails || outcome.is_absent { Outcome::Fails } else { Outcome::Passes },
        seen: if outcome.is_absent {
            format!("cannot be checked: {}; name a figure that both sides have", outcome.seen)
        } else {
            outcome.seen.clone()
        },
        more: Vec::new(),
    })
}

/// The figures that are worse beyond chance, where no condition fails.
fn worse(compared: &Compared) -> Option<Check> {
    if compared.conditions.iter().any(|outcome| outcome.fails) {
        return None;
    }
    let rows = compared.pairs.iter().flat_map(|pair| &pair.figures);
    let worse = rows.filter(|row| row.judgement == Some(Judgement::Worse));
    let worse: Vec<String> = worse
        .map(|row| match row.percent {
            Some(percent) => format!("{} ({})", row.figure, number::change(percent)),
            None => row.figure.clone(),
        })
        .collect();
    let name = "no figure is worse beyond chance".to_owned();
    Some(if worse.is_empty() {
        Check {
            subject: Subject::Baseline,
            name,
            outcome: Outcome::Passes,
            seen: "none is shown to be worse".to_owned(),
            more: Vec::new(),
        }
    } else {
        Check {
            subject: Subject::Baseline,
            name,
            outcome: Outcome::Warns,
            seen: worse.join(", "),
            more: vec![
                "no condition fails, so the build passes; add a condition to make it fail"
                    .to_owned(),
            ],
        }
    })
}

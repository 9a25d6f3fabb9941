//! A build's runs, judged: their thresholds, their findings and the comparison with a baseline as
//! one list of checks. The list decides if the build passes. Its forms are Markdown for summaries
//! and comments, JUnit XML, and annotations of a GitHub log.
//!
//! This module owns the list and its forms. It leaves comparisons to `compare`, the runs' own
//! figures to `result`, and exit codes to the command line. Passing has one rule: a check fails, or
//! it does not. Doubts warn, so that a build fails only for its author's conditions. They are a
//! suspect finding, a figure that is worse though no condition is about it, and a baseline that
//! cannot be compared.

#[cfg(test)]
mod tests;

use crate::document::{Block, Document, Table, Text};
use crate::{compared, repeats};
use audit::text::annotation;
use compare::variation::repeats;
use compare::{Compared, Judgement};
use model::number;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use result::finding::{Finding, Severity, Verdict};
use result::summary::Summary;

pub use quick_junit::SerializeError;

/// The runs of a build, and the result of the comparison with the baseline.
pub struct Build {
    pub scenario: String,
    /// The runs, in the order in which they began.
    pub runs: Vec<Run>,
    pub baseline: Baseline,
    /// True if a run that is invalid is a doubt, and fails nothing.
    pub allows_invalid: bool,
}

pub struct Run {
    pub folder: String,
    pub summary: Summary,
}

pub enum Baseline {
    NotRequested,
    /// There is no baseline yet. The text names the place where it was sought.
    None(String),
    NotComparable {
        reasons: Vec<String>,
        fails: bool,
    },
    Compared(Box<Compared>),
}

model::names! {
    /// The subject of a check; its name is the class of test cases.
    pub enum Subject {
        /// The verdict on the validity of a run.
        Run = "run",
        Threshold = "threshold",
        Finding = "finding",
        /// The baseline: its existence, its comparability and the figures that it lacks.
        Baseline = "baseline",
        /// A condition on the difference from the baseline.
        Condition = "condition",
    }
}

/// The outcome of a check, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    Passes,
    Notes,
    Warns,
    Fails,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    pub subject: Subject,
    /// The condition: `ttft.p99 <= 200 ms`.
    pub name: String,
    pub outcome: Outcome,
    pub seen: String,
    /// Sentences on the reason why it matters, and on the advice.
    pub more: Vec<String>,
}

impl Check {
    fn new(subject: Subject, name: &str, outcome: Outcome, seen: String) -> Self {
        Check { subject, name: name.to_owned(), outcome, seen, more: Vec::new() }
    }
}

impl Build {
    pub fn checks(&self) -> Vec<Check> {
        let mut checks = vec![self.valid()];
        checks.extend(self.thresholds());
        checks.extend(self.findings());
        checks.extend(self.against());
        checks
    }

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
        Check::new(Subject::Run, "the measurement is valid", outcome, seen)
    }

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
                    None => checks.push(Check::new(
                        Subject::Threshold,
                        &checked.threshold,
                        outcome,
                        seen,
                    )),
                }
            }
        }
        checks
    }

    /// The findings that are more than notes, each once.
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
                        more: vec![finding.why.clone(), finding.advice.clone()],
                        ..Check::new(Subject::Finding, id.name(), outcome, seen)
                    }),
                }
            }
        }
        checks
    }

    fn against(&self) -> Vec<Check> {
        let baseline = |outcome, name, seen| Check::new(Subject::Baseline, name, outcome, seen);
        let comparable = "the baseline is comparable";
        match &self.baseline {
            Baseline::NotRequested => Vec::new(),
            Baseline::None(place) => {
                let seen = format!("nothing was compared: no baseline in {place}");
                let advice = "the first run passes; store its runs as the baseline of the next";
                vec![Check {
                    more: vec![advice.to_owned()],
                    ..baseline(Outcome::Notes, "there is a baseline", seen)
                }]
            }
            Baseline::NotComparable { reasons, fails } => {
                let outcome = if *fails { Outcome::Fails } else { Outcome::Warns };
                let seen = format!("NOTHING WAS COMPARED: {}", reasons.join("; "));
                vec![baseline(outcome, comparable, seen)]
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
                let mut checks = vec![baseline(outcome, comparable, seen.to_owned())];
                checks.extend(conditions(compared));
                checks.extend(worse(compared));
                checks
            }
        }
    }
}

/// The reason why a run is no measurement to go by: its findings, or mostly failed requests.
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
    let check = |outcome, seen: String| {
        Check::new(Subject::Baseline, "no figure is worse beyond chance", outcome, seen)
    };
    if worse.is_empty() {
        return Some(check(Outcome::Passes, "none is shown to be worse".to_owned()));
    }
    let advice = "no condition fails, so the build passes; add a condition to make it fail";
    Some(Check { more: vec![advice.to_owned()], ..check(Outcome::Warns, worse.join(", ")) })
}

/// A line for each check that does not simply pass, the worst first: GitHub shows ten of a level.
pub fn annotations(build: &Build) -> String {
    let mut checks = build.checks();
    checks.sort_by_key(|check| std::cmp::Reverse(check.outcome));
    checks.iter().filter_map(|check| line(build, check)).collect()
}

fn line(build: &Build, check: &Check) -> Option<String> {
    let level = match check.outcome {
        Outcome::Passes => return None,
        Outcome::Notes => "notice",
        Outcome::Warns => "warning",
        Outcome::Fails => "error",
    };
    let title = format!("{}: {}", build.scenario, check.name);
    let words: Vec<&str> =
        std::iter::once(&check.seen).chain(&check.more).map(String::as_str).collect();
    Some(annotation(level, &[("title", &title)], &words.join("\n")))
}

/// The checks as JUnit XML: a suite with a test for each check. JUnit has no warning, so a doubt is
/// a skipped test: readers show skipped tests, and none of them fails a build. Fails if it cannot
/// be written.
pub fn junit(build: &Build) -> Result<String, SerializeError> {
    let mut suite = TestSuite::new(build.scenario.as_str());
    suite.add_test_cases(build.checks().iter().map(|check| {
        let mut test = TestCase::new(check.name.as_str(), status(check));
        test.set_classname(format!("{}.{}", build.scenario, check.subject.name()));
        if check.outcome == Outcome::Passes {
            test.set_system_out(check.seen.as_str());
        }
        test
    }));
    let mut junit = Report::new("runner ci");
    junit.add_test_suite(suite);
    junit.to_string()
}

fn status(check: &Check) -> TestCaseStatus {
    let mut status = match check.outcome {
        Outcome::Passes => return TestCaseStatus::success(),
        Outcome::Notes | Outcome::Warns => TestCaseStatus::skipped(),
        Outcome::Fails => TestCaseStatus::non_success(NonSuccessKind::Failure),
    };
    status.set_message(check.seen.as_str());
    status.set_type(check.subject.name());
    if !check.more.is_empty() {
        status.set_description(check.more.join("\n"));
    }
    status
}

// A build as Markdown, for the summary of a job and the comment on a change: the outcome, the
// checks, and the figures in a part that a reader opens.

pub fn text(build: &Build) -> String {
    page(build, false).text()
}

/// The outcome and the checks, the worst first; with a visible sign in the title.
fn page(build: &Build, with_sign: bool) -> Document {
    let checks = build.checks();
    let worst = checks.iter().map(|check| check.outcome).max();
    let (sign, words) = match worst.unwrap_or(Outcome::Passes) {
        Outcome::Passes | Outcome::Notes => ("✅ ", "passes"),
        Outcome::Warns => ("⚠️ ", "passes, with doubts"),
        Outcome::Fails => ("❌ ", "fails"),
    };
    let sign = if with_sign { sign } else { "" };
    let title = format!("{sign}{}: {words}", build.scenario);
    let mut page = Document::new("Build", title);
    page.paragraph(Text::strong(against(build)));
    let mut table = Table::new(["Outcome", "Check", "Seen"]);
    let mut sorted: Vec<&Check> = checks.iter().collect();
    sorted.sort_by_key(|check| std::cmp::Reverse(check.outcome));
    for check in sorted {
        let seen = std::iter::once(&check.seen).chain(&check.more);
        let seen = seen.map(String::as_str).collect::<Vec<_>>().join(". ");
        table.row([word(check.outcome).to_owned(), check.name.clone(), seen]);
    }
    page.table(table);
    page
}

pub fn markdown(build: &Build) -> String {
    let mut out = page(build, true).markdown_section(2);
    if let Baseline::Compared(compared) = &build.baseline {
        let shown = compared::page(compared).markdown_section(3);
        out += &details("The figures against the baseline", &shown);
    }
    let summaries: Vec<Summary> = build.runs.iter().map(|run| run.summary.clone()).collect();
    let spread = repeats(&build.scenario, &summaries, None);
    let mut shown = repeats::page(&spread).markdown_section(3);
    let mut findings: Vec<Finding> = Vec::new();
    for finding in summaries.iter().flat_map(|summary| &summary.findings) {
        if !findings.iter().any(|known| known.id == finding.id) {
            findings.push(finding.clone());
        }
    }
    if !findings.is_empty() {
        let mut page = Document::new("Findings", "Findings");
        page.push(Block::Findings(findings));
        shown += "\n";
        shown += &page.markdown_section(3);
    }
    out += &details("The figures and findings of these runs", &shown);
    out
}

fn against(build: &Build) -> String {
    match &build.baseline {
        Baseline::NotRequested => "No baseline was requested.".to_owned(),
        Baseline::None(_) => {
            "There is no baseline yet, so nothing was compared. The first run passes.".to_owned()
        }
        Baseline::NotComparable { .. } => {
            "NOTHING WAS COMPARED: the baseline is not comparable.".to_owned()
        }
        Baseline::Compared(compared) => {
            let runs = |at: usize| compared.sides.get(at).map_or(0, |side| side.sources.len());
            format!("Compared with the baseline: {} runs against {}.", runs(1), runs(0))
        }
    }
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Passes => "passes",
        Outcome::Notes => "note",
        Outcome::Warns => "doubt",
        Outcome::Fails => "FAILS",
    }
}

/// Markdown that a reader opens.
fn details(summary: &str, inner: &str) -> String {
    format!("\n<details>\n<summary>{summary}</summary>\n\n{inner}\n</details>\n")
}
